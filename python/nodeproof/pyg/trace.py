"""What becomes of the attributes in a module, operation by operation.

A module is run on attributes that are *followed*: tensors of the right shape and type that have no values, so that nothing
can be read from them, not for an `if`, not for NumPy. What they have instead is an `Expression`, a sum of products `L s R`
that holds for every input, and each operation must say what it makes of that. So whatever comes out of a run is what the
module computes for *all* attributes, whatever parts, patches and hooks it has; what is no such sum is refused. What else
results of operations are, their strides and whose memory they share, is taken from the record of a run on numbers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .._optional import pytorch
from ..errors import PrecisionError, VerificationError
from . import words
from .expression import Expression, Source, UnfitError
from .learned import current_tape
from .operations import filled_at, is_known, perform
from .record import Layout, Operation, Record, Result, flat, looks, mapped, mode

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
    "data_ptr", "from_dlpack", "is_nonzero", "item", "numpy", "share_memory_", "storage", "tolist", "untyped_storage",
    "__array__", "__bool__", "__complex__", "__contains__", "__dlpack__", "__float__", "__index__", "__int__", "__set__",
    "__reduce_ex__", "__deepcopy__", "__repr__", "__format__", "const_data_ptr", "_typed_storage", "typed_storage",
    "apply_", "map_", "map2_",
}  # fmt: skip
_TENSORS_THAT_ARE_MADE = {"empty", "full", "ones", "zeros", "eye", "scalar_tensor", "empty_strided"}


#: Operations that, in place, change how a tensor is laid out.
_OF_THE_LAYOUT = {"squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze"}
#: Operations that work entry by entry, so that one of them may read what it writes to.
_ENTRY_BY_ENTRY = {"add", "copy", "sub"}
#: Operations that give a tensor the memory of another.
_OF_THE_MEMORY = {"set", "set_data"}
#: Operations whose results have whatever values the memory had.
_UNSET = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}


@dataclass
class _Memory:
    """What tensors share that are views of each other."""

    #: Counts changes in place: whoever has seen fewer is out of date.
    changes: int = 0
    #: Whether values have left PyTorch, where a change would be seen.
    has_left: bool = False
    #: Whether nothing is known of its values.
    is_unknown: bool = False


@dataclass(frozen=True)
class _Part:
    """Which entries of another tensor one is a view of, by slices and selections one after the other."""

    of: Any
    steps: tuple[Callable[[Any], Any], ...]

    def places(self) -> npt.NDArray[np.bool_]:
        """Where these entries are."""
        torch = pytorch()
        chosen = torch.zeros(self.of.shape, dtype=torch.bool)
        view = chosen
        for step in self.steps:
            view = step(view)
        view.fill_(True)
        return np.asarray(chosen.numpy())


class Trace:
    """What becomes of the attributes in one run of a module."""

    def __init__(self, record: Record) -> None:
        #: What the module does on numbers, and how much of it has been done.
        self._record, self._done = record.operations, 0
        #: What was refused, or failed; a module that continues all the same does not get away with it.
        self._refused: list[VerificationError] = []
        self._failed: list[BaseException] = []
        #: Path and class of the parts of the module, by their `id`.
        self._paths: dict[int, tuple[str, str]] = {}
        #: Functions of PyTorch that are running, as the module called them.
        self._called: list[Any] = []
        self._class = _followed_class(self)

    def follow(self, nodes: int, attributes: int, dtype: Any, is_signed: bool) -> Any:
        """Attributes that are followed; whether they may be negative."""
        torch = pytorch()
        shape = (nodes, attributes)
        return self._class(
            torch.empty(shape, dtype=dtype, device="meta"),
            Expression.whole(Source(attributes, is_signed=is_signed), nodes, shape, "rc"),
            _Memory(),
        )

    def is_followed(self, value: Any) -> bool:
        """Whether a tensor depends on the attributes."""
        return isinstance(value, self._class) and value._nodeproof_is is not None

    def result(self, output: Any) -> tuple[Expression, str]:
        """What a tensor is, and what stands at its end: nothing, `softmax` or `log_softmax`."""
        return output._nodeproof_is, output._nodeproof_end

    def watching(self, module: Any) -> Any:
        """A context in which every operation goes through the trace."""
        self._paths = {id(part): (path, _kind(part)) for path, part in module.named_modules()}
        contexts = ExitStack()
        contexts.enter_context(self._guarding_data())
        contexts.enter_context(mode(self.performed))
        return contexts

    @contextmanager
    def _guarding_data(self) -> Iterator[None]:
        """A context in which `tensor.data = followed` is refused, of which PyTorch asks nobody."""
        torch = pytorch()
        own = torch._C.TensorBase.data

        def change(tensor: Any, value: Any) -> None:
            if isinstance(value, self._class):
                error = self.refuse("gives a tensor other values by setting `data`; make a new tensor")
                self.fail(error)
                raise error
            own.__set__(tensor, value)

        torch.Tensor.data = property(own.__get__, change)
        try:
            yield
        finally:
            del torch.Tensor.data

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
        if self._done < len(self._record):
            raise self._other_operations()

    def call(self, function: Any, arguments: Any, keywords: dict[str, Any]) -> Any:
        """A function of PyTorch, called with tensors that are followed."""
        torch = pytorch()
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
            self.check_current(value)
            if value._nodeproof_is is not None:
                raise self.refuse(
                    f"takes values that depend on the attributes out of PyTorch ({way}), where nobody can follow them; "
                    "certificates need a module that does the same whatever the attributes are"
                )
            value._nodeproof_memory.has_left = True
            return value._nodeproof_hidden

        return mapped(leave, given)

    def performed(self, function: Any, arguments: Any, keywords: dict[str, Any] | None) -> Any:
        """The same as `operation`, whose failure is taken note of."""
        try:
            return self.operation(function, arguments, keywords or {})
        except BaseException as error:
            self.fail(error)
            raise

    def operation(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Performs an operation on what is followed, if it is one of those that may be."""
        torch = pytorch()
        if torch.Tag.nondeterministic_seeded in function.tags and not _is_off(function, arguments):
            # Some can leave things out by chance on the way.
            attends = "attention" in function.name()
            problem = "draws random numbers"
            raise self.refuse(words.ATTENDS if attends else problem + words.instead(problem))
        tensors = [value for value in flat((arguments, keywords)) if isinstance(value, torch.Tensor)]
        known = [value for value in tensors if isinstance(value, self._class)]
        for value in known:
            self.check_current(value)
        recorded = self._recorded(function, arguments, keywords)
        name, in_place = _name(function)
        if known and name in _OF_THE_MEMORY:
            raise self.refuse("gives a tensor the memory of another; make a new tensor")
        if not any(value._nodeproof_is is not None for value in known):
            return self._of_constants(name, function, arguments, keywords, tensors, recorded)
        if not _is_of_pytorch(function):
            raise self.refuse(self._unknown(name))
        if name in _OF_THE_SHAPE:
            bare = mapped(
                lambda value: _blank(value) if isinstance(value, self._class) else value, (arguments, keywords)
            )
            return self._constants(name, function(*bare[0], **bare[1]), tensors, recorded)
        if in_place or (_writes(function) and not _is_off(function, arguments)):
            return self._in_place(name, in_place, function, arguments, keywords, recorded)
        return self._of_followed(name, function, arguments, keywords, tensors, recorded)

    def _unknown(self, name: str) -> str:
        """What is wrong with an operation that cannot be followed."""
        return words.of_operation(name, self._called[0] if self._called else None)

    def _recorded(self, function: Any, arguments: Any, keywords: Any) -> Operation:
        """What this operation is on numbers, where it must be the next one."""
        if self._done == len(self._record):
            raise self._other_operations()
        recorded = self._record[self._done]
        self._done += 1
        if recorded.function is not function or recorded.given != looks(arguments, keywords):
            raise self._other_operations()
        if recorded.error is not None:
            self.fail(recorded.error)
            raise recorded.error
        return recorded

    def _other_operations(self) -> VerificationError:
        return self.refuse(
            "performs other operations on tensors without values than on numbers, or some in another thread; certificates "
            "need a module that does the same whatever the attributes are"
        )

    def _of_constants(
        self, name: str, function: Any, arguments: Any, keywords: Any, tensors: list[Any], recorded: Operation
    ) -> Any:
        """An operation on constants, performed; what is new may be written to later, and so must be known."""
        known = [value for value in tensors if isinstance(value, self._class)]
        is_watched = known or (not tensors and name in _TENSORS_THAT_ARE_MADE)
        given, named = mapped(lambda v: v._nodeproof_hidden if isinstance(v, self._class) else v, (arguments, keywords))
        output = function(*given, **named)
        tape = current_tape()
        if tape is not None:
            tape.note(function, given, named, output)
        for value in known:
            self.check_current(value)
        return self._constants(name, output, tensors if is_watched else None, recorded)

    def _constants(self, name: str, output: Any, tensors: list[Any] | None, recorded: Operation) -> Any:
        """What an operation gave that does not depend on the attributes; without `tensors` nothing can be written to it."""
        torch = pytorch()
        results = [value for value in flat(recorded.result) if isinstance(value, Result)]
        made = [value for value in flat(output) if isinstance(value, torch.Tensor)]
        if [Layout.of(value) for value in made] != [result.layout for result in results]:
            raise self._other_operations()
        if name in _UNSET:
            for value in made:
                _unset(value)
        if tensors is None:
            return output
        known = [value for value in tensors if isinstance(value, self._class)]
        if any(value.layout is not torch.strided for value in made):
            for value in known:
                value._nodeproof_memory.has_left = True
            return output
        same = {id(value._nodeproof_hidden if isinstance(value, self._class) else value): value for value in tensors}
        sharing = list(tensors)
        for value, result in zip(made, results, strict=True):
            if id(value) not in same:
                same[id(value)] = self._class(value, None, self._memory(result, sharing))
            sharing.append(same[id(value)])
        return mapped(lambda value: same.get(id(value), value), output)

    def _memory(self, result: Result, tensors: list[Any]) -> _Memory:
        """The memory of what an operation gave, which may be that of one of these tensors."""
        sharing = [tensors[place] for place in result.shares]
        memories: dict[int, _Memory] = {
            id(v._nodeproof_memory): v._nodeproof_memory for v in sharing if isinstance(v, self._class)
        }
        if len(memories) == 1 and all(isinstance(value, self._class) for value in sharing):
            return next(iter(memories.values()))
        for memory in memories.values():
            memory.has_left = True
        return _Memory(has_left=bool(sharing))

    def _of_followed(
        self, name: str, function: Any, arguments: Any, keywords: Any, tensors: list[Any], recorded: Operation
    ) -> Any:
        """An operation on what depends on the attributes."""
        first = next(value for value in tensors if self.is_followed(value))
        end = self._end(name, arguments)
        if name == "_reshape_alias" and not first.is_contiguous():
            raise self.refuse("reads its values in another order than they are stored in; use reshape and transpose")
        if not end and not is_known(name):
            raise self.refuse(self._unknown(name))
        results = [value for value in flat(recorded.result) if isinstance(value, Result)]
        made = mapped(lambda v: v.layout.without_values() if isinstance(v, Result) else v, recorded.result)
        if end:
            return self._class(made, first._nodeproof_is, self._memory(results[0], tensors), end)
        self._check_precision(first.dtype, results[0].layout.dtype)
        expressions = self._rule(name, function, arguments, keywords, made)
        if not isinstance(expressions, list):
            given = self._made(expressions, made, self._memory(results[0], tensors), first._nodeproof_end)
            if name in ("select", "slice") and given._nodeproof_memory is first._nodeproof_memory:
                given._nodeproof_part = _part_of(first, function, arguments, keywords)
            return given
        sharing, parts = list(tensors), []
        for expression, part, result in zip(expressions, made, results, strict=True):
            parts.append(self._made(expression, part, self._memory(result, sharing)))
            sharing.append(parts[-1])
        return parts if isinstance(made, list) else tuple(parts)

    def _rule(self, name: str, function: Any, arguments: Any, keywords: Any, made: Any) -> Any:
        """The expressions of what an operation gives."""

        def bare(value: Any) -> Any:
            if not isinstance(value, self._class):
                return value
            return value._nodeproof_hidden if value._nodeproof_is is None else value._nodeproof_is

        given = mapped(bare, (arguments, keywords))
        try:
            return perform(name, function._schema, given[0], given[1], made)
        except UnfitError as error:
            raise self.refuse(str(error) + words.instead(str(error))) from None

    def _made(self, result: Expression | None, made: Any, memory: _Memory, end: str = "") -> Any:
        torch = pytorch()
        if result is None:
            memory.is_unknown = made.numel() > 0
            return self._class(torch.empty_strided(made.shape, made.stride(), dtype=made.dtype).zero_(), None, memory)
        if result.shape != tuple(made.shape):
            raise AssertionError(f"shape {result.shape} instead of {tuple(made.shape)}")
        return self._class(made, result, memory, end)

    def _end(self, name: str, arguments: Any) -> str:
        """Whether an operation is the softmax over the classes that may stand at the end; refuses what stands behind one."""
        given = arguments[0]
        if any(self.is_followed(value) and value._nodeproof_end for value in flat(arguments)):
            if name in _AFTER_THE_END or name == "_to_copy":
                return ""
            problem = f"continues behind a {given._nodeproof_end if self.is_followed(given) else 'softmax'}"
            raise self.refuse(f"{problem}; {words.of_operation('_softmax', None).partition('; ')[2]}")
        rows = name in ("_log_softmax", "_softmax") and given.dim() == 2 and given._nodeproof_is.sides == "rc"
        return name.strip("_") if rows and arguments[1] in (1, -1) and not arguments[2] else ""

    def _in_place(
        self, name: str, in_place: bool, function: Any, arguments: Any, keywords: Any, recorded: Operation
    ) -> Any:
        """An operation that changes its first argument."""
        torch = pytorch()
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
            raise self.refuse(self._unknown(name))
        if name in _OF_THE_LAYOUT or not _same_layout(target, recorded):
            raise self.refuse("changes the shape of a tensor in place; make a new one")
        hidden = _blank(target, "meta")
        others = [value for value in flat((arguments[1:], keywords)) if isinstance(value, self._class)]
        others = [value for value in others if value is not target or name not in _ENTRY_BY_ENTRY]
        if any(value._nodeproof_memory is target._nodeproof_memory for value in others):
            raise self.refuse("changes a part of a tensor in place by another part of it; make a new tensor")
        # A part of what does not overlap does not either, whatever its strides.
        part = target._nodeproof_part
        if torch._debug_has_internal_overlap(hidden if part is None else _blank(part.of, "meta")) != 0:
            raise self.refuse(
                "changes a part of a tensor in place, or writes several values to one place; make a new tensor"
            )
        if any(self.is_followed(value) and value._nodeproof_end for value in flat(arguments)):
            self._end(name, arguments)
        for value in flat((arguments[1:], keywords)):
            if self.is_followed(value):
                self._check_precision(value.dtype, target.dtype)
        result = self._rule(name, function, arguments, keywords, hidden)
        if result.shape != tuple(target.shape):
            raise self.refuse("changes the shape of a tensor in place; make a new one")
        self._change(target, result, hidden)
        return target

    def _change(self, target: Any, result: Expression, hidden: Any) -> None:
        """Gives a tensor other values; what it is a part of changes with it, if these are the same in all its entries."""
        part, memory = target._nodeproof_part, target._nodeproof_memory
        value = None if part is None else result.same_everywhere()
        changed = [(target, result, hidden)]
        if part is not None and value is not None and part.of._nodeproof_seen == memory.changes:
            try:
                whole = filled_at(part.of._nodeproof_is, part.places(), value)
            except UnfitError as error:
                raise self.refuse(str(error) + words.instead(str(error))) from None
            changed.append((part.of, whole, _blank(part.of, "meta")))
        memory.changes += 1
        for tensor, expression, shape in changed:
            tensor._nodeproof_is, tensor._nodeproof_hidden = expression, shape
            tensor._nodeproof_seen = memory.changes

    def check_current(self, value: Any) -> None:
        """Refuses tensors that share memory with one that was changed since, or that are another one by now."""
        if not isinstance(value, self._class):
            return
        hidden, memory = value._nodeproof_hidden, value._nodeproof_memory
        if _place(value) != value._nodeproof_place:
            raise self.refuse("gives a tensor the memory of another; make a new tensor")
        if value._nodeproof_is is None and (hidden.shape, hidden.stride()) != (value.shape, value.stride()):
            raise self.refuse("changes the shape of a tensor in place; make a new one")
        if memory.is_unknown:
            raise self.refuse("reads a result of an operation that is made for training; use its first result only")
        if value._nodeproof_seen != memory.changes:
            raise self.refuse(
                "changes a part of a tensor in place, or one that it uses under another name; make a new tensor"
            )

    def _check_precision(self, before: Any, after: Any) -> None:
        torch = pytorch()
        if not after.is_floating_point:
            raise self.refuse("turns values that depend on the attributes into whole numbers or truth values")
        if torch.finfo(after).eps > torch.finfo(before).eps:
            raise self.refuse("changes the precision of values that depend on the attributes", PrecisionError)


def constant_behind(value: Any) -> tuple[Any, bool]:
    """The tensor behind one that a trace knows, and whether that depends on the attributes; other values as they are."""
    if not hasattr(type(value), "_nodeproof_trace"):
        return value, False
    return value._nodeproof_hidden, value._nodeproof_is is not None


def _part_of(whole: Any, function: Any, arguments: Any, keywords: Any) -> _Part:
    """What a slice or a selection of a tensor is a part of."""
    own = whole._nodeproof_part or _Part(whole, ())
    return _Part(own.of, (*own.steps, lambda view: function(view, *arguments[1:], **keywords)))


def _is_off(function: Any, arguments: Any) -> bool:
    """Whether an operation that may draw random numbers does not."""
    training = {"native_dropout": 2, "dropout": 2, "rrelu_with_noise": 4, "rrelu_with_noise_functional": 4}.get(
        _name(function)[0]
    )
    return training is not None and (len(arguments) <= training or arguments[training] is False)


def _blank(value: Any, device: str = "cpu") -> Any:
    """A tensor of the same shape and type."""
    torch = pytorch()
    if value.layout is not torch.strided:
        return torch.empty(value.shape, dtype=value.dtype, device=device)
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)


def _writes(function: Any) -> list[int]:
    """Places of the arguments that an operation changes."""
    written = enumerate(argument.alias_info for argument in function._schema.arguments)
    return [place for place, alias in written if alias is not None and alias.is_write]


def _same_layout(target: Any, recorded: Operation) -> bool:
    """Whether what an operation gave looks like a tensor."""
    return isinstance(recorded.result, Result) and recorded.result.layout == Layout.of(target)


def _place(value: Any) -> int:
    """Where PyTorch keeps the storage of a tensor."""
    torch = pytorch()
    with torch._C.DisableTorchFunctionSubclass():
        return int(value.untyped_storage()._cdata)


def _unset(value: Any) -> None:
    """Gives a tensor numbers that nobody takes for results."""
    torch = pytorch()
    if value.is_floating_point() or value.is_complex():
        value.fill_(float("nan"))
    else:
        value.fill_(True if value.dtype is torch.bool else torch.iinfo(value.dtype).max)


@cache
def _is_of_pytorch(function: Any) -> bool:
    """Whether PyTorch itself has this operation; anybody may add others, under the same names, too."""
    torch = pytorch()
    described = torch._C._dispatch_dump(function.name()).partition("debug:")[2].partition("\n")[0]
    return "RegisterSchema.cpp" in described


def _name(function: Any) -> tuple[str, bool]:
    """The name of an operation, and whether it changes its first argument."""
    space, _, name = function._schema.name.partition("::")
    in_place = name.endswith("_") and not name.endswith("__")
    return (name.removesuffix("_") if in_place else name) if space == "aten" else f"{space}::{name}", in_place


def _kind(module: Any) -> str:
    """The class of a module, without what parametrisations make of it."""
    from torch.nn.utils.parametrize import type_before_parametrizations

    return str(type_before_parametrizations(module).__name__)


def _followed_class(trace: Trace) -> Any:
    """The class of tensors that one trace follows."""
    torch = pytorch()

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
            #: What it is a part of, if it is one.
            self._nodeproof_part: _Part | None = None
            self._nodeproof_place = _place(self)

        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            try:
                return trace.call(function, args, kwargs or {})
            except BaseException as error:
                trace.fail(error)
                raise

        @classmethod
        def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return trace.performed(function, args, kwargs)

        def __repr__(self, **options: Any) -> str:
            return repr(trace._departing(self, "text"))

        def __format__(self, form: str) -> str:
            return format(trace._departing(self, "text"), form)

        def __reduce_ex__(self, protocol: Any) -> Any:
            return trace._departing(self, "pickle").__reduce_ex__(protocol)

        def __deepcopy__(self, memory: Any) -> Any:
            return trace._departing(self, "copy").__deepcopy__(memory)

    return Followed
