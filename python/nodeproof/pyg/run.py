"""Runs a module, and watches what its layers are given and what they give back."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .._optional import optional
from ..errors import InputError, NodeproofError, VerificationError
from .convert import float_type
from .layers import Call, check_call, check_dense, check_kind, propagation_of
from .trace import Label, Trace

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
        return cls(copied, data.clone().cpu(), forward, dtype or float_type(copied))

    def run(self, x: npt.NDArray[np.bool_]) -> tuple[list[Call], Any]:
        """Runs the module on `x`, and returns the calls of its layers and its output."""
        torch = optional("torch", "pyg", "from_pyg()")
        trace, calls = Trace(_suspects(self.module)), list[Call]()
        given = self._given(x)
        given.x = trace.follow(given.x)
        try:
            with torch.no_grad(), _uncompiled(), _watched(self.module, calls, trace):
                output = (self.forward or _forward)(self.module, given)
        except NodeproofError:
            trace.check()
            raise
        except Exception as error:
            trace.check()
            raise NotRunnableError(f"the module cannot be run on the data: {type(error).__name__}: {error}") from error
        trace.check_all()
        _check_calls(calls, len(x))
        shape = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
        if not isinstance(output, torch.Tensor) or output.dim() != 2 or output.shape[0] != len(x):
            raise InputError(f"the module returns {shape}, not logits of shape nodes × classes; give forward=")
        end, output = trace.label(output), trace.value(output)
        _check_flow(calls, end)
        unwatched = self.logits(x)
        if type(unwatched) is not torch.Tensor or not torch.equal(unwatched, output):
            raise VerificationError(
                "the module computes something else when it is run once more, without being watched"
            )
        _check_between(self.module, calls, self._given(x).x)
        _check_end(self.module, calls[-1], output, exactly=end is None or end.kind != "end")
        return calls, output

    def logits(self, x: npt.NDArray[Any]) -> Any:
        """What the module returns for `x` when nobody watches."""
        torch = optional("torch", "pyg", "from_pyg()")
        with torch.no_grad(), _uncompiled():
            return (self.forward or _forward)(self.module, self._given(x))

    def _given(self, x: npt.NDArray[Any]) -> Any:
        """The data with these attributes, and floating-point numbers of the right type."""
        torch = optional("torch", "pyg", "from_pyg()")
        given = self.data.clone()
        given.x = torch.tensor(x).to(self.dtype)
        for name in ("edge_weight", "edge_attr"):
            value = getattr(given, name, None)
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                setattr(given, name, value.to(self.dtype))
        return given


def _check_calls(calls: list[Call], nodes: int) -> None:
    """Refuses layers that are not of the form `P x W + b`, and numbers that are none."""
    if not calls:
        raise VerificationError(
            "the module has no layer that passes messages; nodeproof knows GCNConv, SGConv and SAGEConv, and sees them only "
            "where PyTorch does: in a list, use torch.nn.ModuleList"
        )
    for call in calls:
        check_kind(call.name, call.layer)
        check_call(call)
        propagation_of(call, nodes)
        if not bool(call.output.isfinite().all()):
            raise VerificationError(
                f"layer {call.name!r} computes values that are not finite; did its training diverge?"
            )


def _check_flow(calls: list[Call], end: Label | None) -> None:
    """Refuses layers that do not follow one another, each behind a ReLU of the one before."""
    for place, call in enumerate(calls):
        if place == 0 and call.label != Label("attributes"):
            raise VerificationError(f"layer {call.name!r} is not given data.x as it is")
        if place > 0 and call.label == Label("output", place - 1):
            raise VerificationError(f"between layer {calls[place - 1].name!r} and layer {call.name!r} there is no ReLU")
        if place > 0 and call.label != Label("hidden", place - 1):
            raise VerificationError(
                f"layer {call.name!r} is given something else than the ReLU of what layer {calls[place - 1].name!r} gave"
            )
    last = len(calls) - 1
    if end is None:
        raise VerificationError("the module returns something that was not computed from data.x by PyTorch")
    if end not in (Label("output", last), Label("end", last)):
        raise VerificationError(f"the module returns something else than what layer {calls[-1].name!r} gave")


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


@contextmanager
def _watched(module: Any, calls: list[Call], trace: Trace) -> Iterator[None]:
    """Records the calls of every layer that passes messages."""
    from torch_geometric.nn import MessagePassing

    handles = []
    stack: list[Call] = []

    def before(name: str) -> Any:
        def hook(layer: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
            x: Any = arguments[0] if arguments else keywords.get("x")
            try:
                check_kind(name, layer)
                check_dense(name, [*arguments[1:], *keywords.values()])
            except VerificationError as error:
                raise trace.note(error) from None
            probes = trace.enter(name, x, getattr(layer, "K", 1))
            call = Call(name, layer, _kept(trace, x), trace.label(x), probes, [])
            calls.append(call)
            stack.append(call)

        return hook

    def after(layer: Any, arguments: Any, keywords: Any, output: Any) -> None:
        call = stack.pop()
        call.output, call.probes_output = _kept(trace, output), trace.leave(output)

    def sent(layer: Any, arguments: tuple[Any, ...]) -> None:
        if not stack:
            raise trace.refuse(
                "has a layer pass messages without calling it; write layer(x, …), not layer.forward(x, …)"
            )
        edges, weight = arguments[0], arguments[-1].get("edge_weight")
        if trace.label(edges) or trace.label(weight):
            raise trace.refuse(
                "computes edges or weights that depend on the attributes; certificates need some that do not"
            )
        stack[-1].edges.append((trace.value(edges), trace.value(weight)))

    for name, layer in module.named_modules():
        if isinstance(layer, MessagePassing):
            handles.append(layer.register_forward_pre_hook(before(name or "module"), with_kwargs=True))
            handles.append(layer.register_forward_hook(after, with_kwargs=True))
            handles.append(layer.register_propagate_forward_pre_hook(sent))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _uncompiled() -> Any:
    """A context in which what `torch.compile` made runs as it was written."""
    torch = optional("torch", "pyg", "from_pyg()")
    return torch.compiler.set_stance("force_eager") if hasattr(torch.compiler, "set_stance") else nullcontext()


def _kept(trace: Trace, value: Any) -> Any:
    value = trace.value(value)
    return value.clone() if hasattr(value, "clone") else value


def _forward(module: Any, data: Any) -> Any:
    """Calls a module whose `forward` has arguments of the usual names."""
    torch = optional("torch", "pyg", "from_pyg()")
    if isinstance(module, torch.jit.ScriptModule):
        raise VerificationError("a scripted module hides its layers; give the module that it was made of")
    parameters = list(inspect.signature(module.forward).parameters.values())
    known = {name: getattr(data, name, None) for name in ("x", "edge_index", "edge_weight", "edge_attr")}
    if all(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return module(**{name: value for name, value in known.items() if value is not None})
    if any(parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY) for parameter in parameters):
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
                f"the module's forward asks for {parameter.name!r}; nodeproof gives x, edge_index and, if there are any, "
                "edge_weight and edge_attr: give forward=lambda module, data: module(...)"
            )
    return module(**arguments)


def _check_between(module: Any, calls: list[Call], x: Any) -> None:
    """Refuses whatever happens before and between the layers, other than ReLUs: to the bit."""
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


def _check_end(module: Any, call: Call, output: Any, exactly: bool) -> None:
    """Refuses whatever happens behind the last layer: to the bit, or, behind a `log_softmax`, to its rounding."""
    torch = optional("torch", "pyg", "from_pyg()")
    last = call.output
    same = last.shape == output.shape
    if same and exactly:
        same = torch.equal(last, output)
    elif same:
        shift = output - last
        largest = torch.maximum(last.abs(), output.abs()).max(dim=1, keepdim=True).values.clamp(min=1.0)
        same = bool(((shift - shift[:, :1]).abs() <= 64 * torch.finfo(output.dtype).eps * largest).all())
    if not same:
        raise VerificationError(
            f"behind layer {call.name!r} the module does something else than log_softmax{_suspects(module)}"
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
    return (
        "; look for other activations, for F.dropout without training=self.training, and for layer.forward(x, …) in place of "
        "layer(x, …)"
    )
