"""Worst-case margins as a loss for other people's training loops: what PyTorch sees of the compiled half."""

from __future__ import annotations

import os
import sys
import threading

import numpy as np
import pytest

import nodeproof
from nodeproof import _core

NODES = np.array([3, 0, 17, 3], dtype=np.uint32)


def tensors_of(model: nodeproof.Model) -> list[np.ndarray]:
    tensors = []
    for layer in model.layers:
        tensors += [term.weight for term in layer.terms if not isinstance(term.weight, float)]
        tensors.append(layer.bias)
    return tensors


def robust_loss(graph: nodeproof.Graph, model: nodeproof.Model, worst_case: str | None = None, threads: int = 0):
    budget = _core.Budget(graph._core, 3, "2", "both", {}, [], [], None, False)
    return _core.RobustLoss(graph._core, model._core, budget, worst_case, threads)


@pytest.fixture(scope="module")
def sage(papers) -> nodeproof.Model:
    graph, _ = papers
    return nodeproof.train(graph, "ce", global_budget=3, steps=20, train=0.5, architecture="sage", evaluate=False).model


def numeric(function, tensors: list[np.ndarray], tensor: int, place: tuple[int, ...]) -> float:
    """The derivative by central differences."""
    values = []
    for change in (1e-6, -1e-6):
        changed = [np.array(given) for given in tensors]
        changed[tensor][place] += change
        values.append(function(changed))
    return (values[0] - values[1]) / 2e-6


def asked(loss, what: str):
    """A function of the tensors, and its gradient."""
    if what == "margins":
        weights = np.sin(np.arange(len(NODES) * 3.0)).reshape(len(NODES), 3)

        def gradient(tensors):
            return loss.margins_gradient(tensors, NODES, loss.margins(tensors, NODES, None)[1], weights)

        return lambda tensors: float((loss.margins(tensors, NODES, None)[0] * weights).sum()), gradient
    call = {
        "hinge": lambda tensors, wanted: loss.hinge(tensors, NODES, None, 30.0, 1.0, wanted),
        "cross entropy": lambda tensors, wanted: loss.cross_entropy(tensors, NODES, None, wanted),
    }[what]
    return lambda tensors: call(tensors, False)[0], lambda tensors: call(tensors, True)[2]


@pytest.mark.parametrize("worst_case", ["dual", "first-order"])
@pytest.mark.parametrize("what", ["hinge", "cross entropy", "margins"])
def test_gradients_have_the_shapes_of_the_weights_and_are_right(what, worst_case, papers, sage) -> None:
    graph, gcn = papers
    for model in (gcn, sage):
        # Margins have kinks where weights are equal, as those of the example are.
        random = np.random.default_rng(1)
        tensors = [given + 0.1 * random.normal(size=given.shape) for given in tensors_of(model)]
        value, gradient = asked(robust_loss(graph, model, worst_case), what)
        found = gradient(tensors)
        assert [made.shape for made in found] == [given.shape for given in tensors]
        for tensor, made in enumerate(found):
            steepest = np.unravel_index(np.abs(made).argmax(), made.shape)
            for place in {tuple(map(int, steepest)), tuple(size // 2 for size in made.shape)}:
                expected = numeric(value, tensors, tensor, place)
                assert made[place] == pytest.approx(expected, rel=1e-4, abs=1e-6), (tensor, place)
        assert max(np.abs(made).max() for made in found) > 1e-3


def test_margins_are_those_that_are_certified(papers) -> None:
    graph, model = papers
    loss = robust_loss(graph, model)
    assert loss.worst_case == "dual"
    tensors = tensors_of(model)
    margins, classes = loss.margins(tensors, NODES, None)
    assert margins.shape == (4, 3) and (margins[0] == margins[3]).all()
    assert (margins[range(4), classes] == 0).all()
    certificates = nodeproof.certify(graph, model, nodes=NODES[:3], global_budget=3, local_budget=2, engine="fast")
    assert (classes[:3] == certificates.predicted).all()
    proved = np.nan_to_num(certificates.margins, nan=0.0)
    assert margins[:3] == pytest.approx(proved, abs=1e-9)
    others = np.where(np.arange(3) == classes[:, None], np.inf, margins)
    smallest = loss.hinge(tensors, NODES, None, 1.0, None, False)
    assert smallest[1].tolist() == others.min(axis=1).tolist() and smallest[2] is None
    hinge = np.maximum(0, 1 - np.where(np.isinf(others), 1, others)).sum(axis=1).mean()
    assert smallest[0] == pytest.approx(hinge, rel=1e-12)
    assert loss.margins(tensors, NODES[:0], None)[0].shape == (0, 3)


def test_a_model_has_the_weights_that_were_given(papers) -> None:
    graph, model = papers
    loss = robust_loss(graph, model)
    # PyTorch's linear layers have their weights the other way round.
    tensors = [np.array(given.T, order="C").T + 0.5 for given in tensors_of(model)]
    changed = nodeproof.Model._of(loss.model(tensors))
    assert all((made == given).all() for made, given in zip(tensors_of(changed), tensors, strict=True))
    flat = [given.ravel() for given in tensors]
    assert loss.model(flat).fingerprint == changed._core.fingerprint != model._core.fingerprint
    assert (robust_loss(graph, changed).margins(flat, NODES, None)[0] == loss.margins(tensors, NODES, None)[0]).all()


def test_threads_change_no_bit(papers) -> None:
    graph, model = papers
    nodes = np.arange(graph.nodes, dtype=np.uint32)
    one, four = (
        robust_loss(graph, model, threads=n).hinge(tensors_of(model), nodes, None, 9.0, None, True) for n in (1, 4)
    )
    assert one[0] == four[0] and (one[1] == four[1]).all()
    assert all((a == b).all() for a, b in zip(one[2], four[2], strict=True))


def test_threads_may_share_one(papers) -> None:
    graph, model = papers
    loss, tensors = robust_loss(graph, model), tensors_of(model)
    halves = [given / 2 for given in tensors]
    expected = [loss.hinge(of, NODES, None, 9.0, None, False)[0] for of in (tensors, halves)]
    found: list[list[float]] = [[], []]

    def ask(which: int) -> None:
        for _ in range(20):
            found[which].append(loss.hinge((tensors, halves)[which], NODES, None, 9.0, None, False)[0])

    asking = [threading.Thread(target=ask, args=(which,)) for which in (0, 1)]
    [thread.start() for thread in asking]
    [thread.join() for thread in asking]
    assert found == [[expected[0]] * 20, [expected[1]] * 20]


@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(papers) -> None:
    graph, model = papers
    loss, tensors = robust_loss(graph, model, threads=2), tensors_of(model)
    expected = loss.hinge(tensors, NODES, None, 9.0, None, False)[0]
    child = os.fork()
    if child == 0:
        # Ends the child if it hangs.
        __import__("signal").alarm(20)
        same = loss.hinge(tensors, NODES, None, 9.0, None, False)[0] == expected
        del loss
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert loss.hinge(tensors, NODES, None, 9.0, None, False)[0] == expected


def test_mistakes_are_named(papers) -> None:
    graph, model = papers
    loss, tensors = robust_loss(graph, model), tensors_of(model)

    def refused(call, *arguments, match: str) -> None:
        with pytest.raises(nodeproof.InputError, match=match):
            call(*arguments)

    def hinge(tensors, nodes=NODES, classes=None, margin=1.0, saturation=None):
        return loss.hinge(tensors, nodes, classes, margin, saturation, True)

    refused(hinge, tensors[:-1], match="the list of tensors has shape 3, but the model has 4: W0, b0, W1, b1")
    refused(hinge, [*tensors[:3], np.zeros(9)], match="b1 has shape 9, but it must have 3 entries")
    refused(loss.model, [tensors[0][1:], *tensors[1:]], match=r"W0 has shape \d+, but it must have \d+ entries")
    refused(hinge, [*tensors[:3], np.full(3, np.nan)], match="b1 holds NaN at position 0")
    refused(hinge, [1e200 * tensor for tensor in tensors], match="numbers overflow; make the weights smaller")
    refused(hinge, tensors, NODES + 100, match="node 103 does not exist: the graph has 24 nodes")
    refused(hinge, tensors, NODES[:0], match="the number of nodes is 0")
    refused(hinge, tensors, NODES, NODES[:1], match="the number of classes is 1; give one for each of the 4 nodes")
    refused(hinge, tensors, NODES, NODES, match="a class is 3, of node 3; the model has 3 classes")
    refused(hinge, tensors, NODES, None, -1.0, match="margin is -1")
    refused(hinge, tensors, NODES, None, 1.0, 0.0, match="saturation is 0")
    classes, weights = np.zeros(4, np.uint32), np.zeros((4, 2))
    refused(loss.margins_gradient, tensors, NODES, classes, weights, match="weights is 4 × 2; give one for each")
    refused(robust_loss, graph, model, "worst", match="worst_case is worst; choose dual or first-order")
    refused(robust_loss, graph, model, None, 10**9, match="threads")
    with pytest.raises(TypeError):
        hinge([tensor.astype(np.float32) for tensor in tensors])
