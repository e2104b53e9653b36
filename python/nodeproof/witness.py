"""Witnesses: flips, or deletions of edges, that change a prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, overload

from . import _core
from ._checks import instance
from .errors import InputError
from .graph import Graph

#: Flips that a witness shows before it only counts the others.
_SHOWN = 12


class Flip(NamedTuple):
    """Attribute `attribute` of node `node` becomes `to`: 0 or 1, or any number where attributes are real values."""

    node: int
    attribute: int
    to: float

    def in_words(self, graph: Graph, target: int | None = None) -> str:
        """Such as `add “bayesian” to A perceptron revisited (node 9), the node itself`, where node 9 is the `target`."""
        instance("graph", graph, Graph, "Graph.read('graph.npz')")
        return _core.flip_in_words(graph._core, self, None if target is None else graph.node(target))


@dataclass(frozen=True, repr=False)
class Witness:
    """Flips, or deletions of edges, that change a prediction, the class that overtakes, and the margin over it.

    The margin is `logit − logit of class_` under the flips, rounded up, so that a negative one is negative in exact
    arithmetic; 0 stands for a tie, and for what is too close to 0 for a double.

    >>> import nodeproof
    >>> names = {"node_names": ["horn", "hoof"], "attribute_names": ["animal", "plant"]}
    >>> graph = nodeproof.Graph([[0, 1], [1, 0]], [[1, 0], [1, 0]], **names)
    >>> model = nodeproof.Model([[[1.0, 0.0], [0.0, 1.5]]], [[0.0, 0.0]])
    >>> witness = nodeproof.certify(graph, model, global_budget=2, local_budget=1).witness("horn")
    >>> witness
    Witness(class_=1, margin=-0.5: add “plant” to horn (node 0); add “plant” to hoof (node 1))
    >>> tampered = witness.apply(graph)
    >>> model.predict(graph), model.predict(tampered)
    (array([0, 0]), array([1, 1]))
    """

    flips: tuple[Flip, ...]
    class_: int
    margin: float
    #: Edges that are deleted, pairs of ids.
    edges: tuple[tuple[int, int], ...] = ()
    #: What the flips are of, where that is known.
    _graph: Graph | None = field(default=None, repr=False, compare=False)

    @overload
    def apply(self, to: Graph) -> Graph: ...
    @overload
    def apply(self, to: Any) -> Any: ...
    def apply(self, to: Any) -> Any:
        """What was certified, tampered with: a `Graph` for a `Graph`, a `Data` object for one of PyTorch Geometric.

        `to` stays as it is. Of a `Data` object `x` is what the module really reads: where its rows are divided by the number
        of their ones (`NormalizeFeatures`), those that are flipped at are divided anew.
        """
        if isinstance(to, Graph):
            flipped = to.with_flips(self.flips) if self.flips else to
            return flipped.without_edges(self.edges) if self.edges else flipped
        if not hasattr(to, "x"):
            given = type(to).__name__
            raise InputError(
                f"a witness applies to a Graph, or to a Data object of PyTorch Geometric, not to a {given}"
            )
        from .pyg.tampered import tampered

        return tampered(to, self.flips, self._graph, self.edges)

    def in_words(self, target: int | None = None) -> list[str]:
        """Each flip and each deletion as a sentence with names, as far as they are known; see `Flip.in_words`.

        The witness knows the graph; `target` is the node that it is about.
        """
        if isinstance(target, Graph):
            raise InputError("target must be a node, not a Graph: a witness knows its graph; leave it out")
        if self._graph is not None:
            seen_from = None if target is None else self._graph.node(target)
            unlinked = _core.edges_in_words(self._graph._core, self.edges, seen_from)
            return [*(flip.in_words(self._graph, target) for flip in self.flips), *unlinked]
        flips = [f"attribute {attribute} of node {node} becomes {to}" for node, attribute, to in self.flips]
        return flips + [f"unlink node {a} from node {b}" for a, b in self.edges]

    def __repr__(self) -> str:
        said = self.in_words() if len(self) <= _SHOWN else self._first(_SHOWN).in_words()
        shown = said[:_SHOWN]
        more = [f"{len(self) - _SHOWN} more"] if len(self) > _SHOWN else []
        changes = "; ".join([*shown, *more]) or "no flips"
        names = None if self._graph is None else self._graph.class_names
        name = f" ({names[self.class_]})" if names and names[self.class_] else ""
        return f"Witness(class_={self.class_}{name}, margin={self.margin:.6g}: {changes})"

    def _counted(self) -> str:
        """Such as `2 flips` or `1 flip and 1 deletion`."""
        parts = [(len(self.flips), "flip")] if self.flips or not self.edges else []
        parts += [(len(self.edges), "deletion")] if self.edges else []
        return " and ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in parts)

    def _first(self, count: int) -> Witness:
        """The first of its changes."""
        edges = self.edges[: max(0, count - len(self.flips))]
        return Witness(self.flips[:count], self.class_, self.margin, edges, self._graph)

    def __len__(self) -> int:
        return len(self.flips) + len(self.edges)

    def __bool__(self) -> bool:
        return True  # Also without flips, where another class is ahead as it is.

    def __iter__(self) -> Iterator[Flip]:
        return iter(self.flips)
