"""Attributes that are real values."""

from __future__ import annotations

import hashlib
import json
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


def forged(lines: bytes, **changes: object) -> bytes:
    """A file of results whose records have other fields, with hashes that fit (`docs/formats.md`)."""
    before, made = bytes(8), []
    for line in lines.splitlines():
        record = json.loads(line)
        if "hash" in record:
            del record["hash"]
            record |= changes
        text = json.dumps(record, separators=(",", ":")).encode()
        before = hashlib.sha256(before + text).digest()[:8]
        made.append(text if "format" in record else text[:-1] + b',"hash":"' + before.hex().encode() + b'"}')
    return b"\n".join(made) + b"\n"


def test_a_missing_proof_is_told_from_a_claim_that_is_wrong(caplog, tmp_path: Path) -> None:
    # The margin is 2 + relu(2x + 1) - relu(2x), which is at least 2: after any flip x still moves between its ends.
    weights = [[[2.0, 2.0]], [[1.0, 0.0], [-1.0, 0.0]]]
    model = nodeproof.Model(weights, [[1.0, 0.0], [0.5, 0.0]], "identity", kind="real-values")
    graph = Graph(np.zeros((2, 2)), np.zeros((2, 1)), real_values=True, ranges=(-1, 1))
    asked = {"global_budget": 1, "local_budget": 1, "protect_nodes": [1]}
    found = nodeproof.certify(graph, model, **asked, proofs=True)
    assert found.robust.all()
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == ["1 of 2 robust nodes have no proof"]
    assert set(found.check(model)) == {0}
    assert "no proof" in found.check(model)[0] and "may be right all the same" in found.check(model)[0]
    assert "proofs=True" not in found.check(model)[0]
    several = nodeproof.certify(graph, model, **asked | {"global_budget": [0, 1]}, proofs=True)
    assert len(caplog.records) == 2 and several[0].check(model) == {}
    radii = nodeproof.radius(graph, model, max_budget=1, local_budget=1, proofs=True)
    assert all("no proof" in reason for reason in radii.check(model).values()) and set(radii.check(model)) == {0, 1}
    caplog.clear()
    plain = nodeproof.certify(graph, model, **asked)
    assert plain.check(model)[0].endswith("proofs=True keeps proofs") and not caplog.records
    path = tmp_path / "forged.jsonl"
    path.write_bytes(forged(plain._core.lines()))
    assert nodeproof.Certificates.read(path, graph) == plain
    path.write_bytes(forged(plain._core.lines(), margin=5.0, margins=[None, 5.0]))
    assert "is smaller than it says" in nodeproof.Certificates.read(path, graph).check(model)[1]
