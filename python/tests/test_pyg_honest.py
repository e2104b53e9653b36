"""PyTorch Geometric: unusual modules that are networks of layers of terms are imported as what they compute."""

from __future__ import annotations

import numpy as np
import pytest

from nodeproof import VerificationError, from_pyg

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
F = torch.nn.functional

from networks import Network, Odd, data, gcn, is_quiet, is_the_module  # noqa: E402
from torch_geometric.nn import GCNConv, TAGConv  # noqa: E402


def test_a_module_may_depend_on_the_number_of_nodes() -> None:
    """Which no flip of attributes changes: the model is what the module computes on a graph of this size."""

    class Sized(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.small, self.large = gcn(), gcn(improved=True).double().float()
            torch.nn.init.ones_(self.large.conv1.lin.weight)

        def forward(self, x, edge_index):
            return (self.large if x.shape[0] > 12 else self.small)(x, edge_index)

    module = Sized()
    for nodes in (12, 13):
        of = data(nodes=nodes)
        graph, model = from_pyg(module, of)
        assert is_the_module(module, model, graph, of)


#: Odd, but sums of terms, and so the model must be the module.
HONEST = {
    "relu6 of relus": lambda m, x, h, e: m.conv2(h.relu() - (h - 6).relu(), e),
    "a scaling hook": lambda m, x, h, e: m.conv2(1.01 * h.relu(), e),
    "thrown away": lambda m, x, h, e: (h.relu(), m.conv3(x, e))[1],
    "no relu": lambda m, x, h, e: m.conv2(h, e),
    "relu of the attributes": lambda m, x, h, e: m.conv3(x.relu(), e),
    "a tensor of its own": lambda m, x, h, e: m.conv2(torch.zeros(h.shape, dtype=h.dtype).add_(h).relu(), e),
    "turned": lambda m, x, h, e: m.conv2(h.flip(0).relu(), e),
    "turned units": lambda m, x, h, e: m.conv2(h.flip(1).relu()[:, [4, 2, 0, 1, 3]], e),
    "a mask of constants": lambda m, x, h, e: m.conv2(h.relu() * torch.tensor([1.0, 0, 1, 1, 0], dtype=h.dtype), e),
    "a mask of truth values": lambda m, x, h, e: m.conv2(h.relu() * torch.tensor([True, False, True, True, True]), e),
    "other constants a node": lambda m, x, h, e: m.conv2(
        (h + torch.arange(60, dtype=h.dtype).view(12, 5) % 7).relu(), e
    ),
    "a skip": lambda m, x, h, e: m.conv2(h.relu(), e) + h[:, :3],
    "forward": lambda m, x, h, e: m.conv2.forward(h.relu(), e),
    "transposed": lambda m, x, h, e: m.conv2((torch.eye(5, dtype=h.dtype) @ h.t()).t().relu(), e),
    "einsum": lambda m, x, h, e: m.conv2(torch.einsum("nf,fg->ng", h, torch.ones(5, 5, dtype=h.dtype)).relu(), e),
    "split and put together": lambda m, x, h, e: m.conv2(torch.cat(h.split([2, 3], dim=1)[::-1], dim=1).relu(), e),
    "stacked": lambda m, x, h, e: m.conv2(torch.stack([h, h.relu()], dim=-1).sum(dim=-1), e),
    "mean of heads": lambda m, x, h, e: m.conv2(h.view(12, 1, 5).expand(12, 2, 5).mean(dim=1).relu(), e),
    "chosen nodes": lambda m, x, h, e: m.conv2(h[torch.arange(11, -1, -1)].relu(), e),
    "an autograd function that is none": lambda m, x, h, e: m.conv2(torch.func.vmap(lambda row: 2 * row)(h).relu(), e),
    "means by scatter_reduce": lambda m, x, h, e: m.conv2(
        torch.zeros_like(h).scatter_reduce(0, e[1][:, None].expand(-1, 5), h[e[0]], "mean", include_self=False).relu(),
        e,
    ),
    "a bias of the graph": lambda m, x, h, e: m.conv2((h + torch.bincount(e[0], minlength=12)[:, None]).relu(), e),
    "nodes by a mask": lambda m, x, h, e: m.conv2(
        torch.cat([h[torch.arange(12) > 4], h[torch.arange(12) <= 4]]).relu(), e
    ),
    "nodes by a mask of all": lambda m, x, h, e: m.conv2(h[torch.ones(12, dtype=torch.bool)].relu(), e),
    "nodes from the end": lambda m, x, h, e: m.conv2(h[torch.arange(-12, 0)].relu() + h[-1], e),
    "for inference": lambda m, x, h, e: torch.inference_mode()(
        lambda: m.conv2(F.linear(h.relu(), torch.eye(5).to(h)), e)
    )(),
    "edges of its own": lambda m, x, h, e: m.conv2(h.relu(), e[:, ::2]),
    "constants looked at": lambda m, x, h, e: m.conv2(h.relu(), e) if int(e.max()) < 12 and bool((e >= 0).all()) else h,
    "random numbers that are not": lambda m, x, h, e: m.conv2(F.dropout(h.relu(), 0.5, m.training), e),
    "sums of constants over edges": lambda m, x, h, e: m.conv2(
        h.index_add(0, e[1], torch.ones(e.shape[1], 5, dtype=h.dtype)).relu(), e
    ),
    "a random relu that is not": lambda m, x, h, e: m.conv2(F.rrelu(h, training=m.training), e),
    "hidden constants": lambda m, x, h, e: (
        m.conv2(h.relu(), e) + torch.zeros(3, dtype=h.dtype).fill_(2.5).numpy().sum()
    ),
}


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.filterwarnings("ignore")
def test_whatever_is_a_sum_of_terms_is_imported_as_it_is(name: str) -> None:
    torch.manual_seed(0)
    module, of = Odd(HONEST[name]), data()
    graph, model = from_pyg(module, of)
    assert is_the_module(module, model, graph, of)


def test_graphs_without_edges_are_imported() -> None:
    module, of = Network(TAGConv(6, 5), TAGConv(5, 3)), data()
    of.edge_index = of.edge_index[:, :0]
    graph, model = from_pyg(module, of)
    assert is_the_module(module, model, graph, of)


class Swapped(torch.nn.Module):
    """Computes with other weights than it has: those that few attribute matrices tell apart."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.conv, self.way = GCNConv(6, 3), way

    def forward(self, x, edge_index):
        weight = self.conv.lin.weight
        other = weight + torch.tensor([0, 0, 0, 0, 1e-2, -1e-2], dtype=weight.dtype)
        if self.way == "functional_call":
            return torch.func.functional_call(self.conv, {"lin.weight": other}, (x, edge_index))
        if self.way == "patch":
            self.conv.lin.forward = lambda given: F.linear(given, other)
            try:
                return self.conv(x, edge_index)
            finally:
                del self.conv.lin.forward
        kept = weight.data.clone()
        weight.data.copy_(other.data)
        try:
            return self.conv(x, edge_index)
        finally:
            weight.data.copy_(kept)


@pytest.mark.parametrize("way", ["functional_call", "patch", "data"])
def test_weights_count_as_they_are_in_the_run(way: str) -> None:
    module, of = Swapped(way), data()
    graph, model = from_pyg(module, of)
    assert is_the_module(module, model, graph, of)
    kept = module.conv.lin.weight.detach().double().numpy().T
    np.testing.assert_allclose((model.weights[0] - kept)[4:], [[1e-2] * 3, [-1e-2] * 3], atol=1e-7)


def test_small_differences_of_one_node_count() -> None:
    """Node 11, by itself, has small logits, all others have large ones; what is special about it must be in the model."""

    class Moved(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(6, 3)

        def forward(self, x, edge_index):
            change = torch.zeros(12, 3, dtype=x.dtype)
            change[11, 0] = 1e-3
            return self.conv(x, edge_index) + change

    module, of = Moved(), data()
    of.x[:11, 0], of.x[11, 0] = 1, 0
    with torch.no_grad():
        module.conv.lin.weight[:, 0] *= 1e9
    graph, model = from_pyg(module, of)
    with torch.no_grad():
        theirs = module.double()(of.x.double(), of.edge_index)[11].numpy()
    np.testing.assert_allclose(model.logits(graph)[11], theirs, atol=1e-9)


def test_units_that_no_input_wakes_are_looked_at_all_the_same() -> None:
    """The first unit is never positive in any run; what is done to it counts."""
    module, of = (
        Network(GCNConv(6, 5), GCNConv(5, 3), between=lambda h: h.relu() * torch.tensor([7, 1, 1, 1, 1]).to(h)),
        data(),
    )
    with torch.no_grad():
        module.conv1.bias[0] = -1e6
    _, model = from_pyg(module, of)
    expected = 7 * module.conv2.lin.weight.detach().double().numpy()[:, 0]
    np.testing.assert_allclose(model.weights[1][0], expected)
    module.between = lambda h: torch.cat([h[:, :1].clamp(max=6), h[:, 1:]], dim=1).relu()
    with pytest.raises(VerificationError, match="cuts values off"):
        from_pyg(module, of)


class Weak(torch.nn.Module):
    """Small entries of a propagation, with large weights behind them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lin = torch.nn.Linear(30, 3, bias=False, dtype=torch.float64)

    def forward(self, x, edge_index):
        return self.lin(x + 1e-17 * torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])) * 1e17


class Uneven(Weak):
    """A constant that is small at one node, and large at others."""

    def forward(self, x, edge_index):
        mask = torch.ones(len(x), 1, dtype=x.dtype)
        mask[0] = 0
        return mask * self.lin(x) + (mask + 1e-16 * (1 - mask)) * torch.tensor([[0, 1e16, 0]], dtype=x.dtype)


@pytest.mark.parametrize("make", [Weak, Uneven])
def test_small_entries_are_not_lost_to_a_name(make) -> None:
    assert is_quiet(make)


def test_parts_without_entries_are_left_out() -> None:
    class Empty(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = gcn()

        def forward(self, x, edge_index):
            return torch.cat([torch.empty(0), self.inner(x, edge_index)], 1)

    from_pyg(Empty(), data())
