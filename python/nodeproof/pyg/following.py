"""A module whose network is computed anew from its parameters, step after step, without importing it anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._optional import optional
from ..errors import InputError, NodeproofError, VerificationError
from ..model import Layer, Model
from .expression import same
from .learned import Tape, taping, tensors_of
from .run import bare, copy_of
from .verify import imported

#: Buffers that change in training, and are followed like parameters: of BatchNorm, and of spectral norms.
_STATISTICS = ("running_mean", "running_var", "_u", "_v")
#: Buffers that count steps of training, and that evaluation does not read.
_COUNTERS = ("num_batches_tracked",)
#: Relative difference of numbers that are the same but for rounding.
_ROUNDING = 1e-6


class FollowedModule:
    """A module and its data, imported once.

    Args:
        module, data, options: as for `imported`.
    """

    def __init__(self, module: Any, data: Any, options: Mapping[str, Any]) -> None:
        self._given, self._module, self._data, self._options = module, bare(module), data, options
        self.graph, now = imported(module, data, **options)
        own = tensors_of(self._module)
        statistics = [name for name, _ in self._module.named_buffers() if name.rpartition(".")[2] in _STATISTICS]
        #: Names of what changes in training.
        self._leaves = [name for name, value in self._module.named_parameters() if value.requires_grad] + statistics
        self._shapes = {name: tuple(value.shape) for name, value in own.items()}
        self._constants = {
            name: (value, value._version, value.detach().clone())
            for name, value in own.items()
            if name not in self._leaves and name.rpartition(".")[2] not in _COUNTERS
        }
        self._stamp = stamp(data)
        self._tape, self.model = self._learned()
        self._hold_against(now)

    def tensors(self) -> list[Any]:
        """Weights and biases of the model, of what the module's parameters are now, with gradients."""
        problem = self.changed()
        if problem is not None:
            raise InputError(f"{problem}; make a new Robust after such a change")
        own = tensors_of(self._module)
        return self._tape.tensors(own)

    def changed(self) -> str | None:
        """What has changed since the module was imported that is not followed, as far as a look at tensors can tell."""
        torch = optional("torch", "pyg", "nodeproof.torch")
        before, now = self._stamp, stamp(self._data)
        for name in sorted(before.keys() | now.keys()):
            if before.get(name) != now.get(name):
                return f"the data have changed: {name!r} is new, gone, or was written to"
        own = tensors_of(self._module)
        for name in own.keys() | self._shapes.keys():
            if name not in own or name not in self._shapes or tuple(own[name].shape) != self._shapes[name]:
                return f"{name!r} of the module is new, gone, or has another shape"
        for name, (value, version, numbers) in self._constants.items():
            found = own[name]
            is_as_it_was = found is value and value._version == version
            if not is_as_it_was and not torch.equal(found.detach().to(numbers.device), numbers):
                return f"{name!r} of the module has changed, which is not followed"
            if found.requires_grad:
                return f"parameter {name!r} requires gradients now, and did not before"
        return None

    def infinite(self) -> str | None:
        """The name of a parameter with a value that is not finite."""
        found = (name for name, value in tensors_of(self._module).items() if not bool(value.isfinite().all()))
        return next(found, None)

    def check(self) -> None:
        """Imports the module as it is now, and holds against that what is followed.

        Raises:
            VerificationError: if something else of the module has changed than what is followed.
        """
        self._hold_against(imported(self._given, self._data, **self._options)[1])

    def _hold_against(self, model: Model) -> None:
        layers = with_tensors(self.model, [tensor.detach().numpy() for tensor in self.tensors()])
        theirs, ours = model.logits(self.graph), layers.logits(self.graph)
        theirs, ours = theirs - theirs[:, :1], ours - ours[:, :1]
        allowed = max(_ROUNDING, self._tape.rounding)
        if not np.abs(theirs - ours).max(initial=0.0) <= allowed * max(1e-30, np.abs(theirs).max(initial=0.0)):
            raise VerificationError(
                "the module computes something else than what is followed; has anything of it changed but its parameters, or "
                "does it do something else where these have other values? Make a new Robust after such a change"
            )

    def _learned(self) -> tuple[Tape, Model]:
        """How the model comes about from the parameters, held against imports of others of them."""
        found = self._imported_at(dict.fromkeys(self._leaves, 1))
        if found.tape.has_looked:
            raise VerificationError(
                "the module looks at values that come from its parameters (item(), or an `if`), and may do something else when "
                "they change; compute with tensors instead (torch.where), or set requires_grad=False for those parameters"
            )
        if not found.explains(self._imported_at(dict.fromkeys(self._leaves, 2))):
            raise self._refusal(found, 2)
        try:
            mirrored = self._imported_at(dict.fromkeys(self._leaves, -1))
        except NodeproofError:
            # Not all modules can be imported with such parameters.
            return found.tape, found.model
        if not found.explains(mirrored):
            raise self._refusal(found, -1)
        return found.tape, found.model

    def _refusal(self, found: _Point, seed: int) -> VerificationError:
        """Which parameter it is that cannot be followed."""
        for name in self._leaves:
            if not found.explains(self._imported_at({**dict.fromkeys(self._leaves, 1), name: seed})):
                return VerificationError(
                    f"it cannot be followed how {name!r} enters the network; parameters that weigh edges, are slopes of "
                    "activations, or are written to in place cannot be: train those without the worst-case loss first, and "
                    "then set requires_grad=False for them"
                )
        return VerificationError(
            "it cannot be followed how the parameters enter the network together; set requires_grad=False for those that are "
            "not trained"
        )

    def _imported_at(self, seeds: Mapping[str, int]) -> _Point:
        """What is learned where parameters are others by chance: near those of the module, or, with a seed below 0, near their
        opposites. None is 0, or the same as another."""
        torch = optional("torch", "pyg", "nodeproof.torch")
        other = copy_of(self._given, None)
        own, parameters = tensors_of(other), dict(other.named_parameters())
        with torch.no_grad():
            for place, (name, seed) in enumerate(seeds.items()):
                chance, value = np.random.default_rng([abs(seed), place]), own[name]
                factors, shifts = (torch.tensor(chance.random(value.shape)) for _ in range(2))
                near = value.double() * (1 + 0.2 * factors) + 0.01 * (0.5 + shifts)
                value.copy_(-near if seed < 0 and name in parameters else near)
        tape = Tape(list(seeds))
        with taping(tape):
            _, model = imported(other, self._data, **self._options)
        return _Point(tape, model, {name: own[name].detach() for name in seeds})


@dataclass(frozen=True)
class _Point:
    """What is learned of a module where its parameters are certain numbers."""

    tape: Tape
    model: Model
    #: Parameters and statistics, by their names.
    numbers: dict[str, Any]

    @property
    def plan(self) -> list[Any]:
        """How the model is put together: all that is not a weight or a bias."""
        return [
            (
                [(term.source, term.propagation, np.shape(term.weight) or term.weight) for term in layer.terms],
                len(layer.bias),
                layer.activation,
            )
            for layer in self.tape.layers
        ]

    def explains(self, other: _Point) -> bool:
        """Whether what was learned here gives the network that was imported there."""
        ones, others = self.model.propagations, other.model.propagations
        if self.plan != other.plan or len(ones) != len(others) or not all(map(_are_same, ones, others)):
            return False
        torch = optional("torch", "pyg", "nodeproof.torch")
        with torch.no_grad():
            made = [tensor.numpy() for tensor in self.tape.tensors(other.numbers)]
        allowed = max(_ROUNDING, self.tape.rounding)
        return all(
            ours.shape == theirs.shape
            and np.abs(ours - theirs).max(initial=0.0) <= allowed * np.abs(theirs).max(initial=0.0)
            for ours, theirs in zip(made, map(np.asarray, other.tape.numbers()), strict=True)
        )


def stamp(data: Any) -> dict[str, tuple[int, int | None]]:
    """What tells the fields of data from others, and from what they were before."""
    torch = optional("torch", "pyg", "nodeproof.torch")
    values = data.to_dict() if hasattr(data, "to_dict") else {}
    return {n: (id(v), v._version if isinstance(v, torch.Tensor) else None) for n, v in values.items()}


def with_tensors(like: Model, tensors: list[Any]) -> Model:
    """A model like another with these weights and biases."""
    given = iter(tensors)
    layers = [
        Layer(
            [term._replace(weight=next(given)) if np.ndim(term.weight) == 2 else term for term in layer.terms],
            next(given),
            layer.activation,
        )
        for layer in like.layers
    ]
    return Model.of_layers(like._core.attributes, like.propagations, layers, kind=like.kind)


def _are_same(one: Any, two: Any) -> bool:
    """Whether two propagations are the same."""
    if isinstance(one, (str, dict)) or isinstance(two, (str, dict)):
        return bool(one == two)
    return same(one, two)
