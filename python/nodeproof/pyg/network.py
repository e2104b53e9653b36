"""Layers of terms from what was followed through a module."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from ..errors import VerificationError
from ..model import Layer, Model
from ..model import Term as ModelTerm
from .expression import LARGEST, Expression, Source, Term, same, work
from .learned import current_tape, is_learned, product
from .propagations import Propagations

Floats = npt.NDArray[np.float64]
#: Propagations one behind another that are multiplied out; more of them become layers without activation.
_DEEPEST = 3
#: A product of propagations is kept if it has at most so many times the entries of its first factor …
_FILL = 40
#: … or at most so many.
_SMALL = 100_000


def model_of(logits: Expression, attributes: int, adjacency: Any, tolerance: float, kind: str) -> Model:
    """The model that computes `logits`, nodes × classes, from attributes of this kind."""
    return _Builder(attributes, Propagations(adjacency, tolerance), kind).model(logits)


@dataclass
class _Builder:
    attributes: int
    propagations: Propagations
    kind: str
    layers: list[Layer] = field(default_factory=list)
    #: Sources that are layers already, with the matrix that was pulled into the layer, if one was, and its place.
    _places: list[tuple[Source, Any, int]] = field(default_factory=list)

    def model(self, logits: Expression) -> Model:
        self._append(logits, 1.0)
        if not any(term.source == "attributes" for layer in self.layers for term in layer.terms):
            raise VerificationError("the module returns something that does not depend on data.x")
        tape = current_tape()
        if tape is not None:
            tape.layers = self.layers
        return Model.of_layers(self.attributes, self.propagations.given, self.layers, kind=self.kind)

    def _append(self, of: Expression, slope: float, step_by_step: bool = False) -> int:
        """Makes a layer, and first those that it reads; returns its place.

        `step_by_step`, propagations one behind another become layers of their own.
        """
        terms = None if step_by_step else _flattened(of)
        if terms is None:
            step_by_step, terms = True, list(of.terms)
        made = _joined([self._read(term, step_by_step) for term in _telling(terms)])
        constants = [term for term in terms if term.source is None]
        bias, ones = self._constants(constants, of.columns, [term.propagation for term in made])
        layer_terms = made + ones
        if not layer_terms:
            # A layer of a bias only: a term that is nothing.
            layer_terms = [
                ModelTerm("ones", self.propagations.place(_diagonal(np.ones(of.rows)))[0], np.zeros((1, of.columns)))
            ]
        _check_finite([bias, *(np.asarray(term.weight) for term in layer_terms)])
        self.layers.append(Layer(layer_terms, bias, _activation(slope)))
        return len(self.layers) - 1

    def _read(self, term: Term, step_by_step: bool) -> ModelTerm:
        """A term of a layer, with what it reads."""
        left, right = term.left, term.right
        _check_finite([left.data])
        assert term.source is not None
        source: str | int = "attributes"
        if term.source.of is not None and term.source.least is not None:
            raise VerificationError("the module cuts sums of the attributes off at a number other than 0")
        if term.source.of is not None:
            source, right = self._place(term.source, right, step_by_step)
        place, factor = self.propagations.place(left)
        return ModelTerm(source, place, _weight(right, factor))

    def _place(self, source: Source, right: Any, step_by_step: bool) -> tuple[int, Any]:
        """The layer of a source, and what is left to multiply it by."""
        pulled = source.is_linear and not _is_scalar(right) and right.shape[1] < source.width
        for known, factor, place in self._places:
            if known is source and (factor is None or (pulled and same(factor, right))):
                return place, right if factor is None else _identity(right.shape[1])
        assert source.of is not None
        of = source.of
        if pulled:
            of = Expression((of.rows, of.columns), "rc", of.terms).linear(1, right.T)
        place = self._append(of, source.slope, step_by_step and source.is_linear)
        self._places.append((source, right if pulled else None, place))
        return place, _identity(right.shape[1]) if pulled else right

    def _constants(self, terms: list[Term], columns: int, among: list[int]) -> tuple[Floats, list[ModelTerm]]:
        """The bias, and terms of the constant 1 where a constant is not the same at all nodes."""
        bias, ones = np.zeros(columns), []
        for sums, row in _rows_of(terms):
            if (sums == sums[0]).all():
                bias = bias + sums[0] * row
            else:
                _check_finite([sums])
                place, factor = self.propagations.of_row_sums(sums, among)
                ones.append(ModelTerm("ones", place, factor * row.reshape(1, columns)))
        return bias, _joined(ones)


def _telling(terms: list[Term]) -> list[Term]:
    """Terms that read something, without those that are 0, unless all are."""
    reading = [term for term in terms if term.source is not None]
    return [term for term in reading if _some(term.left) and _some(term.right)] or reading[:1]


def _some(matrix: Any) -> bool:
    return bool((matrix.data if scipy.sparse.issparse(matrix) else matrix).any())


def _rows_of(terms: list[Term]) -> list[tuple[Floats, Floats]]:
    """Constants as sums of products, a column (by node) times a row (by unit), those that differ by rounding as one."""
    found: list[tuple[Floats, Floats]] = []
    for term in terms:
        left, right = term.left.toarray(), term.right.toarray() if scipy.sparse.issparse(term.right) else term.right
        for column, row in zip(left.T, right, strict=True):
            if np.ptp(column) <= 1e-14 * np.abs(column).max(initial=0.0):
                column = np.full_like(column, column.mean())
            if column.any() and row.any():
                found.append((column, row))
    return found


def _flattened(of: Expression) -> list[Term] | None:
    """Terms with sums that were kept multiplied out; `None` if they are too deep, or would fill the matrices."""
    if of.depth >= _DEEPEST:
        return None
    terms: list[Term] = []
    for term in of.terms:
        if term.source is None or not term.source.is_linear:
            terms.append(term)
            continue
        assert term.source.of is not None
        inner = _flattened(term.source.of)
        if inner is None:
            return None
        for other in inner:
            if work(term.left, other.left) > LARGEST:
                return None
            left = term.left @ other.left
            if left.nnz > max(_SMALL, _FILL * max(term.left.nnz, other.left.shape[0])):
                return None
            terms.append(Term(other.source, left, product(other.right, term.right)))
    flat = Expression((of.rows, of.columns), "rc", ())
    for term in terms:
        flat = flat.plus(replace(flat, terms=(term,)))
    return list(flat.terms)


def _joined(terms: list[ModelTerm]) -> list[ModelTerm]:
    """Terms that read the same through the same propagation as one."""
    joined: dict[tuple[Any, int], ModelTerm] = {}
    for term in terms:
        key = (term.source, term.propagation)
        weight = term.weight if key not in joined else _added(joined[key].weight, term.weight)
        joined[key] = term._replace(weight=weight)
    return list(joined.values())


def _added(one: Any, two: Any) -> Any:
    for number, matrix in ((one, two), (two, one)):
        if np.ndim(number) == 0 and np.ndim(matrix) == 2:
            return matrix + number * np.eye(len(matrix))
    return one + two


def _weight(right: Any, factor: float) -> Any:
    """A weight for a model: a number where it is a multiple of the identity."""
    if _is_scalar(right):
        return factor * float(right.diagonal()[0])
    dense = right.toarray() if scipy.sparse.issparse(right) else right
    return factor * dense if is_learned(dense) else np.ascontiguousarray(factor * dense)


def _is_scalar(right: Any) -> bool:
    """Whether a matrix is a multiple of the identity."""
    if not scipy.sparse.issparse(right) or right.shape[0] != right.shape[1]:
        return False
    diagonal = right.diagonal()
    return right.nnz == len(diagonal) and bool((diagonal == diagonal[0]).all() and diagonal[0] != 0)


def _activation(slope: float) -> Any:
    return "none" if slope == 1.0 else "relu" if slope == 0.0 else ("leaky-relu", slope)


def _identity(size: int) -> Any:
    return scipy.sparse.identity(size, format="csr")


def _diagonal(values: Floats) -> Any:
    return scipy.sparse.diags(values).tocsr()


def _check_finite(arrays: list[Floats]) -> None:
    if not all(np.isfinite(array).all() for array in arrays):
        raise VerificationError(
            "the module computes numbers that are not finite from its weights and edges; did its training diverge, or does a "
            "node have degree 0 or a negative one?"
        )
