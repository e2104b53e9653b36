"""Which operations a module performs on numbers, and what their results look like but for the numbers.

A run that is followed goes along with such a record: shapes, strides and who shares memory with whom are taken from it, so
that they are what they are where values are at hand, and a module that does something else when it is followed is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .._optional import pytorch


@dataclass(frozen=True)
class Layout:
    """What a tensor looks like."""

    shape: tuple[int, ...]
    #: `None` for sparse ones.
    stride: tuple[int, ...] | None
    offset: int
    dtype: Any
    layout: Any

    @classmethod
    def of(cls, value: Any) -> Layout:
        """What a tensor looks like."""
        torch = pytorch()
        is_strided = value.layout is torch.strided
        stride, offset = (value.stride(), value.storage_offset()) if is_strided else (None, 0)
        return cls(tuple(value.shape), stride, offset, value.dtype, value.layout)

    def without_values(self) -> Any:
        """A tensor that looks like this one and has no values."""
        torch = pytorch()
        if self.stride is None:
            return torch.empty(self.shape, dtype=self.dtype, device="meta")
        reach = sum((size - 1) * step for size, step in zip(self.shape, self.stride, strict=True)) + 1
        whole = torch.empty(self.offset + max(reach, 0), dtype=self.dtype, device="meta")
        return whole.as_strided(self.shape, self.stride, self.offset)


@dataclass(frozen=True)
class Result:
    """A tensor that an operation gave."""

    layout: Layout
    #: With which of its arguments, and of the results before this one, it shares memory.
    shares: tuple[int, ...]


@dataclass(frozen=True)
class Operation:
    """An operation that was performed."""

    function: Any
    #: Its arguments, with `Layout` in place of tensors.
    given: Any
    #: What it gave, with `Result` in place of tensors.
    result: Any = None
    #: What it raised instead.
    error: BaseException | None = None


@dataclass
class Record:
    """The operations of one run on numbers, in their order."""

    operations: list[Operation] = field(default_factory=list)

    def watching(self) -> Any:
        """A context in which operations are recorded."""
        return mode(self._recorded)

    def _recorded(self, function: Any, arguments: Any, keywords: dict[str, Any]) -> Any:
        torch = pytorch()
        given = looks(arguments, keywords)
        try:
            output = function(*arguments, **keywords)
        except BaseException as error:
            self.operations.append(Operation(function, given, error=error))
            raise
        known = [_memory(value) for value in flat((arguments, keywords)) if isinstance(value, torch.Tensor)]

        def result(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            begin, end = _memory(value)
            shares = tuple(place for place, other in enumerate(known) if begin < other[1] and other[0] < end)
            known.append((begin, end))
            return Result(Layout.of(value), shares)

        self.operations.append(Operation(function, given, mapped(result, output)))
        return output


def looks(arguments: Any, keywords: dict[str, Any]) -> Any:
    """Arguments as they can be compared with those of another run."""
    torch = pytorch()
    return mapped(lambda v: Layout.of(v) if isinstance(v, torch.Tensor) else repr(v), [list(arguments), keywords])


def _memory(value: Any) -> tuple[int, int]:
    """Where the memory of a tensor begins and ends."""
    torch = pytorch()
    if value.layout is not torch.strided:
        return 0, 0
    with torch._C.DisableTorchFunctionSubclass():
        storage = value.untyped_storage()
        try:
            return storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        except RuntimeError:  # of tensors that are made of others
            return 0, 0


def mode(perform: Callable[[Any, Any, dict[str, Any]], Any]) -> Any:
    """A context in which `perform` performs every operation of this thread, made up ones by their parts."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            with self:
                made = function.decompose(*args, **(kwargs or {}))
            return perform(function, args, kwargs or {}) if made is NotImplemented else made

    return Mode()


def mapped(change: Callable[[Any], Any], given: Any) -> Any:
    """The same lists, tuples and dictionaries with other leaves."""
    if isinstance(given, (list, tuple)):
        parts = [mapped(change, part) for part in given]
        return type(given)(*parts) if hasattr(given, "_fields") else parts if isinstance(given, list) else tuple(parts)
    if isinstance(given, dict):
        return {key: mapped(change, part) for key, part in given.items()}
    return change(given)


def flat(given: Any) -> Iterator[Any]:
    """The leaves of lists, tuples and dictionaries."""
    if isinstance(given, (list, tuple)):
        for part in given:
            yield from flat(part)
    elif isinstance(given, dict):
        yield from flat(list(given.values()))
    else:
        yield given
