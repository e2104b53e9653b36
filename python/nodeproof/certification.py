"""Verdicts and radii."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

import numpy.typing as npt

from . import _core
from ._checks import finite, flag, instance, kind_of, number, several, whole
from ._files import StrPath, existing
from ._progress import Progress, observer
from .budget import GLOBAL, LOCAL, MOST, NO, NONE, NOTHING, Budget, Count, budget_of, parts_of
from .by_budget import CertificatesByBudget
from .errors import InputError
from .graph import Graph
from .model import Model
from .nodes import chosen
from .results import Certificates, Radii
from .split import Nodes, Split

if TYPE_CHECKING:
    from typing_extensions import Unpack

_log = logging.getLogger("nodeproof")

#: How hard to try: the paper's bound; optimised bounds; branch and bound until a node is decided.
Engine = Literal["fast", "tight", "complete"]
#: In which arithmetic predictions must hold: of real numbers, or with the rounding of a format.
Arithmetic = Literal["exact", "f64", "f32", "tf32", "bf16"]
#: Whose margins are certified.
TargetClass = Literal["predicted", "label"]


def targets_of(graph: Graph, model: Model, nodes: str | npt.ArrayLike, split: Split | None) -> Nodes:
    """The nodes that are meant, once graph and model are what they should be."""
    instance("graph", graph, Graph, "Graph.read('graph.npz')")
    instance("model", model, Model, "Model.read('model.safetensors')")
    model._check_made_for(graph)
    return chosen(graph, nodes, split)


@dataclass(frozen=True)
class Settings:
    """How nodes are certified: against what, how hard, and with how many threads."""

    budget: Budget
    engine: Engine
    target_class: TargetClass
    time_limit: float | None
    total_time_limit: float | None = None
    memory_limit: int | str = "1G"
    threads: int = 0
    margin: float = 0.0
    arithmetic: Arithmetic = "exact"
    proofs: bool = False

    def on(self, graph: Graph, most: bool = False) -> _core.Settings:
        """The settings, checked; with `most`, the global budget is the largest that is tried, `max_budget`."""
        budget = self.budget.on(graph, capped=True) if most else self.budget.on(graph)
        return _core.Settings(
            budget,
            str(self.engine),
            str(self.target_class),
            (_seconds("time_limit", self.time_limit), _seconds("total_time_limit", self.total_time_limit)),
            str(self.memory_limit),
            whole("threads", self.threads),
            (finite("margin", self.margin), str(self.arithmetic), flag("proofs", self.proofs)),
        )


def _are_several(global_budget: Any) -> bool:
    return (
        hasattr(global_budget, "__iter__")
        and not isinstance(global_budget, str)
        and getattr(global_budget, "ndim", 1) > 0
    )


def _seconds(name: str, value: float | None) -> float | None:
    return None if value is None else number(name, value)


class _Options(TypedDict, total=False):
    """Options of `certify` that have no part in what it returns."""

    local_budget: int | str
    add_only: bool
    delete_only: bool
    protect_attributes: Iterable[int | str]
    protect_nodes: str | Iterable[int | str]
    local_budget_at: Mapping[int | str, int] | None
    nodes: str | npt.ArrayLike
    split: Split | None
    target_class: TargetClass
    engine: Engine
    time_limit: float | None
    total_time_limit: float | None
    memory_limit: int | str
    threads: int
    margin: float
    arithmetic: Arithmetic
    proofs: bool
    timings: bool
    since: Certificates | StrPath | None
    since_graph: Graph | None
    progress: Progress


@overload
def certify(
    graph: Graph, model: Model, budget: Budget | None = None, *, global_budget: Count = ..., **options: Unpack[_Options]
) -> Certificates: ...
@overload
def certify(
    graph: Graph, model: Model, *, global_budget: Iterable[Count], **options: Unpack[_Options]
) -> CertificatesByBudget: ...
def certify(
    graph: Graph,
    model: Model,
    budget: Budget | None = None,
    *,
    global_budget: Count | Iterable[Count] = GLOBAL,
    local_budget: int | str = LOCAL,
    add_only: bool = NO,
    delete_only: bool = NO,
    protect_attributes: Iterable[int | str] = NONE,
    protect_nodes: str | Iterable[int | str] = NONE,
    local_budget_at: Mapping[int | str, int] | None = NOTHING,
    nodes: str | npt.ArrayLike = "all",
    split: Split | None = None,
    target_class: TargetClass = "predicted",
    engine: Engine = "complete",
    time_limit: float | None = 10.0,
    total_time_limit: float | None = None,
    memory_limit: int | str = "1G",
    threads: int = 0,
    margin: float = 0.0,
    arithmetic: Arithmetic = "exact",
    proofs: bool = False,
    timings: bool = False,
    since: Certificates | StrPath | None = None,
    since_graph: Graph | None = None,
    progress: Progress = None,
) -> Certificates | CertificatesByBudget:
    """Proves which predictions hold, node by node; options and defaults are those of `nodeproof certify`.

    Args:
        graph, model: what is certified.
        budget: what the attacker may change, a `Budget`; or its parts, which are the next seven keywords.
        global_budget: most flips in total; of several, such as `[1, 5, 10]`, all are certified in one pass, which comes back
            as `CertificatesByBudget`.
        local_budget, add_only, delete_only, protect_attributes, protect_nodes, local_budget_at: see `Budget`.
        nodes: "all", ids, a mask, names, or a part of `split` ("train", "validation", "test", "unlabelled"). A node given
            twice counts once.
        target_class: whose margins are certified: the "predicted" class, or the "label".
        engine: the strongest engine to try, `fast`, `tight` or `complete`; a node goes from the fastest to this one until
            it is decided.
        time_limit: most seconds for one node, or `None`; one that takes longer stays undecided.
        total_time_limit: seconds after which no node gets more than the `fast` engine, or `None`.
        memory_limit: most memory for one node, as bytes or like "512M"; one that needs more stays undecided.
        threads: threads to use; 0 takes as many as there are cores. Results do not depend on it.
        margin: margins of robust nodes must exceed this; a node is nonrobust if flips bring another class that close.
        arithmetic: robust is what no evaluation of the network in this arithmetic changes, in whatever order it adds up.
        proofs: keeps what `Certificates.check` needs to see for itself that robust nodes are robust. A warning counts robust
            nodes for which there is no proof.
        timings: keeps the seconds spent on each node.
        since: certificates of an earlier run with the same model and settings, or their file: nodes that see nothing that has
            changed keep theirs, and the others are certified again. Nodes must keep their ids; new ones come at the end.
        since_graph: the graph that the file `since` is about; by default `graph`. Certificates know theirs.
        progress: `None` shows a bar of tqdm, if that is installed, where it takes longer than a second; `True` shows one at
            once; `False` shows none; a function is called with nodes done and nodes in total.

    Raises:
        InputError: if something does not fit.
        KeyboardInterrupt: on Ctrl-C, within about a second.

    >>> import nodeproof
    >>> graph = nodeproof.Graph.bundled()
    >>> model = nodeproof.train(graph, "ce", global_budget=5, steps=30).model
    >>> nodeproof.certify(graph, model, global_budget=2, nodes=["horn", "feather"]).verdicts.shape
    (2,)
    >>> nodeproof.certify(graph, model, nodeproof.Budget(2, add_only=True), nodes=range(30)).budget_in_words()
    'at most 2 flips, 20 at one node (1% of 2048 attributes), only additions'
    >>> certificates = nodeproof.certify(graph, model, global_budget=[1, 2, 4], nodes=range(30))
    >>> certificates.robust_share(1) >= certificates.robust_share(4)
    True
    """
    targets = targets_of(graph, model, nodes, split)
    budgets = several("global_budget", global_budget) if _are_several(global_budget) else None
    said = parts_of(
        global_budget if budgets is None else budgets[0],
        local_budget, add_only, delete_only, protect_attributes, protect_nodes, local_budget_at,
    )  # fmt: skip
    meant = budget_of(budget, said).by_ids(graph, split)
    limits = (time_limit, total_time_limit, memory_limit)
    settings = Settings(meant, engine, target_class, *limits, threads, margin, arithmetic, proofs).on(graph)
    parts = (graph._core, model._core, settings)
    timings, earlier = flag("timings", timings), _earlier(since, since_graph, graph)
    if earlier is not None and budgets is not None:
        raise InputError(
            "since has certificates under one budget; give that as global_budget, or certify without since"
        )
    with observer(progress, "certify") as tell:
        if budgets is None:
            return told(Certificates(_core.certify(*parts, targets, timings, earlier, tell), graph))
        made = _core.certify_budgets(*parts, budgets, targets, timings, tell)
    return CertificatesByBudget(told(Certificates(one, graph)) for one in made)


def told(certificates: Certificates) -> Certificates:
    """The certificates; warns where proofs were asked for, and robust nodes have none."""
    if without := certificates._core.without_proof():
        _log.warning(
            "%d of %d robust nodes have no proof, so that check may reject them: none was found within the limits of time and "
            "memory, or values between the ends of ranges matter",
            without,
            int(certificates.robust.sum()),
        )
    return certificates


def _earlier(since: Certificates | StrPath | None, since_graph: Graph | None, graph: Graph) -> _core.Earlier | None:
    """The earlier run, with the graph that it is about."""
    if since_graph is not None:
        instance("since_graph", since_graph, Graph, "the graph before it was edited")
    if since is None:
        if since_graph is not None:
            raise InputError("since_graph is the graph of an earlier run; give the certificates of that run as since")
        return None
    if isinstance(since, Certificates):
        if since_graph is not None and since_graph.fingerprint != since.graph.fingerprint:
            raise InputError(
                "since_graph is another graph than that of the certificates since; they know it, so leave it out"
            )
        return _core.Earlier.of(since._core, since.graph._core)
    if not isinstance(since, (str, os.PathLike)):
        raise InputError(f"since must be nodeproof.Certificates, or the path of their file, not {kind_of(since)}")
    return _core.Earlier.read(existing(since), (since_graph or graph)._core)


def radius(
    graph: Graph,
    model: Model,
    budget: Budget | None = None,
    *,
    max_budget: Count = MOST,
    local_budget: int | str = LOCAL,
    add_only: bool = NO,
    delete_only: bool = NO,
    protect_attributes: Iterable[int | str] = NONE,
    protect_nodes: str | Iterable[int | str] = NONE,
    local_budget_at: Mapping[int | str, int] | None = NOTHING,
    nodes: str | npt.ArrayLike = "all",
    split: Split | None = None,
    target_class: TargetClass = "predicted",
    engine: Engine = "complete",
    time_limit: float | None = 10.0,
    memory_limit: int | str = "1G",
    scan: bool = False,
    threads: int = 0,
    margin: float = 0.0,
    arithmetic: Arithmetic = "exact",
    proofs: bool = False,
    timings: bool = False,
    progress: Progress = None,
) -> Radii:
    """Finds how many flips each prediction withstands; options and defaults are those of `nodeproof radius`.

    Small global budgets are tried first, then bisection up to `max_budget` finds the rest. With `scan`, which needs the
    `fast` engine, all budgets are tried upwards from 1: the paper's measure. All else as in `certify`; `time_limit` is for
    one node under one budget, and `Radii.check` uses the proofs. With `margin` or `arithmetic` a radius is the largest budget
    under which `certify` with these calls the node robust. Of a `budget` its global one is the `max_budget`; of one that lets
    edges be deleted, `delete_edges`.

    >>> import nodeproof
    >>> graph = nodeproof.Graph([[0, 1], [1, 0]], [[1, 0], [1, 0]])
    >>> model = nodeproof.Model([[[2.0, 0.0], [0.0, 1.0]]])
    >>> nodeproof.radius(graph, model, local_budget=2).of(0).witness.flips
    (Flip(node=0, attribute=0, to=0), Flip(node=1, attribute=0, to=0))
    """
    targets = targets_of(graph, model, nodes, split)
    said = parts_of(
        max_budget,
        local_budget,
        add_only,
        delete_only,
        protect_attributes,
        protect_nodes,
        local_budget_at,
        "max_budget",
    )
    settings = Settings(
        budget_of(budget, said, "max_budget").by_ids(graph, split), engine, target_class, time_limit,
        memory_limit=memory_limit, threads=threads, margin=margin, arithmetic=arithmetic, proofs=proofs,
    )  # fmt: skip
    scan, timings = flag("scan", scan), flag("timings", timings)
    with observer(progress, "radius") as tell:
        made = _core.radius(graph._core, model._core, settings.on(graph, most=True), targets, scan, timings, tell)
    return Radii(made, graph)
