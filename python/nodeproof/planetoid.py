"""Planetoid's `ind.*` files: Cora, Citeseer and PubMed as Yang, Cohen and Salakhutdinov split them."""

from __future__ import annotations

import io
import os
import pickle
from typing import Any

import numpy as np

from ._files import StrPath, existing
from .errors import InputError
from .graph import Graph
from .split import Split

__all__ = ["read"]

#: Nodes after the labelled ones that are for validation.
_VALIDATION = 500
_PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph")
#: The only things that a file may ask for; a pickle can otherwise run whatever its writer wants.
_HARMLESS = {
    ("collections", "defaultdict"),
    ("builtins", "list"),
    ("__builtin__", "list"),
    ("builtins", "object"),
    ("__builtin__", "object"),
    ("copy_reg", "_reconstructor"),
    ("copyreg", "_reconstructor"),
    ("_codecs", "encode"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "scalar"),
    ("scipy.sparse.csr", "csr_matrix"),
    ("scipy.sparse._csr", "csr_matrix"),
}
_RENAMED = {"scipy.sparse.csr": "scipy.sparse", "numpy.core.multiarray": "numpy._core.multiarray"}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _HARMLESS:
            raise InputError(f"it asks for {module}.{name}, which no Planetoid file needs; it is not opened")
        if module == "numpy.core.multiarray" and not hasattr(np, "_core"):
            return super().find_class(module, name)
        return super().find_class(_RENAMED.get(module, module), name)


def read(folder: StrPath, name: str, *, binarise: bool = False, keep_self_loops: bool = False) -> tuple[Graph, Split]:
    """Reads `ind.<name>.x`, `.y`, `.tx`, `.ty`, `.allx`, `.ally`, `.graph` and `.test.index`.

    The files are pickles; nothing but arrays, sparse matrices, dictionaries and lists is let out of them. Nodes are numbered
    as elsewhere: those of `allx`, with the rows of `tx` at the places that `test.index` names. Test nodes without a row
    (Citeseer has 15) have no attributes and no label. Train is the part that `y` labels, validation the next 500 nodes,
    and test all others.
    """
    import scipy.sparse

    parts = {part: _part(folder, name, part) for part in _PARTS}
    test = _test_nodes(folder, name)
    known, placed = parts["allx"].shape[0], parts["tx"].shape[0]
    if len(test) != placed or len(np.unique(test)) != placed:
        raise InputError(f"ind.{name}.test.index has {len(test)} nodes, but ind.{name}.tx has {placed} rows; one each")
    nodes = max(known, int(test.max()) + 1 if placed else 0)
    if placed and int(test.min()) < known:
        raise InputError(
            f"ind.{name}.test.index names node {test.min()}, which is among the {known} rows of ind.{name}.allx"
        )
    rows = scipy.sparse.vstack([parts["allx"], parts["tx"]], format="coo")
    place = np.concatenate([np.arange(known), test])
    attributes = scipy.sparse.csr_matrix((rows.data, (place[rows.row], rows.col)), shape=(nodes, rows.shape[1]))
    onehot = np.concatenate([parts["ally"], parts["ty"]])
    labels = np.full(nodes, -1, dtype=np.int64)
    labels[place] = np.where(onehot.any(axis=1), onehot.argmax(axis=1), -1)
    pairs = [(node, other) for node, others in parts["graph"].items() for other in others]
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    graph = Graph.from_edges(
        edges, attributes, labels, binarise=binarise, keep_self_loops=keep_self_loops, directed=False
    )
    labelled = len(parts["y"])
    validation = np.arange(labelled, min(labelled + _VALIDATION, known))
    return graph, Split(graph, np.arange(labelled), validation)


def _checked(part: str, value: Any) -> Any:
    """What a file holds, if it is of the right kind."""
    import scipy.sparse

    if part == "graph":
        ends = [(int(node), [int(other) for other in others]) for node, others in value.items()]
        return dict(ends)
    if part in ("x", "tx", "allx"):
        matrix = scipy.sparse.csr_matrix(value)
        matrix.check_format(full_check=True)  # SciPy would crash on one that is none.
        return matrix
    labels = np.asarray(value)
    if labels.ndim != 2:
        raise ValueError(f"labels are of shape {labels.shape}, not nodes × classes")
    return labels


def _test_nodes(folder: StrPath, name: str) -> Any:
    path = existing(os.path.join(os.fspath(folder), f"ind.{name}.test.index"))
    try:
        return np.loadtxt(path, dtype=np.int64, ndmin=1)
    except ValueError as error:
        raise InputError(f"{path} must hold a node id a line ({error})") from error


def _part(folder: StrPath, name: str, part: str) -> Any:
    path = existing(os.path.join(os.fspath(folder), f"ind.{name}.{part}"))
    with open(path, "rb") as file:
        content = file.read()
    try:
        return _checked(part, _Unpickler(io.BytesIO(content), encoding="latin1").load())
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except Exception as error:
        raise InputError(f"{path} is not a file of Planetoid ({error})") from error


def __dir__() -> list[str]:
    return sorted(__all__)
