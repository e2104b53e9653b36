"""What a tensor is that depends on the attributes: a sum of products `L s R`, for every input.

Row (a node, an edge) and column (a unit) of such a matrix are spread over the dimensions of the tensor: `sides` says of each
dimension whether it numbers rows ("r") or columns ("c"); within a side the last dimension runs fastest. Linear operations
act on L or on R, and activations make new sources s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from .learned import is_learned, product, same_recipe

Floats = npt.NDArray[np.float64]
#: Matrices with more entries are not made: more than a certificate could use.
LARGEST = 50_000_000


class UnfitError(Exception):
    """A tensor that is no sum of products `L s R`; the message says what was done, as the end of a sentence."""


@dataclass(frozen=True, eq=False)
class Source:
    """What terms read, nodes × width: the attributes, an activation, or a sum of terms that is kept as it is."""

    #: Number of columns.
    width: int
    #: What it is computed from; `None` for the attributes.
    of: Expression | None = None
    #: Below 0 the activation multiplies by this; 1 where there is none.
    slope: float = 1.0
    #: How many sums without activation lie one behind another, this one included.
    depth: int = 0
    #: Whether attributes may be negative.
    is_signed: bool = False
    #: Of sums of rows: none of them is less. Of the attributes: they are divided by such sums.
    least: float | None = None

    @property
    def is_linear(self) -> bool:
        """Whether it is a sum without an activation."""
        return self.of is not None and self.slope == 1.0 and self.least is None


@dataclass(frozen=True, eq=False)
class Term:
    """One product `L s R`; without a source just `L R`, a constant."""

    source: Source | None
    #: L, rows × rows of the source.
    left: Any
    #: R, columns of the source × columns; sparse until it is multiplied by a dense matrix.
    right: Any


@dataclass(frozen=True, eq=False)
class Expression:
    """A sum of terms in the shape of a tensor."""

    shape: tuple[int, ...]
    sides: str
    terms: tuple[Term, ...]

    @classmethod
    def whole(cls, source: Source, rows: int, shape: tuple[int, ...], sides: str) -> Expression:
        """The source itself, in this shape."""
        term = Term(source, _identity(rows), _identity(source.width))
        return cls(shape, sides, (term,))

    @classmethod
    def constant(cls, values: npt.NDArray[Any], shape: tuple[int, ...], sides: str) -> Expression:
        """Numbers, broadcast to this shape."""
        rows, columns = _sizes(shape, sides)
        by_row, by_column, table = _split(values, shape, sides)
        if table is not None:
            left, right = scipy.sparse.csr_matrix(table), _identity(columns)
        else:
            left = scipy.sparse.csr_matrix(np.broadcast_to(by_row, rows).reshape(rows, 1))
            right = np.broadcast_to(by_column, columns).reshape(1, columns)
        return cls(shape, sides, (Term(None, left, right),) if left.nnz and np.any(by_column) else ())

    @property
    def rows(self) -> int:
        """Number of rows."""
        return _sizes(self.shape, self.sides)[0]

    @property
    def columns(self) -> int:
        """Number of columns."""
        return _sizes(self.shape, self.sides)[1]

    def reads(self) -> set[float | None]:
        """What the attributes that it reads are divided by: their sums, or this if it is more; `None` for nothing."""
        found: set[float | None] = set()
        for source in (term.source for term in self.terms):
            if source is not None:
                found |= {source.least} if source.of is None else source.of.reads()
        return found

    def of_attributes(self) -> Source | None:
        """The attributes, if it is these as they are."""
        source = self.terms[0].source if len(self.terms) == 1 else None
        if source is None or source.of is not None or source.least is not None:
            return None
        term = self.terms[0]
        is_whole = same(term.left, _identity(self.rows)) and same(term.right, _identity(source.width))
        return source if is_whole else None

    def of_row_sums(self) -> Source | None:
        """The attributes, if it is the sums of their rows."""
        source = self.terms[0].source if len(self.terms) == 1 and self.columns == 1 else None
        if source is None or source.of is not None or source.least is not None or source.is_signed:
            return None
        term = self.terms[0]
        are_sums = same(term.left, _identity(self.rows)) and _are_ones(term.right)
        return source if are_sums else None

    def of_divisor(self) -> float | None:
        """What the sums of the rows of attributes are at least, if it is those, the same for all columns."""
        source = self.terms[0].source if len(self.terms) == 1 else None
        if source is None or source.of is None or source.least is None:
            return None
        term = self.terms[0]
        are_sums = same(term.left, _identity(self.rows)) and _are_ones(term.right)
        return source.least if are_sums else None

    def same_everywhere(self) -> float | None:
        """The number that all entries are, whatever the attributes; `None` if there is none, or a parameter decides it."""
        if any(term.source is not None or is_learned(term.right) for term in self.terms):
            return None
        table = sum((_dense(term.left @ term.right) for term in self.terms), np.zeros((self.rows, self.columns)))
        found = np.unique(np.asarray(table))
        return float(found[0]) if len(found) == 1 else None

    def plus(self, other: Expression) -> Expression:
        """The sum; both are broadcast to a common shape."""
        shape = np.broadcast_shapes(self.shape, other.shape)
        sides = _common_sides(self, other, len(shape))
        one, two = self.broadcast(shape, sides), other.broadcast(shape, sides)
        return replace(one, terms=_merged(one.terms + two.terms))

    def broadcast(self, shape: tuple[int, ...], sides: str) -> Expression:
        """The same, with dimensions of size 1 repeated."""
        missing = len(shape) - len(self.shape)
        result = Expression((1,) * missing + self.shape, sides[:missing] + self.sides, self.terms)
        alike = [side if size == 1 else own for side, own, size in zip(sides, result.sides, result.shape, strict=True)]
        result = replace(result, sides="".join(alike))
        for dimension, size in enumerate(shape):
            if result.shape[dimension] != size:
                result = result.take(dimension, np.zeros(size, dtype=np.int64))
        return result

    def led(self, dimensions: int) -> str:
        """Sides with so many dimensions, new ones in front."""
        missing = dimensions - len(self.sides)
        first = "c" if "r" in self.sides else "r"
        return (first + "c" * missing)[:missing] + self.sides

    def scaled(self, values: npt.NDArray[Any]) -> Expression:
        """Multiplied entry by entry with numbers; both are broadcast to a common shape."""
        shape = np.broadcast_shapes(self.shape, values.shape)
        result = self.broadcast(shape, self.led(len(shape)))
        sides = result.sides
        by_row, by_column, table = _split(values, shape, sides)
        if table is not None:
            raise UnfitError("multiplies entry by entry with a matrix that differs from node to node and unit to unit")
        return replace(
            result,
            terms=_merged([Term(t.source, _rows(t.left, by_row), _columns(t.right, by_column)) for t in result.terms]),
        )

    def take(self, dimension: int, places: npt.NDArray[np.int64]) -> Expression:
        """Entries at these places of a dimension, as often as they are named."""
        size = self.shape[dimension]
        entries = (np.ones(len(places)), places, np.arange(len(places) + 1))
        return self.linear(dimension, scipy.sparse.csr_matrix(entries, shape=(len(places), size)))

    def linear(self, dimension: int, matrix: Any) -> Expression:
        """`matrix`, new size × old size, times each vector along a dimension."""
        side = self.sides[dimension]
        if side == "r" and not _is_diagonal(matrix) and self._is_propagated():
            return self.kept().linear(dimension, matrix)
        one, this = _around(self.shape, self.sides, dimension)
        matrix = scipy.sparse.kron(_identity(one), matrix, format="csr") if one > 1 else matrix
        matrix = scipy.sparse.kron(matrix, _identity(this), format="csr") if this > 1 else matrix
        if side == "r":
            rows = _sparse(matrix)
            if any(work(rows, term.left) > LARGEST for term in self.terms):
                raise UnfitError("takes so many nodes together that the matrix does not fit into memory")
            terms = [Term(t.source, rows @ t.left, t.right) for t in self.terms]
        else:
            terms = [Term(t.source, t.left, product(t.right, matrix.T)) for t in self.terms]
        size = matrix.shape[0] // (one * this)
        shape = (*self.shape[:dimension], size, *self.shape[dimension + 1 :])
        return Expression(shape, self.sides, _merged(terms))

    def _is_propagated(self) -> bool:
        """Whether it has a row for each node, some of which take others in."""
        of_sources = [term.left for term in self.terms if term.source is not None]
        return all(left.shape[0] == left.shape[1] for left in of_sources) and not all(map(_is_diagonal, of_sources))

    def kept(self) -> Expression:
        """The same as a source of its own, so that powers of propagations need not be multiplied out."""
        return Expression.whole(Source(self.columns, self, depth=1 + self.depth), self.rows, self.shape, self.sides)

    @property
    def depth(self) -> int:
        """How many sums that were kept lie one behind another in it."""
        return max((term.source.depth for term in self.terms if term.source is not None), default=0)

    def permuted(self, order: Sequence[int]) -> Expression:
        """Dimensions in another order."""
        shape, sides = tuple(self.shape[i] for i in order), "".join(self.sides[i] for i in order)
        moved = {}
        for side in "rc":
            own = [i for i in range(len(self.shape)) if self.sides[i] == side]
            places = np.arange(math.prod(self.shape[i] for i in own)).reshape([self.shape[i] for i in own])
            moved[side] = places.transpose([own.index(i) for i in order if self.sides[i] == side]).ravel()
        terms = self.terms
        if (np.diff(moved["r"]) < 0).any():
            terms = tuple(Term(t.source, t.left[moved["r"]], t.right) for t in terms)
        if (np.diff(moved["c"]) < 0).any():
            terms = tuple(Term(t.source, t.left, t.right[:, moved["c"]]) for t in terms)
        return Expression(shape, sides, terms)

    def viewed(self, shape: tuple[int, ...]) -> Expression:
        """The same entries in another shape."""
        sides, old, new = [], list(zip(self.shape, self.sides, strict=True)), list(shape)
        while old or new:
            block, sizes = [old.pop(0)] if old else [], [new.pop(0)] if new else []
            while math.prod(size for size, _ in block) != math.prod(sizes):
                if math.prod(size for size, _ in block) < math.prod(sizes):
                    block.append(old.pop(0))
                else:
                    sizes.append(new.pop(0))
            kinds = {side for size, side in block if size != 1} or {side for _, side in block} or {"c"}
            if len(kinds) > 1:
                raise UnfitError("puts nodes and units into one dimension")
            sides += [max(kinds)] * len(sizes)
        return Expression(shape, "".join(sides), self.terms)


def _sizes(shape: tuple[int, ...], sides: str) -> tuple[int, int]:
    rows = math.prod(size for size, side in zip(shape, sides, strict=True) if side == "r")
    return rows, math.prod(size for size, side in zip(shape, sides, strict=True) if side == "c")


def _around(shape: tuple[int, ...], sides: str, dimension: int) -> tuple[int, int]:
    """How many entries of the same side lie before and behind a dimension."""
    own = [size if side == sides[dimension] else 1 for size, side in zip(shape, sides, strict=True)]
    return math.prod(own[:dimension]), math.prod(own[dimension + 1 :])


def _common_sides(one: Expression, two: Expression, dimensions: int) -> str:
    """Sides of a sum; a dimension of size 1 goes along with the other operand's."""
    sides = []
    for place in range(-dimensions, 0):
        found = [e for e in (one, two) if len(e.shape) >= -place]
        large = {e.sides[place] for e in found if e.shape[place] != 1} or {found[0].sides[place]}
        if len(large) > 1:
            raise UnfitError("adds values of nodes to values of units")
        sides.append(large.pop())
    return "".join(sides)


def _split(values: npt.NDArray[Any], shape: tuple[int, ...], sides: str) -> tuple[Any, Any, Floats | None]:
    """Numbers of this shape as (factor by row, factor by column, none), or, if they are no such product, as a matrix."""
    values = np.asanyarray(values, dtype=np.float64)
    values = values.reshape((1,) * (len(shape) - values.ndim) + values.shape)
    for axis, stride in enumerate(values.strides):
        if stride == 0:
            values = values[(slice(None),) * axis + (slice(0, 1),)]
    small = {side: math.prod(n for n, s in zip(values.shape, sides, strict=True) if s == side) for side in "rc"}
    order = [i for i, s in enumerate(sides) if s == "r"] + [i for i, s in enumerate(sides) if s == "c"]
    rows, columns = _sizes(shape, sides)
    if small["r"] > 1 and small["c"] > 1:
        table = np.broadcast_to(values, shape).transpose(order).reshape(rows, columns)
        if (table == table[:1]).all():
            return np.float64(1.0), table[0], None
        if (table == table[:, :1]).all():
            return table[:, 0], np.float64(1.0), None
        return None, np.float64(1.0), table
    if values.size == 0:
        return np.float64(0.0), np.float64(1.0), None
    if values.size == 1:
        # Numbers go to L, so that R stays what it is, and terms that differ by a factor become one; what is learned goes to R.
        number = values.reshape(())
        return (np.float64(1.0), number, None) if is_learned(number) else (number, np.float64(1.0), None)
    widened = [n if (side == "r") == (small["r"] > 1) else 1 for n, side in zip(shape, sides, strict=True)]
    vector = np.broadcast_to(values, widened).transpose(order).ravel()
    return (vector, np.float64(1.0), None) if small["r"] > 1 else (np.float64(1.0), vector, None)


def _identity(size: int) -> Any:
    return scipy.sparse.identity(size, format="csr")


def _sparse(matrix: Any) -> Any:
    return matrix.tocsr() if scipy.sparse.issparse(matrix) else scipy.sparse.csr_matrix(matrix)


def _sum(one: Any, two: Any) -> Any:
    if is_learned(one) or is_learned(two):
        return _dense(one) + _dense(two)
    total = one + two
    return total if scipy.sparse.issparse(total) else np.asarray(total)


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if scipy.sparse.issparse(matrix) else matrix


def _is_diagonal(matrix: Any) -> bool:
    if matrix.shape[0] != matrix.shape[1]:
        return False
    rows = _sparse(matrix)
    return rows.nnz <= rows.shape[0] and bool((rows.tocoo().row == rows.indices).all())


def work(one: Any, two: Any) -> int:
    """How many products of numbers the product of two sparse matrices has; it has at most so many entries."""
    return int(np.diff(two.indptr)[one.indices].sum())


def _rows(left: Any, factors: Any) -> Any:
    if np.ndim(factors) == 0 and factors == 1:
        return left
    return scipy.sparse.diags(np.broadcast_to(factors, left.shape[0])).tocsr() @ left


def _columns(right: Any, factors: Any) -> Any:
    if is_learned(right) or is_learned(factors):
        return _dense(right) * factors
    if np.ndim(factors) == 0 and factors == 1:
        return right
    if scipy.sparse.issparse(right):
        return (right @ scipy.sparse.diags(np.broadcast_to(factors, right.shape[1]))).tocsr()
    return right * factors


def _merged(terms: Sequence[Term]) -> tuple[Term, ...]:
    """The same sum with fewer terms: those of a source that have one factor in common become one."""
    result: list[Term] = []
    for term in terms:
        for place, other in enumerate(result):
            if other.source is not term.source:
                continue
            if same(other.right, term.right):
                result[place] = Term(term.source, other.left + term.left, term.right)
                break
            if same(other.left, term.left):
                result[place] = Term(term.source, term.left, _sum(other.right, term.right))
                break
        else:
            result.append(term)
    return tuple(result)


def _are_ones(matrix: Any) -> bool:
    """Whether a matrix, sparse or dense, has nothing but ones."""
    return bool((_dense(matrix) == 1.0).all())


def same(one: Any, two: Any) -> bool:
    """Whether two matrices, sparse or dense, are the same to the bit."""
    if one is two:
        return True
    if is_learned(one) or is_learned(two):
        return same_recipe(one, two)
    if one.shape != two.shape or scipy.sparse.issparse(one) != scipy.sparse.issparse(two):
        return False
    if not scipy.sparse.issparse(one):
        return bool(np.array_equal(one, two))
    return bool(one.nnz == two.nnz and (one != two).nnz == 0)
