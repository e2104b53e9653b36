"""PyTorch Geometric: whatever a module's layers do to edges is in the propagation, and the model is the module."""

from __future__ import annotations

import copy
import logging

import numpy as np
import pytest

import nodeproof
from nodeproof import VerificationError, from_pyg

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
F = torch.nn.functional

from networks import Network, Odd, copies, data, gcn, hooked  # noqa: E402
from torch_geometric.data import Data  # noqa: E402
from torch_geometric.nn import (  # noqa: E402
    ChebConv,
    ClusterGCNConv,
    GCNConv,
    GraphConv,
    SAGEConv,
    Sequential,
    SGConv,
    SSGConv,
    TAGConv,
)
from torch_geometric.nn.models import GCN, GIN, GraphSAGE  # noqa: E402

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
    "sage, root weight": lambda: Network(SAGEConv(6, 5), SAGEConv(5, 3)),
    "signed": lambda: Network(ChebConv(6, 5, K=3), ChebConv(5, 3, K=2)),
    "leaky": lambda: Network(GraphConv(6, 5), TAGConv(5, 3), between=lambda x: F.leaky_relu(x, 0.3)),
    "teleporting": lambda: Network(SSGConv(6, 5, alpha=0.2, K=5), ClusterGCNConv(5, 3)),
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
    assert checked.largest_difference <= checked.tolerance and checked.inputs == 4
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
    xs = []
    for i, one in enumerate(flips):
        for other in flips[i:]:
            if one != other and one[0] == other[0]:
                continue
            x = of.x.clone().double()
            for node, attribute in {one, other}:
                x[node, attribute] = 1 - x[node, attribute]
            xs.append(x)
    many = copies(of, xs)
    logits = run(module, many, many.x).numpy().reshape(len(xs), 7, -1)
    own = logits[:, np.arange(7), classes]
    logits[:, np.arange(7), classes] = -np.inf
    smallest = (own - logits.max(axis=2)).min(axis=0)
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
    graph, model = from_pyg(module, of)
    elsewhere, expected = from_pyg(gcn(), Data(x=of.x, edge_index=other.edge_index))
    cached, usual = model.propagation_on(graph).toarray(), expected.propagation_on(elsewhere).toarray()
    np.testing.assert_allclose(cached, usual, atol=1e-7)
    assert model.propagation == "custom" and np.abs(cached - expected.propagation_on(graph).toarray()).max() > 0.1


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

    class OfOtherNames(OfData):
        def forward(self, features, edges, dropout=0.5):
            return self.inner(features, edges)

    assert from_pyg(OfData(), of)[1] == from_pyg(OfOtherNames(), of)[1] == from_pyg(gcn(), of)[1]
    lazy = Network(GCNConv(-1, 5), GCNConv(-1, 3)).eval()
    with pytest.raises(nodeproof.InputError, match="'conv1.lin.weight' has no values yet; call the module once"):
        from_pyg(lazy, of)  # A copy would draw other weights than the module will.
    lazy(of.x, of.edge_index)
    assert from_pyg(lazy, of)[1].weights[0].shape == (6, 5)
    odd = from_pyg(gcn(), of, forward=lambda module, data: module(data.x, edge_index=data.edge_index))
    assert odd[1] == from_pyg(gcn(), of)[1]


def test_sparse_adjacencies_are_read() -> None:
    of = data("directed")
    module = Network(SAGEConv(6, 5), GCNConv(5, 3)).double()
    _, expected = from_pyg(module, of)

    class OfAdjacency(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, x, adj_t):
            return self.inner(x, adj_t)

    sparse = copy.copy(of)
    ones = torch.ones(of.num_edges, dtype=torch.float64)
    sparse.adj_t = torch.sparse_coo_tensor(of.edge_index.flip(0), ones, (12, 12)).coalesce().to_sparse_csr()
    sparse.edge_index = None
    graph, model = from_pyg(OfAdjacency(), sparse)
    assert model.propagations == expected.propagations == ["row-mean", "identity", "symmetric-gcn"]
    np.testing.assert_allclose(model.logits(graph), expected.logits(graph), atol=1e-12)


def test_a_propagation_of_several_names_has_none() -> None:
    """On a ring, means, sums and symmetric GCNs are multiples of one another up to self-loops."""
    nodes = torch.arange(12)
    ring = torch.stack([nodes, (nodes + 1) % 12])
    of = Data(x=torch.eye(12, 6), edge_index=torch.cat([ring, ring.flip(0)], dim=1))
    for module in (GraphSAGE(6, 5, 2, 3), GIN(6, 5, 2, 3), GCN(6, 5, 2, 3)):
        _, model = from_pyg(module, of)
        assert not any(
            isinstance(propagation, (str, dict)) and propagation != "identity" for propagation in model.propagations
        )
        assert model.metadata["edges"]


def test_a_matrix_made_to_fit_a_name_has_none() -> None:
    """It does to two known vectors what the identity does to them: names must be found with others."""
    of = data()
    nodes = of.num_nodes
    seen, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((nodes, 2)))
    unseen = np.eye(nodes)[0]
    for _ in range(3):
        unseen = unseen - seen @ (seen.T @ unseen)
    matrix = torch.tensor(np.eye(nodes) + np.outer(np.ones(nodes), unseen))

    class Made(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(6, 3)

        def forward(self, x, edge_index):
            return self.linear(matrix.to(x.dtype) @ x)

    _, model = from_pyg(Made(), of)
    assert not any(isinstance(propagation, (str, dict)) for propagation in model.propagations)


def test_no_dimension_is_not_every_dimension() -> None:
    from_pyg(Network(GCNConv(6, 5), GCNConv(5, 3), between=lambda h: h.relu().flip([])), data())


def test_files_keep_directions_and_loops(tmp_path) -> None:
    of = Data(x=torch.eye(4, 6), edge_index=torch.tensor([[0, 1, 2, 2], [1, 2, 0, 2]]))
    graph, model = from_pyg(GraphSAGE(6, 5, 2, 3), of)
    graph.write(tmp_path / "graph.npz")
    model.write(tmp_path / "model.safetensors")
    back = nodeproof.Graph.read(tmp_path / "graph.npz")
    assert back == graph
    np.testing.assert_array_equal(
        nodeproof.Model.read(tmp_path / "model.safetensors").logits(back), model.logits(graph)
    )


def test_tuples_need_somebody_to_choose() -> None:
    class Both(Network):
        def forward(self, x, edge_index, edge_weight=None):
            return super().forward(x, edge_index, edge_weight), x

    module, of = Both(GCNConv(6, 5), GCNConv(5, 3)), data()
    with pytest.raises(nodeproof.InputError, match=r"returns a tuple.*forward=lambda module, data: .*\[0\]"):
        from_pyg(module, of)
    graph, model = from_pyg(module, of, forward=lambda module, data: module(data.x, data.edge_index)[0])
    np.testing.assert_allclose(model.logits(graph), run(module, of, of.x)[0], atol=1e-5)


def test_large_imports_say_how_far_they_are() -> None:
    steps: list[tuple[int, int]] = []
    from_pyg(gcn(), data(), progress=lambda done, total: steps.append((done, total)))
    assert steps == [(done, 7) for done in range(1, 8)]


def test_one_layer_called_twice_is_two() -> None:
    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.out = GCNConv(6, 6), GCNConv(6, 3)

        def forward(self, x, edge_index):
            return self.out(self.conv(self.conv(x, edge_index).relu(), edge_index).relu(), edge_index)

    _, model = from_pyg(Twice(), data())
    assert len(model.weights) == 3 and np.array_equal(model.weights[0], model.weights[1])


#: Places that do not depend on the attributes.
PLACES = {
    "a node": 0,
    "nodes": slice(2, 5),
    "every other node, from the end": (slice(None, None, 2),),
    "a unit": (slice(None), 1),
    "the last unit": (..., -1),
    "units": (slice(None), slice(1, 3)),
    "ids": torch.tensor([1, -2, 1]),
    "ids in a list": [0, 3],
    "ids of units": (slice(None), torch.tensor([0, 2])),
    "a mask of units": (slice(None), torch.tensor([True, False, False, True, True])),
}


@pytest.mark.parametrize("value", [0, 1.5])
@pytest.mark.parametrize("place", PLACES)
def test_places_may_be_set_to_one_value(place: str, value: float) -> None:
    class Written(Network):
        def forward(self, x, edge_index, edge_weight=None):
            h = self.conv1(x, edge_index).relu()
            h[PLACES[place]] = value
            h[2:8][1:3] = value
            return self.conv2(h, edge_index)

    torch.manual_seed(1)
    module, of = Written(GCNConv(6, 5), GCNConv(5, 3)), data()
    graph, model = from_pyg(module, of)
    np.testing.assert_allclose(model.logits(graph), run(module, of, of.x), atol=1e-5)
    tampered = graph.with_flips([(0, 0), (3, 2), (7, 5)])
    np.testing.assert_allclose(model.logits(tampered), run(module, of, tampered.to_pyg().x), atol=1e-5)


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


def test_weights_that_are_computed_are_taken_in_double_precision() -> None:
    module = gcn()
    torch.nn.utils.parametrizations.weight_norm(module.conv1.lin)
    of = data()
    _, model = from_pyg(module, of)
    np.testing.assert_array_equal(model.weights[0].T, module.double().conv1.lin.weight.detach().numpy())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_are_verified_too(dtype) -> None:
    of = data()
    of.x = of.x.to(dtype)
    graph, model = from_pyg(gcn().to(dtype), of)
    assert model.verification.largest_difference_double < 1e-9
    assert np.array_equal(graph.attributes.toarray(), of.x.double().numpy())
    with pytest.raises(VerificationError, match="differ from the module's"):
        from_pyg(gcn().to(dtype), of, tolerance=0.0)
    for tolerance in (float("inf"), float("nan"), "small"):
        with pytest.raises(nodeproof.InputError, match="tolerance=.* must be a (finite )?number"):
            from_pyg(gcn(), of, tolerance=tolerance)


def test_a_graph_with_other_edges_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    of = data()
    graph, model = from_pyg(gcn(add_self_loops=False), of)
    options = {"global_budget": 1, "engine": "fast"}
    nodeproof.certify(nodeproof.Graph(graph.adjacency, np.ones((12, 6))), model, **options)
    assert not caplog.records
    other = nodeproof.Graph(np.zeros((12, 12)), graph.attributes)
    nodeproof.certify(other, model, **options)
    assert "a graph of other edges" in caplog.text


def test_a_propagation_with_a_name_goes_along_with_the_graph(caplog: pytest.LogCaptureFixture) -> None:
    module = Network(SAGEConv(6, 5), GCNConv(5, 3))
    _, model = from_pyg(module, data())
    of = data(seed=8, nodes=15)
    graph, expected = from_pyg(module, of)
    assert model.propagations == expected.propagations == ["row-mean", "identity", "symmetric-gcn"]
    np.testing.assert_allclose(model.logits(graph), run(module.double(), of, of.x), atol=1e-12)
    nodeproof.certify(graph, model, global_budget=1, engine="fast")
    assert not caplog.records


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
    "degrees that are none": (lambda: change(edge_weight=-data("weights").edge_weight), "numbers that are not finite"),
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
    with pytest.raises(nodeproof.InputError, match="(?s)" + words):
        from_pyg(gcn(), make())


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
    with pytest.raises(nodeproof.InputError, match="no numbers, as its parameters or buffers are on the device meta"):
        from_pyg(gcn().to("meta"), data())
    for tolerance in (-1, float("nan")):
        with pytest.raises(nodeproof.InputError, match=f"tolerance={tolerance} must be"):
            from_pyg(gcn(), data(), tolerance=tolerance)


def test_logits_that_are_none_are_named() -> None:
    of = data()
    for forward, words in (
        (
            lambda m, d: m(d.x, d.edge_index)[:4],
            r"tensor of shape \(4, 3\).*for the 12 nodes; return a row of logits for each",
        ),
        (lambda m, d: m(d.x, d.edge_index)[:, 0], r"tensor of shape \(12,\).*give forward=lambda module, data: …"),
        (lambda m, d: 1e200 * (1e200 * m(d.x, d.edge_index)), "not finite"),
    ):
        with pytest.raises(nodeproof.InputError, match=words) as error:
            from_pyg(gcn(), of, forward=forward)
        assert "[0], or whatever" not in str(error.value) and "nan" not in str(error.value)


def test_a_split_must_be_one_of_the_graph() -> None:
    graph = nodeproof.Graph.from_pyg(data())
    split = nodeproof.Split.stratified(graph, train="50%", seed=3)
    assert nodeproof.Split.from_pyg(graph.to_pyg(split)) == split
    for wrong, words in (
        (nodeproof.Split(11, [0]), "split is one of 11 nodes, but the graph has 12"),
        (3, "nodeproof.Split"),
    ):
        with pytest.raises(nodeproof.InputError, match=words):
            graph.to_pyg(wrong)


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
    assert from_pyg(gcn(), third, certify_binarised=True) == from_pyg(gcn(), of)
    changed = from_pyg(gcn(), third, certify_binarised=True)[1].verification.binarised
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
    with pytest.raises(VerificationError, match="the forward of Single: takes a maximum"):
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


def test_a_logger_is_no_state() -> None:
    """A logger remembers which levels it was asked for, and nothing that a result depends on."""

    class Logging(Network):
        def __init__(self) -> None:
            super().__init__(GCNConv(6, 5), GCNConv(5, 3))
            self.log = logging.getLogger("nodeproof.tests")

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            self.log.debug("here")
            return super().forward(x, edge_index)

    assert from_pyg(Logging(), data())[1].propagation == "symmetric-gcn"
