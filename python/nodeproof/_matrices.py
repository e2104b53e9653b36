"""Matrices as people have them, in the compressed row form that the compiled half reads where it lies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InputError

Triple = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]

#: Types of values that are read without a copy.
_AS_THEY_ARE = {np.dtype(kind) for kind in ("f8", "f4", "?", "i8", "i4", "i1", "u1")}


def compressed_rows(matrix: Any, what: str) -> tuple[Triple, tuple[int, int]]:
    """Values, column ids and row starts of a sparse or dense matrix, and its shape.

    Entries that are there twice are summed, as SciPy understands them. Arrays that need no change are not copied.
    """
    import scipy.sparse

    if scipy.sparse.issparse(matrix):
        rows = matrix.tocsr()
    else:
        dense = plain(matrix, what)
        if dense.ndim != 2:
            raise InputError(f"{what} must be a matrix, dense or sparse, but it has {dense.ndim} dimensions")
        check_numbers(dense.dtype, what)
        if dense.dtype == np.float16:
            dense = dense.astype(np.float32)  # SciPy has no sparse matrices of half precision.
        rows = scipy.sparse.csr_matrix(dense)
    if rows.ndim != 2:
        raise InputError(f"{what} must be a matrix, but it has {rows.ndim} dimensions")
    check_numbers(rows.dtype, what)
    try:
        rows.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"{what} is not a valid matrix in compressed row form: {error}") from error
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return (values(rows.data), ids(rows.indices), ids(rows.indptr)), (int(rows.shape[0]), int(rows.shape[1]))


def plain(given: Any, what: str = "what was given") -> npt.NDArray[Any]:
    """An array of whatever holds numbers or names: lists, sets, generators, columns of pandas, tensors."""
    if isinstance(given, np.ma.MaskedArray) and given.mask.any():
        raise InputError(f"{what} has entries that are masked; fill them first, array.filled(0)")
    if hasattr(given, "detach"):
        given = _of_tensor(given, what)
    if not (hasattr(given, "__array__") or isinstance(given, (str, Sequence))) and isinstance(given, Iterable):
        given = sorted(given) if isinstance(given, AbstractSet) else list(given)
    try:
        array = np.asarray(given)
        # Columns of pandas that may hold nothing come as objects.
        return np.array(array.tolist()) if array.dtype == object else array
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} cannot be read as an array: {error}") from error


def _of_tensor(tensor: Any, what: str) -> Any:
    """A tensor of PyTorch as an array; what NumPy has no type for, such as bfloat16, in double precision."""
    if str(getattr(tensor, "layout", "torch.strided")) != "torch.strided":
        raise InputError(f"{what} is a sparse tensor; give tensor.to_dense(), or a matrix of SciPy")
    tensor = tensor.detach().cpu()
    return (tensor.double() if str(tensor.dtype) in ("torch.bfloat16", "torch.float16") else tensor).numpy()


def check_numbers(dtype: np.dtype[Any], what: str) -> None:
    """Refuses what is not a real number."""
    if dtype.kind not in "biuf":
        verb = "have" if what.endswith("attributes") else "has"
        they = "they" if verb == "have" else "it"
        raise InputError(f"{what} {verb} type {dtype}; {they} must hold truth values, integers or real numbers")


def values(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, or its values as doubles."""
    return array if array.dtype in _AS_THEY_ARE and array.dtype.isnative else array.astype(np.float64)


def ids(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, or its ids as 64-bit integers."""
    return array if array.dtype in (np.int32, np.int64) and array.dtype.isnative else array.astype(np.int64)
