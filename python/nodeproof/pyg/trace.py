"""What becomes of the attributes in a module, operation by operation.

Agreement on some inputs is no proof that a module is `P x W + b` with ReLUs between. So it is run on attributes that are
*followed*: tensors that hide their values, from which nothing can be read. Between layers they let nothing through but
ReLUs, right behind a layer and right before the next, and a last `log_softmax`; within a layer nothing but the operations
that the layer is made of, which are affine. So the module is `A_k relu(… relu(A_0 x))` for every input, whatever parts,
patches and hooks it has. With the values, *probes* go through each layer, random numbers and zeros in place of its input, so
that A_i as it is at that moment can be compared with `P x W + b`: affine functions that agree on such are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._optional import optional
from ..errors import VerificationError

#: Operations that leave values as they are, and in their order.
_AS_THEY_ARE = {
    "alias", "clone", "contiguous", "detach", "expand", "flatten", "lift_fresh", "reshape", "slice", "squeeze", "to",
    "unflatten", "unsqueeze", "view", "_to_copy", "_unsafe_view",
}  # fmt: skip
#: Of these, such that do so only if the shape stays.
_IF_THE_SHAPE_STAYS = {"expand", "slice"}
#: What layers are made of, by what it is there for: operations, and which arguments may depend on the layer's input.
_PARTS: dict[str, dict[str, tuple[int, ...]]] = {
    "product": {"mm": (0,), "addmm": (1,), "linear": (0,)},
    "messages": {"index_select": (0,), "index": (0,), "gather": (0,)},
    "weights": {"mul": (0, 1)},
    "sum": {"scatter_add": (0, 3), "index_add": (0, 3)},
    "mean": {"div": (0,)},
    "bias": {"add": (0, 1)},
}
#: Those that a layer may have as often as it passes messages; others it may have once.
_REPEATED = ("messages", "weights", "sum")
#: Random numbers, and zeros.
_PROBES = 2
#: Operations that look at nothing but shapes and types.
_OF_THE_SHAPE = {
    "empty_like", "full_like", "new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros", "ones_like", "zeros_like",
}  # fmt: skip
#: Ways for values to leave PyTorch, and so to influence what nobody can follow.
_DEPARTURES = {
    "data_ptr", "from_dlpack", "is_nonzero", "item", "numpy", "set_", "share_memory_", "storage", "tolist", "untyped_storage",
    "__array__", "__bool__", "__complex__", "__contains__", "__dlpack__", "__float__", "__index__", "__int__", "__set__",
}  # fmt: skip


@dataclass(frozen=True)
class Label:
    """What values are: exactly this, and not just something like it."""

    #: "attributes"; "output" of a layer; "hidden": that behind a ReLU; "end": that behind `log_softmax`; "inside": within one.
    kind: str
    #: Which call of a layer, from 0.
    call: int = -1


#: Random numbers and zeros, or what became of them.
Probes = tuple[Any, ...]


@dataclass
class _Open:
    """A call of a layer that has begun: its name, its number, what it is given, and what it has done so far."""

    name: str
    number: int
    given: Label | None
    rounds: int
    #: The tensor that it is given.
    x: Any
    done: Counter[str] = field(default_factory=Counter)


class PrecisionError(VerificationError):
    """The module rounds on its way to another precision."""


class Trace:
    """What becomes of the attributes in one run of a module."""

    def __init__(self, hint: str = "") -> None:
        self._hint = hint
        #: Of each storage, what its values are; it is kept, so that no address is used again.
        self._labels: dict[int, tuple[Label, Any]] = {}
        #: What was refused, or failed; a module that continues all the same does not get away with it.
        self._refused: list[VerificationError] = []
        self._failed: list[BaseException] = []
        self._open: list[_Open] = []
        self._behind: str | None = None
        self._calls = 0
        #: Shapes of what layers gave.
        self._shapes: dict[int, tuple[int, ...]] = {}
        self._class = _followed_class(self)

    def follow(self, x: Any) -> Any:
        """The attributes, from now on followed."""
        return self._followed(x, Label("attributes"))

    def label(self, given: Any) -> Label | None:
        """What values are; `None` for constants."""
        value = self.value(given)
        found = self._labels.get(_address(value)) if _is_tensor(value) else None
        return None if found is None else found[0]

    def value(self, given: Any) -> Any:
        """The values behind a tensor that is followed; all else as it is."""
        return given._nodeproof_hidden if isinstance(given, self._class) else given

    def enter(self, name: str, x: Any, rounds: int) -> Probes:
        """A layer is called that passes messages so many times; returns the probes that it is given."""
        if self.label(x) is None:
            raise self.note(
                VerificationError(f"layer {name!r} is given something that was not computed from data.x by PyTorch")
            )
        probes = x._nodeproof_probes = _probes(self.value(x))
        self._open.append(_Open(name, self._calls, self.label(x), rounds, x))
        self._calls += 1
        return probes

    def leave(self, output: Any) -> Probes:
        """A layer has ended; returns what became of its probes."""
        ended = self._open[-1]
        probes: Probes | None = getattr(output, "_nodeproof_probes", None)
        inside = self.label(output) == Label("inside", ended.number) and _is_whole(self.value(output))
        if not inside or probes is None:
            raise self.refuse("returns something else than what its layer computes by itself")
        self._open.pop()
        self._behind = ended.name
        ended.x._nodeproof_probes = None
        self._shapes[ended.number] = tuple(output.shape)
        self._mark(output._nodeproof_hidden, Label("output", ended.number))
        output._nodeproof_probes = None
        return probes

    def note(self, error: VerificationError) -> VerificationError:
        """Takes note of something that must not be."""
        self._refused.append(error)
        return error

    def refuse(self, problem: str, kind: type[VerificationError] = VerificationError) -> VerificationError:
        """Takes note of something that must not be, and where."""
        if self._open:
            where = f"in layer {self._open[-1].name!r}"
        else:
            where = "before the first layer" if self._behind is None else f"behind layer {self._behind!r}"
        return self.note(kind(f"{where} the module {problem}"))

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

    def departure(self, way: str) -> VerificationError:
        """Refuses values that leave PyTorch."""
        return self.refuse(
            f"takes values that depend on the attributes out of PyTorch ({way}), where nobody can follow them"
        )

    def operation(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Performs an operation on the values behind what is followed, if it is one of those that may be."""
        name, in_place = _name(function)
        self._check_mutation(name, in_place, function, arguments)
        values, named = self._bare(arguments), {key: self._bare(value) for key, value in keywords.items()}
        label = self._result(name, values, named)
        probes = self._probed(function, in_place, arguments, named) if label is not None and self._open else None
        shape = tuple(values[0].shape) if in_place else None
        output = function(*values, **named)
        if label is not None:
            self._check_result(name, values, output)
        if in_place:
            if tuple(values[0].shape) != shape:
                raise self.refuse(f"changes the shape of a tensor in place ({name}_)")
            if label is not None:
                self._check_whole(name, values[0], label)
                self._mark(values[0], label)
                arguments[0]._nodeproof_probes = probes
            return arguments[0]
        made = self._followed(output, label)
        if probes is not None:
            made._nodeproof_probes = probes
        return made

    def _probed(self, function: Any, in_place: bool, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Probes:
        """The same operation on the probes."""

        def pick(given: Any, place: int) -> Any:
            if isinstance(given, (list, tuple)):
                return type(given)([pick(part, place) for part in given])
            if self.label(given) is None:
                return self.value(given)
            if getattr(given, "_nodeproof_probes", None) is None:
                raise self.refuse("takes what its layer is given from elsewhere")
            return given._nodeproof_probes[place]

        made = []
        for place in range(_PROBES):
            picked = list(pick(arguments, place))
            if in_place:
                picked[0] = picked[0].clone()
            made.append(function(*picked, **{key: self._bare(value) for key, value in keywords.items()}))
        return tuple(made)

    def _bare(self, given: Any) -> Any:
        if isinstance(given, (list, tuple)):
            return type(given)([self._bare(part) for part in given])
        return self.value(given)

    def _followed(self, output: Any, label: Label | None) -> Any:
        if isinstance(output, (list, tuple)):
            return type(output)([self._followed(part, label) for part in output])
        if not _is_tensor(output):
            return output
        if label is not None:
            self._mark(output, label)
        return self._class(output)

    def _mark(self, value: Any, label: Label) -> None:
        self._labels[_address(value)] = (label, value)

    def _result(self, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Label | None:
        """What the result is; refuses what must not be."""
        labels = [{self.label(part) for part in _flat(argument)} - {None} for argument in arguments]
        dependent = [place for place, found in enumerate(labels) if found]
        if any(self.label(part) is not None for part in _flat(list(keywords.values()))):
            raise self._refuse_operation(name)
        if not dependent or name in _OF_THE_SHAPE or (name == "expand_as" and dependent == [1]):
            return None
        if dependent == [0] and len(labels[0]) == 1:
            (label,) = labels[0]
            assert label is not None
            if name in _AS_THEY_ARE or (name == "dropout" and arguments[2] is False):
                return label
            if not self._open and label.kind in ("output", "hidden") and _is_relu(name, arguments, keywords):
                return Label("hidden", label.call)
            if not self._open and label.kind == "output" and self._is_log_softmax(name, arguments, label):
                return Label("end", label.call)
        if not self._open:
            raise self._refuse_operation(name)
        return self._within(name, labels, dependent, keywords)

    def _within(self, name: str, labels: list[Any], dependent: list[int], keywords: dict[str, Any]) -> Label:
        """What an operation within a layer gives: something affine in the layer's input."""
        layer = self._open[-1]
        inside = Label("inside", layer.number)
        if any(label not in (inside, layer.given) for found in labels for label in found):
            raise self.refuse(f"puts together what comes from different places ({name})")
        for part, operations in _PARTS.items():
            if name in operations and set(dependent) <= set(operations[name]) and not keywords.get("rounding_mode"):
                layer.done[part] += 1
                if part == "weights" and len(dependent) > 1:
                    raise self.refuse(f"multiplies values that depend on the attributes with each other ({name})")
                if layer.done[part] > (layer.rounds if part in _REPEATED else 1):
                    raise self.refuse(f"computes {name} more often than the layer does by itself")
                return inside
        raise self._refuse_operation(name)

    def _is_log_softmax(self, name: str, arguments: tuple[Any, ...], label: Label) -> bool:
        """Whether an operation is the `log_softmax` of each row of what a layer gave."""
        rows = tuple(arguments[0].shape) == self._shapes[label.call] and len(self._shapes[label.call]) == 2
        return name in ("_log_softmax", "log_softmax") and rows and arguments[1] in (1, -1)

    def _refuse_operation(self, name: str) -> VerificationError:
        if self._open:
            return self.refuse(f"computes {name}, which is not a part of it: has somebody put something into it?")
        hint = ": return logits, or log_softmax over the classes" if "softmax" in name else ""
        return self.refuse(
            f"computes {name}{hint}; nodeproof certifies networks with ReLUs (relu) between layers, logits or log_softmax at "
            f"the end, and nothing else{self._hint}"
        )

    def _check_mutation(self, name: str, in_place: bool, function: Any, arguments: tuple[Any, ...]) -> None:
        """Refuses operations that write to tensors which are not followed."""
        writes = [
            place
            for place, argument in enumerate(function._schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        if writes and (writes != [0] or not in_place or not isinstance(arguments[0], self._class)):
            raise self.refuse(f"writes values that may depend on the attributes into a tensor of its own ({name})")

    def _check_result(self, name: str, arguments: tuple[Any, ...], output: Any) -> None:
        """Refuses other types, and other shapes where values are to stay as they are."""
        given = next(part for part in _flat(arguments) if _is_tensor(part) and self.label(part) is not None)
        for part in _flat(output):
            if part.dtype != given.dtype:
                raise self.refuse("changes the precision of values that depend on the attributes", PrecisionError)
        if name in _IF_THE_SHAPE_STAYS and output.shape != given.shape:
            raise self._refuse_operation(name)

    def _check_whole(self, name: str, value: Any, label: Label) -> None:
        """Refuses changes in place of a part of a tensor, of which the rest would not hear."""
        before = self._labels.get(_address(value))
        if (before is None or before[0] != label) and not _is_whole(value):
            raise self.refuse(f"computes {name} of a part of a tensor")


def _is_relu(name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    """Whether an operation is `max(x, 0)`."""

    def zero(value: Any) -> bool:
        return isinstance(value, (int, float)) and value == 0

    if name == "clamp":
        given = dict(enumerate(arguments))
        return zero(given.get(1, keywords.get("min"))) and given.get(2, keywords.get("max")) is None
    if name == "clamp_min":
        return zero(arguments[1])
    if name == "threshold":
        return zero(arguments[1]) and zero(arguments[2])
    return name == "relu"


def _is_whole(value: Any) -> bool:
    """Whether a tensor is all that its storage holds."""
    return bool(value.untyped_storage().nbytes() == value.numel() * value.element_size())


def _probes(x: Any) -> Probes:
    """Random numbers and zeros like `x`; large numbers, where there is room for them, so that biases do not hide weights."""
    torch = optional("torch", "pyg", "from_pyg()")
    size = {torch.float64: 2.0**40, torch.float32: 2.0**20}.get(x.dtype, 1.0)
    random = torch.from_numpy(np.random.default_rng().standard_normal(tuple(x.shape)) * size).to(x.dtype)
    return random, torch.zeros_like(random)


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
    """What identifies a storage: views share it."""
    try:
        return int(value.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return id(value)


def _followed_class(trace: Trace) -> Any:
    """The class of tensors that one trace follows."""
    torch = optional("torch", "pyg", "from_pyg()")

    class Followed(torch.Tensor):  # type: ignore[misc, name-defined]
        """A tensor without values of its own."""

        @staticmethod
        def __new__(cls, value: Any) -> Any:
            return torch.Tensor._make_wrapper_subclass(
                cls,
                value.shape,
                strides=value.stride(),
                storage_offset=value.storage_offset(),
                dtype=value.dtype,
                device=value.device,
            )

        def __init__(self, value: Any) -> None:
            if isinstance(value, Followed):
                raise trace.departure("a copy")
            self._nodeproof_hidden = value
            self._nodeproof_probes: Probes | None = None

        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = getattr(function, "__name__", "")
            if name in _DEPARTURES:
                raise trace.departure(name)
            try:
                with torch._C.DisableTorchFunctionSubclass():
                    return function(*args, **(kwargs or {}))
            except BaseException as error:
                trace.fail(error)
                raise

        @classmethod
        def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            try:
                return trace.operation(function, args, kwargs or {})
            except BaseException as error:
                trace.fail(error)
                raise

        def __repr__(self, **options: Any) -> str:
            raise trace.departure("text")

        def __format__(self, form: str) -> str:
            raise trace.departure("text")

        def __reduce_ex__(self, protocol: Any) -> Any:
            raise trace.departure("pickle")

        def __deepcopy__(self, memory: Any) -> Any:
            raise trace.departure("copy")

    return Followed
