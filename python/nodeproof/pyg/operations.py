"""What operations of PyTorch make of expressions.

A rule has the name of an operation, and those of its arguments that it understands; others must be at their defaults. What
depends on the attributes comes as an `Expression`, all else as it is. `made` is a tensor of the result's shape, without
values. A rule returns an expression, or several, `None` for results that nothing but training reads.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse

from .._optional import pytorch
from .expression import Expression, Source, Term, UnfitError
from .learned import is_learned, learned

Result = Expression | list[Expression | None]
Rule = TypeVar("Rule", bound=Callable[..., Result])
_RULES: dict[str, Callable[..., Result]] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Makes a function the rule of the operations of these names."""

    def register(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, function))
        return function

    return register


def is_known(name: str) -> bool:
    """Whether there is a rule for this operation."""
    return name in _RULES


def perform(name: str, schema: Any, arguments: Sequence[Any], keywords: dict[str, Any], made: Any) -> Result:
    """The result of an operation."""
    function = _RULES[name]
    known = _parameters(function)
    given: dict[str, Any] = {"made": made} if "made" in known else {}
    for place, argument in enumerate(schema.arguments):
        default = argument.default_value
        value = arguments[place] if place < len(arguments) else keywords.get(argument.name, default)
        if argument.name in known:
            given[argument.name] = value
        elif argument.name not in _HARMLESS and (
            isinstance(value, Expression) or (value is not default and value != default)
        ):
            raise UnfitError(f"sets {argument.name}={value!r}, which nodeproof does not know here")
    return function(**given)


#: Arguments that do not change values: precision is looked at elsewhere.
_HARMLESS = {
    "device",
    "dtype",
    "half_to_float",
    "implicit",
    "layout",
    "memory_format",
    "non_blocking",
    "pin_memory",
    "stride",
}


@cache
def _parameters(function: Callable[..., Result]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


def numbers(value: Any) -> npt.NDArray[Any]:
    """A constant as an array of doubles of its own: the module may change the tensor later."""
    torch = pytorch()
    if isinstance(value, torch.Tensor):
        return learned(np.array(value.detach().to(torch.float64).numpy()), value)
    return np.asanyarray(value, dtype=np.float64)


def matrix(value: Any) -> Any:
    """A constant matrix, sparse if the tensor is."""
    torch = pytorch()
    if isinstance(value, Expression):
        raise UnfitError("multiplies two values that both depend on the attributes")
    if isinstance(value, np.ndarray):
        return value
    if value.layout is torch.strided:
        return numbers(value)
    entries = value.to_sparse_coo().coalesce()
    rows, columns = entries.indices().numpy()
    return scipy.sparse.csr_matrix((numbers(entries.values()), (rows, columns)), shape=tuple(value.shape))


def _expression(value: Any, like: Expression) -> Expression:
    """A constant as an expression that can be added to another."""
    if isinstance(value, Expression):
        return value
    values = numbers(value)
    shape = np.broadcast_shapes(values.shape, like.shape)
    return Expression.constant(values, shape, like.led(len(shape)))


def _line(index: Any, dimension: int) -> npt.NDArray[np.int64]:
    """Indices along a dimension, which must be the same in all others."""
    if isinstance(index, Expression):
        raise UnfitError("chooses entries by values that depend on the attributes")
    for other in range(index.dim()):
        if other != dimension % index.dim() and index.shape[other] > 1:
            first = index.narrow(other, 0, 1)
            if index.stride(other) != 0 and not bool((index == first).all()):
                raise UnfitError("sends the units of one node to different nodes")
            index = first
    return np.asarray(index.reshape(-1).numpy(), dtype=np.int64)


def _scattering(places: npt.NDArray[np.int64], size: int) -> Any:
    """The matrix, size × places, that adds up what goes to the same place."""
    shape = (size, len(places))
    return scipy.sparse.csr_matrix((np.ones(len(places)), (places, np.arange(len(places)))), shape=shape)


# Sums and products.


@rule("add")
def _add(self: Any, other: Any, alpha: Any = 1) -> Expression:
    one, two = (_expression(value, like) for value, like in ((self, other), (other, self)))
    return one.plus(two if alpha == 1 else two.scaled(numbers(alpha)))


@rule("sub")
def _sub(self: Any, other: Any, alpha: Any = 1) -> Expression:
    return _add(self, other, -alpha)


@rule("rsub")
def _rsub(self: Any, other: Any, alpha: Any = 1) -> Expression:
    return _add(other, self, -alpha)


@rule("neg")
def _neg(self: Expression) -> Expression:
    return self.scaled(numbers(-1.0))


@rule("mul")
def _mul(self: Any, other: Any) -> Expression:
    if isinstance(self, Expression) and isinstance(other, Expression):
        raise UnfitError("multiplies two values that both depend on the attributes")
    one: Expression
    one, factor = (self, other) if isinstance(self, Expression) else (other, self)
    return one.scaled(numbers(factor))


@rule("div")
def _div(self: Expression, other: Any) -> Expression:
    if not isinstance(other, Expression):
        return self.scaled(1.0 / numbers(other))
    least = other.of_divisor()
    attributes = self.of_attributes() if isinstance(self, Expression) else None
    if least is None or attributes is None:
        raise UnfitError("divides by a number that depends on the attributes")
    return Expression.whole(replace(attributes, least=least), self.rows, self.shape, self.sides)


@rule("mm")
def _mm(self: Any, mat2: Any) -> Expression:
    product: Expression = (
        self.linear(1, matrix(mat2).T) if isinstance(self, Expression) else mat2.linear(0, matrix(self))
    )
    return product


@rule("mv")
def _mv(self: Any, vec: Any, made: Any) -> Expression:
    product: Expression = (
        self.linear(1, matrix(vec)[None]) if isinstance(self, Expression) else vec.linear(0, matrix(self))
    )
    return product.viewed(tuple(made.shape))


@rule("bmm")
def _bmm(self: Any, mat2: Any, made: Any) -> Expression:
    if made.shape[0] != 1:
        raise UnfitError("multiplies several matrices at once (bmm); write one product for each")

    def first(value: Any) -> Any:
        if isinstance(value, Expression):
            return value.viewed(value.shape[1:])
        # As numbers, of which it is known where they come from.
        return matrix(value)[0]

    one, two = first(self), first(mat2)
    return _mm(one, two).viewed(tuple(made.shape))


@rule("addmm", "_sparse_addmm")
def _addmm(self: Any, mat1: Any, mat2: Any, beta: Any = 1, alpha: Any = 1) -> Expression:
    if isinstance(mat1, Expression) or isinstance(mat2, Expression):
        product = _mm(mat1, mat2).scaled(numbers(alpha))
    else:
        product = alpha * (mat1 @ mat2)
    return _add(product, _mul(self, beta) if isinstance(self, Expression) else numbers(self) * beta)


@rule("_sparse_mm")
def _sparse_mm(sparse: Any, dense: Any) -> Expression:
    return _mm(sparse, dense)


@rule("_sparse_mm_reduce_impl")
def _sparse_mm_reduce(self: Any, other: Expression, reduce: str) -> Result:
    if reduce not in ("sum", "mean"):
        raise UnfitError(REDUCTIONS.get(reduce, f"reduces by {reduce!r}"))
    product = _mm(self, other)
    if reduce == "mean":
        received = np.diff(self.crow_indices().numpy())
        product = product.scaled(1.0 / np.maximum(received, 1)[:, None])
    return [product, None]


@rule("sum")
def _sum(self: Expression, made: Any, dim: Any = None, keepdim: bool = False) -> Expression:
    for dimension in _dimensions(self, dim):
        self = self.linear(dimension, np.ones((1, self.shape[dimension])))
    return self.viewed(tuple(made.shape))


@rule("linalg_vector_norm")
def _vector_norm(self: Expression, made: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False) -> Expression:
    if ord != 1 or not all(_is_positive(term) for term in self.terms):
        raise UnfitError("divides by a number that depends on the attributes")
    return _sum(self, made, dim)


@rule("mean")
def _mean(self: Expression, made: Any, dim: Any = None, keepdim: bool = False) -> Expression:
    size = np.prod([self.shape[dimension] for dimension in _dimensions(self, dim)])
    return _sum(self, made, dim).scaled(numbers(1.0 / size))


def _dimensions(of: Expression, dim: Any) -> list[int]:
    given = range(len(of.shape)) if dim is None or dim == [] else [dim] if isinstance(dim, int) else dim
    return [dimension % len(of.shape) for dimension in given]


@rule("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training")
def _batch_norm(
    input: Any,
    weight: Any,
    bias: Any,
    eps: float,
    running_mean: Any = None,
    running_var: Any = None,
    training: bool = False,
    momentum: Any = None,
) -> Result:
    if training or running_mean is None or running_var is None:
        raise UnfitError("divides by a variance that depends on the attributes, as it keeps none of its training")
    if any(isinstance(value, Expression) for value in (weight, bias, running_mean, running_var)):
        raise UnfitError("multiplies two values that both depend on the attributes")
    factor = 1.0 / np.sqrt(numbers(running_var) + eps)
    factor = factor if weight is None else factor * numbers(weight)
    shift = -numbers(running_mean) * factor
    shift = shift if bias is None else shift + numbers(bias)
    channels = (-1,) + (1,) * (len(input.shape) - 2)
    return [_add(input.scaled(factor.reshape(channels)), shift.reshape(channels)), None, None]


# Sums over edges.


@rule("scatter_add")
def _scatter_add(self: Any, dim: int, index: Any, src: Any) -> Expression:
    return _scatter(self, dim, index, src)


@rule("index_add")
def _index_add(self: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Expression:
    source = source.scaled(numbers(alpha)) if isinstance(source, Expression) else source * alpha
    return _scatter(self, dim, index, source)


def _scatter(into: Any, dim: int, index: Any, source: Any) -> Expression:
    if not isinstance(source, Expression):
        source = Expression.constant(numbers(source), tuple(source.shape), into.sides)
    dim = dim % len(source.shape)
    places = _line(index, dim)
    of_all = index.dim() == 1 or tuple(index.shape) == source.shape
    across = [
        (own, size) for place, (own, size) in enumerate(zip(into.shape, source.shape, strict=True)) if place != dim
    ]
    if len(places) != source.shape[dim] or not of_all or any(own != size for own, size in across):
        raise UnfitError(
            "adds up a part of its values only; select what is added first, and give it the width of the sums"
        )
    added = source.linear(dim, _scattering(places, into.shape[dim]))
    return _add(into, added)


@rule("scatter_reduce")
def _scatter_reduce(self: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True) -> Expression:
    if reduce not in ("sum", "mean"):
        raise UnfitError(REDUCTIONS.get(reduce, f"reduces by {reduce!r}"))
    places = _line(index, dim)
    received = np.bincount(places, minlength=self.shape[dim])
    shape = [-1 if place == dim % len(self.shape) else 1 for place in range(len(self.shape))]
    kept = np.ones_like(received) if include_self else (received == 0).astype(np.int64)
    own = _mul(self, kept.reshape(shape)) if isinstance(self, Expression) else numbers(self) * kept.reshape(shape)
    total = _scatter(own, dim, index, src)
    return total.scaled((1.0 / np.maximum(received + kept, 1)).reshape(shape)) if reduce == "mean" else total


@rule("segment_reduce")
def _segment_reduce(
    data: Expression,
    reduce: str,
    lengths: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Expression:
    if reduce not in ("sum", "mean"):
        raise UnfitError(REDUCTIONS.get(reduce, f"reduces by {reduce!r}"))
    if initial not in (None, 0):
        raise UnfitError("starts sums over edges from another number than 0")
    sizes = np.diff(offsets.numpy()) if lengths is None else lengths.numpy()
    scattering = _scattering(np.repeat(np.arange(len(sizes)), sizes), len(sizes))
    if reduce == "mean":
        scattering = scipy.sparse.diags(1.0 / np.maximum(sizes, 1)) @ scattering
    return data.linear(axis, scattering)


#: What the ways to reduce are called that are not linear.
REDUCTIONS = {
    "amax": "takes the maximum of values that depend on the attributes",
    "amin": "takes the minimum of values that depend on the attributes",
    "max": "takes the maximum of values that depend on the attributes",
    "min": "takes the minimum of values that depend on the attributes",
    "prod": "multiplies values that depend on the attributes with each other",
}


# Shapes, and parts.


@rule("alias", "clone", "contiguous", "detach", "lift_fresh", "positive", "_to_copy", "to")
def _same(self: Expression, copy: Any = None) -> Expression:
    return self


@rule("view", "_unsafe_view", "reshape", "_reshape_alias", "squeeze", "unsqueeze", "flatten", "unflatten")
def _view(
    self: Expression,
    made: Any,
    size: Any = None,
    dim: Any = None,
    shape: Any = None,
    dtype: Any = None,
    stride: Any = None,
) -> Expression:
    if dtype is not None:
        raise UnfitError("takes the bits of its values for numbers of another kind; convert them with to(dtype)")
    if stride is not None and not made.is_contiguous():
        raise UnfitError("reads its values in another order than they are stored in; use reshape and transpose")
    return self.viewed(tuple(made.shape))


@rule("expand", "expand_as")
def _expand(self: Expression, made: Any, size: Any = None, other: Any = None) -> Expression:
    return self.broadcast(tuple(made.shape), self.led(made.dim()))


@rule("t")
def _t(self: Expression) -> Expression:
    return self.permuted(range(len(self.shape))[::-1])


@rule("transpose")
def _transpose(self: Expression, dim0: int, dim1: int) -> Expression:
    order = list(range(len(self.shape)))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return self.permuted(order)


@rule("permute")
def _permute(self: Expression, dims: list[int]) -> Expression:
    return self.permuted([dimension % len(self.shape) for dimension in dims])


@rule("slice")
def _slice(self: Expression, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Expression:
    dim = dim % len(self.shape)
    places = np.arange(self.shape[dim])[slice(start, end, step)]
    return self if len(places) == self.shape[dim] else self.take(dim, places)


@rule("select")
def _select(self: Expression, dim: int, index: int, made: Any) -> Expression:
    dim = dim % len(self.shape)
    return self.take(dim, np.array([index % self.shape[dim]])).viewed(tuple(made.shape))


@rule("split", "split_with_sizes", "unbind")
def _split(self: Expression, made: Any, split_size: Any = None, split_sizes: Any = None, dim: int = 0) -> Result:
    dim, start = dim % len(self.shape), 0
    parts: list[Expression | None] = []
    for part in made:
        size = part.shape[dim] if part.dim() == len(self.shape) else 1
        parts.append(self.take(dim, np.arange(start, start + size)).viewed(tuple(part.shape)))
        start += size
    return parts


@rule("index_select")
def _index_select(self: Expression, dim: int, index: Any) -> Expression:
    return self.take(dim % len(self.shape), _line(index, 0))


@rule("index")
def _index(self: Any, indices: list[Any]) -> Expression:
    torch = pytorch()
    given = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    if not isinstance(self, Expression) or any(isinstance(index, Expression) for _, index in given):
        raise UnfitError("chooses entries by values that depend on the attributes")
    if len(given) != 1 or given[0][1].dim() != 1:
        raise UnfitError("chooses single entries of a matrix")
    dimension, index = given[0]
    if index.dtype in (torch.bool, torch.uint8):
        index = index.nonzero()[:, 0]
    return self.take(dimension, _line(index, 0) % self.shape[dimension])


@rule("gather")
def _gather(self: Any, dim: int, index: Any) -> Expression:
    if not isinstance(self, Expression):
        raise UnfitError("chooses entries by values that depend on the attributes")
    dim = dim % len(self.shape)
    places = _line(index, dim)
    if any(size != own for place, (size, own) in enumerate(zip(index.shape, self.shape, strict=True)) if place != dim):
        raise UnfitError("chooses single entries of a matrix")
    return self.take(dim, places)


@rule("flip")
def _flip(self: Expression, dims: list[int]) -> Expression:
    for dimension in dims:
        self = self.take(dimension % len(self.shape), np.arange(self.shape[dimension])[::-1])
    return self


@rule("repeat")
def _repeat(self: Expression, repeats: list[int]) -> Expression:
    self = self.viewed((1,) * (len(repeats) - len(self.shape)) + self.shape)
    for dimension, times in enumerate(repeats):
        if times != 1:
            self = self.take(dimension, np.tile(np.arange(self.shape[dimension]), times))
    return self


@rule("cat")
def _cat(tensors: list[Any], dim: int = 0) -> Expression:
    like = next(part for part in tensors if isinstance(part, Expression))
    tensors = [part for part in tensors if tuple(part.shape) != (0,)]  # which PyTorch leaves out
    dim, total, start = dim % len(like.shape), sum(part.shape[dim] for part in tensors), 0
    result: Expression | None = None
    for part in tensors:
        size = part.shape[dim]
        embedding = _scattering(np.arange(start, start + size), total)
        if not isinstance(part, Expression):
            part = Expression.constant(numbers(part), tuple(part.shape), like.sides)
        part, start = part.linear(dim, embedding), start + size
        result = part if result is None else result.plus(part)
    assert result is not None
    return result


@rule("stack")
def _stack(tensors: list[Any], dim: int = 0) -> Expression:
    dim = dim % (len(tensors[0].shape) + 1)

    def wide(part: Any) -> Any:
        shape = (*part.shape[:dim], 1, *part.shape[dim:])
        return part.viewed(shape) if isinstance(part, Expression) else part.reshape(shape)

    return _cat([_on_columns(wide(part), dim) for part in tensors], dim)


def _on_columns(part: Any, dimension: int) -> Any:
    """The same with a dimension of size 1 on the side of the columns."""
    if not isinstance(part, Expression):
        return part
    return Expression(part.shape, part.sides[:dimension] + "c" + part.sides[dimension + 1 :], part.terms)


@rule("copy")
def _copy(self: Any, src: Any) -> Expression:
    shape = tuple(self.shape)
    if not isinstance(src, Expression):
        return Expression.constant(numbers(src), shape, self.sides)
    return src.broadcast(shape, src.led(len(shape)))


@rule("zero")
def _zero(self: Expression) -> Expression:
    return Expression(self.shape, self.sides, ())


@rule("fill")
def _fill(self: Any, value: Any) -> Expression:
    if isinstance(value, Expression):
        return value.broadcast(tuple(self.shape), value.led(len(self.shape)))
    return Expression.constant(numbers(value), self.shape, self.sides)


@rule("where")
def _where(condition: Any, self: Any, other: Any) -> Expression:
    if isinstance(condition, Expression):
        raise UnfitError(_DECIDES)
    chosen = np.asarray(numbers(condition)) != 0
    return _add(_at(chosen, self), _at(~chosen, other))


@rule("masked_fill")
def _masked_fill(self: Any, mask: Any, value: Any) -> Expression:
    return _where(mask, value, self)


@rule("index_put")
def _index_put(self: Any, indices: list[Any], values: Any, accumulate: bool = False) -> Expression:
    torch = pytorch()
    if any(isinstance(index, Expression) for index in indices):
        raise UnfitError(_DECIDES)
    if accumulate or math.prod(values.shape) != 1:
        raise UnfitError("writes several values to a part of a tensor; use torch.where with a mask, or write one value")
    places = torch.zeros(tuple(self.shape), dtype=torch.bool)
    places[tuple(slice(None) if index is None else index for index in indices)] = True
    value = values.viewed(()) if isinstance(values, Expression) else values.reshape(())
    return filled_at(self, np.asarray(places.numpy()), value)


@rule("index_fill")
def _index_fill(self: Any, dim: int, index: Any, value: Any) -> Expression:
    if isinstance(index, Expression):
        raise UnfitError(_DECIDES)
    indices = [None] * (dim % len(self.shape)) + [index.reshape(-1)]
    return _index_put(self, indices, value if isinstance(value, Expression) else pytorch().as_tensor(value))


def filled_at(into: Any, places: npt.NDArray[np.bool_], value: Any) -> Expression:
    """What becomes of a tensor some of whose entries are set to one value."""
    try:
        kept = _at(~places, into)
    except UnfitError:
        if not isinstance(into, Expression):
            raise
        raise UnfitError("writes to some units of some nodes; write whole rows, or whole columns") from None
    return _add(_at(places, value), kept)


def _at(places: npt.NDArray[np.bool_], value: Any) -> Any:
    """A value at some places, and 0 elsewhere."""
    if isinstance(value, Expression):
        return value.scaled(places.astype(np.float64))
    filled = numbers(value)
    if not np.isfinite(filled).all():
        raise UnfitError("fills in numbers that are not finite")
    return filled * places


#: What looks at values does, said as the end of a sentence.
_DECIDES = "looks at values that depend on the attributes, and decides by them"


# Activations.


def activated(of: Expression, slope: float) -> Expression:
    """`x` where x > 0, and slope times x elsewhere."""
    if not 0 <= slope < 1:
        raise UnfitError(f"has slope {slope:g} below 0; slopes from 0 up to, but not including, 1 can be imported")
    sources = [term.source for term in of.terms if term.source is not None]
    if not sources:
        values = sum((term.left @ term.right for term in of.terms), np.zeros((of.rows, of.columns)))
        values = np.asarray(values)
        flat = Expression.constant(np.where(values > 0, values, slope * values), values.shape, "rc")
        return Expression(of.shape, of.sides, flat.terms)
    if of.rows != of.terms[[term.source is not None for term in of.terms].index(True)].left.shape[1]:
        raise UnfitError("applies an activation to values of edges, or of a part of the nodes")
    if all(_is_positive(term) for term in of.terms):
        return of
    return Expression.whole(Source(of.columns, of, slope), of.rows, of.shape, of.sides)


def _is_positive(term: Term) -> bool:
    """Whether a term is never negative."""
    if is_learned(term.right):
        return False
    right = term.right.data if scipy.sparse.issparse(term.right) else term.right
    source = term.source
    rectified = source is None or (not source.is_signed if source.of is None else source.slope == 0.0)
    return bool(rectified and (term.left.data >= 0).all() and (np.asarray(right) >= 0).all())


def _is_zero(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == 0


@rule("relu")
def _relu(self: Expression) -> Expression:
    return activated(self, 0.0)


@rule("clamp")
def _clamp(self: Expression, min: Any = None, max: Any = None) -> Expression:
    if max is None and isinstance(min, (int, float)) and 0 < min <= 1 and self.of_row_sums() is not None:
        # What rows of 0 and 1 are divided by: if a row is not 0, its sum is at least 1.
        return Expression.whole(Source(1, self, least=float(min)), self.rows, self.shape, self.sides)
    if not _is_zero(min) or max is not None:
        raise UnfitError("cuts values off at a number other than 0")
    return activated(self, 0.0)


@rule("clamp_min")
def _clamp_min(self: Expression, min: Any) -> Expression:
    return _clamp(self, min)


@rule("threshold")
def _threshold(self: Expression, threshold: Any, value: Any) -> Expression:
    if not (_is_zero(threshold) and _is_zero(value)):
        raise UnfitError("jumps at a threshold")
    return activated(self, 0.0)


@rule("leaky_relu")
def _leaky_relu(self: Expression, negative_slope: float = 0.01) -> Expression:
    return activated(self, float(negative_slope))


@rule("rrelu_with_noise")
def _rrelu(
    self: Expression, noise: Any, lower: float = 0.125, upper: float = 1 / 3, training: bool = False
) -> Expression:
    if training:
        raise UnfitError("draws random numbers")
    return activated(self, (float(lower) + float(upper)) / 2)


@rule("_prelu_kernel", "prelu")
def _prelu(self: Expression, weight: Any) -> Expression:
    if isinstance(weight, Expression):
        raise UnfitError("has a slope that depends on the attributes")
    slopes = numbers(weight)
    if (slopes == slopes.flat[0]).all():
        return activated(self, float(slopes.flat[0]))
    for slope in slopes.flat:
        if not 0 <= slope < 1:
            activated(self, float(slope))
    # β x + (1 − β) relu(x), unit by unit.
    return self.scaled(slopes).plus(activated(self, 0.0).scaled(1.0 - slopes))


@rule("native_dropout", "dropout")
def _dropout(input: Expression, p: float, train: Any) -> Result:
    if train is not False and p != 0:
        raise UnfitError("draws random numbers")
    return [input, None]
