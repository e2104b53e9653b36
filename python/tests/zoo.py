"""Modules as people write them: those that are of the class that nodeproof certifies, and those that are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from networks import F, torch
from torch.nn import BatchNorm1d, Dropout, LayerNorm, LeakyReLU, ModuleList, PReLU, ReLU
from torch_geometric.nn import (
    APPNP,
    ChebConv,
    ClusterGCNConv,
    GATConv,
    GATv2Conv,
    GCN2Conv,
    GCNConv,
    GINConv,
    GraphConv,
    GraphNorm,
    JumpingKnowledge,
    LEConv,
    Linear,
    MessagePassing,
    MixHopConv,
    PairNorm,
    SAGEConv,
    Sequential,
    SGConv,
    SSGConv,
    TAGConv,
    TransformerConv,
)
from torch_geometric.nn.models import GAT, GCN, GIN, MLP, GraphSAGE
from torch_geometric.utils import add_self_loops, degree, scatter


@dataclass(frozen=True)
class Case:
    """A module that reads 6 attributes and has 3 classes."""

    #: What the table says.
    text: str
    make: Callable[[], Any]
    #: A part of the message, if it is refused.
    refused: str = ""
    forward: Any = None


class Net(torch.nn.Module):
    """A module whose forward is `run(module, x, edge_index)`, with these parts."""

    def __init__(self, run: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.run = run
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x, edge_index):
        return self.run(self, x, edge_index)


def two(first, second, between=torch.relu, **parts):
    """Two layers with something between."""
    return lambda: Net(
        lambda m, x, e: m.conv2(between(m.conv1(x, e)) if not hasattr(m, "act") else m.act(m.conv1(x, e)), e),
        conv1=first(),
        conv2=second(),
        **{name: make() for name, make in parts.items()},
    )


def behind(make, norm, *, first):
    """A layer, a norm before or behind its ReLU, and a layer."""

    def run(m, x, e):
        x = m.conv1(x, e)
        return m.conv2(m.norm1(x).relu() if first else m.norm1(x.relu()), e)

    return lambda: Net(run, conv1=make(6, 5), norm1=norm(), conv2=make(5, 3))


class TutorialConv(MessagePassing):
    """The GCNConv of PyTorch Geometric's tutorial on message passing."""

    def __init__(self, inputs, outputs):
        super().__init__(aggr="add")
        self.lin = Linear(inputs, outputs, bias=False)
        self.bias = torch.nn.Parameter(torch.randn(outputs))

    def forward(self, x, edge_index):
        edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
        x = self.lin(x)
        row, col = edge_index
        root = degree(col, x.size(0), dtype=x.dtype).pow(-0.5)
        root[root == float("inf")] = 0
        return self.propagate(edge_index, x=x, norm=root[row] * root[col]) + self.bias

    def message(self, x_j, norm):
        return norm.view(-1, 1) * x_j


class EdgeConvLike(MessagePassing):
    """The edge convolution of the same tutorial."""

    def __init__(self, inputs, outputs):
        super().__init__(aggr="max")
        self.mlp = torch.nn.Sequential(torch.nn.Linear(2 * inputs, outputs), ReLU(), torch.nn.Linear(outputs, outputs))

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_i, x_j):
        return self.mlp(torch.cat([x_i, x_j - x_i], dim=1))


class DenseGCN(torch.nn.Module):
    """Kipf and Welling's layers, with a dense adjacency."""

    def __init__(self):
        super().__init__()
        self.weight1, self.weight2 = (torch.nn.Parameter(torch.randn(size)) for size in ((6, 5), (5, 3)))

    def forward(self, x, edge_index):
        adjacency = torch.eye(len(x), dtype=x.dtype)
        adjacency[edge_index[1], edge_index[0]] = 1
        adjacency = adjacency / adjacency.sum(dim=1, keepdim=True)
        return adjacency @ torch.relu(adjacency @ x @ self.weight1) @ self.weight2


class SparseGCN(torch.nn.Module):
    """The same with a sparse one."""

    def __init__(self):
        super().__init__()
        self.lin1, self.lin2 = torch.nn.Linear(6, 5), torch.nn.Linear(5, 3)

    def forward(self, x, edge_index):
        values = torch.ones(edge_index.shape[1], dtype=x.dtype)
        adjacency = torch.sparse_coo_tensor(edge_index.flip(0), values, (len(x), len(x)))
        x = torch.sparse.mm(adjacency, self.lin1(x)).relu()
        return torch.spmm(adjacency, self.lin2(x))


class ByHand(torch.nn.Module):
    """Messages that are added up by hand."""

    def __init__(self):
        super().__init__()
        self.lin1, self.lin2, self.root = torch.nn.Linear(6, 5), torch.nn.Linear(5, 3), torch.nn.Linear(6, 5)

    def forward(self, x, edge_index):
        total = torch.zeros(x.size(0), x.size(1), dtype=x.dtype)
        total.index_add_(0, edge_index[1], x[edge_index[0]])
        x = F.relu(self.lin1(total) + self.root(x))
        return self.lin2(scatter(x[edge_index[0]], edge_index[1], dim=0, dim_size=x.size(0), reduce="mean"))


def gcnii():
    def run(m, x, e):
        x = first = m.lin1(x).relu()
        for conv in m.convs:
            x = conv(x, first, e).relu()
        return m.lin2(x)

    convs = ModuleList(GCN2Conv(5, alpha=0.1, theta=0.5, layer=layer) for layer in (1, 2))
    return Net(run, lin1=Linear(6, 5), convs=convs, lin2=Linear(5, 3))


def appnp(k):
    def run(m, x, e):
        x = F.dropout(x, 0.5, training=m.training)
        return m.prop(m.lin2(m.lin1(x).relu()), e)

    return lambda: Net(run, lin1=Linear(6, 5), lin2=Linear(5, 3), prop=APPNP(K=k, alpha=0.1))


def jumping(mode):
    def run(m, x, e):
        one = m.conv1(x, e).relu()
        return m.lin(m.jump([one, m.conv2(one, e).relu()]))

    def make():
        parts = {"conv1": GCNConv(6, 5), "conv2": GCNConv(5, 5), "lin": Linear(10 if mode == "cat" else 5, 3)}
        return Net(run, jump=JumpingKnowledge(mode, channels=5, num_layers=2), **parts)

    return make


def residual():
    def run(m, x, e):
        x = m.lin(x)
        x = x + m.conv1(x, e).relu()
        return m.conv2(x, e)

    return Net(run, lin=Linear(6, 5), conv1=GCNConv(5, 5), conv2=GCNConv(5, 3))


def gin(eps):
    def mlp(inputs, outputs):
        return torch.nn.Sequential(
            torch.nn.Linear(inputs, 5), BatchNorm1d(5), ReLU(), torch.nn.Linear(5, outputs), ReLU()
        )

    def run(m, x, e):
        x = m.conv2(m.conv1(x, e), e)
        return m.lin(F.dropout(x, 0.5, training=m.training))

    parts = {"conv1": GINConv(mlp(6, 5), **eps), "conv2": GINConv(mlp(5, 5), **eps), "lin": Linear(5, 3)}
    return lambda: Net(run, **parts)


def slopes():
    activation = PReLU(5)
    torch.nn.init.uniform_(activation.weight, 0.1, 0.9)
    return activation


def of_edges(run, **parts):
    return lambda: Net(run, conv1=GCNConv(6, 5), conv2=GCNConv(5, 3), **{k: make() for k, make in parts.items()})


def graph_of(make, **options):
    return lambda: make(6, 5, num_layers=2, out_channels=3, **options)


def gcns(**options):
    return two(lambda: GCNConv(6, 5, **options), lambda: GCNConv(5, 3, **options))


def sages(**options):
    return two(lambda: SAGEConv(6, 5, **options), lambda: SAGEConv(5, 3, **options))


def convs(kind, **options):
    return two(lambda: kind(6, 5, **options), lambda: kind(5, 3, **options))


def attending():
    """A layer with one head, of the width that `of_edges` has."""
    return torch.nn.TransformerEncoderLayer(5, 1, 4, batch_first=True)


def masked(m, x, e):
    """Leaves out nodes without edges, a unit, half of the nodes of another layer, and some nodes and units by their ids."""
    alone = degree(e[1], len(x)) == 0
    h = torch.where(alone[:, None], 0.0, m.conv1(x, e)).masked_fill(torch.arange(5) == 2, 0.5)
    h[torch.arange(len(x)) % 2 == 0] = 0.25
    h[1:2], h[:, 3], h[torch.tensor([-1])] = 0, 0.125, 0.5
    return m.conv2(h.relu(), e)


ACCEPTED = [
    Case("`GCNConv`, ReLU, `GCNConv`", gcns()),
    Case("… with `normalize=False`", gcns(normalize=False)),
    Case("… with `add_self_loops=False`, `bias=False`", gcns(add_self_loops=False, bias=False)),
    Case("… with `cached=True`", gcns(cached=True)),
    Case(
        "… with `log_softmax` at the end", lambda: Net(lambda m, x, e: F.log_softmax(m.net(x, e), dim=1), net=gcns()())
    ),
    Case("… with `softmax` at the end", lambda: Net(lambda m, x, e: m.net(x, e).softmax(dim=-1), net=gcns()())),
    Case("… with logits / T", lambda: Net(lambda m, x, e: m.net(x, e) / 1.5, net=gcns()())),
    Case("`SAGEConv` (mean, root weight), ReLU, `SAGEConv`", sages()),
    Case("`SAGEConv` with `root_weight=False`", sages(root_weight=False)),
    Case("`SAGEConv` with `aggr='sum'`", sages(aggr="sum")),
    Case("`SAGEConv` with `project=True`", sages(project=True)),
    Case("`GraphConv`, ReLU, `GraphConv`", convs(GraphConv)),
    Case("`GraphConv` with `aggr='mean'`", convs(GraphConv, aggr="mean")),
    Case("`GINConv` with Linear, BatchNorm, ReLU, Linear inside", gin({})),
    Case("`GINConv` with `train_eps=True`", gin({"eps": 0.3, "train_eps": True})),
    Case("`SGConv(K=2)` alone", lambda: Net(lambda m, x, e: m.conv(x, e), conv=SGConv(6, 3, K=2))),
    Case("`SGConv(K=2, cached=True)`", lambda: Net(lambda m, x, e: m.conv(x, e), conv=SGConv(6, 3, K=2, cached=True))),
    Case("`SGConv(K=8)`", lambda: Net(lambda m, x, e: m.conv(x, e), conv=SGConv(6, 3, K=8))),
    Case("`SSGConv(alpha=0.1, K=4)`", lambda: Net(lambda m, x, e: m.conv(x, e), conv=SSGConv(6, 3, alpha=0.1, K=4))),
    Case("`TAGConv(K=3)`, ReLU, `TAGConv(K=3)`", convs(TAGConv, K=3)),
    Case("`ChebConv(K=3)`, ReLU, `ChebConv(K=3)`", convs(ChebConv, K=3)),
    Case("Linear, ReLU, Linear, `APPNP(K=10)`", appnp(10)),
    Case("Linear, ReLU, Linear, `APPNP(K=2)`", appnp(2)),
    Case("GCNII: Linear, `GCN2Conv` with ReLUs, Linear", gcnii),
    Case("`ClusterGCNConv`, ReLU, `ClusterGCNConv`", convs(ClusterGCNConv, diag_lambda=0.2)),
    Case("`LEConv`, ReLU, `LEConv`", convs(LEConv)),
    Case(
        "`MixHopConv(powers=[0, 1, 2])`, ReLU, Linear",
        lambda: Net(
            lambda m, x, e: m.lin(m.conv(x, e).relu()), conv=MixHopConv(6, 4, powers=[0, 1, 2]), lin=Linear(12, 3)
        ),
    ),
    Case("`torch.nn.Linear` alone", lambda: Net(lambda m, x, e: m.lin(x), lin=torch.nn.Linear(6, 3))),
    Case(
        "`torch.nn.Sequential` of Linear, ReLU, Dropout, Linear",
        lambda: torch.nn.Sequential(torch.nn.Linear(6, 5), ReLU(), Dropout(), torch.nn.Linear(5, 3)),
    ),
    Case("`torch_geometric.nn.MLP`", lambda: MLP([6, 5, 4, 3]), forward=lambda module, data: module(data.x)),
    Case(
        "`torch_geometric.nn.Sequential`",
        lambda: Sequential(
            "x, edge_index",
            [
                (GCNConv(6, 5), "x, edge_index -> x"),
                ReLU(inplace=True),
                Dropout(),
                (GCNConv(5, 3), "x, edge_index -> x"),
            ],
        ),
    ),
    Case("BatchNorm in front of the ReLU", behind(GCNConv, lambda: BatchNorm1d(5), first=True)),
    Case("BatchNorm behind the ReLU", behind(GCNConv, lambda: BatchNorm1d(5), first=False)),
    Case("BatchNorm behind the ReLU, `SAGEConv`", behind(SAGEConv, lambda: BatchNorm1d(5), first=False)),
    Case("a residual sum, x + conv(x).relu()", residual),
    Case("`JumpingKnowledge('cat')`", jumping("cat")),
    Case("`JumpingKnowledge('last')`", lambda: GCN(6, 5, num_layers=2, out_channels=3, jk="last")),
    Case(
        "`torch.cat([x, conv(x)], dim=1)`",
        of_edges(lambda m, x, e: m.lin(torch.cat([x, m.conv1(x, e).relu()], 1)), lin=lambda: Linear(11, 3)),
    ),
    Case("LeakyReLU(0.2)", two(lambda: GCNConv(6, 5), lambda: GCNConv(5, 3), act=lambda: LeakyReLU(0.2))),
    Case("PReLU, one slope", two(lambda: GCNConv(6, 5), lambda: GCNConv(5, 3), act=PReLU)),
    Case("PReLU, a slope a unit", two(lambda: GCNConv(6, 5), lambda: GCNConv(5, 3), act=slopes)),
    Case("no activation at all", of_edges(lambda m, x, e: m.conv2(m.conv1(x, e), e))),
    Case("`models.GCN(norm='batch_norm', jk='cat')`", graph_of(GCN, norm="batch_norm", jk="cat")),
    Case("`models.GCN(act='leaky_relu')`", graph_of(GCN, act="leaky_relu")),
    Case("`models.GCN(act_first=True, norm='batch_norm')`", graph_of(GCN, act_first=True, norm="batch_norm")),
    Case("`models.GraphSAGE`", graph_of(GraphSAGE)),
    Case("`models.GraphSAGE(norm='batch_norm', jk='cat')`", graph_of(GraphSAGE, norm="batch_norm", jk="cat")),
    Case("`models.GIN`", graph_of(GIN)),
    Case("`models.GIN(norm='batch_norm')`", graph_of(GIN, norm="batch_norm")),
    Case("a GCNConv of one's own, as in the tutorial", convs(TutorialConv)),
    Case("`A @ relu(A @ x @ W1) @ W2`, dense", DenseGCN),
    Case("the same with `torch.sparse.mm`", SparseGCN),
    Case("sums by `index_add_` and `scatter`", ByHand),
    Case("layers of several kinds", two(lambda: SAGEConv(6, 5), lambda: GCNConv(5, 3))),
    Case(
        "the average of two networks", lambda: Net(lambda m, x, e: (m.a(x, e) + m.b(x, e)) / 2, a=gcns()(), b=sages()())
    ),
    Case(
        "x - x.mean(dim=0)",
        of_edges(lambda m, x, e: m.conv2((m.conv1(x, e) - m.conv1(x, e).mean(0, keepdim=True)).relu(), e)),
    ),
    Case(
        "masks and places that are constant: `torch.where`, `masked_fill`, `h[mask] = 0`, `h[2:5] = 0`, `h[:, 0] = 0`",
        of_edges(masked),
    ),
]

REFUSED = [
    Case("`GATConv`", convs(GATConv), "`self.conv1`, a GATConv: .*attention"),
    Case("`GATv2Conv`", convs(GATv2Conv), "`self.conv1`, a GATv2Conv: .*attention"),
    Case("`TransformerConv`", convs(TransformerConv), "`self.conv1`, a TransformerConv: .*attention"),
    Case("`models.GAT`", graph_of(GAT), r"`self.convs\[0\]`, a GATConv"),
    Case(
        "`F.scaled_dot_product_attention`",
        of_edges(
            lambda m, x, e: m.conv2(
                F.scaled_dot_product_attention(m.conv1(x, e)[None], *2 * [m.conv1(x, e)[None]])[0], e
            )
        ),
        "the forward of Net: attends: .*by attention",
    ),
    Case(
        "`torch.nn.TransformerEncoderLayer`",
        of_edges(lambda m, x, e: m.conv2(m.attend(m.conv1(x, e)[None])[0], e), attend=lambda: attending()),
        "`self.attend.self_attn`, a MultiheadAttention: attends: .*by attention",
    ),
    Case("`SAGEConv` with `aggr='max'`", sages(aggr="max"), "`self.conv1`, a SAGEConv: takes the maximum.*aggr='mean'"),
    Case("`SAGEConv` with `normalize=True`", sages(normalize=True), "`self.conv1`, a SAGEConv: divides by"),
    Case("the tutorial's edge convolution", convs(EdgeConvLike), r"`self.conv1.mlp\[1\]`, a ReLU: .*edges"),
    Case(
        "LayerNorm",
        behind(GCNConv, lambda: LayerNorm(5), first=True),
        "`self.norm1`, a LayerNorm: divides by .*BatchNorm",
    ),
    Case("`PairNorm`", behind(GCNConv, PairNorm, first=True), "`self.norm1`, a PairNorm"),
    Case("`GraphNorm`", behind(GCNConv, lambda: GraphNorm(5), first=True), "`self.norm1`, a GraphNorm"),
    Case(
        "BatchNorm with `track_running_stats=False`",
        behind(GCNConv, lambda: BatchNorm1d(5, track_running_stats=False), first=True),
        "`self.norm1`, a BatchNorm1d: divides by a variance",
    ),
    Case("`JumpingKnowledge('max')`", jumping("max"), "`self.jump`, a JumpingKnowledge: takes .*maximum.*jk='cat'"),
    Case("`JumpingKnowledge('lstm')`", lambda: GCN(6, 4, num_layers=2, out_channels=3, jk="lstm"), "LSTM"),
    Case(
        "ELU",
        two(lambda: GCNConv(6, 5), lambda: GCNConv(5, 3), act=torch.nn.ELU),
        "`self.act`, an ELU: .*curved.*LeakyReLU",
    ),
    Case("`F.gelu`", two(lambda: GCNConv(6, 5), lambda: GCNConv(5, 3), F.gelu), "the forward of Net: .*curved"),
    Case("`torch.tanh`", two(lambda: GCNConv(6, 5), lambda: GCNConv(5, 3), torch.tanh), "curved"),
    Case("`torch.sigmoid` at the end", of_edges(lambda m, x, e: m.conv2(m.conv1(x, e).relu(), e).sigmoid()), "curved"),
    Case(
        "ReLU6",
        two(lambda: GCNConv(6, 5), lambda: GCNConv(5, 3), act=torch.nn.ReLU6),
        "`self.act`, a ReLU6: cuts values off",
    ),
    Case("LeakyReLU(1.5)", two(lambda: GCNConv(6, 5), lambda: GCNConv(5, 3), act=lambda: LeakyReLU(1.5)), "slope 1.5"),
    Case("`models.GCN(act='elu')`", graph_of(GCN, act="elu"), "`self.act`, an ELU"),
    Case("`models.GCN(norm='layer_norm')`", graph_of(GCN, norm="layer_norm"), r"`self.norms\[0\]`, a LayerNorm"),
    Case(
        "`F.dropout(x, 0.5)` without `training=`",
        two(lambda: GCNConv(6, 5), lambda: GCNConv(5, 3), lambda x: F.dropout(x.relu())),
        "random numbers",
    ),
    Case("`F.normalize(x)`", of_edges(lambda m, x, e: m.conv2(m.conv1(F.normalize(x), e).relu(), e)), "divides by"),
    Case(
        "edge weights from the attributes",
        of_edges(lambda m, x, e: m.conv2(m.conv1(x, e, (x[e[0]] * x[e[1]]).sum(1)).relu(), e)),
        "weights made of attributes",
    ),
    Case(
        "edges chosen by the attributes",
        of_edges(lambda m, x, e: m.conv2(m.conv1(x, e[:, x[e[0], 0] > 0]).relu(), e)),
        "attributes",
    ),
    Case(
        "`if h.sum() > 0:`",
        of_edges(lambda m, x, e: m.conv2(m.conv1(x, e).relu(), e) if x.sum() > 0 else m.conv2(m.conv1(x, e), e)),
        "decides",
    ),
    Case(
        "a gate, h * sigmoid(h)",
        of_edges(lambda m, x, e: m.conv2(m.conv1(x, e) * m.conv1(x, e).sigmoid(), e)),
        "curved",
    ),
    Case(
        "`embedding` of the most frequent attribute",
        of_edges(lambda m, x, e: m.emb(x.argmax(dim=1)), emb=lambda: torch.nn.Embedding(6, 3)),
        "order",
    ),
    Case(
        "a tuple (logits, embedding)",
        of_edges(lambda m, x, e: (m.conv2(m.conv1(x, e), e), x)),
        "forward=lambda module, data",
    ),
]
