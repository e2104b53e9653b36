"""What a module computes, operation by operation.

Agreement on some inputs is no proof that a module is `P x W + b` with ReLUs between. So it is run on attributes that are
*followed*: tensors that hide their values and let through nothing but operations that are affine in them, and ReLUs. What
comes out is then, for every input, `A_k relu(… relu(A_0 x))` with affine `A_i`, whatever parts, patches and hooks the
module has; and affine functions that agree on random inputs are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from .._optional import optional
from ..errors import VerificationError

#: Operations that are affine in their first argument, all others being constant.
_OF_THE_FIRST = {
    "alias", "chunk", "clone", "detach", "diagonal", "expand", "fill", "flatten", "flip", "gather", "index", "index_select",
    "lift_fresh", "mean", "narrow", "neg", "permute", "repeat", "reshape", "roll", "select", "slice", "split",
    "split_with_sizes", "squeeze", "sum", "t", "transpose", "unbind", "unflatten", "unsqueeze", "view", "zero",
    "_reshape_alias", "_unsafe_view", "_to_copy",
}  # fmt: skip
#: Operations that are affine in these arguments together.
_OF_SEVERAL = {
    "add": (0, 1), "cat": (0,), "copy": (0, 1), "index_add": (0, 3), "rsub": (0, 1), "scatter_add": (0, 3), "stack": (0,),
    "sub": (0, 1),
}  # fmt: skip
#: Products: of these arguments at most one may depend on the attributes.
_PRODUCTS = {
    "addbmm": (1, 2), "addmm": (1, 2), "addmv": (1, 2), "baddbmm": (1, 2), "bmm": (0, 1), "mm": (0, 1), "mul": (0, 1),
    "mv": (0, 1),
}  # fmt: skip
#: Operations that look at nothing but shapes and types.
_OF_THE_SHAPE = {
    "empty_like", "full_like", "new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros", "ones_like", "zeros_like",
}  # fmt: skip
#: Ways for values to leave PyTorch, and so to influence what nobody can follow.
_DEPARTURES = {
    "data_ptr", "is_nonzero", "item", "numpy", "share_memory_", "storage", "tolist", "untyped_storage", "__array__",
    "__bool__", "__complex__", "__contains__", "__dlpack__", "__float__", "__index__", "__int__",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Source:
    """What values are an affine function of: the attributes, or what one ReLU gave."""

    #: ReLUs between it and the attributes.
    depth: int
    #: Whether it is the end, a `log_softmax`, after which nothing may come.
    last: bool = False


class PrecisionError(VerificationError):
    """The module rounds on its way to another precision."""


class Trace:
    """What becomes of the attributes in one run of a module."""

    def __init__(self, hint: str = "") -> None:
        self._hint = hint
        #: Of each storage, what its values are an affine function of; it is kept, so that no address is used again.
        self._sources: dict[int, tuple[Source, Any]] = {}
        #: What was refused, or failed; a module that goes on all the same does not get away with it.
        self._refused: list[VerificationError] = []
        self._failed: list[Exception] = []
        #: Layers that were entered and not left, and the one that was left last.
        self._inside: list[str] = []
        self._behind: str | None = None

    def follow(self, x: Any) -> Any:
        """The attributes, from now on followed."""
        self._sources[_address(x)] = (Source(0), x)
        return _followed_class()(x, self)

    def source(self, given: Any) -> Source | None:
        """What values are an affine function of; `None` for constants."""
        return self._source_of(self.value(given))

    def _source_of(self, value: Any) -> Source | None:
        found = self._sources.get(_address(value)) if _is_tensor(value) else None
        return None if found is None else found[0]

    def value(self, given: Any) -> Any:
        """The values behind a tensor that is followed; all else as it is."""
        return given.hidden if isinstance(given, _followed_class()) else given

    def enter(self, name: str) -> None:
        """A layer is called."""
        self._inside.append(name)

    def leave(self) -> None:
        """A layer has ended."""
        self._behind = self._inside.pop()

    def refuse(self, problem: str, kind: type[VerificationError] = VerificationError) -> VerificationError:
        """Takes note of something that must not be, and where."""
        if self._inside:
            where = f"in layer {self._inside[-1]!r}"
        else:
            where = "before the first layer" if self._behind is None else f"behind layer {self._behind!r}"
        error = kind(f"{where} the module {problem}")
        self._refused.append(error)
        return error

    def fail(self, error: Exception) -> None:
        """Takes note of an operation that failed; the module may go on without it."""
        self._failed.append(error)

    def check(self) -> None:
        """Raises what was refused."""
        for error in self._refused:
            raise error

    def check_all(self) -> None:
        """Raises what was refused, or failed without ending the run."""
        self.check()
        for error in self._failed:
            raise VerificationError(
                f"the module goes on after an operation that failed ({type(error).__name__}: {error}), and may not fail where "
                "its values are at hand"
            )

    def departure(self, name: str, arguments: Any) -> None:
        """Refuses values that leave PyTorch."""
        if any(self.source(argument) for argument in _flat(arguments)):
            raise self.refuse(
                f"takes values that depend on the attributes out of PyTorch ({name}), where nobody can follow them"
            )

    def operation(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Performs an operation on the values behind what is followed, if it is one of those that may be."""
        name, in_place = _name(function)
        values = [self._bare(argument) for argument in arguments]
        named = {key: self._bare(value) for key, value in keywords.items()}
        source = self._result(name, values, named)
        if source is not None and in_place:
            self._check_in_place(name, arguments[0], source)
        output = function(*values, **named)
        if in_place:
            self._mark(values[0], source)
            return arguments[0]
        if name == "_to_copy" and source is not None and output.dtype != values[0].dtype:
            raise self.refuse("changes the precision of values that depend on the attributes", PrecisionError)
        return self._followed(output, source)

    def _bare(self, argument: Any) -> Any:
        if isinstance(argument, (list, tuple)):
            return type(argument)([self._bare(part) for part in argument])
        return self.value(argument)

    def _followed(self, output: Any, source: Source | None) -> Any:
        if isinstance(output, (list, tuple)):
            return type(output)([self._followed(part, source) for part in output])
        if not _is_tensor(output):
            return output
        self._mark(output, source)
        return _followed_class()(output, self)

    def _mark(self, value: Any, source: Source | None) -> None:
        if source is not None:
            self._sources[_address(value)] = (source, value)

    def _result(self, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Source | None:
        """What the result is an affine function of; refuses what is not one."""
        sources = [self._common(name, argument) for argument in arguments]
        dependent = [place for place, source in enumerate(sources) if source is not None]
        if any(self._common(name, value) for value in keywords.values()):
            raise self._refuse_operation(name)
        if not dependent or name in _OF_THE_SHAPE:
            return None
        first = sources[dependent[0]]
        assert first is not None
        if first.last and name not in ("clone", "detach", "alias"):
            raise self.refuse(f"does something with the result of log_softmax ({name})")
        if name in _OF_THE_FIRST or (name == "div" and keywords.get("rounding_mode") is None):
            allowed: tuple[int, ...] = (0,)
        elif name in _OF_SEVERAL:
            allowed = _OF_SEVERAL[name]
        elif name in _PRODUCTS:
            factors = _PRODUCTS[name]
            if all(place in dependent for place in factors):
                raise self.refuse(f"multiplies values that depend on the attributes with each other ({name})")
            allowed = tuple(range(max(factors) + 1))
        elif dependent == [0] and _is_relu(name, arguments, keywords):
            return Source(first.depth + 1)
        elif dependent == [0] and name == "_log_softmax" and arguments[1] in (1, -1) and arguments[0].dim() == 2:
            return Source(first.depth, last=True)
        else:
            raise self._refuse_operation(name)
        if any(place not in allowed for place in dependent):
            raise self._refuse_operation(name)
        return self._one_of(name, [sources[place] for place in dependent])

    def _refuse_operation(self, name: str) -> VerificationError:
        hint = ": return logits, or log_softmax over the classes" if "softmax" in name else ""
        return self.refuse(
            f"computes {name}{hint}; nodeproof certifies networks with ReLUs between layers, logits or log_softmax at the end, "
            f"and nothing else{'' if self._inside else self._hint}"
        )

    def _common(self, name: str, argument: Any) -> Source | None:
        return self._one_of(name, [self._source_of(part) for part in _flat(argument)])

    def _one_of(self, name: str, sources: list[Source | None]) -> Source | None:
        """What all these are affine functions of; refuses several."""
        found = {source for source in sources if source is not None}
        if len(found) > 1:
            raise self.refuse(f"puts together what comes before a ReLU and after it, or after several ({name})")
        return found.pop() if found else None

    def _check_in_place(self, name: str, given: Any, source: Source) -> None:
        """Refuses changes in place that others would not hear of."""
        if not isinstance(given, _followed_class()):
            raise self.refuse(f"writes values that depend on the attributes into a tensor of its own ({name}_)")
        before = self.source(given)
        whole = given.hidden.untyped_storage().nbytes() == given.hidden.numel() * given.hidden.element_size()
        if before is not None and before is not source and not whole:
            raise self.refuse(f"computes {name} of a part of a tensor")


def _is_relu(name: str, arguments: list[Any], keywords: dict[str, Any]) -> bool:
    """Whether an operation is `max(x, 0)`."""
    if name == "clamp":
        given = dict(enumerate(arguments))
        return given.get(1, keywords.get("min")) == 0 and given.get(2, keywords.get("max")) is None
    if name == "clamp_min":
        return bool(arguments[1] == 0)
    if name == "threshold":
        return bool(arguments[1] == 0 and arguments[2] == 0)
    return name == "relu"


def _name(function: Any) -> tuple[str, bool]:
    """The name of an operation, and whether it changes its first argument."""
    space, _, name = function._schema.name.partition("::")
    in_place = name.endswith("_") and not name.endswith("__")
    return (name.removesuffix("_") if in_place else name) if space == "aten" else f"{space}::{name}", in_place


def _flat(given: Any) -> Iterator[Any]:
    if isinstance(given, (list, tuple)):
        for part in given:
            yield from _flat(part)
    else:
        yield given


def _is_tensor(value: Any) -> bool:
    return isinstance(value, optional("torch", "pyg", "from_pyg()").Tensor)


def _address(value: Any) -> int:
    """What tells a storage from others: views share it."""
    try:
        return int(value.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return id(value)


@cache
def _followed_class() -> Any:
    """The class of tensors that are followed; made here, for `torch` is optional."""
    torch = optional("torch", "pyg", "from_pyg()")

    class Followed(torch.Tensor):  # type: ignore[misc, name-defined]
        """A tensor without values of its own."""

        @staticmethod
        def __new__(cls, value: Any, trace: Trace) -> Any:
            return torch.Tensor._make_wrapper_subclass(
                cls,
                value.shape,
                strides=value.stride(),
                storage_offset=value.storage_offset(),
                dtype=value.dtype,
                device=value.device,
            )

        def __init__(self, value: Any, trace: Trace) -> None:
            self.hidden = value
            self.trace = trace

        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = getattr(function, "__name__", "")
            traces = {part.trace for part in _flat((args, list((kwargs or {}).values()))) if isinstance(part, cls)}
            if name in _DEPARTURES:
                for trace in traces:
                    trace.departure(name, args)
            try:
                with torch._C.DisableTorchFunctionSubclass():
                    return function(*args, **(kwargs or {}))
            except Exception as error:
                for trace in traces:
                    trace.fail(error)
                raise

        @classmethod
        def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            followed = next(part for part in _flat((args, list((kwargs or {}).values()))) if isinstance(part, cls))
            return followed.trace.operation(function, args, kwargs or {})

        def _leave(self, way: str) -> Any:
            self.trace.departure(way, [self])
            raise TypeError(f"a tensor that is followed has no {way}")

        def __repr__(self, **options: Any) -> str:
            return str(self._leave("text"))

        def __format__(self, form: str) -> str:
            return str(self._leave("text"))

        def __reduce_ex__(self, protocol: Any) -> Any:
            return self._leave("pickle")

        def __deepcopy__(self, memory: Any) -> Any:
            return self._leave("copy outside PyTorch")

    return Followed
