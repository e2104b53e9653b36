"""PyTorch Geometric: whatever is not a network of ReLUs is refused, however well it hides."""

from __future__ import annotations

import copy
import ctypes
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nodeproof
from nodeproof import VerificationError, from_pyg

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
F = torch.nn.functional

from networks import Network, Odd, data, gcn, hooked  # noqa: E402
from torch_geometric.data import Data  # noqa: E402
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, SGConv  # noqa: E402
from torch_geometric.nn.models import GCN, GraphSAGE  # noqa: E402


class Bn(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn, self.conv2 = GCNConv(6, 5), torch.nn.BatchNorm1d(5), GCNConv(5, 3)

    def forward(self, x, edge_index):
        return self.conv2(self.bn(self.conv1(x, edge_index)).relu(), edge_index)


class Residual(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = GCNConv(6, 6), GCNConv(6, 3)

    def forward(self, x, edge_index):
        return self.conv2(self.conv1(x, edge_index).relu() + x, edge_index)


def network(**parts):
    return lambda: Network(GCNConv(6, 5), GCNConv(5, 3), **parts)


REFUSED = {
    "attention": (lambda: Network(GATConv(6, 5), GCNConv(5, 3)), "layer 'conv1' is a GATConv"),
    "root weight": (lambda: Network(SAGEConv(6, 5), SAGEConv(5, 3)), "layer 'conv1', a SAGEConv, .*root_weight=False"),
    "maximum": (lambda: Network(SAGEConv(6, 5, "max", root_weight=False), SAGEConv(5, 3)), "aggregates by 'max'"),
    "gcn by maximum": (lambda: gcn(aggr="max"), "aggregates by 'max'"),
    "project": (lambda: Network(SAGEConv(6, 5, root_weight=False, project=True), GCNConv(5, 3)), "project=False"),
    "normalised output": (
        lambda: Network(SAGEConv(6, 5, root_weight=False, normalize=True), GCNConv(5, 3)),
        "normalize=False",
    ),
    "no messages": (lambda: Network(SGConv(6, 5, K=0), SGConv(5, 3, K=0)), "K=0, passes no messages"),
    "cached attributes": (lambda: Network(SGConv(6, 5, cached=True), SGConv(5, 3)), "would not see any change of x"),
    "two propagations": (
        lambda: Network(GCNConv(6, 5), GCNConv(5, 3, improved=True)),
        "'conv2' has another propagation",
    ),
    "two kinds": (lambda: Network(GCNConv(6, 5), SGConv(5, 3, K=2)), "'conv2' has another propagation"),
    "elu": (network(between=F.elu), "behind layer 'conv1' the module computes elu"),
    "leaky relu": (
        network(between=lambda x: F.leaky_relu(x, 1e-6)),
        "behind layer 'conv1' the module computes leaky_relu",
    ),
    "no relu": (network(between=lambda x: x), "between layer 'conv1' and layer 'conv2' there is no ReLU"),
    "batch norm": (Bn, r"the module has bn \(BatchNorm1d\)"),
    "residual": (Residual, "behind layer 'conv1' the module computes add"),
    "dropout in use": (network(between=lambda x: F.dropout(x.relu(), 0.5)), "F.dropout without training"),
    "normalised input": (network(before=lambda x: F.normalize(x, dim=1)), "before the first layer the module computes"),
    "scaled input": (network(before=lambda x: 0.5 * x), "before the first layer the module computes mul"),
    "softmax": (network(last=lambda x: x.softmax(dim=1)), "computes _softmax: return logits"),
    "softmax in groups": (
        network(last=lambda x: F.log_softmax(x.view(6, 6), dim=1).view(12, 3)),
        "log_softmax over the classes",
    ),
    "softmax over nodes": (network(last=lambda x: F.log_softmax(x, dim=0)), "log_softmax over the classes"),
    "scaled output": (network(last=lambda x: 2 * x), "behind layer 'conv2'"),
    "absolute output": (network(last=torch.abs), "behind layer 'conv2'"),
    "extra layer": (network(last=torch.nn.Linear(3, 3)), r"behind layer 'conv2'.*last \(Linear\)"),
    "no graph": (lambda: torch.nn.Linear(6, 3), "before the first layer the module computes addmm"),
    "sage with root weight": (lambda: GraphSAGE(6, 5, num_layers=2, out_channels=3), "root_weight=False"),
    "jumping knowledge": (lambda: GCN(6, 5, num_layers=2, out_channels=3, jk="cat"), "behind layer|changes its output"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_by_name(name: str) -> None:
    torch.manual_seed(0)
    make, words = REFUSED[name]
    # Without edge weights PyG ignores `improved`.
    of = data("weights" if name == "two propagations" else "loops")
    with pytest.raises(nodeproof.NodeproofError, match="(?s)" + words):
        forward = (lambda module, data: module(data.x)) if name == "no graph" else None
        from_pyg(make(), of, forward=forward)


def test_a_module_that_looks_right_on_the_graph_alone_is_refused() -> None:
    """Nothing differs as long as the first attribute of node 3 is as it is."""
    of = data()

    class Sleeper(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = gcn()

        def forward(self, x, edge_index):
            logits = self.inner(x, edge_index)
            return logits if x[3, 0] == of.x[3, 0] else -logits

    with pytest.raises(VerificationError, match="behind layer 'inner.conv2'"):
        from_pyg(Sleeper(), of)


#: Modules that agree with a ReLU network wherever one looks: only what they do gives them away.
HIDDEN = {
    "relu6": (F.relu6, "behind layer 'conv1' the module computes hardtanh"),
    "clamp": (lambda x: x.clamp(0, 6), "the module computes clamp"),
    "leaky relu": (F.leaky_relu, "the module computes leaky_relu"),
    "elu": (F.elu, "the module computes elu"),
    "nothing": (lambda x: x, "there is no ReLU"),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_only_looks_like_a_relu_is_refused(name: str) -> None:
    between, words = HIDDEN[name]
    module = Network(GCNConv(6, 5), GCNConv(5, 3), between=between)
    # Activations stay within 1 and 2 for every set of attributes.
    torch.nn.init.uniform_(module.conv1.lin.weight, 0.0, 0.01)
    torch.nn.init.ones_(module.conv1.bias)
    with pytest.raises(VerificationError, match=words):
        from_pyg(module, data())


def test_a_false_certificate_by_relu6_is_not_given() -> None:
    """Two flips fool this module; as a ReLU network it would be robust, and it agrees with one on all inputs tried."""
    module = Network(GCNConv(4, 2), GCNConv(2, 2), between=F.relu6).eval()
    with torch.no_grad():
        module.conv1.lin.weight.copy_(torch.tensor([[4, 4, -4, -4.0], [1.9, 1.9, -1.9, -1.9]]))
        module.conv1.bias.zero_()
        module.conv2.lin.weight.copy_(torch.tensor([[1.0, -2.0], [0, 0]]))
        module.conv2.bias.copy_(torch.tensor([1.0, 0]))
    of = Data(x=torch.zeros(1, 4), edge_index=torch.zeros(2, 0, dtype=torch.int64))
    with pytest.raises(VerificationError, match="hardtanh"):
        from_pyg(module, of)


def test_edges_that_depend_on_attributes_are_refused() -> None:
    class Jaccard(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(6, 3)

        def forward(self, x, edge_index):
            alike = (x[edge_index[0]] * x[edge_index[1]]).sum(dim=1) >= 0  # Always true, but it might not be.
            return self.conv(x, edge_index[:, alike])

    with pytest.raises(VerificationError, match="before the first layer the module computes index"):
        from_pyg(Jaccard(), data())

    class Weighted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(6, 3, normalize=False)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index, x.view(-1)[: edge_index.shape[1]] if x.numel() < 1 else x.reshape(-1))

    with pytest.raises(VerificationError, match="edges or weights that depend on the attributes|cannot be run"):
        from_pyg(Weighted(), data())


class Leaving(torch.nn.Module):
    """Looks at its attributes where PyTorch does not see it."""

    def __init__(self, look) -> None:
        super().__init__()
        self.inner, self.look = gcn(), look

    def forward(self, x, edge_index):
        if np.sum(self.look(x)) > 1e6:
            return -self.inner(x, edge_index)
        return self.inner(x, edge_index)


LOOKS = {
    "numpy": lambda x: x.numpy(),
    "detached": lambda x: x.detach().numpy(),
    "array": lambda x: np.asarray(x),
    "list": lambda x: x.tolist(),
    "item": lambda x: x.sum().item(),
    "dlpack": lambda x: np.from_dlpack(x),
    "of a view": lambda x: x[2:, :3].tolist(),
    "truth": lambda x: bool(x[0, 0] > 2),
    "text": lambda x: len(str(x)),
    "format": lambda x: len(f"{x}"),
    "pickle": lambda x: len(pickle.dumps(x)),
    "copy": lambda x: copy.deepcopy(x).numpy(),
    "storage": lambda x: list(x.untyped_storage()),
    "address": lambda x: ctypes.string_at(x.data_ptr(), 4),
    "truth of an operation": lambda x: x.any(),
    "equality": lambda x: torch.equal(x, x),
    "places": lambda x: x.nonzero().shape[0],
}


@pytest.mark.parametrize("look", LOOKS)
def test_values_that_leave_pytorch_are_refused(look: str) -> None:
    with pytest.raises(VerificationError, match="out of PyTorch|the module computes"):
        from_pyg(Leaving(LOOKS[look]), data())


class Clamped(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x).clamp(max=1e6)


class Most(torch.nn.Module):
    def forward(self, x, *arguments, **keywords):
        return x


def with_part(path: str, part):
    module = gcn()
    owner, _, name = path.rpartition(".")
    setattr(module.get_submodule(owner), name, part)
    return module


def clamp(*given):
    return given[-1].clamp(max=1e6)


def quantised():
    module = gcn()
    module.conv1.lin.register_forward_hook(
        lambda layer, given, output: torch.fake_quantize_per_tensor_affine(output, 1.0, 0, -128, 127)
    )
    return module


class Reading(torch.nn.Module):
    """Weights that depend on the attributes, which its module gives it."""

    x = None

    def forward(self, weight):
        return weight if self.x is None else weight * (1 + 0 * self.x.sum())


class Given(Network):
    def forward(self, x, edge_index):
        Reading.x = x
        try:
            return super().forward(x, edge_index)
        finally:
            Reading.x = None


def reading():
    module = Given(GCNConv(6, 5), GCNConv(5, 3))
    torch.nn.utils.parametrize.register_parametrization(module.conv1.lin, "weight", Reading())
    return module


#: Layers of the right type that somebody has put something into.
CHANGED = {
    "hook": (lambda: hooked("register_forward_hook", clamp), "in layer 'conv1' the module computes clamp"),
    "hook before": (
        lambda: hooked("register_forward_pre_hook", lambda layer, given: (given[0].clamp(max=9), *given[1:])),
        "computes clamp",
    ),
    "hook on a part": (lambda: hooked("register_forward_hook", clamp, part="conv1.lin"), "computes clamp"),
    "hook on messages": (lambda: hooked("register_message_forward_hook", clamp), "computes clamp"),
    "hook that scales": (
        lambda: hooked("register_forward_hook", lambda layer, given, output: 1.0001 * output),
        "computes mul more often",
    ),
    "quantised": (quantised, "computes .*fake_quantize"),
    "own message": (lambda: with_part("conv1.message", lambda x_j, edge_weight: x_j), "values that differ"),
    "own forward": (
        lambda: with_part("conv1.lin.forward", lambda x: x @ torch.ones(6, 5).relu()),
        "values that differ",
    ),
    "other product": (lambda: with_part("conv1.lin", Clamped(6, 5, bias=False)), "multiplies by a Clamped"),
    "other sum": (lambda: with_part("conv1.aggr_module", Most()), "aggregates by a Most"),
    "weights of the attributes": (reading, "in layer 'conv1' the module computes sum"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_layers_that_somebody_changed_are_refused(name: str) -> None:
    make, words = CHANGED[name]
    torch.manual_seed(0)
    with pytest.raises(VerificationError, match=words):
        from_pyg(make(), data())


def test_hooks_for_all_modules_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    handle = torch.nn.modules.module.register_module_forward_hook(clamp)
    try:
        with pytest.raises(VerificationError, match="computes clamp"):
            from_pyg(gcn(), data())
    finally:
        handle.remove()
    module, message = gcn(), GCNConv.message
    monkeypatch.setattr(GCNConv, "message", lambda self, x_j, edge_weight: clamp(message(self, x_j, edge_weight)))
    with pytest.raises(VerificationError, match="in layer 'conv1' the module computes clamp"):
        from_pyg(module, data())


def swallowed(module, x, h, edge_index):
    try:
        h = h.clamp(max=6) if x.numpy().sum() > 1e6 else h
    except Exception:
        pass
    return module.conv2(h.relu(), edge_index)


def swallowed_layer(module, x, h, edge_index):
    try:
        h = h + module.extra(x, edge_index)
    except Exception:
        pass
    return module.conv2(h.relu(), edge_index)


def onlookers(module, x, h, edge_index):
    return module.conv2(
        h.relu() if type(h) is not torch.Tensor else h.relu6() if hasattr(h, "relu6") else h.clamp(0, 0.1), edge_index
    )


def in_a_thread(module, x, h, edge_index):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: h.clamp_(max=6)).result()
    return module.conv2(h.relu(), edge_index)


def in_part(module, x, h, edge_index):
    h[:3].relu_()
    return module.conv2(h, edge_index)


def by_hand(module, x, h, edge_index):
    out = torch.zeros(h.shape, dtype=h.dtype)
    out.add_(h)
    return module.conv2(out.relu(), edge_index)


def hidden_view(module, x, h, edge_index):
    kept = h.new_zeros(h.shape)
    kept[:3].add_(h[:3])
    return module.conv2((kept * h).relu(), edge_index)


def with_autocast(module, x, h, edge_index):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return module.conv2(h.relu(), edge_index)


ODD = {
    "swallowed": (swallowed, "out of PyTorch"),
    "thread": (in_a_thread, "computes clamp"),
    "relu6 of relus": (lambda m, x, h, e: m.conv2(h.relu() - (h - 6).relu(), e), "computes sub"),
    "thrown away": (lambda m, x, h, e: (h.relu(), m.conv3(x, e))[1], "given something else than the ReLU"),
    "returned too early": (lambda m, x, h, e: (m.conv2(h.relu(), e), m.conv1(x, e))[1], "given something else"),
    "returned too early, too": (lambda m, x, h, e: (m.conv2(h.relu(), e), h)[1], "something else than what layer"),
    "no relu": (lambda m, x, h, e: m.conv2(h, e), "there is no ReLU"),
    "relu of a part": (in_part, "computes slice"),
    "relu of the attributes": (lambda m, x, h, e: m.conv3(x.relu(), e), "computes relu"),
    "another relu": (lambda m, x, h, e: m.conv2((h, m.conv1(x, e))[0].relu(), e), "given something else"),
    "a tensor of its own": (by_hand, "into a tensor of its own"),
    "product by a view": (hidden_view, "computes slice"),
    "squared": (lambda m, x, h, e: m.conv2((h * h).relu(), e), "computes mul"),
    "steps by rounding": (lambda m, x, h, e: m.conv2(((h + 1e9) - 1e9).relu(), e), "computes add"),
    "truths by copying": (
        lambda m, x, h, e: m.conv2(torch.zeros_like(h, dtype=torch.bool).copy_(h), e),
        "computes copy",
    ),
    "other bits": (
        lambda m, x, h, e: m.conv2(h.relu().view(torch.int32).view(torch.float32), e),
        "changes the precision",
    ),
    "written out": (lambda m, x, h, e: m.conv2(torch.add(h, 0, out=torch.empty(12, 5)).relu(), e), "tensor of its own"),
    "another shape in place": (
        lambda m, x, h, e: m.conv2(h.unsqueeze_(0).relu()[0], e),
        "the shape of a tensor in place",
    ),
    "a set storage": (
        lambda m, x, h, e: m.conv2(torch.empty(0).set_(torch.zeros_like(h)), e),
        "out of PyTorch|its own",
    ),
    "a swallowed layer": (swallowed_layer, "'extra' is a GATConv"),
    "turned": (lambda m, x, h, e: m.conv2(h.flip(0).relu(), e), "computes flip"),
    "sleeping": (lambda m, x, h, e: m.conv2(h.relu() * torch.ones(5, dtype=h.dtype), e), "computes mul"),
    "a skip": (lambda m, x, h, e: m.conv2(h.relu(), e) + h[:, :3], "computes slice"),
    "two kinds of types": (
        lambda m, x, h, e: m.conv2(h.relu() if type(h) is torch.Tensor else h.clamp(min=0), e) * 1,
        "mul",
    ),
    "not for onlookers": (onlookers, "without being watched"),
    "rounded": (lambda m, x, h, e: m.conv2(h.div(1.0, rounding_mode="floor").relu(), e), "computes div"),
    "half precision": (with_autocast, "changes the precision"),
    "behind log_softmax": (lambda m, x, h, e: -F.log_softmax(m.conv2(h.relu(), e), dim=1), "computes neg"),
    "constant": (lambda m, x, h, e: torch.ones(12, 3), "not computed from data.x"),
    "other x": (lambda m, x, h, e: m.conv2(torch.ones(12, 5), e), "not computed from data.x"),
    "forward": (lambda m, x, h, e: m.conv2.forward(h.relu(), e), "computes mm.*layer.forward"),
    "data dependent": (lambda m, x, h, e: m.conv2(h.relu() if h.sum() > 0 else h, e), "computes sum"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_affine_in_the_attributes_but_for_relus_is_all_that_passes(name: str) -> None:
    between, words = ODD[name]
    torch.manual_seed(0)
    with pytest.raises(VerificationError, match=words):
        from_pyg(Odd(between), data())


def test_small_errors_do_not_hide_behind_large_values() -> None:
    """Node 11, by itself, has small logits, all others have large ones; what is wrong with it must be seen."""

    class Wrong(torch.nn.Module):
        def __init__(self, wrong) -> None:
            super().__init__()
            self.conv, self.wrong = GCNConv(6, 3), wrong

        def forward(self, x, edge_index):
            change = torch.zeros(12, 3, dtype=x.dtype)
            change[11, 0] = self.wrong
            return self.conv(x, edge_index) + change

    module, of = Wrong(1e-3), data()
    of.x[:11, 0], of.x[11, 0] = 1, 0
    with torch.no_grad():
        module.conv.lin.weight[:, 0] *= 1e9
    with pytest.raises(VerificationError, match="behind layer 'conv' the module computes add"):
        from_pyg(module, of)

    class Moved(torch.nn.Module):
        """Has another bias at one node, in place of the one that the layer has."""

        def __init__(self) -> None:
            super().__init__()
            self.conv = module.conv

        def forward(self, x, edge_index):
            bias, self.conv.bias = self.conv.bias, None
            try:
                change = torch.zeros(12, 3, dtype=x.dtype)
                change[11, 0] = 1e-3
                handle = self.conv.register_forward_hook(
                    lambda layer, given, output: output + (bias + change), prepend=True
                )
                return self.conv(x, edge_index)
            finally:
                handle.remove()
                self.conv.bias = bias

    with pytest.raises(VerificationError, match="layer 'conv' gives values that differ from P x W"):
        from_pyg(Moved(), of)


def test_units_that_no_input_wakes_are_looked_at_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer that treats the first unit wrongly, which is never positive in any run."""
    module, of = gcn(), data()
    with torch.no_grad():
        module.conv1.bias[0] = -1e6
    linear = module.conv2.lin.forward
    assert torch.equal(linear(torch.ones(1, 5)), F.linear(torch.ones(1, 5), module.conv2.lin.weight))

    class Other(type(module.conv2.lin)):
        def forward(self, x):
            return F.linear(x, self.weight + torch.eye(5, dtype=x.dtype)[:1])

    monkeypatch.setattr(
        type(module.conv2.lin),
        "forward",
        lambda self, x: (Other if len(self.weight) == 3 else torch.nn.Linear).forward(self, x),
    )
    with pytest.raises(VerificationError, match="layer 'conv2' gives values that differ"):
        from_pyg(module, of)


class Swapped(torch.nn.Module):
    """Computes with other weights than it has: those that no attribute matrix that is tried tells apart."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.conv, self.way = GCNConv(6, 3), way

    def forward(self, x, edge_index):
        weight = self.conv.lin.weight
        other = weight + torch.tensor([0, 0, 0, 0, 1e-3, -1e-3], dtype=weight.dtype)
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
    with pytest.raises(VerificationError, match="layer 'conv' gives values that differ"):
        from_pyg(Swapped(way), data())


def test_a_large_bias_does_not_hide_weights() -> None:
    module = Network(GCNConv(6, 5), GCNConv(5, 3)).double()
    with torch.no_grad():
        module.conv2.bias.fill_(1e10)
    from_pyg(module, data())
    scale = torch.tensor([1.0, 0.1, 1.0], dtype=torch.float64)
    module.conv2.lin.register_forward_hook(lambda layer, given, output: output / scale)
    with pytest.raises(VerificationError, match="layer 'conv2' gives values that differ"):
        from_pyg(module, data())


def test_a_layer_that_lies_is_caught_by_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers of the right type that compute something else, which is affine, too."""
    module, of = gcn(), data()
    message = GCNConv.message
    monkeypatch.setattr(GCNConv, "message", lambda self, x_j, edge_weight: message(self, x_j, 1.01 * edge_weight))
    with pytest.raises(VerificationError, match="layer 'conv1' gives values that differ from P x W"):
        from_pyg(module, of)
