"""Verdicts and radii, held against every admissible set of flips of tiny graphs, in exact arithmetic."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from conftest import tiny

import nodeproof
from nodeproof import Graph, Model, _core


def exact_logits(p, x, weights, biases, node):
    """Logits of one node as fractions; `p`, weights and biases are the doubles that nodeproof has."""
    rows = [[Fraction(float(value)) for value in row] for row in x]
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        if i:
            rows = [[max(value, Fraction(0)) for value in row] for row in rows]
        gathered = [
            [sum(pm * row[j] for pm, row in zip(prow, rows, strict=True) if pm) for j in range(len(rows[0]))]
            for prow in p
        ]
        w = [[Fraction(float(value)) for value in row] for row in weight]
        rows = [
            [sum(g * w[j][k] for j, g in enumerate(row)) + Fraction(float(bias[k])) for k in range(len(bias))]
            for row in gathered
        ]
    return rows[node]


def worst_margin(p, x, weights, biases, node, class_, budget, local, allowed):
    """The smallest margin over all admissible sets."""
    flips = [(n, d) for n in range(len(x)) for d in range(len(x[0])) if allowed(n, d)]
    worst = None
    for size in range(budget + 1):
        for chosen in itertools.combinations(flips, size):
            if any(sum(n == m for m, _ in chosen) > local for n, _ in chosen):
                continue
            tampered = [row[:] for row in x]
            for n, d in chosen:
                tampered[n][d] = 1 - tampered[n][d]
            logits = exact_logits(p, tampered, weights, biases, node)
            margin = min(logits[class_] - logit for k, logit in enumerate(logits) if k != class_)
            worst = margin if worst is None else min(worst, margin)
    return worst


def test_verdicts_are_the_truth() -> None:
    seen = [verdict for seed in range(8) for verdict in decided(seed)]
    assert seen.count("robust") > 5 and seen.count("nonrobust") > 5, seen


def decided(seed: int) -> list[str]:
    """Verdicts on all nodes of a random problem, each held against the truth."""
    adjacency, x, weights, biases = tiny(seed, nodes=4, attributes=3, hidden=2)
    graph = Graph(adjacency, x)
    options = [
        {},
        {"add_only": True},
        {"delete_only": True},
        {"protect_nodes": [0], "protect_attributes": [1]},
    ][seed % 4]

    def allowed(n, d):
        if (options.get("add_only") and x[n][d]) or (options.get("delete_only") and not x[n][d]):
            return False
        return n not in options.get("protect_nodes", ()) and d not in options.get("protect_attributes", ())

    seen = []
    for propagation in ("symmetric-gcn", np.array([[0.5, 0, 0, 0.25]] + [[0, 1, 2, 0]] * 2 + [[0, 0, 0, 0]])):
        model = Model(weights, biases, propagation)
        p = [[Fraction(float(value)) for value in row] for row in model.propagation_on(graph).toarray()]
        found = nodeproof.certify(graph, model, global_budget=2, local_budget=1, **options)
        assert not found.undecided.any()
        for certificate in found:
            worst = worst_margin(p, x.tolist(), weights, biases, certificate.node, certificate.class_, 2, 1, allowed)
            assert (certificate.verdict == "robust") == (worst > 0), (certificate, float(worst))
            assert Fraction(certificate.margin) <= worst
            seen.append(certificate.verdict)
            if certificate.witness is not None:
                assert len({flip[:2] for flip in certificate.witness}) == len(certificate.witness) <= 2
                tampered = x.tolist()
                for flip in certificate.witness:
                    assert allowed(flip.node, flip.attribute) and tampered[flip.node][flip.attribute] != flip.to
                    tampered[flip.node][flip.attribute] = flip.to
                logits = exact_logits(p, tampered, weights, biases, certificate.node)
                assert logits[certificate.witness.class_] >= logits[certificate.class_]
    return seen


def test_ties_are_not_robust() -> None:
    """Two classes with the same logits, on a graph of isolated nodes without attributes."""
    graph = Graph(np.zeros((2, 2)), np.zeros((2, 3)))
    found = nodeproof.certify(graph, Model([np.zeros((3, 2))]), global_budget=1)
    assert found.nonrobust.all() and (found.witness_margin == 0).all()
    assert [len(found.witness(node)) for node in (0, 1)] == [0, 0]


def test_the_order_asked_for_is_kept_and_a_node_counts_once(papers) -> None:
    graph, model = papers
    everything = nodeproof.certify(graph, model, global_budget=4, local_budget=2)
    asked = nodeproof.certify(graph, model, global_budget=4, local_budget=2, nodes=[9, 1, 9, 0])
    assert asked.nodes.tolist() == [9, 1, 0]
    assert [certificate.margin for certificate in asked] == everything.margin[[9, 1, 0]].tolist()
    mask = np.zeros(graph.nodes, bool)
    mask[[1, 9]] = True
    assert nodeproof.certify(graph, model, global_budget=4, nodes=mask).nodes.tolist() == [1, 9]
    assert nodeproof.certify(graph, model, global_budget=4, nodes="A perceptron revisited").nodes.tolist() == [9]
    split = nodeproof.Split(graph, train=[3, 5], validation=[4])
    for part, nodes in (("train", [3, 5]), ("validation", [4])):
        found = nodeproof.certify(graph, model, global_budget=4, nodes=part, split=split)
        assert found.nodes.tolist() == nodes


def test_no_nodes_are_no_problem(papers, tmp_path) -> None:
    graph, model = papers
    for empty in ([], np.zeros(graph.nodes, bool), ()):
        found = nodeproof.certify(graph, model, global_budget=4, nodes=empty)
        assert len(found) == 0 and found.margins.shape == (0, 3) and found.summary["robust_share"] is None
        assert len(found.to_pandas()) == found.to_arrow().num_rows == 0
        assert "0 nodes" in found._repr_html_()
        assert len(nodeproof.radius(graph, model, nodes=empty)) == 0
        found.write(tmp_path / "empty.jsonl")
        assert nodeproof.Certificates.read(tmp_path / "empty.jsonl", graph) == found


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nodes": [24]}, "node 24 does not exist"),
        ({"nodes": [-1]}, "node -1 does not exist"),
        ({"nodes": [0.5]}, "integer ids"),
        ({"nodes": [[1, 2]]}, "list of ids"),
        ({"nodes": [True, False]}, "mask of nodes has shape"),
        ({"nodes": "train"}, "split="),
        ({"nodes": "nobody"}, "no node called"),
        ({"split": nodeproof.Split(3, [0])}, "split is one of 3 nodes"),
        ({"global_budget": -1}, "global_budget=-1"),
        ({"global_budget": 1.5}, "global_budget=1.5"),
        ({"global_budget": True}, "global_budget=True"),
        ({"global_budget": 721}, "720 attribute entries"),
        ({"local_budget": 31}, "more than the 30 attributes"),
        ({"local_budget": "0%"}, "is not a local budget"),
        ({"local_budget": 1.5}, "local_budget=1.5"),
        ({"local_budget_at": {0: 31}}, "node 0 cannot have a local budget of 31"),
        ({"local_budget_at": {24: 1}}, "node 24 does not exist"),
        ({"local_budget_at": {0: 1.5}}, r"local_budget_at\[0\]=1.5 must be a whole number"),
        ({"add_only": True, "delete_only": True}, "leave no flips"),
        ({"protect_attributes": ["no such word"]}, "no attribute called"),
        ({"protect_attributes": "bayesian"}, "list of ids or names"),
        ({"protect_attributes": [30]}, "attribute 30 does not exist"),
        ({"protect_nodes": [24]}, "node 24 does not exist"),
        ({"engine": "ray"}, "engine is ray; choose fast, tight or complete"),
        ({"target_class": "truth"}, "target_class is truth; choose predicted or label"),
        ({"time_limit": -1.0}, "^time_limit is -1; give a number of seconds"),
        ({"time_limit": float("nan")}, "^time_limit is NaN; "),
        ({"time_limit": "10 s"}, "time_limit='10 s' must be a number"),
        ({"total_time_limit": -1.0}, "^total_time_limit is -1; "),
        ({"threads": -1}, "threads=-1 must be a whole number"),
        ({"threads": 2.0}, "threads=2.0 must be a whole number"),
        ({"engine": None}, "engine is None; "),
        ({"split": "train"}, "split must be a nodeproof.Split"),
        ({"protect_nodes": None}, "protect_nodes=None must be a list of ids"),
        ({"protect_attributes": None}, "protect_attributes=None must be a list of ids or names"),
        ({"local_budget_at": [(0, 1)]}, "local_budget_at=.* must be a mapping"),
        ({"nodes": None}, "integer ids"),
        ({"add_only": "no"}, "add_only='no' must be True or False"),
        ({"delete_only": 1}, "delete_only=1 must be True or False"),
        ({"timings": "yes"}, "timings='yes' must be True or False"),
        ({"threads": 10_000}, "threads is 10000; give at most 1024"),
    ],
)
def test_what_is_wrong_is_named(papers, options, words) -> None:
    with pytest.raises(nodeproof.InputError, match=words):
        nodeproof.certify(*papers, **({"global_budget": 4} | options))


def test_an_unknown_direction_is_refused(papers) -> None:
    with pytest.raises(nodeproof.InputError, match="`sideways` is not a direction of flips; choose both, add-only or"):
        _core.Budget(papers[0]._core, 4, "2", "sideways", {}, [], [], None, False)


def test_threads_are_limited_everywhere(papers) -> None:
    graph, model = papers
    for run in (
        lambda threads: model.logits(graph, threads=threads),
        lambda threads: nodeproof.radius(graph, model, threads=threads),
        lambda threads: nodeproof.explain(graph, model, 0, global_budget=1, threads=threads),
        lambda threads: nodeproof.train(graph, "ce", global_budget=1, train="30%", steps=1, threads=threads),
    ):
        with pytest.raises(nodeproof.InputError, match="threads is 1025; give at most 1024"):
            run(1025)


def test_what_is_not_a_graph_or_a_model_is_named(papers) -> None:
    graph, model = papers
    with pytest.raises(nodeproof.InputError, match="graph must be a nodeproof.Graph, .* not a Model"):
        nodeproof.certify(model, graph, global_budget=1)
    with pytest.raises(nodeproof.InputError, match="model must be a nodeproof.Model, .* not a dict"):
        nodeproof.radius(graph, {})


def test_nodes_as_people_have_them(papers) -> None:
    pandas = pytest.importorskip("pandas")
    options = {"global_budget": 2, "engine": "fast"}
    for nodes in ({3, 1}, iter([1, 3]), range(1, 4, 2), pandas.Series([1, 3], dtype="Int64"), np.uint8([1, 3])):
        assert nodeproof.certify(*papers, nodes=nodes, **options).nodes.tolist() == [1, 3]
    mask = pandas.Series([node in (1, 3) for node in range(24)], dtype="boolean")
    assert nodeproof.certify(*papers, nodes=mask, **options).nodes.tolist() == [1, 3]
    with pytest.raises(nodeproof.InputError, match="a mask of integers"):
        nodeproof.certify(*papers, nodes=np.arange(24) % 2, **options)
    with pytest.raises(nodeproof.InputError, match="parts are train, labelled, validation, test, unlabelled, and all"):
        nodeproof.certify(*papers, nodes="val", **options)
    with pytest.raises(nodeproof.InputError, match="integer ids"):
        nodeproof.certify(*papers, nodes=pandas.Series([1, None], dtype="Int64"), **options)
    for nodes, words in ((None, "not by None$"), (slice(0, 3), "not by a slice$"), ([0.5], "not by float64$")):
        with pytest.raises(nodeproof.InputError, match=words):
            nodeproof.certify(*papers, nodes=nodes, **options)


def test_labels_can_be_certified(papers) -> None:
    graph, model = papers
    wrong = graph.with_labels((model.predict(graph) + 1) % 3)
    found = nodeproof.certify(wrong, model, global_budget=0, target_class="label")
    assert found.nonrobust.all() and all(len(found.witness(node)) == 0 for node in range(graph.nodes))
    with pytest.raises(ValueError, match="no label"):
        nodeproof.certify(graph.with_labels(np.full(24, -1)), model, global_budget=1, target_class="label")


def test_lists_may_be_gone_through_once_only(papers) -> None:
    graph, model = papers
    once = nodeproof.certify(
        graph, model, global_budget=4, protect_nodes=iter([1, 9]), protect_attributes=iter(["bayesian"])
    )
    assert once == nodeproof.certify(
        graph, model, global_budget=4, protect_nodes=[1, 9], protect_attributes=["bayesian"]
    )
    assert nodeproof.certify(graph, model, global_budget=4, protect_nodes=np.ones(24, bool)).robust.all()


def test_own_local_budgets_count(papers) -> None:
    graph, model = papers
    none = nodeproof.certify(graph, model, global_budget=4, local_budget_at=dict.fromkeys(range(24), 0))
    assert none.robust.all()


def test_results_do_not_depend_on_threads_or_chunks(papers) -> None:
    graph, model = papers
    one, two = (nodeproof.certify(graph, model, global_budget=4, threads=threads) for threads in (1, 2))
    assert one == two
    for node in range(24):
        (apart,) = nodeproof.certify(graph, model, global_budget=4, nodes=[node])
        assert apart == one[node]


def test_radii_are_where_verdicts_change(papers) -> None:
    graph, model = papers
    radii = nodeproof.radius(graph, model, local_budget=2, max_budget=12)
    assert radii.exact.all() and radii.max_budget == 12
    for budget in range(0, 13, 3):
        found = nodeproof.certify(graph, model, global_budget=budget, local_budget=2)
        assert (found.robust == (radii.robust_up_to >= budget)).all()
        assert radii.robust_share(budget) == found.robust.mean()
    for radius in radii:
        if radius.nonrobust_from is not None:
            assert len(radius.witness) == radius.nonrobust_from == (radius.robust_up_to or 0) + 1
    scanned = nodeproof.radius(graph, model, local_budget=2, max_budget=12, engine="fast", scan=True)
    assert (scanned.robust_up_to <= radii.robust_up_to.clip(0)).all()
    with pytest.raises(ValueError, match="about the fast engine, not complete"):
        nodeproof.radius(graph, model, scan=True)
    with pytest.raises(ValueError, match="was not tried"):
        radii.robust_share(13)


def test_a_model_of_another_graph_is_noted(papers, caplog) -> None:
    graph, _ = papers
    trained = nodeproof.train(graph, "ce", global_budget=4, train="30%", steps=5).model
    nodeproof.certify(graph, trained, global_budget=1)
    assert not caplog.text
    nodeproof.certify(graph.with_labels(np.zeros(24, int)), trained, global_budget=1)
    assert "trained on another graph" in caplog.text


class TestChecked:
    """What is asked for beyond a verdict: more than positive margins, and certificates that can be checked."""

    def test_proofs_are_accepted(self, bundled, standard):
        certificates = nodeproof.certify(bundled, standard, global_budget=5, proofs=True)
        assert certificates.robust.any() and certificates.nonrobust.any()
        assert certificates.check(standard) == {} and certificates.summary["without_proof"] == 0
        assert nodeproof.certify(bundled, standard, global_budget=5).summary["without_proof"] is None

    def test_robust_nodes_without_a_proof_are_counted(self):
        # 1 + 2 relu(2x + 0.5) - relu(2x) + 2 relu(x + 0.5): x moves on between its ends after any flip.
        weights = [np.array([[2.0, 2.0, 1.0]]), np.array([[2.0, 0.0], [-1.0, 0.0], [2.0, 0.0]])]
        biases = [np.array([0.5, 0.0, 0.5]), np.array([1.0, 0.0])]
        model = nodeproof.Model(weights, biases, "symmetric-gcn", kind="real-values")
        ranges = (np.array([-1.0]), np.array([1.0]))
        graph = nodeproof.Graph(np.zeros((2, 2)), np.zeros((2, 1)), real_values=True, ranges=ranges)
        found = nodeproof.certify(graph, model, global_budget=1, local_budget=1, protect_nodes=[1], proofs=True)
        assert found.robust.all() and found.summary["without_proof"] == len(found.check(model)) == 1

    def test_what_was_changed_is_rejected(self, bundled, standard):
        certificates = nodeproof.certify(bundled, standard, global_budget=5, proofs=True)
        other = nodeproof.train(bundled, "ce", global_budget=5, steps=3, seed=7).model
        with pytest.raises(nodeproof.InputError, match="another model"):
            certificates.check(other)
        with pytest.raises(nodeproof.InputError, match="model"):
            certificates.check("model.safetensors")

    def test_a_margin_can_be_asked_for(self, bundled, standard):
        clean = nodeproof.certify(bundled, standard, global_budget=0)
        asked = float(np.median(clean.margin))
        certificates = nodeproof.certify(bundled, standard, global_budget=0, margin=asked, proofs=True)
        assert np.array_equal(certificates.robust, clean.margin > asked)
        assert (certificates.margin[certificates.robust] >= asked).all()
        assert (certificates.to_pandas()["witness_margin"].dropna() <= asked).all()
        assert certificates.check(standard) == {}
        for wrong in (-1.0, float("nan")):
            with pytest.raises(nodeproof.InputError, match="margin"):
                nodeproof.certify(bundled, standard, global_budget=0, margin=wrong)

    def test_rounding_can_be_asked_about(self, bundled, standard):
        exactly = nodeproof.certify(bundled, standard, global_budget=5)
        counts = []
        for arithmetic in ("f64", "f32", "tf32", "bf16"):
            certificates = nodeproof.certify(bundled, standard, global_budget=5, arithmetic=arithmetic, proofs=True)
            assert not (certificates.robust & ~exactly.robust).any()
            assert np.array_equal(certificates.nonrobust, exactly.nonrobust)
            assert set(certificates.undecided_because) <= {"", "arithmetic"}
            assert certificates.check(standard) == {}
            counts.append(certificates.robust.sum())
        assert counts == sorted(counts, reverse=True)
        with pytest.raises(nodeproof.InputError, match="bf16"):
            nodeproof.certify(bundled, standard, global_budget=5, arithmetic="f16")

    def test_radii_may_be_of_margins_and_in_an_arithmetic(self, papers):
        graph, model = papers
        exactly = nodeproof.radius(graph, model, max_budget=4, local_budget=2)
        for asked in ({"margin": 0.5}, {"arithmetic": "bf16"}, {"margin": 0.1, "arithmetic": "f32"}):
            radii = nodeproof.radius(graph, model, max_budget=4, local_budget=2, proofs=True, **asked)
            largest = np.full(graph.nodes, -1)
            for budget in range(5):
                largest[nodeproof.certify(graph, model, global_budget=budget, local_budget=2, **asked).robust] = budget
            assert np.array_equal(radii.robust_up_to, largest) and (largest <= exactly.robust_up_to).all()
            assert radii.check(model) == {}
        assert "margins above 0.1; in f32 arithmetic" in radii.budget_in_words()
        with pytest.raises(nodeproof.InputError, match="margin"):
            nodeproof.radius(graph, model, margin=-1.0)

    def test_radii_are_checked(self, papers):
        graph, model = papers
        radii = nodeproof.radius(graph, model, local_budget=2, proofs=True)
        assert radii.check(model) == {}
