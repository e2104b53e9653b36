"""Graph neural networks: layers of terms, and the propagations between them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _core, notebook
from ._checks import finite, instance, kind_of, text, whole
from ._files import StrPath, destination, existing
from ._matrices import check_numbers, compressed_rows, plain
from .errors import InputError
from .graph import Graph, flip_ids
from .nodes import chosen
from .split import Split
from .state_dict import layers_of
from .verification import Verification
from .witness import Witness

if TYPE_CHECKING:
    import scipy.sparse

_log = logging.getLogger("nodeproof")
Floats = npt.NDArray[np.float64]


class Term(NamedTuple):
    """One summand `P h W` of a layer."""

    #: Where h comes from: "attributes", "ones" (the constant 1, nodes × 1), or an earlier layer, by its place.
    source: str | int
    #: Which of the model's propagations P is.
    propagation: int
    #: W, inputs × units, or a number for so many times the identity.
    weight: Floats | float

    def __repr__(self) -> str:
        weight = f"<{' × '.join(map(str, np.shape(self.weight)))}>" if np.ndim(self.weight) else f"{self.weight:g}"
        return f"Term(source={self.source!r}, propagation={self.propagation}, weight={weight})"


class Layer(NamedTuple):
    """One layer: `Z = Σ_k P_k h_k W_k + b` over its terms, and an activation."""

    terms: list[Term]
    #: b, one entry a unit.
    bias: Floats
    #: "none", "relu", or ("leaky-relu", slope).
    activation: str | tuple[str, float]

    @property
    def slope(self) -> float:
        """What the activation multiplies values below 0 by."""
        if isinstance(self.activation, tuple):
            return self.activation[1]
        return 0.0 if self.activation == "relu" else 1.0

    def __repr__(self) -> str:
        return f"Layer(terms={self.terms}, bias=<{len(self.bias)}>, activation={self.activation!r})"


class Model:
    """A network of layers of terms, `Zⁱ = Σ_k P_k h_k W_k + bⁱ`; row t of the last one has the logits of node t.

    `Model(weights, biases, propagation)` is a graph convolutional network, `Z⁰ = P X W⁰ + b⁰`, `Zⁱ = P relu(Zⁱ⁻¹) Wⁱ + bⁱ`.
    Others (GraphSAGE, GIN, APPNP, …) come from `nodeproof.from_pyg`, `Model.of_layers` and files.

    Args:
        weights: W⁰, W¹, …, each inputs × outputs (note that `torch.nn.Linear` stores outputs × inputs).
        biases: b⁰, b¹, …, or `None` for zeros.
        propagation: P, N × N: "symmetric-gcn" (`Ã_mn / √(d̃_m d̃_n)`, Ã = A + I), "row-normalised" (`Ã_mn / d̃_m`),
            "row-mean" (`A_mn / d_m`), "adjacency" (A), "identity", a polynomial of one of them, such as
            `{"polynomial": [0, 0, 1], "of": "symmetric-gcn"}` for its square, or any matrix, sparse or dense.
        kind: what it reads of the attributes, see `Graph.kind`: that of the graphs it can be certified on.

    >>> import numpy as np
    >>> model = Model([np.eye(3, 2)], [np.zeros(2)])
    >>> model
    Model(layers=[3, 2], propagation='symmetric-gcn')
    """

    __slots__ = {
        "_core": "The model of the compiled half.",
        "metadata": "What a file says about the model, such as how it was trained.",
        "verification": "How the model was held against the module that it was imported from, if it was; see `Verification`.",
    }

    metadata: dict[str, str]
    verification: Verification | None

    def __init__(
        self,
        weights: Iterable[npt.ArrayLike],
        biases: Iterable[npt.ArrayLike | None] | None = None,
        propagation: Any = "symmetric-gcn",
        *,
        kind: str = "bits",
    ) -> None:
        matrices = [_floats(f"W{i}", weight, 2) for i, weight in enumerate(_layers("weights", weights))]
        given = [None] * len(matrices) if biases is None else _layers("biases", biases)
        if len(given) != len(matrices):
            raise InputError(f"there are {len(matrices)} weights but {len(given)} biases; give one each, or None")
        vectors = [
            np.zeros(matrix.shape[1]) if bias is None else _floats(f"b{i}", bias, 1)
            for i, (matrix, bias) in enumerate(zip(matrices, given, strict=True))
        ]
        self._core = _core.Model(matrices, vectors, given_propagation(propagation), text("kind", kind))
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
    def of_layers(
        cls, attributes: int, propagations: Iterable[Any], layers: Iterable[Layer], *, kind: str = "bits"
    ) -> Model:
        """A network of layers of terms, `Zⁱ = Σ_k P_k h_k W_k + bⁱ`.

        Args:
            attributes: number of attributes that it reads, D.
            propagations: those that terms name by their place; each as for `Model`.
            layers: first to last; the last has no activation, and its units are the classes.
            kind: as for `Model`.

        GraphSAGE without hidden layers:

        >>> terms = [Term("attributes", 0, np.eye(3, 2)), Term("attributes", 1, np.ones((3, 2)))]
        >>> Model.of_layers(3, ["row-mean", "identity"], [Layer(terms, np.zeros(2), "none")])
        Model: 3 attributes, 2 classes
        layer  units  activation  sum of
        0      2      none        row-mean · attributes · W, attributes · W
        """
        given = [given_propagation(propagation) for propagation in propagations]
        parts = [_given_layer(place, layer) for place, layer in enumerate(_layers("layers", layers))]
        return cls._of(_core.Model.of_terms(whole("attributes", attributes), given, parts, text("kind", kind)))

    @classmethod
    def read(cls, path: StrPath) -> Model:
        """Reads a `.safetensors` file, or an `.npz` with `W0`, `b0`, `W1`, `b1`, … (`docs/formats.md`)."""
        return cls._of(*_core.Model.read(existing(path)))

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], propagation: Any, *, kind: str = "bits") -> Model:
        """A model of the tensors of a `torch` state dict: of `GCNConv` layers, or of linear ones, in their order.

        Weights called `….lin.weight` are outputs × inputs, as PyTorch Geometric stores them. Those of linear layers are
        recognised by the length of their bias, and are an error where that does not decide. Nothing in a state dict says what
        the propagation is, nor that there are ReLUs between the layers, nor that there is nothing else: you do. If the module
        is at hand, use `nodeproof.from_pyg`, which looks at all of that.

        Args:
            state: `module.state_dict()`; every tensor must be a weight or a bias of a layer `P x W + b`.
            propagation: see `Model`; "symmetric-gcn" is that of `GCNConv` on a graph without self-loops, "row-mean" that of
                `SAGEConv`, and "identity" that of linear layers, which are refused with any other.
            kind: as for `Model`.
        """
        return cls(*layers_of(state, propagation), propagation, kind=kind)

    def write(self, path: StrPath) -> None:
        """Writes `.safetensors`, with the propagation and the metadata."""
        self._core.write(destination(path, "models", "safetensors"), self.metadata)

    @property
    def layers(self) -> list[Layer]:
        """The layers, first to last."""
        return [
            Layer([Term(*term) for term in terms], bias, activation) for terms, bias, activation in self._core.layers()
        ]

    @property
    def propagations(self) -> list[Any]:
        """The propagations that terms name by their place: names, polynomials and matrices, as `Model.of_layers` takes them."""
        return [_shown_propagation(propagation) for propagation in self._core.propagations()]

    @property
    def kind(self) -> str:
        """What it reads of the attributes, see `Graph.kind`."""
        return self._core.kind

    @property
    def is_gcn(self) -> bool:
        """Whether it is one that `Model(weights, biases, propagation)` makes."""
        return self._core.is_gcn

    @property
    def weights(self) -> list[Floats]:
        """W⁰, W¹, …, each inputs × outputs, of a graph convolutional network."""
        self._check_gcn("weights")
        return [layer.terms[0].weight for layer in self.layers]  # type: ignore[misc]

    @property
    def biases(self) -> list[Floats]:
        """b⁰, b¹, … of a graph convolutional network."""
        self._check_gcn("biases")
        return [layer.bias for layer in self.layers]

    def _check_gcn(self, what: str) -> None:
        if not self.is_gcn:
            raise InputError(
                f"the model has no list of {what}, as its layers are sums of terms, not those of a plain graph convolutional "
                "network; model.layers has all of them"
            )

    @property
    def propagation(self) -> str:
        """The name of its propagation, `custom` or `polynomial`; `several` if it has more than one."""
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
        """SHA-256 of propagations, weights and biases: the one that files of certificates name."""
        return self._core.fingerprint

    def propagation_on(self, graph: Graph, place: int = 0) -> scipy.sparse.csr_matrix:
        """P for `graph`, N × N: the propagation at this place of `propagations`."""
        import scipy.sparse

        instance("graph", graph, Graph, "Graph.read('graph.npz')")
        place = whole("place", place, 0, len(self._core.propagations()) - 1)
        return scipy.sparse.csr_matrix(self._core.propagation_on(graph._core, place), shape=(graph.nodes, graph.nodes))

    def logits(self, graph: Graph, *, threads: int = 0) -> Floats:
        """The logits of all nodes, N × K."""
        instance("graph", graph, Graph, "Graph.read('graph.npz')")
        return self._core.logits(graph._core, whole("threads", threads))

    def logits_under(self, graph: Graph, node: int | str, flips: Iterable[Sequence[Any]]) -> Floats:
        """The K logits of one node under flips: a `Witness`, whose edges are deleted, or what `Graph.with_flips` takes."""
        instance("graph", graph, Graph, "Graph.read('graph.npz')")
        if isinstance(flips, Witness) and flips.edges:
            graph = graph.without_edges(flips.edges)
        return self._core.logits_under(graph._core, graph.node(node), [flip_ids(graph, flip) for flip in flips])

    def predict(self, graph: Graph) -> npt.NDArray[np.int64]:
        """The predicted class of all nodes: the one with the largest logit, the first of several."""
        classes: npt.NDArray[np.int64] = np.argmax(self.logits(graph), axis=1)
        return classes

    def predict_proba(self, graph: Graph) -> Floats:
        """The softmax of the logits of all nodes, N × K."""
        logits = self.logits(graph)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares: Floats = powers / powers.sum(axis=1, keepdims=True)
        return shares

    def accuracy(
        self, graph: Graph, nodes: str | npt.ArrayLike | None = None, *, split: Split | None = None
    ) -> float | None:
        """The share of nodes with a label whose predicted class is their label; `None` if none has a label.

        `nodes` are given as in `certify`, by default all.
        """
        instance("graph", graph, Graph, "Graph.read('graph.npz')")
        of = chosen(graph, "all" if nodes is None else nodes, split)
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
        if "graph" in self.metadata and self.metadata["graph"] != graph._core.fingerprint_without_ranges:
            _log.warning(
                "the model was trained on another graph, or on this one read with other options (binarise, "
                "keep_self_loops, …)"
            )

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, Model) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        if self.is_gcn:
            sizes = [self.attributes, *(len(bias) for bias in self.biases)]
            kind = "" if self.kind == "bits" else f", kind={self.kind!r}"
            return f"Model(layers={sizes}, propagation={self.propagation!r}{kind})"
        return _table(self)

    def _repr_html_(self) -> str:
        return notebook.words(_table(self))

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.attributes, self._core.propagations(), self._core.layers())
        return _unpickled, (*parts, self.metadata, self.verification, self.kind)


def _unpickled(
    attributes: int,
    propagations: Any,
    layers: Any,
    metadata: dict[str, str],
    verification: Any,
    kind: str = "bits",
) -> Model:
    model = Model._of(_core.Model.of_terms(attributes, propagations, layers, kind), metadata)
    model.verification = verification
    return model


def _table(model: Model) -> str:
    """One line a layer: its units, its activation, and its terms."""
    names = [_propagation_name(propagation) for propagation in model._core.propagations()]
    rows = [("layer", "units", "activation", "sum of")]
    for place, (terms, bias, activation) in enumerate(model.layers):
        shown = activation if isinstance(activation, str) else "{} {:g}".format(*activation)
        rows.append((str(place), str(len(bias)), shown, ", ".join(_term_in_words(term, names) for term in terms)))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]) for row in rows
    ]
    kind = "" if model.kind == "bits" else f" ({model.kind.replace('-', ' ')})"
    return "\n".join([f"Model: {model.attributes} attributes{kind}, {model.classes} classes", *lines])


def _term_in_words(term: Term, names: list[str]) -> str:
    """A term as `P · h · W`; the identity is left out."""
    source = {"attributes": "attributes", "ones": "1"}.get(str(term.source), f"layer {term.source}")
    factors = [name for name in [names[term.propagation]] if name != "identity"] + [source]
    if not isinstance(term.weight, float):
        return " · ".join([*factors, "W"])
    return " · ".join(factors if term.weight == 1 else [f"{term.weight:g}", *factors])


def _propagation_name(given: Any) -> str:
    """The name of a propagation; of a polynomial its terms."""
    if isinstance(given, str):
        return given
    if not isinstance(given, dict):
        return "custom"
    of, powers = _propagation_name(given["of"]), []
    for power, coefficient in enumerate(given["polynomial"]):
        base = "identity" if power == 0 else of if power == 1 else f"{of}^{power}"
        if coefficient:
            powers.append(base if coefficient == 1 else f"{coefficient:g} {base}")
    return powers[0] if len(powers) == 1 else f"({' + '.join(powers) or 0})"


def _given_layer(place: int, layer: Any) -> tuple[list[Any], Floats, Any]:
    """A layer as the compiled half takes it."""
    try:
        terms, bias, activation = layer
        parts = [(source, propagation, weight) for source, propagation, weight in terms]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"layer {place} must be Layer([Term(source, propagation, weight), …], bias, activation): {error}"
        ) from error
    made = []
    for number, (source, propagation, weight) in enumerate(parts):
        where = f"term {number} of layer {place}"
        if isinstance(source, str) and source not in ("attributes", "ones"):
            raise InputError(f'{where} reads {source!r}; give "attributes", "ones", or the place of an earlier layer')
        if not isinstance(source, str):
            source = whole(f"source of {where}", source)
        is_number = np.ndim(weight) == 0
        made.append(
            (
                source,
                whole(f"propagation of {where}", propagation),
                finite(f"weight of {where}", weight) if is_number else _floats(f"weight of {where}", weight, 2),
            )
        )
    return made, _floats(f"b{place}", bias, 1), _given_activation(place, activation)


def _given_activation(place: int, activation: Any) -> str | tuple[str, float]:
    """An activation as the compiled half takes it."""
    if isinstance(activation, str):
        return activation
    try:
        name, slope = activation
        return str(name), finite(f"slope of layer {place}", slope)
    except (TypeError, ValueError) as error:
        raise InputError(
            f'the activation of layer {place} is {activation!r}; give "none", "relu" or ("leaky-relu", slope)'
        ) from error


def _shown_propagation(given: Any) -> Any:
    """A propagation as `given_propagation` takes it."""
    import scipy.sparse

    if isinstance(given, dict):
        return given | {"of": _shown_propagation(given["of"])}
    return given if isinstance(given, str) else scipy.sparse.csr_matrix(given, shape=(len(given[2]) - 1,) * 2)


def given_propagation(propagation: Any) -> Any:
    """A propagation as the compiled half takes it: a name, a polynomial, or values, column ids and row starts."""
    if isinstance(propagation, str):
        return propagation
    if isinstance(propagation, Mapping):
        if set(propagation) != {"polynomial", "of"}:
            raise InputError('a polynomial of a propagation is {"polynomial": [c₀, c₁, …], "of": propagation}')
        coefficients = [
            finite("coefficient", coefficient) for coefficient in _layers("polynomial", propagation["polynomial"])
        ]
        return {"polynomial": coefficients, "of": given_propagation(propagation["of"])}
    triple, shape = compressed_rows(propagation, "the propagation")
    if shape[0] != shape[1]:
        raise InputError(f"the propagation has shape {shape[0]} × {shape[1]}; it must be nodes × nodes")
    return triple


def _layers(name: str, given: Any) -> list[Any]:
    if not isinstance(given, Iterable):
        raise InputError(f"{name} must be a list, one entry a layer, not {kind_of(given)}")
    return list(given)


def _floats(name: str, array: npt.ArrayLike, dimensions: int) -> Floats:
    given = plain(array, name)
    check_numbers(given.dtype, name)
    if given.ndim != dimensions:
        raise InputError(
            f"{name} has {given.ndim} dimensions; a weight is inputs × outputs, a bias has one entry an output"
        )
    return given.astype(np.float64, copy=False)
