"""Witnesses: flips that change a prediction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from . import _core
from .graph import Graph


class Flip(NamedTuple):
    """Attribute `attribute` of node `node` becomes `to`: 0 or 1, or any number where attributes are real values."""

    node: int
    attribute: int
    to: float

    def in_words(self, graph: Graph, target: int | None = None) -> str:
        """Such as `add “bayesian” to A perceptron revisited (node 9), the node itself`, where node 9 is the `target`."""
        return _core.flip_in_words(graph._core, self, target)


@dataclass(frozen=True)
class Witness:
    """Flips that change a prediction, the class that overtakes, and the margin over it.

    The margin is `logit − logit of class_` under the flips, rounded up, so that a negative one is negative in exact
    arithmetic; 0 stands for a tie, and for what is too close to 0 for a double.
    """

    flips: tuple[Flip, ...]
    class_: int
    margin: float

    def __len__(self) -> int:
        return len(self.flips)

    def __bool__(self) -> bool:
        return True  # Also without flips, where another class is ahead as it is.

    def __iter__(self) -> Iterator[Flip]:
        return iter(self.flips)
