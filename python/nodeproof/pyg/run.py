"""Runs a copy of a module: followed, or on numbers."""

from __future__ import annotations

import copy
import hashlib
import inspect
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from .._optional import optional
from ..errors import InputError, NodeproofError, VerificationError
from .convert import float_type
from .expression import Expression
from .trace import Trace, is_of_a_trace

#: Calls a module: `forward(module, data)`, `data` being a copy with other attributes.
Forward = Callable[[Any, Any], Any]
#: What a user could write where a module is called in another way.
_EXAMPLE = "give forward=lambda module, data: module(data.x, data.edge_index)[0], or whatever returns the logits"
#: Where modules of PyTorch Geometric keep propagations of the edges of their first run.
_KEPT_OF_EDGES = ("_cached_edge_index", "_cached_adj_t")
#: How deep objects are looked into.
_DEPTH = 8


class NotRunnableError(InputError):
    """The module itself cannot be run on the data."""


@dataclass(frozen=True)
class Subject:
    """A copy of a module for evaluation on the processor, in one precision, and what it is run on."""

    module: Any
    #: All but the attributes.
    data: Any
    forward: Forward | None
    #: The type of its numbers.
    dtype: Any

    @classmethod
    def of(cls, module: Any, data: Any, forward: Forward | None, dtype: Any = None) -> Subject:
        """A copy in the module's own precision, or in another one."""
        copied = _copied(module, dtype)
        _check_parameters(copied)
        others = copy.copy(data)
        others.x = None
        return cls(copied, others.clone().cpu(), forward, dtype or float_type(copied))

    def follow(self, nodes: int, attributes: int) -> tuple[Expression, str]:
        """What the module computes from any attributes, nodes × classes, and what stands at its end."""
        torch = optional("torch", "pyg", "from_pyg()")
        trace = Trace()
        before = _state(self.module)
        output = self._followed(trace, trace.follow(nodes, attributes, self.dtype))
        trace.check_all()
        self._forget()
        _check_state(before, _state(self.module))
        _check_logits(output, nodes)
        if isinstance(output, torch.Tensor) and not trace.is_followed(output):
            raise VerificationError("the module returns something that was not computed from data.x by PyTorch")
        logits, end = trace.result(output)
        if logits.sides != "rc":
            raise VerificationError("the module returns units × nodes, or a mixture; it must return nodes × classes")
        return logits, end

    def _followed(self, trace: Trace, x: Any) -> Any:
        """What the module returns for attributes that are followed."""
        torch = optional("torch", "pyg", "from_pyg()")
        self._forget()
        given = self._given(x)
        try:
            with torch.no_grad(), _uncompiled(), trace.watching(self.module):
                return (self.forward or _forward)(self.module, given)
        except NodeproofError:
            trace.check()
            raise
        except Exception as error:
            trace.check()
            raise NotRunnableError(_unrunnable(error)) from error

    def logits(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """What the module returns for the numbers `x` when nobody watches."""
        torch = optional("torch", "pyg", "from_pyg()")
        self._forget()
        given = self._given(torch.tensor(x, dtype=self.dtype))
        before = _state(self.module)
        try:
            with torch.no_grad(), _uncompiled():
                output = (self.forward or _forward)(self.module, given)
        except NodeproofError:
            raise
        except Exception as error:
            raise NotRunnableError(_unrunnable(error)) from error
        _check_logits(output, len(x))
        self._forget()
        _check_state(before, _state(self.module))
        return np.asarray(output.detach().double().numpy())

    def _forget(self) -> None:
        """Empties caches of what was computed from attributes, as SGConv(cached=True) has one."""
        for layer in self.module.modules():
            for name in ("_cached_x", "_cached_h"):
                if getattr(layer, name, None) is not None:
                    setattr(layer, name, None)

    def _given(self, x: Any) -> Any:
        """The data with these attributes, and floating-point numbers of the right type."""
        torch = optional("torch", "pyg", "from_pyg()")
        given = self.data.clone()
        given.x = x
        for name in ("edge_weight", "edge_attr", "adj_t"):
            value = getattr(given, name, None)
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                setattr(given, name, value.to(self.dtype))
        return given


def _unrunnable(error: Exception) -> str:
    return f"the module cannot be run on the data: {type(error).__name__}: {error}"


def _check_logits(output: Any, nodes: int) -> None:
    """Refuses what cannot be logits."""
    torch = optional("torch", "pyg", "from_pyg()")
    shape = tuple(output.shape) if isinstance(output, torch.Tensor) else f"a {type(output).__name__}"
    if not isinstance(output, torch.Tensor) or output.dim() != 2 or output.shape[0] != nodes:
        raise InputError(f"the module returns {shape}, not logits of shape nodes × classes; {_EXAMPLE}")


def _state(module: Any) -> dict[str, str]:
    """Hashes of what a module and its parts have as attributes, by their paths, as far as one can look into these."""
    return {
        f"{path}.{name}" if path else name: _hash(value)
        for path, part in module.named_modules()
        for values in (vars(part), part._parameters, part._buffers)
        for name, value in values.items()
        if name not in ("_parameters", "_buffers", "_modules")
    }


def _check_state(before: dict[str, str], after: dict[str, str]) -> None:
    """Refuses modules that change when they are run."""
    for name in before | after:
        is_first = name.endswith(_KEPT_OF_EDGES) and before.get(name) == _hash(None)
        if before.get(name) != after.get(name) and not is_first:
            raise VerificationError(
                f"the module changes its own {name!r} when it is run, so that the next run may compute something else; "
                "certificates need a module that does the same every time"
            )


def _hash(value: Any) -> str:
    """A hash of tensors, arrays, numbers and texts, and of objects and containers of these; of others just the class."""
    torch = optional("torch", "pyg", "from_pyg()")
    digest = hashlib.sha256()
    seen: set[int] = set()

    def add(value: Any, depth: int) -> None:
        digest.update(type(value).__name__.encode())
        if isinstance(value, torch.Tensor) and not is_of_a_trace(value):
            digest.update(f"{value.dtype} {tuple(value.shape)}".encode())
            for part in _strided(value.detach()):
                digest.update(part.resolve_conj().resolve_neg().reshape(-1).view(torch.uint8).numpy())
        elif isinstance(value, np.ndarray):
            digest.update(f"{value.dtype} {value.shape}".encode())
            digest.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
            digest.update(repr(value).encode())
        elif id(value) in seen:
            return
        elif depth and isinstance(value, Mapping):
            for key, part in value.items():
                add(key, 0)
                add(part, depth - 1)
        elif depth and isinstance(value, (Sequence, Set, deque)):
            for part in value:
                add(part, depth - 1)
        elif depth and not _is_no_state(value):
            seen.add(id(value))
            add(_inside(value), depth - 1)

    add(value, _DEPTH)
    return digest.hexdigest()


def _strided(value: Any) -> list[Any]:
    """A tensor, or the parts of a sparse one."""
    torch = optional("torch", "pyg", "from_pyg()")
    if value.layout is torch.strided:
        return [value]
    entries = value.to_sparse_coo().coalesce()
    return [entries.indices(), entries.values()]


def _inside(value: Any) -> Any:
    """What an object would be made of anew, as far as it tells."""
    try:
        _, *parts = value.__reduce_ex__(2)
        return [list(part) if isinstance(part, Iterator) else part for part in parts]
    except Exception:  # of threads, files and the like
        return getattr(value, "__dict__", None) or repr(value)


def _is_no_state(value: Any) -> bool:
    """Whether it is code, a module, whose parts are looked at by themselves, or an object of PyTorch's own."""
    torch = optional("torch", "pyg", "from_pyg()")
    of_torch = type(value).__module__.partition(".")[0] in ("torch", "torch_geometric")
    return of_torch or isinstance(value, (type, ModuleType, torch.nn.Module)) or callable(value)


def _copied(module: Any, dtype: Any) -> Any:
    try:
        compiled = type(module).__name__ == "OptimizedModule" and type(module).__module__.startswith("torch.")
        copied = copy.deepcopy(module._orig_mod if compiled else module)
    except Exception as error:
        raise InputError(
            f"the module cannot be copied ({error}); nodeproof runs a copy so as not to change yours: remove old weight norms "
            "and prunings first (torch.nn.utils.remove_weight_norm, torch.nn.utils.prune.remove)"
        ) from error
    copied = copied.cpu().eval()
    if dtype is not None:
        copied = copied.to(dtype)
    for layer in copied.modules():
        cache = getattr(layer, "_cached_edge_index", None)
        if cache is not None:
            layer._cached_edge_index = tuple(None if part is None else part.cpu() for part in cache)
    return copied


def _check_parameters(module: Any) -> None:
    """Refuses parameters that are not there yet, and such that are no numbers."""
    torch = optional("torch", "pyg", "from_pyg()")
    for name, parameter in module.named_parameters():
        if isinstance(parameter, torch.nn.parameter.UninitializedParameter):
            raise InputError(f"parameter {name!r} has no values yet; call the module once, and train it")
        if not bool(torch.isfinite(parameter).all()):
            raise InputError(f"parameter {name!r} has a value that is not finite; did its training diverge?")


def _uncompiled() -> Any:
    """A context in which what `torch.compile` made runs as it was written."""
    torch = optional("torch", "pyg", "from_pyg()")
    return torch.compiler.set_stance("force_eager") if hasattr(torch.compiler, "set_stance") else nullcontext()


def _forward(module: Any, data: Any) -> Any:
    """Calls a module whose `forward` has arguments of the usual names."""
    torch = optional("torch", "pyg", "from_pyg()")
    if isinstance(module, torch.jit.ScriptModule):
        raise VerificationError("a scripted module hides its layers; give the module that it was made of")
    parameters = list(inspect.signature(module.forward).parameters.values())
    known = {name: getattr(data, name, None) for name in ("x", "edge_index", "edge_weight", "edge_attr", "adj_t")}
    known |= {name: known["adj_t"] for name in ("adj", "edge_index") if known.get(name) is None}
    if all(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return module(**{name: value for name, value in known.items() if value is not None})
    if any(parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY) for parameter in parameters):
        weight = () if known["edge_weight"] is None else (known["edge_weight"],)
        return module(*_positional(parameters, known["x"], known["edge_index"], *weight))
    needed = [parameter for parameter in parameters if parameter.default is parameter.empty]
    needed = [parameter for parameter in needed if parameter.kind is not parameter.VAR_KEYWORD]
    if len(needed) == 1 and needed[0].name not in known:
        return module(known["x"] if needed[0].name in _ATTRIBUTES else data)
    arguments = {}
    for parameter in parameters:
        if known.get(parameter.name) is not None:
            arguments[parameter.name] = known[parameter.name]
        elif parameter in needed:
            raise InputError(
                f"the module's forward asks for {parameter.name!r}; nodeproof gives x, edge_index and, if there are any, "
                "edge_weight, edge_attr and adj_t: give forward=lambda module, data: module(data.x, data.edge_index, ...)"
            )
    return module(**arguments)


#: How modules without a graph call what they are given.
_ATTRIBUTES = {"input", "inputs", "features", "h"}


def _positional(parameters: list[inspect.Parameter], *given: Any) -> tuple[Any, ...]:
    """As many arguments as a signature has room for."""
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return given
    return given[: len(parameters)]
