"""The module that models become in PyTorch Geometric. Importing this imports `torch`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.nn import GCNConv


class GCN(torch.nn.Module):  # type: ignore[misc]
    """`GCNConv` layers with ReLUs between: logits, nodes × classes."""

    def __init__(self, sizes: Sequence[int], *, normalise: bool = True, dtype: Any = None) -> None:
        super().__init__()
        pairs = pairwise(sizes)
        self.convs = torch.nn.ModuleList(GCNConv(inputs, outputs, normalize=normalise) for inputs, outputs in pairs)
        self.to(dtype or torch.get_default_dtype())

    @classmethod
    def of(
        cls,
        weights: Sequence[npt.NDArray[np.float64]],
        biases: Sequence[npt.NDArray[np.float64]],
        *,
        normalise: bool,
        dtype: Any = None,
    ) -> GCN:
        """A module with these weights, inputs × outputs, and biases."""
        module = cls([len(weights[0]), *map(len, biases)], normalise=normalise, dtype=dtype)
        with torch.no_grad():
            for conv, weight, bias in zip(module.convs, weights, biases, strict=True):
                conv.lin.weight.copy_(torch.tensor(weight.T))
                conv.bias.copy_(torch.tensor(bias))
        module.eval()
        return module

    def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Any:
        """Logits of all nodes."""
        for conv in self.convs[:-1]:
            x = conv(x, edge_index, edge_weight).relu()
        return self.convs[-1](x, edge_index, edge_weight)
