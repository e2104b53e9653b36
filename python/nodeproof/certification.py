"""Verdicts and radii."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy.typing as npt

from . import _core
from ._checks import MOST_THREADS, flag, instance, number, whole
from ._progress import Progress, observer
from .budget import Budget
from .graph import Graph
from .model import Model
from .nodes import chosen
from .results import Certificates, Radii
from .split import Nodes, Split

#: How hard to try: the paper's bound; optimised bounds; branch and bound until a node is decided.
Engine = Literal["fast", "tight", "complete"]
#: Whose margins are certified.
TargetClass = Literal["predicted", "label"]


def targets_of(graph: Graph, model: Model, nodes: str | npt.ArrayLike, split: Split | None) -> Nodes:
    """The nodes that are meant, once graph and model are what they should be."""
    instance("graph", graph, Graph, "Graph.read('graph.npz')")
    instance("model", model, Model, "Model.read('model.safetensors')")
    model._check_made_for(graph)
    return chosen(graph, nodes, split)


def seconds(name: str, value: float | None) -> float | None:
    """A time, or none."""
    return None if value is None else number(name, value)


def certify(
    graph: Graph,
    model: Model,
    *,
    global_budget: int,
    local_budget: int | str = "1%",
    add_only: bool = False,
    delete_only: bool = False,
    protect_attributes: Iterable[int | str] = (),
    protect_nodes: Iterable[int] = (),
    local_budget_at: Mapping[int, int] | None = None,
    nodes: str | npt.ArrayLike = "all",
    split: Split | None = None,
    target_class: TargetClass = "predicted",
    engine: Engine = "complete",
    time_limit: float | None = 10.0,
    total_time_limit: float | None = None,
    threads: int = 0,
    timings: bool = False,
    progress: Progress = None,
) -> Certificates:
    """Proves which predictions hold, node by node; options and defaults are those of `nodeproof certify`.

    Args:
        graph, model: what is certified.
        global_budget, local_budget, add_only, delete_only, protect_attributes, protect_nodes, local_budget_at: what the
            attacker may change; see `Budget`.
        nodes: "all", ids, a mask, names, or a part of `split` ("train", "validation", "test", "unlabelled"). A node given
            twice counts once.
        target_class: whose margins are certified: the "predicted" class, or the "label".
        engine: the strongest engine to try: "fast", "tight" or "complete"; a node goes from the fastest to this one until
            it is settled.
        time_limit: most seconds for one node, or `None`; one that takes longer stays undecided.
        total_time_limit: seconds after which no node gets more than the engine "fast", or `None`.
        threads: threads to use; 0 takes as many as there are cores. Results do not depend on it.
        timings: keeps the seconds spent on each node.
        progress: `None` shows a bar of tqdm, if that is installed, where it takes longer than a second; `False` shows none;
            a function is told of nodes done and nodes in all.

    Raises:
        InputError: if something does not fit.
        KeyboardInterrupt: on Ctrl-C, within about a second.

    >>> import nodeproof
    >>> graph = nodeproof.Graph.bundled()
    >>> model = nodeproof.train(graph, "ce", global_budget=5, steps=30).model
    >>> nodeproof.certify(graph, model, global_budget=2, nodes=["horn", "feather"]).verdicts.shape
    (2,)
    """
    targets = targets_of(graph, model, nodes, split)
    budget = Budget(
        global_budget, local_budget, add_only, delete_only, protect_attributes, protect_nodes, local_budget_at or {}
    ).on(graph)
    limits = seconds("time_limit", time_limit), seconds("total_time_limit", total_time_limit)
    threads = whole("threads", threads, most=MOST_THREADS)
    with observer(progress, "certify") as tell:
        made = _core.certify(
            graph._core,
            model._core,
            budget,
            targets,
            str(engine),
            str(target_class),
            *limits,
            threads,
            flag("timings", timings),
            tell,
        )
    return Certificates(made, graph)


def radius(
    graph: Graph,
    model: Model,
    *,
    max_budget: int = 100,
    local_budget: int | str = "1%",
    add_only: bool = False,
    delete_only: bool = False,
    protect_attributes: Iterable[int | str] = (),
    protect_nodes: Iterable[int] = (),
    local_budget_at: Mapping[int, int] | None = None,
    nodes: str | npt.ArrayLike = "all",
    split: Split | None = None,
    target_class: TargetClass = "predicted",
    engine: Engine = "complete",
    time_limit: float | None = 10.0,
    scan: bool = False,
    threads: int = 0,
    timings: bool = False,
    progress: Progress = None,
) -> Radii:
    """Finds how many flips each prediction withstands; options and defaults are those of `nodeproof radius`.

    Under small global budgets first, then by bisection up to `max_budget`; with `scan`, which takes the engine "fast",
    upwards from 1: the paper's measure. All else as in `certify`, `time_limit` being for one node under one budget.

    >>> import nodeproof
    >>> graph = nodeproof.Graph([[0, 1], [1, 0]], [[1, 0], [1, 0]])
    >>> model = nodeproof.Model([[[2.0, 0.0], [0.0, 1.0]]])
    >>> nodeproof.radius(graph, model, local_budget=2).of(0).witness.flips
    (Flip(node=0, attribute=0, to=0), Flip(node=1, attribute=0, to=0))
    """
    targets = targets_of(graph, model, nodes, split)
    budget = Budget(
        max_budget, local_budget, add_only, delete_only, protect_attributes, protect_nodes, local_budget_at or {}
    ).on(graph, "max_budget", most=True)
    limit = seconds("time_limit", time_limit)
    threads = whole("threads", threads, most=MOST_THREADS)
    with observer(progress, "radius") as tell:
        made = _core.radius(
            graph._core,
            model._core,
            budget,
            targets,
            str(engine),
            str(target_class),
            limit,
            flag("scan", scan),
            threads,
            flag("timings", timings),
            tell,
        )
    return Radii(made, graph)
