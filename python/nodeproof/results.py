"""What certifying comes to: certificates and radii of many nodes, as arrays, tables and files."""

from __future__ import annotations

import gzip
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar, overload

import numpy as np
import numpy.typing as npt

from . import _core, notebook
from ._checks import instance, whole
from ._files import StrPath, existing, replace
from ._optional import optional
from ._progress import Progress, observer
from .errors import InputError
from .graph import Graph
from .model import Model
from .witness import Flip, Witness

VERDICTS = np.array(["robust", "nonrobust", "undecided"])
ENGINES = np.array(["fast", "tight", "complete"])
#: What keeps nodes from being decided; "" stands for nothing, and comes last.
OBSTACLES = np.array(["engine", "values", "time", "memory", "overflow", "arithmetic", ""])

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Words = npt.NDArray[np.str_]


class _Results(ABC):
    """What certificates and radii have in common: one row a node, in the order asked for."""

    _kind: ClassVar[type[_core.Certificates] | type[_core.Radii]]
    #: Columns of a table, in order: those of the CSV files of the command line.
    _table: ClassVar[tuple[str, ...]]
    #: Those of them in which -1 stands for nothing.
    _optional: ClassVar[tuple[str, ...]]

    def __init__(self, made: Any, graph: Graph) -> None:
        self._core = made
        #: The graph.
        self.graph = graph
        self._columns: dict[str, npt.NDArray[Any]] = made.columns()
        self._margins: Floats | None = None
        self._places: dict[int, int] | None = None

    def __len__(self) -> int:
        return len(self._core)

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
        return self._row(range(len(self))[place])

    def _witness(self, place: int) -> Witness | None:
        flips = self._core.witness(place)
        if flips is None:
            return None
        class_, margin = self._columns["witness_class"][place], self._columns["witness_margin"][place]
        named = (Flip(node, attribute, int(to) if to in (0, 1) else to) for node, attribute, to in flips)
        return Witness(tuple(named), int(class_), float(margin))

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
            if column == "node" and self.graph.node_names is not None:
                columns["name"] = [self.graph.node_names[node] for node in self.nodes]
        return pandas.DataFrame(columns)

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` with the columns of `to_pandas`."""
        pyarrow = optional("pyarrow", "arrow", "to_arrow()")
        columns: dict[str, Any] = {}
        for column in self._table:
            values = self._words(column)
            mask = values < 0 if column in self._optional else np.isnan(values) if values.dtype.kind == "f" else None
            columns[column] = pyarrow.array(values.tolist() if values.dtype.kind == "U" else values, mask=mask)
            if column == "node" and self.graph.node_names is not None:
                columns["name"] = pyarrow.array([self.graph.node_names[node] for node in self.nodes])
        return pyarrow.table(columns)

    def write(self, path: StrPath) -> None:
        """Writes JSON Lines, byte for byte what the command line writes (`docs/formats.md`), compressed to a `.gz`."""
        lines = self._core.lines()
        replace(path, gzip.compress(lines, mtime=0) if str(path).endswith(".gz") else lines)

    def check(self, model: Model, *, threads: int = 0, progress: Progress = None) -> dict[int, str]:
        """Checks everything with a program that has none of the engines' code, as `nodeproof check` does.

        What needs a proof is accepted only if there is one: give `certify` or `radius` `proofs=True`. Nodes of which
        something is rejected come back with the reason; if there are none, all is right.

        >>> import nodeproof
        >>> graph = nodeproof.Graph([[0, 1], [1, 0]], [[1, 0], [1, 0]])
        >>> model = nodeproof.Model([[[2.0, 0.0], [0.0, 1.0]]])
        >>> nodeproof.certify(graph, model, global_budget=1, local_budget=1, proofs=True).check(model)
        {}
        """
        instance("model", model, Model, "Model.read('model.safetensors')")
        threads = whole("threads", threads)
        with observer(progress, "check") as tell:
            rejected: dict[int, str] = self._core.check(self.graph._core, model._core, threads, tell)
        return rejected

    @classmethod
    def _read(cls, path: str, graph: Graph) -> Any:
        made = cls._kind.read(path)
        if made.graph_fingerprint != graph.fingerprint:
            raise InputError(
                f"{path} is about another graph, or about this one read with other options (its fingerprint is "
                f"{made.graph_fingerprint[:12]}…, the graph's {graph.fingerprint[:12]}…)"
            )
        return cls(made, graph)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self._core.lines() == other._core.lines())

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self._core.lines(), self.graph)


def _unpickled(kind: type[_Results], lines: bytes, graph: Graph) -> _Results:
    return kind(kind._kind.of_lines(lines), graph)


@dataclass(frozen=True, eq=False)
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
    def read(cls, path: StrPath, graph: Graph) -> Certificates:
        """Reads certificates of `graph`, of this package or of the command line."""
        read: Certificates = cls._read(existing(path), graph)
        return read

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
        words: Words = VERDICTS[self._columns["verdict"]]
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
        truths: Truths = self._columns["verdict"] == verdict
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
            self._margins = self._core.margins()
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
        words: Words = OBSTACLES[self._columns["undecided_because"]]
        return words

    @property
    def witness_margin(self) -> Floats:
        """For nonrobust nodes the margin over the class that overtakes under the witness. NaN for others."""
        return self._columns["witness_margin"]

    @property
    def engines(self) -> Words:
        """The engine that settled each node, or the last one that tried."""
        words: Words = ENGINES[self._columns["engine"]]
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
    def summary(self) -> dict[str, float | int | None]:
        """Counts of verdicts, `robust_share`, `mean_margin` (if `fast` alone looked at the nodes: the other engines stop once a
        verdict is known, and means of what they leave say nothing), and `accuracy` (where there are labels)."""
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
            name=self.graph.node_name(int(column["node"])),
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


@dataclass(frozen=True)
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


class Radii(_Results):
    """How many flips predictions withstand: one row a node, in the order asked for."""

    _kind = _core.Radii
    _table = (
        "node", "label", "class", "robust_up_to", "nonrobust_from", "exact", "witness_margin", "verdicts", "branches",
    )  # fmt: skip
    _optional = ("label", "class", "robust_up_to", "nonrobust_from", "verdicts", "branches")

    @classmethod
    def read(cls, path: StrPath, graph: Graph) -> Radii:
        """Reads radii of `graph`, of this package or of the command line."""
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

    def robust_share(self, global_budget: int) -> float:
        """The share of nodes that are proven robust under a global budget."""
        if not 0 <= global_budget <= self.max_budget:
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
            name=self.graph.node_name(node),
            label=known("label"),
            robust_up_to=known("robust_up_to"),
            nonrobust_from=known("nonrobust_from"),
            exact=bool(self.exact[place]),
            witness=self._witness(place),
        )

    def __iter__(self) -> Iterator[Radius]:
        return (self[place] for place in range(len(self)))

    def _words(self, column: str) -> npt.NDArray[Any]:
        return self._columns[column]

    def __repr__(self) -> str:
        mean = f"{self.robust_up_to.clip(0).mean():.2f}" if len(self) else "nan"
        return f"Radii(nodes={len(self)}, exact={int(self.exact.sum())}, mean={mean}, max_budget={self.max_budget})"

    def _repr_html_(self) -> str:
        caption = f"flips that predictions withstand, tried up to {self.max_budget}; engine {self.engine}"
        return notebook.radii(self.robust_up_to, int(self.exact.sum()), caption)
