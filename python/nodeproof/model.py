"""Graph convolutional networks: layers of weights, and the propagation between them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._checks import instance, whole
from ._files import StrPath, existing, path_text
from ._matrices import check_numbers, compressed_rows, plain
from .errors import InputError
from .graph import Graph
from .split import node_ids
from .state_dict import layers_of
from .verification import Verification

if TYPE_CHECKING:
    import scipy.sparse

_log = logging.getLogger("nodeproof")
Floats = npt.NDArray[np.float64]


class Model:
    """A network: `Z⁰ = P X W⁰ + b⁰`, `Zⁱ = P relu(Zⁱ⁻¹) Wⁱ + bⁱ`; row t of the last one has the logits of node t.

    Args:
        weights: W⁰, W¹, …, each inputs × outputs (note that `torch.nn.Linear` stores outputs × inputs).
        biases: b⁰, b¹, …, or `None` for zeros.
        propagation: P ≥ 0, N × N: "symmetric-gcn" (`Ã_mn / √(d̃_m d̃_n)`, Ã = A + I), "row-normalised" (`Ã_mn / d̃_m`),
            or any matrix, sparse or dense, of values ≥ 0.

    >>> import numpy as np
    >>> model = Model([np.eye(3, 2)], [np.zeros(2)])
    >>> model
    Model(layers=[3, 2], propagation='symmetric-gcn')
    """

    __slots__ = ("_core", "metadata", "verification")

    #: What a file says about the model, such as how it was trained.
    metadata: dict[str, str]
    #: How the model was held against the module that it was imported from, if it was.
    verification: Verification | None

    def __init__(
        self,
        weights: Iterable[npt.ArrayLike],
        biases: Iterable[npt.ArrayLike | None] | None = None,
        propagation: Any = "symmetric-gcn",
    ) -> None:
        matrices = [_floats(f"W{i}", weight, 2) for i, weight in enumerate(_layers("weights", weights))]
        given = [None] * len(matrices) if biases is None else _layers("biases", biases)
        if len(given) != len(matrices):
            raise InputError(f"there are {len(matrices)} weights but {len(given)} biases; give one each, or None")
        vectors = [
            np.zeros(matrix.shape[1]) if bias is None else _floats(f"b{i}", bias, 1)
            for i, (matrix, bias) in enumerate(zip(matrices, given, strict=True))
        ]
        self._core = _core.Model(matrices, vectors, given_propagation(propagation))
        self.metadata = {}
        self.verification = None

    @classmethod
    def _of(cls, made: _core.Model, metadata: Mapping[str, str] | None = None) -> Model:
        model = cls.__new__(cls)
        model._core = made
        model.metadata = dict(metadata or {})
        model.verification = None
        return model

    @classmethod
    def read(cls, path: StrPath) -> Model:
        """Reads a `.safetensors` file, or an `.npz` with `W0`, `b0`, `W1`, `b1`, … (`docs/formats.md`)."""
        return cls._of(*_core.Model.read(existing(path)))

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], propagation: Any) -> Model:
        """A model of the tensors of a `torch` state dict: of `GCNConv` layers, or of linear ones, in their order.

        Weights called `….lin.weight` are outputs × inputs, as PyTorch Geometric stores them. Others are recognised by the
        length of their bias, and are an error where that does not decide. Nothing in a state dict says what the
        propagation is, nor that there are ReLUs between the layers, nor that there is nothing else: you do. If the module
        is at hand, use `nodeproof.from_pyg`, which looks at all of that.

        Args:
            state: `module.state_dict()`; every tensor must be a weight or a bias of a layer `P x W + b`.
            propagation: see `Model`; "symmetric-gcn" is that of `GCNConv` on a graph without self-loops.
        """
        return cls(*layers_of(state), propagation)

    def write(self, path: StrPath) -> None:
        """Writes `.safetensors`, with the propagation and the metadata."""
        self._core.write(path_text(path), self.metadata)

    @property
    def weights(self) -> list[Floats]:
        """W⁰, W¹, …, each inputs × outputs."""
        return self._core.weights

    @property
    def biases(self) -> list[Floats]:
        """b⁰, b¹, …"""
        return self._core.biases

    @property
    def propagation(self) -> str:
        """`symmetric-gcn`, `row-normalised` or `custom`."""
        return self._core.propagation

    @property
    def attributes(self) -> int:
        """Number of attributes it reads, D."""
        return self._core.attributes

    @property
    def classes(self) -> int:
        """Number of classes, K."""
        return self._core.classes

    @property
    def fingerprint(self) -> str:
        """SHA-256 of propagation, weights and biases: the one that files of certificates name."""
        return self._core.fingerprint

    def propagation_on(self, graph: Graph) -> scipy.sparse.csr_matrix:
        """P for `graph`, N × N."""
        import scipy.sparse

        return scipy.sparse.csr_matrix(self._core.propagation_on(graph._core), shape=(graph.nodes, graph.nodes))

    def logits(self, graph: Graph, *, threads: int = 0) -> Floats:
        """The logits of all nodes, N × K."""
        instance("graph", graph, Graph, "Graph.read('graph.npz')")
        return self._core.logits(graph._core, whole("threads", threads))

    def logits_under(self, graph: Graph, node: int | str, flips: Iterable[Sequence[int]]) -> Floats:
        """The K logits of one node after flips of (node, attribute); what follows in a flip, such as `to`, is not read."""
        pairs = [(graph.node(flip[0]), graph.attribute(flip[1])) for flip in flips]
        return self._core.logits_under(graph._core, graph.node(node), pairs)

    def predict(self, graph: Graph) -> npt.NDArray[np.int64]:
        """The predicted class of all nodes: the one with the largest logit, the first of several."""
        classes: npt.NDArray[np.int64] = np.argmax(self.logits(graph), axis=1)
        return classes

    def accuracy(self, graph: Graph, nodes: npt.ArrayLike | None = None) -> float | None:
        """The share of nodes with a label whose predicted class is their label; `None` if none has a label."""
        instance("graph", graph, Graph, "Graph.read('graph.npz')")
        of = np.arange(graph.nodes, dtype=np.uint32) if nodes is None else node_ids(nodes, graph.nodes)
        return _core.accuracy(graph._core, self._core, of)

    def to_pyg(self, dtype: Any = None) -> Any:
        """A PyTorch Geometric module of `GCNConv` layers with ReLUs between, `module(x, edge_index, edge_weight=None)`.

        For a propagation other than "symmetric-gcn" its layers do not normalise, and `edge_index` and `edge_weight` must be
        the propagation's own: `nodeproof.to_pyg(graph, model)` returns the module together with them.
        """
        from .pyg import module_of

        return module_of(self, dtype)

    def _check_made_for(self, graph: Graph) -> None:
        """Warns where the model comes from another graph, as far as it says."""
        if "edges" in self.metadata and self.metadata["edges"] != graph.edges_fingerprint:
            _log.warning(
                "the model was imported with a graph of other edges, and its propagation is that graph's, whatever edges this "
                "one has; import the module for this graph, too"
            )
        if "graph" in self.metadata and self.metadata["graph"] != graph.fingerprint:
            _log.warning(
                "the model was trained on another graph, or on this one read with other options (binarise, "
                "keep_self_loops, …)"
            )

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, Model) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        sizes = [self.attributes, *(len(bias) for bias in self.biases)]
        return f"Model(layers={sizes}, propagation={self.propagation!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        given = self._core.custom_propagation() or self.propagation
        return _unpickled, (self.weights, self.biases, given, self.metadata, self.verification)


def _unpickled(
    weights: list[Floats], biases: list[Floats], given: Any, metadata: dict[str, str], verification: Any
) -> Model:
    model = Model._of(_core.Model(weights, biases, given), metadata)
    model.verification = verification
    return model


def given_propagation(propagation: Any) -> Any:
    """A propagation as the compiled half takes it: a name, or values, column ids and row starts."""
    if isinstance(propagation, str):
        return propagation
    triple, shape = compressed_rows(propagation, "the propagation")
    if shape[0] != shape[1]:
        raise InputError(f"the propagation has shape {shape[0]} × {shape[1]}; it must be nodes × nodes")
    return triple


def _layers(name: str, given: Any) -> list[Any]:
    if not isinstance(given, Iterable):
        raise InputError(f"{name} must be a list, one entry a layer, not a {type(given).__name__}")
    return list(given)


def _floats(name: str, array: npt.ArrayLike, dimensions: int) -> Floats:
    given = plain(array, name)
    check_numbers(given.dtype, name)
    if given.ndim != dimensions:
        raise InputError(
            f"{name} has {given.ndim} dimensions; a weight is inputs × outputs, a bias has one entry an output"
        )
    return given.astype(np.float64, copy=False)
