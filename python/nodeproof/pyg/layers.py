"""Layers of the form `P x W + b`: which they are, and what P, W and b are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._optional import optional
from ..errors import VerificationError
from ..model import Model
from .trace import Label, Probes


@dataclass
class Call:
    """One call of a layer: what it was given, what it gave back, and which edges it sent messages along."""

    name: str
    layer: Any
    x: Any
    #: What `x` is; `None` if nothing that depends on the attributes.
    label: Label | None
    #: Random numbers and zeros in place of `x`.
    probes: Probes
    edges: list[tuple[Any, Any]]
    output: Any = None
    #: What became of the probes.
    probes_output: Probes = ()


def check_kind(name: str, layer: Any) -> None:
    """Refuses layers that are not of the form `P x W + b`."""
    from torch_geometric.nn import GCNConv, SAGEConv, SGConv
    from torch_geometric.nn.aggr import MeanAggregation, SumAggregation

    name, kind = f"layer {name!r}", type(layer)
    if kind not in (GCNConv, SGConv, SAGEConv):
        raise VerificationError(
            f"{name} is a {kind.__name__}, which is not of the form P x W + b with P ≥ 0 that nodeproof certifies; it knows "
            "GCNConv, SGConv, and SAGEConv with aggr='mean' and root_weight=False"
        )
    allowed, aggregation = ("mean", MeanAggregation) if kind is SAGEConv else ("add", SumAggregation)
    if layer.aggr != allowed and (layer.aggr, allowed) != ("sum", "add"):
        raise VerificationError(f"{name} aggregates by {layer.aggr!r}; a {kind.__name__} must do so by {allowed!r}")
    if type(layer.aggr_module) is not aggregation:
        raise VerificationError(
            f"{name} aggregates by a {type(layer.aggr_module).__name__}, not by a {aggregation.__name__}"
        )
    if kind is SAGEConv:
        for option, problem in (
            ("root_weight", "adds a second product, x W_r, to P x W; make it with root_weight=False"),
            ("project", "projects its input first; make it with project=False"),
            ("normalize", "normalises its output, which is no linear function; make it with normalize=False"),
        ):
            if getattr(layer, option):
                raise VerificationError(f"{name}, a SAGEConv, {problem}")
    if kind is SGConv and layer.cached:
        raise VerificationError(f"{name}, an SGConv with cached=True, would not see any change of x; set cached=False")
    if kind is SGConv and layer.K < 1:
        raise VerificationError(f"{name}, an SGConv with K={layer.K}, passes no messages; set K to 1 or more")
    _check_linear(name, linear_of(layer))


def check_call(call: Call) -> None:
    """Refuses calls of such layers that are not made in the usual way."""
    torch = optional("torch", "pyg", "from_pyg()")
    from torch_geometric.nn import SGConv

    name = f"layer {call.name!r}"
    if not isinstance(call.x, torch.Tensor) or not isinstance(call.output, torch.Tensor):
        raise VerificationError(f"{name} is given something else than one matrix of attributes")
    if len(call.edges) != (call.layer.K if isinstance(call.layer, SGConv) else 1):
        raise VerificationError(f"{name} passes messages {len(call.edges)} times, which is unexpected")
    check_dense(call.name, [edges for edges, _ in call.edges])


def check_dense(name: str, given: list[Any]) -> None:
    """Refuses edges in the form of sparse matrices."""
    for argument in given:
        if "Sparse" in type(argument).__name__ or str(getattr(argument, "layout", "torch.strided")) != "torch.strided":
            raise VerificationError(f"layer {name!r} is given a sparse adjacency; give edge_index, 2 × E")


def _check_linear(name: str, linear: Any) -> None:
    """Refuses what is put in place of the product with W."""
    torch = optional("torch", "pyg", "from_pyg()")
    from torch.nn.utils.parametrize import type_before_parametrizations
    from torch_geometric.nn.dense import Linear

    kind = type_before_parametrizations(linear)
    if kind not in (Linear, torch.nn.Linear):
        raise VerificationError(f"{name} multiplies by a {kind.__name__}, which is not the Linear that it is made with")


def linear_of(layer: Any) -> Any:
    """What multiplies by W."""
    from torch_geometric.nn import SAGEConv

    return layer.lin_l if isinstance(layer, SAGEConv) else layer.lin


def model_of(calls: list[Call], nodes: int) -> Model:
    """The model of what was seen; all layers must have one propagation."""
    from torch_geometric.nn import GCNConv

    weights, biases = [], []
    propagation = propagation_of(calls[0], nodes)
    for call in calls:
        linear = linear_of(call.layer)
        bias = call.layer.bias if isinstance(call.layer, GCNConv) else linear.bias
        weights.append(linear.weight.detach().double().numpy().T)
        biases.append(None if bias is None else bias.detach().double().numpy())
        if (propagation_of(call, nodes) != propagation).nnz:
            raise VerificationError(
                f"layer {call.name!r} has another propagation than layer {calls[0].name!r}; nodeproof certifies networks "
                "whose layers share one"
            )
    return Model(weights, biases, propagation)


def propagation_of(call: Call, nodes: int) -> Any:
    """P of one layer, N × N, from the edges along which it sent messages: row m has the weights of what m receives."""
    import scipy.sparse
    from torch_geometric.nn import SAGEConv, SGConv

    sources, targets, values = _messages(call)
    # Entries of the same place are summed, as messages are.
    matrix = scipy.sparse.csr_matrix((values, (targets, sources)), shape=(nodes, nodes))
    if isinstance(call.layer, SAGEConv):
        received = np.bincount(targets, minlength=nodes)
        matrix = scipy.sparse.csr_matrix(
            (matrix.data / np.repeat(received, np.diff(matrix.indptr)), matrix.indices, matrix.indptr),
            shape=matrix.shape,
        )
    power = matrix
    for _ in range(call.layer.K - 1 if isinstance(call.layer, SGConv) else 0):
        power = matrix @ power
    power.sum_duplicates()
    return power


def _messages(call: Call) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Who sends to whom, and with what weight."""
    edges, weight = call.edges[0]
    sources, targets = edges.detach().numpy()
    if call.layer.flow == "target_to_source":
        sources, targets = targets, sources
    values = np.ones(len(sources)) if weight is None else weight.detach().double().numpy().ravel()
    for place in np.flatnonzero(~(np.isfinite(values) & (values >= 0)))[:1]:
        raise VerificationError(
            f"layer {call.name!r} takes node {sources[place]} into node {targets[place]} with weight {values[place]}; "
            "certificates need finite weights ≥ 0"
        )
    return sources, targets, values
