"""Attributes divided by the number of ones in their row, as `NormalizeFeatures` leaves them."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nodeproof
from nodeproof import Graph, InputError, Model

RING = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
BITS = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0], [1, 1, 1]])


def divided(bits: np.ndarray) -> np.ndarray:
    return bits / np.maximum(1, bits.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_recognised(dtype: type) -> None:
    graph = Graph(RING, divided(BITS).astype(dtype))
    assert graph.kind == "normalised-rows" and (graph.attributes.toarray() == BITS).all()
    assert graph == Graph(RING, BITS, normalise_rows=True) != Graph(RING, BITS)
    assert Graph(RING, divided(BITS), binarise=True).kind == "bits"
    assert repr(graph) == "Graph(nodes=4, edges=4, attributes=3, kind='normalised-rows')"
    with pytest.raises(InputError, match="number of ones in its row"):
        Graph(RING, 0.9 * divided(BITS))


def test_graphs_and_models_keep_their_kind(tmp_path: Path) -> None:
    graph = Graph(RING, BITS, normalise_rows=True)
    graph.write(tmp_path / "graph.npz")
    assert Graph.read(tmp_path / "graph.npz") == graph == pickle.loads(pickle.dumps(graph))
    model = Model([np.eye(3, 2)], kind="normalised-rows")
    model.write(tmp_path / "model.safetensors")
    assert Model.read(tmp_path / "model.safetensors") == model == pickle.loads(pickle.dumps(model))
    assert model.kind == "normalised-rows" and model != Model([np.eye(3, 2)])
    np.testing.assert_allclose(model.logits(graph), (model.propagation_on(graph) @ divided(BITS))[:, :2])


def test_other_kinds_do_not_fit() -> None:
    rows, bits = Graph(RING, BITS, normalise_rows=True), Graph(RING, BITS)
    with pytest.raises(InputError, match=r"those of the graph are 0 or 1; normalise the rows"):
        nodeproof.certify(bits, Model([np.eye(3, 2)], kind="normalised-rows"), global_budget=1)
    with pytest.raises(InputError, match=r"do not normalise the rows"):
        nodeproof.certify(rows, Model([np.eye(3, 2)]), global_budget=1)
    with pytest.raises(InputError, match="choose 'bits', 'normalised-rows' or 'real-values'"):
        Model([np.eye(3, 2)], kind="counts")


@pytest.mark.parametrize("method", ["ce", "rce", "rh", "rh-u"])
@pytest.mark.parametrize("hidden", [[4], [4, 4]])
def test_every_method_trains_on_them(method: str, hidden: list[int]) -> None:
    graph = Graph(RING, BITS, labels=[0, 0, 1, 1], normalise_rows=True)
    split = nodeproof.Split(graph, train=[0, 1, 2, 3])
    model = nodeproof.train(graph, method, split=split, global_budget=1, steps=5, hidden=hidden).model
    assert model.kind == "normalised-rows"


def test_what_a_module_runs_on_is_certified() -> None:
    """Every admissible set of two flips, run through the module itself."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    from networks import data, gcn
    from torch_geometric.transforms import NormalizeFeatures

    verdicts = set()
    for seed in range(4):
        torch.manual_seed(seed)
        module, of = gcn().double(), data(nodes=5, seed=seed)
        with torch.no_grad():
            module.conv1.lin.weight *= 4
        bits = of.x.numpy() > 0
        of = NormalizeFeatures()(of)
        graph, model = nodeproof.from_pyg(module, of)
        assert graph.kind == model.kind == "normalised-rows" and (graph.attributes.toarray() == bits).all()
        assert model.verification.largest_difference_double < 1e-11
        np.testing.assert_allclose(graph.to_pyg().x.numpy(), divided(bits), rtol=1e-6)
        found = nodeproof.certify(graph, model, global_budget=2, local_budget=2)
        flips = list(itertools.product(range(5), range(6)))
        xs = [bits]
        for chosen in itertools.chain(((flip,) for flip in flips), itertools.combinations(flips, 2)):
            x = bits.copy()
            for flip in chosen:
                x[flip] ^= True
            xs.append(x)
        with torch.no_grad():
            logits = [module.eval()(torch.tensor(divided(x)), of.edge_index).numpy() for x in xs]
        classes = np.array([of_set.argmax(axis=1) for of_set in logits])
        assert not found.undecided.any() and (found.predicted == classes[0]).all()
        assert ((classes != classes[0]).any(axis=0) == found.nonrobust).all()
        verdicts |= {certificate.verdict for certificate in found}
    assert verdicts == {"robust", "nonrobust"}


def test_counting_values_as_1_has_to_be_meant(caplog: pytest.LogCaptureFixture) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    from networks import data, gcn

    torch.manual_seed(4)
    of = data()
    counts = copy.copy(of)
    counts.x = of.x * torch.tensor([6, 0.9, 15, 0.3, 27, 0.03])
    with pytest.raises(InputError, match="real_values=True") as refused:
        nodeproof.from_pyg(gcn(), counts)
    assert "binarise" not in str(refused.value)
    with pytest.raises(InputError, match="another network than the one that runs.*certify_binarised=True"):
        nodeproof.from_pyg(gcn(), counts, binarise=True)
    assert nodeproof.from_pyg(gcn(), of, binarise=True)[0] == Graph.from_pyg(counts, binarise=True, directed=True)
    graph, model = nodeproof.from_pyg(gcn(), counts, certify_binarised=True)
    assert model.kind == "bits" and "another network than the one that runs" in caplog.text
    odd = int(((counts.x != 0) & (counts.x != 1)).sum())
    results = nodeproof.certify(graph, model, global_budget=1), nodeproof.radius(graph, model, max_budget=1)
    for result in results:
        assert (graph.binarised, result.binarised) == (odd, odd)
        assert f"above 0 ({odd} values are neither 0 nor 1)" in result.budget_in_words()
    assert pickle.loads(pickle.dumps(graph)).binarised == odd
    assert nodeproof.certify(*nodeproof.from_pyg(gcn(), of), global_budget=1).binarised == 0


def inside(divide: Callable[[Any], Any]) -> tuple[Any, Any]:
    """A module that divides the rows of the attributes itself, and data with one row of zeros."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    from networks import data
    from torch_geometric.nn import GCNConv

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = GCNConv(6, 8), GCNConv(8, 3)

        def forward(self, x: Any, edge_index: Any) -> Any:
            return self.second(self.first(divide(x), edge_index).relu(), edge_index)

    torch.manual_seed(5)
    of = data()
    of.x[3] = 0
    return Net().eval(), of


@pytest.mark.parametrize("how", ["clamp", "in place", "normalize"])
def test_modules_that_divide_rows_themselves_are_imported(how: str) -> None:
    functional = pytest.importorskip("torch.nn.functional")
    divide = {
        "clamp": lambda x: x / x.sum(-1, keepdim=True).clamp(min=1),
        "in place": lambda x: x.clone().div_(x.sum(-1, keepdim=True).clamp_(min=1.0)),
        "normalize": lambda x: functional.normalize(x, p=1, dim=-1),
    }[how]
    module, of = inside(divide)
    graph, model = nodeproof.from_pyg(module, of)
    assert graph.kind == model.kind == "normalised-rows" and (graph.attributes.toarray() == of.x.numpy()).all()
    found = 0
    for certificate in nodeproof.certify(graph, model, global_budget=3, local_budget=3):
        if certificate.witness is not None:
            x = of.x.clone()
            for node, attribute, to in certificate.witness:
                x[node, attribute] = to
            assert module(x, of.edge_index)[certificate.node].argmax() == certificate.witness.class_
            found += 1
    assert found > 0


@pytest.mark.parametrize(
    ("divide", "words"),
    [
        (lambda x: x / x.sum(-1, keepdim=True), "divides by a number"),
        (lambda x: x / x.sum(-1, keepdim=True).clamp(min=2), "cuts values off"),
        (lambda x: x / x.sum(0, keepdim=True).clamp(min=1), "cuts values off"),
        (lambda x: x / (2 * x).sum(-1, keepdim=True).clamp(min=1), "cuts values off"),
        (lambda x: (x + 1) / x.sum(-1, keepdim=True).clamp(min=1), "divides by a number"),
        (lambda x: x + x / x.sum(-1, keepdim=True).clamp(min=1), "as they are and divided"),
        (lambda x: x + x.sum(-1, keepdim=True).clamp(min=1), "cuts sums of the attributes off"),
    ],
)
def test_other_divisions_are_refused(divide: Callable[[Any], Any], words: str) -> None:
    module, of = inside(divide)
    with pytest.raises(nodeproof.VerificationError, match=words):
        nodeproof.from_pyg(module, of)


def test_real_values_are_not_divided() -> None:
    module, of = inside(lambda x: x / x.sum(-1, keepdim=True).clamp(min=1))
    of.x = of.x - 0.5
    with pytest.raises(nodeproof.VerificationError, match="cuts values off"):
        nodeproof.from_pyg(module, of, real_values=True)
