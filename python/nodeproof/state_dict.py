"""Layers of a `torch` state dict. Needs no `torch`: tensors are taken as arrays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ._matrices import check_numbers, plain
from .errors import InputError

#: How weights and biases of a layer may be called, behind the layer's own name.
_WEIGHTS_OF_MESSAGES = ("lin.weight", "lin_l.weight")
_WEIGHTS = (*_WEIGHTS_OF_MESSAGES, "weight")
_BIASES = ("lin.bias", "lin_l.bias", "bias")


def layers_of(
    state: Mapping[str, Any], propagation: Any
) -> tuple[list[npt.NDArray[np.float64]], list[npt.NDArray[np.float64] | None]]:
    """Weights (inputs × outputs) and biases of layers with this propagation."""
    if not isinstance(state, Mapping):
        raise InputError(
            f"a state dict maps names to tensors, which a {type(state).__name__} does not; give module.state_dict()"
        )
    layers: dict[str, dict[str, tuple[str, npt.NDArray[np.float64]]]] = {}
    for key, tensor in state.items():
        layer, part, name = _part(key)
        entry = layers.setdefault(layer, {})
        if part in entry:
            raise InputError(f"{key} and {entry[part][0]} are both the {part} of layer {layer!r}")
        array = plain(tensor, key)
        check_numbers(array.dtype, key)
        entry[part] = (name, array.astype(np.float64))
    _check_order(list(layers))
    _check_kinds(layers, propagation)
    weights: list[npt.NDArray[np.float64]] = []
    biases: list[npt.NDArray[np.float64] | None] = []
    for layer, entry in layers.items():
        if "weight" not in entry:
            raise InputError(f"layer {layer!r} has a bias but no weight")
        name, weight = entry["weight"]
        bias = entry["bias"][1] if "bias" in entry else None
        if weight.ndim != 2:
            raise InputError(f"the weight of layer {layer!r} has {weight.ndim} dimensions; it must have two")
        weights.append(weight.T if name != "weight" or _is_outputs_first(layer, weight, bias) else weight)
        biases.append(bias)
    return weights, biases


def _check_order(layers: list[str]) -> None:
    """Refuses layers that are numbered, and come in another order, as when names were sorted."""
    numbers = [[int(number) for number in re.findall(r"\d+", layer)] for layer in layers]
    alike = len({re.sub(r"\d+", "#", layer) for layer in layers}) == 1
    if alike and numbers != sorted(numbers):
        raise InputError(f"the layers come in the order {', '.join(layers)}; give them in the order of the network")


def _check_kinds(layers: Mapping[str, Mapping[str, tuple[str, Any]]], propagation: Any) -> None:
    """Refuses tensors of layers that pass no messages where a propagation is claimed, and the other way round."""
    for layer, entry in layers.items():
        name = entry["weight"][0] if "weight" in entry else None
        if name == "weight" and not _is_identity(propagation):
            raise InputError(
                f"the tensors of layer {layer!r} are called weight and bias, as those of a torch.nn.Linear are, which has no "
                "propagation; those of a GCNConv are called lin.weight and bias. If the layer is linear, give the propagation "
                "'identity'; if it is one of your own that passes messages, use nodeproof.from_pyg, or Model(weights, biases)"
            )
        if name in _WEIGHTS_OF_MESSAGES and _is_identity(propagation):
            raise InputError(
                f"the tensors of layer {layer!r} are those of a GCNConv or SAGEConv, which passes messages; 'identity' is the "
                "propagation of linear layers"
            )


def _is_identity(propagation: Any) -> bool:
    return isinstance(propagation, str) and propagation == "identity"


def _part(key: str) -> tuple[str, str, str]:
    if not isinstance(key, str):
        raise InputError(f"{key!r} is no name of a tensor; give module.state_dict()")
    for part, names in (("weight", _WEIGHTS), ("bias", _BIASES)):
        for name in names:
            if key == name or key.endswith(f".{name}"):
                layer = key[: -len(name)].rstrip(".")
                if not layer.rpartition(".")[2].startswith("lin_"):
                    return layer, part, name
    raise InputError(
        f"tensor {key!r} is neither a weight nor a bias of a layer `P x W + b`; a state dict is read if its layers are "
        "GCNConv, or SAGEConv without root weight. For other networks use nodeproof.from_pyg, which takes the module"
    )


def _is_outputs_first(layer: str, weight: npt.NDArray[np.float64], bias: npt.NDArray[np.float64] | None) -> bool:
    rows, columns = weight.shape
    if bias is None or bias.shape not in ((rows,), (columns,)) or rows == columns:
        raise InputError(
            f"the weight of layer {layer!r} has shape {rows} × {columns}, and its bias does not show whether that is inputs × "
            "outputs; use Model(weights, biases), which takes inputs × outputs"
        )
    return bool(bias.shape == (rows,))
