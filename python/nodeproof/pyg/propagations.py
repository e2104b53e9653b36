"""Message-passing matrices by name, so that a model can be used on other graphs; those without a name as they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from .expression import same

Floats = npt.NDArray[np.float64]
#: Powers up to which polynomials of a named propagation are looked for.
_DEGREE = 3


def named(adjacency: Any) -> dict[str, Any]:
    """The propagations that nodeproof has names for, on a graph with this adjacency."""
    adjacency = scipy.sparse.csr_matrix(adjacency, dtype=np.float64)
    loops = scipy.sparse.identity(adjacency.shape[0], format="csr")
    degree = np.diff(adjacency.indptr).astype(np.float64)
    root = scipy.sparse.diags(1.0 / np.sqrt(degree + 1.0))
    return {
        "symmetric-gcn": (root @ (adjacency + loops) @ root).tocsr(),
        "row-normalised": (scipy.sparse.diags(1.0 / (degree + 1.0)) @ (adjacency + loops)).tocsr(),
        "row-mean": (scipy.sparse.diags(1.0 / np.maximum(degree, 1.0)) @ adjacency).tocsr(),
        "adjacency": adjacency,
    }


class Propagations:
    """The propagations of a model, each of them once.

    Args:
        adjacency: of the graph that the module was run on.
        tolerance: relative difference up to which each entry of a matrix is that of the named one.
    """

    def __init__(self, adjacency: Any, tolerance: float) -> None:
        self._named = named(adjacency)
        #: Their powers, as far as they were needed.
        self._powers: dict[tuple[str, int], Any] = {}
        self._tolerance = tolerance
        #: Names, polynomials `{"polynomial": [c₀, c₁, …], "of": name}`, and matrices.
        self.given: list[Any] = []
        self._matrices: list[Any] = []

    def place(self, matrix: Any) -> tuple[int, float]:
        """Where `matrix` stands among the propagations, and how many times it is taken."""
        name, factor = self._recognised(matrix)
        return self._interned(name, matrix if name is None or factor == 0 else matrix / factor), factor

    def of_row_sums(self, sums: Floats, among: list[int]) -> tuple[int, float]:
        """A propagation that multiplies ones to these numbers, and how many times: one of `among`, or a diagonal."""
        for place in among:
            found = np.asarray(self._matrices[place].sum(axis=1)).ravel()
            factor = _ratio(sums, found)
            if (np.abs(sums - factor * found) <= self._tolerance * np.abs(sums)).all():
                return place, factor
        return self._interned(None, scipy.sparse.diags(sums).tocsr()), 1.0

    def _interned(self, name: Any, matrix: Any) -> int:
        for place, (known, other) in enumerate(zip(self.given, self._matrices, strict=True)):
            if (name is not None and _is(known, name)) or (
                name is None and not isinstance(known, (str, dict)) and same(other, matrix)
            ):
                return place
        matrix.sum_duplicates()
        self.given.append(matrix if name is None else name)
        self._matrices.append(matrix if not isinstance(name, str) else self._matrix(name))
        return len(self.given) - 1

    def _matrix(self, name: str) -> Any:
        return (
            self._named[name]
            if name in self._named
            else scipy.sparse.identity(self._named["adjacency"].shape[0], format="csr")
        )

    def _recognised(self, matrix: Any) -> tuple[Any, float]:
        """A name or a polynomial, and a factor; no name where several fit, as on graphs in which all degrees are equal."""
        vectors = _vectors_for(matrix)
        image, scale = (matrix @ vectors).ravel(), (abs(matrix) @ np.abs(vectors)).ravel()
        for candidates in self._candidates(vectors):
            fits = []
            for name, powers in candidates:
                columns = np.stack([power.ravel() for power in powers], axis=1)
                coefficients = _tidy(np.linalg.lstsq(columns, image, rcond=None)[0])
                if (np.abs(image - columns @ coefficients) <= self._tolerance * scale + 1e-300).all():
                    found = _named(name, coefficients)
                    fits += [found] if self._agrees(matrix, *found) else []
            if fits:
                return fits[0] if len(fits) == 1 else (None, 1.0)
        return None, 1.0

    def _agrees(self, matrix: Any, name: Any, factor: float) -> bool:
        """Whether each entry of a matrix, however small, is that of a named one, or of a polynomial."""
        if name is None:
            return False
        coefficients, of = (name["polynomial"], name["of"]) if isinstance(name, dict) else ([0.0, 1.0], name)
        expected = sum(factor * c * self._power(of, k) for k, c in enumerate(coefficients) if c)
        return bool((abs(matrix - expected) - self._tolerance * abs(expected)).max() <= 0)

    def _power(self, name: str, exponent: int) -> Any:
        if exponent < 2:
            return self._matrix(name if exponent else "identity")
        if (name, exponent) not in self._powers:
            self._powers[name, exponent] = self._matrix(name) @ self._power(name, exponent - 1)
        return self._powers[name, exponent]

    def _candidates(self, vectors: Floats) -> Iterator[list[tuple[str, list[Floats]]]]:
        """Names that are tried together, simple ones first, each with z, P z, P² z, … for the vectors z."""
        yield [("identity", [vectors])]
        powers = {name: [vectors] for name in self._named}
        for _ in range(_DEGREE):
            for name, matrix in self._named.items():
                powers[name].append(matrix @ powers[name][-1])
            yield list(powers.items())


def _vectors_for(matrix: Any) -> Floats:
    """Random vectors, on which two matrices agree only if they are the same; they depend on the matrix, so that none can be
    made to agree with another on them."""
    matrix = scipy.sparse.csr_matrix(matrix)
    digest = hashlib.sha256()
    for part in (matrix.data, matrix.indices, matrix.indptr):
        digest.update(part.tobytes())
    return np.random.default_rng(np.frombuffer(digest.digest(), np.uint32)).standard_normal((matrix.shape[1], 2))


def _named(name: str, coefficients: Floats) -> tuple[Any, float]:
    """A polynomial of the propagation of that name, by the name itself if it can be, and a factor."""
    factor = float(coefficients[-1])
    if name == "identity":
        return name, factor
    if factor == 0:
        return None, 1.0
    polynomial = [float(c) for c in _tidy(coefficients / factor)]
    return name if polynomial == [0.0, 1.0] else {"polynomial": polynomial, "of": name}, factor


def _tidy(coefficients: Floats) -> Floats:
    """Coefficients without what rounding has left: numbers with few digits are meant to have few."""
    largest = np.abs(coefficients).max(initial=0.0)
    short = np.round(coefficients, 6)
    return np.where(np.abs(coefficients - short) <= 1e-13 * largest, short, coefficients)


def _is(known: Any, name: Any) -> bool:
    """Whether two names are the same, or two polynomials up to rounding."""
    if isinstance(known, dict) and isinstance(name, dict):
        one, two = known["polynomial"], name["polynomial"]
        return bool(known["of"] == name["of"] and len(one) == len(two) and np.allclose(one, two, rtol=1e-13, atol=0))
    return isinstance(known, str) and bool(known == name)


def _ratio(one: Floats, other: Floats) -> float:
    place = int(np.abs(other).argmax())
    return float(one[place] / other[place]) if other[place] else 0.0
