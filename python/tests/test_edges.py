"""Deletions of edges: budgets, verdicts against the network without the edges, and witnesses that can be applied."""

from __future__ import annotations

import itertools
import json
import pickle

import numpy as np
import pytest

import nodeproof
from nodeproof import Budget, Graph, InputError, Model


def ring(nodes: int = 10) -> tuple[Graph, Model]:
    """A ring with chords, and a network of one hidden layer."""
    adjacency = np.zeros((nodes, nodes))
    for node in range(nodes):
        for other in ((node + 1) % nodes, (node * 4 + 2) % nodes):
            if node != other:
                adjacency[node, other] = adjacency[other, node] = 1
    attributes = np.eye(3)[np.arange(nodes) % 3]
    names = [f"paper {node}" for node in range(nodes)]
    graph = Graph(adjacency, attributes, labels=np.arange(nodes) % 3, node_names=names)
    numbers = np.random.default_rng(0)
    return graph, Model([numbers.normal(size=(3, 5)), numbers.normal(size=(5, 3))], [np.zeros(5), np.zeros(3)])


def edges_of(graph: Graph) -> list[tuple[int, int]]:
    found = graph.adjacency.tocoo()
    return [(int(a), int(b)) for a, b in zip(found.row, found.col, strict=True) if a < b]


def test_verdicts_are_what_the_network_does_without_the_edges() -> None:
    graph, model = ring()
    before = model.predict(graph)
    sets = [pair for count in range(3) for pair in itertools.combinations(edges_of(graph), count)]
    under = np.array([model.predict(graph.without_edges(edges)) for edges in sets])
    budget = Budget(0, delete_edges=2)
    certificates = nodeproof.certify(graph, model, budget)
    assert certificates.global_budget == 2 and certificates.budget_in_words() == "at most 2 edges deleted"
    assert certificates.robust.tolist() == (under == before).all(axis=0).tolist()
    assert 0 < certificates.robust.sum() < graph.nodes
    for node in np.flatnonzero(~certificates.robust):
        witness = certificates.witness(node)
        assert witness.flips == () and len(witness) == len(witness.edges) <= 2
        tampered = witness.apply(graph)
        assert model.predict(tampered)[node] != before[node] and tampered.edges == graph.edges - len(witness)
        a, b = witness.edges[0]
        assert f"unlink paper {a} (node {a}) from paper {b} (node {b})" in repr(witness)
    radii = nodeproof.radius(graph, model, budget)
    assert ((radii.robust_up_to >= 2) == certificates.robust).all()
    assert all(len(radii.witness(node)) == radii.nonrobust_from[node] for node in np.flatnonzero(~certificates.robust))
    assert certificates.check(model) == {} and radii.check(model) == {}
    changed = int(np.flatnonzero(~certificates.robust)[0])
    assert f"nonrobust under {len(certificates.witness(changed))} deletion" in repr(certificates.of(changed))
    assert "robust up to 1 deletion" in repr(radii[int(np.flatnonzero(radii.robust_up_to == 1)[0])])
    assert "deletions that predictions withstand" in radii._repr_html_()
    assert "<svg" in certificates.plot().svg and "<svg" in radii.plot().svg


def test_files_and_what_protects(tmp_path) -> None:
    graph, model = ring()
    protected = [("paper 0", 1)]
    budget = Budget(0, delete_edges=2, edges_per_node=1, keep_one_edge=True, protect_edges=protected)
    words = "at most 2 edges deleted (1 at one node), each node keeps one, 1 edge protected"
    assert budget.in_words(graph) == words
    assert repr(budget) == (
        "Budget(0, delete_edges=2, edges_per_node=1, keep_one_edge=True, protect_edges=(('paper 0', 1),))"
    )
    certificates = nodeproof.certify(graph, model, budget)
    deleted = [certificate.witness.edges for certificate in certificates if certificate.witness is not None]
    assert all((0, 1) not in edges and len(set(itertools.chain(*edges))) == 2 * len(edges) for edges in deleted)
    certificates.write(tmp_path / "c.jsonl")
    assert nodeproof.Certificates.read(tmp_path / "c.jsonl", graph) == certificates
    alone = nodeproof.Certificates.read(tmp_path / "c.jsonl")
    assert any("unlink node" in repr(certificate.witness) for certificate in alone if certificate.witness)
    everything = Budget(0, delete_edges=2, protect_edges=edges_of(graph))
    assert nodeproof.certify(graph, model, everything).robust.all()


@pytest.mark.parametrize(
    "limit",
    [
        {"local_budget": 2},
        {"local_budget_at": {0: 1}},
        {"add_only": True},
        {"delete_only": True},
        {"protect_attributes": [0]},
    ],
)
def test_limits_of_flips_are_refused_where_there_are_none(limit) -> None:
    name = next(iter(limit))
    with pytest.raises(InputError, match=f"^{name} is about flips, and there are none beside.*or leave {name} out$"):
        Budget(0, delete_edges=2, **limit)
    assert Budget(1, delete_edges=1, **limit).delete_edges == Budget(0, delete_edges=1, protect_nodes=[1]).delete_edges


def test_nodes_with_too_many_sets_are_told_apart(caplog) -> None:
    adjacency = np.zeros((201, 201))
    adjacency[0, 1:] = adjacency[1:, 0] = 1
    graph, model = Graph(adjacency, np.ones((201, 1))), Model([[[1.0, 0.0]]], [[1.0, 0.0]])
    certificates = nodeproof.certify(graph, model, Budget(0, delete_edges=2))
    assert certificates.robust.all()
    checked = certificates.check(model)
    assert checked == {} and checked.not_checked == (0,) and repr(checked) == "Checked({}, not_checked=(0,))"
    assert "1 of 201 nodes were not checked" in caplog.text
    assert certificates.filter(node=range(1, 201)).check(model).not_checked == ()
    assert nodeproof.radius(graph, model, Budget(0, delete_edges=2), nodes=[0]).check(model).not_checked == (0,)
    assert pickle.loads(pickle.dumps(checked)).not_checked == (0,)


def test_stories_tell_what_to_unlink() -> None:
    graph, model = ring()
    certificates = nodeproof.certify(graph, model, Budget(0, delete_edges=3))
    radii = nodeproof.radius(graph, model, Budget(0, delete_edges=3))
    seen = set()
    for node in range(graph.nodes):
        story = nodeproof.explain(graph, model, node, Budget(0, delete_edges=3))
        text, witness = str(story), story.certificate.witness
        assert "at most 3 edges deleted" in text and story.certificate.verdict == certificates.of(node).verdict
        assert not np.isneginf(story.certificate.margins).any(), "margins over all classes are known"
        if witness is None:
            assert "robust: no admissible set of deletions changes the class" in text
            assert f"radius(graph, model, Budget(0, delete_edges=6), nodes=[{node}])" in " ".join(text.split())
            continue
        size = len(witness)
        assert size == radii.of(node).nonrobust_from and story.radius == (radii.of(node) if size > 1 else story.radius)
        seen.add(size)
        count = "one deletion" if size == 1 else f"{size} deletions"
        change = (
            "can bring another class level" if witness.margin == 0 else f"change{'s' if size == 1 else ''} the class"
        )
        assert f"nonrobust: {count} {change}" in text
        assert all(f"  {words}" in text.splitlines() for words in witness.in_words(node))
        after = model.logits_under(graph, node, witness)
        assert np.allclose(after, model.logits(witness.apply(graph))[node], atol=1e-12)
        assert after[story.certificate.class_] - after[witness.class_] == pytest.approx(witness.margin, abs=1e-9)
        assert (story.certificate.margins[witness.class_] <= witness.margin + 1e-9).all(), "a lower bound"
    assert seen == {1, 2, 3}


def test_flips_beside_a_deletion_have_one_story() -> None:
    graph, model = ring(14)
    budget = Budget(1, delete_only=True, delete_edges=1)
    stories = [nodeproof.explain(graph, model, node, budget) for node in range(graph.nodes)]
    told = [" ".join(str(story).split()) for story in stories]
    assert all("at most 1 flip, 1 at one node" in text and "at most 1 edge deleted" in text for text in told)
    assert all("finds how many" not in text and story.radius is None for text, story in zip(told, stories, strict=True))
    for words in (
        "robust: no admissible set of flips and deletions changes the class",
        "nonrobust: one flip changes the class",
        "nonrobust: 1 flip and 1 deletion change the class; fewer may do",
    ):
        assert any(words in text for text in told), words
    assert not any(np.isneginf(story.certificate.margins).any() for story in stories), (
        "margins over all classes are known"
    )
    for story in (story for story in stories if story.certificate.witness):
        node, class_, witness = story.certificate.node, story.certificate.class_, story.certificate.witness
        parts = [nodeproof.Witness(witness.flips, witness.class_, 0.0, (), graph)] if witness.edges else []
        parts += [nodeproof.Witness((), witness.class_, 0.0, witness.edges, graph)] if witness.flips else []
        for fewer in parts:
            logits = model.logits_under(graph, node, fewer)
            assert logits[class_] > logits[witness.class_], "all of it is needed"
    both = next(story for story in stories if story.certificate.witness and len(story.certificate.witness) == 2)
    node, witness = both.certificate.node, both.certificate.witness
    assert all(words in str(both) for words in witness.in_words(node)) and len(witness.in_words()) == 2
    logits = model.logits_under(graph, node, witness)
    assert np.allclose(logits, model.logits(witness.apply(graph))[node], atol=1e-12)
    assert not np.allclose(logits, model.logits_under(graph, node, witness.flips), atol=1e-3), "the edge counts"


def test_reports_have_the_edges(tmp_path) -> None:
    graph, model = ring()
    budget = Budget(0, delete_edges=2)
    certificates, radii = nodeproof.certify(graph, model, budget), nodeproof.radius(graph, model, budget)
    nodeproof.report({"unlinked": (certificates, radii)}, out=tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    report = json.loads(page.split('id="data">')[1].split("</script>")[0])
    ids = report["nodes"]["id"]
    for what, results in (("certificates", certificates), ("radii", radii)):
        shown = report["models"][0][what]["witness_edges"]
        for node, edges in zip(results.nodes, shown, strict=True):
            witness = results.of(node).witness
            expected = None if witness is None else list(witness.edges)
            assert (edges and [(ids[a], ids[b]) for a, b in edges]) == expected
        assert any(shown)


def test_deletions_have_words_seen_from_a_node() -> None:
    graph, _ = ring()
    witness = nodeproof.Witness((), 0, -1.0, ((0, 1), (2, 3)), graph)
    first, second = witness.in_words("paper 1")
    assert first == "unlink paper 0 (node 0) from paper 1 (node 1), the node itself"
    assert second == "unlink paper 2 (node 2) from paper 3 (node 3)"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda g, m: Budget(0, edges_per_node=2), "no edges may be deleted"),
        (lambda g, m: Budget(0, delete_edges=-1), "delete_edges"),
        (lambda g, m: Budget(0, delete_edges=1, protect_edges=[(0, 1, 2)]).on(g), "is no edge"),
        (lambda g, m: Budget(0, delete_edges=1, protect_edges=[(0, 3)]).on(g), "0–3"),
        (lambda g, m: g.without_edges([(0, 3)]), "not an edge of this graph"),
        (lambda g, m: g.without_edges([(0, 1), (1, 0)]), "deleted twice"),
        (lambda g, m: g.without_edges([(2, 2)]), "from itself"),
        (
            lambda g, m: nodeproof.certify(g, m, Budget(1, delete_edges=2)),
            "flips of attributes beside more than one deletion",
        ),
        (lambda g, m: nodeproof.certify(g, m, Budget(0, delete_edges=1), proofs=True), "proofs"),
        (lambda g, m: nodeproof.train(g, "rh", Budget(0, delete_edges=1)), "training"),
    ],
)
def test_what_makes_no_sense_is_refused(make, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make(*ring())


def test_witnesses_apply_to_data() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    graph, model = ring()
    module, data = nodeproof.to_pyg(graph, model)
    before = module(data.x, data.edge_index).argmax(dim=1)
    certificates = nodeproof.certify(graph, model, Budget(0, delete_edges=2))
    nonrobust = np.flatnonzero(~certificates.robust)
    for node in nonrobust:
        tampered = certificates.witness(node).apply(data)
        assert module(tampered.x, tampered.edge_index).argmax(dim=1)[node] != before[node]
    data.edge_attr = torch.arange(data.edge_index.shape[1])
    witness = certificates.witness(nonrobust[0])
    left = witness.apply(data)
    assert len(left.edge_attr) == left.edge_index.shape[1] == data.edge_index.shape[1] - 2 * len(witness)
    with pytest.raises(InputError, match="the data have no edge between"):
        witness.apply(left)
