"""Sparse rows in the form the core reads, made and cut without copies nobody needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .sparse import check_structure

_ROWS_AT_ONCE = 1 << 16
MAX_COLUMNS = 2**31 - 9  # what the core can number


def csr(indptr: Any, indices: Any, values: Any, n_columns: int) -> Any:
    """A ``csr_array`` around canonical arrays as they are.

    SciPy's constructor would widen int32 indices together with an int64 indptr, and so copy a
    memory-mapped matrix whole. Offsets that fit int32 are narrowed, which costs one number a row:
    scikit-learn's linear models refuse int64 offsets.
    """
    if len(indices) < 2**31:
        indptr = np.asarray(indptr, dtype=np.int32)
    matrix = sparse.csr_array((len(indptr) - 1, n_columns), dtype=values.dtype)
    matrix.indptr, matrix.indices, matrix.data = indptr, indices, values
    matrix.has_canonical_format = True  # spares SciPy a pass over the data to find out
    matrix.made_by_ldsm = True  # and us the check: a matrix in a file is not read whole for it
    return matrix


def label_csr(indptr: Any, indices: Any, n_labels: int) -> Any:
    """Rows of labels as a 0/1 ``csr_array``; int32, so that products count without wrapping."""
    return csr(indptr, indices, np.ones(len(indices), dtype=np.int32), n_labels)


def feature_matrix(X: Any) -> Any:
    """Any matrix as canonical float32 CSR with int32 indices; the argument is never changed."""
    if _is_contract(X, np.float32, "X"):
        return X
    _check_two_dimensions(X, "X")
    with np.errstate(over="ignore"):
        X = sparse.csr_array(X, dtype=np.float32, copy=True)
    X.sum_duplicates()
    if not np.isfinite(X.data).all():
        raise ValueError("X must hold finite numbers that fit float32. Got NaN, inf or larger.")
    return csr(X.indptr, _narrow(X.indices, X.shape[1], "X"), X.data, X.shape[1])


def label_matrix(Y: Any) -> Any:
    """Any 0/1 matrix as canonical CSR without explicit zeros; the argument is never changed."""
    if _is_contract(Y, np.int32, "Y") and (Y.data == 1).all():
        return Y
    _check_two_dimensions(Y, "Y")
    Y = sparse.csr_array(Y, copy=True)
    Y.eliminate_zeros()
    if not (Y.data == 1).all():
        wrong = Y.data[Y.data != 1][0]
        raise ValueError(f"Y must hold 0 and 1 only. Got {wrong} instead.")
    Y.sum_duplicates()
    return label_csr(Y.indptr, _narrow(Y.indices, Y.shape[1], "Y"), Y.shape[1])


def take_rows(matrix: Any, rows: NDArray[np.int64]) -> Any:
    """The given rows in the given order, in memory; reads no others of a memory-mapped matrix."""
    starts = np.asarray(matrix.indptr, dtype=np.int64)[rows]
    lengths = matrix.indptr[rows + 1] - starts
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    indices = np.empty(indptr[-1], dtype=matrix.indices.dtype)
    values = np.empty(indptr[-1], dtype=matrix.data.dtype)
    for first in range(0, len(rows), _ROWS_AT_ONCE):  # bounds the table of positions
        chunk = slice(first, first + _ROWS_AT_ONCE)
        begin, end = indptr[first], indptr[min(first + _ROWS_AT_ONCE, len(rows))]
        positions = np.arange(begin, end) + np.repeat(
            starts[chunk] - indptr[:-1][chunk], lengths[chunk]
        )
        indices[begin:end] = matrix.indices[positions]
        values[begin:end] = matrix.data[positions]
    return csr(indptr, indices, values, matrix.shape[1])


def stack(matrices: Sequence[Any], n_columns: int) -> Any:
    """The rows of all matrices, one below the other."""
    ends = np.cumsum([0] + [len(m.indices) for m in matrices])
    indptr = [np.zeros(1, dtype=np.int64)]
    indptr += [m.indptr[1:] + end for m, end in zip(matrices, ends, strict=False)]
    return csr(
        np.concatenate(indptr),
        np.concatenate([m.indices for m in matrices]),
        np.concatenate([m.data for m in matrices]),
        n_columns,
    )


def map_columns(matrix: Any, mapping: NDArray[np.int64], n_columns: int) -> Any:
    """Column ``j`` becomes column ``mapping[j]``, or goes if that is -1."""
    moved = mapping[matrix.indices]
    kept = moved >= 0
    offsets = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr]
    result = sparse.csr_array(
        (matrix.data[kept], moved[kept].astype(np.int32), offsets),
        shape=(matrix.shape[0], n_columns),
    )
    result.sort_indices()
    return csr(result.indptr, result.indices.astype(np.int32, copy=False), result.data, n_columns)


def _is_contract(matrix: Any, dtype: Any, name: str) -> bool:
    if not getattr(matrix, "made_by_ldsm", False):
        check_structure(matrix, name)
    return (
        isinstance(matrix, sparse.csr_array)
        and matrix.dtype == dtype
        and matrix.indices.dtype == np.int32
        and matrix.indices.flags.aligned
        and matrix.data.flags.aligned
        and bool(matrix.has_canonical_format)
    )


def _check_two_dimensions(matrix: Any, name: str) -> None:
    if np.ndim(matrix) != 2 and getattr(matrix, "ndim", 0) != 2:
        raise ValueError(f"{name} must be a matrix of rows and columns.")


def _narrow(indices: Any, n_columns: int, name: str) -> Any:
    if n_columns > MAX_COLUMNS:
        raise ValueError(f"{name} must have at most {MAX_COLUMNS} columns. Got {n_columns}.")
    return indices.astype(np.int32, copy=False)
