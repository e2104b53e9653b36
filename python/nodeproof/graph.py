"""Attributed graphs: who is connected to whom, and which attributes each node has."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _core, notebook
from ._checks import flag, listed, number
from ._files import StrPath, destination, existing
from ._matrices import check_numbers, compressed_rows, plain
from .errors import InputError

if TYPE_CHECKING:
    import scipy.sparse

CoreGraph = _core.Graph
_log = logging.getLogger("nodeproof")


class Graph:
    """An attributed graph, read-only once made.

    Args:
        adjacency: N × N, sparse or dense, of 0 and 1. Row m lists the nodes that m is connected to.
        attributes: N × D, sparse or dense, of 0 and 1; or of such rows divided by their sums, which is recognised; or of any
            numbers, with `real_values`.
        labels: N integers, the class of each node; negative for none.
        node_names, attribute_names, class_names: what they are called, for people.
        binarise: counts every attribute value > 0 as 1 instead of refusing values other than 0 and 1.
        normalise_rows: lets networks read attributes divided by the number of ones in their row, as `NormalizeFeatures` of
            PyTorch Geometric does.
        real_values: takes attributes for real values. A flip then sets one to any other in the range of its attribute.
        ranges: the lowest and the highest value of attributes, each a number or an array of D; by default those of their
            column, or 0 if that is beyond.
        largest_component: keeps only the largest connected component; nodes are then renumbered.
        keep_self_loops: keeps self-loops, which are otherwise left out with a warning. The propagation of GCNs, A + I,
            then has a 2 on the diagonal.
        directed: what becomes of an edge without the edge back. `None` refuses it, `False` adds the edge back, `True`
            keeps the direction: row m of the adjacency lists the nodes that m aggregates.

    Matrices of SciPy in compressed row form with usual types are read where they lie.

    >>> import numpy as np
    >>> graph = Graph(np.array([[0, 1], [1, 0]]), np.array([[1, 0, 1], [0, 1, 0]]), labels=[0, 1])
    >>> graph
    Graph(nodes=2, edges=1, attributes=3, classes=2)
    >>> Graph(np.array([[0, 1], [0, 0]]), np.eye(2))
    Traceback (most recent call last):
        ...
    nodeproof.errors.InputError: the adjacency is directed: it has an edge from row 0 to column 1, but none back; ...
    """

    __slots__ = {
        "_core": "The graph of the compiled half.",
        "_names": "Names of nodes, attributes and classes, once they were asked for.",
        "cleaning": "What was changed while the graph was made: counts by their names, such as `self_loops_removed`.",
    }

    _core: CoreGraph
    cleaning: Mapping[str, int]

    def __init__(
        self,
        adjacency: Any,
        attributes: Any,
        labels: npt.ArrayLike | None = None,
        *,
        node_names: Sequence[str] | None = None,
        attribute_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        binarise: bool = False,
        normalise_rows: bool = False,
        real_values: bool = False,
        ranges: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        largest_component: bool = False,
        keep_self_loops: bool = False,
        directed: bool | None = None,
    ) -> None:
        flags = (
            flag("binarise", binarise),
            flag("normalise_rows", normalise_rows),
            flag("largest_component", largest_component),
        )
        loops, directed = (
            flag("keep_self_loops", keep_self_loops),
            directed if directed is None else flag("directed", directed),
        )
        edges, shape = compressed_rows(adjacency, "the adjacency")
        if shape[0] != shape[1]:
            hint = "; Graph.from_edges takes an edge_index" if shape[0] == 2 else ""
            raise InputError(
                f"the adjacency has shape {shape[0]} × {shape[1]}; it must be square, one row a node{hint}"
            )
        values: npt.NDArray[np.float64] | None = None
        if flag("real_values", real_values):
            if binarise or normalise_rows:
                raise InputError("real_values=True takes attributes as they are; leave out binarise and normalise_rows")
            values = dense_values(attributes)
            rows, columns = values.shape
            ones = np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.int64), np.zeros(rows + 1, dtype=np.int64)
        else:
            ones, (rows, columns) = compressed_rows(attributes, "the attributes")
        if ranges is not None and values is None:
            raise InputError("ranges are those of real values; pass real_values=True, or leave them out")
        if rows != shape[0]:
            raise InputError(
                f"the attributes have {rows} rows but the adjacency has {shape[0]}; both need one row a node"
            )
        given_names = {"node_names": node_names, "attribute_names": attribute_names, "class_names": class_names}
        names = [None if given is None else _names(name, given) for name, given in given_names.items()]
        made, cleaning = _core.Graph.of_arrays(
            edges,
            ones,
            columns,
            None if labels is None else label_ids(labels, rows),
            (names[0], names[1], names[2]),
            *(flags if values is None else (False, False, False)),
            loops,
            directed,
        )
        if values is not None:
            made = made.with_values(values)
            if ranges is not None:
                made = made.with_ranges(*_range_ends(ranges, columns))
            if flags[2]:
                nodes, made = made.nodes, made.largest_component()
                cleaning["nodes_dropped"] = nodes - made.nodes
        self._take(made, cleaning)

    def _take(self, made: CoreGraph, cleaning: Mapping[str, int]) -> None:
        self._core = made
        self._names: tuple[list[str] | None, list[str] | None, list[str] | None] | None = None
        self.cleaning = dict(cleaning)
        if loops := self.cleaning.get("self_loops_removed"):
            _log.warning("left out %d self-loops of the graph; keep_self_loops=True keeps them", loops)
        if weights := self.cleaning.get("weights_ignored"):
            _log.warning("ignored the weights of %d edges: a graph knows edges only as there or not", weights)

    @classmethod
    def _of(cls, made: CoreGraph, cleaning: Mapping[str, int] | None = None) -> Graph:
        graph = cls.__new__(cls)
        graph._take(made, cleaning or {})
        return graph

    @classmethod
    def bundled(cls) -> Graph:
        """The graph that comes with nodeproof: 3,304 nouns of WordNet, the words of their definitions as attributes.

        >>> Graph.bundled()
        Graph(nodes=3304, edges=5162, attributes=2048, classes=6)
        """
        return cls._of(_core.Graph.bundled())

    @classmethod
    def read(
        cls,
        path: StrPath,
        *,
        binarise: bool = False,
        normalise_rows: bool = False,
        real_values: bool = False,
        ranges: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        largest_component: bool = False,
        keep_self_loops: bool = False,
        directed: bool = False,
    ) -> Graph:
        """Reads an `.npz` file in the sparse-graph layout or a `.graph` file (`docs/formats.md`), whatever its name.

        As on the command line, edges of an `.npz` are made undirected unless `directed` keeps them as they are; the other
        options are those of `Graph`.
        """
        flags = {
            "binarise": binarise,
            "normalise_rows": normalise_rows,
            "real_values": real_values,
            "largest_component": largest_component,
            "keep_self_loops": keep_self_loops,
            "directed": directed,
        }
        given = [flag(name, value) for name, value in flags.items()]
        made, cleaning = _core.Graph.read(existing(path), given[0], given[1], given[2], given[3], given[4], given[5])
        if ranges is not None:
            made = made.with_ranges(*_range_ends(ranges, made.attribute_count))
        return cls._of(made, cleaning)

    @classmethod
    def from_edges(
        cls, edge_index: npt.ArrayLike, attributes: Any, labels: npt.ArrayLike | None = None, **options: Any
    ) -> Graph:
        """A graph of edges, 2 × E: node `edge_index[0, e]` sends to node `edge_index[1, e]`, as in PyTorch Geometric.

        An edge that is there twice counts once. Options are those of `Graph`.

        >>> Graph.from_edges([[0, 1, 1, 2], [1, 0, 2, 1]], [[1, 0], [0, 1], [1, 1]])
        Graph(nodes=3, edges=2, attributes=2)
        """
        import scipy.sparse

        edges = plain(edge_index, "the edges")
        if edges.size == 0:
            edges = np.zeros((2, 0), dtype=np.int64)
        if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
            is_turned = edges.ndim == 2 and edges.shape[0] != 2 and edges.shape[1] == 2
            hint = "; transpose them" if is_turned else "; number the nodes from 0" if edges.dtype.kind in "US" else ""
            if edges.dtype.kind == "f":
                hint += "; ids are whole numbers: edge_index.astype(int), or edge_index.long() of a tensor"
            raise InputError(
                f"edges must be integers of shape 2 × E, but are {edges.dtype} of shape {edges.shape}{hint}"
            )
        rows = attributes if options.get("real_values") else _sparse_rows(attributes)
        nodes = int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)
        if edges.size and (edges.min() < 0 or edges.max() >= nodes):
            bad = edges.min() if edges.min() < 0 else edges.max()
            raise InputError(f"an edge names node {bad}, but there are {nodes} rows of attributes, numbered from 0")
        entries = np.ones(edges.shape[1], dtype=np.int64)
        adjacency = scipy.sparse.coo_matrix((entries, (edges[1], edges[0])), shape=(nodes, nodes)).tocsr()
        adjacency.sum_duplicates()
        adjacency.data[:] = 1
        return cls(adjacency, rows, labels, **options)

    @classmethod
    def from_pyg(cls, data: Any, **options: Any) -> Graph:
        """The graph of a PyTorch Geometric `Data` object: `edge_index`, `x` and, if it is there, `y`.

        Options are those of `Graph`. To certify a module on it use `nodeproof.from_pyg`, which takes the propagation from
        the module too.
        """
        from .pyg import graph_of

        return graph_of(data, **options)

    def write(self, path: StrPath) -> None:
        """Writes a file that `Graph.read` and the command line read: in the `.graph` layout, which is opened fast, if
        that is how the name ends, else an `.npz`.
        """
        self._core.write(destination(path, "graphs", "npz", "graph"))

    def with_labels(self, labels: npt.ArrayLike) -> Graph:
        """The same graph with other labels, negative for none."""
        return Graph._of(self._core.with_labels(label_ids(labels, self.nodes)))

    def with_flips(self, flips: Iterable[Sequence[Any]]) -> Graph:
        """The graph under these flips: a `Witness`, or `(node, attribute)` with ids or names, and a new value as third.

        The new value may be left out where attributes are bits. A flip that changes nothing is an error.

        >>> graph = Graph.bundled()
        >>> tampered = graph.with_flips([("horn", "plant")])
        >>> tampered.attributes[1].nnz - graph.attributes[1].nnz
        1
        """
        made = [flip_ids(self, flip) for flip in listed("flips", flips, "flips (node, attribute, to)")]
        graph = Graph._of(self._core.with_flips(made))
        graph.cleaning = dict(self.cleaning)
        return graph

    def without_edges(self, edges: Iterable[Sequence[Any]]) -> Graph:
        """The graph without these edges, pairs of ids or names, each in both directions. One that is not there is an error.

        >>> graph = Graph([[0, 1], [1, 0]], [[1, 0], [0, 1]], node_names=["horn", "hoof"])
        >>> graph.without_edges([("horn", "hoof")]).edges
        0
        """
        graph = Graph._of(self._core.without_edges(edge_ids(self, edges, "edges")))
        graph.cleaning = dict(self.cleaning)
        return graph

    @property
    def nodes(self) -> int:
        """Number of nodes, N."""
        return self._core.nodes

    @property
    def edges(self) -> int:
        """Number of edges; an undirected one counts once."""
        return self._core.edges

    @property
    def directed(self) -> bool:
        """Whether some edge has no edge back."""
        return self._core.directed

    @property
    def attribute_count(self) -> int:
        """Number of attributes, D."""
        return self._core.attribute_count

    @property
    def classes(self) -> int:
        """Number of classes, as far as labels and class names say; 0 if there are neither."""
        return self._core.classes

    @property
    def adjacency(self) -> scipy.sparse.csr_matrix:
        """The adjacency, N × N, in compressed row form."""
        offsets, indices = self._core.adjacency()
        return _ones(offsets, indices, self.nodes)

    @property
    def kind(self) -> str:
        """What networks read of the attributes: "bits", "normalised-rows", bits divided by the number of ones in their row, or
        "real-values".

        An attacker flips bits, or sets values to others.
        """
        return self._core.kind

    @property
    def binarised(self) -> int:
        """How many values of the attributes were neither 0 nor 1, and count as 1 where they are above 0 (`binarise=True`).

        Verdicts are then about a network that reads 0 and 1. Results and reports say so.
        """
        return self._core.binarised

    @property
    def attributes(self) -> scipy.sparse.csr_matrix | npt.NDArray[np.float64]:
        """The bits of the attributes, N × D, in compressed row form; or the real values, as an array."""
        values = self._core.values()
        if values is not None:
            return values
        offsets, indices = self._core.attributes()
        return _ones(offsets, indices, self.attribute_count)

    @property
    def ranges(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
        """The lowest and the highest value of each attribute; `None` if they are bits."""
        return self._core.ranges()

    @property
    def labels(self) -> npt.NDArray[np.int64] | None:
        """The class of each node, -1 for none; `None` if the graph has no labels."""
        return self._core.labels()

    @property
    def fingerprint(self) -> str:
        """SHA-256 of sizes, edges, attributes and labels: the one that files of certificates name."""
        return self._core.fingerprint

    @property
    def edges_fingerprint(self) -> str:
        """SHA-256 of the adjacency alone: the same for every graph with the same nodes and edges."""
        return self._core.edges_fingerprint

    def _all_names(self) -> tuple[list[str] | None, list[str] | None, list[str] | None]:
        if self._names is None:
            self._names = self._core.names()
        return self._names

    @property
    def node_names(self) -> list[str] | None:
        """One name a node."""
        return self._all_names()[0]

    @property
    def attribute_names(self) -> list[str] | None:
        """One name an attribute."""
        return self._all_names()[1]

    @property
    def class_names(self) -> list[str] | None:
        """One name a class."""
        return self._all_names()[2]

    def node_name(self, node: int) -> str:
        """The name of the node with this id, or `node 17`."""
        return _name(self.node_names, self.node(_id(node, "node")), "node")

    def attribute_name(self, attribute: int) -> str:
        """The name of the attribute with this id, or `attribute 17`."""
        return _name(self.attribute_names, self.attribute(_id(attribute, "attribute")), "attribute")

    def class_name(self, class_: int) -> str:
        """The name of the class with this id, or `class 3`."""
        return _name(self.class_names, self.class_(_id(class_, "class")), "class")

    def node(self, node: int | str) -> int:
        """The id of a node that is given by its id or its name.

        >>> Graph.bundled().node("horn")
        1
        """
        if not isinstance(node, str):
            if isinstance(node, bool) or not isinstance(node, (int, np.integer)):
                raise InputError(f"{node!r} is not a node; give an id or a name")
            if not 0 <= node < self.nodes:
                raise InputError(f"node {node} does not exist: the graph has {self.nodes} nodes, numbered from 0")
            return int(node)
        return _find(self.node_names, node, "node")

    def attribute(self, attribute: int | str) -> int:
        """The id of an attribute that is given by its id or its name."""
        if not isinstance(attribute, str):
            if isinstance(attribute, bool) or not isinstance(attribute, (int, np.integer)):
                raise InputError(f"{attribute!r} is not an attribute; give an id or a name")
            if not 0 <= attribute < self.attribute_count:
                raise InputError(
                    f"attribute {attribute} does not exist: there are {self.attribute_count}, numbered from 0"
                )
            return int(attribute)
        return _find(self.attribute_names, attribute, "attribute")

    def class_(self, class_: int | str) -> int:
        """The id of a class that is given by its id or its name."""
        if not isinstance(class_, str):
            if isinstance(class_, bool) or not isinstance(class_, (int, np.integer)):
                raise InputError(f"{class_!r} is not a class; give an id or a name")
            # Without names a model may have more classes than there are labels of.
            if class_ < 0 or (self.class_names is not None and class_ >= self.classes):
                raise InputError(f"class {class_} does not exist: there are {self.classes}, numbered from 0")
            return int(class_)
        return _find(self.class_names, class_, "class")

    def to_pyg(self, split: Any = None) -> Any:
        """A PyTorch Geometric `Data` object: `x`, `edge_index`, `y`, and the masks of `split` if one is given."""
        from .pyg import data_of

        return data_of(self, split)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return self.fingerprint == other.fingerprint and self._all_names() == other._all_names()

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        classes = f", classes={self.classes}" if self.classes else ""
        kind = "" if self.kind == "bits" else f", kind={self.kind!r}"
        directed = ", directed=True" if self.directed else ""
        return (
            f"Graph(nodes={self.nodes}, edges={self.edges}, attributes={self.attribute_count}{classes}{kind}{directed})"
        )

    def _repr_html_(self) -> str:
        return notebook.graph(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._core.to_bytes(), dict(self.cleaning))


def flip_ids(graph: Graph, flip: Sequence[Any]) -> tuple[int, int, float | None]:
    """Node, attribute and, if it is given, the new value of a flip."""
    if isinstance(flip, str) or not hasattr(flip, "__len__") or len(flip) not in (2, 3):
        raise InputError(f"{flip!r} is no flip; give (node, attribute), or (node, attribute, to)")
    to = flip[2] if len(flip) == 3 else None
    return graph.node(flip[0]), graph.attribute(flip[1]), None if to is None else number("to", to)


def edge_ids(graph: Graph, edges: Iterable[Any], name: str) -> list[tuple[int, int]]:
    """Edges, pairs of ids or names, as pairs of ids."""
    made = []
    for edge in listed(name, edges, "pairs of nodes"):
        if isinstance(edge, str) or not hasattr(edge, "__len__") or len(edge) != 2:
            raise InputError(f"{edge!r} is no edge; give a pair of nodes, ids or names")
        made.append((graph.node(edge[0]), graph.node(edge[1])))
    return made


def _unpickled(content: bytes, cleaning: Mapping[str, int]) -> Graph:
    graph = Graph._of(_core.Graph.of_bytes(content))
    graph.cleaning = cleaning
    return graph


def dense_values(attributes: Any) -> npt.NDArray[np.float64]:
    """Attributes as numbers, nodes × attributes, row by row."""
    array = plain(attributes.toarray() if hasattr(attributes, "toarray") else attributes, "the attributes")
    if array.ndim != 2:
        raise InputError(f"the attributes have shape {array.shape}; they must be nodes × attributes")
    check_numbers(array.dtype, "the attributes")
    return np.ascontiguousarray(array, dtype=np.float64)


def _range_ends(ranges: Any, attributes: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The lowest and the highest value of each attribute."""
    try:
        low, high = ranges
        ends = [np.broadcast_to(np.asarray(end, dtype=np.float64), (attributes,)).copy() for end in (low, high)]
    except (TypeError, ValueError):
        raise InputError(
            f"ranges must be a lowest and a highest value, each a number or an array of {attributes}, one an attribute"
        ) from None
    return ends[0], ends[1]


def _sparse_rows(attributes: Any) -> scipy.sparse.csr_matrix:
    """Attributes in compressed row form."""
    import scipy.sparse

    ones, shape = compressed_rows(attributes, "the attributes")
    return scipy.sparse.csr_matrix(ones, shape=shape)


def _names(name: str, given: Any) -> list[str]:
    texts = [str(text) for text in listed(name, given, "names")]
    for place, text in enumerate(texts):
        if not text.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise InputError(f"{name}: name {place} is no valid text")
    return texts


def label_ids(labels: npt.ArrayLike, nodes: int) -> npt.NDArray[np.int64]:
    """Labels as 64-bit integers, one a node."""
    if isinstance(labels, (Mapping, Set)):
        raise InputError(f"labels are a {type(labels).__name__}; give a list, one class a node")
    array = plain(labels)
    if array.dtype.kind in "US":
        raise InputError("labels are names; number them: names, labels = numpy.unique(labels, return_inverse=True)")
    if array.ndim == 2 and array.shape[0] == nodes and nodes != 1:
        raise InputError(
            f"labels have shape {array.shape}; give one class a node: labels.argmax(1), if they are one-hot"
        )
    check_numbers(array.dtype, "the list of labels")
    if array.dtype.kind == "f":
        if not (np.isfinite(array).all() and np.array_equal(array, np.floor(array))):
            raise InputError("labels must be whole numbers, one class a node; negative for none")
    if array.shape != (nodes,):
        raise InputError(f"the labels have shape {array.shape}, but there are {nodes} nodes; give one class a node")
    if array.size and array.max() >= 2**31:
        raise InputError(f"label {array.max()} is too large; number the classes from 0")
    return np.ascontiguousarray(array, dtype=np.int64)


def _ones(offsets: npt.NDArray[Any], indices: npt.NDArray[Any], columns: int) -> scipy.sparse.csr_matrix:
    import scipy.sparse

    data = np.ones(len(indices), dtype=np.int8)
    return scipy.sparse.csr_matrix((data, indices, offsets), shape=(len(offsets) - 1, columns))


def _id(given: Any, what: str) -> Any:
    """What is no name, in place of which an id was to be given."""
    if isinstance(given, str):
        own = "class_" if what == "class" else what
        raise InputError(f"{given!r} is a name, not an id; graph.{own}({given!r}) is the id of the {what} that has it")
    return given


def _name(names: list[str] | None, index: int, what: str) -> str:
    name = names[index] if names is not None and 0 <= index < len(names) else ""
    return name or f"{what} {index}"


def _find(names: list[str] | None, name: str, what: str) -> int:
    found = [place for place, known in enumerate(names or []) if known == name]
    if not found:
        plural = {"class": "classes"}.get(what, f"{what}s")
        hint = _core.did_you_mean(name, names) if names else f"; the graph has no names of {plural}, so give an id"
        raise InputError(f"there is no {what} called {name!r}{hint}")
    if len(found) > 1:
        plural = {"class": "classes"}.get(what, f"{what}s")
        raise InputError(f"{len(found)} {plural} are called {name!r}, the first is {found[0]}; give an id")
    return found[0]
