"""Rows of features as the core reads them.

All forms of the same matrix become the same arrays, bit for bit: CSR, CSC, COO or dense, any index
width, sorted or not, with duplicates or explicit zeros. The user's objects are never changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from .._execution.memory import empty_beside
from .matrices import (
    MAX_COLUMNS,
    check_two_dimensions,
    csr,
    is_made_here,
    known_to_scipy,
    narrow_indices,
    rebuilt,
    take_rows,
)
from .structure import check_structure

_CHUNK_ROWS = 1 << 14  # that are split or joined at once


@dataclass(frozen=True, eq=False)
class FeatureArrays:
    """Rows of X in canonical form: sorted, finite, without duplicates or zeros."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    n_features: int

    @cached_property
    def checked(self) -> _core.CheckedFeatures:
        """The same arrays for the core, checked only once."""
        return _core.CheckedFeatures(self.indptr, self.indices, self.values, self.n_features)

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def is_binary(self) -> bool:
        """Whether all stored values are equal: a row has a feature or does not."""
        return self.checked.is_binary

    def rows(self, start: int, stop: int) -> FeatureArrays:
        """A view of some consecutive rows; only the offsets are copied."""
        first, last = self.indptr[start], self.indptr[stop]
        part = FeatureArrays(
            self.indptr[start : stop + 1] - first,
            self.indices[first:last],
            self.values[first:last],
            self.n_features,
        )
        vars(part)["checked"] = self.checked.rows(start, stop)
        return part

    def leading(self, n_features: int) -> FeatureArrays:
        """The same rows with their first features only."""
        if n_features >= self.n_features:
            return self
        chosen = self.indices < n_features
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(chosen)])
        return FeatureArrays(
            before[self.indptr], self.indices[chosen], self.values[chosen], n_features
        )

    def split(self, widths: Sequence[int]) -> list[FeatureArrays]:
        """The same rows cut into ranges of features; each range is numbered from 0."""
        if len(widths) == 1:
            return [self]
        edges = np.cumsum([0, *widths], dtype=np.int32)

        def chunks() -> Iterator[tuple[slice, slice, NDArray[np.intp]]]:
            for rows in _chunks(self.n_rows):
                entries = slice(*self.indptr[[rows.start, rows.stop]].tolist())
                yield rows, entries, np.searchsorted(edges, self.indices[entries], "right") - 1

        lengths = np.zeros(len(widths), np.int64)
        for _, _, block in chunks():
            lengths += np.bincount(block, minlength=len(widths))
        parts = [_room(self, *sizes) for sizes in zip(lengths.tolist(), widths, strict=True)]
        for rows, entries, block in chunks():
            ends = self.indptr[rows.start + 1 : rows.stop + 1] - entries.start
            for i, part in enumerate(parts):
                chosen = np.flatnonzero(block == i)
                start = int(part.indptr[rows.start])
                part.indptr[rows.start + 1 : rows.stop + 1] = start + np.searchsorted(chosen, ends)
                place = slice(start, start + len(chosen))
                part.indices[place] = self.indices[entries][chosen] - edges[i]
                part.values[place] = self.values[entries][chosen]
        return parts

    @classmethod
    def joined(cls, parts: Sequence[FeatureArrays]) -> FeatureArrays:
        """Features of the same rows as one, those of each part numbered on from the last."""
        if len(parts) == 1:
            return parts[0]
        first, n_features = parts[0], sum(part.n_features for part in parts)
        out = _room(first, sum(len(part.values) for part in parts), n_features)
        np.sum([part.indptr for part in parts], axis=0, out=out.indptr)
        for rows in _chunks(first.n_rows):
            starts, before = out.indptr[rows.start : rows.stop].copy(), 0
            for part in parts:
                offsets = part.indptr[rows.start : rows.stop + 1]
                lengths, own = np.diff(offsets), slice(offsets[0], offsets[-1])
                place = np.repeat(starts - (offsets[:-1] - offsets[0]), lengths)
                place += np.arange(len(place))
                out.indices[place] = part.indices[own] + np.int32(before)
                out.values[place] = part.values[own]
                starts += lengths
                before += part.n_features
        return out

    @classmethod
    def stacked(cls, parts: Sequence[FeatureArrays]) -> FeatureArrays:
        """The rows of several parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        ends = np.cumsum([0] + [part.indptr[-1] for part in parts])
        indptr = [part.indptr[1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
        return cls(
            np.concatenate([np.zeros(1, np.int64), *indptr]),
            np.concatenate([part.indices for part in parts]),
            np.concatenate([part.values for part in parts]),
            parts[0].n_features,
        )

    def apart_from(self, X: Any) -> FeatureArrays:
        """The same rows, with offsets and feature numbers copied if they share memory with `X`.

        The core relies on them, but a callback or another thread may change the user's arrays.
        Changed values do no harm. Read-only arrays, such as those of a file, are not copied.
        """
        theirs = [getattr(X, name, None) for name in ("indptr", "indices")]
        shared = any(
            isinstance(array, np.ndarray)
            and array.flags.writeable
            and np.may_share_memory(array, own)
            for array, own in zip(theirs, (self.indptr, self.indices), strict=True)
        )
        if not shared:
            return self
        return FeatureArrays(self.indptr.copy(), self.indices.copy(), self.values, self.n_features)

    def take(self, rows: NDArray[np.int64]) -> FeatureArrays:
        """The given rows in the given order, copied."""
        return feature_arrays(take_rows(self.matrix(), rows))

    def matrix(self) -> sp.csr_array:
        """The rows as a matrix around the same arrays."""
        return csr(self.indptr, self.indices, self.values, self.n_features)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt, (FeatureArrays, self.indptr, self.indices, self.values, self.n_features)


def _chunks(n_rows: int) -> Iterator[slice]:
    """Stretches of rows; copies of one take little memory."""
    for start in range(0, max(1, n_rows), _CHUNK_ROWS):
        yield slice(start, min(start + _CHUNK_ROWS, n_rows))


def _room(rows: FeatureArrays, n_values: int, n_features: int) -> FeatureArrays:
    """Room for other features of the same rows, in files if these lie in files."""
    return FeatureArrays(
        np.zeros_like(rows.indptr),
        empty_beside(rows.indices, n_values, np.int32),
        empty_beside(rows.indices, n_values, np.float32),
        n_features,
    )


def feature_arrays(X: Any) -> FeatureArrays:
    """The core's arrays of a matrix, sparse or dense; a ValueError for values beyond float32.

    The structure of a sparse matrix must have been checked.
    """
    arrays = canonical_arrays(X)
    return _converted(X) if arrays is None else arrays


def feature_matrix(X: Any) -> sp.csr_array:
    """Any matrix in the canonical form of `FeatureArrays`; unchanged if it has that form.

    A matrix in a file is not read for this.
    """
    if is_made_here(X, np.float32):
        return X
    check_structure(X, "X")
    check_two_dimensions(X, "X")
    return feature_arrays(X).matrix()


def canonical_arrays(X: Any) -> FeatureArrays | None:
    """The core's arrays of a CSR matrix in canonical form; None for anything else.

    Canonical form: floating-point numbers, finite, sorted, without duplicates or zeros.
    """
    if not sp.issparse(X) or X.format != "csr" or X.data.dtype.kind != "f":
        return None
    indptr, indices, n_features = X.indptr, X.indices, X.shape[1]
    if n_features > MAX_COLUMNS or len(indptr) != X.shape[0] + 1:
        return None
    if indptr.dtype.kind != "i" or indices.dtype.kind != "i":
        return None
    if not indptr.ndim == indices.ndim == X.data.ndim == 1:
        return None
    return arrays_if_canonical(indptr, indices, X.data, n_features)


def arrays_if_canonical(
    indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any], n_features: int
) -> FeatureArrays | None:
    """The arrays of a CSR matrix as the core reads them; None unless they are in canonical form."""
    if indices.dtype != np.int32:
        if len(indices) and not (indices.min() >= 0 and indices.max() < n_features):
            return None
        indices = indices.astype(np.int32)
    if values.dtype != np.float32:
        with np.errstate(over="ignore"):
            values = values.astype(np.float32)
    arrays = FeatureArrays(
        np.ascontiguousarray(indptr, dtype=np.int64),
        np.ascontiguousarray(indices),
        np.ascontiguousarray(values),
        n_features,
    )
    checked = _core.CheckedFeatures.if_canonical(
        arrays.indptr, arrays.indices, arrays.values, n_features
    )
    if checked is None:
        return None
    vars(arrays)["checked"] = checked
    return arrays


def _converted(X: Any) -> FeatureArrays:
    """A copy in canonical form."""
    if sp.issparse(X) and X.format == "csr":
        # A new object around copies of the arrays, because SciPy caches flags on the user's.
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape, copy=True)
    else:
        X = sp.csr_array(X if sp.issparse(X) else known_to_scipy(np.asarray(X)))
    if X.data.dtype.kind != "f":
        X = X.astype(np.float64)  # duplicates of small integers must not overflow when added
    X.sum_duplicates()
    with np.errstate(over="ignore"):
        values = X.data.astype(np.float32)
    if not np.isfinite(values).all():
        bad = X.data[~np.isfinite(values)][0]
        raise ValueError(
            f"Input X must hold finite values that float32 can represent, of size at most "
            f"{np.finfo(np.float32).max:.3g}. Got {bad!r}."
        )
    X = sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
    X.eliminate_zeros()  # also those that are too small for float32
    return FeatureArrays(
        np.ascontiguousarray(X.indptr, dtype=np.int64),
        np.ascontiguousarray(narrow_indices(X.indices, X.shape[1], "X")),
        np.ascontiguousarray(X.data),
        X.shape[1],
    )
