"""Certifying again after an edit: what is carried over is what a full run finds, and the command line writes."""

from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import pytest

import nodeproof
from nodeproof import Certificates, Graph, InputError, Model

SETTINGS = {"global_budget": 2, "local_budget": 1, "engine": "complete"}


def path(nodes: int = 12, edited: bool = False) -> Graph:
    """Nodes in a row, each with one of three attributes; edited, node 1 has another one."""
    adjacency = np.eye(nodes, k=1) + np.eye(nodes, k=-1)
    attributes = np.eye(3)[np.arange(nodes) % 3]
    if edited:
        attributes[1] = [1, 0, 1]
    return Graph(adjacency, attributes, labels=np.arange(nodes) % 2)


@pytest.fixture
def model() -> Model:
    return Model([[[1.0, -0.5], [-0.5, 1.0], [0.3, 0.4]], [[1.0, -1.0], [-0.7, 1.0]]])


def records(certificates: Certificates) -> list[dict[str, object]]:
    """All records, without their hashes."""
    lines = [json.loads(line) for line in certificates._core.lines().splitlines()[1:]]
    return [{key: value for key, value in line.items() if key != "hash"} for line in lines]


def test_what_is_carried_over_is_what_a_full_run_finds(model: Model) -> None:
    before, after = path(), path(edited=True)
    for more in ({}, {"proofs": True}, {"margin": 0.01}, {"target_class": "label"}, {"engine": "fast"}):
        settings = {**SETTINGS, **more}
        old = nodeproof.certify(before, model, **settings)
        full, new = (nodeproof.certify(after, model, since=since, **settings) for since in (None, old))
        assert records(new) == records(full)
        assert (old.carried, full.carried) == (0, 0) and 0 < new.carried < len(new)
        assert new.check(model) == {} or not more.get("proofs")
        again = nodeproof.certify(after, model, since=new, nodes=[5, 1, 0], **settings)
        assert (again.carried, again.nodes.tolist()) == (3, [5, 1, 0])
        assert nodeproof.certify(after, model, since=old, nodes=[], **settings).carried == 0


def test_files_are_those_of_the_command_line(model: Model, tmp_path) -> None:
    before, after = path(), path(edited=True)
    old = nodeproof.certify(before, model, **SETTINGS)
    files = {
        name: str(tmp_path / name) for name in ("old.jsonl", "new.npz", "old.npz", "model.safetensors", "new.jsonl")
    }
    old.write(files["old.jsonl"])
    before.write(files["old.npz"])
    after.write(files["new.npz"])
    model.write(files["model.safetensors"])
    new = nodeproof.certify(after, model, since=files["old.jsonl"], since_graph=before, **SETTINGS)
    assert new == nodeproof.certify(after, model, since=old, since_graph=before, **SETTINGS)
    assert new == nodeproof.certify(after, model, since=old, progress=lambda done, total: None, **SETTINGS)
    new.write(tmp_path / "mine.jsonl")
    assert Certificates.read(tmp_path / "mine.jsonl", after).carried == new.carried
    program = os.environ.get("NODEPROOF")
    if not program:
        pytest.skip("NODEPROOF names no program to compare with")
    command = f"{program} certify --graph {files['new.npz']} --model {files['model.safetensors']} --global-budget 2"
    command += (
        f" --local-budget 1 --since {files['old.jsonl']} --since-graph {files['old.npz']} --out {files['new.jsonl']}"
    )
    subprocess.run([*command.split(), "--quiet"], check=True)
    assert (tmp_path / "mine.jsonl").read_bytes() == (tmp_path / "new.jsonl").read_bytes()


def test_what_makes_no_sense_is_refused(model: Model, tmp_path) -> None:
    before, after = path(), path(edited=True)
    old = nodeproof.certify(before, model, **SETTINGS)
    old.write(tmp_path / "old.jsonl")
    whole = (tmp_path / "old.jsonl").read_text()
    (tmp_path / "short.jsonl").write_text("".join(whole.splitlines(keepends=True)[:5]))
    (tmp_path / "forged.jsonl").write_text(whole.replace('"nonrobust"', '"robust"', 1).replace("0.", "1.", 1))
    other = Model([[[2.0, -0.5], [-0.5, 1.0], [0.3, 0.4]], [[1.0, -1.0], [-0.7, 1.0]]])
    wider = Graph(np.zeros((2, 2)), np.zeros((2, 3)))
    for words, options in {
        "give the certificates of that run as since": {"since_graph": before},
        "they know it, so leave it out": {"since": old, "since_graph": wider},
        "give the graph that it is about as since_graph": {"since": tmp_path / "old.jsonl"},
        "budget.global: 2 there, 3 now; certify with its settings": {"since": old, "global_budget": 3},
        'engine: "complete" there, "fast" now': {"since": old, "engine": "fast"},
        "proofs: none there, true now": {"since": old, "proofs": True},
        "certify without since": {"since": old, "model": other},
        "under one budget": {"since": old, "global_budget": [1, 2]},
        "not a Radii": {"since": nodeproof.radius(before, model, local_budget=1)},
        "not an int": {"since": 5},
        "since_graph must be a nodeproof.Graph": {"since": old, "since_graph": "old.npz"},
        "has 4 of 12 nodes": {"since": tmp_path / "short.jsonl", "since_graph": before},
        "its hash does not fit": {"since": tmp_path / "forged.jsonl", "since_graph": before},
    }.items():
        with pytest.raises(InputError) as raised:
            nodeproof.certify(after, **{"model": model, **SETTINGS, **options})
        assert words in str(raised.value), raised.value
    with pytest.raises(nodeproof.errors.MissingFileError):
        nodeproof.certify(after, model, since=tmp_path / "none.jsonl", **SETTINGS)
