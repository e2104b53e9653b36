"""Results as arrays, tables and files; files byte for byte those of the command line."""

from __future__ import annotations

import builtins
import json
import os
import pickle
import tempfile

import numpy as np
import pytest
from conftest import PAPERS

import nodeproof
from nodeproof import Certificates, Radii, _core


@pytest.fixture(scope="module")
def certificates(papers) -> Certificates:
    return nodeproof.certify(*papers, global_budget=4, local_budget=2, engine="fast")


def test_columns_agree_with_certificates(certificates: Certificates) -> None:
    assert set(certificates.verdicts) == {"robust", "nonrobust", "undecided"}
    for place, certificate in enumerate(certificates):
        assert str(certificate) == str(certificates.of(certificate.node))
        assert certificate.verdict == certificates.verdicts[place]
        assert np.nanmin(certificate.margins) == certificate.margin == certificates.margin[place]
        assert np.isnan(certificate.margins[certificate.class_])
        assert (
            (certificate.witness is not None) == certificates.nonrobust[place] == (certificate.verdict == "nonrobust")
        )
        assert (certificate.lower is not None) == (certificate.verdict == "undecided")
        if certificate.verdict == "undecided":
            assert certificate.lower <= 0 <= certificate.upper
    counts = certificates.summary
    assert counts["robust"] + counts["nonrobust"] + counts["undecided"] == counts["nodes"] == 24
    assert counts["accuracy"] == 1.0
    with pytest.raises(IndexError):
        certificates[24]


def test_pandas_and_arrow(certificates: Certificates, papers) -> None:
    import pandas

    table = certificates.to_pandas()
    assert list(table.columns) == [
        "node", "name", "label", "predicted", "class", "verdict", "margin", "worst_class", "flips", "witness_margin",
        "engine", "branches",
    ]  # fmt: skip
    assert (
        table["name"][9] == "A perceptron revisited" and table["verdict"][9] == "nonrobust" and table["flips"][9] == 4
    )
    assert table["flips"][certificates.robust].isna().all()
    arrow = certificates.to_arrow()
    assert arrow.column_names == list(table.columns) and arrow.num_rows == 24
    assert arrow["flips"].null_count == arrow["witness_margin"].null_count == 24 - certificates.nonrobust.sum()
    pandas.testing.assert_frame_equal(
        arrow.to_pandas()[["node", "predicted", "branches"]], table[["node", "predicted", "branches"]]
    )
    unlabelled = nodeproof.certify(
        nodeproof.Graph(papers[0].adjacency, papers[0].attributes), papers[1], global_budget=1
    )
    assert unlabelled.to_pandas()["label"].isna().all() and "name" not in unlabelled.to_pandas()
    radii = nodeproof.radius(*papers, max_budget=3, local_budget=1)
    assert radii.to_pandas()["robust_up_to"].max() <= 3
    assert radii.to_arrow()["nonrobust_from"].null_count == (radii.nonrobust_from < 0).sum()


def test_certificates_on_file_are_those_of_the_command_line(certificates, papers, program, tmp_path) -> None:
    options = ("--graph", PAPERS / "graph.npz", "--model", PAPERS / "model.safetensors", "--local-budget", 2)
    theirs, ours = tmp_path / "theirs.jsonl", tmp_path / "ours.jsonl"
    program("certify", *options, "--global-budget", 4, "--engine", "fast", "--out", theirs)
    certificates.write(ours)
    assert ours.read_bytes() == theirs.read_bytes()
    assert Certificates.read(theirs, papers[0]) == certificates
    restricted = {"add_only": True, "protect_nodes": [3], "protect_attributes": ["bayesian"], "nodes": [9, 1]}
    program(
        "certify", *options, "--global-budget", 4, "--add-only", "--protect-nodes", 3, "--protect-attributes", "bayesian",
        "--nodes", "9,1", "--out", theirs,
    )  # fmt: skip
    nodeproof.certify(*papers, global_budget=4, local_budget=2, **restricted).write(ours)
    assert ours.read_bytes() == theirs.read_bytes()


def test_radii_on_file_are_those_of_the_command_line(papers, program, tmp_path) -> None:
    options = ("--graph", PAPERS / "graph.npz", "--model", PAPERS / "model.safetensors", "--local-budget", 2)
    theirs, ours = tmp_path / "theirs.jsonl", tmp_path / "ours.jsonl"
    for more, ours_more in (((), {}), (("--engine", "fast", "--scan"), {"engine": "fast", "scan": True})):
        program("radius", *options, *more, "--out", theirs)
        radii = nodeproof.radius(*papers, local_budget=2, **ours_more)
        radii.write(ours)
        assert ours.read_bytes() == theirs.read_bytes()
        assert Radii.read(theirs, papers[0]) == radii


def test_the_command_line_reports_what_python_writes(certificates, papers, program, tmp_path) -> None:
    certificates.write(tmp_path / "certificates.jsonl")
    program(
        "report", tmp_path / "certificates.jsonl", "--graph", PAPERS / "graph.npz", "--out", tmp_path / "theirs.html",
        "--title", "Papers",
    )  # fmt: skip
    ours = nodeproof.report({"certificates": certificates}, title="Papers", graph_name="graph")
    assert ours.html == (tmp_path / "theirs.html").read_text()


def test_results_of_another_graph_are_refused(certificates, bundled, tmp_path) -> None:
    certificates.write(tmp_path / "c.jsonl")
    with pytest.raises(ValueError, match="another graph"):
        Certificates.read(tmp_path / "c.jsonl", bundled)
    with pytest.raises(ValueError, match="has certificates, not radii"):
        Radii.read(tmp_path / "c.jsonl", certificates.graph)
    (tmp_path / "c.jsonl").write_text("no results")
    with pytest.raises(ValueError, match="not a file of certificates"):
        Certificates.read(tmp_path / "c.jsonl", certificates.graph)


def test_timings_are_kept_when_asked_for(papers, certificates, tmp_path) -> None:
    timed = nodeproof.certify(*papers, global_budget=4, timings=True)
    assert (timed.seconds > 0).all() and np.isnan(certificates.seconds).all()
    timed.write(tmp_path / "timed.jsonl")
    assert b'"timings":true' in (tmp_path / "timed.jsonl").read_bytes()
    assert Certificates.read(tmp_path / "timed.jsonl", papers[0]) == timed


def test_pickles_and_equality(certificates, papers) -> None:
    radii = nodeproof.radius(*papers, max_budget=3)
    for results in (certificates, radii):
        assert pickle.loads(pickle.dumps(results)) == results
    assert certificates != radii
    assert certificates != nodeproof.certify(*papers, global_budget=3, local_budget=2, engine="fast")


def test_pickles_do_not_touch_files(certificates, papers, monkeypatch) -> None:
    def refuse(*arguments, **options):
        raise AssertionError("a file was opened")

    radii = nodeproof.radius(*papers, max_budget=3)
    for name in ("mkstemp", "mkdtemp", "TemporaryFile", "NamedTemporaryFile", "TemporaryDirectory"):
        monkeypatch.setattr(tempfile, name, refuse)
    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr(os, "open", refuse)
    for results in (certificates, radii):
        assert pickle.loads(pickle.dumps(results)) == results
    with pytest.raises(ValueError, match="has certificates, not radii"):
        _core.Radii.of_lines(certificates._core.lines())
    damaged = certificates._core.lines().replace(b'"robust"', b'"nonrobust"', 1)
    with pytest.raises(ValueError, match="line .* is damaged: its hash does not fit"):
        _core.Certificates.of_lines(damaged)


def test_a_positive_bound_of_unknown_size_is_zero(papers, tmp_path) -> None:
    """Branch and bound proves a margin positive, and does not ask by how much."""
    found = nodeproof.certify(*papers, global_budget=3, local_budget=2)
    (place,) = np.flatnonzero(found.robust & (found.margin == 0))
    assert found[place].verdict == "robust" and found[place].margin == 0 and np.nanmin(found.margins[place]) == 0
    assert np.isnan(found.margins).sum() == len(found), "only at the class that is certified"
    found.write(tmp_path / "c.jsonl")
    assert b'"positive"' in (tmp_path / "c.jsonl").read_bytes()
    assert Certificates.read(tmp_path / "c.jsonl", papers[0]) == found
    story = str(nodeproof.explain(*papers, int(found.nodes[place]), global_budget=3, local_budget=2))
    assert "stays above 0" in " ".join(story.split()) and "> 0  holds" in story


def test_an_unknown_bound_is_minus_infinity(tmp_path) -> None:
    """Numbers overflow, so that nothing is known."""
    graph = nodeproof.Graph([[0, 1], [1, 0]], [[1, 1], [1, 0]])
    huge = np.full((2, 2), 1e308) * [1, -1]
    found = nodeproof.certify(graph, nodeproof.Model([huge, np.eye(2) * 1e308]), global_budget=1, local_budget=1)
    assert found.undecided.all() and (found.margin == -np.inf).all() and (found.lower == -np.inf).all()
    assert np.isnan(found.upper).all() and np.isnan(found.margins).sum() == 2 and np.isneginf(found.margins).sum() == 2
    assert found.summary["mean_margin"] is None and "mean" not in found._repr_html_()
    certificate = found[0]
    assert certificate.margin == certificate.lower == -np.inf and certificate.upper is None
    found.write(tmp_path / "c.jsonl")
    assert Certificates.read(tmp_path / "c.jsonl", graph) == found


def first_version(path) -> None:
    """Makes a file what version 1 of its format would have been: without hashes, and with numbers for unknown bounds."""
    header, *records = [json.loads(line) for line in path.read_text().splitlines()]
    header["version"] = 1
    if header["format"] == "nodeproof-radii":
        header["max_budget"] = header["budget"].pop("global")
    for record in records:
        del record["hash"]
        record |= {"margins": [5e-324 if bound == "positive" else bound for bound in record.get("margins", ())]}
        if not record["margins"]:
            del record["margins"]
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, *records)))


def test_files_of_version_1_are_read(papers, tmp_path) -> None:
    certificates = nodeproof.certify(*papers, global_budget=3, local_budget=2)
    radii = nodeproof.radius(*papers, max_budget=3, local_budget=2)
    for results in (certificates, radii):
        results.write(tmp_path / "results.jsonl")
        written = (tmp_path / "results.jsonl").read_bytes()
        first_version(tmp_path / "results.jsonl")
        assert b"hash" not in (tmp_path / "results.jsonl").read_bytes()
        read = type(results).read(tmp_path / "results.jsonl", papers[0])
        assert read == results
        read.write(tmp_path / "again.jsonl")
        assert (tmp_path / "again.jsonl").read_bytes() == written


def test_what_notebooks_show(certificates, papers) -> None:
    assert "Certificates of 24 nodes" in certificates._repr_html_() and "at most 4 flips" in certificates._repr_html_()
    assert "Radii of 24 nodes" in nodeproof.radius(*papers, max_budget=3)._repr_html_()
    hostile = nodeproof.Graph(np.zeros((1, 1)), np.zeros((1, 1)), node_names=["<script>alert(1)</script>"])
    model = nodeproof.Model([np.zeros((1, 2))], [np.array([1.0, 0])])
    shown = nodeproof.explain(hostile, model, 0, global_budget=0)._repr_html_()
    assert "<script>" not in shown and "&lt;script&gt;" in shown


def test_a_report_shows_several_models(papers, certificates, tmp_path) -> None:
    radii = nodeproof.radius(*papers, max_budget=3, local_budget=2)
    split = nodeproof.Split(papers[0], train=[0, 1])
    with pytest.raises(ValueError, match="different budgets"):
        nodeproof.report({"one": (certificates, nodeproof.radius(*papers, max_budget=3))})
    page = nodeproof.report({"one": (certificates, radii), "two": radii}, out=tmp_path / "r.html", split=split)
    assert (tmp_path / "r.html").read_text() == page.html and page._repr_html_().startswith("<iframe")
    for bad in ({"one": (certificates, certificates)}, {}, {"one": ("text",)}):
        with pytest.raises(ValueError, match="twice|nothing|neither"):
            nodeproof.report(bad)
    other = nodeproof.certify(papers[0].with_labels(np.zeros(24, int)), papers[1], global_budget=1)
    with pytest.raises(ValueError, match="another graph"):
        nodeproof.report({"one": certificates, "two": other})


def test_a_file_that_cannot_be_written_is_an_error(certificates, tmp_path) -> None:
    with pytest.raises(OSError, match="cannot write"):
        certificates.write(tmp_path / "no" / "such" / "folder.jsonl")
    (tmp_path / "kept").mkdir()
    with pytest.raises(OSError, match="cannot write"):
        certificates.write(tmp_path / "kept")
    assert list(tmp_path.iterdir()) == [tmp_path / "kept"], "nothing is left behind"


def test_rows_slices_and_equality(papers) -> None:
    certificates = nodeproof.certify(*papers, global_budget=2, local_budget=1)
    radii = nodeproof.radius(*papers, max_budget=3, local_budget=1)
    assert [row.node for row in certificates[1:4]] == [1, 2, 3] and radii[-2:] == [radii[22], radii[23]]
    again = nodeproof.certify(*papers, global_budget=2, local_budget=1)
    assert list(certificates) == list(again) and len({*certificates, *again}) == len(certificates)
    assert certificates[0] != certificates[1] and certificates[0] != "certificate"
    for place in (True, "0", 1.0, None):
        with pytest.raises(nodeproof.InputError, match="is not a row"):
            certificates[place]
    with pytest.raises(IndexError):
        radii[24]
    assert certificates[certificates.robust] == [row for row in certificates if row.verdict == "robust"]
    assert radii[np.array([3, 1])] == [radii[3], radii[1]]
    assert "A perceptron revisited" in certificates and 23 in radii and 24 not in radii and "nobody" not in certificates
    assert radii.classes.tolist() == certificates.classes.tolist()


def test_the_attacker_is_told_in_full(papers) -> None:
    options = {"add_only": True, "protect_nodes": [1, 2], "protect_attributes": [3], "local_budget_at": {4: 2}}
    words = (
        "2 at one node, only additions, 1 node with a local budget of its own, 2 nodes protected, 1 attribute protected"
    )
    certificates = nodeproof.certify(*papers, global_budget=4, local_budget=2, **options)
    assert certificates.budget_in_words() == f"at most 4 flips, {words}"
    story = nodeproof.explain(*papers, 0, global_budget=1, local_budget=2, **options)
    assert story.budget == f"at most 1 flip, {words}" and f"budget {story.budget} verdict" in " ".join(
        str(story).split()
    )
    assert nodeproof.Budget(4, 2, **options).in_words(papers[0]) == certificates.budget_in_words()
    budget = nodeproof.Budget(1, protect_nodes=np.array([True, False]))
    assert budget == nodeproof.Budget(1, protect_nodes=[True, False]) and len({budget, budget}) == 1


def test_an_empty_witness_is_a_witness() -> None:
    tie = nodeproof.Graph([[0]], [[0]]), nodeproof.Model([[[0.0, 0.0]]])
    witness = nodeproof.certify(*tie, global_budget=1)[0].witness
    assert witness and len(witness) == 0


def test_what_keeps_nodes_undecided_is_what_files_say(papers) -> None:
    """Of limits of the engine and the time, and of numbers that may overflow."""
    graph, model = papers
    huge = nodeproof.Model([1e200 * weight for weight in model.weights], model.biases)
    results = [
        nodeproof.certify(graph, model, global_budget=4, local_budget=2, engine="fast"),
        nodeproof.certify(graph, model, global_budget=4, local_budget=2, time_limit=0),
        nodeproof.certify(graph, huge, global_budget=4, local_budget=2),
    ]
    found = set()
    for result in results:
        lines = [json.loads(line) for line in result._core.lines().splitlines()[1:]]
        written = [line.get("because", "") for line in lines if "node" in line]
        assert list(result.undecided_because) == written
        found |= set(written)
    assert found >= {"engine", "overflow"}


def test_arrays_are_read_only(papers) -> None:
    certificates = nodeproof.certify(*papers, global_budget=4, local_budget=2)
    radii = nodeproof.radius(*papers, local_budget=2)
    explanation = nodeproof.explain(*papers, 0, global_budget=4)
    before = certificates[0], radii.of(6), radii.mean
    for result in (certificates, radii, certificates[0], explanation):
        arrays = [getattr(result, name) for name in dir(result) if not name.startswith("_")]
        arrays = [array for array in arrays if isinstance(array, np.ndarray)]
        assert arrays
        for array in arrays:
            with pytest.raises(ValueError, match="read-only"):
                array[...] = array
    table = radii.to_pandas()
    table["robust_up_to"] += 1
    copied = certificates.nodes.copy()
    copied += 1
    assert (certificates[0], radii.of(6), radii.mean) == before
