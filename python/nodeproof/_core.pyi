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
    "Earlier",
    "Figure",
    "Graph",
    "Model",
    "Radii",
    "RobustLoss",
    "Settings",
    "Split",
    "__version__",
    "accuracy",
    "certify",
    "certify_budgets",
    "certify_shards",
    "check_destination",
    "check_local_budget",
    "did_you_mean",
    "explain",
    "flip_in_words",
    "plot_certificates",
    "plot_degree",
    "plot_purity",
    "plot_radii",
    "plot_training",
    "radius",
    "radius_shards",
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
#: Node, attribute and, if it is given, the new value.
_GivenFlips = Sequence[tuple[int, int, float | None]]
#: Title, width and height in millimetres.
_Look = tuple[str | None, float, float]
_Flips = list[tuple[int, int, float]]
#: A propagation: its name, a polynomial of one, or a matrix.
_Propagation = str | dict[str, Any] | _Triple
#: Source, propagation and weight of a term.
_Term = tuple[str | int, int, float | npt.NDArray[np.float64]]
#: Terms, bias and activation of a layer.
_Layer = tuple[list[_Term], npt.NDArray[np.float64], str | tuple[str, float]]
#: Weights and biases in the order of a model's layers, without scalars: the weights of a layer's terms, then its bias.
_Tensors = Sequence[npt.NDArray[np.float64]]
#: The loss, the smallest margin of each node, and the gradient in the shapes of the model's tensors.
_RobustValue = tuple[float, npt.NDArray[np.float64], list[npt.NDArray[np.float64]] | None]

@final
class Graph:
    @staticmethod
    def bundled() -> Graph: ...
    @staticmethod
    def read(
        path: _Path,
        binarise: bool,
        normalise_rows: bool,
        real_values: bool,
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
    def with_binarised(self, values: int) -> Graph: ...
    @property
    def binarised(self) -> int: ...
    def with_values(self, values: npt.NDArray[np.float64]) -> Graph: ...
    def with_ranges(self, low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> Graph: ...
    def with_flips(self, flips: _GivenFlips) -> Graph: ...
    def largest_component(self) -> Graph: ...
    def values(self) -> npt.NDArray[np.float64] | None: ...
    def ranges(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None: ...
    def with_labels(self, labels: npt.NDArray[np.int64]) -> Graph: ...
    @property
    def kind(self) -> Literal["bits", "normalised-rows", "real-values"]: ...
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
    def fingerprint_without_ranges(self) -> str: ...
    @property
    def edges_fingerprint(self) -> str: ...
    def adjacency(self) -> tuple[_Array, _Array]: ...
    def attributes(self) -> tuple[_Array, _Array]: ...
    def labels(self) -> npt.NDArray[np.int64] | None: ...
    def names(self) -> _Names: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def of_bytes(bytes: bytes) -> Graph: ...
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
    def kind(self) -> Literal["bits", "normalised-rows", "real-values"]: ...
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
    def logits_under(self, graph: Graph, node: int, flips: _GivenFlips) -> npt.NDArray[np.float64]: ...

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
        asked: tuple[float, str, bool],
    ) -> Settings: ...
    def check(self, graph: Graph, model: Model, nodes: npt.NDArray[np.uint32], scan: bool) -> None: ...

@final
class Certificates:
    @staticmethod
    def of_shards(
        graph: Graph, model: Model, settings: Settings, nodes: int, timings: bool, files: Sequence[bytes]
    ) -> Certificates: ...
    def __len__(self) -> int: ...
    def columns(self) -> dict[str, _Array]: ...
    def margins(self) -> npt.NDArray[np.float64]: ...
    def without_proof(self) -> int | None: ...
    def witness(self, place: int) -> _Flips | None: ...
    def take(self, places: Sequence[int]) -> Certificates: ...
    def check(self, graph: Graph, model: Model, threads: int, progress: _Observer) -> dict[int, str]: ...
    @property
    def engine(self) -> str: ...
    @property
    def graph_fingerprint(self) -> str: ...
    @property
    def binarised(self) -> int: ...
    @property
    def carried(self) -> int: ...
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

@final
class Earlier:
    @staticmethod
    def read(path: _Path, graph: Graph) -> Earlier: ...
    @staticmethod
    def of(certificates: Certificates, graph: Graph) -> Earlier: ...

@final
class Radii:
    @staticmethod
    def of_shards(
        graph: Graph, model: Model, settings: Settings, nodes: int, scan: bool, timings: bool, files: Sequence[bytes]
    ) -> Radii: ...
    def __len__(self) -> int: ...
    def columns(self) -> dict[str, _Array]: ...
    def witness(self, place: int) -> _Flips | None: ...
    def take(self, places: Sequence[int]) -> Radii: ...
    def summary(self) -> str: ...
    def check(self, graph: Graph, model: Model, threads: int, progress: _Observer) -> dict[int, str]: ...
    @property
    def engine(self) -> str: ...
    @property
    def scan(self) -> bool: ...
    @property
    def graph_fingerprint(self) -> str: ...
    @property
    def binarised(self) -> int: ...
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

@final
class Figure:
    def svg(self) -> str: ...
    def png(self, dots_per_inch: float) -> bytes: ...

@final
class RobustLoss:
    def __new__(
        cls, graph: Graph, model: Model, budget: Budget, worst_case: str | None, threads: int
    ) -> RobustLoss: ...
    @property
    def worst_case(self) -> Literal["dual", "first-order"]: ...
    def model(self, tensors: _Tensors) -> Model: ...
    def hinge(
        self,
        tensors: _Tensors,
        nodes: npt.NDArray[np.uint32],
        classes: npt.NDArray[np.uint32] | None,
        margin: float,
        saturation: float | None,
        with_gradient: bool,
    ) -> _RobustValue: ...
    def cross_entropy(
        self,
        tensors: _Tensors,
        nodes: npt.NDArray[np.uint32],
        classes: npt.NDArray[np.uint32] | None,
        with_gradient: bool,
    ) -> _RobustValue: ...
    def margins(
        self, tensors: _Tensors, nodes: npt.NDArray[np.uint32], classes: npt.NDArray[np.uint32] | None
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32]]: ...
    def margins_gradient(
        self,
        tensors: _Tensors,
        nodes: npt.NDArray[np.uint32],
        classes: npt.NDArray[np.uint32],
        weights: npt.NDArray[np.float64],
    ) -> list[npt.NDArray[np.float64]]: ...

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
    since: Earlier | None,
    progress: _Observer,
) -> Certificates: ...
def certify_budgets(
    graph: Graph,
    model: Model,
    settings: Settings,
    budgets: Sequence[int],
    nodes: npt.NDArray[np.uint32],
    timings: bool,
    progress: _Observer,
) -> list[Certificates]: ...
def radius(
    graph: Graph,
    model: Model,
    settings: Settings,
    nodes: npt.NDArray[np.uint32],
    scan: bool,
    timings: bool,
    progress: _Observer,
) -> Radii: ...
def certify_shards(
    graph: Graph,
    model: Model,
    settings: Settings,
    nodes: npt.NDArray[np.uint32],
    files: Sequence[_Path],
    next: Callable[[int | None], int | None],
    timings: bool,
    progress: _Observer,
) -> None: ...
def radius_shards(
    graph: Graph,
    model: Model,
    settings: Settings,
    nodes: npt.NDArray[np.uint32],
    files: Sequence[_Path],
    next: Callable[[int | None], int | None],
    scan: bool,
    timings: bool,
    progress: _Observer,
) -> None: ...
def explain(
    graph: Graph, model: Model, settings: Settings, node: int, radius: bool
) -> tuple[Certificates, Radii | None, npt.NDArray[np.float64], str]: ...
def flip_in_words(graph: Graph, flip: tuple[int, int, float], target: int | None) -> str: ...
def train(
    graph: Graph,
    split: Split,
    method: str,
    budget: Budget | None,
    options: Mapping[str, Any],
    log_margins: int,
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
def plot_certificates(under: Sequence[Certificates], look: _Look) -> Figure: ...
def plot_radii(radii: tuple[str | None, Radii], against: tuple[str, Radii] | None, look: _Look) -> Figure: ...
def plot_degree(graph: Graph, radii: Radii, look: _Look) -> Figure: ...
def plot_purity(graph: Graph, radii: Radii, look: _Look) -> Figure: ...
def plot_training(name: str, log: Sequence[str], aims: tuple[float, float] | None, look: _Look) -> Figure: ...
def did_you_mean(name: str, known: Sequence[str]) -> str: ...
def check_local_budget(text: str) -> None: ...
def check_destination(path: _Path) -> None: ...
def write_file(path: _Path, content: bytes) -> None: ...
