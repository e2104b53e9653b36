"""PyTorch Geometric: whatever a module's layers do to edges is in the propagation, and what does not fit is refused."""

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
torch.set_num_threads(1)

from torch_geometric.data import Data  # noqa: E402
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, Sequential, SGConv  # noqa: E402
from torch_geometric.nn.models import GCN, GraphSAGE  # noqa: E402


class Network(torch.nn.Module):
    """Two layers, as people write them; the parts can be exchanged."""

    def __init__(self, first, second, between=torch.relu, last=lambda x: x, before=lambda x: x) -> None:
        super().__init__()
        self.conv1, self.conv2 = first, second
        self.between, self.last, self.before = between, last, before

    def forward(self, x, edge_index, edge_weight=None):
        weight = () if isinstance(self.conv1, SAGEConv) else (edge_weight,)
        x = self.between(self.conv1(self.before(x), edge_index, *weight))
        x = F.dropout(x, 0.5, training=self.training)
        return self.last(self.conv2(x, edge_index, *weight))


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


KINDS = ["plain", "directed", "loops", "duplicates", "weights"]
LAYERS = {
    "gcn": lambda: gcn(),
    "improved": lambda: gcn(improved=True),
    "no bias": lambda: gcn(bias=False),
    "no self-loops": lambda: gcn(add_self_loops=False),
    "no normalisation": lambda: gcn(normalize=False),
    "the other direction": lambda: gcn(flow="target_to_source"),
    "cached": lambda: gcn(cached=True),
    "sage": lambda: Network(SAGEConv(6, 5, root_weight=False), SAGEConv(5, 3, root_weight=False)),
    "sage, no bias": lambda: Network(*(SAGEConv(i, o, root_weight=False, bias=False) for i, o in ((6, 5), (5, 3)))),
    "sgc": lambda: Network(SGConv(6, 5, K=2), SGConv(5, 3, K=2)),
    "log_softmax": lambda: Network(GCNConv(6, 5), GCNConv(5, 3), last=lambda x: F.log_softmax(x, dim=1)),
    "relu_": lambda: Network(GCNConv(6, 5), GCNConv(5, 3), between=F.relu_),
    "one layer": lambda: Sequential(
        "x, edge_index, edge_weight", [(SGConv(6, 3, K=3), "x, edge_index, edge_weight -> x")]
    ),
    "double": lambda: gcn().double(),
}


def run(module, of: Data, x):
    """The module as its user would call it."""
    module = copy.deepcopy(module).eval()
    dtype = next(module.parameters()).dtype
    weight = of.edge_weight.to(dtype) if "edge_weight" in of else None
    with torch.no_grad():
        return module(torch.as_tensor(np.asarray(x)).to(dtype), of.edge_index, weight)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", LAYERS)
def test_the_model_is_the_module(layers: str, kind: str) -> None:
    torch.manual_seed(1)
    module, of = LAYERS[layers](), data(kind)
    if layers == "one layer" and kind != "weights":
        of.edge_weight = torch.ones(of.edge_index.shape[1])
    graph, model = from_pyg(module, of)
    checked = model.verification
    assert checked.largest_difference <= checked.tolerance and checked.inputs == 5
    assert checked.largest_difference_double < 1e-12 * max(1, np.abs(model.logits(graph)).max()) * 1e3
    double = copy.deepcopy(module).double()
    random = np.random.default_rng(5)
    for _ in range(5):
        x = random.random((12, 6)) < random.random()
        theirs = run(double, of, x).numpy()
        ours = model.logits(nodeproof.Graph(graph.adjacency, x, directed=True, keep_self_loops=True))
        centred = [logits - logits.mean(axis=1, keepdims=True) for logits in (theirs, ours)]
        # The module in double precision has another propagation than the one in single precision that was imported.
        np.testing.assert_allclose(*centred, atol=1e-5 * max(1, np.abs(theirs).max()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", ["gcn", "improved", "sage", "sgc", "no normalisation", "the other direction"])
def test_no_set_of_flips_fools_a_certified_module(layers: str, kind: str) -> None:
    """Every admissible set of two flips, run through the module itself."""
    torch.manual_seed(2)
    module, of = LAYERS[layers]().double(), data(kind, nodes=7, seed=3)
    graph, model = from_pyg(module, of)
    found = nodeproof.certify(graph, model, global_budget=2, local_budget=1)
    assert not found.undecided.any()
    clean = run(module, of, of.x)
    classes = clean.argmax(dim=1).numpy()
    assert (found.predicted == classes).all()
    flips = [(node, attribute) for node in range(7) for attribute in range(6)]
    smallest = np.full(7, np.inf)
    for i, one in enumerate(flips):
        for other in flips[i:]:
            if one != other and one[0] == other[0]:
                continue
            x = of.x.clone().double()
            for node, attribute in {one, other}:
                x[node, attribute] = 1 - x[node, attribute]
            logits = run(module, of, x).numpy()
            own = logits[np.arange(7), classes]
            logits[np.arange(7), classes] = -np.inf
            smallest = np.minimum(smallest, own - logits.max(axis=1))
    assert (smallest[found.robust] > -1e-12).all(), "certified, but the module falls"
    assert (smallest[found.nonrobust] < 1e-12).all(), "a witness, but the module holds"
    assert found.robust.any() or found.nonrobust.any()
    for certificate in found:
        if certificate.witness:
            x = of.x.clone().double()
            for flip in certificate.witness:
                x[flip.node, flip.attribute] = flip.to
            logits = run(module, of, x)[certificate.node]
            assert logits[certificate.witness.class_] >= logits[certificate.class_] - 1e-12


def test_the_propagation_is_pygs_own() -> None:
    """By hand: a self-loop keeps its weight, a repeated edge counts twice, degrees are those of receivers."""
    of = Data(x=torch.eye(3, 6), edge_index=torch.tensor([[0, 0, 1, 2], [1, 1, 1, 0]]))
    graph, model = from_pyg(gcn().double(), of)
    # Received, with self-loops: node 0 from 2 and itself, node 1 twice from 0 and once from itself, node 2 from itself.
    degree = np.array([2, 3, 1])
    expected = np.array([[1, 0, 1], [2, 1, 0], [0, 0, 1]]) / np.sqrt(degree[:, None] * degree)
    np.testing.assert_allclose(model.propagation_on(graph).toarray(), expected, atol=1e-15)
    assert graph.adjacency.toarray().tolist() == [[0, 0, 1], [1, 1, 0], [0, 0, 0]]
    sage = Network(SAGEConv(6, 5, root_weight=False), SAGEConv(5, 3, root_weight=False)).double()
    graph, model = from_pyg(sage, of)
    expected = np.array([[0, 0, 1], [2 / 3, 1 / 3, 0], [0, 0, 0]])
    np.testing.assert_allclose(model.propagation_on(graph).toarray(), expected, atol=1e-15)


def test_a_cache_counts_not_the_edges_given() -> None:
    """A module that has cached another graph's propagation uses that one, and so does the model."""
    module, of = gcn(cached=True), data()
    other = data(seed=9)
    module.eval()(other.x, other.edge_index)
    _, model = from_pyg(module, of)
    _, expected = from_pyg(gcn(), Data(x=of.x, edge_index=other.edge_index))
    assert model == expected


def test_the_module_is_not_changed() -> None:
    module, of = gcn(cached=True), data()
    module.train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    from_pyg(module, of)
    assert module.training and module.conv1._cached_edge_index is None
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert not module.conv1._forward_hooks and not module.conv1._propagate_forward_pre_hooks


def test_pygs_own_models_and_data_as_an_argument() -> None:
    of = data()
    _, model = from_pyg(GCN(6, 5, num_layers=3, out_channels=3, dropout=0.5), of)
    assert [weight.shape for weight in model.weights] == [(6, 5), (5, 5), (5, 3)]

    class OfData(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = gcn()

        def forward(self, data):
            return self.inner(data.x, data.edge_index)

    assert from_pyg(OfData(), of)[1] == from_pyg(gcn(), of)[1]
    lazy = Network(GCNConv(-1, 5), GCNConv(-1, 3)).eval()
    with pytest.raises(nodeproof.InputError, match="'conv1.lin.weight' has no values yet; call the module once"):
        from_pyg(lazy, of)  # A copy would draw other weights than the module will.
    lazy(of.x, of.edge_index)
    assert from_pyg(lazy, of)[1].weights[0].shape == (6, 5)
    odd = from_pyg(gcn(), of, forward=lambda module, data: module(data.x, edge_index=data.edge_index))
    assert odd[1] == from_pyg(gcn(), of)[1]


def test_one_layer_called_twice_is_two() -> None:
    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.out = GCNConv(6, 6), GCNConv(6, 3)

        def forward(self, x, edge_index):
            return self.out(self.conv(self.conv(x, edge_index).relu(), edge_index).relu(), edge_index)

    _, model = from_pyg(Twice(), data())
    assert len(model.weights) == 3 and np.array_equal(model.weights[0], model.weights[1])


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


def hooked(register: str, hook, *, part: str = "conv1"):
    module = gcn()
    getattr(module.get_submodule(part), register)(hook)
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


class Odd(torch.nn.Module):
    """What happens between two layers is up to `between(module, x, output of the first, edges)`."""

    def __init__(self, between) -> None:
        super().__init__()
        self.conv1, self.conv2, self.between = GCNConv(6, 5), GCNConv(5, 3), between
        self.conv3, self.extra = GCNConv(6, 3), GATConv(6, 5)

    def forward(self, x, edge_index):
        return self.between(self, x, self.conv1(x, edge_index), edge_index)


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


#: Modules of the right form, written in other ways.
EVEN = {
    "clamp": lambda m, x, h, e: m.conv2(h.clamp(min=0), e),
    "clamp_min_": lambda m, x, h, e: m.conv2(h.clamp_min_(0), e),
    "threshold": lambda m, x, h, e: m.conv2(F.threshold(h, 0, 0), e),
    "dropout of channels": lambda m, x, h, e: m.conv2(F.dropout1d(h.relu(), 0.5, training=False), e),
    "single precision at the end": lambda m, x, h, e: F.log_softmax(m.conv2(h.relu(), e).float(), dim=-1),
    "views": lambda m, x, h, e: m.conv2(h.reshape(3, 4, 5).relu().view(12, 5)[:].contiguous(), e),
    "relu twice": lambda m, x, h, e: m.conv2(h.relu().relu(), e),
    "squeezed at the end": lambda m, x, h, e: F.log_softmax(m.conv2(h.relu(), e), dim=1).squeeze(),
    "for inference": lambda m, x, h, e: torch.inference_mode()(lambda: m.conv2(h.relu(), e))(),
    "printed": lambda m, x, h, e: (print(h.shape, h.dtype), m.conv2(h.relu(), e))[1],
    "without gradients": lambda m, x, h, e: m.conv2(h.detach().data.relu(), e),
}


@pytest.mark.parametrize("name", EVEN)
def test_other_ways_to_write_the_same_are_the_same(name: str) -> None:
    torch.manual_seed(0)
    module, of = Odd(EVEN[name]), data()
    graph, model = from_pyg(module, of)
    with torch.no_grad():
        assert np.array_equal(model.predict(graph), module.eval()(of.x, of.edge_index).argmax(1).numpy())


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


def test_hooks_and_compilers_that_change_nothing_are_fine() -> None:
    seen, of = [], data()
    module = hooked("register_forward_hook", lambda layer, given, output: seen.append(output.shape))
    assert from_pyg(module, of)[1] == from_pyg(gcn(), of)[1] == from_pyg(torch.compile(gcn()), of)[1]
    assert seen

    class Positional(Network):
        def forward(self, x, edge_index, /):
            return super().forward(x, edge_index)

    torch.manual_seed(0)
    assert from_pyg(Positional(GCNConv(6, 5), GCNConv(5, 3)), of)[1].attributes == 6


def test_weights_that_are_computed_are_taken_as_they_are() -> None:
    module = gcn()
    torch.nn.utils.parametrizations.weight_norm(module.conv1.lin)
    of = data()
    _, model = from_pyg(module, of)
    np.testing.assert_array_equal(model.weights[0].T, module.conv1.lin.weight.detach().double().numpy())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_are_verified_too(dtype) -> None:
    of = data()
    of.x = of.x.to(dtype)
    graph, model = from_pyg(gcn().to(dtype), of)
    assert model.verification.largest_difference_double < 1e-9
    assert np.array_equal(graph.attributes.toarray(), of.x.double().numpy())
    with pytest.raises(VerificationError, match="values that differ"):
        from_pyg(gcn().to(dtype), of, tolerance=0.0)
    for tolerance in (float("inf"), float("nan"), "small"):
        with pytest.raises(nodeproof.InputError, match="tolerance=.* must be a finite number"):
            from_pyg(gcn(), of, tolerance=tolerance)


def test_a_graph_with_other_edges_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    of = data()
    graph, model = from_pyg(gcn(), of)
    options = {"global_budget": 1, "engine": "fast"}
    nodeproof.certify(nodeproof.Graph(graph.adjacency, np.ones((12, 6))), model, **options)
    assert not caplog.records
    other = nodeproof.Graph(np.zeros((12, 12)), graph.attributes)
    nodeproof.certify(other, model, **options)
    assert "a graph of other edges" in caplog.text


def test_a_layer_that_lies_is_caught_by_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers of the right type that compute something else, which is affine, too."""
    module, of = gcn(), data()
    message = GCNConv.message
    monkeypatch.setattr(GCNConv, "message", lambda self, x_j, edge_weight: message(self, x_j, 1.01 * edge_weight))
    with pytest.raises(VerificationError, match="layer 'conv1' gives values that differ from P x W"):
        from_pyg(module, of)


def change(**changes):
    of = data("weights")
    for name, value in changes.items():
        setattr(of, name, value)
    return of


WRONG = {
    "float attributes": (lambda: change(x=data().x / 3), "NormalizeFeatures"),
    "NaN": (lambda: change(x=data().x * float("nan")), "is nan.*finite"),
    "no attributes": (lambda: change(x=None), "no attributes x"),
    "flat attributes": (lambda: change(x=torch.ones(12)), "nodes × attributes"),
    "sparse attributes": (lambda: change(x=data().x.to_sparse()), "x is a sparse tensor"),
    "labels of many": (lambda: change(y=torch.ones(12, 2)), "one class a node"),
    "negative weights": (lambda: change(edge_weight=-data("weights").edge_weight), "certificates need finite weights"),
    "degrees that are none": (lambda: change(edge_weight=-data("weights").edge_weight), "need finite weights"),
    "whole weights": (
        lambda: change(edge_weight=torch.ones(data("weights").num_edges, dtype=torch.int64)),
        "cannot be run on the data",
    ),
    "no edges": (lambda: change(edge_index=None), "edge_index"),
    "an edge to nowhere": (lambda: change(edge_index=torch.tensor([[0], [12]]), edge_weight=None), "names node 12"),
    "other attributes": (lambda: change(x=torch.ones(12, 7)), "cannot be run on the data: RuntimeError"),
}


@pytest.mark.parametrize("name", WRONG)
def test_data_that_do_not_fit_are_named(name: str) -> None:
    make, words = WRONG[name]
    module = gcn(normalize=False) if name == "negative weights" else gcn()
    with pytest.raises(nodeproof.InputError, match="(?s)" + words):
        from_pyg(module, make())


def test_weights_that_are_not_finite_are_named() -> None:
    module = gcn()
    with torch.no_grad():
        module.conv2.bias[1] = float("nan")
    with pytest.raises(nodeproof.InputError, match="parameter 'conv2.bias' has a value that is not finite"):
        from_pyg(module, data())
    with pytest.raises(nodeproof.InputError, match="takes a torch.nn.Module"):
        from_pyg(data(), module)
    with pytest.raises(nodeproof.InputError, match="must be a torch_geometric.data.Data, not a dict"):
        from_pyg(gcn(), data().to_dict())


def test_the_data_are_not_changed() -> None:
    class InPlace(Network):
        def forward(self, x, edge_index, edge_weight):
            return super().forward(x, edge_index, edge_weight.mul_(0.5))

    of = data("weights")
    before = of.edge_weight.clone()
    from_pyg(InPlace(GCNConv(6, 5), GCNConv(5, 3)), of)
    assert torch.equal(of.edge_weight, before)


def test_binarised_attributes_are_binarised_for_the_module_too(caplog: pytest.LogCaptureFixture) -> None:
    of = data()
    third = copy.copy(of)
    third.x = of.x * torch.tensor([6, 0.9, 15, 0.3, 27, 0.03])
    assert from_pyg(gcn(), third, binarise=True) == from_pyg(gcn(), of)
    changed = from_pyg(gcn(), third, binarise=True)[1].verification.binarised
    with torch.no_grad():
        classes = [gcn().eval()(x, of.edge_index).argmax(1).numpy() for x in (third.x, of.x)]
    assert changed and list(changed) == np.flatnonzero(classes[0] != classes[1]).tolist()
    assert "changes what the module predicts" in caplog.text


def test_ties_are_nonrobust() -> None:
    module, of = gcn(), data()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
        module.conv2.bias.copy_(torch.tensor([0.0, 1.0, 1.0]))
    graph, model = from_pyg(module, of)
    assert model.verification.disagreements == ()
    assert nodeproof.certify(graph, model, global_budget=1).nonrobust.all(), "a tie without any flip"


def test_classes_that_rounding_decides_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    """1 + 2⁻³⁰ is 1 in single precision: the module sees a tie and takes the first class, the exact network the second."""
    module = Sequential("x, edge_index", [(GCNConv(2, 2, bias=False), "x, edge_index -> x")])
    with torch.no_grad():
        next(module.parameters()).copy_(torch.tensor([[1.0, 0.0], [1.0, 2.0**-30]]))
    of = Data(x=torch.tensor([[1.0, 1.0], [1.0, 0.0]]), edge_index=torch.zeros((2, 0), dtype=torch.int64))
    graph, model = from_pyg(module, of)
    assert model.verification.disagreements == (0,) and "decides the class of 1 nodes" in caplog.text
    assert model.predict(graph).tolist() == [1, 0]


def test_a_module_of_single_precision_only_is_compared_there(caplog: pytest.LogCaptureFixture) -> None:
    class Single(torch.nn.Module):
        def __init__(self, last=lambda x: x) -> None:
            super().__init__()
            self.inner, self.last = gcn(), last

        def forward(self, x, edge_index):
            return self.last(self.inner(x.float(), edge_index))

    _, model = from_pyg(Single(), data())
    assert model.verification.largest_difference_double is None and "cannot be run in double precision" in caplog.text
    with pytest.raises(VerificationError, match="behind layer"):
        from_pyg(Single(lambda logits: logits.clamp(max=float(logits.max()) - 0.1)), data())


def test_there_and_back() -> None:
    random = np.random.default_rng(0)
    upper = np.triu(random.random((9, 9)) < 0.3, 1)
    for loops in (False, True):
        adjacency = (upper | upper.T | (loops & np.eye(9, dtype=bool) & (np.arange(9) % 2 == 0))).astype(int)
        graph = nodeproof.Graph(
            adjacency, random.random((9, 4)) < 0.5, random.integers(2, size=9), keep_self_loops=True
        )
        weights = [random.normal(size=(4, 3)), random.normal(size=(3, 2))]
        biases = [random.normal(size=3), random.normal(size=2)]
        for propagation in ("symmetric-gcn", "row-normalised", random.random((9, 9)) * (random.random((9, 9)) < 0.3)):
            model = nodeproof.Model(weights, biases, propagation)
            split = nodeproof.Split(graph, [0, 1], [2])
            module, of = nodeproof.to_pyg(graph, model, split=split, dtype=torch.float64)
            with torch.no_grad():
                logits = module(of.x, of.edge_index, of.edge_weight).numpy()
            np.testing.assert_allclose(logits, model.logits(graph), atol=1e-12)
            assert nodeproof.Split.from_pyg(of) == split and of.y.tolist() == graph.labels.tolist()
            again, back = from_pyg(module, of)
            np.testing.assert_allclose(back.logits(again), model.logits(graph), atol=1e-12)
            if not loops and model.propagation == "symmetric-gcn":
                assert nodeproof.Graph.from_pyg(of) == graph
    single = model.to_pyg()
    assert next(single.parameters()).dtype == torch.float32 and not single.training


def test_state_dicts_of_torch() -> None:
    module, of = gcn(), data()
    model = nodeproof.Model.from_state_dict(module.state_dict(), "symmetric-gcn")
    imported = from_pyg(module, of)[1]
    assert all(np.array_equal(*pair) for pair in zip(model.weights, imported.weights, strict=True))
    graph = nodeproof.Graph.from_pyg(of)
    np.testing.assert_allclose(model.logits(graph), run(module, of, of.x), atol=1e-5)


def test_masks_and_directions_of_data() -> None:
    of = data("directed")
    with pytest.raises(nodeproof.InputError, match="directed"):
        nodeproof.Graph.from_pyg(of)
    of.train_mask = torch.zeros(12, 4, dtype=torch.bool)
    with pytest.raises(nodeproof.InputError, match="several splits"):
        nodeproof.Split.from_pyg(of)
    with pytest.raises(nodeproof.InputError, match="no train_mask"):
        nodeproof.Split.from_pyg(data())
