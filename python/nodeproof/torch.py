"""Worst-case losses for training loops of your own: tensors with gradients for every parameter of a module.

`Robust` imports a module once, remembers how the numbers of the network come about from its parameters, and from then on
computes worst-case margins of what the module is at that moment. Like verdicts they are about the module in evaluation mode,
without dropout and with the statistics that BatchNorm keeps.

    robust = nodeproof.torch.Robust(module, data, global_budget=5)
    loss = F.cross_entropy(logits[labelled], y[labelled]) + 0.15 * robust.hinge(batch)
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _core
from ._checks import finite, whole
from ._matrices import plain
from ._optional import optional
from .budget import GLOBAL, LOCAL, NO, NONE, NOTHING, Budget, budget_of, parts_of
from .certification import certify
from .errors import InputError, VerificationError
from .model import Model
from .pyg.convert import array_of
from .pyg.expression import same
from .pyg.learned import Tape, taping
from .pyg.run import Forward, copy_of
from .pyg.verify import imported
from .results import Certificates
from .split import node_ids

__all__ = ["Robust", "robust_cross_entropy", "robust_hinge", "worst_case_margins"]

WorstCase = Literal["dual", "first-order"]
#: Nodes as tensors, arrays, lists of ids, or masks.
Nodes = Any

#: Margins that hinge losses ask for, and how much may be missing until the pull on a node is halved, as in `nodeproof.train`.
_LABELLED_MARGIN, _UNLABELLED_MARGIN, _SATURATION = float(np.log(9.0)), float(np.log(1.5)), 1.0
#: Buffers that change in training, and are followed like parameters.
_STATISTICS = ("running_mean", "running_var")
#: Relative difference of numbers that are the same but for rounding.
_ROUNDING = 1e-6
#: How many modules the functions of this module remember.
_REMEMBERED = 4


def __dir__() -> list[str]:
    return sorted(__all__)


class Robust:
    """The worst that an attacker can do to the predictions of a module, as losses to be minimised.

    Args:
        module: any `torch.nn.Module` that `nodeproof.from_pyg` imports, on any device. It is imported here, which takes
            seconds on large graphs, and followed from then on: parameters that require gradients, and the statistics of
            BatchNorm, may change; nothing else of it may.
        data: the `Data` object that it is trained on; attributes as `from_pyg` takes them.
        budget: what it is to withstand, a `Budget`; or its parts, which are the next seven keywords.
        worst_case: what worst-case margins are taken to be, as in `nodeproof.train`: "dual", lower bounds, or "first-order",
            what the steepest flips leave; the latter by default from two hidden layers on, where bounds fade.
        forward, binarise, certify_binarised, real_values, ranges: as for `nodeproof.from_pyg`.
        threads: threads to use; 0 takes as many as there are cores. Results do not depend on it.

    Raises:
        VerificationError: if the module cannot be imported, or a parameter cannot be followed: one that weighs edges, for
            example, or is the slope of an activation.
    """

    def __init__(
        self,
        module: Any,
        data: Any,
        budget: Budget | None = None,
        *,
        global_budget: int = GLOBAL,
        local_budget: int | str = LOCAL,
        add_only: bool = NO,
        delete_only: bool = NO,
        protect_attributes: Iterable[int | str] = NONE,
        protect_nodes: str | Iterable[int | str] = NONE,
        local_budget_at: Mapping[int | str, int] | None = NOTHING,
        worst_case: WorstCase | None = None,
        forward: Forward | None = None,
        binarise: bool = False,
        certify_binarised: bool = False,
        real_values: bool = False,
        ranges: Any = None,
        threads: int = 0,
    ) -> None:
        said = parts_of(
            global_budget, local_budget, add_only, delete_only, protect_attributes, protect_nodes, local_budget_at
        )
        meant = budget_of(budget, said)
        self.module = module
        self._import = {
            "forward": forward,
            "binarise": binarise,
            "certify_binarised": certify_binarised,
            "real_values": real_values,
            "ranges": ranges,
        }
        self._data = data
        self.graph, model = imported(module, data, **self._import)
        self.budget = meant.by_ids(self.graph)
        self._leaves = _leaves(module)
        followed = _followed(module, data, self._leaves, self._import)
        self._tape = followed.tape
        self._constants = _Constants(module, self._leaves)
        self._core = _core.RobustLoss(
            self.graph._core,
            followed.model._core,
            self.budget.on(self.graph),
            None if worst_case is None else str(worst_case),
            whole("threads", threads),
        )
        self._check(model)

    @property
    def worst_case(self) -> str:
        """What worst-case margins are taken to be: "dual" or "first-order"."""
        return self._core.worst_case

    def hinge(
        self,
        nodes: Nodes,
        classes: Any = None,
        *,
        margin: float | None = None,
        saturation: float | None = None,
    ) -> Any:
        """The robust hinge loss `Σ_k h_k` with `h_k = max(0, margin − m_k)`, a mean over `nodes`.

        m_k is how far the class to be kept leads class k under the worst admissible flips (`worst_case_margins`).

        Args:
            nodes: ids, in a tensor, an array or a list, or a mask. A node given twice counts twice.
            classes: the class to be kept at each of them, its label for example; by default the one that the module predicts.
            margin: what every m_k should be; by default log 9 with `classes`, and log 1.5 without.
            saturation: s, by which `h_k` becomes `s log(1 + h_k / s)`, so that hopeless nodes do not bend the network for
                nothing; by default 1 without `classes`. `float("inf")` is none.
        """
        given = classes is not None
        if margin is None:
            margin = _LABELLED_MARGIN if given else _UNLABELLED_MARGIN
        if saturation is None:
            saturation = float("inf") if given else _SATURATION
        margin = finite("margin", margin)
        halved = None if saturation == float("inf") else finite("saturation", saturation)

        def hinge(tensors: Any, ids: Any, kept: Any, with_gradient: bool) -> Any:
            return self._core.hinge(tensors, ids, kept, margin, halved, with_gradient)

        return self._loss(nodes, classes, hinge)

    def cross_entropy(self, nodes: Nodes, classes: Any = None) -> Any:
        """The robust cross entropy `log(1 + Σ_k exp(−m_k))`, a mean over `nodes`; arguments as for `hinge`."""
        return self._loss(nodes, classes, self._core.cross_entropy)

    def worst_case_margins(self, nodes: Nodes, classes: Any = None) -> Any:
        """Nodes × classes: how far the class to be kept leads each other under the worst admissible flips; 0 for itself.

        Arguments are as for `hinge`. With `worst_case` "dual" these are lower bounds, but for rounding; with "first-order" they
        are what the steepest flips leave, and prove nothing. Verdicts are for `certify` to give.
        """
        torch = optional("torch", "pyg", "nodeproof.torch")
        ids, kept = self._targets(nodes, classes)
        margins = _function("margins").apply(self._core, ids, kept, *self._tensors())
        return self._like_parameters(torch, margins)

    def certify(self, nodes: str | npt.ArrayLike = "all", **options: Any) -> Certificates:
        """Imports the module as it is now, and certifies it under the budget; options are those of `nodeproof.certify`."""
        if hasattr(nodes, "detach"):
            nodes = array_of(nodes, "nodes")
        graph, model = imported(self.module, self._data, **self._import)
        return certify(graph, model, self.budget, nodes=nodes, **options)

    def __repr__(self) -> str:
        return f"Robust({type(self.module).__name__}, {self.budget!r})"

    def _loss(self, nodes: Nodes, classes: Any, of: Callable[..., Any]) -> Any:
        torch = optional("torch", "pyg", "nodeproof.torch")
        return self._like_parameters(
            torch, _function("loss").apply(of, *self._targets(nodes, classes), *self._tensors())
        )

    def _targets(self, nodes: Nodes, classes: Any) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32] | None]:
        """Ids of nodes as they were given, and the classes that are to be kept there."""
        array = np.atleast_1d(plain(array_of(nodes, "nodes") if hasattr(nodes, "detach") else nodes))
        ids = node_ids(array, self.graph.nodes)
        if array.dtype != np.bool_ and array.size:
            ids = array.astype(np.uint32)
        if classes is None:
            return ids, None
        kept = np.atleast_1d(plain(array_of(classes, "classes") if hasattr(classes, "detach") else classes))
        if kept.shape != ids.shape or (kept.size and kept.dtype.kind not in "iu"):
            raise InputError(
                f"classes must be a class for each of the {len(ids)} nodes, but have shape {kept.shape} and type {kept.dtype}"
            )
        if kept.size and kept.min() < 0:
            raise InputError(f"class {kept.min()} does not exist; leave out nodes without a label")
        return ids, kept.astype(np.uint32)

    def _tensors(self) -> list[Any]:
        """Weights and biases of the model, of what the module's parameters are now."""
        self._constants.check()
        own = {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}
        return self._tape.tensors({name: own[name].to("cpu").double() for name in self._leaves})

    def _like_parameters(self, torch: Any, value: Any) -> Any:
        like = next(iter(self.module.parameters()), torch.zeros(0))
        return value.to(like.device, like.dtype)

    def _check(self, model: Model) -> None:
        """Holds the network that is followed against the one that was imported from the module as it is."""
        torch = optional("torch", "pyg", "nodeproof.torch")
        with torch.no_grad():
            now = Model._of(self._core.model([tensor.numpy() for tensor in self._tensors()]))
        theirs, ours = model.logits(self.graph), now.logits(self.graph)
        theirs, ours = theirs - theirs[:, :1], ours - ours[:, :1]
        if not np.abs(theirs - ours).max(initial=0.0) <= _ROUNDING * max(1e-30, np.abs(theirs).max(initial=0.0)):
            raise VerificationError(
                "the module computes something else with these parameters than with others near them; nodeproof.torch needs "
                "one that does the same whatever its parameters are"
            )


def robust_hinge(module: Any, data: Any, nodes: Nodes, classes: Any = None, **options: Any) -> Any:
    """`Robust(module, data, …).hinge(nodes, classes, …)`, where the module is imported at the first call and remembered.

    Options are those of `Robust`, `global_budget` for one, and of `Robust.hinge`.
    """
    own = {name: options.pop(name) for name in ("margin", "saturation") if name in options}
    return _remembered(module, data, options).hinge(nodes, classes, **own)


def robust_cross_entropy(module: Any, data: Any, nodes: Nodes, classes: Any = None, **options: Any) -> Any:
    """`Robust(module, data, …).cross_entropy(nodes, classes)`, with a module that is remembered like that of `robust_hinge`."""
    return _remembered(module, data, options).cross_entropy(nodes, classes)


def worst_case_margins(module: Any, data: Any, nodes: Nodes, classes: Any = None, **options: Any) -> Any:
    """`Robust(module, data, …).worst_case_margins(nodes, classes)`, with a module that is remembered, too."""
    return _remembered(module, data, options).worst_case_margins(nodes, classes)


#: What was imported last and its options, by what it was imported from.
_known: OrderedDict[Any, tuple[Robust, dict[str, Any]]] = OrderedDict()
_lock = threading.Lock()


def _remembered(module: Any, data: Any, options: dict[str, Any]) -> Robust:
    """The `Robust` of this module and these options, made anew where the data have changed."""
    torch = optional("torch", "pyg", "nodeproof.torch")
    values = data.to_dict() if hasattr(data, "to_dict") else {}
    stamp = tuple((n, id(v), v._version if isinstance(v, torch.Tensor) else None) for n, v in sorted(values.items()))
    if "global_budget" in options and "budget" not in options:
        parts = {part.name: options.pop(part.name) for part in fields(Budget) if part.name in options}
        options["budget"] = Budget(**parts)
    key = (id(module), id(data), stamp, tuple((name, _identity(value)) for name, value in sorted(options.items())))
    with _lock:
        # Module, data and options are kept, so that no others get their `id`.
        robust, kept = _known.pop(key, (None, options))
        if robust is None:
            robust = Robust(module, data, **options)
        # The last one stands at the end.
        _known[key] = robust, kept
        while len(_known) > _REMEMBERED:
            _known.popitem(last=False)
    return robust


def _identity(value: Any) -> Any:
    """What tells an option from others: plain values by what they are, objects by which one it is."""
    return value if value is None or isinstance(value, (str, int, float, Budget)) else (type(value), id(value))


class _Constants:
    """Parameters and buffers that are not followed, and so must stay as they are."""

    def __init__(self, module: Any, leaves: Sequence[str]) -> None:
        self._module, self._leaves = module, set(leaves)
        self._kept = {name: (value, value._version, value.detach().clone()) for name, value in self._now().items()}

    def _now(self) -> dict[str, Any]:
        own = {**dict(self._module.named_parameters()), **dict(self._module.named_buffers())}
        return {name: value for name, value in own.items() if name not in self._leaves and value.is_floating_point()}

    def check(self) -> None:
        torch = optional("torch", "pyg", "nodeproof.torch")
        for name, value in self._now().items():
            known = self._kept.get(name)
            if known is None or not (
                (value is known[0] and value._version == known[1])
                or torch.equal(value.detach().to(known[2].device), known[2])
            ):
                raise InputError(
                    f"{name!r} of the module has changed, and does not require gradients; make a new Robust after such a change"
                )
        for name, value in self._module.named_parameters():
            if value.requires_grad and name not in self._leaves:
                raise InputError(
                    f"parameter {name!r} requires gradients now, and did not before; make a new Robust after such a change"
                )


def _leaves(module: Any) -> list[str]:
    """Names of what changes in training: parameters that require gradients, and statistics of BatchNorm."""
    statistics = [name for name, _ in module.named_buffers() if name.rpartition(".")[2] in _STATISTICS]
    return [name for name, parameter in module.named_parameters() if parameter.requires_grad] + statistics


@dataclass(frozen=True)
class _Following:
    """What is learned of a module where its parameters are certain numbers."""

    tape: Tape
    model: Model
    #: Parameters and statistics, by their names.
    numbers: dict[str, Any]

    @property
    def tensors(self) -> list[npt.NDArray[np.float64]]:
        """The model's weights and biases as they were imported."""
        return [
            np.asarray(values)
            for layer in self.tape.layers
            for values in (*(term.weight for term in layer.terms if np.ndim(term.weight) == 2), layer.bias)
        ]

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

    def explains(self, other: _Following) -> bool:
        """Whether what was learned here gives the network that was imported there."""
        ones, others = self.model.propagations, other.model.propagations
        if self.plan != other.plan or len(ones) != len(others) or not all(map(_are_same, ones, others)):
            return False
        torch = optional("torch", "pyg", "nodeproof.torch")
        with torch.no_grad():
            made = [tensor.numpy() for tensor in self.tape.tensors(other.numbers)]
        return all(
            ours.shape == theirs.shape
            and np.abs(ours - theirs).max(initial=0.0) <= _ROUNDING * np.abs(theirs).max(initial=0.0)
            for ours, theirs in zip(made, other.tensors, strict=True)
        )


def _followed(module: Any, data: Any, leaves: list[str], options: dict[str, Any]) -> _Following:
    """How the model comes about from the parameters, held against an import of others of them."""
    found = _followed_at(module, data, options, dict.fromkeys(leaves, 1))
    if not found.explains(_followed_at(module, data, options, dict.fromkeys(leaves, 2))):
        for name in leaves:
            seeds = {**dict.fromkeys(leaves, 1), name: 2}
            if not found.explains(_followed_at(module, data, options, seeds)):
                raise VerificationError(
                    f"it cannot be followed how {name!r} enters the network, as where a parameter weighs edges or is the slope "
                    "of an activation; train it without the worst-case loss first, and then set requires_grad=False for it"
                )
        raise VerificationError("it cannot be followed how the parameters enter the network together")
    return found


def _followed_at(module: Any, data: Any, options: dict[str, Any], seeds: dict[str, int]) -> _Following:
    """What is learned where parameters are others, near those of the module, by chance: none is 0, or the same as another."""
    torch = optional("torch", "pyg", "nodeproof.torch")
    other = copy_of(module, None)
    own = {**dict(other.named_parameters()), **dict(other.named_buffers())}
    with torch.no_grad():
        for place, (name, seed) in enumerate(seeds.items()):
            chance, value = np.random.default_rng([seed, place]), own[name]
            factors, shifts = (torch.tensor(chance.random(value.shape)) for _ in range(2))
            value.copy_(value.double() * (1 + 0.2 * factors) + 0.01 * (0.5 + shifts))
    tape = Tape(list(seeds))
    with taping(tape):
        _, model = imported(other, data, **options)
    return _Following(tape, model, {name: own[name].detach().double() for name in seeds})


def _are_same(one: Any, two: Any) -> bool:
    """Whether two propagations are the same."""
    if isinstance(one, (str, dict)) or isinstance(two, (str, dict)):
        return bool(one == two)
    return same(one, two)


@cache
def _function(name: str) -> Any:
    """The operation of PyTorch that computes a loss, or margins, from a model's tensors."""
    torch = optional("torch", "pyg", "nodeproof.torch")

    class Loss(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """A mean over nodes; its gradient is computed along with it."""

        @staticmethod
        def forward(context: Any, of: Any, nodes: Any, classes: Any, *tensors: Any) -> Any:
            numbers = [tensor.detach().contiguous().numpy() for tensor in tensors]
            loss, _, gradient = of(numbers, nodes, classes, any(context.needs_input_grad))
            context.gradient = None if gradient is None else [torch.from_numpy(part) for part in gradient]
            return torch.tensor(loss, dtype=torch.float64)

        @staticmethod
        @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
        def backward(context: Any, by_loss: Any) -> Any:
            return None, None, None, *(by_loss * part for part in context.gradient)

    class Margins(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """Nodes × classes; the gradient is computed when it is asked for."""

        @staticmethod
        def forward(context: Any, core: Any, nodes: Any, classes: Any, *tensors: Any) -> Any:
            numbers = [tensor.detach().contiguous().numpy() for tensor in tensors]
            margins, kept = core.margins(numbers, nodes, classes)
            # Parameters may be changed in place before the gradient is asked for.
            context.given = core, [np.array(values) for values in numbers], nodes, kept
            return torch.from_numpy(margins)

        @staticmethod
        @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
        def backward(context: Any, by_margins: Any) -> Any:
            core, *given = context.given
            gradient = core.margins_gradient(*given, by_margins.contiguous().numpy())
            return None, None, None, *(torch.from_numpy(part) for part in gradient)

    return {"loss": Loss, "margins": Margins}[name]
