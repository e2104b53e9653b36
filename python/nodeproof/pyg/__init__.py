"""PyTorch Geometric: its data become graphs, its modules models, and back.

A module is never taken at its word. `from_pyg` runs a copy of it, watches what its layers are given and what they give
back, takes the propagation that they really use, self-loops, weights, duplicates, directions and caches included, and
then compares logits on the graph and on others with tampered attributes.
"""

from ..verification import Verification
from .convert import data_of, graph_of, module_of, split_of, to_pyg
from .verify import from_pyg

__all__ = ["Verification", "data_of", "from_pyg", "graph_of", "module_of", "split_of", "to_pyg"]
