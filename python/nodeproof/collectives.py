"""What one attacker does to all predictions together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from . import _core
from ._checks import instance, several, whole
from ._files import StrPath, existing
from ._progress import Progress, observer
from .budget import Count
from .figure import Figure, look
from .graph import Graph
from .model import Model
from .results import Radii, check_graph, write_lines
from .witness import Flip, Witness


@dataclass(frozen=True, eq=False)
class Collective:
    """How many predictions one set of flips changes at most, and an attack that changes some.

    A prediction is changed if its class is level with another or below, with flips or without.
    """

    global_budget: int
    #: Predictions that count.
    predictions: int
    #: At most so many change.
    at_most: int
    #: The same, as far as radii and what nodes see tell.
    by_radii: int
    #: Predictions that are not proven to hold if all flips are for them.
    alone: int
    #: The attack.
    flips: tuple[Flip, ...]
    #: The nodes whose predictions it changes, ascending.
    changed: npt.NDArray[np.int64]
    _graph: Graph = field(repr=False)
    _core: _core.Collectives = field(repr=False)

    @property
    def at_least(self) -> int:
        """So many change under the attack."""
        return len(self.changed)

    @property
    def exact(self) -> bool:
        """Whether the attack changes as many as any can."""
        return self.at_least == self.at_most

    @overload
    def apply(self, to: Graph) -> Graph: ...
    @overload
    def apply(self, to: Any) -> Any: ...
    def apply(self, to: Any) -> Any:
        """A `Graph`, or a `Data` object of PyTorch Geometric, under the attack; as `Witness.apply`."""
        return Witness(self.flips, -1, 0.0, (), self._graph).apply(to)

    def in_words(self) -> list[str]:
        """The flips of the attack, one a line."""
        return [flip.in_words(self._graph) for flip in self.flips]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._core.lines(), self._graph, 0)

    def __repr__(self) -> str:
        found = "an attack changes as many" if self.exact else f"an attack changes {self.at_least}"
        return f"Collective(global_budget={self.global_budget}: at most {self.at_most} of {self.predictions} change, {found})"


class Collectives(Sequence[Collective]):
    """Answers under several global budgets, ascending."""

    def __init__(self, core: _core.Collectives, graph: Graph) -> None:
        self._core, self._graph = core, graph
        self._answers = [_answer(core.one(place), graph) for place in range(len(core))]

    @classmethod
    def read(cls, path: StrPath, graph: Graph) -> Collectives:
        """Reads what `write` or `nodeproof collective --out` wrote, and checks that it is about `graph`."""
        instance("graph", graph, Graph, "Graph.read('graph.npz')")
        path = existing(path)
        core = _core.Collectives.read(path)
        check_graph(path, core.graph_fingerprint, graph)
        return cls(core, graph)

    def write(self, path: StrPath) -> None:
        """Writes JSON Lines, as the command line does (`docs/formats.md`), compressed to a `.gz`."""
        write_lines(path, self._core.lines())

    def check(
        self, model: Model, radii: Radii | None = None, *, threads: int = 0, progress: Progress = None
    ) -> dict[int, str]:
        """Adds bounds up anew and tries attacks, by a program that has none of the engines' code, as `nodeproof check` does.

        Global budgets whose answers are rejected come back with the reason; if there are none, all is right. Give the `radii`
        that the answers rest on, found with `proofs=True`: some nodes may need a proof of what they withstand.
        """
        instance("model", model, Model, "Model.read('model.safetensors')")
        if radii is not None:
            instance("radii", radii, Radii, "nodeproof.radius(graph, model, proofs=True)")
        known = None if radii is None else radii._core
        with observer(progress, "check") as tell:
            return self._core.check(self._graph._core, model._core, known, whole("threads", threads), tell)

    def plot(self, *, title: str | None = None, width: float = 84, height: float = 58) -> Figure:
        """Which share of the predictions changes at most, and under an attack, against the global budget.

        Dashed, beside them, is what single certificates would say, added up. Width and height are in millimetres.
        """
        return Figure(_core.plot_collective(self._core, look(title, width, height)))

    @overload
    def __getitem__(self, place: int) -> Collective: ...
    @overload
    def __getitem__(self, place: slice) -> list[Collective]: ...
    def __getitem__(self, place: int | slice) -> Collective | list[Collective]:
        return self._answers[place]

    def __len__(self) -> int:
        return len(self._answers)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Collectives):
            return NotImplemented
        return bool(self._core.lines() == other._core.lines())

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._core.lines(), self._graph, None)

    def __repr__(self) -> str:
        return f"Collectives({self._answers!r})"


def _unpickled(lines: bytes, graph: Graph, place: int | None) -> Collective | Collectives:
    found = Collectives(_core.Collectives.of_lines(lines), graph)
    return found if place is None else found[place]


@overload
def collective(
    graph: Graph, model: Model, radii: Radii, global_budget: Count, *, threads: int = 0, progress: Progress = None
) -> Collective: ...
@overload
def collective(
    graph: Graph,
    model: Model,
    radii: Radii,
    global_budget: Iterable[Count],
    *,
    threads: int = 0,
    progress: Progress = None,
) -> Collectives: ...
def collective(
    graph: Graph,
    model: Model,
    radii: Radii,
    global_budget: Count | Iterable[Count],
    *,
    threads: int = 0,
    progress: Progress = None,
) -> Collective | Collectives:
    """Bounds how many predictions one set of flips changes, made anywhere in the graph: `nodeproof collective`.

    The predictions that count, and all limits of flips but their number, are those of `radii`, which are best known up to the
    largest budget. Of several global budgets there is an answer for each, in ascending order; `plot` draws them, and
    `nodeproof.report` shows them beside certificates and radii.

    >>> import nodeproof
    >>> graph = nodeproof.Graph([[0, 1, 0], [1, 0, 0], [0, 0, 0]], [[1, 0], [1, 0], [1, 0]])
    >>> model = nodeproof.Model([[[2.0, 0.0], [0.0, 1.0]]])
    >>> radii = nodeproof.radius(graph, model, local_budget=2)
    >>> nodeproof.collective(graph, model, radii, [1, 2])
    Collectives([Collective(global_budget=1: at most 1 of 3 change, an attack changes as many), \
Collective(global_budget=2: at most 2 of 3 change, an attack changes as many)])
    """
    instance("graph", graph, Graph, "Graph.read('graph.npz')")
    instance("model", model, Model, "Model.read('model.safetensors')")
    instance("radii", radii, Radii, "nodeproof.radius(graph, model)")
    model._check_made_for(graph)
    one = isinstance(global_budget, int | np.integer)
    budgets = sorted(several("global_budget", [global_budget] if one else global_budget))
    with observer(progress, "collective") as tell:
        found = _core.collective(graph._core, model._core, radii._core, budgets, whole("threads", threads), tell)
    answers = Collectives(found, graph)
    return answers[0] if one else answers


def _answer(core: _core.Collectives, graph: Graph) -> Collective:
    ((budget, counts, flips, changed),) = core.answers()
    predictions, at_most, by_radii, alone = counts
    nodes = np.array(changed, dtype=np.int64)
    nodes.flags.writeable = False
    made = tuple(Flip(node, attribute, int(to) if to in (0, 1) else to) for node, attribute, to in flips)
    return Collective(budget, predictions, at_most, by_radii, alone, made, nodes, graph, core)
