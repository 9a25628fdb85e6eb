"""Sparse matrices in the form that the core reads, without needless copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .structure import check_structure

_ROWS_AT_ONCE = 1 << 16
MAX_COLUMNS = 2**31 - 9  # the core's limit


def csr(indptr: Any, indices: Any, values: Any, n_columns: int) -> Any:
    """A ``csr_array`` around canonical arrays, without copying them.

    SciPy's constructor would widen int32 indices to match an int64 indptr, and so copy all of a
    memory-mapped matrix. Offsets that fit int32 are narrowed, at the cost of one number per row,
    because scikit-learn's linear models do not take int64 offsets.
    """
    if len(indices) < 2**31:
        indptr = np.asarray(indptr, dtype=np.int32)
    matrix = sparse.csr_array((len(indptr) - 1, n_columns), dtype=values.dtype)
    matrix.indptr, matrix.indices, matrix.data = indptr, indices, values
    matrix.has_canonical_format = True  # saves SciPy a pass over the data
    matrix.made_by_ldsm = True  # saves our own checks, which would read all of a mapped matrix
    return matrix


def label_csr(indptr: Any, indices: Any, n_labels: int) -> Any:
    """Rows of labels as a 0/1 ``csr_array``; int32, so that products do not overflow."""
    return csr(indptr, indices, np.ones(len(indices), dtype=np.int32), n_labels)


def label_matrix(Y: Any, name: str = "Y") -> sparse.csr_array:
    """Any 0/1 matrix as canonical CSR of int32 without stored zeros; Y is never changed.

    Errors call it `name`.
    """
    if is_made_here(Y, np.int32) and (Y.data == 1).all():
        return Y
    check_structure(Y, name)
    check_two_dimensions(Y, name)
    if not sparse.issparse(Y):
        Y = np.asarray(Y)
        if Y.dtype == object:
            Y = _as_zeros_and_ones(Y, name)
        elif Y.dtype.kind not in "biuf":
            raise invalid(name, f"{Y.dtype} of shape {Y.shape}", "a matrix of 0 and 1")
    rows = canonical_csr(Y if sparse.issparse(Y) else known_to_scipy(Y))
    if not rows.data.all():
        rows = rows.copy()
        rows.eliminate_zeros()
    if (wrong := rows.data != 1).any():
        raise invalid(name, rows.data[wrong][0].item(), "a matrix of 0 and 1")
    return label_csr(rows.indptr, narrow_indices(rows.indices, rows.shape[1], name), rows.shape[1])


def canonical_csr(matrix: Any) -> sparse.csr_array:
    """CSR, sorted and without duplicates; a copy if it must be changed."""
    rows = sparse.csr_array(matrix)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def invalid(name: str, value: Any, allowed: str) -> ValueError:
    """The error for an invalid argument."""
    shown = value if isinstance(value, str) and " " in value else repr(value)
    return ValueError(f"The {name!r} argument must be {allowed}. Got {shown} instead.")


def take_rows(matrix: Any, rows: NDArray[np.int64]) -> Any:
    """The given rows in the given order, in memory; only these rows of a mapped matrix are read."""
    starts = np.asarray(matrix.indptr, dtype=np.int64)[rows]
    lengths = matrix.indptr[rows + 1] - starts
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    indices = np.empty(indptr[-1], dtype=matrix.indices.dtype)
    values = np.empty(indptr[-1], dtype=matrix.data.dtype)
    for first in range(0, len(rows), _ROWS_AT_ONCE):  # bounds the memory for positions
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


def map_columns(matrix: Any, mapping: NDArray[np.integer[Any]], n_columns: int) -> Any:
    """Column ``j`` becomes column ``mapping[j]``, or is dropped if that is -1."""
    moved = mapping[matrix.indices]
    kept = moved >= 0
    offsets = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr]
    result = sparse.csr_array(
        (matrix.data[kept], moved[kept].astype(np.int32), offsets),
        shape=(matrix.shape[0], n_columns),
    )
    result.sort_indices()
    return csr(result.indptr, result.indices.astype(np.int32, copy=False), result.data, n_columns)


def rebuilt(kind: Callable[..., Any], *fields: Any) -> Any:
    """An object of arrays from another process, which some backends deliver unaligned."""
    return kind(*(np.require(f, None, "A") if isinstance(f, np.ndarray) else f for f in fields))


def is_made_here(matrix: Any, dtype: Any) -> bool:
    """Whether a matrix was made by `csr` with this dtype and can be used unchanged."""
    return bool(getattr(matrix, "made_by_ldsm", False) and matrix.dtype == dtype)


def check_two_dimensions(matrix: Any, name: str) -> None:
    if np.ndim(matrix) != 2 and getattr(matrix, "ndim", 0) != 2:
        raise ValueError(f"{name} must be a matrix of rows and columns.")


def known_to_scipy(X: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in a type that sparse matrices support: native, and not float16."""
    dtype = X.dtype.newbyteorder("=")
    return X.astype(np.float32 if dtype == np.float16 else dtype, copy=False)


def _as_zeros_and_ones(Y: NDArray[Any], name: str) -> NDArray[np.int32]:
    """An array of objects that equal 0 or 1."""
    is_one = Y == 1
    wrong = ~(is_one | (Y == 0))
    if wrong.any():
        raise invalid(name, Y[wrong][0], "a matrix of 0 and 1")
    return np.asarray(is_one, dtype=np.int32)


def narrow_indices(indices: Any, n_columns: int, name: str) -> Any:
    if n_columns > MAX_COLUMNS:
        raise ValueError(f"{name} must have at most {MAX_COLUMNS} columns. Got {n_columns}.")
    return indices.astype(np.int32, copy=False)
