"""Runs a module, and watches what its layers are given and what they give back."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .._optional import optional
from ..errors import InputError, NodeproofError, VerificationError
from .convert import float_type
from .layers import Call, check_layer, propagation_of
from .trace import Trace, tracing

#: Calls a module: `forward(module, data)`, `data` being a copy with other attributes.
Forward = Callable[[Any, Any], Any]


class NotRunnableError(InputError):
    """The module itself cannot be run on the data."""


@dataclass(frozen=True)
class Subject:
    """A copy of a module for evaluation on the processor, in one precision, and what it is run on."""

    module: Any
    data: Any
    forward: Forward | None
    #: The type of its numbers.
    dtype: Any

    @classmethod
    def of(cls, module: Any, data: Any, forward: Forward | None, dtype: Any = None) -> Subject:
        """A copy in the module's own precision, or in another one."""
        copied = _copied(module, dtype)
        _check_parameters(copied)
        return cls(copied, copy.copy(data).cpu(), forward, dtype or float_type(copied))

    def run(self, x: npt.NDArray[np.bool_]) -> tuple[list[Call], Any]:
        """Runs the module on `x`, and returns the calls of its layers and its output."""
        torch = optional("torch", "pyg", "from_pyg()")
        given = copy.copy(self.data)
        given.x = torch.tensor(x).to(self.dtype)
        for name in ("edge_weight", "edge_attr"):
            value = getattr(given, name, None)
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                setattr(given, name, value.to(self.dtype))
        calls: list[Call] = []
        try:
            with torch.no_grad(), tracing(given.x) as trace, _watched(self.module, calls, trace):
                output = (self.forward or _forward)(self.module, given)
        except NodeproofError:
            raise
        except Exception as error:
            raise NotRunnableError(f"the module cannot be run on the data: {type(error).__name__}: {error}") from error
        if not calls:
            raise VerificationError(
                "the module has no layer that passes messages; nodeproof knows GCNConv, SGConv and SAGEConv"
            )
        for call in calls:
            check_layer(call)
            propagation_of(call, len(x))
        if not isinstance(output, torch.Tensor) or output.dim() != 2 or output.shape[0] != x.shape[0]:
            shape = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
            raise InputError(f"the module returns {shape}, not logits of shape nodes × classes; give forward=")
        _check_between(self.module, calls, given.x, output)
        trace.check([call.name for call in calls], output)
        return calls, output


def _copied(module: Any, dtype: Any) -> Any:
    try:
        copied = copy.deepcopy(module)
    except Exception as error:
        raise InputError(
            f"the module cannot be copied ({error}); nodeproof runs a copy so as not to change yours"
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


@contextmanager
def _watched(module: Any, calls: list[Call], trace: Trace) -> Iterator[None]:
    """Has every layer that passes messages tell of its calls."""
    from torch_geometric.nn import MessagePassing

    handles = []
    stack: list[Call] = []

    def before(name: str) -> Any:
        def hook(layer: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
            x: Any = arguments[0] if arguments else keywords.get("x")
            trace.enter(name, x)
            call = Call(name, layer, x.clone() if hasattr(x, "clone") else x, [])
            calls.append(call)
            stack.append(call)

        return hook

    def after(layer: Any, arguments: Any, keywords: Any, output: Any) -> None:
        stack.pop().output = output.clone() if hasattr(output, "clone") else output
        trace.leave(output)

    def sent(layer: Any, arguments: tuple[Any, ...]) -> None:
        keywords = arguments[-1]
        edges, weight = arguments[0], keywords.get("edge_weight")
        trace.check_edges(stack[-1].name, edges, weight)
        stack[-1].edges.append((edges, weight))

    for name, layer in module.named_modules():
        if isinstance(layer, MessagePassing):
            _check_unchanged(name, layer)
            handles.append(layer.register_forward_pre_hook(before(name or "module"), with_kwargs=True))
            handles.append(layer.register_forward_hook(after, with_kwargs=True))
            handles.append(layer.register_propagate_forward_pre_hook(sent))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _check_unchanged(name: str, layer: Any) -> None:
    """Refuses layers that somebody has put something else into."""
    if any(_is_foreign(hook) for hook in _global_hooks()):
        raise VerificationError(
            "PyTorch has hooks for all modules, which may change what they compute; remove them first"
        )
    for part in layer.modules():
        if any(_is_foreign(hook) for hook in _hooks(part)):
            raise VerificationError(
                f"layer {name!r} has hooks, so that nobody knows what it computes; remove them first"
            )
        for method in vars(part):
            if inspect.isfunction(getattr(type(part), method, None)):
                raise VerificationError(
                    f"layer {name!r} has a {method!r} of its own; nodeproof knows the layer as PyTorch Geometric has it"
                )


def _hooks(part: Any) -> list[Any]:
    """Whatever is called when a layer, or a part of it, computes something."""
    kinds = [hooks for kind, hooks in vars(part).items() if "forward" in kind and kind.endswith("_hooks")]
    return [hook for hooks in kinds for hook in hooks.values()]


def _global_hooks() -> list[Any]:
    from torch.nn.modules import module

    return [*module._global_forward_hooks.values(), *module._global_forward_pre_hooks.values()]


def _is_foreign(hook: Any) -> bool:
    """Whether a hook is not one of those that the libraries themselves use, for lazy layers and normalised weights."""
    home = str(getattr(hook, "__module__", None) or type(hook).__module__)
    return home.partition(".")[0] not in ("torch", "torch_geometric")


def _forward(module: Any, data: Any) -> Any:
    """Calls a module whose `forward` has arguments of the usual names."""
    parameters = list(inspect.signature(module.forward).parameters.values())
    known = {name: getattr(data, name, None) for name in ("x", "edge_index", "edge_weight", "edge_attr")}
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        weight = () if known["edge_weight"] is None else (known["edge_weight"],)
        return module(known["x"], known["edge_index"], *weight)
    needed = [parameter for parameter in parameters if parameter.default is parameter.empty]
    needed = [parameter for parameter in needed if parameter.kind is not parameter.VAR_KEYWORD]
    if len(needed) == 1 and needed[0].name not in known:
        return module(data)
    arguments = {}
    for parameter in parameters:
        if known.get(parameter.name) is not None:
            arguments[parameter.name] = known[parameter.name]
        elif parameter in needed:
            raise InputError(
                f"the module's forward asks for {parameter.name!r}, which the data do not have; give "
                "forward=lambda module, data: module(...)"
            )
    return module(**arguments)


def _check_between(module: Any, calls: list[Call], x: Any, output: Any) -> None:
    """Refuses whatever happens before, between and behind the layers, other than ReLUs and a `log_softmax`: to the bit."""
    torch = optional("torch", "pyg", "from_pyg()")
    if not torch.equal(calls[0].x, x):
        raise VerificationError(
            f"layer {calls[0].name!r} is not given data.x as it is, so that something before it changes the attributes"
            + _suspects(module)
        )
    for one, next_ in pairwise(calls):
        if one.output.shape != next_.x.shape or not torch.equal(one.output.relu(), next_.x):
            raise VerificationError(
                f"between layer {one.name!r} and layer {next_.name!r} the module does something else than a ReLU"
                + _suspects(module)
            )
    last = calls[-1].output
    if last.shape != output.shape:
        raise VerificationError(f"something behind layer {calls[-1].name!r} changes its output{_suspects(module)}")
    shift = output - last
    spread = float((shift - shift[:, :1]).abs().max()) if shift.numel() else 0.0
    if not spread <= 64 * torch.finfo(output.dtype).eps * max(1.0, float(output.abs().max()), float(last.abs().max())):
        hint = ""
        if bool((output >= 0).all()) and torch.allclose(output.sum(1), torch.ones_like(output[:, 0]), atol=1e-4):
            hint = "; it looks like a softmax: return logits, or log_softmax"
        raise VerificationError(
            f"behind layer {calls[-1].name!r} the module does something else than log_softmax{hint}{_suspects(module)}"
        )


def _suspects(module: Any) -> str:
    """Layers that may be what is in the way."""
    torch = optional("torch", "pyg", "from_pyg()")
    from torch_geometric.nn import MessagePassing

    harmless = (torch.nn.ReLU, torch.nn.Dropout, torch.nn.Identity, torch.nn.LogSoftmax)
    inside = {id(part) for layer in module.modules() if isinstance(layer, MessagePassing) for part in layer.modules()}
    found = [
        f"{name} ({type(part).__name__})"
        for name, part in module.named_modules()
        if id(part) not in inside and not list(part.children()) and not isinstance(part, harmless) and name
    ]
    if found:
        return f"; the module has {', '.join(found[:5])}"
    return "; look for other activations, and for F.dropout without training=self.training"
