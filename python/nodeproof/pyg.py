"""PyTorch Geometric: its data become graphs, its modules models, and back.

A module is never taken at its word. `from_pyg` runs a copy of it, watches what its layers are given and what they give
back, takes the propagation that they really use, self-loops, weights, duplicates, directions and caches included, and
then compares logits on the graph and on others with tampered attributes.
"""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ._optional import optional
from ._trace import Trace, tracing
from .errors import InputError, NodeproofError, VerificationError
from .graph import Graph
from .model import Model
from .split import Split

_log = logging.getLogger("nodeproof")

#: Largest relative difference of logits in double precision: far above rounding, far below any other formula.
_DOUBLE_TOLERANCE = 1e-9
#: Attribute matrices with more entries are not tried full of ones.
_LARGE = 20_000_000

#: Calls a module: `forward(module, data)`, `data` being a copy with other attributes.
Forward = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Verification:
    """How an imported model was held against its module."""

    #: Largest difference of centred logits, in the module's own precision, on the graph as it is.
    largest_difference: float
    #: The largest that was allowed.
    tolerance: float
    #: The same in double precision, over all attribute matrices that were tried; `None` if the module cannot do that.
    largest_difference_double: float | None
    #: Attribute matrices that were tried.
    inputs: int
    #: Nodes whose class differs: the module's rounding, or a tie, decides them.
    disagreements: tuple[int, ...]


@dataclass
class _Call:
    """One call of a layer: what it was given, what it gave back, and which edges it sent messages along."""

    name: str
    layer: Any
    x: Any
    edges: list[tuple[Any, Any]]
    output: Any = None


def from_pyg(
    module: Any,
    data: Any,
    *,
    binarise: bool = False,
    tolerance: float = 1e-4,
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
        tolerance: largest difference of logits, relative to the largest logit, in the module's own precision.
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
    optional("torch_geometric", "pyg", "from_pyg()")
    x = _dense_attributes(data, binarise)
    own = _copied(module, None)
    dtype = _float_type(own)
    moved = copy.copy(data).cpu()
    calls, _ = _run(own, moved, x, dtype, forward)
    model, propagation = _model_of(calls, x), _propagation_of(calls[0], len(x))
    graph = _graph_as_used(data, x, node_names, attribute_names, class_names)

    difference, allowed, disagreements = _compare(own, moved, graph, model, x, dtype, forward, tolerance, propagation)
    inputs = list(_inputs(x))
    doubled: float | None = None
    try:
        double = _copied(module, torch.float64)
        calls, _ = _run(double, moved, x, torch.float64, forward)
    except NodeproofError:
        raise
    except RuntimeError as error:
        _log.warning("the module cannot be run in double precision, where it would be checked closer: %s", error)
        for other in inputs[1:]:
            _compare(own, moved, _tampered(graph, other), model, other, dtype, forward, tolerance, propagation)
    else:
        exact, propagation = _model_of(calls, x), _propagation_of(calls[0], len(x))
        doubled = 0.0
        for other in inputs:
            held = _compare(
                double,
                moved,
                _tampered(graph, other),
                exact,
                other,
                torch.float64,
                forward,
                _DOUBLE_TOLERANCE,
                propagation,
            )
            doubled = max(doubled, held[0])
    model.verification = Verification(difference, allowed, doubled, len(inputs), disagreements)
    _log.info("imported %r; logits differ from the module's by at most %.2g", model, difference)
    if disagreements:
        _log.warning(
            "the module's rounding, or a tie, decides the class of %d nodes, the first is node %d: their verdicts are about "
            "another class than the module's",
            len(disagreements),
            disagreements[0],
        )
    return graph, model


def to_pyg(graph: Graph, model: Model, *, split: Split | None = None, dtype: Any = None) -> tuple[Any, Any]:
    """A PyTorch Geometric module with the weights of `model`, and the `Data` object to call it on.

    `module(data.x, data.edge_index, data.edge_weight)` are the logits; where `data` has no `edge_weight`, leave it out.
    """
    torch = optional("torch", "pyg", "to_pyg()")
    module, data = module_of(model, dtype), data_of(graph, split)
    if model.propagation != "symmetric-gcn":
        entries = model.propagation_on(graph).tocoo()
        data.edge_index = torch.tensor(np.stack([entries.col, entries.row]), dtype=torch.int64)
        data.edge_weight = torch.tensor(entries.data, dtype=_float_type(module))
    data.x = data.x.to(_float_type(module))
    if data.edge_weight is not None:
        data.edge_weight = data.edge_weight.to(_float_type(module))
    return module, data


def module_of(model: Model, dtype: Any = None) -> Any:
    """See `Model.to_pyg`."""
    optional("torch_geometric", "pyg", "to_pyg()")
    from ._torch import GCN

    return GCN.of(model.weights, model.biases, normalise=model.propagation == "symmetric-gcn", dtype=dtype)


def data_of(graph: Graph, split: Split | None = None) -> Any:
    """See `Graph.to_pyg`. A self-loop has weight 2, as it counts in nodeproof's propagation."""
    torch = optional("torch", "pyg", "to_pyg()")
    geometric = optional("torch_geometric.data", "pyg", "to_pyg()")
    adjacency = graph.adjacency.tocoo()
    data = geometric.Data(
        x=torch.tensor(graph.attributes.toarray(), dtype=torch.get_default_dtype()),
        edge_index=torch.tensor(np.stack([adjacency.col, adjacency.row]), dtype=torch.int64),
    )
    loops = adjacency.row == adjacency.col
    data.edge_weight = torch.tensor(1.0 + loops, dtype=torch.get_default_dtype()) if loops.any() else None
    if graph.labels is not None:
        data.y = torch.tensor(graph.labels)
    if split is not None:
        for name, part in (("train_mask", "train"), ("val_mask", "validation"), ("test_mask", "test")):
            mask = torch.zeros(graph.nodes, dtype=torch.bool)
            mask[split.part(part).astype(np.int64)] = True
            data[name] = mask
    return data


def graph_of(data: Any, *, binarise: bool = False, **options: Any) -> Graph:
    """See `Graph.from_pyg`."""
    x = _dense_attributes(data, binarise)
    return Graph.from_edges(_edge_index(data), x, _labels(data), **options)


def split_of(data: Any) -> Split:
    """See `Split.from_pyg`."""
    masks = []
    for name in ("train_mask", "val_mask"):
        mask = getattr(data, name, None)
        if mask is None:
            if name == "train_mask":
                raise InputError("the data have no train_mask; make a split with Split(graph, train=...)")
            continue
        mask = mask.detach().cpu().numpy()
        if mask.ndim != 1:
            raise InputError(
                f"{name} has shape {mask.shape}, several splits; choose one: Split(graph, data.{name}[:, 0])"
            )
        masks.append(mask.astype(bool))
    return Split(len(masks[0]), *masks)


def _dense_attributes(data: Any, binarise: bool) -> npt.NDArray[np.bool_]:
    x = getattr(data, "x", None)
    if x is None:
        raise InputError("the data have no attributes x; nodeproof certifies against flips of binary attributes")
    if (
        getattr(x, "is_sparse", False)
        or not hasattr(x, "dim")
        or str(getattr(x, "layout", "torch.strided")) != "torch.strided"
    ):
        raise InputError("x is sparse; give data with x.to_dense()")
    if x.dim() != 2:
        raise InputError(f"x has shape {tuple(x.shape)}; it must be nodes × attributes")
    values = x.detach().cpu().numpy()
    odd = ~np.isfinite(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
    if not binarise:
        odd |= (values != 0) & (values != 1)
    if odd.any():
        node, attribute = np.argwhere(odd)[0]
        value = values[node, attribute]
        remedy = "pass binarise=True to count every value > 0 as 1, or leave out transforms such as NormalizeFeatures"
        remedy = remedy if np.isfinite(value) else "replace it by a finite number"
        raise InputError(
            f"attribute {attribute} of node {node} is {value}; nodeproof needs binary attributes: {remedy}"
        )
    positive: npt.NDArray[np.bool_] = values > 0
    return positive


def _edge_index(data: Any) -> npt.NDArray[np.int64]:
    edges = getattr(data, "edge_index", None)
    if edges is None:
        raise InputError("the data have no edge_index; sparse adjacencies (adj_t) are not read")
    array: npt.NDArray[np.int64] = edges.detach().cpu().numpy()
    return array


def _labels(data: Any) -> npt.NDArray[Any] | None:
    y = getattr(data, "y", None)
    if y is None:
        return None
    labels: npt.NDArray[Any] = y.detach().cpu().numpy()
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(f"y has shape {labels.shape}; nodeproof certifies one class a node")
    return labels


def _graph_as_used(data: Any, x: npt.NDArray[np.bool_], *names: Any) -> Graph:
    """The graph with its edges as they are: the propagation is the module's and does not depend on them."""
    return Graph.from_edges(
        _edge_index(data),
        x,
        _labels(data),
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


def _copied(module: Any, dtype: Any) -> Any:
    """A copy for evaluation on the processor, in another precision if one is given."""
    try:
        copied = copy.deepcopy(module)
    except Exception as error:
        raise InputError(
            f"the module cannot be copied ({error}); nodeproof runs a copy so as not to change yours"
        ) from error
    copied = copied.cpu().eval()
    if dtype is not None:
        copied = copied.to(dtype)
    for layer in copied.modules():
        cache = getattr(layer, "_cached_edge_index", None)
        if cache is not None:
            layer._cached_edge_index = tuple(None if part is None else part.cpu() for part in cache)
    return copied


def _float_type(module: Any) -> Any:
    torch = optional("torch", "pyg", "from_pyg()")
    for parameter in module.parameters():
        if isinstance(parameter, torch.nn.parameter.UninitializedParameter):
            continue
        if parameter.is_floating_point():
            return parameter.dtype
    return torch.get_default_dtype()


@contextmanager
def _watched(module: Any, calls: list[_Call], trace: Trace) -> Iterator[None]:
    """Has every layer that passes messages tell of its calls."""
    from torch_geometric.nn import MessagePassing

    handles = []
    stack: list[_Call] = []

    def before(name: str) -> Any:
        def hook(layer: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
            x: Any = arguments[0] if arguments else keywords.get("x")
            trace.enter(name, x)
            call = _Call(name, layer, x.clone() if hasattr(x, "clone") else x, [])
            calls.append(call)
            stack.append(call)

        return hook

    def after(layer: Any, arguments: Any, keywords: Any, output: Any) -> None:
        stack.pop().output = output.clone() if hasattr(output, "clone") else output
        trace.leave(output)

    def sent(layer: Any, arguments: tuple[Any, ...]) -> None:
        keywords = arguments[-1]
        edges, weight = arguments[0], keywords.get("edge_weight")
        trace.check_edges(stack[-1].name, edges, weight)
        stack[-1].edges.append((edges, weight))

    for name, layer in module.named_modules():
        if isinstance(layer, MessagePassing):
            _check_unchanged(name, layer)
            handles.append(layer.register_forward_pre_hook(before(name or "module"), with_kwargs=True))
            handles.append(layer.register_forward_hook(after, with_kwargs=True))
            handles.append(layer.register_propagate_forward_pre_hook(sent))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _hooks(part: Any) -> list[Any]:
    return [*part._forward_hooks.values(), *part._forward_pre_hooks.values()]


def _is_foreign(hook: Any) -> bool:
    """Whether a hook is not one of those that the libraries themselves use, for lazy layers and normalised weights."""
    home = str(getattr(hook, "__module__", None) or type(hook).__module__)
    return home.partition(".")[0] not in ("torch", "torch_geometric")


def _check_unchanged(name: str, layer: Any) -> None:
    """Refuses layers that somebody has put something else into."""
    for part in layer.modules():
        if any(_is_foreign(hook) for hook in _hooks(part)) or "forward" in vars(part):
            raise VerificationError(
                f"layer {name!r} has hooks or a forward of its own, so that nobody knows what it computes; remove them first"
            )
    if "message" in vars(layer) or "update" in vars(layer):
        raise VerificationError(
            f"layer {name!r} has methods of its own; nodeproof knows the layer as PyTorch Geometric has it"
        )


def _run(
    module: Any, data: Any, x: npt.NDArray[np.bool_], dtype: Any, forward: Forward | None
) -> tuple[list[_Call], Any]:
    """Runs the module on `x`, and returns the calls of its layers and its output."""
    torch = optional("torch", "pyg", "from_pyg()")
    given = copy.copy(data)
    given.x = torch.tensor(x).to(dtype)
    for name in ("edge_weight", "edge_attr"):
        value = getattr(given, name, None)
        if value is not None and value.is_floating_point():
            setattr(given, name, value.to(dtype))
    calls: list[_Call] = []
    with torch.no_grad(), tracing(given.x) as trace, _watched(module, calls, trace):
        output = (forward or _forward)(module, given)
    if not isinstance(output, torch.Tensor) or output.dim() != 2 or output.shape[0] != x.shape[0]:
        shape = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
        raise InputError(f"the module returns {shape}, not logits of shape nodes × classes; give forward=")
    _check_between(module, calls, given.x, output)
    trace.check([call.name for call in calls], output)
    return calls, output


def _forward(module: Any, data: Any) -> Any:
    """Calls a module whose `forward` has arguments of the usual names."""
    parameters = list(inspect.signature(module.forward).parameters.values())
    known = {name: getattr(data, name, None) for name in ("x", "edge_index", "edge_weight", "edge_attr")}
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        weight = () if known["edge_weight"] is None else (known["edge_weight"],)
        return module(known["x"], known["edge_index"], *weight)
    needed = [parameter for parameter in parameters if parameter.default is parameter.empty]
    needed = [parameter for parameter in needed if parameter.kind is not parameter.VAR_KEYWORD]
    if len(needed) == 1 and needed[0].name not in known:
        return module(data)
    arguments = {}
    for parameter in parameters:
        if known.get(parameter.name) is not None:
            arguments[parameter.name] = known[parameter.name]
        elif parameter in needed:
            raise InputError(
                f"the module's forward asks for {parameter.name!r}, which the data do not have; give "
                "forward=lambda module, data: module(...)"
            )
    return module(**arguments)


def _check_between(module: Any, calls: list[_Call], x: Any, output: Any) -> None:
    """Refuses whatever happens before, between and behind the layers, other than ReLUs and a `log_softmax`: to the bit."""
    torch = optional("torch", "pyg", "from_pyg()")
    if not calls:
        raise VerificationError(
            "the module has no layer that passes messages; nodeproof knows GCNConv, SGConv and SAGEConv"
        )
    for call in calls:
        _check_layer(call)
    if not torch.equal(calls[0].x, x):
        raise VerificationError(
            f"layer {calls[0].name!r} is not given data.x as it is, so that something before it changes the attributes"
            + _suspects(module)
        )
    for one, next_ in pairwise(calls):
        if one.output.shape != next_.x.shape or not torch.equal(one.output.relu(), next_.x):
            raise VerificationError(
                f"between layer {one.name!r} and layer {next_.name!r} the module does something else than a ReLU"
                + _suspects(module)
            )
    last = calls[-1].output
    if last.shape != output.shape:
        raise VerificationError(f"something behind layer {calls[-1].name!r} changes its output{_suspects(module)}")
    shift = output - last
    spread = float((shift - shift[:, :1]).abs().max()) if shift.numel() else 0.0
    if not spread <= 64 * torch.finfo(output.dtype).eps * max(1.0, float(output.abs().max()), float(last.abs().max())):
        hint = ""
        if bool((output >= 0).all()) and torch.allclose(output.sum(1), torch.ones_like(output[:, 0]), atol=1e-4):
            hint = "; it looks like a softmax: return logits, or log_softmax"
        raise VerificationError(
            f"behind layer {calls[-1].name!r} the module does something else than log_softmax{hint}{_suspects(module)}"
        )


def _suspects(module: Any) -> str:
    """Layers that may be what is in the way."""
    torch = optional("torch", "pyg", "from_pyg()")
    from torch_geometric.nn import MessagePassing

    harmless = (torch.nn.ReLU, torch.nn.Dropout, torch.nn.Identity, torch.nn.LogSoftmax)
    inside = {id(part) for layer in module.modules() if isinstance(layer, MessagePassing) for part in layer.modules()}
    found = [
        f"{name} ({type(part).__name__})"
        for name, part in module.named_modules()
        if id(part) not in inside and not list(part.children()) and not isinstance(part, harmless) and name
    ]
    if found:
        return f"; the module has {', '.join(found[:5])}"
    return "; look for other activations, and for F.dropout without training=self.training"


def _check_layer(call: _Call) -> None:
    """Refuses layers that are not of the form `P x W + b`."""
    torch = optional("torch", "pyg", "from_pyg()")
    from torch_geometric.nn import GCNConv, SAGEConv, SGConv

    layer, name = call.layer, f"layer {call.name!r}"
    kind = type(layer)
    if kind not in (GCNConv, SGConv, SAGEConv):
        raise VerificationError(
            f"{name} is a {kind.__name__}, which is not of the form P x W + b with P ≥ 0 that nodeproof certifies; it knows "
            "GCNConv, SGConv, and SAGEConv with aggr='mean' and root_weight=False"
        )
    if not isinstance(call.x, torch.Tensor) or not isinstance(call.output, torch.Tensor):
        raise VerificationError(f"{name} is given something else than one matrix of attributes")
    allowed = ("mean",) if kind is SAGEConv else ("add", "sum")
    if layer.aggr not in allowed:
        raise VerificationError(f"{name} aggregates by {layer.aggr!r}; a {kind.__name__} must do so by {allowed[0]!r}")
    if kind is SAGEConv:
        for option, problem in (
            ("root_weight", "adds a second product, x W_r, to P x W; make it with root_weight=False"),
            ("project", "projects its input first; make it with project=False"),
            ("normalize", "normalises its output, which is no linear function; make it with normalize=False"),
        ):
            if getattr(layer, option):
                raise VerificationError(f"{name}, a SAGEConv, {problem}")
    if kind is SGConv and layer.cached:
        raise VerificationError(f"{name}, an SGConv with cached=True, would not see any change of x; set cached=False")
    if len(call.edges) != (layer.K if kind is SGConv else 1):
        raise VerificationError(
            f"{name}, a {kind.__name__}, passes messages {len(call.edges)} times, which is unexpected"
        )
    for edges, _ in call.edges:
        if (
            type(edges).__name__ == "SparseTensor"
            or not isinstance(edges, torch.Tensor)
            or edges.layout != torch.strided
        ):
            raise VerificationError(f"{name} is given a sparse adjacency; give edge_index, 2 × E")


def _model_of(calls: list[_Call], x: npt.NDArray[np.bool_]) -> Model:
    """The model of what was seen; all layers must have one propagation."""
    from torch_geometric.nn import GCNConv, SAGEConv

    weights, biases = [], []
    propagation: Any = None
    for call in calls:
        layer = call.layer
        linear = layer.lin_l if isinstance(layer, SAGEConv) else layer.lin
        bias = layer.bias if isinstance(layer, GCNConv) else linear.bias
        weights.append(linear.weight.detach().double().numpy().T)
        biases.append(None if bias is None else bias.detach().double().numpy())
        own = _propagation_of(call, len(x))
        if propagation is None:
            propagation = own
        elif (own != propagation).nnz:
            raise VerificationError(
                f"layer {call.name!r} has another propagation than layer {calls[0].name!r}; nodeproof certifies networks "
                "whose layers share one"
            )
    return Model(weights, biases, propagation)


def _propagation_of(call: _Call, nodes: int) -> Any:
    """P of one layer, N × N, from the edges along which it sent messages: row m has the weights of what m receives."""
    import scipy.sparse
    from torch_geometric.nn import SAGEConv, SGConv

    edges, weight = call.edges[0]
    sources, targets = edges.detach().numpy()
    if call.layer.flow == "target_to_source":
        sources, targets = targets, sources
    values = np.ones(len(sources)) if weight is None else weight.detach().double().numpy().ravel()
    for place in np.flatnonzero(~(np.isfinite(values) & (values >= 0)))[:1]:
        raise VerificationError(
            f"layer {call.name!r} takes node {sources[place]} into node {targets[place]} with weight {values[place]}; "
            "certificates need finite weights ≥ 0"
        )
    # Entries of the same place are summed, as messages are.
    matrix = scipy.sparse.csr_matrix((values, (targets, sources)), shape=(nodes, nodes))
    if isinstance(call.layer, SAGEConv):
        received = np.bincount(targets, minlength=nodes)
        matrix = scipy.sparse.csr_matrix(
            (matrix.data / np.repeat(received, np.diff(matrix.indptr)), matrix.indices, matrix.indptr),
            shape=matrix.shape,
        )
    power = matrix
    for _ in range(call.layer.K - 1 if isinstance(call.layer, SGConv) else 0):
        power = matrix @ power
    if isinstance(call.layer, SGConv) and call.layer.K == 0:
        power = scipy.sparse.identity(nodes, format="csr")
    power.sum_duplicates()
    return power


def _compare(
    module: Any,
    data: Any,
    graph: Graph,
    model: Model,
    x: npt.NDArray[np.bool_],
    dtype: Any,
    forward: Forward | None,
    tolerance: float,
    propagation: Any,
) -> tuple[float, float, tuple[int, ...]]:
    """The largest difference of centred logits, what is allowed, and nodes whose class differs."""
    calls, output = _run(module, data, x, dtype, forward)
    for call in calls:
        if (_propagation_of(call, len(x)) != propagation).nnz:
            raise VerificationError(
                f"layer {call.name!r} has another propagation where other attributes are set; certificates need one that does "
                "not depend on them"
            )
    theirs, ours = output.double().numpy(), model.logits(graph)
    if theirs.shape != ours.shape:
        raise VerificationError(f"the module has logits of shape {theirs.shape}, the imported model {ours.shape}")
    if not np.isfinite(theirs).all():
        node = int(np.argwhere(~np.isfinite(theirs))[0, 0])
        raise VerificationError(
            f"the module's logits of node {node} are not finite; was training cut off or did it diverge?"
        )
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
    return largest, allowed, tuple(int(node) for node in differs)
