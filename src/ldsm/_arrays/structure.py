"""Refuse sparse matrices whose arrays contradict each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def check_structure(matrix: Any, name: str) -> None:
    """Refuse a sparse matrix whose arrays contradict each other.

    SciPy checks the arrays when a matrix is made, but not when they are changed later, and its
    routines then rely on them.
    """
    if not sp.issparse(matrix):
        return
    if matrix.ndim != 2:
        raise ValueError(f"The sparse {name} must have two dimensions. Got shape {matrix.shape}.")
    if matrix.format not in ("csr", "csc", "bsr", "coo"):
        _check_parts(matrix, name)
        matrix = matrix.tocoo()
    data = matrix.data
    if matrix.format == "coo":
        for axis, indices in enumerate((matrix.row, matrix.col)):
            _check_indices(indices, len(data), matrix.shape[axis], name)
        return
    n_rows, n_columns = matrix.shape
    if matrix.format == "bsr":
        height, width = _block_size(matrix, name)
        n_rows, n_columns = n_rows // height, n_columns // width
    elif data.ndim != 1:
        raise ValueError(f"The entries of the sparse {name} must be a list. Got {data.ndim}-D.")
    major, minor = (n_columns, n_rows) if matrix.format == "csc" else (n_rows, n_columns)
    indptr = matrix.indptr
    _check_integers(indptr, name)
    if len(indptr) != major + 1 or indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]):
        raise ValueError(
            f"The offsets of the sparse {name} must be {major + 1} numbers that start at 0 and "
            f"never fall. Got {indptr[:5].tolist()}{'...' if len(indptr) > 5 else ''}."
        )
    if indptr[-1] != len(data):
        raise ValueError(
            f"The offsets of the sparse {name} must end at its number of entries, {len(data)}. "
            f"Got {indptr[-1]}."
        )
    _check_indices(matrix.indices, len(data), minor, name)


def _check_parts(matrix: Any, name: str) -> None:
    """Check that the parts of a matrix of lists or diagonals fit, so that it can be converted."""
    if matrix.format == "dia":
        _check_integers(matrix.offsets, name)
        fits = matrix.data.ndim == 2 and len(matrix.offsets) == len(matrix.data)
    elif matrix.format == "lil":
        lengths = [[len(row) for row in part] for part in (matrix.rows, matrix.data)]
        fits = lengths[0] == lengths[1] and len(lengths[0]) == matrix.shape[0]
    else:
        return
    if not fits:
        raise ValueError(f"The parts of the sparse {name} must be of the same lengths.")


def _block_size(matrix: Any, name: str) -> tuple[int, int]:
    shape = matrix.data.shape[1:]
    fits = len(shape) == 2 and min(shape) > 0
    if not fits or matrix.shape[0] % shape[0] or matrix.shape[1] % shape[1]:
        raise ValueError(
            f"The blocks of the sparse {name} must divide its shape {matrix.shape}. Got {shape}."
        )
    return int(shape[0]), int(shape[1])


def _check_integers(numbers: NDArray[Any], name: str) -> None:
    if numbers.ndim != 1 or numbers.dtype.kind != "i":
        raise ValueError(
            f"The offsets and indices of the sparse {name} must be lists of signed integers. "
            f"Got {numbers.dtype} of shape {numbers.shape}."
        )


def _check_indices(indices: NDArray[Any], n_entries: int, limit: int, name: str) -> None:
    _check_integers(indices, name)
    if len(indices) != n_entries:
        raise ValueError(
            f"The sparse {name} must have as many indices as entries, {n_entries}. "
            f"Got {len(indices)}."
        )
    if n_entries and not (indices.min() >= 0 and indices.max() < limit):
        bad = indices.max() if indices.min() >= 0 else indices.min()
        raise ValueError(f"The indices of the sparse {name} must lie in [0, {limit}). Got {bad}.")
