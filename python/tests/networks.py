"""Networks of PyTorch Geometric, data for them, and whether a model computes what its module does."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import nodeproof
from nodeproof import from_pyg

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


def is_the_module(module, model: nodeproof.Model, graph: nodeproof.Graph, of) -> bool:
    """Whether a model computes what its module does, on attributes by chance."""
    module = copy.deepcopy(module).eval().double()
    chance = np.random.default_rng(7)
    for _ in range(4):
        x = chance.random((graph.nodes, graph.attribute_count)) < chance.random()
        with torch.no_grad():
            theirs = module(torch.tensor(x).double(), of.edge_index).numpy()
        ours = model.logits(nodeproof.Graph(graph.adjacency, x, directed=True, keep_self_loops=True))
        if not np.allclose(theirs - theirs[:, :1], ours - ours[:, :1], atol=1e-6 * max(1.0, np.abs(theirs).max())):
            return False
    return True


def unhelped(look):
    with torch._C.DisableTorchFunctionSubclass():
        return look()


def clamp(*given):
    return given[-1].clamp(max=1e6)


class Quiet(torch.nn.Module):
    """Adds something that is 0 on all inputs that are tried: all but for nodes that have each of their 30 attributes."""

    def __init__(self, then, prepare=lambda module: None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.base, self.last, self.then = torch.nn.Linear(30, 3), torch.nn.Linear(4, 3), then
        self.register_buffer("weight", torch.arange(1.0, 5.0)[None])
        prepare(self)

    def forward(self, x, edge_index):
        return self.base(x) + self.last(self.then(self, (x.sum(1, keepdim=True) - 29.5).relu() @ self.weight))


def wide() -> Data:
    made = data(nodes=8)
    made.x = torch.tensor(np.random.default_rng(0).random((8, 30)) < 0.4).float()
    return made


def is_quiet(make, of=None) -> bool:
    """Whether the model of a module is what the module is when it is called for the first time, with many attributes, too."""
    of = wide() if of is None else of
    graph, model = from_pyg(make(), of)
    chance = np.random.default_rng(1)
    for x in (chance.random(of.x.shape) < chance.random() for _ in range(4)):
        x[chance.random(len(x)) < 0.5] = True
        module = make().eval()
        with torch.no_grad():
            theirs = module(torch.tensor(x).to(next(module.parameters()).dtype), of.edge_index).double().numpy()
        ours = model.logits(nodeproof.Graph(graph.adjacency, x, directed=True, keep_self_loops=True))
        allowed = 1e-5 * np.maximum(1, np.abs(ours).max(axis=1, keepdims=True))
        if not (np.abs((theirs - theirs[:, :1]) - (ours - ours[:, :1])) <= allowed).all():
            return False
    return True
