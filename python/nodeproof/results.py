"""What certifying comes to: certificates and radii of many nodes, as arrays, tables and files."""

from __future__ import annotations

import gzip
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, TypeVar, overload

import numpy as np
import numpy.typing as npt

from . import _core, notebook
from ._checks import flag, instance, listed, number, text, whole
from ._files import StrPath, check_ending, existing, path_text, replace
from ._matrices import plain
from ._optional import optional
from ._progress import Progress, observer
from .errors import InputError, MissingRowError
from .figure import Figure, look
from .graph import Graph
from .model import Model
from .nodes import chosen
from .split import Split
from .witness import Flip, Witness

if TYPE_CHECKING:
    from typing_extensions import Self

_log = logging.getLogger("nodeproof")

VERDICTS = np.array(["robust", "nonrobust", "undecided"])
ENGINES = np.array(["fast", "tight", "complete"])
#: What keeps nodes from being decided; "" stands for nothing, and comes last.
OBSTACLES = np.array(["engine", "values", "time", "memory", "overflow", "arithmetic", ""])

#: Columns that have to be one of these words.
_AMONG = {"verdict": VERDICTS.tolist(), "engine": ENGINES.tolist(), "undecided_because": OBSTACLES.tolist()}
#: Columns with classes.
_CLASSES = ("label", "predicted", "class", "worst_class")
#: What `Radii.plot` draws.
FIGURES = ["certificates", "degree", "purity"]

#: An array of any type.
_Array = TypeVar("_Array", bound=npt.NDArray[Any])
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Words = npt.NDArray[np.str_]


def frozen(array: _Array) -> _Array:
    """The array, which cannot be written to from now on: results share theirs with all who ask."""
    array.flags.writeable = False
    return array


class Checked(dict[int, str]):
    """The nodes of which a checker rejects something, with the reasons, and the nodes that it did not check.

    >>> import nodeproof
    >>> nodeproof.results.Checked({3: "its label is not that of the graph"}, [4, 5])
    Checked({3: 'its label is not that of the graph'}, not_checked=(4, 5))
    """

    #: Nodes with more sets of deletions than the checker goes through; they may be right.
    not_checked: tuple[int, ...]

    def __init__(self, rejected: Mapping[int, str] = MappingProxyType({}), not_checked: Iterable[int] = ()) -> None:
        super().__init__(rejected)
        self.not_checked = tuple(not_checked)

    def __repr__(self) -> str:
        rejected = super().__repr__()
        return f"Checked({rejected}, not_checked={self.not_checked})" if self.not_checked else rejected


class _Results(ABC):
    """What certificates and radii have in common: one row a node, in the order asked for. Their arrays are read-only."""

    _kind: ClassVar[type[_core.Certificates] | type[_core.Radii]]
    #: Columns of a table, in order: those of the CSV files of the command line.
    _table: ClassVar[tuple[str, ...]]
    #: Those of them in which -1 stands for nothing.
    _optional: ClassVar[tuple[str, ...]]

    def __init__(self, made: Any, graph: Graph | None) -> None:
        self._core = made
        self._graph = graph
        self._columns: dict[str, npt.NDArray[Any]] = {name: frozen(values) for name, values in made.columns().items()}
        self._margins: Floats | None = None
        self._places: dict[int, int] | None = None

    def __len__(self) -> int:
        return len(self._core)

    @property
    def graph(self) -> Graph:
        """The graph; an error if these results were read without it."""
        if self._graph is None:
            name = type(self).__name__
            raise InputError(
                f"the {name.lower()} were read without their graph; give it, too: {name}.read(path, graph)"
            )
        return self._graph

    @property
    def _node_names(self) -> list[str] | None:
        return None if self._graph is None else self._graph.node_names

    def _node_name(self, node: int) -> str:
        return f"node {node}" if self._graph is None else self._graph.node_name(node)

    @property
    def nodes(self) -> Integers:
        """The nodes, in the order asked for."""
        return self._columns["node"]

    @property
    def labels(self) -> Integers:
        """The label of each node, -1 for none."""
        return self._columns["label"]

    @property
    def engine(self) -> str:
        """The strongest engine that was asked for."""
        return str(self._core.engine)

    @property
    def binarised(self) -> int:
        """How many values of the graph's attributes were neither 0 nor 1 (`Graph.binarised`)."""
        return int(self._core.binarised)

    def __contains__(self, node: object) -> bool:
        """Whether a node, given by its id or name, is among them."""
        try:
            self.place(node)  # type: ignore[arg-type]
        except InputError:
            return False
        return True

    def place(self, node: int | str) -> int:
        """The row of a node, given by its id or name."""
        if self._places is None:
            self._places = {int(of): place for place, of in enumerate(self.nodes)}
        if self._graph is not None or isinstance(node, str):
            node = self.graph.node(node)
        if node not in self._places:
            raise InputError(f"node {node} is not among the {len(self)} nodes of these results")
        return self._places[node]

    @abstractmethod
    def _row(self, place: int) -> Any:
        """What there is at a place."""

    def _rows(self, place: int | slice | npt.NDArray[Any]) -> Any:
        if isinstance(place, np.ndarray) and place.ndim == 1 and place.dtype.kind in "biu":
            return [self._row(int(each)) for each in np.arange(len(self))[place]]
        if isinstance(place, slice):
            return [self._row(each) for each in range(len(self))[place]]
        if isinstance(place, bool) or not hasattr(place, "__index__"):
            raise InputError(
                f"{place!r} is not a row; give one, a slice or an array, or ask .of(node) for a node's id or name"
            )
        if not -len(self) <= place < len(self):
            raise MissingRowError(
                f"there is no row {place}: there are {len(self)}, numbered from 0; .of(node) takes ids of nodes"
            )
        return self._row(range(len(self))[place])

    def _witness(self, place: int) -> Witness | None:
        flips = self._core.witness(place)
        if flips is None:
            return None
        class_, margin = self._columns["witness_class"][place], self._columns["witness_margin"][place]
        named = (Flip(node, attribute, int(to) if to in (0, 1) else to) for node, attribute, to in flips)
        edges = tuple(self._core.witness_edges(place) or ())
        return Witness(tuple(named), int(class_), float(margin), edges, self._graph)

    def witness(self, node: int | str) -> Witness | None:
        """Flips that change the class of a node, if they are known."""
        return self._witness(self.place(node))

    @abstractmethod
    def _words(self, column: str) -> npt.NDArray[Any]:
        """A column as it stands in a table."""

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row a node and the columns of the CSV file (`docs/formats.md`)."""
        pandas = optional("pandas", "pandas", "to_pandas()")
        columns: dict[str, Any] = {}
        for column in self._table:
            values = self._words(column)
            if column in self._optional:
                columns[column] = pandas.arrays.IntegerArray(values.copy(), values < 0)
            else:
                columns[column] = values
            if column == "node" and self._node_names is not None:
                columns["name"] = self._names()
        return pandas.DataFrame(columns)

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` with the columns of `to_pandas`."""
        pyarrow = optional("pyarrow", "arrow", "to_arrow()")
        columns: dict[str, Any] = {}
        for column in self._table:
            values = self._words(column)
            mask = values < 0 if column in self._optional else np.isnan(values) if values.dtype.kind == "f" else None
            columns[column] = pyarrow.array(values.tolist() if values.dtype.kind == "U" else values, mask=mask)
            if column == "node" and self._node_names is not None:
                columns["name"] = pyarrow.array(self._names())
        return pyarrow.table(columns)

    def to_polars(self) -> Any:
        """A `polars.DataFrame` with the columns of `to_pandas`."""
        polars = optional("polars", "polars", "to_polars()")
        columns: dict[str, Any] = {}
        for column in self._table:
            values = self._words(column)
            series = polars.Series(values.tolist() if values.dtype.kind == "U" else values)
            if values.dtype.kind == "U":
                series = series.cast(polars.String)
            elif column in self._optional:
                series = series.set(polars.Series(values < 0), None)
            elif values.dtype.kind == "f":
                series = series.fill_nan(None)
            columns[column] = series
            if column == "node" and self._node_names is not None:
                columns["name"] = polars.Series(self._names(), dtype=polars.String)
        return polars.DataFrame(columns)

    def _names(self) -> list[str]:
        """The name of each node, of a graph that has names."""
        names = self._node_names or []
        return [names[node] for node in self.nodes]

    def filter(
        self, mask: npt.ArrayLike | None = None, *, nodes: Any = None, split: Split | None = None, **columns: Any
    ) -> Self:
        """The rows that are all of what is asked for, in the same order.

        Args:
            mask: truth values, one a row, such as `radii.robust_up_to < 3`.
            nodes: ids, names, a mask of all nodes, or a part of `split`, as in `certify`.
            columns: of any column of `to_pandas` the value, or a list of values, that rows must have. Classes may be given by
                their names; `None` stands for nothing.

        >>> import nodeproof
        >>> graph = nodeproof.Graph([[0, 1, 0], [1, 0, 0], [0, 0, 0]], [[1, 0], [1, 0], [1, 0]])
        >>> model = nodeproof.Model([[[2.0, 0.0], [0.0, 1.0]]])
        >>> certificates = nodeproof.certify(graph, model, global_budget=1, local_budget=1)
        >>> certificates.filter(verdict="nonrobust").nodes
        array([2])
        """
        kept = np.ones(len(self), dtype=np.bool_)
        if mask is not None:
            truths = plain(mask, "the mask")
            if truths.dtype != np.bool_ or truths.shape != kept.shape:
                raise InputError(
                    f"a mask has a truth value for each of the {len(self)} rows; nodes= takes ids and names"
                )
            kept &= truths
        if nodes is not None:
            kept &= np.isin(self.nodes, chosen(self.graph, nodes, split))
        for column, value in columns.items():
            kept &= self._having(column, value)
        made: Self = type(self)(self._core.take(np.flatnonzero(kept).tolist()), self._graph)
        return made

    def _having(self, column: str, value: Any) -> Truths:
        """Which rows have this value, or one of these, in a column of the table, or of `undecided_because`."""
        column = {"class_": "class"}.get(column, column)
        known = [*self._table, "name", *(["undecided_because"] if "undecided_because" in self._columns else [])]
        if column not in known:
            hint = _core.did_you_mean(column, known)
            raise InputError(f"there is no column {column!r}; there are {', '.join(known)}{hint}")
        many = list(value) if hasattr(value, "__iter__") and not isinstance(value, str) else [value]
        if column == "name":
            have = np.array([self._node_name(int(node)) for node in self.nodes], dtype=np.str_)
        else:
            have = self._words(column)
        truths = np.zeros(len(self), dtype=np.bool_)
        for one in many:
            wanted = self._nothing(column, have) if one is None else self._wanted(column, have, one)
            truths |= np.isnan(have) if wanted != wanted else have == wanted
        return truths

    def _nothing(self, column: str, have: npt.NDArray[Any]) -> Any:
        """What stands for nothing in a column."""
        if column == "undecided_because":
            return ""
        if column in self._optional:
            return -1
        if have.dtype.kind != "f":
            raise InputError(f"{column}=None would keep no rows, as each has a {column}; give a value, or leave it out")
        return float("nan")

    def _wanted(self, column: str, have: npt.NDArray[Any], one: Any) -> Any:
        """A value as it stands in a column; an error if it cannot."""
        if column in _AMONG:
            if one not in _AMONG[column]:
                names = [name for name in _AMONG[column] if name]
                hint = _core.did_you_mean(str(one), names)
                raise InputError(f"{column} is never {one!r}; it is {', '.join(names)}{hint}")
            return one
        if column == "name":
            known = [*have.tolist(), *(self._node_names or ())]
            if text(column, one) not in known:
                raise InputError(f"there is no node called {one!r}{_core.did_you_mean(one, known)}")
            return one
        if column == "node" and (self._graph is not None or isinstance(one, str)):
            return self.graph.node(one)
        if isinstance(one, str) and column in _CLASSES:
            return self.graph.class_(one)
        if have.dtype.kind == "b":
            return flag(column, one)
        if have.dtype.kind == "f":
            return number(column, one)
        if isinstance(one, float) and one.is_integer():
            one = int(one)
        found = whole(column, one, least=-1 if column in self._optional else 0)
        classes = max(self._core.classes, 0 if self._graph is None else self._graph.classes)
        if column in _CLASSES and found >= classes:
            raise InputError(f"{column}={found}: there is no such class; there are {classes}, numbered from 0")
        return found

    def write(self, path: StrPath) -> None:
        """Writes JSON Lines, byte for byte what the command line writes (`docs/formats.md`), compressed to a `.gz`."""
        write_lines(path, self._core.lines(), instead="; to_pandas().to_csv(path) writes a table")

    def check(self, model: Model, *, threads: int = 0, progress: Progress = None) -> Checked:
        """Checks everything with a program that has none of the engines' code, as `nodeproof check` does.

        What needs a proof is accepted only if there is one: give `certify` or `radius` `proofs=True`. Nodes of which
        something is rejected come back with the reason; if there are none, all is right. A robust node without a proof is
        rejected even if it is right: of real values, and at limits of time and memory, there may be none (`certify` warns of
        them). The reason tells these nodes from those that claim too much. Where edges may be deleted, a node may have more
        than 20,000 sets of deletions, too many to go through: such nodes are in `not_checked`, and a warning counts them.

        >>> import nodeproof
        >>> graph = nodeproof.Graph([[0, 1], [1, 0]], [[1, 0], [1, 0]])
        >>> model = nodeproof.Model([[[2.0, 0.0], [0.0, 1.0]]])
        >>> nodeproof.certify(graph, model, global_budget=1, local_budget=1, proofs=True).check(model)
        {}
        """
        instance("model", model, Model, "Model.read('model.safetensors')")
        threads = whole("threads", threads)
        with observer(progress, "check") as tell:
            rejected, not_checked = self._core.check(self.graph._core, model._core, threads, tell)
        if not_checked:
            _log.warning(
                "%d of %d nodes were not checked: they have more than 20,000 sets of deletions to go through, and may be right",
                len(not_checked),
                len(self),
            )
        return Checked(rejected, not_checked)

    @classmethod
    def concat(cls, results: Iterable[Self]) -> Self:
        """Results of one question about different nodes, put together in this order, as `nodeproof merge` does with shards.

        Graph, model, budget and settings must be the same, and no node may come up twice.

        >>> import nodeproof
        >>> graph = nodeproof.Graph([[0, 1], [1, 0]], [[1, 0], [1, 0]])
        >>> model = nodeproof.Model([[[2.0, 0.0], [0.0, 1.0]]])
        >>> halves = [nodeproof.certify(graph, model, global_budget=1, nodes=[node]) for node in (1, 0)]
        >>> nodeproof.Certificates.concat(halves).nodes
        array([1, 0])
        """
        parts = listed("results", results, cls.__name__)
        for part in parts:
            instance(
                "results", part, cls, f"those that {'certify' if cls.__name__ == 'Certificates' else 'radius'} gives"
            )
        made: Any = cls._kind.joined([part._core for part in parts])
        return cls(made, next((part._graph for part in parts if part._graph is not None), None))

    @classmethod
    def _read(cls, path: str, graph: Graph | None) -> Any:
        made = cls._kind.read(path)
        if graph is not None:
            instance("graph", graph, Graph, "Graph.read('graph.npz')")
            check_graph(path, made.graph_fingerprint, graph)
        return cls(made, graph)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self._core.lines() == other._core.lines())

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self._core.lines(), self._graph)


def check_graph(path: str, fingerprint: str, graph: Graph) -> None:
    """Refuses the file at `path`, about the graph of this fingerprint, if that is another graph."""
    if fingerprint != graph.fingerprint:
        raise InputError(
            f"{path} is about another graph, or about this one read with other options (its fingerprint is "
            f"{fingerprint[:12]}…, the graph's {graph.fingerprint[:12]}…)"
        )


def write_lines(path: StrPath, lines: bytes, instead: str = "") -> None:
    """Writes results, compressed to a `.gz`; `instead` is what may be done in place of another ending."""
    path = path_text(path)
    inner = path.removesuffix(".gz")
    check_ending(inner, "results", "jsonl", "ndjson", "json", instead=instead)
    replace(path, gzip.compress(lines, mtime=0) if inner != path else lines)


def _unpickled(kind: type[_Results], lines: bytes, graph: Graph | None) -> _Results:
    return kind(kind._kind.of_lines(lines), graph)


class Summary(TypedDict):
    """What certificates come to."""

    nodes: int
    robust: int
    nonrobust: int
    undecided: int
    robust_share: float | None
    mean_margin: float | None
    accuracy: float | None
    without_proof: int | None


class RadiusSummary(TypedDict):
    """What radii come to; where they are not exact, the budgets that nodes are proven for count."""

    nodes: int
    exact: int | None
    mean: float | None
    median: float | None
    largest: int | None


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """The verdict on one node, with what is needed to check it."""

    node: int
    name: str
    #: The label, if the node has one.
    label: int | None
    #: The class that the model predicts on the graph as it is.
    predicted: int
    #: The class that is certified.
    class_: int
    #: `robust`, `nonrobust` or `undecided`.
    verdict: str
    #: The smallest of `margins`.
    margin: float
    #: Per class a lower bound on `logit of class_ − its logit` over all admissible sets of flips; NaN for `class_`.
    #: 0 also stands for a margin that is known to be positive, but not by how much; for a robust node it always does. −inf
    #: says that nothing is known: an attack on another class decided the node before, or numbers may have overflowed.
    margins: Floats
    #: Undecided only: the smallest margin is at least `lower`; −inf if nothing is known.
    lower: float | None
    #: Undecided only: the smallest margin is at most `upper`; `None` if nothing is known.
    upper: float | None
    #: Undecided only: what kept the node from being decided: the `engine` (a stronger one may decide it), `values`, `time`,
    #: `memory`, `overflow` of numbers, or the `arithmetic`.
    undecided_because: str | None
    #: Nonrobust only: flips that change the class.
    witness: Witness | None
    #: The engine that settled the node, or the last one that tried.
    engine: str
    #: Subproblems that branch and bound looked at.
    branches: int

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Certificate):
            return NotImplemented
        return all(_same(getattr(self, part.name), getattr(other, part.name)) for part in fields(self))

    def __hash__(self) -> int:
        return hash((self.node, self.class_, self.verdict, self.witness))

    def _repr_html_(self) -> str:
        return notebook.words(repr(self))

    def __repr__(self) -> str:
        flips = "" if self.witness is None else f" under {self.witness._counted()}"
        because = "" if self.undecided_because is None else f" because of {self.undecided_because}"
        verdict = f"{self.verdict}{flips}{because}"
        return (
            f"Certificate({_named(self.node, self.name)}: {verdict}, margin={self.margin:.6g}, engine={self.engine!r})"
        )


def _named(node: int, name: str) -> str:
    """A node as `horn (node 1)`, or `node 1`."""
    return name if name == f"node {node}" else f"{name} (node {node})"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal; NaN is equal to NaN here."""
    if isinstance(one, (float, np.ndarray)) and isinstance(other, (float, np.ndarray)):
        return np.array_equal(one, other, equal_nan=True)
    return bool(one == other)


class Certificates(_Results):
    """Verdicts on nodes of a graph under one budget: one row a node, in the order asked for.

    >>> import nodeproof
    >>> graph = nodeproof.Graph([[0, 1], [1, 0]], [[1, 0], [1, 0]])
    >>> model = nodeproof.Model([[[2.0, 0.0], [0.0, 1.0]]])
    >>> certificates = nodeproof.certify(graph, model, global_budget=1, local_budget=1)
    >>> certificates
    Certificates(nodes=2, robust=2, nonrobust=0, undecided=0)
    >>> certificates[0].verdict, round(certificates[0].margin, 6)
    ('robust', 1.0)
    """

    _kind = _core.Certificates
    _table = (
        "node", "label", "predicted", "class", "verdict", "margin", "worst_class", "flips", "witness_margin", "engine",
        "branches",
    )  # fmt: skip
    _optional = ("label", "flips")

    @classmethod
    def read(cls, path: StrPath, graph: Graph | None = None) -> Certificates:
        """Reads certificates of this package or of the command line, and checks that they are about `graph`.

        Without it nodes have no names, only ids.
        """
        read: Certificates = cls._read(existing(path), graph)
        return read

    @property
    def carried(self) -> int:
        """How many were carried over from an earlier run (`nodeproof.certify(since=…)`)."""
        return int(self._core.carried)

    @property
    def predicted(self) -> Integers:
        """The class that the model predicts for each node on the graph as it is."""
        return self._columns["predicted"]

    @property
    def classes(self) -> Integers:
        """The class that is certified for each node."""
        return self._columns["class"]

    @property
    def verdicts(self) -> Words:
        """`robust`, `nonrobust` or `undecided` for each node."""
        words: Words = frozen(VERDICTS[self._columns["verdict"]])
        return words

    @property
    def robust(self) -> Truths:
        """Which nodes are proven robust."""
        return self._are(0)

    @property
    def nonrobust(self) -> Truths:
        """For which nodes there is a witness."""
        return self._are(1)

    @property
    def undecided(self) -> Truths:
        """For which nodes neither could be shown."""
        return self._are(2)

    def _are(self, verdict: int) -> Truths:
        truths: Truths = frozen(self._columns["verdict"] == verdict)
        return truths

    @property
    def margin(self) -> Floats:
        """The smallest lower bound over all classes, for each node.

        For a robust node, 0 says that the margin is known to be positive, but not by how much. −inf says that nothing is
        known: an attack decided the node before, or numbers may have overflowed.

        A node goes from engine to engine only until one proves it robust, so that the bounds of robust nodes are not the best
        there are. For bounds that compare across nodes give `engine="fast"`.
        """
        return self._columns["margin"]

    @property
    def margins(self) -> Floats:
        """Lower bounds on the margins over each class, nodes × classes; NaN for the class that is certified.

        0 also stands for a margin that is known to be positive, but not by how much; for a robust node it always does. −inf
        says that nothing is known.
        """
        if self._margins is None:
            self._margins = frozen(self._core.margins())
        return self._margins

    @property
    def worst_class(self) -> Integers:
        """The class with the smallest lower bound, for each node."""
        return self._columns["worst_class"]

    @property
    def lower(self) -> Floats:
        """For undecided nodes: the smallest margin is at least this; −inf where nothing is known. NaN for others."""
        return self._columns["lower"]

    @property
    def upper(self) -> Floats:
        """For undecided nodes: the smallest margin is at most this; NaN where nothing is known. NaN for others."""
        return self._columns["upper"]

    @property
    def undecided_because(self) -> Words:
        """What kept undecided nodes from being decided: `engine`, `values`, `time`, `memory`, `overflow` or
        `arithmetic`. "" for others."""
        words: Words = frozen(OBSTACLES[self._columns["undecided_because"]])
        return words

    @property
    def witness_margin(self) -> Floats:
        """For nonrobust nodes the margin over the class that overtakes under the witness. NaN for others."""
        return self._columns["witness_margin"]

    @property
    def engines(self) -> Words:
        """The engine that settled each node, or the last one that tried."""
        words: Words = frozen(ENGINES[self._columns["engine"]])
        return words

    @property
    def branches(self) -> Integers:
        """Subproblems that branch and bound looked at, for each node."""
        return self._columns["branches"]

    @property
    def seconds(self) -> Floats:
        """Time spent on each node, where it was asked for; NaN otherwise."""
        return self._columns["seconds"]

    @property
    def global_budget(self) -> int:
        """The most flips in total."""
        return int(self._core.global_budget)

    @property
    def robust_share(self) -> float:
        """The share of nodes that are proven robust; NaN without nodes."""
        return float(self.robust.mean()) if len(self) else float("nan")

    def plot(self, *, title: str | None = None, width: float = 84, height: float = 58) -> Figure:
        """What these certificates show of all global budgets up to theirs: see `CertificatesByBudget.plot`."""
        return Figure(_core.plot_certificates([self._core], look(title, width, height)))

    @property
    def summary(self) -> Summary:
        """Counts of verdicts, `robust_share`, `mean_margin`, `accuracy` (where there are labels), and `without_proof`.

        There is a mean margin if `fast` alone looked at the nodes: the other engines stop once a verdict is known, and means of
        what they leave say nothing. Of a run with `proofs=True`, `without_proof` says how many robust nodes have none.
        """
        labelled = self.labels >= 0
        known = self.margin[np.isfinite(self.margin)] if (self.engines == "fast").all() else np.empty(0)
        return {
            "nodes": len(self),
            "robust": int(self.robust.sum()),
            "nonrobust": int(self.nonrobust.sum()),
            "undecided": int(self.undecided.sum()),
            "robust_share": float(self.robust.mean()) if len(self) else None,
            "mean_margin": float(known.mean()) if known.size else None,
            "accuracy": float((self.predicted == self.labels)[labelled].mean()) if labelled.any() else None,
            "without_proof": self._core.without_proof(),
        }

    def budget_in_words(self) -> str:
        """What the attacker may change."""
        return str(self._core.budget_in_words())

    def of(self, node: int | str) -> Certificate:
        """The certificate of a node, given by its id or name."""
        return self[self.place(node)]

    @overload
    def __getitem__(self, place: int) -> Certificate: ...
    @overload
    def __getitem__(self, place: slice | npt.NDArray[Any]) -> list[Certificate]: ...
    def __getitem__(self, place: int | slice | npt.NDArray[Any]) -> Certificate | list[Certificate]:
        return self._rows(place)  # type: ignore[no-any-return]

    def _row(self, place: int) -> Certificate:
        column = {name: values[place] for name, values in self._columns.items()}
        undecided = column["verdict"] == 2
        return Certificate(
            node=int(column["node"]),
            name=self._node_name(int(column["node"])),
            label=int(column["label"]) if column["label"] >= 0 else None,
            predicted=int(column["predicted"]),
            class_=int(column["class"]),
            verdict=str(VERDICTS[column["verdict"]]),
            margin=float(column["margin"]),
            margins=self.margins[place],
            lower=float(column["lower"]) if undecided else None,
            upper=float(column["upper"]) if undecided and not np.isnan(column["upper"]) else None,
            undecided_because=str(OBSTACLES[column["undecided_because"]]) or None,
            witness=self._witness(place),
            engine=str(ENGINES[column["engine"]]),
            branches=int(column["branches"]),
        )

    def __iter__(self) -> Iterator[Certificate]:
        return (self[place] for place in range(len(self)))

    def _words(self, column: str) -> npt.NDArray[Any]:
        words = {"verdict": VERDICTS, "engine": ENGINES, "undecided_because": OBSTACLES}
        return words[column][self._columns[column]] if column in words else self._columns[column]

    def __repr__(self) -> str:
        counts = self.summary
        return "Certificates({})".format(
            ", ".join(f"{name}={counts[name]}" for name in ("nodes", "robust", "nonrobust", "undecided"))
        )

    def _repr_html_(self) -> str:
        return notebook.certificates(self.summary, f"{self.budget_in_words()}; engine {self.engine}")


@dataclass(frozen=True, repr=False)
class Radius:
    """What is known of the radius of one node: the largest global budget that it withstands."""

    node: int
    name: str
    label: int | None
    #: The largest global budget under which it is proven robust; `None` if it is not even without flips.
    robust_up_to: int | None
    #: The smallest global budget under which a witness is known; `None` if there is none.
    nonrobust_from: int | None
    #: Whether no budget is left undecided.
    exact: bool
    #: Flips that change the class under `nonrobust_from`; where `exact`, no smaller set does.
    witness: Witness | None
    #: What budgets count.
    _change: str = field(default="flip", repr=False, compare=False)

    def __repr__(self) -> str:
        up_to = (
            "not robust" if self.robust_up_to is None else f"robust up to {_counted(self.robust_up_to, self._change)}"
        )
        beyond = "" if self.nonrobust_from is None else f", nonrobust from {self.nonrobust_from}"
        return f"Radius({_named(self.node, self.name)}: {up_to}{beyond}, exact={self.exact})"


class Radii(_Results):
    """How many flips predictions withstand: one row a node, in the order asked for."""

    _kind = _core.Radii
    _table = (
        "node", "label", "class", "robust_up_to", "nonrobust_from", "exact", "witness_margin", "verdicts", "branches",
    )  # fmt: skip
    _optional = ("label", "class", "robust_up_to", "nonrobust_from", "verdicts", "branches")

    @classmethod
    def read(cls, path: StrPath, graph: Graph | None = None) -> Radii:
        """Reads radii of this package or of the command line, and checks that they are about `graph`.

        Without it nodes have no names, only ids.
        """
        read: Radii = cls._read(existing(path), graph)
        return read

    @property
    def classes(self) -> Integers:
        """The class that is certified for each node; -1 in a scan, which does not say."""
        return self._columns["class"]

    @property
    def robust_up_to(self) -> Integers:
        """The largest global budget under which each node is proven robust; -1 if it is not even without flips."""
        return self._columns["robust_up_to"]

    @property
    def nonrobust_from(self) -> Integers:
        """The smallest global budget under which a witness is known for each node; -1 if there is none."""
        return self._columns["nonrobust_from"]

    @property
    def exact(self) -> Truths:
        """For which nodes no budget up to `max_budget` is left undecided."""
        return self._columns["exact"]

    @property
    def max_budget(self) -> int:
        """The largest global budget that was tried."""
        return int(self._core.max_budget)

    @property
    def seconds(self) -> Floats:
        """Time spent on each node, where it was asked for; NaN otherwise."""
        return self._columns["seconds"]

    def budget_in_words(self) -> str:
        """What the attacker may change at most."""
        return str(self._core.budget_in_words())

    @property
    def summary(self) -> RadiusSummary:
        """Number of nodes, how many radii are `exact` (`None` for a scan), and their `mean`, `median` and `largest`."""
        found: dict[str, Any] = json.loads(self._core.summary()) or {"nodes": 0, "exact": 0}
        return RadiusSummary(
            nodes=found["nodes"],
            exact=found.get("exact"),
            mean=found.get("mean"),
            median=found.get("median"),
            largest=found.get("largest"),
        )

    @property
    def mean(self) -> float:
        """The mean radius, a node that is not robust even without flips counting as 0; NaN without nodes."""
        mean = self.summary["mean"]
        return float("nan") if mean is None else mean

    def plot(
        self,
        what: str = "certificates",
        *,
        against: Radii | None = None,
        names: tuple[str, str] | None = None,
        title: str | None = None,
        width: float = 84,
        height: float = 58,
    ) -> Figure:
        """A figure, as `nodeproof plot` makes it.

        Args:
            what: "certificates", the share of nodes that is robust (from below) and nonrobust (from above) by global budget;
                "degree" or "purity", the radii against the degree of nodes, or the share of their neighbourhood that is
                predicted to be of their class.
            against: radii of another model at the same nodes, dashed over certificates.
            names: what the legend calls the two.
            title: a title.
            width, height: in millimetres.
        """
        shown = look(title, width, height)
        if what not in FIGURES:
            hint = _core.did_you_mean(str(what), FIGURES)
            raise InputError(f"there is no figure of {what!r}; there are {', '.join(FIGURES)}{hint}")
        if what != "certificates":
            if against is not None or names is not None:
                raise InputError(f"against and names are for certificates; leave them out for {what}")
            draw = _core.plot_degree if what == "degree" else _core.plot_purity
            return Figure(draw(self.graph._core, self._core, shown))
        if against is None:
            if names is not None:
                raise InputError("names are those of these radii and of others; give against=, too")
            return Figure(_core.plot_radii((None, self._core), None, shown))
        instance("against", against, Radii, "radius(graph, other)")
        if names is not None and (isinstance(names, str) or len(names) != 2):
            raise InputError(f"names={names!r} must be two, of these radii and of the others")
        if set(self.nodes.tolist()) != set(against.nodes.tolist()):
            raise InputError(
                "against has radii of other nodes than these, and shares of different nodes do not compare; filter(nodes=...) "
                "keeps those that both have"
            )
        own, other = ("these", "the others") if names is None else names
        return Figure(_core.plot_radii((str(own), self._core), (str(other), against._core), shown))

    def robust_share(self, global_budget: int) -> float:
        """The share of nodes that are proven robust under a global budget."""
        if not 0 <= whole("global_budget", global_budget) <= self.max_budget:
            raise InputError(f"global_budget={global_budget} was not tried; the largest that was is {self.max_budget}")
        return float((self.robust_up_to >= global_budget).mean()) if len(self) else float("nan")

    def of(self, node: int | str) -> Radius:
        """The radius of a node, given by its id or name."""
        return self[self.place(node)]

    @overload
    def __getitem__(self, place: int) -> Radius: ...
    @overload
    def __getitem__(self, place: slice | npt.NDArray[Any]) -> list[Radius]: ...
    def __getitem__(self, place: int | slice | npt.NDArray[Any]) -> Radius | list[Radius]:
        return self._rows(place)  # type: ignore[no-any-return]

    def _row(self, place: int) -> Radius:
        def known(column: str) -> int | None:
            value = int(self._columns[column][place])
            return value if value >= 0 else None

        node = int(self.nodes[place])
        return Radius(
            node=node,
            name=self._node_name(node),
            label=known("label"),
            robust_up_to=known("robust_up_to"),
            nonrobust_from=known("nonrobust_from"),
            exact=bool(self.exact[place]),
            witness=self._witness(place),
            _change=self._change,
        )

    @property
    def _change(self) -> str:
        """What budgets count."""
        return "deletion" if self._core.counts_edges else "flip"

    def __iter__(self) -> Iterator[Radius]:
        return (self[place] for place in range(len(self)))

    def _words(self, column: str) -> npt.NDArray[Any]:
        return self._columns[column]

    def __repr__(self) -> str:
        return f"Radii(nodes={len(self)}, exact={int(self.exact.sum())}, mean={self.mean:.2f}, max_budget={self.max_budget})"

    def _repr_html_(self) -> str:
        caption = f"{self._change}s that predictions withstand, tried up to {self.max_budget}; engine {self.engine}"
        return notebook.radii(self.robust_up_to, int(self.exact.sum()), caption)
