"""What becomes of the attributes in a module, operation by operation.

A module is run on attributes that are *followed*: tensors of the right shape and type that have no values, so that nothing
can be read from them, not for an `if`, not for NumPy. What they have instead is an `Expression`, a sum of products `L s R`
that holds for every input, and each operation must say what it makes of that. So whatever comes out of a run is what the
module computes for *all* attributes, whatever parts, patches, hooks and threads it has; what is no such sum is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .._optional import optional
from ..errors import VerificationError
from . import words
from .expression import Expression, Source, UnfitError
from .operations import is_known, perform

#: Operations that look at nothing but shapes and types.
_OF_THE_SHAPE = {
    "empty_like", "full_like", "new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros", "ones_like", "zeros_like",
    "sym_size", "sym_stride", "sym_numel", "is_same_size",
}  # fmt: skip
#: Operations that only give what stands at the end another shape.
_AFTER_THE_END = {
    "alias",
    "clone",
    "contiguous",
    "detach",
    "squeeze",
    "unsqueeze",
    "view",
    "_unsafe_view",
    "reshape",
    "lift_fresh",
}
#: Ways for values to leave PyTorch, and so to influence what nobody can follow.
_DEPARTURES = {
    "data_ptr", "from_dlpack", "is_nonzero", "item", "numpy", "set_", "share_memory_", "storage", "tolist", "untyped_storage",
    "__array__", "__bool__", "__complex__", "__contains__", "__dlpack__", "__float__", "__index__", "__int__", "__set__",
    "__reduce_ex__", "__deepcopy__", "__repr__", "__format__", "const_data_ptr", "_typed_storage", "typed_storage",
}  # fmt: skip
_TENSORS_THAT_ARE_MADE = {"empty", "full", "ones", "zeros", "eye", "scalar_tensor", "empty_strided"}


#: Operations that, in place, change how a tensor is laid out.
_OF_THE_LAYOUT = {"squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze"}
#: Operations that do not say that what they give is a view.
_VIEWS_UNSAID = {"_unsafe_view", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes"}
#: Products with sparse matrices, which have the shapes of dense ones.
_SPARSE_PRODUCTS = {"_sparse_mm", "_sparse_mm_reduce_impl"}
#: Operations whose result may be laid out in another way with values than without, if what they are given is not contiguous.
_OF_ANY_LAYOUT = _SPARSE_PRODUCTS | {
    "native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training", "_sparse_addmm",
}  # fmt: skip


class PrecisionError(VerificationError):
    """The module rounds on its way to another precision."""


@dataclass
class _Memory:
    """What tensors share that are views of each other."""

    #: Counts changes in place: whoever has seen fewer is out of date.
    changes: int = 0
    #: Whether values have left PyTorch, where a change would be seen.
    has_left: bool = False


class Trace:
    """What becomes of the attributes in one run of a module."""

    def __init__(self) -> None:
        #: What was refused, or failed; a module that continues all the same does not get away with it.
        self._refused: list[VerificationError] = []
        self._failed: list[BaseException] = []
        #: Path and class of the parts of the module, by their `id`.
        self._paths: dict[int, tuple[str, str]] = {}
        #: Functions of PyTorch that are running, as the module called them.
        self._called: list[Any] = []
        self._class = _followed_class(self)

    def follow(self, nodes: int, attributes: int, dtype: Any) -> Any:
        """Attributes that are followed."""
        torch = optional("torch", "pyg", "from_pyg()")
        shape = (nodes, attributes)
        return self._class(
            torch.empty(shape, dtype=dtype, device="meta"),
            Expression.whole(Source(attributes), nodes, shape, "rc"),
            _Memory(),
        )

    def is_followed(self, value: Any) -> bool:
        """Whether a tensor depends on the attributes."""
        return isinstance(value, self._class) and value._nodeproof_is is not None

    def result(self, output: Any) -> tuple[Expression, str]:
        """What a tensor is, and what stands at its end: nothing, `softmax` or `log_softmax`."""
        self._check_current(output)
        return output._nodeproof_is, output._nodeproof_end

    def watching(self, module: Any) -> Any:
        """A context in which every operation goes through the trace."""
        self._paths = {id(part): (path, _kind(part)) for path, part in module.named_modules()}
        return _watcher(self)

    def refuse(self, problem: str, kind: type[VerificationError] = VerificationError) -> VerificationError:
        """Takes note of something that must not be, and where."""
        running = self._running()
        problem = (words.of_module(running[-1][1]) if running else None) or problem
        # How a layer aggregates is one of its options.
        while len(running) > 1 and running[-1][1].endswith("Aggregation") and running[-1][0]:
            running.pop()
        error = kind(f"{words.place(*(running[-1] if running else ('', 'the module')))}: {problem}")
        self._refused.append(error)
        return error

    def _running(self) -> list[tuple[str, str]]:
        """Path and class of the modules that this thread is in, outermost first; found without a hook that they could see."""
        running: list[tuple[str, str]] = []
        frame = inspect.currentframe()
        while frame is not None:
            part = id(frame.f_locals.get("self")) if frame.f_code.co_name == "_call_impl" else None
            running += [self._paths[part]] if part in self._paths else []
            frame = frame.f_back
        return running[::-1]

    def fail(self, error: BaseException) -> None:
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
                f"the module continues after an operation that failed ({type(error).__name__}: {error}), and may not fail "
                "where its values are at hand"
            )

    def call(self, function: Any, arguments: Any, keywords: dict[str, Any]) -> Any:
        """A function of PyTorch, called with tensors that are followed."""
        torch = optional("torch", "pyg", "from_pyg()")
        name = getattr(function, "__name__", "")
        if getattr(function, "__self__", None) is torch.Tensor.data and name == "__set__":
            raise self.refuse("gives a tensor other values by setting `data`; make a new tensor")
        if name in _DEPARTURES:
            arguments = self._departing(arguments, words.readable(function) or name)
            return function(*arguments, **self._departing(keywords, name))
        self._called.append(function)
        try:
            with torch._C.DisableTorchFunctionSubclass():
                return function(*arguments, **keywords)
        finally:
            self._called.pop()

    def _departing(self, given: Any, way: str) -> Any:
        """Constants as plain tensors; what depends on the attributes must not leave."""

        def leave(value: Any) -> Any:
            if not isinstance(value, self._class):
                return value
            self._check_current(value)
            if value._nodeproof_is is not None:
                raise self.refuse(
                    f"takes values that depend on the attributes out of PyTorch ({way}), where nobody can follow them; "
                    "certificates need a module that does the same whatever the attributes are"
                )
            value._nodeproof_memory.has_left = True
            return value._nodeproof_hidden

        return _mapped(leave, given)

    def operation(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Performs an operation on what is followed, if it is one of those that may be."""
        torch = optional("torch", "pyg", "from_pyg()")
        if torch.Tag.nondeterministic_seeded in function.tags and not _is_off(function, arguments):
            problem = "draws random numbers"
            raise self.refuse(problem + words.instead(problem))
        tensors = [value for value in _flat((arguments, keywords)) if isinstance(value, torch.Tensor)]
        followed = [value for value in tensors if isinstance(value, self._class)]
        for value in followed:
            self._check_current(value)
        if followed:
            made = function.decompose(*arguments, **keywords)
            if made is not NotImplemented:
                return made
        name, in_place = _name(function)
        if not any(value._nodeproof_is is not None for value in followed):
            return self._of_constants(name, function, arguments, keywords, tensors, followed)
        if name in _OF_THE_SHAPE:
            bare = _mapped(
                lambda value: _blank(value) if isinstance(value, self._class) else value, (arguments, keywords)
            )
            return _mapped(self._constant, function(*bare[0], **bare[1]))
        if in_place or _writes(function):
            return self._in_place(name, in_place, function, arguments, keywords)
        return self._of_followed(name, function, arguments, keywords)

    def _of_constants(
        self, name: str, function: Any, arguments: Any, keywords: Any, tensors: list[Any], followed: list[Any]
    ) -> Any:
        """An operation on constants, performed; what is new may be written to later, and so must be known."""
        torch = optional("torch", "pyg", "from_pyg()")
        if tensors and not followed:
            return function(*arguments, **keywords)
        if not tensors and name not in _TENSORS_THAT_ARE_MADE:
            return function(*arguments, **keywords)
        arguments_, keywords_ = _mapped(
            lambda v: v._nodeproof_hidden if isinstance(v, self._class) else v, (arguments, keywords)
        )
        output = function(*arguments_, **keywords_)
        if _writes(function):
            for value in followed:
                self._check_current(value)
            return arguments[0] if isinstance(arguments[0], self._class) else output
        shared = next((v for v in followed), None) if _is_view(function) else None
        if any(isinstance(v, torch.Tensor) and v.layout is not torch.strided for v in _flat(output)):
            for value in followed:
                value._nodeproof_memory.has_left = True
            return output
        return _mapped(lambda v: self._constant(v, shared), output)

    def _constant(self, value: Any, of: Any = None) -> Any:
        """A tensor that does not depend on the attributes, and may be a view of another."""
        torch = optional("torch", "pyg", "from_pyg()")
        if not isinstance(value, torch.Tensor):
            return value
        return self._class(value, None, _Memory() if of is None else of._nodeproof_memory)

    def _of_followed(self, name: str, function: Any, arguments: Any, keywords: Any) -> Any:
        """An operation on what depends on the attributes."""
        torch = optional("torch", "pyg", "from_pyg()")
        first = next(value for value in _flat((arguments, keywords)) if self.is_followed(value))
        end = self._end(name, arguments)
        if name == "_reshape_alias" and not first.is_contiguous():
            raise self.refuse("reads its values in another order than they are stored in; use reshape and transpose")
        if not end and not is_known(name):
            raise self.refuse(words.of_operation(name, self._called[0] if self._called else None))
        shapes = _mapped(lambda value: self._shape_of(value, name == "index"), (arguments, keywords))
        made = torch.mm(*shapes[0][:2]) if name in _SPARSE_PRODUCTS else function(*shapes[0], **shapes[1])
        made = (made, made) if name == "_sparse_mm_reduce_impl" else made
        if end:
            return self._class(made, first._nodeproof_is, _Memory(), end)
        for part in _flat(made):
            if isinstance(part, torch.Tensor):
                self._check_precision(first.dtype, part.dtype)
        result = self._rule(name, function, arguments, keywords, made)
        # Whether what is reshaped is a copy is not always known; neither must be written to then.
        unknown = name in _OF_ANY_LAYOUT and not first.is_contiguous()
        unknown |= name == "clone" and first._nodeproof_memory.has_left
        shared = first._nodeproof_memory if _is_view(function) else _Memory(has_left=True) if unknown else None
        if isinstance(result, list):
            parts = [self._made(*pair, shared) for pair in zip(result, made, strict=True)]
            return type(made)(parts) if isinstance(made, list) else tuple(parts)
        return self._made(result, made, shared, first._nodeproof_end)

    def _rule(self, name: str, function: Any, arguments: Any, keywords: Any, made: Any) -> Any:
        """The expressions of what an operation gives."""

        def bare(value: Any) -> Any:
            if not isinstance(value, self._class):
                return value
            return value._nodeproof_hidden if value._nodeproof_is is None else value._nodeproof_is

        given = _mapped(bare, (arguments, keywords))
        try:
            return perform(name, function._schema, given[0], given[1], made)
        except UnfitError as error:
            raise self.refuse(str(error) + words.instead(str(error))) from None

    def _made(self, result: Expression | None, made: Any, shared: _Memory | None, end: str = "") -> Any:
        torch = optional("torch", "pyg", "from_pyg()")
        if result is None:
            return self._constant(torch.zeros(made.shape, dtype=made.dtype))
        if result.shape != tuple(made.shape):
            raise AssertionError(f"shape {result.shape} instead of {tuple(made.shape)}")
        return self._class(made, result, shared or _Memory(), end)

    def _end(self, name: str, arguments: Any) -> str:
        """Whether an operation is the softmax over the classes that may stand at the end; refuses what stands behind one."""
        given = arguments[0]
        if any(self.is_followed(value) and value._nodeproof_end for value in _flat(arguments)):
            if name in _AFTER_THE_END or name == "_to_copy":
                return ""
            problem = f"continues behind a {given._nodeproof_end if self.is_followed(given) else 'softmax'}"
            raise self.refuse(f"{problem}; {words.of_operation('_softmax', None).partition('; ')[2]}")
        rows = name in ("_log_softmax", "_softmax") and given.dim() == 2 and given._nodeproof_is.sides == "rc"
        return name.strip("_") if rows and arguments[1] in (1, -1) and not arguments[2] else ""

    def _in_place(self, name: str, in_place: bool, function: Any, arguments: Any, keywords: Any) -> Any:
        """An operation that changes its first argument."""
        target = arguments[0]
        if (
            not in_place
            or _writes(function) != [0]
            or not isinstance(target, self._class)
            or target._nodeproof_memory.has_left
        ):
            raise self.refuse(
                "writes values that depend on the attributes into a tensor that is kept outside of the run, or seen by "
                "something else; write `y = y + x` instead of changing y"
            )
        if not is_known(name):
            raise self.refuse(words.of_operation(name, self._called[0] if self._called else None))
        if name in _OF_THE_LAYOUT:
            raise self.refuse("changes the shape of a tensor in place; make a new one")
        others = [value for value in _flat((arguments[1:], keywords)) if isinstance(value, self._class)]
        if any(value is not target and value._nodeproof_memory is target._nodeproof_memory for value in others):
            raise self.refuse("changes a part of a tensor in place by another part of it; make a new tensor")
        if any(self.is_followed(value) and value._nodeproof_end for value in _flat(arguments)):
            self._end(name, arguments)
        shape = _blank(target, "meta")
        sources = [value for value in _flat((arguments[1:], keywords)) if self.is_followed(value)]
        for value in sources:
            self._check_precision(value.dtype, target.dtype)
        result = self._rule(name, function, arguments, keywords, shape)
        blank = _mapped(lambda value: self._shape_of(value, name == "index"), (arguments, keywords))
        changed = function(*blank[0], **blank[1]).shape
        if result.shape != tuple(target.shape) or changed != target.shape:
            raise self.refuse("changes the shape of a tensor in place; make a new one")
        target._nodeproof_is = result
        target._nodeproof_hidden = shape
        target._nodeproof_memory.changes += 1
        target._nodeproof_seen = target._nodeproof_memory.changes
        return target

    def _check_current(self, value: Any) -> None:
        """Refuses tensors that share memory with one that was changed since, or that have another shape by now."""
        hidden = value._nodeproof_hidden
        if value._nodeproof_is is None and (hidden.shape, hidden.stride()) != (value.shape, value.stride()):
            raise self.refuse("changes the shape of a tensor in place; make a new one")
        if value._nodeproof_seen != value._nodeproof_memory.changes:
            raise self.refuse(
                "changes a part of a tensor in place, or one that it uses under another name; make a new tensor"
            )

    def _check_precision(self, before: Any, after: Any) -> None:
        torch = optional("torch", "pyg", "from_pyg()")
        if not after.is_floating_point:
            raise self.refuse("turns values that depend on the attributes into whole numbers or truth values")
        if torch.finfo(after).eps > torch.finfo(before).eps:
            raise self.refuse("changes the precision of values that depend on the attributes", PrecisionError)

    def _shape_of(self, value: Any, as_index: bool) -> Any:
        """A tensor of the same shape and type without values; in place of a mask to index by, the places that it chooses."""
        torch = optional("torch", "pyg", "from_pyg()")
        if not isinstance(value, torch.Tensor):
            return value
        value = value._nodeproof_hidden if isinstance(value, self._class) else value
        if as_index and value.dtype in (torch.bool, torch.uint8) and value.dim() == 1:
            return value.nonzero()[:, 0].to("meta")
        return value if value.device.type == "meta" else _blank(value, "meta")


def is_of_a_trace(value: Any) -> bool:
    """Whether a tensor belongs to a trace, this one or another."""
    return hasattr(type(value), "_nodeproof_trace")


def _is_off(function: Any, arguments: Any) -> bool:
    """Whether an operation that may draw random numbers does not."""
    training = {"native_dropout": 2, "dropout": 2, "rrelu_with_noise": 4, "rrelu_with_noise_functional": 4}.get(
        _name(function)[0]
    )
    return training is not None and (len(arguments) <= training or arguments[training] is False)


def _blank(value: Any, device: str = "cpu") -> Any:
    """A tensor of the same shape and type."""
    torch = optional("torch", "pyg", "from_pyg()")
    if value.layout is not torch.strided:
        return torch.empty(value.shape, dtype=value.dtype, device=device)
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)


def _writes(function: Any) -> list[int]:
    """Places of the arguments that an operation changes."""
    written = enumerate(argument.alias_info for argument in function._schema.arguments)
    return [place for place, alias in written if alias is not None and alias.is_write]


def _is_view(function: Any) -> bool:
    """Whether what an operation gives may share memory with what it is given."""
    said = any(result.alias_info is not None for result in function._schema.returns)
    return said or _name(function)[0] in _VIEWS_UNSAID


def _name(function: Any) -> tuple[str, bool]:
    """The name of an operation, and whether it changes its first argument."""
    space, _, name = function._schema.name.partition("::")
    in_place = name.endswith("_") and not name.endswith("__")
    return (name.removesuffix("_") if in_place else name) if space == "aten" else f"{space}::{name}", in_place


def _mapped(change: Any, given: Any) -> Any:
    """The same lists, tuples and dictionaries with other leaves."""
    if isinstance(given, (list, tuple)):
        parts = [_mapped(change, part) for part in given]
        return type(given)(*parts) if hasattr(given, "_fields") else type(given)(parts)
    if isinstance(given, dict):
        return {key: _mapped(change, part) for key, part in given.items()}
    return change(given)


def _flat(given: Any) -> Iterator[Any]:
    if isinstance(given, (list, tuple)):
        for part in given:
            yield from _flat(part)
    elif isinstance(given, dict):
        yield from _flat(list(given.values()))
    else:
        yield given


def _kind(module: Any) -> str:
    """The class of a module, without what parametrisations make of it."""
    from torch.nn.utils.parametrize import type_before_parametrizations

    return str(type_before_parametrizations(module).__name__)


def _watcher(trace: Trace) -> Any:
    """A context in which every operation goes through the trace."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watcher(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return _performed(trace, function, args, kwargs)

    return Watcher()


def _performed(trace: Trace, function: Any, arguments: Any, keywords: Any) -> Any:
    try:
        return trace.operation(function, arguments, keywords or {})
    except BaseException as error:
        trace.fail(error)
        raise


def _followed_class(trace: Trace) -> Any:
    """The class of tensors that one trace follows."""
    torch = optional("torch", "pyg", "from_pyg()")

    class Followed(torch.Tensor):  # type: ignore[misc, name-defined]
        """A tensor without values of its own."""

        _nodeproof_trace = True

        @staticmethod
        def __new__(cls, value: Any, *_: Any) -> Any:
            return torch.Tensor._make_wrapper_subclass(
                cls,
                value.shape,
                strides=value.stride(),
                storage_offset=value.storage_offset(),
                dtype=value.dtype,
                device="cpu",
            )

        def __init__(self, value: Any, expression: Expression | None, memory: _Memory, end: str = "") -> None:
            #: The tensor behind a constant; of what depends on the attributes just the shape.
            self._nodeproof_hidden = value
            self._nodeproof_is = expression
            self._nodeproof_memory = memory
            self._nodeproof_seen = memory.changes
            self._nodeproof_end = end

        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            try:
                return trace.call(function, args, kwargs or {})
            except BaseException as error:
                trace.fail(error)
                raise

        @classmethod
        def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return _performed(trace, function, args, kwargs)

        def __repr__(self, **options: Any) -> str:
            return repr(trace._departing(self, "text"))

        def __format__(self, form: str) -> str:
            return format(trace._departing(self, "text"), form)

        def __reduce_ex__(self, protocol: Any) -> Any:
            return trace._departing(self, "pickle").__reduce_ex__(protocol)

        def __deepcopy__(self, memory: Any) -> Any:
            return trace._departing(self, "copy").__deepcopy__(memory)

    return Followed
