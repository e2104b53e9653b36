"""The story of one node."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import notebook
from .certification import certify
from .graph import Graph
from .model import Floats, Model
from .results import Certificate

#: The smallest positive double: the engine `complete` proved a margin positive, and did not ask by how much.
_SMALLEST = np.nextafter(0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Explanation:
    """The certificate of one node beside its margins on the graph as it is; `print` tells it in words."""

    graph: Graph
    certificate: Certificate
    #: The logits on the graph as it is.
    logits: Floats
    #: `logit of the certified class − logit` for each class, on the graph as it is.
    margins: Floats
    #: What the attacker may change, in words.
    budget: str

    def __str__(self) -> str:
        graph, found = self.graph, self.certificate
        facts = [("node", f"{found.name} (node {found.node})" if graph.node_names else str(found.node))]
        if found.label is not None:
            facts.append(("label", self._class(found.label)))
        wrong = ", which is wrong" if found.label not in (None, found.predicted) else ""
        facts.append(("predicted", self._class(found.predicted) + wrong))
        if found.class_ != found.predicted:
            facts.append(("certified", f"{self._class(found.class_)}, the label"))
        facts += [("budget", self.budget), ("verdict", self._verdict()), ("engine", self._engine())]
        lines = [f"{name:<10} {value}" for name, value in facts]
        rows = [("margin over", "as it is", "under attack", "status")]
        for class_ in range(len(self.margins)):
            if class_ != found.class_:
                rows.append(
                    (self._class(class_), _number(self.margins[class_]), self._bound(class_), self._status(class_))
                )
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        table = [
            f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip() for row in rows
        ]
        lines += ["", table[0], "─" * (sum(widths) + 6), *table[1:]]
        if found.witness is not None:
            lines += ["", *self._attack()]
        return "\n".join(lines)

    def _class(self, class_: int) -> str:
        name = self.graph.class_name(class_)
        return f"{name} (class {class_})" if self.graph.class_names else name

    def _engine(self) -> str:
        found = self.certificate
        return f"not settled by {found.engine}" if found.verdict == "undecided" else f"settled by {found.engine}"

    def _verdict(self) -> str:
        found = self.certificate
        if found.verdict == "robust":
            least = "above 0" if found.margin <= _SMALLEST else f"at {_bound(found.margin)} or above"
            return f"robust: no admissible set of flips changes the class; every margin stays {least}"
        if found.witness is None:
            return (
                "undecided: neither proved nor refuted; the smallest margin an attacker can reach lies between "
                f"{_bound(found.lower)} and {_number(found.upper)}"
            )
        count, tie = len(found.witness), found.witness.margin >= 0
        flips = f"{count} flip{'' if count == 1 else 's'}"
        if count == 0:
            return f"nonrobust: another class {'is level' if tie else 'wins'} without any flip"
        if tie:
            return f"nonrobust: {flips} can bring another class level, a tie"
        return (
            "nonrobust: one flip changes the class"
            if count == 1
            else f"nonrobust: {flips} change the class (fewer may do)"
        )

    def _bound(self, class_: int) -> str:
        bound = self.certificate.margins[class_]
        return "> 0" if 0 < bound <= _SMALLEST else f"≥ {_bound(bound)}"

    def _status(self, class_: int) -> str:
        witness = self.certificate.witness
        if witness is not None and witness.class_ == class_:
            return "ties" if witness.margin >= 0 else "falls"
        if self.margins[class_] < 0:
            return "falls"
        return "holds" if self.certificate.margins[class_] > 0 else "may fall"

    def _attack(self) -> list[str]:
        found = self.certificate
        assert found.witness is not None
        words = [f"  {flip.in_words(self.graph, found.node)}" for flip in found.witness]
        winner, before = self._class(found.witness.class_), _number(self.margins[found.witness.class_])
        level = "is level" if found.witness.margin >= 0 else "wins"
        if not words:
            return [f"{winner} {level} as it is: the margin over it is {before}"]
        after = _number(found.witness.margin)
        return ["witness", *words, "", f"then {winner} {level}: the margin over it goes from {before} to {after}"]

    def _repr_html_(self) -> str:
        return notebook.explanation(self)


def explain(graph: Graph, model: Model, node: int | str, *, global_budget: int, **options: Any) -> Explanation:
    """Tells the story of one node: its verdict, its margins, and the flips that change its class, in words.

    Options are those of `certify`, except for `nodes`.

    >>> import nodeproof
    >>> graph = nodeproof.Graph([[0, 1], [1, 0]], [[1, 0], [1, 0]])
    >>> model = nodeproof.Model([[[2.0, 0.0], [0.0, 1.0]]])
    >>> print(nodeproof.explain(graph, model, 0, global_budget=1, local_budget=1))
    node       0
    predicted  class 0
    budget     at most 1 flip, 1 at one node
    verdict    robust: no admissible set of flips changes the class; every margin stays at 1.000 or above
    engine     settled by fast
    <BLANKLINE>
    margin over  as it is  under attack  status
    ───────────────────────────────────────────
    class 1         2.000       ≥ 1.000  holds
    """
    place = graph.node(node)
    found = certify(graph, model, global_budget=global_budget, nodes=[place], **{"progress": False, **options})
    certificate = found[0]
    logits = model.logits_under(graph, place, [])
    margins = logits[certificate.class_] - logits
    return Explanation(graph, certificate, logits, margins, found.budget_in_words())


def _bound(lower: float | None) -> str:
    """A lower bound: rounded down, but for the last digits of a double, so that 1 reads 1.000."""
    if lower is None or not 1e-300 <= abs(lower) < 1e300:
        return _number(lower)
    plain = 0.001 <= abs(lower) < 1e6
    unit = 0.001 if plain else 10.0 ** (math.floor(math.log10(abs(lower))) - 1)
    return f"{math.floor(lower / unit + 1e-6) * unit:{'.3f' if plain else '.1e'}}"


def _number(value: float | None) -> str:
    # Three decimals would show a tiny negative margin as zero, which is the one thing that must be seen.
    if value is None or np.isnan(value) or abs(value) >= np.finfo(np.float64).max:
        return "unknown"
    size = abs(value)
    return f"{value:.1e}" if size >= 1e6 or 0 < size < 0.0005 else f"{value:.3f}"
