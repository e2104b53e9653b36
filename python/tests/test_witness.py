"""Witnesses that are applied: to graphs, and to what a module of PyTorch Geometric reads."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import nodeproof
from nodeproof import Flip, Graph, Model, Witness


@pytest.fixture(scope="module")
def fooled(papers) -> nodeproof.Certificates:
    certificates = nodeproof.certify(*papers, global_budget=4, local_budget=2).filter(verdict="nonrobust")
    assert len(certificates) > 3
    return certificates


def kinds(papers) -> list[tuple[Graph, Model]]:
    """The papers with attributes of every kind, and a network that reads these."""
    graph, model = papers
    bits = graph.attributes.toarray()
    divided = Graph(graph.adjacency, bits, graph.labels, normalise_rows=True)
    values = bits * np.random.default_rng(0).uniform(0.5, 2.0, bits.shape)
    real = Graph(graph.adjacency, values, graph.labels, real_values=True)
    weights = [10 * model.weights[0], *model.weights[1:]]
    return [
        (graph, model),
        (divided, Model(weights, model.biases, kind="normalised-rows")),
        (real, Model(model.weights, model.biases, kind="real-values")),
    ]


@pytest.mark.parametrize("place", range(3))
def test_the_class_really_changes_on_the_tampered_graph(place: int, papers) -> None:
    graph, model = kinds(papers)[place]
    certificates = nodeproof.certify(graph, model, global_budget=5, local_budget=3)
    seen = 0
    for certificate in certificates.filter(verdict="nonrobust"):
        witness = certificate.witness
        tampered = witness.apply(graph)
        logits = model.logits(tampered)[certificate.node]
        assert np.allclose(logits, model.logits_under(graph, certificate.node, witness), atol=1e-12)
        assert logits[certificate.class_] - logits[witness.class_] <= witness.margin + 1e-9
        assert model.predict(tampered)[certificate.node] != certificate.class_ or witness.margin == 0
        assert tampered.kind == graph.kind and tampered.node_names == graph.node_names
        seen += 1
    assert seen > 3
    assert graph == kinds(papers)[place][0], "the graph itself is as it was"


def test_graphs_are_flipped_by_ids_and_names(papers) -> None:
    graph, _ = papers
    tampered = graph.with_flips([("A perceptron revisited", "bayesian"), (3, 0, 1 - graph.attributes[3, 0])])
    different = (tampered.attributes != graph.attributes).tocoo()
    node, attribute = graph.node("A perceptron revisited"), graph.attribute("bayesian")
    assert sorted(zip(different.row, different.col, strict=True)) == sorted([(node, attribute), (3, 0)])
    assert graph.with_flips([]) == graph and tampered != graph
    assert tampered.with_flips([(node, attribute), (3, 0)]) == graph
    real = Graph(graph.adjacency, graph.attributes.toarray() * 0.5, real_values=True, ranges=(0, 2))
    assert real.with_flips([(0, 1, 1.5)]).attributes[0, 1] == 1.5
    assert real.with_flips([(0, 1, 1.5)]).ranges[1][1] == 2


@pytest.mark.parametrize(
    ("flips", "words"),
    [
        ([(0, 99)], "attribute 99 does not exist"),
        ([(99, 0)], "node 99 does not exist"),
        ([("A perceptron revisitd", 0)], "did you mean A perceptron revisited?"),
        ([(9, "baysian")], "no attribute called 'baysian'; did you mean bayesian?"),
        ([(0, 1), (0, 1)], "changed twice"),
        ([(0, 1, 0.5)], "it is a bit; give 0 or 1"),
        ([(0, 1, "x")], "to='x' must be a number"),
        ([3], "3 is no flip; give"),
        ([(3,)], "is no flip"),
        (["no"], "'no' is no flip"),
        (7, "flips=7 must be a list of flips"),
    ],
)
def test_what_is_no_flip_is_named(flips, words, papers) -> None:
    with pytest.raises(nodeproof.InputError, match=words):
        papers[0].with_flips(flips)


def test_a_flip_that_changes_nothing_is_refused(papers, fooled) -> None:
    graph, model = papers
    witness = fooled[0].witness
    with pytest.raises(nodeproof.InputError, match="that already; is the graph another one, or tampered with"):
        witness.apply(witness.apply(graph))
    with pytest.raises(nodeproof.InputError, match="that already"):
        model.logits_under(witness.apply(graph), fooled[0].node, witness)
    real = Graph(graph.adjacency, graph.attributes.toarray() * 0.5, real_values=True)
    with pytest.raises(nodeproof.InputError, match="real value; say what it becomes"):
        real.with_flips([(0, 0)])
    with pytest.raises(nodeproof.InputError, match="applies to a Graph, or to a Data object"):
        witness.apply([1, 2])


def test_witnesses_have_names(papers, fooled, tmp_path) -> None:
    certificate = fooled.of("A perceptron revisited")
    text = repr(certificate.witness)
    graph = papers[0]
    for flip in certificate.witness:
        assert flip.in_words(graph) in text
    assert graph.class_name(certificate.witness.class_) in text
    assert certificate.witness.in_words(9)[0].endswith("the node itself")
    assert pickle.loads(pickle.dumps(certificate.witness)) == certificate.witness
    assert repr(pickle.loads(pickle.dumps(certificate.witness))) == text
    by_hand = Witness((Flip(0, 1, 1),), 2, -0.25)
    assert repr(by_hand) == "Witness(class_=2, margin=-0.25: attribute 1 of node 0 becomes 1)"
    assert by_hand.apply(graph) == graph.with_flips([(0, 1)])
    many = Witness(tuple(Flip(0, place, 1) for place in range(30)), 2, -0.25)
    assert repr(many).endswith("; 18 more)")
    fooled.write(tmp_path / "fooled.jsonl")
    without = nodeproof.Certificates.read(tmp_path / "fooled.jsonl").of(9).witness
    assert without == certificate.witness and "attribute" in repr(without)
    assert without.apply(graph) == certificate.witness.apply(graph)


class TestData:
    """What a module reads is what the graph's network reads: bits, divided rows in the module's precision, real values."""

    def module(self, graph, divide: bool = False):
        torch = pytest.importorskip("torch")
        nn = pytest.importorskip("torch_geometric.nn")

        class Net(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.conv1 = nn.GCNConv(graph.attribute_count, 8)
                self.conv2 = nn.GCNConv(8, 3)

            def forward(self, x, edge_index):
                if divide:
                    x = x / x.sum(-1, keepdim=True).clamp(min=1)
                return self.conv2(self.conv1(x, edge_index).relu(), edge_index)

        torch.manual_seed(3)
        module = Net().eval()
        with torch.no_grad():
            module.conv1.lin.weight.mul_(4)
        return module

    def data(self, graph, kind: str):
        torch = pytest.importorskip("torch")
        transforms = pytest.importorskip("torch_geometric.transforms")
        data = graph.to_pyg()
        data.x = data.x.to(torch.float32)
        if kind == "normalised-rows":
            data = transforms.NormalizeFeatures()(data)
        if kind == "real-values":
            data.x = data.x * torch.rand(data.x.shape, generator=torch.Generator().manual_seed(0)) * 3
        return data

    @pytest.mark.parametrize("kind", ["bits", "normalised-rows", "divided-by-the-module", "real-values"])
    def test_the_module_is_fooled(self, kind: str, papers) -> None:
        torch = pytest.importorskip("torch")
        module = self.module(papers[0], divide=kind == "divided-by-the-module")
        data = self.data(papers[0], kind)
        before = data.x.clone()
        graph, model = nodeproof.from_pyg(module, data, real_values=kind == "real-values")
        assert graph.kind == kind.replace("divided-by-the-module", "normalised-rows")
        certificates = nodeproof.certify(graph, model, global_budget=6, local_budget=4).filter(verdict="nonrobust")
        assert len(certificates) > 3
        for certificate in certificates:
            witness = certificate.witness
            tampered = witness.apply(data)
            assert torch.equal(data.x, before) and tampered.edge_index is data.edge_index
            assert tampered.x.dtype == data.x.dtype
            if kind == "normalised-rows":
                again = self.data(witness.apply(graph), kind)
                assert torch.equal(tampered.x, again.x), "to the bit what NormalizeFeatures makes of the flipped bits"
            else:
                changed = (tampered.x != before).nonzero().tolist()
                assert sorted(map(tuple, changed)) == sorted((flip.node, flip.attribute) for flip in witness)
            with torch.no_grad():
                logits = module(tampered.x, tampered.edge_index)[certificate.node].double().numpy()
            ours = model.logits(witness.apply(graph))[certificate.node]
            assert np.allclose(logits - logits.mean(), ours - ours.mean(), atol=1e-4)
            if witness.margin < -1e-3:
                assert logits.argmax() != certificate.predicted

    def test_what_does_not_fit_is_named(self, papers, fooled) -> None:
        torch = pytest.importorskip("torch")
        witness = fooled[0].witness
        data = self.data(papers[0], "bits")
        with pytest.raises(nodeproof.InputError, match="that already; is the witness one of other data"):
            witness.apply(witness.apply(data))
        data.x = data.x * 0.3
        with pytest.raises(nodeproof.InputError, match="about attributes that are 0 and 1, and x has others"):
            witness.apply(data)
        data.x = torch.zeros(3, 4)
        with pytest.raises(nodeproof.InputError, match="x has shape \\(3, 4\\), but the witness is one of 24 nodes"):
            witness.apply(data)
        by_hand = Witness((Flip(0, 1, 0.5), Flip(9, 1, 1)), 0, -1.0)
        with pytest.raises(nodeproof.InputError, match="no attribute 1 of node 9"):
            by_hand.apply(data)
        assert Witness((Flip(0, 1, 0.5),), 0, -1.0).apply(data).x[0, 1] == 0.5
