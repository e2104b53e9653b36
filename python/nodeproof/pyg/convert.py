"""Data objects as graphs and splits, models as modules, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._checks import instance
from .._matrices import plain
from .._optional import optional, pytorch
from ..errors import InputError
from ..graph import Graph
from ..model import Model
from ..nodes import check_split
from ..split import Split


def to_pyg(graph: Graph, model: Model, *, split: Split | None = None, dtype: Any = None) -> tuple[Any, Any]:
    """A PyTorch Geometric module with the weights of `model`, and the `Data` object to call it on.

    `module(data.x, data.edge_index, data.edge_weight)` are the logits; where `data` has no `edge_weight`, leave it out.
    """
    torch = optional("torch", "pyg", "to_pyg()")
    instance("graph", graph, Graph, "Graph.bundled()")
    instance("model", model, Model, "train(graph, ...).model")
    module, data = module_of(model, dtype), data_of(graph, split)
    if model.propagation != "symmetric-gcn":
        entries = model.propagation_on(graph).tocoo()
        data.edge_index = torch.tensor(np.stack([entries.col, entries.row]), dtype=torch.int64)
        data.edge_weight = torch.tensor(entries.data, dtype=float_type(module))
    data.x = data.x.to(float_type(module))
    if data.edge_weight is not None:
        data.edge_weight = data.edge_weight.to(float_type(module))
    return module, data


def module_of(model: Model, dtype: Any = None) -> Any:
    """See `Model.to_pyg`."""
    optional("torch_geometric", "pyg", "to_pyg()")
    from .module import GCN

    if not model.is_gcn:
        raise InputError(
            "to_pyg() makes a module of GCNConv layers, and the model is no plain graph convolutional network; model.layers "
            "has its terms, weights and biases"
        )
    return GCN.of(model.weights, model.biases, normalise=model.propagation == "symmetric-gcn", dtype=dtype)


def data_of(graph: Graph, split: Split | None = None) -> Any:
    """See `Graph.to_pyg`. A self-loop has weight 2, as it counts in nodeproof's propagation."""
    torch = optional("torch", "pyg", "to_pyg()")
    geometric = optional("torch_geometric.data", "pyg", "to_pyg()")
    if split is not None:
        check_split(split, graph)
    adjacency = graph.adjacency.tocoo()
    data = geometric.Data(
        x=torch.tensor(read_of(_dense(graph.attributes), graph.kind), dtype=torch.get_default_dtype()),
        edge_index=torch.tensor(np.stack([adjacency.col, adjacency.row]), dtype=torch.int64),
    )
    loops = adjacency.row == adjacency.col
    data.edge_weight = torch.tensor(1.0 + loops, dtype=torch.get_default_dtype()) if loops.any() else None
    if graph.labels is not None:
        data.y = torch.tensor(graph.labels)
    if split is not None:
        for name, part in (("train_mask", "train"), ("val_mask", "validation"), ("test_mask", "test")):
            mask = torch.zeros(graph.nodes, dtype=torch.bool)
            mask[split.part(part).astype(np.int64)] = True
            data[name] = mask
    return data


def _dense(attributes: Any) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = attributes.toarray() if hasattr(attributes, "toarray") else attributes
    return values


def graph_of(data: Any, *, binarise: bool = False, real_values: bool = False, **options: Any) -> Graph:
    """See `Graph.from_pyg`."""
    x, kind = attributes_of(data, binarise, real_values)
    options = {"normalise_rows": kind == "normalised-rows", "real_values": real_values} | options
    return Graph.from_edges(edges_of(data), x, labels_of(data), **options)


def split_of(data: Any) -> Split:
    """See `Split.from_pyg`."""
    masks = []
    for name in ("train_mask", "val_mask"):
        mask = getattr(data, name, None)
        if mask is None:
            if name == "train_mask":
                raise InputError("the data have no train_mask; make a split with Split(graph, train=...)")
            continue
        mask = array_of(mask, name)
        if mask.ndim != 1:
            raise InputError(
                f"{name} has shape {mask.shape}, several splits; choose one: Split(graph, data.{name}[:, 0])"
            )
        masks.append(mask.astype(bool))
    return Split(len(masks[0]), *masks)


def attributes_of(data: Any, binarise: bool, real_values: bool) -> tuple[npt.NDArray[Any], str]:
    """The attributes `x` as truth values or as numbers, nodes × attributes, and their kind (`Graph.kind`)."""
    x = getattr(data, "x", None)
    if x is None:
        raise InputError("the data have no attributes x; nodeproof certifies against changes of attributes")
    values = array_of(x, "x")
    if values.ndim != 2:
        raise InputError(f"x has shape {values.shape}; it must be nodes × attributes")
    odd = ~np.isfinite(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
    divided = not binarise and not real_values and not odd.any() and _are_divided(values)
    if not binarise and not real_values and not divided:
        odd |= (values != 0) & (values != 1)
    if odd.any():
        node, attribute = np.argwhere(odd)[0]
        value = values[node, attribute]
        if not np.isfinite(value):
            raise InputError(f"attribute {attribute} of node {node} is {value}; replace it by a finite number")
        raise InputError(
            f"attribute {attribute} of node {node} is {value}, and not 0 or 1, or that divided by the number of ones in its "
            "row (NormalizeFeatures); pass real_values=True to certify against an attacker who sets attributes to other values"
        )
    if real_values:
        return values.astype(np.float64), "real-values"
    positive: npt.NDArray[np.bool_] = values > 0
    return positive, "normalised-rows" if divided else "bits"


def read_of(bits: npt.NDArray[Any], kind: str) -> npt.NDArray[Any]:
    """What networks read of attributes of this kind, nodes × attributes."""
    return bits if kind != "normalised-rows" else bits / np.maximum(1, bits.sum(axis=1, keepdims=True, dtype=np.int64))


def _are_divided(values: npt.NDArray[Any]) -> bool:
    """Whether these are bits divided by the number of ones in their row, up to rounding, and not all bits."""
    if values.dtype.kind != "f" or not ((values != 0) & (values != 1)).any():
        return False
    exact = read_of(values != 0, "normalised-rows")
    unit = float(np.finfo(values.dtype).eps)
    return bool((np.abs(values - exact) <= max(unit, float(np.finfo(np.float32).eps)) * exact).all())


def edges_of(data: Any) -> npt.NDArray[Any]:
    """The edges `edge_index`, 2 × E, or those of the sparse tensor `adj_t`, whose rows receive."""
    edges = getattr(data, "edge_index", None)
    if edges is not None:
        return array_of(edges, "edge_index")
    received = getattr(data, "adj_t", None)
    if received is None:
        raise InputError("the data have no edge_index, and no adj_t")
    if not hasattr(received, "to_sparse_coo"):
        raise InputError(
            f"adj_t is a {type(received).__name__}; give a sparse tensor of PyTorch (adj_t.to_torch_sparse_csr_tensor()), or "
            "edge_index"
        )
    targets, sources = received.detach().cpu().to_sparse_coo().coalesce().indices().numpy()
    return np.stack([sources, targets])


def labels_of(data: Any) -> npt.NDArray[Any] | None:
    """The labels `y`, one a node, if there are any."""
    y = getattr(data, "y", None)
    if y is None:
        return None
    labels = array_of(y, "y")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(f"y has shape {labels.shape}; nodeproof certifies one class a node")
    return labels


def array_of(tensor: Any, name: str) -> npt.NDArray[Any]:
    """A dense tensor as an array; what NumPy has no type for, such as bfloat16, in double precision."""
    if not hasattr(tensor, "detach"):
        problem = "is sparse; give data with to_dense()" if "Sparse" in type(tensor).__name__ else "is no tensor"
        raise InputError(f"{name} {problem}")
    return plain(tensor, name)


def float_type(module: Any) -> Any:
    """The type of the module's numbers."""
    torch = pytorch()
    for parameter in module.parameters():
        if parameter.is_floating_point():
            return parameter.dtype
    return torch.get_default_dtype()
