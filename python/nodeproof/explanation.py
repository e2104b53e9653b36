"""The story of one node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from . import _core, notebook
from ._checks import flag
from .budget import GLOBAL, LOCAL, NO, NONE, NOTHING, Budget, Count, budget_of, parts_of
from .certification import Engine, Settings, TargetClass, targets_of
from .graph import Graph
from .model import Floats, Model
from .results import Certificate, Certificates, Radii, Radius, frozen
from .split import Split


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The certificate of one node beside its margins on the graph as it is; `print` puts it in words."""

    graph: Graph
    #: The certificate; its witness is the smallest that was found.
    certificate: Certificate
    #: The logits on the graph as it is.
    logits: Floats
    #: `logit of the certified class − logit` for each class, on the graph as it is.
    margins: Floats
    #: What the attacker may change, in words.
    budget: str
    #: How many flips, or deletions of edges, the prediction withstands, up to the global budget, where several change it
    #: and that was asked.
    radius: Radius | None
    #: All of it in words.
    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Explanation({self.certificate!r}; print it for all of it)"

    def _repr_html_(self) -> str:
        return notebook.words(self.text)


def explain(
    graph: Graph,
    model: Model,
    node: int | str,
    budget: Budget | None = None,
    *,
    global_budget: Count = GLOBAL,
    local_budget: int | str = LOCAL,
    add_only: bool = NO,
    delete_only: bool = NO,
    protect_attributes: Iterable[int | str] = NONE,
    protect_nodes: str | Iterable[int | str] = NONE,
    local_budget_at: Mapping[int | str, int] | None = NOTHING,
    split: Split | None = None,
    target_class: TargetClass = "predicted",
    engine: Engine = "complete",
    time_limit: float | None = 10.0,
    memory_limit: int | str = "1G",
    threads: int = 0,
    radius: bool = True,
) -> Explanation:
    """The story of one node: its verdict, its margins, and the flips, or deletions of edges, that change its class, in words.

    Args:
        graph, model: what is certified.
        node: the id or the name of the node.
        budget: what the attacker may change, a `Budget`; or its parts as keywords, `global_budget`, …, `local_budget_at`.
        split: what the parts are of that `protect_nodes` may name.
        target_class, engine, memory_limit, threads: as in `certify`.
        time_limit: most seconds for the node under one budget, or `None`.
        radius: where several flips, or several deletions, change the class, finds out whether fewer do, and shows the smallest
            witness.

    >>> import nodeproof
    >>> graph = nodeproof.Graph([[0, 1], [1, 0]], [[1, 0], [1, 0]])
    >>> model = nodeproof.Model([[[2.0, 0.0], [0.0, 1.0]]], [[0.0, 0.5]])
    >>> print(nodeproof.explain(graph, model, 0, global_budget=2, local_budget=1))
    node       0
    predicted  class 0
    budget     at most 2 flips, 1 at one node
    verdict    nonrobust: 2 flips change the class, and no single one does
    engine     settled by fast
    <BLANKLINE>
    margin over  as it is  under attack  status
    ───────────────────────────────────────────
    class 1         1.500      ≥ -0.500  falls
    <BLANKLINE>
    witness
      remove attribute 0 from node 0, the node itself
      remove attribute 0 from node 1
    <BLANKLINE>
    then class 1 wins: the margin over it goes from 1.500 to -0.500
    """
    targets_of(graph, model, (), split)
    place = graph.node(node)
    said = parts_of(
        global_budget, local_budget, add_only, delete_only, protect_attributes, protect_nodes, local_budget_at
    )
    meant = budget_of(budget, said).by_ids(graph, split)
    settings = Settings(meant, engine, target_class, time_limit, memory_limit=memory_limit, threads=threads).on(graph)
    certified, searched, logits, text = _core.explain(graph._core, model._core, settings, place, flag("radius", radius))
    certificate = Certificates(certified, graph)[0]
    with np.errstate(invalid="ignore"):  # Logits may have overflowed.
        margins = frozen(logits[certificate.class_] - logits)
    found = None if searched is None else Radii(searched, graph)[0]
    return Explanation(
        graph, certificate, frozen(logits), margins, certified.budget_in_words(), found, text.rstrip("\n")
    )
