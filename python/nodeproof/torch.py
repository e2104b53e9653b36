"""Worst-case losses for training loops of your own: tensors with gradients for every parameter of a module.

`Robust` imports a module once, remembers how the numbers of the network come about from its parameters, and from then on
computes worst-case margins of what the module is at that moment. Like verdicts they are about the module in evaluation mode,
without dropout and with the statistics that BatchNorm keeps.

    robust = nodeproof.torch.Robust(module, data, global_budget=5)
    loss = F.cross_entropy(logits[labelled], y[labelled]) + 0.15 * robust.hinge(batch)
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cache
from types import FunctionType
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from . import _core
from ._checks import finite, whole
from ._matrices import plain
from ._optional import optional
from .budget import GLOBAL, LOCAL, NO, NONE, NOTHING, Budget, Count, budget_of, parts_of
from .certification import certify
from .errors import InputError, NotCopyableError
from .nodes import chosen
from .pyg.convert import array_of
from .pyg.following import FollowedModule
from .pyg.run import Forward
from .pyg.verify import imported
from .results import Certificates
from .split import Split

__all__ = ["Robust", "robust_cross_entropy", "robust_hinge", "worst_case_margins"]

WorstCase = Literal["dual", "first-order"]
#: Nodes as tensors, arrays, lists of ids, or masks.
Nodes = Any

#: Margins that hinge losses ask for, and how much may be missing until the pull on a node is halved, as in `nodeproof.train`.
_LABELLED_MARGIN, _UNLABELLED_MARGIN, _SATURATION = float(np.log(9.0)), float(np.log(1.5)), 1.0
_log = logging.getLogger("nodeproof")
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
        split: what names of parts are of, such as "train" in `protect_nodes` and `hinge("train")`.
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
        global_budget: Count = GLOBAL,
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
        split: Split | None = None,
        threads: int = 0,
    ) -> None:
        said = parts_of(
            global_budget, local_budget, add_only, delete_only, protect_attributes, protect_nodes, local_budget_at
        )
        meant, threads = budget_of(budget, said), whole("threads", threads)
        if worst_case not in (None, *get_args(WorstCase)):
            raise InputError(f"worst_case={worst_case!r} must be one of {', '.join(get_args(WorstCase))}, or None")
        self.module, self._data, self._split = module, data, split
        self._options = {
            "forward": forward,
            "binarise": binarise,
            "certify_binarised": certify_binarised,
            "real_values": real_values,
            "ranges": ranges,
        }
        self._followed = FollowedModule(module, data, self._options)
        self.graph = self._followed.graph
        self.budget = meant.by_ids(self.graph, split)
        self._core = _core.RobustLoss(
            self.graph._core, self._followed.model._core, self.budget.on(self.graph), worst_case, threads
        )

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
        if halved is not None and halved <= 0:
            raise InputError(f"saturation={saturation!r} must be above 0; float('inf') is none")

        def loss(tensors: Any, ids: Any, kept: Any, with_gradient: bool) -> Any:
            return self._core.hinge(tensors, ids, kept, margin, halved, with_gradient)

        return self._loss(nodes, classes, loss)

    def cross_entropy(self, nodes: Nodes, classes: Any = None) -> Any:
        """The robust cross entropy `log(1 + Σ_k exp(−m_k))`, a mean over `nodes`; arguments as for `hinge`."""
        return self._loss(nodes, classes, self._core.cross_entropy)

    def worst_case_margins(self, nodes: Nodes, classes: Any = None) -> Any:
        """Nodes × classes: how far the class to be kept leads each other under the worst admissible flips; 0 for itself.

        Arguments are as for `hinge`. With `worst_case` "dual" these are lower bounds, but for rounding; with "first-order" they
        are what the steepest flips leave, and prove nothing. Verdicts are for `certify` to give.
        """
        return self._result("margins", self._core, *self._targets(nodes, classes))

    def logits(self, nodes: Nodes = "all") -> Any:
        """Nodes × classes: the logits without any attack, of the module in evaluation mode.

        The engine computes them for these nodes alone, with gradients for every parameter, which costs less than a run of the
        module on the whole graph: `F.cross_entropy(robust.logits(labelled), y[labelled])`. The module itself is not run, so
        that there is no dropout, and BatchNorm learns no statistics.

        Args:
            nodes: as for `hinge`. What nodes see that are asked for in every step is looked up in the graph once.
        """
        return self._result("logits", self._core, self._ids(nodes))

    def certify(self, nodes: Nodes = "all", **options: Any) -> Certificates:
        """Imports the module as it is now, and certifies it; options are those of `nodeproof.certify`.

        By default under the budget and with the split of this `Robust`.
        """
        graph, model = imported(self.module, self._data, **self._options)
        given = {"budget": self.budget, "split": self._split} | options
        return certify(graph, model, nodes=_array(nodes, "nodes"), **given)

    def check(self) -> None:
        """Imports the module as it is now, and holds what is followed against that.

        Each loss looks whether parameters and buffers that are not followed, and data, are as they were. This notices the rest:
        other activations, hooks, or numbers that are neither parameters nor buffers.

        Raises:
            VerificationError: if these are two networks; make a new `Robust` then.
        """
        self._followed.check()

    def __repr__(self) -> str:
        return f"Robust({type(self.module).__name__}, {self.budget!r}, worst_case={self.worst_case!r})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise NotCopyableError(
            "a Robust is not copied or pickled: it follows one module; make another one of the copy of that"
        )

    def _loss(self, nodes: Nodes, classes: Any, of: Callable[..., Any]) -> Any:
        return self._result("loss", of, *self._targets(nodes, classes))

    def _result(self, what: str, *given: Any) -> Any:
        """A tensor like the parameters."""
        tensors = self._followed.tensors()
        try:
            value = _operation(what).apply(*given, *tensors)
        except InputError as error:
            infinite = self._followed.infinite()
            if infinite is None:
                raise
            raise InputError(f"{infinite!r} has a value that is not finite; did training diverge? ({error})") from None
        like = next(self.module.parameters(), None)
        return value if like is None else value.to(like.device, like.dtype)

    def _ids(self, nodes: Nodes) -> npt.NDArray[np.uint32]:
        """Ids of nodes as they were given."""
        given = _array(nodes, "nodes")
        ids = chosen(self.graph, given, self._split)
        if getattr(given, "dtype", None) is not None and given.dtype.kind in "iu" and given.size > ids.size:
            # Where nodes are given twice.
            ids = np.atleast_1d(given).astype(np.uint32)
        return ids

    def _targets(self, nodes: Nodes, classes: Any) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32] | None]:
        """Ids of nodes as they were given, and the classes that are to be kept there."""
        ids = self._ids(nodes)
        if classes is None:
            return ids, None
        kept = plain(_array(classes, "classes"))
        kept = kept.ravel() if kept.ndim < 2 or kept.shape[1:] == (1,) else kept
        if kept.shape != ids.shape or (kept.size and kept.dtype.kind not in "iu"):
            raise InputError(
                f"classes must be a class for each of the {len(ids)} nodes, but have shape {kept.shape} and type {kept.dtype}"
            )
        if kept.size and kept.min() < 0:
            raise InputError(f"class {kept.min()} does not exist; leave out nodes without a label")
        return ids, kept.astype(np.uint32)


def _array(given: Any, name: str) -> Any:
    """Nodes or classes as an array; names as they are."""
    if isinstance(given, str):
        return given
    array = plain(array_of(given, name) if hasattr(given, "detach") else given)
    return given if array.dtype.kind in "US" else array


def robust_hinge(module: Any, data: Any, nodes: Nodes, classes: Any = None, **options: Any) -> Any:
    """`Robust(module, data, …).hinge(nodes, classes, …)`, where the module is imported at the first call and remembered.

    Options are those of `Robust`, `global_budget` for one, and of `Robust.hinge`. The functions of this module keep the last
    four modules with their data, options and graphs, which stay in memory until others take their places; a `Robust` of your
    own goes when you drop it.
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
    """The `Robust` of this module and these options, made anew where something has changed that is not followed."""
    for name in ("margin", "saturation"):
        if name in options:
            raise InputError(f"{name} is an option of hinge losses, which robust_hinge has; leave it out here")
    if "global_budget" in options and "budget" not in options:
        parts = {part.name: options.pop(part.name) for part in fields(Budget) if part.name in options}
        options["budget"] = Budget(**parts)
    key = (id(module), id(data), tuple((name, _identity(value)) for name, value in sorted(options.items())))
    with _lock:
        # Module, data and options are kept, so that no others get their `id`.
        robust, kept = _known.pop(key, (None, options))
        if robust is None or robust._followed.changed() is not None:
            again = sum(robust.module is module for robust, _ in _known.values())
            if again == _REMEMBERED - 1:
                _log.warning(
                    "a module is imported anew at every call, as data or options are new objects each time; give the same "
                    "ones, or make a nodeproof.torch.Robust once"
                )
            robust = Robust(module, data, **options)
        # The last one stands at the end.
        _known[key] = robust, kept
        while len(_known) > _REMEMBERED:
            _known.popitem(last=False)
    return robust


def _identity(value: Any) -> Any:
    """What tells an option from others: plain values by what they are, functions by their code and what that refers to, and
    other objects by which one it is."""
    if value is None or isinstance(value, (str, int, float, Budget)):
        return value
    if isinstance(value, FunctionType):
        held = [cell.cell_contents for cell in value.__closure__ or ()] + list(value.__defaults__ or ())
        return (value.__code__, *map(id, held))
    return (type(value), id(value))


@cache
def _operation(name: str) -> Any:
    """The operation of PyTorch that computes a loss, or margins, from a model's tensors."""
    torch = optional("torch", "pyg", "nodeproof.torch")

    def check_first_derivative() -> None:
        """Refuses gradients that are to be differentiated again; they would be taken for constants."""
        # PyTorch records the backward pass exactly where its result is to be differentiated.
        if torch.is_grad_enabled():
            raise InputError(
                "worst-case losses and margins have no second derivatives, as the engine computes their gradients; leave out "
                "create_graph=True, and take penalties on gradients of the other terms of the loss alone"
            )

    class Loss(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """A mean over nodes; its gradient is computed along with it."""

        @staticmethod
        def forward(context: Any, of: Any, nodes: Any, classes: Any, *tensors: Any) -> Any:
            numbers = [tensor.detach().contiguous().numpy() for tensor in tensors]
            loss, _, gradient = of(numbers, nodes, classes, any(context.needs_input_grad))
            context.gradient = None if gradient is None else [torch.from_numpy(part) for part in gradient]
            return torch.tensor(loss, dtype=torch.float64)

        @staticmethod
        def backward(context: Any, by_loss: Any) -> Any:
            check_first_derivative()
            return None, None, None, *(by_loss * part for part in context.gradient)

    class Logits(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """Nodes × classes, without any attack."""

        @staticmethod
        def forward(context: Any, core: Any, nodes: Any, *tensors: Any) -> Any:
            logits, context.logits = core.logits([tensor.detach().contiguous().numpy() for tensor in tensors], nodes)
            context.core = core
            return torch.from_numpy(logits)

        @staticmethod
        def backward(context: Any, by_logits: Any) -> Any:
            check_first_derivative()
            gradient = context.core.logits_gradient(context.logits, by_logits.contiguous().numpy())
            return None, None, *(torch.from_numpy(part) for part in gradient)

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
        def backward(context: Any, by_margins: Any) -> Any:
            check_first_derivative()
            core, *given = context.given
            gradient = core.margins_gradient(*given, by_margins.contiguous().numpy())
            return None, None, None, *(torch.from_numpy(part) for part in gradient)

    return {"loss": Loss, "logits": Logits, "margins": Margins}[name]
