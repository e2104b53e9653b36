"""Splits: nodes for training, validation and test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._checks import instance, kind_of, whole
from ._files import StrPath, destination, existing
from ._given import Default
from ._matrices import plain
from .errors import InputError
from .graph import Graph

#: Defaults that can be told from what was given.
TRAIN: Any = Default("10%")
VALIDATION: Any = Default("0%")
UNSET: Any = Default(None)

Share = float | str
Nodes = npt.NDArray[np.uint32]


class Split:
    """Nodes for training, validation and test; together every node of the graph, each once.

    Args:
        graph: the graph, or its number of nodes.
        train: ids of the labelled nodes, or a mask.
        validation: ids of the nodes held back, or a mask; all others are for test.

    >>> split = Split(5, train=[0, 1], validation=[4])
    >>> split
    Split(train=2, validation=1, test=2)
    >>> split.part("unlabelled")
    array([2, 3, 4], dtype=uint32)
    """

    __slots__ = ("_core",)

    def __init__(self, graph: Graph | int, train: npt.ArrayLike, validation: npt.ArrayLike = ()) -> None:
        if not isinstance(graph, Graph):
            graph = whole("graph", graph, most=2**32 - 1)
        nodes = graph if isinstance(graph, int) else graph.nodes
        self._core = _core.Split.of_nodes(nodes, node_ids(train, nodes), node_ids(validation, nodes), None)

    @classmethod
    def _of(cls, made: _core.Split) -> Split:
        split = cls.__new__(cls)
        split._core = made
        return split

    @classmethod
    def stratified(
        cls,
        graph: Graph,
        *,
        train: Share = TRAIN,
        train_per_class: int | None = UNSET,
        validation: Share = VALIDATION,
        validation_per_class: int | None = UNSET,
        seed: int = 0,
    ) -> Split:
        """Draws the same share, or the same number, of nodes of each class; all others are for test.

        Shares are numbers such as 0.1 or text such as "10%". The same graph, sizes and seed give the same split
        everywhere.

        >>> Split.stratified(Graph.bundled(), train="10%", seed=7)
        Split(train=331, validation=0, test=2973, seed=7)
        """
        instance("graph", graph, Graph, "Graph.bundled()")
        of_train = _size("train", train, train_per_class)
        of_validation = _size("validation", validation, validation_per_class)
        return cls._of(_core.Split.stratified(graph._core, of_train, of_validation, whole("seed", seed)))

    @classmethod
    def from_pyg(cls, data: Any) -> Split:
        """The split of a PyTorch Geometric `Data` object: its `train_mask` and, if it is there, its `val_mask`."""
        from .pyg import split_of

        return split_of(data)

    @classmethod
    def read(cls, path: StrPath, graph: Graph) -> Split:
        """Reads a split for `graph`: JSON, or an `.npz` with `idx_train` and `idx_val`."""
        return cls._of(_core.Split.read(existing(path), graph.nodes))

    def write(self, path: StrPath) -> None:
        """Writes JSON."""
        self._core.write(destination(path, "splits", "json"))

    def part(self, name: str) -> Nodes:
        """The nodes of a part, ascending: `train` (or `labelled`), `validation`, `test`, `unlabelled` (all but train)."""
        return self._core.part(name)

    @property
    def train(self) -> Nodes:
        """The labelled nodes."""
        return self.part("train")

    @property
    def validation(self) -> Nodes:
        """The nodes held back to judge when to stop."""
        return self.part("validation")

    @property
    def test(self) -> Nodes:
        """All other nodes."""
        return self.part("test")

    @property
    def unlabelled(self) -> Nodes:
        """All nodes but those of `train`."""
        return self.part("unlabelled")

    @property
    def seed(self) -> int | None:
        """The seed that it was drawn with, if it was drawn here."""
        return self._core.seed

    @property
    def nodes(self) -> int:
        """Number of nodes of the graph."""
        return self._core.nodes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Split):
            return NotImplemented
        # The seed says where the nodes come from, not which they are.
        return self.nodes == other.nodes and all(
            np.array_equal(self.part(part), other.part(part)) for part in ("train", "validation")
        )

    def __hash__(self) -> int:
        return hash((self.train.tobytes(), self.validation.tobytes(), self.nodes))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{part}={len(self.part(part))}" for part in ("train", "validation", "test"))
        return f"Split({sizes}{'' if self.seed is None else f', seed={self.seed}'})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.nodes, self.train, self.validation, self.seed)


def _unpickled(nodes: int, train: Nodes, validation: Nodes, seed: int | None) -> Split:
    return Split._of(_core.Split.of_nodes(nodes, train, validation, seed))


def _size(name: str, share_: Any, per_class: Any) -> float | int:
    """The share, or the number, of nodes of each class; an error if both were given."""
    count = per_class.value if isinstance(per_class, Default) else per_class
    if count is None:
        return share(name, share_.value if isinstance(share_, Default) else share_)
    if not isinstance(share_, Default):
        raise InputError(f"{name} is a share, and {name}_per_class a number, of nodes of each class; give one of them")
    return whole(f"{name}_per_class", count)


def share(name: str, value: Share) -> float:
    """A share between 0 and 1, given as a number or in per cent."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = float(value[:-1]) / 100 if isinstance(value, str) and value.endswith("%") else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not 0 <= number <= 1:
        raise InputError(
            f"{name}={value!r} is no share of each class; give a number from 0 to 1, or text such as '10%'"
        )
    return number


def node_ids(nodes: npt.ArrayLike | Iterable[int], count: int) -> Nodes:
    """Ids of nodes of a graph with `count` nodes, from ids or a mask; a node given twice counts once."""
    array = plain(nodes)
    if array.dtype == np.bool_:
        if array.shape != (count,):
            raise InputError(f"a mask of nodes has shape {array.shape}, but the graph has {count} nodes")
        return np.flatnonzero(array).astype(np.uint32)
    if array.size == 0:
        return np.zeros(0, dtype=np.uint32)
    if array.dtype.kind in "iu" and array.shape == (count,) and count > 2 and array.min() >= 0 and array.max() <= 1:
        raise InputError("nodes are a mask of integers; give truth values, mask.astype(bool) or mask.bool()")
    if array.dtype.kind not in "iu":
        odd = [value for value in array.flat if not isinstance(value, int)] if array.dtype == object else []
        given = kind_of(odd[0]) if odd else array.dtype
        raise InputError(f"nodes are given by integer ids or a mask of truth values, not by {given}")
    if array.ndim > 1:
        raise InputError(f"nodes must be a list of ids, but have shape {array.shape}")
    array = np.atleast_1d(array)
    outside = array[(array < 0) | (array >= count)]
    if outside.size:
        raise InputError(f"node {outside[0]} does not exist: the graph has {count} nodes, numbered from 0")
    _, first = np.unique(array, return_index=True)
    return array[np.sort(first)].astype(np.uint32)
