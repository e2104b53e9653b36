"""A model on any numbers in place of attributes, by NumPy: a second implementation to hold modules against."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from ..graph import Graph
from ..model import Model

Floats = npt.NDArray[np.float64]


class Evaluator:
    """Computes `Zⁱ = Σ_k P_k h_k W_k + bⁱ` on one graph."""

    def __init__(self, model: Model, graph: Graph) -> None:
        self._layers = model.layers
        self._matrices = [model.propagation_on(graph, place) for place in range(len(model.propagations))]
        self._nodes = graph.nodes

    def logits(self, x: npt.NDArray[Any]) -> Floats:
        """The last Z, nodes × classes, for the attributes `x`, nodes × attributes."""
        attributes = scipy.sparse.csr_matrix(x, dtype=np.float64) if x.dtype == bool else x.astype(np.float64)
        known: dict[str | int, Any] = {"attributes": attributes, "ones": np.ones((self._nodes, 1))}
        for place, layer in enumerate(self._layers):
            z = np.zeros((self._nodes, len(layer.bias))) + layer.bias
            for term in layer.terms:
                h = known[term.source]
                z += self._product(self._matrices[term.propagation], h, term.weight)
            known[place] = np.where(z > 0, z, layer.slope * z)
        logits: Floats = known[len(self._layers) - 1]
        return logits

    @staticmethod
    def _product(matrix: Any, h: Any, weight: Floats | float) -> Any:
        """P h W, the narrow product first."""
        if isinstance(weight, float):
            product = weight * (matrix @ h)
            return product.toarray() if scipy.sparse.issparse(product) else product
        return matrix @ (h @ weight) if weight.shape[1] <= h.shape[1] else (matrix @ h) @ weight
