"""The story of one node."""

from __future__ import annotations

import numpy as np
import pytest

import nodeproof


def on_one_line(text: str) -> str:
    """The text without the line breaks that keep it narrow."""
    return " ".join(text.split())


def test_the_smallest_witness_reads_as_words(papers) -> None:
    options = {"global_budget": 4, "local_budget": 2}
    story = nodeproof.explain(*papers, "A perceptron revisited", **options)
    text = str(story)
    for line in (
        "node       A perceptron revisited (node 9)",
        "label      neural networks (class 1)",
        "verdict    nonrobust: 3 flips change the class, and no 2 do",
        "  remove “neuron” from A perceptron revisited (node 9), the node itself",
        "  add “bayesian” to A perceptron revisited (node 9), the node itself",
    ):
        assert line in text.splitlines(), text
    assert "then probabilistic methods (class 2) wins: the margin over it goes from 0.608 to -0.085" in on_one_line(
        text
    )
    assert [round(margin, 3) for margin in story.margins] == [1.045, 0, 0.608]
    witness = story.certificate.witness
    after = papers[1].logits_under(papers[0], 9, witness)
    assert after[1] - after[witness.class_] == pytest.approx(witness.margin)
    assert story.radius == nodeproof.radius(*papers, max_budget=4, local_budget=2).of(9)
    assert len(witness) == story.radius.nonrobust_from == 3 and story.radius.witness == witness

    first = nodeproof.explain(*papers, 9, radius=False, **options)
    assert "nonrobust: 4 flips change the class; fewer may do" in str(first) and first.radius is None
    certified = nodeproof.certify(*papers, **options).of(9)
    assert (first.certificate.verdict, first.certificate.witness) == (certified.verdict, certified.witness)
    assert (np.nan_to_num(first.certificate.margins) >= np.nan_to_num(certified.margins)).all(), "they are raised"
    assert certified.margin < first.certificate.margin <= certified.witness.margin


def test_the_words_are_those_of_the_command_line(papers, program) -> None:
    from conftest import PAPERS

    def told(text: str) -> list[str]:
        """What is told, but for hints, which name options as the command line or Python writes them, on one line or more."""
        lines, is_hint = [], False
        for line in text.splitlines():
            is_hint = line.startswith("hint ") or (is_hint and line.startswith(" "))
            if not is_hint:
                lines.append(line)
        return lines

    for node in range(24):
        theirs = program(
            "explain", "--graph", PAPERS / "graph.npz", "--model", PAPERS / "model.safetensors", "--global-budget", 4,
            "--local-budget", 2, "--node", node,
        )  # fmt: skip
        assert told(str(nodeproof.explain(*papers, node, global_budget=4, local_budget=2))) == told(theirs)


def test_flips_have_the_same_words_on_their_own(papers) -> None:
    graph, _ = papers
    flip = nodeproof.Flip(9, graph.attribute("bayesian"), 1)
    assert flip.in_words(graph) == "add “bayesian” to A perceptron revisited (node 9)"
    assert flip.in_words(graph, target=9) == "add “bayesian” to A perceptron revisited (node 9), the node itself"
    plain = nodeproof.Graph(graph.adjacency, graph.attributes)
    assert nodeproof.Flip(1, 2, 0).in_words(plain, target=9) == "remove attribute 2 from node 1"
    story = nodeproof.explain(*papers, 9, global_budget=4, local_budget=2)
    assert all(f"  {flip.in_words(graph, 9)}" in str(story).splitlines() for flip in story.certificate.witness)


def test_every_verdict_has_words_and_says_what_to_do_next(papers) -> None:
    stories = [
        nodeproof.explain(*papers, node, global_budget=4, local_budget=2, engine="fast", radius=False)
        for node in range(24)
    ]
    told = {story.certificate.verdict: on_one_line(str(story)) for story in stories}
    assert "robust: no admissible set of flips changes the class" in told["robust"]
    assert "radius(graph, model, nodes=[" in told["robust"]
    assert "nonrobust: 4 flips change the class; fewer may do" in told["nonrobust"]
    assert 'engine="complete" may settle it' in told["undecided"]
    tie = nodeproof.Graph(np.zeros((1, 1)), np.zeros((1, 1)))
    level = str(nodeproof.explain(tie, nodeproof.Model([np.zeros((1, 2))]), 0, global_budget=1))
    assert "another class is level with class 0 without any flip" in on_one_line(level)


def test_what_is_wrong_is_named(papers) -> None:
    for node, options, words in (
        (24, {}, "node 24 does not exist"),
        ("nobody", {}, "no node called 'nobody'"),
        (0, {"engine": "slow"}, "engine is slow"),
        (0, {"radius": 1}, "radius=1 must be True or False"),
        (0, {"global_budget": -1}, "global_budget=-1 must be"),
    ):
        with pytest.raises(nodeproof.InputError, match=words):
            nodeproof.explain(*papers, node, **({"global_budget": 1} | options))
