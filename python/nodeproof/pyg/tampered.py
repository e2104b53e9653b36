"""Data objects that were tampered with."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np

from .._optional import optional
from ..errors import InputError
from ..graph import Graph
from .convert import array_of, attributes_of


def tampered(
    data: Any,
    flips: Iterable[tuple[int, int, float]],
    graph: Graph | None = None,
    edges: Iterable[tuple[int, int]] = (),
) -> Any:
    """A copy of `data` whose `x` has these flips, and which has lost these edges, all else being shared.

    `graph` is what the flips are of, if that is known.
    """
    torch = optional("torch", "pyg", "apply()")
    flips, edges = list(flips), list(edges)
    if edges:
        data = _unlinked(data, edges)
    if not flips:
        return copy.copy(data)
    _check(data, flips, graph)
    x = data.x.detach().clone()
    if _are_values(flips, graph):
        for node, attribute, to in flips:
            x[node, attribute] = to
    else:
        bits, kind = _bits(data, graph)
        bits = bits.copy()
        for node, attribute, to in flips:
            if bits[node, attribute] == bool(to):
                raise InputError(_is_already(node, attribute, to))
            bits[node, attribute] = bool(to)
        for node in {node for node, _, _ in flips}:
            row = torch.as_tensor(bits[node], device=x.device).to(x.dtype)
            # What `NormalizeFeatures` makes of the row, in the same precision.
            x[node] = row / row.sum().clamp(min=1) if kind == "normalised-rows" else row
    made = copy.copy(data)
    made.x = x
    return made


def _unlinked(data: Any, edges: list[tuple[int, int]]) -> Any:
    """A copy of `data` without these edges, in both directions, and what it says of each."""
    torch = optional("torch", "pyg", "apply()")
    if getattr(data, "edge_index", None) is None:
        raise InputError("the witness deletes edges, and the data have no edge_index; apply it to the graph")
    ends = torch.sort(data.edge_index, dim=0).values
    is_deleted = torch.zeros(ends.shape[1], dtype=torch.bool, device=ends.device)
    for a, b in edges:
        found = (ends[0] == a) & (ends[1] == b)
        if not bool(found.any()):
            raise InputError(f"the data have no edge between node {a} and node {b}; is the witness one of other data?")
        is_deleted |= found
    made = copy.copy(data)
    for name in ("edge_weight", "edge_attr"):
        if getattr(data, name, None) is not None:
            setattr(made, name, getattr(data, name)[~is_deleted])
    made.edge_index = data.edge_index[:, ~is_deleted]
    return made


def _check(data: Any, flips: list[tuple[int, int, float]], graph: Graph | None) -> None:
    """Refuses data that the flips are not of."""
    x = array_of(data.x, "x")
    if x.ndim != 2:
        raise InputError(f"x has shape {x.shape}; it must be nodes × attributes")
    if graph is not None and x.shape != (graph.nodes, graph.attribute_count):
        raise InputError(
            f"x has shape {x.shape}, but the witness is one of {graph.nodes} nodes × {graph.attribute_count} attributes"
        )
    for node, attribute, to in flips:
        if not (0 <= node < x.shape[0] and 0 <= attribute < x.shape[1]):
            raise InputError(f"x has no attribute {attribute} of node {node}; is the witness one of other data?")
        if _are_values(flips, graph) and x[node, attribute] == to:
            raise InputError(_is_already(node, attribute, to))


def _is_already(node: int, attribute: int, to: float) -> str:
    return f"attribute {attribute} of node {node} cannot become {to}: it is that already; is the witness one of other data?"


def _are_values(flips: list[tuple[int, int, float]], graph: Graph | None) -> bool:
    """Whether the flips set real values."""
    return any(to not in (0, 1) for _, _, to in flips) if graph is None else graph.kind == "real-values"


def _bits(data: Any, graph: Graph | None) -> tuple[Any, str]:
    """The bits of `x`, and whether it has them as they are or divided."""
    try:
        bits, kind = attributes_of(data, binarise=False, real_values=False)
    except InputError as error:
        hint = ", and counts others as 0 or 1 (binarise)" if graph is not None and graph.binarised else ""
        raise InputError(
            f"the witness is about attributes that are 0 and 1{hint}, and x has others ({error}); apply it to the graph"
        ) from None
    return np.asarray(bits, dtype=bool), kind
