"""A module becomes a model, and is held against it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._checks import finite
from .._optional import optional
from ..errors import InputError, VerificationError
from ..graph import Graph
from ..model import Model
from ..verification import Verification
from .convert import attributes_of, edges_of, labels_of
from .layers import Call, model_of, propagation_of
from .run import Forward, NotRunnableError, Subject
from .trace import PrecisionError

_log = logging.getLogger("nodeproof")

#: Largest relative difference of logits in a module's own precision.
_TOLERANCE = 1e-4
#: The same in units in the last place, for half precision, where these are larger.
_UNITS = 32
#: The same in double precision: far above rounding, far below any other formula.
_DOUBLE_TOLERANCE = 1e-9
#: Attribute matrices with more entries are not tried full of ones.
_LARGE = 20_000_000


def from_pyg(
    module: Any,
    data: Any,
    *,
    binarise: bool = False,
    tolerance: float | None = None,
    forward: Forward | None = None,
    node_names: Any = None,
    attribute_names: Any = None,
    class_names: Any = None,
) -> tuple[Graph, Model]:
    """The graph and the model of a PyTorch Geometric module, verified.

    Args:
        module: a `torch.nn.Module` whose layers are `GCNConv`, `SGConv` or `SAGEConv` (mean, without root weight), with ReLUs
            between them; what it returns may be logits or their `log_softmax`. It is not changed.
        data: the `Data` object that it is to be certified on: binary `x`, `edge_index`, and what else the module reads.
        binarise: counts every value of `x` above 0 as 1, for the module too.
        tolerance: largest difference in the module's own precision: of logits relative to the largest logit, of a layer's
            values relative to what their sums are made of; by default 1e-4, and 32 units in the last place in half precision.
        forward: calls the module, `forward(module, data)`, where its own `forward` takes other arguments than `x`,
            `edge_index`, `edge_weight`, `edge_attr`, or `data`.
        node_names, attribute_names, class_names: for the graph.

    Returns:
        The graph, with the labels `data.y`, and the model, with `model.verification`. Verdicts are about the network in exact
        arithmetic, with the propagation as the module computed it, value by value. A module in single precision rounds; where
        that, or a tie, decides the class of a node, `verification.disagreements` has it and a warning is logged.

    Raises:
        VerificationError: if the module computes something else than `P x W + b` with ReLUs between; the message names the
            layer.
        InputError: if `x` is not binary, or something has the wrong shape.
    """
    torch = optional("torch", "pyg", "from_pyg()")
    geometric = optional("torch_geometric.data", "pyg", "from_pyg()")
    if not isinstance(module, torch.nn.Module):
        raise InputError(f"from_pyg() takes a torch.nn.Module, then its data; a {type(module).__name__} is none")
    if not isinstance(data, geometric.Data):
        raise InputError(f"the data must be a torch_geometric.data.Data, not a {type(data).__name__}")
    x = attributes_of(data, binarise)
    graph = _graph_as_used(data, x, node_names, attribute_names, class_names)
    own = Subject.of(module, data, forward)
    if tolerance is None:
        tolerance = max(_TOLERANCE, _UNITS * float(torch.finfo(own.dtype).eps))
    tolerance = finite("tolerance", tolerance)
    inputs = list(_inputs(x))
    model, held = _held(own, graph, x, inputs, tolerance)
    try:
        double = Subject.of(module, data, forward, torch.float64)
        _, compared = _held(double, graph, x, inputs, _DOUBLE_TOLERANCE)
    except (NotRunnableError, PrecisionError) as error:
        _log.warning(
            "the module cannot be run in double precision, where it would be compared more closely: %s",
            error.__cause__ or error,
        )
        doubled = None
    else:
        doubled = max(comparison.largest for comparison in compared)
    disagreements = held[0].disagreements
    model.verification = Verification(
        held[0].largest,
        max(comparison.largest for comparison in held),
        max(comparison.allowed for comparison in held),
        doubled,
        len(inputs),
        disagreements,
        _changed_by_binarising(own, data, x) if binarise else (),
    )
    model.metadata["edges"] = graph.edges_fingerprint
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


def _changed_by_binarising(own: Subject, data: Any, x: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    """Nodes that the module gives another class on `data.x` as it is than on 0 and 1."""
    classes = [own.logits(of).argmax(dim=1).numpy() for of in (data.x.detach().cpu().double().numpy(), x)]
    changed = np.flatnonzero(classes[0] != classes[1])
    if len(changed):
        _log.warning(
            "binarise=True changes what the module predicts for %d nodes, the first is node %d: verdicts are about the class "
            "that it predicts from 0 and 1; if it was trained on other values (NormalizeFeatures), train it without them",
            len(changed),
            changed[0],
        )
    return tuple(int(node) for node in changed)


def _graph_as_used(data: Any, x: npt.NDArray[np.bool_], *names: Any) -> Graph:
    """The graph with its edges as they are: the propagation is the module's and does not depend on them."""
    return Graph.from_edges(
        edges_of(data),
        x,
        labels_of(data),
        node_names=names[0],
        attribute_names=names[1],
        class_names=names[2],
        directed=True,
        keep_self_loops=True,
    )


def _tampered(graph: Graph, x: npt.NDArray[np.bool_]) -> Graph:
    return Graph(graph.adjacency, x, directed=True, keep_self_loops=True)


def _inputs(x: npt.NDArray[np.bool_]) -> Iterator[npt.NDArray[np.bool_]]:
    """Attribute matrices to compare on: as they are, and tampered with."""
    random = np.random.default_rng(0)
    yield x
    yield x ^ (random.random(x.shape, dtype=np.float32) < 0.01)
    if x.size <= _LARGE:
        yield x ^ (random.random(x.shape, dtype=np.float32) < 0.5)
        yield np.ones_like(x)
        yield np.zeros_like(x)


@dataclass(frozen=True)
class _Comparison:
    """The largest difference of centred logits, what is allowed, and nodes whose class differs."""

    largest: float
    allowed: float
    disagreements: tuple[int, ...]


def _held(
    subject: Subject, graph: Graph, x: npt.NDArray[np.bool_], inputs: Iterable[npt.NDArray[Any]], tolerance: float
) -> tuple[Model, list[_Comparison]]:
    """The model of a module, and how it compares on each input."""
    model = model_of(subject.run(x)[0], len(x))
    return model, [_compare(subject, model, graph, other, tolerance) for other in inputs]


def _compare(subject: Subject, model: Model, graph: Graph, x: npt.NDArray[Any], tolerance: float) -> _Comparison:
    """Holds the model against the module on `x` in place of the attributes of `graph`, layer by layer and at the end."""
    calls, output = subject.run(x)
    propagation = model.propagation_on(graph)
    _check_propagation(calls, propagation)
    _check_layers(calls, model, propagation, tolerance)
    theirs, ours = output.double().numpy(), model.logits(_tampered(graph, x))
    if theirs.shape != ours.shape:
        raise VerificationError(f"the module has logits of shape {theirs.shape}, the imported model {ours.shape}")
    # Margins are all that matters, and log_softmax moves all logits of a node alike.
    difference = np.abs((theirs - theirs[:, :1]) - (ours - ours[:, :1]))
    largest = float(difference.max()) if difference.size else 0.0
    allowed = tolerance * max(float(np.abs(theirs).max()), float(np.abs(ours).max()), 1e-30)
    if not largest <= allowed:
        node = int(np.argmax(difference.max(axis=1)))
        raise VerificationError(
            f"the imported model's logits differ from the module's by up to {largest:.3g} (at node {node}), more than "
            f"{allowed:.3g}; the module computes something else than P x W + b with ReLUs between"
        )
    differs = np.flatnonzero(theirs.argmax(axis=1) != ours.argmax(axis=1))
    return _Comparison(largest, allowed, tuple(int(node) for node in differs))


def _check_propagation(calls: list[Call], propagation: Any) -> None:
    """Refuses a propagation that is another one where other attributes are set."""
    for call in calls:
        if (propagation_of(call, propagation.shape[0]) != propagation).nnz:
            raise VerificationError(
                f"layer {call.name!r} has another propagation where other attributes are set; certificates need one that does "
                "not depend on them"
            )


def _check_layers(calls: list[Call], model: Model, propagation: Any, tolerance: float) -> None:
    """Refuses layers that give something else than `P x W + b`, be it for what they are given or for the probes."""
    for call, weight, bias in zip(calls, model.weights, model.biases, strict=True):
        for x, output in ((call.x, call.output), (call.probes[0], call.probes_output[0])):
            given = x.double().numpy()
            expected = propagation @ (given @ weight) + bias
            # Each value is allowed what its own sum may lose to rounding, lest large ones hide small ones.
            scale = propagation @ (np.abs(given) @ np.abs(weight)) + np.abs(bias)
            difference = np.abs(output.double().numpy() - expected)
            if not (difference <= tolerance * scale + _smallest(output)).all():
                raise _differs(call, float(difference.max()))
        of_zeros = call.probes_output[1].double().numpy()
        if not np.array_equal(of_zeros, np.broadcast_to(bias, of_zeros.shape)):
            raise _differs(call, float(np.abs(of_zeros - bias).max()))


def _differs(call: Call, difference: float) -> VerificationError:
    return VerificationError(
        f"layer {call.name!r} gives values that differ from P x W + b by up to {difference:.3g}; has somebody put something "
        "into it?"
    )


def _smallest(tensor: Any) -> float:
    """What rounding below the smallest normal number may lose."""
    torch = optional("torch", "pyg", "from_pyg()")
    return float(torch.finfo(tensor.dtype).tiny)
