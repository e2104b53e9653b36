"""Planetoid's files."""

from __future__ import annotations

import collections
import os
import pickle

import numpy as np
import pytest
import scipy.sparse as sparse

import nodeproof
from nodeproof import planetoid


def write(folder, test=(7, 5), **changes):
    """Eight nodes, of which node 6 has no row; five are in `allx`, two of them labelled for training."""
    x = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]], dtype=np.float32)
    tx = np.array([[1, 1, 1], [0, 1, 1]], dtype=np.float32)
    onehot = np.eye(3, dtype=np.int32)
    graph = collections.defaultdict(list, {0: [1, 2, 1], 1: [0], 2: [0, 2], 3: [], 4: [5], 5: [4, 7], 7: [5]})
    parts = {
        "x": sparse.csr_matrix(x[:2]), "y": onehot[[0, 1]], "allx": sparse.csr_matrix(x), "ally": onehot[[0, 1, 2, 0, 1]],
        "tx": sparse.csr_matrix(tx), "ty": onehot[[2, 0]], "graph": graph,
    } | changes  # fmt: skip
    for part, content in parts.items():
        (folder / f"ind.toy.{part}").write_bytes(pickle.dumps(content, protocol=2))
    (folder / "ind.toy.test.index").write_text("".join(f"{node}\n" for node in test))
    return folder


def test_nodes_edges_labels_and_split(tmp_path) -> None:
    graph, split = planetoid.read(write(tmp_path), "toy")
    assert graph.nodes == 8
    assert graph.attributes.toarray()[[7, 5, 6]].tolist() == [[1, 1, 1], [0, 1, 1], [0, 0, 0]]
    assert graph.labels.tolist() == [0, 1, 2, 0, 1, 0, -1, 2]
    pairs = sorted(zip(*graph.adjacency.nonzero(), strict=True))
    assert pairs == [(0, 1), (0, 2), (1, 0), (2, 0), (4, 5), (5, 4), (5, 7), (7, 5)]
    assert (
        split.train.tolist() == [0, 1] and split.validation.tolist() == [2, 3, 4] and split.test.tolist() == [5, 6, 7]
    )
    looped, _ = planetoid.read(tmp_path, "toy", keep_self_loops=True)
    assert looped.edges == graph.edges + 1


def test_pyg_reads_the_same(tmp_path) -> None:
    pyg = pytest.importorskip("torch_geometric.io")
    random = np.random.default_rng(0)
    # PyG's reader counts on 500 nodes for validation, and fills gaps of test.index for Citeseer only.
    x, onehot = sparse.csr_matrix((random.random((620, 9)) < 0.2).astype(np.float32)), np.eye(3, dtype=np.int32)
    labels = onehot[random.integers(3, size=620)]
    graph = {node: random.integers(620, size=random.integers(1, 4)).tolist() for node in range(620)}
    parts = {"x": x[:9], "y": labels[:9], "allx": x[:610], "ally": labels[:610], "tx": x[610:], "ty": labels[610:]}
    graph, split = planetoid.read(write(tmp_path, test=610 + random.permutation(10), graph=graph, **parts), "toy")
    data = pyg.read_planetoid_data(str(tmp_path), "toy")
    assert np.array_equal(data.x.numpy(), graph.attributes.toarray()) and data.y.tolist() == graph.labels.tolist()
    theirs = nodeproof.Graph.from_edges(data.edge_index.numpy(), data.x.numpy(), data.y.numpy(), directed=False)
    assert theirs == graph and nodeproof.Split.from_pyg(data) == split


class Evil:
    """What a pickle can do: here it makes a folder."""

    def __init__(self, path) -> None:
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_files_cannot_run_code(tmp_path) -> None:
    write(tmp_path, graph=Evil(tmp_path / "owned"))
    with pytest.raises(nodeproof.InputError, match="which no Planetoid file needs; it is not opened"):
        planetoid.read(tmp_path, "toy")
    assert not (tmp_path / "owned").exists()


def damaged(**parts):
    """A matrix that is none, which SciPy does not notice by itself."""
    matrix = sparse.csr_matrix(np.eye(2, 3))
    for name, values in parts.items():
        setattr(matrix, name, np.array(values, np.int32))
    return matrix


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"allx": sparse.csr_matrix(np.full((5, 3), 0.5))}, "binarise=True"),
        ({"test": (4, 5)}, "among the 5 rows"),
        ({"test": (5,)}, "1 nodes, but ind.toy.tx has 2 rows"),
        ({"test": (5, 5)}, "one each"),
        ({"test": ("five", 7)}, "a node id a line"),
        ({"allx": damaged(indptr=[0, 10**9, 10**9])}, "not a file of Planetoid"),
        ({"tx": damaged(indptr=[0, -5, 2])}, "not a file of Planetoid"),
        ({"x": damaged(indices=[10**9, 0])}, "not a file of Planetoid"),
        ({"graph": [1, 2]}, "not a file of Planetoid"),
        ({"graph": {"a": ["b"]}}, "not a file of Planetoid"),
        ({"ty": np.ones(2)}, "not nodes × classes"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, changes, words) -> None:
    write(tmp_path, **changes)
    with pytest.raises(nodeproof.InputError, match=words):
        planetoid.read(tmp_path, "toy")


def test_missing_and_damaged_files(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="ind.toy.x"):
        planetoid.read(tmp_path, "toy")
    write(tmp_path)
    (tmp_path / "ind.toy.tx").write_bytes(b"\x80\x02damaged")
    with pytest.raises(nodeproof.InputError, match="not a file of Planetoid"):
        planetoid.read(tmp_path, "toy")
