"""The story of one node."""

from __future__ import annotations

import numpy as np
import pytest

import nodeproof


def test_a_witness_reads_as_words(papers) -> None:
    story = nodeproof.explain(*papers, "A perceptron revisited", global_budget=4, local_budget=2)
    text = str(story)
    for line in (
        "node       A perceptron revisited (node 9)",
        "label      neural networks (class 1)",
        "verdict    nonrobust: 4 flips change the class (fewer may do)",
        "  remove “neuron” from A perceptron revisited (node 9), the node itself",
        "  add “bayesian” to A perceptron revisited (node 9), the node itself",
        "then probabilistic methods (class 2) wins: the margin over it goes from 0.608 to -0.337",
    ):
        assert line in text.splitlines(), text
    assert [round(margin, 3) for margin in story.margins] == [1.045, 0, 0.608]
    witness = story.certificate.witness
    after = papers[1].logits_under(papers[0], 9, witness)
    assert after[1] - after[witness.class_] == pytest.approx(witness.margin)


def test_the_same_numbers_as_the_command_line(papers, program) -> None:
    from conftest import PAPERS

    for node in range(24):
        told = program(
            "explain", "--graph", PAPERS / "graph.npz", "--model", PAPERS / "model.safetensors", "--global-budget", 4,
            "--local-budget", 2, "--node", node,
        )  # fmt: skip
        ours = str(nodeproof.explain(*papers, node, global_budget=4, local_budget=2))
        table = [line.split() for line in told.splitlines() if " ≥ " in line or "> 0" in line]
        assert table == [line.split() for line in ours.splitlines() if " ≥ " in line or "> 0" in line]
        flips = [line for line in told.splitlines() if line.startswith(("  add", "  remove"))]
        assert flips == [line for line in ours.splitlines() if line.startswith(("  add", "  remove"))]


def test_every_verdict_has_words(papers) -> None:
    graph, model = papers
    told = {
        nodeproof.explain(graph, model, node, global_budget=4, local_budget=2, engine="fast")._verdict().split(":")[0]
        for node in range(24)
    }
    assert told == {"robust", "nonrobust", "undecided"}
    tie = nodeproof.Graph(np.zeros((1, 1)), np.zeros((1, 1)))
    assert "is level without any flip" in str(
        nodeproof.explain(tie, nodeproof.Model([np.zeros((1, 2))]), 0, global_budget=1)
    )
