"""Graphs from arrays and files."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sparse
from conftest import PAPERS

import nodeproof
from nodeproof import Graph

RING = np.roll(np.eye(4, dtype=int), 1, axis=1) + np.roll(np.eye(4, dtype=int), -1, axis=1)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.int32, np.int8, np.uint8, np.bool_, np.uint16])
def test_every_usual_type_gives_the_same_graph(kind: type) -> None:
    x = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1]])
    expected = Graph(RING, x, [0, 1, -1, 2])
    for form in (
        np.asarray,
        sparse.csr_matrix,
        sparse.csr_array,
        sparse.coo_matrix,
        sparse.csc_matrix,
        np.asfortranarray,
    ):
        graph = Graph(form(RING.astype(kind)), form(x.astype(kind)), np.array([0, 1, -1, 2], dtype=np.int8))
        assert graph == expected
    assert (expected.nodes, expected.edges, expected.attribute_count, expected.classes) == (4, 4, 3, 3)
    assert (expected.adjacency.toarray() == RING).all()
    assert (expected.attributes.toarray() == x).all()
    assert expected.labels.tolist() == [0, 1, -1, 2]


def test_half_precision_is_read() -> None:
    assert Graph(RING.astype(np.float16), np.eye(4, dtype=np.float16)) == Graph(RING, np.eye(4))


def test_64_bit_ids_and_read_only_arrays_are_read() -> None:
    adjacency, x = sparse.csr_matrix(RING), sparse.csr_matrix(np.eye(4))
    for matrix in (adjacency, x):
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
        for array in (matrix.data, matrix.indices, matrix.indptr):
            array.flags.writeable = False
    assert Graph(adjacency, x) == Graph(RING, np.eye(4))


def test_the_callers_matrices_stay_as_they_are() -> None:
    repeated = sparse.csr_matrix((np.array([0.5, 0.5]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    assert Graph(np.zeros((1, 1)), repeated).attributes.toarray().tolist() == [[1, 0]], "summed, as SciPy does"
    assert repeated.nnz == 2


@pytest.mark.parametrize(
    ("adjacency", "attributes", "options", "words"),
    [
        (RING, np.full((4, 2), 0.3), {}, "attribute 0 of node 0 is 0.3"),
        (RING, np.full((4, 2), 2), {}, "binarise=True"),
        (RING, np.full((4, 2), -1), {}, "attribute 0 of node 0 is -1"),
        (RING, np.full((4, 2), np.nan), {}, "is NaN"),
        (RING, np.full((4, 2), np.inf), {"binarise": True}, "is inf"),
        (RING, np.zeros((3, 2)), {}, "the attributes have 3 rows but the adjacency has 4"),
        (RING, np.zeros((4, 0)), {}, "0 attributes"),
        (np.zeros((0, 0)), np.zeros((0, 3)), {}, "0 nodes"),
        (RING[:3], np.zeros((3, 2)), {}, "3 × 4; it must be square"),
        (np.triu(RING), np.zeros((4, 2)), {}, "directed: it has an edge from row 0 to column 1"),
        (2 * RING, np.zeros((4, 2)), {}, "has weight 2"),
        (np.where(RING, np.nan, 0), np.zeros((4, 2)), {}, "has weight NaN"),
        (np.zeros(4), np.zeros((4, 2)), {}, "1 dimensions"),
        (RING, np.zeros((4, 2), dtype=complex), {}, "complex"),
        (RING, np.full((4, 2), "a"), {}, "truth values, integers or real numbers"),
        (RING, np.zeros((4, 2)), {"labels": [0, 1]}, "labels have shape (2,)"),
        (RING, np.zeros((4, 2)), {"labels": [0.5, 1, 1, 1]}, "whole numbers"),
        (RING, np.zeros((4, 2)), {"labels": [2**40, 1, 1, 1]}, "too large"),
        (RING, np.zeros((4, 2)), {"node_names": ["a"]}, "node names has 1 entries"),
        (RING, np.zeros((4, 2)), {"labels": [0, 1, 2, 3], "class_names": ["a"]}, "class names"),
    ],
)
def test_what_is_wrong_is_named(adjacency, attributes, options, words) -> None:
    with pytest.raises(nodeproof.InputError, match=re.escape(words)):
        Graph(adjacency, attributes, **options)


def test_directions_are_kept_added_or_refused() -> None:
    x = np.eye(3)
    one_way = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    assert Graph(one_way, x, directed=True).adjacency.toarray().tolist() == one_way.tolist()
    assert Graph(one_way, x, directed=False).adjacency.toarray().tolist() == (one_way + one_way.T).tolist()
    with pytest.raises(ValueError, match="directed=True"):
        Graph(one_way, x)


def test_self_loops_are_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    looped = RING + np.diag([1, 0, 0, 1])
    assert Graph(looped, np.eye(4)).edges == 4
    assert "left out 2 self-loops" in caplog.text
    caplog.clear()
    kept = Graph(looped, np.eye(4), keep_self_loops=True)
    assert kept.edges == 6 and not caplog.text


def test_binarise_and_largest_component() -> None:
    adjacency = np.zeros((5, 5), int)
    adjacency[0, 1] = adjacency[1, 0] = 1
    graph = Graph(adjacency, np.array([[0.2], [0], [-3], [1], [5]]), binarise=True, largest_component=True)
    assert graph.nodes == 2 and graph.attributes.toarray().tolist() == [[1], [0]]
    assert graph.cleaning["nodes_dropped"] == 3


def test_edges_as_in_pyg_point_from_sender_to_receiver() -> None:
    graph = Graph.from_edges([[0, 0, 2], [1, 1, 1]], np.eye(3), directed=True)
    assert graph.adjacency.toarray().tolist() == [[0, 0, 0], [1, 0, 1], [0, 0, 0]], "node 1 aggregates nodes 0 and 2"
    for edges in ([[0, 3], [3, 0]], [[-1, 0], [0, -1]], [[0, 1]], [[0.5], [1.0]]):
        with pytest.raises(ValueError, match="edge"):
            Graph.from_edges(edges, np.eye(3))
    assert Graph.from_edges([[], []], np.eye(3)).edges == 0


def test_files_and_names_survive(tmp_path, bundled: Graph) -> None:
    bundled.write(tmp_path / "graph.npz")
    read = Graph.read(tmp_path / "graph.npz")
    assert read == bundled and read.node_names == bundled.node_names
    assert read.node("horn") == 1 and read.node_name(1) == "horn"
    with pytest.raises(ValueError, match="no node called"):
        read.node("no such noun")
    for bad in (-1, read.nodes, True, 1.5):
        with pytest.raises(ValueError, match="node"):
            read.node(bad)


def test_both_layouts_hold_the_same(tmp_path, bundled: Graph, program) -> None:
    values = Graph(RING, np.arange(8).reshape(4, 2) / 8, real_values=True, ranges=(-1, [1, 2]))
    for graph in (bundled, Graph(RING, [[3, 0], [0, 1], [1, 1], [0, 0]], [0, -1, 2, 1], binarise=True), values):
        graph.write(tmp_path / "g.graph")
        read = Graph.read(tmp_path / "g.graph")
        assert read == graph and read.binarised == graph.binarised and read.classes == graph.classes
        assert (read.adjacency != graph.adjacency).nnz == 0
        program("data", "convert", tmp_path / "g.graph", "--out", tmp_path / "g.npz")
        assert Graph.read(tmp_path / "g.npz") == graph
    for length in (3, 100, -1):
        (tmp_path / "cut.graph").write_bytes((tmp_path / "g.graph").read_bytes()[:length])
        with pytest.raises(nodeproof.InputError, match="cut.graph is truncated"):
            Graph.read(tmp_path / "cut.graph")


def test_other_programs_can_map_arrays_into_memory(tmp_path, bundled: Graph) -> None:
    """The example of `docs/formats.md`."""
    page = (PAPERS.parent.parent / "docs/formats.md").read_text()
    names: dict = {}
    exec(re.search(r"```python\n(import json.*?)```", page, re.S)[1], names)
    bundled.write(tmp_path / "g.graph")
    arrays = dict(names["arrays"](tmp_path / "g.graph"))
    assert np.array_equal(arrays["adjacency_columns"], bundled.adjacency.indices)
    assert np.array_equal(arrays["attribute_offsets"], bundled.attributes.indptr)
    assert np.array_equal(arrays["labels"], bundled.labels)
    text, ends = arrays["node_name_text"].tobytes(), arrays["node_name_offsets"]
    assert text[ends[1] : ends[2]].decode() == "horn"


def test_missing_and_damaged_files(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"):
        Graph.read(tmp_path / "nothing.npz")
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 but not really")
    with pytest.raises(nodeproof.InputError, match="bad.npz"):
        Graph.read(tmp_path / "bad.npz")
    with pytest.raises(nodeproof.InputError, match="adj_data"):
        Graph.read(_npz(tmp_path / "model.npz", W0=np.eye(2)))
    with pytest.raises(OSError, match="folder"):
        Graph.read(tmp_path)


def _npz(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_pickles(bundled: Graph) -> None:
    for graph in (bundled, Graph(RING + np.eye(4, dtype=int), np.eye(4), [0, -1, 1, 1], keep_self_loops=True)):
        copied = pickle.loads(pickle.dumps(graph))
        assert copied == graph and copied.fingerprint == graph.fingerprint and copied.classes == graph.classes
    directed = Graph(np.array([[0, 1], [0, 0]]), np.eye(2), directed=True)
    assert pickle.loads(pickle.dumps(directed)) == directed


def test_the_same_file_on_the_command_line(program) -> None:
    import json

    facts = json.loads(program("data", "info", PAPERS / "graph.npz", "--json"))
    assert Graph.read(PAPERS / "graph.npz").fingerprint in json.dumps(facts)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": {0: 1, 1: 0}}, "labels are a dict"),
        ({"labels": {0, 1}}, "labels are a set"),
        ({"labels": [0, -np.inf]}, "whole numbers"),
        ({"labels": np.ma.array([0, 1], mask=[True, False])}, "masked"),
        ({"attributes": np.ma.array([[0, 1], [1, 0]], mask=[[True, False], [False, False]])}, "masked"),
        ({"attributes": [[0, 1], [1]]}, "cannot be read as an array"),
        ({"node_names": 5}, "node_names=5 must be a list of names"),
        ({"node_names": ["a", "\ud800"]}, "name 1 is no valid text"),
        ({"directed": "yes"}, "directed='yes' must be True or False"),
        ({"binarise": None}, "binarise=None must be True or False"),
        ({"keep_self_loops": 2}, "keep_self_loops=2 must be True or False"),
    ],
)
def test_what_is_of_the_wrong_kind_is_named(changes, words) -> None:
    given = {"adjacency": [[0, 1], [1, 0]], "attributes": [[1, 0], [0, 1]]} | changes
    with pytest.raises(nodeproof.InputError, match=words):
        Graph(**given)


@pytest.mark.parametrize("path", ["", None, 5, "a\0b"])
def test_what_is_no_path_is_named(path) -> None:
    with pytest.raises(nodeproof.InputError, match="is no path"):
        Graph.read(path)
    with pytest.raises(nodeproof.InputError, match="is no path"):
        Graph([[0]], [[1]]).write(path)


def test_ids_of_edges_and_attributes_are_numbers() -> None:
    with pytest.raises(nodeproof.InputError, match=r"ids are whole numbers: edge_index.astype\(int\)"):
        Graph.from_edges([[0.0, 1.0], [1.0, 0.0]], np.eye(2))
    with pytest.raises(nodeproof.InputError, match="number the nodes from 0"):
        Graph.from_edges([["a", "b"], ["b", "a"]], np.eye(2))
    with pytest.raises(nodeproof.InputError, match="the attributes have type complex128; they must hold"):
        Graph(np.zeros((2, 2)), np.eye(2) * 1j)
