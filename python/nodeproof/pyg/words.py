"""Why something cannot be imported, in the words of whoever wrote the module."""

from __future__ import annotations

from typing import Any

from .._optional import pytorch

_EDGES = (
    "messages between nodes may be scaled by constants only, as in GCNConv, SAGEConv and GINConv, not by attention or by edge "
    "weights made of attributes"
)
_ACTIVATIONS = "ReLU, LeakyReLU and PReLU with slopes in [0, 1) can be imported"
_NORMS = "BatchNorm in evaluation, which divides by constants, can be imported; or leave normalisation out"
_SUMS = "sums and means (aggr='sum', aggr='mean', jk='cat', jk='last') can be imported"
_BRANCHES = "certificates need a module that does the same whatever the attributes are"
_ENDS = "softmax and log_softmax can stand at the very end, over the classes; return logits, or one of these"

#: By operation: what is done, and what could be done instead.
_CURVED = (
    "celu", "elu", "erf", "exp", "expm1", "gelu", "hardsigmoid", "hardswish", "log", "log1p", "mish",
    "selu", "silu", "sin", "cos", "softplus", "softshrink", "tanh", "tanhshrink", "logsumexp", "atan",
)  # fmt: skip
_BOUNDED = (
    "hardtanh",
    "hardshrink",
    "clamp",
    "clamp_max",
    "threshold",
    "round",
    "floor",
    "ceil",
    "trunc",
    "sign",
    "sgn",
    "frac",
)
_NORMED = (
    "native_layer_norm", "native_group_norm", "linalg_vector_norm", "norm", "var", "std", "var_mean", "std_mean", "rsqrt",
    "reciprocal", "_fused_rms_norm",
)  # fmt: skip
_POWERS = ("sqrt", "pow", "square", "float_power")
_EXTREME = (
    "max",
    "min",
    "amax",
    "amin",
    "maximum",
    "minimum",
    "max_pool2d_with_indices",
    "median",
    "prod",
    "cummax",
    "cummin",
)
_ORDERED = (
    "topk",
    "sort",
    "argsort",
    "argmax",
    "argmin",
    "kthvalue",
    "unique",
    "_unique2",
    "searchsorted",
    "bucketize",
)
_COMPARED = (
    "eq", "ne", "lt", "le", "gt", "ge", "equal", "isfinite", "isnan", "isinf", "any", "all", "logical_not", "logical_and",
    "logical_or", "nonzero", "where", "masked_fill", "_local_scalar_dense", "is_nonzero", "heaviside", "signbit", "allclose",
    "isclose", "count_nonzero",
)  # fmt: skip
_REASONS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(_CURVED, ("applies a curved function to values that depend on the attributes", _ACTIVATIONS)),
    **dict.fromkeys(
        ("sigmoid", "log_sigmoid_forward"),
        (
            "applies a curved function to values that depend on the attributes",
            f"{_ACTIVATIONS}; at the end, return logits",
        ),
    ),
    "abs": (
        "takes magnitudes of values that depend on the attributes",
        "torch.relu(h) + torch.relu(-h), which is the same, can be imported",
    ),
    **dict.fromkeys(_BOUNDED, ("cuts values off or bends them in other places than a ReLU does", _ACTIVATIONS)),
    **dict.fromkeys(_NORMED, ("divides by a number that depends on the attributes", _NORMS)),
    **dict.fromkeys(_POWERS, ("takes a power or a root of values that depend on the attributes", _NORMS)),
    **dict.fromkeys(_EXTREME, ("takes a maximum, minimum or product of values that depend on the attributes", _SUMS)),
    **dict.fromkeys(_ORDERED, ("orders values that depend on the attributes, or chooses by their order", _BRANCHES)),
    **dict.fromkeys(_COMPARED, ("looks at values that depend on the attributes, and decides by them", _BRANCHES)),
    **dict.fromkeys(("_softmax", "_log_softmax"), ("takes a softmax of values that depend on the attributes", _ENDS)),
}
#: By the beginning of what was done: what could be done instead.
_INSTEAD = {
    "applies an activation to values of edges": _EDGES,
    "multiplies two values": _EDGES,
    "multiplies values that depend": _SUMS,
    "divides by": _NORMS,
    "takes the maximum": _SUMS,
    "takes the minimum": _SUMS,
    "cuts values off": _ACTIVATIONS,
    "jumps": _ACTIVATIONS,
    "chooses entries by": _BRANCHES,
    "draws random numbers": "dropout must be off in evaluation: F.dropout(x, p, training=self.training)",
}


def instead(problem: str) -> str:
    """What to do about something that was done, as the end of the sentence; nothing where there is no advice."""
    found = (advice for beginning, advice in _INSTEAD.items() if problem.startswith(beginning))
    return "".join(f"; {advice}" for advice in found)


def of_operation(name: str, called: Any) -> str:
    """What is wrong with an operation that nodeproof does not follow; `called` is the function that the module called."""
    if name.startswith("bitwise"):
        name = "logical_and"
    if name in _REASONS:
        return "; ".join(_REASONS[name])
    word = readable(called) or name.strip("_")
    problem = f"calls {word} on values that depend on the attributes, which nodeproof cannot follow"
    return f"{problem}; linear operations, {_ACTIVATIONS}"


def readable(called: Any) -> str:
    """The name by which a module calls a function of PyTorch."""
    overrides = pytorch().overrides
    name = overrides.resolve_name(called) if called is not None else None
    return str(name or getattr(called, "__name__", "")).removesuffix(".__get__")


def place(path: str, kind: str) -> str:
    """Where something happens: an attribute of the module, and what it is."""
    if not path:
        return f"the forward of {kind}"
    parts = path.split(".")
    text = "self" + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts)
    return f"`{text}`, {'an' if kind[:1] in 'AEIOU' or kind == 'LSTM' else 'a'} {kind}"


#: What attention does, whatever operation of it comes first.
ATTENDS = f"attends: weighs values by products of values that depend on the attributes; {_EDGES}"
#: Modules that have gates, whatever operation of theirs comes first.
_GATED = {"LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"}


def of_module(kind: str) -> str | None:
    """What is wrong with a module of this class, if that is better said at once."""
    if kind in _GATED:
        return (
            "passes values that depend on the attributes through gates, which are curved; "
            f"{_ACTIVATIONS}, and so can sums of layers (jk='cat')"
        )
    return ATTENDS if kind == "MultiheadAttention" else None
