"""Runs a copy of a module: followed, or on numbers."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .._optional import pytorch
from ..errors import InputError, NodeproofError, NotRunnableError, VerificationError
from . import words
from .convert import float_type
from .expression import Expression
from .learned import current_tape
from .record import Record, flat, mapped
from .state import check_copies, computed_tensors, held_modules, state_of, state_of_chance
from .stored import is_watchable, put_back, values_of, watched
from .trace import Trace, constant_behind

#: Calls a module: `forward(module, data)`, `data` being a copy with other attributes.
Forward = Callable[[Any, Any], Any]
#: What a user could write where a module is called in another way.
_EXAMPLE = "give forward=lambda module, data: module(data.x, data.edge_index)[0], or whatever returns the logits"
#: The same where there is not one row a node.
_ALL_NODES = "return a row of logits for each node, and choose nodes afterwards: certify(..., nodes=...)"
#: Where modules of PyTorch Geometric keep propagations of the edges of their first run.
_KEPT_OF_EDGES = ("_cached_edge_index", "_cached_adj_t")
#: Where they keep attributes that were propagated.
_KEPT_OF_ATTRIBUTES = ("_cached_x", "_cached_h")


@dataclass(frozen=True)
class Subject:
    """A copy of a module for evaluation on the processor, in one precision, and what it is run on."""

    module: Any
    #: All but the attributes.
    data: Any
    forward: Forward | None
    #: The type of its numbers.
    dtype: Any
    #: Names of attributes that it stores when it is run, and that no run reads before.
    stored: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, module: Any, data: Any, forward: Forward | None, dtype: Any = None) -> Subject:
        """A copy in the module's own precision, or in another one."""
        own = copy_of(module, dtype)
        _check_parameters(own)
        others = copy.copy(data)
        others.x = None
        return cls(own, others.clone().cpu(), forward, dtype or float_type(own))

    def follow(self, nodes: int, attributes: int, record: Record, is_signed: bool) -> tuple[Expression, str]:
        """What the module computes from any attributes, nodes × classes, and what stands at its end.

        `record` is that of a run on numbers; `is_signed` says whether attributes may be negative.
        """
        torch = pytorch()
        trace = Trace(record)
        with self._unchanged() as module:
            tape = current_tape()
            if tape is not None:
                tape.begin(module)
            output = self._followed(trace, module, trace.follow(nodes, attributes, self.dtype, is_signed))
            trace.check_all()
        _check_logits(output, nodes)
        trace.check_current(output)
        if isinstance(output, torch.Tensor) and not trace.is_followed(output):
            raise VerificationError("the module returns something that was not computed from data.x by PyTorch")
        logits, end = trace.result(output)
        if logits.sides != "rc":
            raise VerificationError("the module returns units × nodes, or a mixture; it must return nodes × classes")
        return logits, end

    def _followed(self, trace: Trace, module: Any, x: Any) -> Any:
        """What the module returns for attributes that are followed."""
        given = self._given(x)
        try:
            with _for_evaluation(), watched(module, self.stored), trace.watching(module):
                return (self.forward or _forward)(module, given)
        except NodeproofError:
            trace.check()
            raise
        except Exception as error:
            trace.check()
            raise NotRunnableError(_unrunnable(error)) from error

    def logits(self, x: npt.NDArray[Any], record: Record | None = None) -> npt.NDArray[np.float64]:
        """What the module returns for the numbers `x`: when nobody watches, or with a record of what it does."""
        torch = pytorch()
        given = self._given(torch.tensor(x, dtype=self.dtype))
        # Who draws random numbers is told where when he is followed.
        with self._unchanged(given, and_chance=record is None) as module:
            if self.stored and record is None:
                # What is read nevertheless is that of other attributes then.
                self._run(module, self._given(given.x.flip(0)), self.stored)
            output = self._run(module, given, self.stored, record)
            _check_logits(output, len(x))
        return np.asarray(output.detach().double().numpy())

    def _run(self, module: Any, given: Any, stored: set[str], record: Record | None = None) -> Any:
        """What a copy of the module returns, which must store attributes of these names before it reads them."""
        try:
            with _for_evaluation(), watched(module, stored), nullcontext() if record is None else record.watching():
                return (self.forward or _forward)(module, given)
        except NodeproofError:
            raise
        except Exception as error:
            raise NotRunnableError(_unrunnable(error)) from error

    @contextmanager
    def _unchanged(self, given: Any = None, and_chance: bool = True) -> Iterator[Any]:
        """A copy of the module that has not been run before, and must be the same afterwards, but for what it keeps.

        What it stores without reading it before is found by running it once more on `given`.
        """
        module = copy.deepcopy(self.module)
        held = _keeping(held_modules(module))
        empty = [(part, name) for part in held for name in _KEPT_OF_EDGES if vars(part).get(name, 0) is None]
        before, chance = state_of(module, self.forward), state_of_chance()
        yield module
        _forget(held)
        for part, name in empty:
            if not any(constant_behind(value)[1] for value in flat(getattr(part, name))):
                setattr(part, name, None)
        after = state_of(module, self.forward)
        changed = {name for name in before | after if before.get(name) != after.get(name)} - self.stored
        if changed:
            for name in sorted(changed):
                if given is None or not is_watchable(module, name):
                    raise _changes(name)
            self._run(copy.deepcopy(self.module), given, changed | self.stored)
            self.stored.update(changed)
        if and_chance and state_of_chance() != chance:
            problem = "the module draws random numbers"
            raise VerificationError(problem + words.instead("draws random numbers"))

    def own_logits(self, module: Any, data: Any, x: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """What the user's own module returns, of which a copy may be something else; it must be at rest (`at_rest`).

        Attributes that are no floating-point numbers are given as they are, if the module takes them.
        """
        torch = pytorch()
        device = next((value.device for value in module.parameters()), torch.device("cpu"))
        numbers = self._given(torch.tensor(x, dtype=self.dtype)).to(device)
        as_they_are = numbers.clone()
        if not data.x.is_floating_point():
            as_they_are.x = torch.tensor(x).to(data.x.dtype).to(device)
        with _for_evaluation(), _own_caches(module, self.stored):
            try:
                output = (self.forward or _forward)(module, as_they_are)
            except Exception:
                try:
                    output = (self.forward or _forward)(module, numbers)
                except Exception as error:
                    raise NotRunnableError(_unrunnable(error)) from error
        _check_logits(output, len(x))
        return np.asarray(output.detach().cpu().double().numpy())

    def _given(self, x: Any) -> Any:
        """The data with these attributes, and floating-point numbers of the right type."""
        torch = pytorch()
        given = self.data.clone()
        given.x = x
        for name in ("edge_weight", "edge_attr", "adj_t"):
            value = getattr(given, name, None)
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                setattr(given, name, value.to(self.dtype))
        return given


@contextmanager
def at_rest(module: Any) -> Iterator[None]:
    """Sets a module and its parts for evaluation, and back to what they were."""
    training = [(part, part.training) for part in module.modules()]
    for part, _ in training:
        part.training = False
    try:
        yield
    finally:
        for part, was in training:
            part.training = was


@contextmanager
def _own_caches(module: Any, stored: set[str]) -> Iterator[None]:
    """Lets a module forget the attributes that it keeps, and gives it back the caches that it had, and what it only stores."""
    module = bare(module)
    before = values_of(module, stored)
    names = (*_KEPT_OF_EDGES, *_KEPT_OF_ATTRIBUTES)
    kept = [
        (part, name, vars(part)[name])
        for part in _keeping(held_modules(module))
        for name in names
        if name in vars(part)
    ]
    for part, name, _ in kept:
        if name in _KEPT_OF_ATTRIBUTES:
            setattr(part, name, None)
    try:
        yield
    finally:
        for part, name, value in kept:
            setattr(part, name, value)
        put_back(before)


def _keeping(modules: list[Any]) -> list[Any]:
    """Layers of PyTorch Geometric, of which it is known what they keep."""
    layer = pytorch("torch_geometric.nn").MessagePassing
    return [part for part in modules if isinstance(part, layer)]


def _unrunnable(error: Exception) -> str:
    return f"the module cannot be run on the data: {type(error).__name__}: {error}"


def _check_logits(output: Any, nodes: int) -> None:
    """Refuses what cannot be logits."""
    torch = pytorch()
    if not isinstance(output, torch.Tensor):
        raise InputError(
            f"the module returns a {type(output).__name__}, not logits of shape nodes × classes; {_EXAMPLE}"
        )
    if output.dim() != 2 or output.shape[0] != nodes:
        advice = "give forward=lambda module, data: …, which returns them" if output.dim() != 2 else _ALL_NODES
        raise InputError(
            f"the module returns a tensor of shape {tuple(output.shape)}, not logits of shape nodes × classes for the {nodes} "
            f"nodes; {advice}"
        )
    if output.shape[1] == 1:
        raise InputError(
            "the module returns one number a node, and there must be a logit for each class: return "
            "torch.cat([0 * z, z], dim=1) for a number z, which is positive for the second class"
        )


def _changes(name: str) -> VerificationError:
    """Refuses a module that changes when it is run."""
    return VerificationError(
        f"the module changes its own {name!r} when it is run, so that the next run may compute something else; "
        "certificates need a module that does the same every time: compute it anew in each run"
    )


def _forget(modules: list[Any]) -> None:
    """Empties caches of what was computed from attributes, as SGConv(cached=True) has one."""
    torch = pytorch()
    for part in modules:
        for name in _KEPT_OF_ATTRIBUTES:
            if isinstance(getattr(part, name, None), torch.Tensor):
                setattr(part, name, None)


def bare(module: Any) -> Any:
    """A module without what compiled it."""
    if type(module).__name__ == "OptimizedModule" and type(module).__module__.startswith("torch."):
        return module._orig_mod
    return module


def copy_of(module: Any, dtype: Any) -> Any:
    """A copy for evaluation on the processor, in another precision where one is given."""
    torch = pytorch()
    module = bare(module)
    check_copies(module)
    try:
        # PyTorch copies no tensors that are computed from parameters, such as embeddings that training left.
        copied = copy.deepcopy(module, {id(value): value.detach().clone() for value in computed_tensors(module)})
    except Exception as error:
        raise InputError(
            f"the module cannot be copied ({error}); nodeproof runs a copy so as not to change yours: remove old weight norms "
            "and prunings first (torch.nn.utils.remove_weight_norm, torch.nn.utils.prune.remove)"
        ) from error
    copied = copied.cpu().eval()
    if dtype is not None:
        copied = copied.to(dtype)
    held = held_modules(copied)
    for part in held:
        if isinstance(part, torch.jit.ScriptModule):
            _check_script(_script(part))
    for part in _keeping(held):
        for name in _KEPT_OF_EDGES:
            if vars(part).get(name) is not None:
                cache = mapped(lambda v: v.cpu() if isinstance(v, torch.Tensor) else v, getattr(part, name))
                setattr(part, name, cache)
    _forget(_keeping(held))
    return copied


#: What scripted parts must not do, as they are not followed closely enough, and how to say that.
_NOT_IN_SCRIPTS = {
    "prim::tolist": "takes values out of PyTorch (tolist)",
    "prim::SetAttr": "changes attributes of its own",
    "aten::tensor": "makes tensors of lists (torch.tensor)",
}


def _check_script(graph: str) -> None:
    for operation, does in _NOT_IN_SCRIPTS.items():
        if re.search(rf"{operation}\b", graph):
            raise VerificationError(f"the module {does} in a scripted part of it; do not script it")


def _script(module: Any) -> str:
    """What a scripted module does, if it can be called."""
    try:
        return str(module.inlined_graph)
    except Exception:  # without a method `forward`
        return ""


def _check_parameters(module: Any) -> None:
    """Refuses parameters that are not there yet, and such that are no numbers, or complex ones."""
    torch = pytorch()
    for name, value in [*module.named_parameters(), *module.named_buffers()]:
        if value.is_complex():
            raise InputError(f"{name!r} has complex numbers, which do not survive other precisions; keep real ones")
    for name, parameter in module.named_parameters():
        if isinstance(parameter, torch.nn.parameter.UninitializedParameter):
            raise InputError(f"parameter {name!r} has no values yet; call the module once, and train it")
        if not bool(torch.isfinite(parameter).all()):
            raise InputError(f"parameter {name!r} has a value that is not finite; did its training diverge?")


@contextmanager
def _for_evaluation() -> Iterator[None]:
    """A context without gradients, in which what was compiled or scripted runs as it was written."""
    torch = pytorch()
    eager = torch.compiler.set_stance("force_eager") if hasattr(torch.compiler, "set_stance") else nullcontext()
    with torch.no_grad(), eager, torch.jit.optimized_execution(False):
        yield


def _forward(module: Any, data: Any) -> Any:
    """Calls a module whose `forward` has arguments of the usual names."""
    torch = pytorch()
    if isinstance(module, torch.jit.ScriptModule):
        raise VerificationError("a scripted module hides its layers; give the module that it was made of")
    parameters = list(inspect.signature(module.forward).parameters.values())
    known = {name: getattr(data, name, None) for name in ("x", "edge_index", "edge_weight", "edge_attr", "adj_t")}
    known |= {name: known["adj_t"] for name in ("adj", "edge_index") if known.get(name) is None}
    known |= {alias: known[name] for alias, name in _ALIASES.items()}
    if all(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return module(**{name: value for name, value in known.items() if value is not None})
    if any(parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY) for parameter in parameters):
        weight = () if known["edge_weight"] is None else (known["edge_weight"],)
        return module(*_positional(parameters, known["x"], known["edge_index"], *weight))
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
                "edge_weight, edge_attr and adj_t: give forward=lambda module, data: module(data.x, data.edge_index, ...)"
            )
    return module(**arguments)


#: Other names that modules give to what they read.
_ALIASES = dict.fromkeys(("input", "inputs", "features", "feats", "h"), "x") | dict.fromkeys(
    ("edges", "edge_list", "ei"), "edge_index"
)


def _positional(parameters: list[inspect.Parameter], *given: Any) -> tuple[Any, ...]:
    """As many arguments as a signature has room for; weights of edges are not taken for anything else."""
    taken = []
    for place, value in enumerate(given):
        parameter = parameters[min(place, len(parameters) - 1)]
        if parameter.kind is not parameter.VAR_POSITIONAL and place >= len(parameters):
            break
        if place > 1 and parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.name != "edge_weight":
            break
        taken.append(value)
    return tuple(taken)
