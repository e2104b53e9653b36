"""A module becomes a model, and is held against it."""

from __future__ import annotations

import dataclasses
import logging
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._checks import finite, kind_of
from .._optional import pytorch
from .._progress import Observer, Progress, observer
from ..errors import InputError, NotRunnableError, PrecisionError, VerificationError
from ..graph import Graph
from ..model import Model
from ..verification import Verification
from .convert import array_of, attributes_of, edges_of, labels_of, read_of
from .evaluate import Evaluator
from .expression import Expression
from .network import model_of
from .record import Record
from .run import Forward, Subject, at_rest

_log = logging.getLogger("nodeproof")

#: Largest relative difference of logits in a module's own precision.
_TOLERANCE = 1e-4
#: The same in units in the last place, for half precision, where these are larger.
_UNITS = 32
#: The same in double precision: far above rounding, far below any other formula.
_DOUBLE_TOLERANCE = 1e-9
#: Units in the last place of the largest logit that logits may differ by in any case.
_COMMON_UNITS = 1024
#: Relative difference up to which entries of two propagations are the same in double precision.
_DOUBLE_ROUNDING = 2e-14
#: Attribute matrices with more entries are large.
_LARGE = 1_000_000
_one_at_a_time = threading.RLock()


def from_pyg(
    module: Any,
    data: Any,
    *,
    binarise: bool = False,
    certify_binarised: bool = False,
    real_values: bool = False,
    ranges: Any = None,
    tolerance: float | None = None,
    forward: Forward | None = None,
    node_names: Any = None,
    attribute_names: Any = None,
    class_names: Any = None,
    progress: Progress = None,
) -> tuple[Graph, Model]:
    """The graph and the model of a PyTorch Geometric module, verified.

    Args:
        module: a `torch.nn.Module` that computes layers of terms `P h W`, with ReLUs or LeakyReLUs between (`docs/python.md`
            has a list); what it returns may be logits, their softmax or log_softmax. It is not changed.
        data: the `Data` object that it is to be certified on: `x` of 0 and 1, or of these divided by the number of ones in
            their row, as `NormalizeFeatures` leaves them; `edge_index` or `adj_t`, and what else it reads.
        binarise: counts every value of `x` above 0 as 1. Refused where that changes what the module reads.
        certify_binarised: asks about another network than the one that runs: the module on attributes that count as 1 where
            `x` is above 0, and as 0 elsewhere, whatever values it was trained on.
        real_values: takes `x` for real values; a flip then sets one to any other in the range of its attribute.
        ranges: the lowest and the highest value of attributes, see `Graph`.
        tolerance: largest difference of logits in the module's own precision, relative to the largest logit; by default 1e-4,
            and 32 units in the last place in half precision.
        forward: calls the module, `forward(module, data)`, where its own `forward` takes other arguments than `x`,
            `edge_index`, `edge_weight`, `edge_attr`, `adj_t`, or `data`, or returns more than logits.
        node_names, attribute_names, class_names: for the graph.
        progress: see `certify`.

    Returns:
        The graph, with the labels `data.y`, and the model, with `model.verification`. Verdicts are about the network in exact
        arithmetic, with propagations as the module computes them in double precision. A module in single precision rounds;
        where that, or a tie, decides the class of a node, `verification.disagreements` has it and a warning is logged.

    Raises:
        VerificationError: if the module computes something else; the message says which part of it does.
        InputError: if `x` has other values, or something has the wrong shape.
    """
    graph, model = imported(
        module,
        data,
        binarise=binarise,
        certify_binarised=certify_binarised,
        real_values=real_values,
        ranges=ranges,
        tolerance=tolerance,
        forward=forward,
        names=(node_names, attribute_names, class_names),
        progress=progress,
    )
    assert model.verification is not None
    disagreements = model.verification.disagreements
    _log.info(
        "imported %r; logits differ from the module's by at most %.2g", model, model.verification.largest_difference
    )
    if disagreements:
        _log.warning(
            "the module's rounding, or a tie, decides the class of %d nodes, the first is node %d: their verdicts are about "
            "another class than the module's",
            len(disagreements),
            disagreements[0],
        )
    return graph, model


def imported(
    module: Any,
    data: Any,
    *,
    binarise: bool = False,
    certify_binarised: bool = False,
    real_values: bool = False,
    ranges: Any = None,
    tolerance: float | None = None,
    forward: Forward | None = None,
    names: tuple[Any, Any, Any] = (None, None, None),
    progress: Progress = False,
) -> tuple[Graph, Model]:
    """The same as `from_pyg`, without a word about classes that rounding decides."""
    torch = pytorch()
    geometric = pytorch("torch_geometric.data")
    if not isinstance(module, torch.nn.Module):
        raise InputError(f"from_pyg() takes a torch.nn.Module, then its data, not: {type(module).__name__}")
    if not isinstance(data, geometric.Data):
        raise InputError(f"the data must be a torch_geometric.data.Data, not {kind_of(data)}")
    if any(tensor.is_meta for tensor in (*module.parameters(), *module.buffers())):
        raise InputError(
            "the module has no numbers, as its parameters or buffers are on the device meta; give them values first: "
            "module.to_empty(device='cpu'), then module.load_state_dict(...)"
        )
    if real_values and (binarise or certify_binarised):
        raise InputError("real_values=True takes x as it is; leave out binarise and certify_binarised")
    x, kind = attributes_of(data, binarise or certify_binarised, real_values)
    if binarise and not certify_binarised:
        _check_same(data, x)
    graph = _graph_as_used(data, x, kind, ranges, *names)
    own = Subject.of(module, data, forward)
    if tolerance is None:
        tolerance = max(_TOLERANCE, _UNITS * float(torch.finfo(own.dtype).eps))
    if not finite("tolerance", tolerance) >= 0:
        raise InputError(f"tolerance={tolerance!r} must be at least 0; None is the default")
    # One after the other: tensors that are followed change a class of PyTorch's meanwhile.
    with _one_at_a_time, observer(progress, "importing") as observe, at_rest(module):
        what = _Import(module, data, forward, graph, x, observe)
        model = _imported(what, own, tolerance)
    if model.kind != graph.kind:
        graph = _graph_as_used(data, x, model.kind, ranges, *names)
    if certify_binarised:
        _check_binarised(model, own, data, x)
        graph = Graph._of(graph._core.with_binarised(int((array_of(data.x, "x") != x).sum())), graph.cleaning)
    if any(not isinstance(propagation, (str, dict)) for propagation in model.propagations):
        model.metadata["edges"] = graph.edges_fingerprint
    return graph, model


@dataclass
class _Import:
    """What is imported, and how far that has come."""

    module: Any
    data: Any
    forward: Forward | None
    graph: Graph
    x: npt.NDArray[Any]
    observe: Observer | None
    done: int = 0

    def step(self) -> None:
        """One run of the module has ended, of three or, where it is small, seven."""
        self.done += 1
        if self.observe is not None:
            self.observe(self.done, max(self.done, 3 if self.x.size > _LARGE else 7))


def _imported(what: _Import, own: Subject, tolerance: float) -> Model:
    """The model, from double precision where the module can be run in that, and held against the module."""
    torch = pytorch()
    doubled: list[_Comparison] | None = None
    inputs = _inputs(what.x, what.graph)
    # On large ones a run takes most of the time: one in each precision then.
    in_double = inputs[1:] if what.x.size > _LARGE else inputs
    try:
        double = Subject.of(what.module, what.data, what.forward, torch.float64)
        network, doubled = _followed(what, double, _DOUBLE_TOLERANCE, _DOUBLE_ROUNDING, in_double)
    except (NotRunnableError, PrecisionError) as error:
        network, held = _followed(what, own, tolerance, 4 * float(torch.finfo(own.dtype).eps), inputs)
        _log.warning(
            "the module cannot be run in double precision, where it would be compared more closely: %s",
            error.__cause__ or error,
        )
    else:
        own.stored.update(double.stored)
        held = [_compared(what, own, network, x, tolerance) for x in inputs[2::2]]
    theirs = own.own_logits(what.module, what.data, inputs[0])
    what.step()
    held.insert(0, _comparison(theirs, network.output(inputs[0]), tolerance, own.dtype))
    model = network.model
    model.verification = Verification(
        held[0].largest,
        max(comparison.largest for comparison in held),
        max(comparison.allowed for comparison in held),
        None if doubled is None else max(comparison.largest for comparison in doubled),
        len(inputs),
        held[0].disagreements,
    )
    return model


def _followed(
    what: _Import, subject: Subject, tolerance: float, rounding: float, inputs: list[npt.NDArray[Any]]
) -> tuple[_Network, list[_Comparison]]:
    """The model of a module, and how it compares on each input: the first of them before the module is followed."""
    record = Record()
    before = subject.logits(inputs[0], record)
    what.step()
    nodes, attributes = what.x.shape
    logits, end = subject.follow(nodes, attributes, record, what.graph.kind == "real-values")
    kind, least = _read_by(logits, what.graph.kind)
    model = model_of(logits, attributes, what.graph.adjacency, rounding, kind)
    what.step()
    network = _Network(model, what.graph, end, least)
    compared = [_comparison(before, network.output(inputs[0]), tolerance, subject.dtype)]
    return network, compared + [_compared(what, subject, network, x, tolerance) for x in inputs[1:]]


def _check_same(data: Any, x: npt.NDArray[np.bool_]) -> None:
    """Refuses to count attributes as 1 that the module reads as something else."""
    values = data.x.detach().cpu().double().numpy()
    if (values != x).any():
        node, attribute = np.argwhere(values != x)[0]
        value = values[node, attribute]
        raise InputError(
            f"attribute {attribute} of node {node} is {value:g}, so that binarise=True would certify another network than the "
            "one that runs; train the module on 0 and 1, or pass certify_binarised=True for verdicts about the module on "
            "attributes that count as 1 where they are above 0"
        )


def _check_binarised(model: Model, own: Subject, data: Any, x: npt.NDArray[np.bool_]) -> None:
    """Warns of nodes that the module gives another class on `data.x` as it is than on 0 and 1."""
    classes = [own.logits(of).argmax(axis=1) for of in (data.x.detach().cpu().double().numpy(), x)]
    changed = np.flatnonzero(classes[0] != classes[1])
    if len(changed):
        _log.warning(
            "certify_binarised=True changes what the module predicts for %d nodes, the first is node %d: verdicts are about "
            "the class that it predicts from 0 and 1, and about another network than the one that runs",
            len(changed),
            changed[0],
        )
    assert model.verification is not None
    model.verification = dataclasses.replace(model.verification, binarised=tuple(int(node) for node in changed))


def _graph_as_used(data: Any, x: npt.NDArray[Any], kind: str, ranges: Any, *names: Any) -> Graph:
    """The graph with its edges as they are: what the module makes of them is in the propagations."""
    return Graph.from_edges(
        edges_of(data),
        x,
        labels_of(data),
        node_names=names[0],
        attribute_names=names[1],
        class_names=names[2],
        directed=True,
        keep_self_loops=True,
        normalise_rows=kind == "normalised-rows",
        real_values=kind == "real-values",
        ranges=ranges,
    )


def _inputs(x: npt.NDArray[Any], graph: Graph) -> list[npt.NDArray[Any]]:
    """Attribute matrices to compare on: as they are, and tampered with; fewer where they are large."""
    random, kind = np.random.default_rng(0), graph.kind
    tampered = (
        _tampered(x, kind, random) if graph.ranges is None else _tampered_values(x, *graph.ranges, random)
        for _ in range(1 if x.size > _LARGE else 3)
    )
    return [read_of(x, kind), *tampered]


def _tampered_values(
    x: npt.NDArray[Any], low: npt.NDArray[Any], high: npt.NDArray[Any], random: np.random.Generator
) -> npt.NDArray[np.float32]:
    """Each node by chance with 1 % of its values changed, with all of them, or with numbers that no attacker reaches."""
    numbers = random.random(x.shape)
    made = np.where(random.random(x.shape) < 0.01, low + (high - low) * numbers, x)
    how = random.integers(3, size=len(x))
    made[how == 1] = (low + (high - low) * numbers)[how == 1]
    made[how == 2] = numbers[how == 2]
    return made.astype(np.float32)


def _tampered(x: npt.NDArray[np.bool_], kind: str, random: np.random.Generator) -> npt.NDArray[np.float32]:
    """Each node by chance with 1 % of its attributes flipped, with random ones, or with numbers that no attacker reaches."""
    numbers = random.random(x.shape, dtype=np.float32)
    made: npt.NDArray[np.float32] = (x ^ (numbers < 0.01)).astype(np.float32)
    how = random.integers(3, size=len(x))
    made[how == 1] = numbers[how == 1] < 0.5
    made = read_of(made, kind).astype(np.float32)
    made[how == 2] = numbers[how == 2]
    return made


@dataclass(frozen=True)
class _Comparison:
    """The largest difference of centred logits, what is allowed, and nodes whose class differs."""

    largest: float
    allowed: float
    disagreements: tuple[int, ...]


def _read_by(logits: Expression, kind: str) -> tuple[str, float | None]:
    """The kind of attributes that a network reads, given that of what its module is given, and what it divides them by."""
    reads = logits.reads()
    if reads <= {None}:
        return kind, None
    if len(reads) > 1:
        raise VerificationError(
            "the module reads attributes as they are and divided by the sums of their rows; divide them before all else, "
            "or nowhere"
        )
    return "normalised-rows", reads.pop()


class _Network:
    """A model, and how to compute with it what the module returns."""

    def __init__(self, model: Model, graph: Graph, end: str, least: float | None) -> None:
        self.model, self._end, self._least = model, end, least
        self._evaluator = Evaluator(model, graph)
        self._known: list[tuple[npt.NDArray[Any], npt.NDArray[np.float64]]] = []

    def output(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Logits up to a constant a node, or their softmax."""
        for known, logits in self._known:
            if known is x:
                return logits
        self._known.append((x, self._output(x)))
        return self._known[-1][1]

    def _output(self, x: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        divided = (
            x if self._least is None else x / np.maximum(self._least, x.sum(axis=1, keepdims=True, dtype=np.float64))
        )
        logits = self._evaluator.logits(divided)
        if self._end != "softmax":
            return logits
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _compared(what: _Import, subject: Subject, network: _Network, x: npt.NDArray[Any], tolerance: float) -> _Comparison:
    """Holds the model against the module on `x` in place of the attributes."""
    theirs = subject.logits(x)
    what.step()
    return _comparison(theirs, network.output(x), tolerance, subject.dtype)


def _comparison(
    theirs: npt.NDArray[np.float64], ours: npt.NDArray[np.float64], tolerance: float, dtype: Any
) -> _Comparison:
    torch = pytorch()
    if theirs.shape != ours.shape:
        raise VerificationError(f"the module has logits of shape {theirs.shape}, the imported model {ours.shape}")
    for of, logits in (("the module", theirs), ("the imported model", ours)):
        if not np.isfinite(logits).all():
            node = int(np.argwhere(~np.isfinite(logits).all(axis=1))[0, 0])
            raise VerificationError(
                f"{of} computes logits that are not finite, at node {node} for one, so that the two cannot be compared; are "
                f"weights or attributes too large for {str(dtype).removeprefix('torch.')}?"
            )
    # Margins are all that matters, and log_softmax moves all logits of a node alike.
    difference = np.abs((theirs - theirs[:, :1]) - (ours - ours[:, :1]))
    largest = float(difference.max()) if difference.size else 0.0
    # Of what is common to all logits of a node only the rounding counts.
    centred = max(float(np.abs(logits - logits[:, :1]).max(initial=0.0)) for logits in (theirs, ours))
    common = max(float(np.abs(logits).max(initial=0.0)) for logits in (theirs, ours))
    rounding = min(tolerance, _COMMON_UNITS * float(torch.finfo(dtype).eps))
    allowed = max(tolerance * centred, rounding * common, tolerance * 1e-30)
    if not largest <= allowed:
        node = int(np.argmax(difference.max(axis=1)))
        raise VerificationError(
            f"the imported model's logits differ from the module's by up to {largest:.3g} (at node {node}), more than "
            f"{allowed:.3g}; the module computes something else than what it was seen to compute"
        )
    differs = np.flatnonzero(theirs.argmax(axis=1) != ours.argmax(axis=1))
    return _Comparison(largest, allowed, tuple(int(node) for node in differs))
