"""What a module computes, operation by operation: agreement on some inputs is no proof, so nothing else may happen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._optional import optional
from ..errors import VerificationError

#: Operations that leave values as they are.
_HARMLESS = {"aten.clone", "aten.detach", "aten.alias", "aten.view", "aten._unsafe_view", "aten.lift_fresh"}
#: Ways for values to leave PyTorch, and so to influence what nobody can trace.
_DEPARTURES = {"numpy", "__array__", "__dlpack__", "tolist", "item"}
_RELU = {"aten.relu", "aten.relu_"}
_LOG_SOFTMAX = {"aten._log_softmax"}


class Trace:
    """The operations on values that depend on the attributes, outside the layers."""

    def __init__(self) -> None:
        #: Operations before the first layer, between layers, and behind the last.
        self._between: list[list[str]] = [[]]
        self._inside = 0
        #: Storages of values that depend on the attributes; kept, so that no address is used again.
        self._dependent: dict[int, Any] = {}

    def depends(self, value: Any) -> bool:
        """Whether a value depends on the attributes."""
        torch = optional("torch", "pyg", "from_pyg()")
        if isinstance(value, (list, tuple)):
            return any(self.depends(part) for part in value)
        if isinstance(value, dict):
            return any(self.depends(part) for part in value.values())
        return isinstance(value, torch.Tensor) and _address(value) in self._dependent

    def mark(self, value: Any) -> None:
        """Notes that a value depends on the attributes."""
        torch = optional("torch", "pyg", "from_pyg()")
        if isinstance(value, (list, tuple)):
            for part in value:
                self.mark(part)
        elif isinstance(value, torch.Tensor) and value.layout == torch.strided:
            self._dependent[_address(value)] = value

    def operation(self, name: str, arguments: Any, keywords: Any, output: Any) -> None:
        """Takes note of one operation."""
        if not (self.depends(arguments) or self.depends(keywords)):
            return
        self.mark(output)
        if self._inside == 0:
            self._between[-1].append(name)

    def departure(self, name: str, arguments: Any) -> None:
        """Refuses values that leave PyTorch."""
        if name in _DEPARTURES and self.depends(arguments):
            raise VerificationError(
                f"the module takes values that depend on the attributes out of PyTorch ({name}), where nobody can tell what "
                "becomes of them"
            )

    def enter(self, name: str, x: Any) -> None:
        """A layer is called."""
        if self._inside == 0 and not self.depends(x):
            raise VerificationError(f"layer {name!r} is given something that was not computed from data.x by PyTorch")
        self._inside += 1

    def leave(self, output: Any) -> None:
        """A layer has ended."""
        self._inside -= 1
        self.mark(output)
        if self._inside == 0:
            self._between.append([])

    def check_edges(self, name: str, *given: Any) -> None:
        """Refuses edges and weights that depend on the attributes."""
        if self.depends(list(given)):
            raise VerificationError(
                f"layer {name!r} is given edges or weights that depend on the attributes; certificates need a propagation that "
                "does not"
            )

    def check(self, layers: list[str], output: Any) -> None:
        """Refuses every operation but ReLUs between layers and a `log_softmax` behind the last."""
        last = len(self._between) - 1
        for place, operations in enumerate(self._between):
            meant = [operation for operation in operations if operation not in _HARMLESS]
            allowed = set() if place == 0 else _LOG_SOFTMAX if place == last else _RELU
            odd = [operation for operation in meant if operation not in allowed]
            where = _place(layers, place)
            if odd:
                raise VerificationError(
                    f"{where} the module computes {odd[0].removeprefix('aten.')}; nodeproof certifies networks with ReLUs "
                    "between layers, logits or log_softmax at the end, and nothing else"
                )
            if 0 < place < last and not meant:
                raise VerificationError(f"{where} there is no ReLU")
        if not self.depends(output):
            raise VerificationError("the module returns something that was not computed from data.x by PyTorch")


def _place(layers: list[str], place: int) -> str:
    if place == 0:
        return f"before layer {layers[0]!r}"
    if place == len(layers):
        return f"behind layer {layers[-1]!r}"
    return f"between layer {layers[place - 1]!r} and layer {layers[place]!r}"


def _address(value: Any) -> int:
    try:
        return int(value.untyped_storage().data_ptr()) or id(value)
    except (NotImplementedError, RuntimeError):
        return id(value)


@contextmanager
def tracing(x: Any) -> Iterator[Trace]:
    """Traces what is computed from `x`."""
    optional("torch", "pyg", "from_pyg()")
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    trace = Trace()
    trace.mark(x)

    class Recorder(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            output = function(*args, **(kwargs or {}))
            trace.operation(str(function).rsplit(".", 1)[0], args, kwargs or {}, output)
            return output

    class Guard(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            trace.departure(getattr(function, "__name__", ""), args)
            return function(*args, **(kwargs or {}))

    with Guard(), Recorder():
        yield trace
