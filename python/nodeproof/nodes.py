"""Which nodes to look at."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._checks import instance
from ._matrices import plain
from .errors import InputError
from .graph import Graph
from .split import Nodes, Split, node_ids

PARTS = ("train", "labelled", "validation", "test", "unlabelled")


def check_split(split: Any, graph: Graph) -> None:
    """Refuses what is no split of the graph."""
    instance("split", split, Split, "Split.stratified(graph)")
    if split.nodes != graph.nodes:
        raise InputError(f"the split is one of {split.nodes} nodes, but the graph has {graph.nodes}")


def chosen(graph: Graph, nodes: Any, split: Split | None, what: str = "nodes") -> Nodes:
    """The nodes that are meant: "all", a part of the split, names, ids, or a mask."""
    if split is not None:
        check_split(split, graph)
    if isinstance(nodes, str):
        if nodes == "all":
            return np.arange(graph.nodes, dtype=np.uint32)
        if nodes in PARTS:
            if split is None:
                raise InputError(f"{what}={nodes!r} is a part of a split; give split=, too")
            return split.part(nodes)
        if not graph.node_names or nodes not in graph.node_names:
            hint = _core.did_you_mean(nodes, [*PARTS, "all", *(graph.node_names or ())])
            raise InputError(
                f"there is no node called {nodes!r}, nor a part of a split; parts are {', '.join(PARTS)}, and all{hint}"
            )
        nodes = [nodes]
    array = plain(nodes)
    if array.dtype.kind in "US":
        # A list may have ids beside names, which NumPy makes text of.
        listed = nodes if isinstance(nodes, (list, tuple)) else array.ravel().tolist()
        array = np.array([graph.node(node) for node in listed], dtype=np.int64)
    return node_ids(array, graph.nodes)
