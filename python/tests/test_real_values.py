"""Attributes that are real values."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import nodeproof
from nodeproof import Graph, InputError, Split

RING = [[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]]


@pytest.fixture(scope="module")
def x() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(4, 5)).round(3)


def test_ranges_are_those_of_columns_with_0_in_them(x: np.ndarray) -> None:
    graph = Graph.from_edges(RING, x, real_values=True)
    low, high = graph.ranges
    assert graph.kind == "real-values" and repr(graph).endswith("kind='real-values')")
    np.testing.assert_array_equal(graph.attributes, x)
    np.testing.assert_array_equal(low, np.minimum(0, x.min(axis=0)))
    np.testing.assert_array_equal(high, np.maximum(0, x.max(axis=0)))
    given = Graph.from_edges(RING, x, real_values=True, ranges=(-1, np.arange(5)))
    np.testing.assert_array_equal(given.ranges[0], np.full(5, -1.0))
    np.testing.assert_array_equal(given.ranges[1], np.arange(5.0))
    assert given.fingerprint != graph.fingerprint


def test_what_is_no_range_is_refused(x: np.ndarray) -> None:
    for ranges in (3, (1, 2, 3), (0, np.ones(4)), ("a", "b")):
        with pytest.raises(InputError, match="each a number or an array of 5"):
            Graph.from_edges(RING, x, real_values=True, ranges=ranges)
    with pytest.raises(InputError, match="attribute 0 cannot have values from 1 to 0"):
        Graph.from_edges(RING, x, real_values=True, ranges=(1, 0))
    with pytest.raises(InputError, match="pass real_values=True"):
        Graph.from_edges(RING, x > 0, ranges=(0, 1))
    with pytest.raises(InputError, match="leave out binarise"):
        Graph.from_edges(RING, x, real_values=True, binarise=True)
    with pytest.raises(InputError, match="real_values=True"):
        Graph.from_edges(RING, x)
    with pytest.raises(InputError, match="finite number"):
        Graph.from_edges(RING, np.full((4, 5), np.nan), real_values=True)


def test_graphs_are_what_they_were_after_pickling_and_writing(x: np.ndarray, tmp_path: Path) -> None:
    graph = Graph.from_edges(RING, x, [0, 1, 0, 1], real_values=True, ranges=(-2, 2))
    graph.write(tmp_path / "graph.npz")
    for other in (pickle.loads(pickle.dumps(graph)), Graph.read(tmp_path / "graph.npz")):
        assert other.fingerprint == graph.fingerprint
    path = tmp_path / "dense.npz"
    with np.load(tmp_path / "graph.npz") as members:
        np.savez(path, **{name: members[name] for name in members.files if not name.endswith(("_low", "_high"))})
    with pytest.raises(InputError, match="real_values=True"):
        Graph.read(path)
    assert Graph.read(path, real_values=True, ranges=(-2, 2)).fingerprint == graph.fingerprint


def test_witnesses_change_the_prediction_of_numpy() -> None:
    random = np.random.default_rng(1)
    x = random.normal(size=(40, 8))
    edges = np.stack([np.arange(40), (np.arange(40) + 1) % 40])
    labels = (x[:, 0] + x[:, 1] > 0).astype(int)
    graph = Graph.from_edges(edges, x, labels, real_values=True, directed=False)
    split = Split(graph, np.arange(40))
    model = nodeproof.train(graph, "ce", split=split, global_budget=1, local_budget=1, hidden=8, steps=100).model
    assert model.kind == "real-values"
    certificates = nodeproof.certify(graph, model, global_budget=2, local_budget=2)
    low, high = graph.ranges
    propagation = (graph.adjacency.toarray() + np.eye(40)) / 3
    found = 0
    for certificate in certificates:
        if certificate.witness is None:
            continue
        tampered = x.copy()
        for node, attribute, to in certificate.witness:
            assert low[attribute] <= to <= high[attribute]
            tampered[node, attribute] = to
        hidden = np.maximum(0, propagation @ tampered @ model.weights[0] + model.biases[0])
        logits = propagation @ hidden @ model.weights[1] + model.biases[1]
        assert logits[certificate.node].argmax() == certificate.witness.class_
        words = certificate.witness.flips[0].in_words(graph)
        assert words.startswith(("raise attribute", "lower attribute")) and " to " in words
        found += 1
    assert found > 5


def test_a_module_that_reads_real_values_is_imported_as_it_is() -> None:
    torch = pytest.importorskip("torch")
    data_of = pytest.importorskip("torch_geometric.data").Data
    from torch_geometric.nn import GCNConv

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = GCNConv(6, 8), GCNConv(8, 3)

        def forward(self, x, edge_index):
            return self.second(self.first(x, edge_index).relu(), edge_index)

    torch.manual_seed(0)
    data = data_of(x=torch.randn(12, 6), edge_index=torch.tensor([[*range(12)], [*range(1, 12), 0]]))
    module = Net().eval()
    with pytest.raises(InputError, match="real_values=True"):
        nodeproof.from_pyg(module, data)
    with pytest.raises(InputError, match="leave out binarise"):
        nodeproof.from_pyg(module, data, real_values=True, binarise=True)
    graph, model = nodeproof.from_pyg(module, data, real_values=True)
    assert (graph.kind, model.kind) == ("real-values", "real-values")
    np.testing.assert_array_equal(graph.attributes, data.x.double().numpy())
    clean = module(data.x, data.edge_index)
    for certificate in nodeproof.certify(graph, model, global_budget=2, local_budget=2):
        assert certificate.predicted == clean[certificate.node].argmax()
        if certificate.witness is not None:
            x = data.x.clone()
            for node, attribute, to in certificate.witness:
                x[node, attribute] = to
            assert module(x, data.edge_index)[certificate.node].argmax() == certificate.witness.class_
