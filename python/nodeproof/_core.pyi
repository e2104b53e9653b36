"""The compiled half: conversions, no mathematics. People use the package around it."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypedDict, final

import numpy as np
import numpy.typing as npt

__version__: str
__all__ = [
    "Budget",
    "Certificates",
    "Graph",
    "Model",
    "Radii",
    "Settings",
    "Split",
    "__version__",
    "accuracy",
    "certify",
    "explain",
    "flip_in_words",
    "radius",
    "report",
    "train",
    "write_file",
]

_Path = str | PathLike[str]
_Array = npt.NDArray[Any]
#: Values, column ids and row starts of a matrix in compressed row form.
_Triple = tuple[_Array, _Array, _Array]
_Names = tuple[list[str] | None, list[str] | None, list[str] | None]
_Observer = Callable[[int, int], object] | None
_Flips = list[tuple[int, int, int]]
#: A propagation: its name, a polynomial of one, or a matrix.
_Propagation = str | dict[str, Any] | _Triple
#: Source, propagation and weight of a term.
_Term = tuple[str | int, int, float | npt.NDArray[np.float64]]
#: Terms, bias and activation of a layer.
_Layer = tuple[list[_Term], npt.NDArray[np.float64], str | tuple[str, float]]

@final
class Graph:
    @staticmethod
    def bundled() -> Graph: ...
    @staticmethod
    def read(
        path: _Path,
        binarise: bool,
        normalise_rows: bool,
        largest_component: bool,
        keep_self_loops: bool,
        directed: bool,
    ) -> tuple[Graph, dict[str, int]]: ...
    @staticmethod
    def of_arrays(
        adjacency: _Triple,
        attributes: _Triple,
        attribute_count: int,
        labels: npt.NDArray[np.int64] | None,
        names: _Names,
        binarise: bool,
        normalise_rows: bool,
        largest_component: bool,
        keep_self_loops: bool,
        directed: bool | None,
    ) -> tuple[Graph, dict[str, int]]: ...
    def with_labels(self, labels: npt.NDArray[np.int64]) -> Graph: ...
    @property
    def kind(self) -> Literal["bits", "normalised-rows"]: ...
    @property
    def nodes(self) -> int: ...
    @property
    def edges(self) -> int: ...
    @property
    def attribute_count(self) -> int: ...
    @property
    def classes(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def edges_fingerprint(self) -> str: ...
    def adjacency(self) -> tuple[_Array, _Array]: ...
    def attributes(self) -> tuple[_Array, _Array]: ...
    def labels(self) -> npt.NDArray[np.int64] | None: ...
    def names(self) -> _Names: ...
    def write(self, path: _Path) -> None: ...

@final
class Split:
    @staticmethod
    def stratified(graph: Graph, train: float, validation: float, seed: int) -> Split: ...
    @staticmethod
    def of_nodes(
        nodes: int, train: npt.NDArray[np.uint32], validation: npt.NDArray[np.uint32], seed: int | None
    ) -> Split: ...
    @staticmethod
    def read(path: _Path, nodes: int) -> Split: ...
    def write(self, path: _Path) -> None: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def nodes(self) -> int: ...
    def part(self, name: str) -> npt.NDArray[np.uint32]: ...

@final
class Model:
    def __new__(
        cls,
        weights: Sequence[npt.NDArray[np.float64]],
        biases: Sequence[npt.NDArray[np.float64]],
        propagation: _Propagation,
        kind: str,
    ) -> Model: ...
    @staticmethod
    def of_terms(
        attributes: int, propagations: Sequence[_Propagation], layers: Sequence[_Layer], kind: str
    ) -> Model: ...
    @staticmethod
    def read(path: _Path) -> tuple[Model, dict[str, str]]: ...
    def write(self, path: _Path, metadata: Mapping[str, str]) -> None: ...
    def layers(self) -> list[_Layer]: ...
    def propagations(self) -> list[_Propagation]: ...
    @property
    def kind(self) -> Literal["bits", "normalised-rows"]: ...
    @property
    def is_gcn(self) -> bool: ...
    @property
    def propagation(self) -> str: ...
    @property
    def hidden_layers(self) -> int: ...
    @property
    def first_engine(self) -> Literal["fast", "tight", "complete"]: ...
    @property
    def attributes(self) -> int: ...
    @property
    def classes(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    def propagation_on(self, graph: Graph, place: int) -> _Triple: ...
    def logits(self, graph: Graph, threads: int) -> npt.NDArray[np.float64]: ...
    def logits_under(self, graph: Graph, node: int, flips: Sequence[tuple[int, int]]) -> npt.NDArray[np.float64]: ...

@final
class Budget:
    def __new__(
        cls,
        graph: Graph,
        global_budget: int,
        local_budget: str,
        direction: str,
        local_at: Mapping[int, int],
        protected_nodes: Sequence[int],
        protected_attributes: Sequence[int],
        capped: bool,
    ) -> Budget: ...
    def in_words(self, graph: Graph) -> str: ...

@final
class Settings:
    def __new__(
        cls,
        budget: Budget,
        engine: str,
        target_class: str,
        time_limits: tuple[float | None, float | None],
        memory_limit: str,
        threads: int,
    ) -> Settings: ...
    def check(self, graph: Graph, model: Model, nodes: npt.NDArray[np.uint32], scan: bool) -> None: ...

@final
class Certificates:
    @staticmethod
    def of_records(
        graph: Graph, model: Model, settings: Settings, nodes: int, timings: bool, chunks: Sequence[bytes]
    ) -> Certificates: ...
    def __len__(self) -> int: ...
    def columns(self) -> dict[str, _Array]: ...
    def margins(self) -> npt.NDArray[np.float64]: ...
    def witness(self, place: int) -> _Flips | None: ...
    @property
    def engine(self) -> str: ...
    @property
    def graph_fingerprint(self) -> str: ...
    @property
    def model_fingerprint(self) -> str: ...
    @property
    def global_budget(self) -> int: ...
    def budget_in_words(self) -> str: ...
    def lines(self) -> bytes: ...
    @staticmethod
    def of_lines(lines: bytes) -> Certificates: ...
    @staticmethod
    def read(path: _Path) -> Certificates: ...
    def records(self) -> bytes: ...

@final
class Radii:
    @staticmethod
    def of_records(
        graph: Graph, model: Model, settings: Settings, nodes: int, scan: bool, timings: bool, chunks: Sequence[bytes]
    ) -> Radii: ...
    def __len__(self) -> int: ...
    def columns(self) -> dict[str, _Array]: ...
    def witness(self, place: int) -> _Flips | None: ...
    @property
    def engine(self) -> str: ...
    @property
    def scan(self) -> bool: ...
    @property
    def graph_fingerprint(self) -> str: ...
    @property
    def model_fingerprint(self) -> str: ...
    @property
    def max_budget(self) -> int: ...
    def budget_in_words(self) -> str: ...
    def lines(self) -> bytes: ...
    @staticmethod
    def of_lines(lines: bytes) -> Radii: ...
    @staticmethod
    def read(path: _Path) -> Radii: ...
    def records(self) -> bytes: ...

class _Checkpoint(TypedDict):
    path: _Path
    every: int
    resume: bool

def certify(
    graph: Graph,
    model: Model,
    settings: Settings,
    nodes: npt.NDArray[np.uint32],
    timings: bool,
    progress: _Observer,
) -> Certificates: ...
def radius(
    graph: Graph,
    model: Model,
    settings: Settings,
    nodes: npt.NDArray[np.uint32],
    scan: bool,
    timings: bool,
    progress: _Observer,
) -> Radii: ...
def explain(
    graph: Graph, model: Model, settings: Settings, node: int, radius: bool
) -> tuple[Certificates, Radii | None, npt.NDArray[np.float64], str]: ...
def flip_in_words(graph: Graph, flip: tuple[int, int, int], target: int | None) -> str: ...
def train(
    graph: Graph,
    split: Split,
    method: str,
    budget: Budget,
    options: Mapping[str, Any],
    threads: int,
    checkpoint: _Checkpoint | None,
    progress: _Observer,
) -> tuple[Model, list[str], dict[str, str], int]: ...
def accuracy(graph: Graph, model: Model, nodes: npt.NDArray[np.uint32]) -> float | None: ...
def report(
    graph: Graph,
    graph_name: str,
    title: str | None,
    split: Split | None,
    models: Sequence[tuple[str, Certificates | None, Radii | None]],
) -> str: ...
def write_file(path: _Path, content: bytes) -> None: ...
