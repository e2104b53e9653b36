"""Networks of PyTorch Geometric, and data for them."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
F = torch.nn.functional
torch.set_num_threads(1)

from torch_geometric.data import Data  # noqa: E402
from torch_geometric.nn import ClusterGCNConv, GATConv, GCNConv, SAGEConv  # noqa: E402


class Network(torch.nn.Module):
    """Two layers, as people write them; the parts can be exchanged."""

    def __init__(self, first, second, between=torch.relu, last=lambda x: x, before=lambda x: x) -> None:
        super().__init__()
        self.conv1, self.conv2 = first, second
        self.between, self.last, self.before = between, last, before

    def forward(self, x, edge_index, edge_weight=None):
        def weight(conv):
            return () if isinstance(conv, (SAGEConv, ClusterGCNConv)) else (edge_weight,)

        x = self.between(self.conv1(self.before(x), edge_index, *weight(self.conv1)))
        x = F.dropout(x, 0.5, training=self.training)
        return self.last(self.conv2(x, edge_index, *weight(self.conv2)))


def gcn(**options):
    torch.manual_seed(0)
    network = Network(GCNConv(6, 5, **options), GCNConv(5, 3, **options))
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter)
    return network


def data(kind: str = "plain", nodes: int = 12, seed: int = 0) -> Data:
    """A graph with an isolated node (the last one) and a node without attributes (the first one)."""
    random = np.random.default_rng(seed)
    edges = random.integers(nodes - 1, size=(2, 3 * nodes))
    edges = edges[:, edges[0] != edges[1]]
    made = Data(x=torch.tensor(random.random((nodes, 6)) < 0.4).float(), y=torch.tensor(random.integers(3, size=nodes)))
    made.x[0] = 0
    if kind != "directed":
        edges = np.concatenate([edges, edges[::-1]], axis=1)
    if kind not in ("duplicates", "weights"):
        edges = np.unique(edges, axis=1)
    if kind in ("loops", "weights"):
        edges = np.concatenate([edges, [[2, 3, 5], [2, 3, 5]]], axis=1)
    made.edge_index = torch.tensor(edges)
    if kind == "weights":
        made.edge_weight = torch.tensor(random.random(edges.shape[1])).float()
    return made


def copies(of: Data, xs: list[torch.Tensor]) -> Data:
    """A graph that consists of copies of another one, with these attributes."""
    nodes, count = len(of.x), len(xs)
    made = Data(x=torch.cat(xs))
    made.edge_index = torch.cat([of.edge_index + nodes * place for place in range(count)], dim=1)
    if "edge_weight" in of:
        made.edge_weight = of.edge_weight.repeat(count)
    return made


def hooked(register: str, hook, *, part: str = "conv1"):
    module = gcn()
    getattr(module.get_submodule(part), register)(hook)
    return module


class Odd(torch.nn.Module):
    """What happens between two layers is up to `between(module, x, output of the first, edges)`."""

    def __init__(self, between) -> None:
        super().__init__()
        self.conv1, self.conv2, self.between = GCNConv(6, 5), GCNConv(5, 3), between
        self.conv3, self.extra = GCNConv(6, 3), GATConv(6, 5)

    def forward(self, x, edge_index):
        return self.between(self, x, self.conv1(x, edge_index), edge_index)
