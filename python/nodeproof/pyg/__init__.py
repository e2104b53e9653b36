"""PyTorch Geometric: its data become graphs, its modules models, and back.

A module is never taken at its word, nor its layers by their names. `from_pyg` runs a copy of it on attributes without values,
follows what every operation makes of them, self-loops, weights, duplicates, directions and caches included, and then
compares logits on the graph and on others with tampered attributes.
"""

from ..verification import Verification
from .convert import data_of, graph_of, module_of, split_of, to_pyg
from .verify import from_pyg

__all__ = ["Verification", "data_of", "from_pyg", "graph_of", "module_of", "split_of", "to_pyg"]


def __dir__() -> list[str]:
    return sorted(__all__)
