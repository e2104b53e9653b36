"""Layers of a `torch` state dict. Needs no `torch`: tensors are taken as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InputError

#: How weights and biases of a layer may be called, behind the layer's own name.
_WEIGHTS = ("lin.weight", "lin_l.weight", "weight")
_BIASES = ("lin.bias", "lin_l.bias", "bias")


def layers_of(
    state: Mapping[str, Any],
) -> tuple[list[npt.NDArray[np.float64]], list[npt.NDArray[np.float64] | None], str | None]:
    """Weights (inputs × outputs), biases, and the propagation that goes without saying, if there is one."""
    layers: dict[str, dict[str, tuple[str, npt.NDArray[np.float64]]]] = {}
    for key, tensor in state.items():
        layer, part, name = _part(key)
        entry = layers.setdefault(layer, {})
        if part in entry:
            raise InputError(f"{key} and {entry[part][0]} are both the {part} of layer {layer!r}")
        array = tensor.detach().cpu().double().numpy() if hasattr(tensor, "detach") else np.asarray(tensor, np.float64)
        entry[part] = (name, array)
    weights, biases = [], []
    gcn = bool(layers)
    for layer, entry in layers.items():
        if "weight" not in entry:
            raise InputError(f"layer {layer!r} has a bias but no weight")
        name, weight = entry["weight"]
        bias = entry["bias"][1] if "bias" in entry else None
        if weight.ndim != 2:
            raise InputError(f"the weight of layer {layer!r} has {weight.ndim} dimensions; it must have two")
        weights.append(weight.T if name != "weight" or _is_outputs_first(layer, weight, bias) else weight)
        biases.append(bias)
        # A GCNConv keeps its bias beside `lin`, not in it; SGConv and plain linear layers do otherwise.
        gcn = gcn and layer != "" and name == "lin.weight" and entry.get("bias", ("bias",))[0] == "bias"
    return weights, biases, "symmetric-gcn" if gcn else None


def _part(key: str) -> tuple[str, str, str]:
    for part, names in (("weight", _WEIGHTS), ("bias", _BIASES)):
        for name in names:
            if key == name or key.endswith(f".{name}"):
                layer = key[: -len(name)].rstrip(".")
                if not layer.rpartition(".")[2].startswith("lin_"):
                    return layer, part, name
    raise InputError(
        f"tensor {key!r} is neither a weight nor a bias of a layer `P x W + b`; nodeproof knows GCNConv layers, and SAGEConv "
        "without root weight"
    )


def _is_outputs_first(layer: str, weight: npt.NDArray[np.float64], bias: npt.NDArray[np.float64] | None) -> bool:
    rows, columns = weight.shape
    if bias is None or bias.shape not in ((rows,), (columns,)) or rows == columns:
        raise InputError(
            f"the weight of layer {layer!r} has shape {rows} × {columns}, and its bias does not tell whether that is inputs × "
            "outputs; use Model(weights, biases), which takes inputs × outputs"
        )
    return bool(bias.shape == (rows,))
