"""Which nodes to look at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._checks import instance
from ._matrices import plain
from .errors import InputError
from .graph import Graph
from .split import Nodes, Split, node_ids

PARTS = ("train", "labelled", "validation", "test", "unlabelled")


def chosen(graph: Graph, nodes: str | npt.ArrayLike, split: Split | None) -> Nodes:
    """The nodes that are meant: "all", a part of the split, names, ids, or a mask."""
    if split is not None:
        instance("split", split, Split, "Split.stratified(graph)")
        if split.nodes != graph.nodes:
            raise InputError(f"the split is one of {split.nodes} nodes, but the graph has {graph.nodes}")
    if isinstance(nodes, str):
        if nodes == "all":
            return np.arange(graph.nodes, dtype=np.uint32)
        if nodes in PARTS:
            if split is None:
                raise InputError(f"nodes={nodes!r} is a part of a split; give split=, too")
            return split.part(nodes)
        if not graph.node_names or nodes not in graph.node_names:
            raise InputError(
                f"there is no node called {nodes!r}, nor a part of a split; parts are {', '.join(PARTS)}, and all"
            )
        nodes = [nodes]
    array = plain(nodes)
    if array.dtype.kind in "US":
        array = np.array([graph.node(str(name)) for name in array.ravel()], dtype=np.int64)
    return node_ids(array, graph.nodes)
