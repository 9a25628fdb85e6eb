"""Dense rows: the output of an encoder for texts, or any other vectors, as rows of unit length.

They are kept as whole numbers. Sums and products of these are exact, so they have the same bits in
any order: on any processor, with any BLAS, for any number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._execution.memory import empty_beside
from .features import FeatureArrays
from .frozen_arrays import FrozenArrays

UNIT = 2**14  # the length of a row
MOST_DIMENSIONS = 4096  # as in the core
_FINE = 2**20  # the largest number of a row is rounded to this before the row is scaled
_LONGEST = UNIT + 64  # as in the core
_CHUNK = 4096  # rows converted to float64 together


@dataclass(frozen=True, eq=False)
class DenseRows(FrozenArrays):
    """Rows of length `UNIT`; a row of zeros is no evidence for any label."""

    values: NDArray[np.int16]  # rows x dimensions

    @property
    def n_rows(self) -> int:
        return len(self.values)

    @property
    def width(self) -> int:
        return int(self.values.shape[1])

    @property
    def are_short(self) -> bool:
        """Whether no row is longer than rounding makes it, as products in 32 bits need."""
        return all(
            bool(((part.values.astype(np.int64) ** 2).sum(axis=1) <= _LONGEST**2).all())
            for part in (
                self.rows(start, start + _CHUNK) for start in range(0, self.n_rows, _CHUNK)
            )
        )

    def rows(self, start: int, stop: int) -> DenseRows:
        """A view of some consecutive rows."""
        return DenseRows(self.values[start:stop])

    def take(self, rows: NDArray[np.int64]) -> DenseRows:
        """The given rows in the given order, copied."""
        return DenseRows(self.values[rows])

    def without_features(self) -> DenseRows:
        """The same number of rows of zeros."""
        return DenseRows(np.zeros_like(self.values))

    @classmethod
    def stacked(cls, parts: Sequence[DenseRows]) -> DenseRows:
        """The rows of several parts, one after the other."""
        return cls(np.concatenate([part.values for part in parts]))

    def moments(self) -> Moments:
        """Of the rows that are not zeros; the rows are read once, some at a time."""
        n, total = 0, np.zeros(self.width)
        products = np.zeros((self.width, self.width))
        for start in range(0, self.n_rows, _CHUNK):
            wide = self.values[start : start + _CHUNK].astype(np.float64)
            n += int(np.count_nonzero(wide.any(axis=1)))
            total += wide.sum(axis=0)
            products += wide.T @ wide  # exact below 2**53: up to 2**25 rows
        return Moments(n, total, products)


class Moments(NamedTuple):
    """Exact sums over rows."""

    n: int
    total: NDArray[np.float64]
    products: NDArray[np.float64]  # of each two dimensions


@dataclass(frozen=True, eq=False)
class LabelVectors:
    """The vectors of some labels, as rows."""

    labels: NDArray[np.int64]  # ascending
    rows: DenseRows

    def among(self, chosen: NDArray[np.bool_]) -> LabelVectors:
        """Those of the chosen labels; `chosen` is by label."""
        own = np.flatnonzero(chosen[self.labels])
        return LabelVectors(self.labels[own], self.rows.take(own))

    def in_columns(self, column: NDArray[np.int64]) -> LabelVectors:
        """The same for labels that have other numbers; -1 for those that are left out."""
        kept = np.flatnonzero(column[self.labels] >= 0)
        order = kept[np.argsort(column[self.labels[kept]])]
        return LabelVectors(column[self.labels[order]], self.rows.take(order))

    def by_name(self, names: Sequence[Any]) -> dict[Any, NDArray[np.int16]]:
        """The vectors of labels by their names, as `label_vectors` takes them."""
        return {names[label]: row for label, row in zip(self.labels, self.rows.values, strict=True)}


def dense_rows(
    given: Any, n_rows: int, *, width: int | None = None, name: str = "embeddings"
) -> DenseRows:
    """The rows of a matrix of numbers; a ValueError names the argument and what is wrong.

    Rows that were made so before, such as those of a store, are returned as they are.
    """
    made = given if isinstance(given, DenseRows) else None
    values = made.values if made is not None else np.asarray(given)
    if values.ndim != 2 or values.dtype.kind not in "fiu":
        found = f"{values.ndim} dimensions of type {values.dtype}"
        raise ValueError(f"{name} must be a matrix of numbers, a row for each of X. Got {found}.")
    if len(values) != n_rows:
        raise ValueError(
            f"{name} must have as many rows as X, {n_rows:,}. Got {len(values):,} rows."
        )
    if not 1 <= values.shape[1] <= MOST_DIMENSIONS:
        raise ValueError(
            f"{name} must have 1 to {MOST_DIMENSIONS:,} columns. Got {values.shape[1]:,}."
        )
    if width is not None and values.shape[1] != width:
        raise ValueError(
            f"{name} must have the {width:,} columns that the model was trained with. "
            f"Got {values.shape[1]:,}."
        )
    if made is not None:
        return made
    out = np.empty(values.shape, dtype=np.int16)
    for start in range(0, n_rows, _CHUNK):
        part = values[start : start + _CHUNK].astype(np.float64)
        if not np.isfinite(part).all():
            row = start + int(np.argmin(np.isfinite(part).all(axis=1)))
            raise ValueError(f"{name} must be finite. Got NaN or infinity in row {row}.")
        out[start : start + _CHUNK] = _scaled(part)
    return DenseRows(out)


def rows_of_features(x: FeatureArrays) -> DenseRows:
    """Rows of features as dense rows; in a file if the features lie in one."""
    width = x.n_features
    out = empty_beside(x.values, x.n_rows * width, np.int16).reshape(x.n_rows, width)
    for start in range(0, x.n_rows, _CHUNK):
        part = x.rows(start, min(start + _CHUNK, x.n_rows)).matrix()
        out[start : start + _CHUNK] = _scaled(part.toarray().astype(np.float64))
    return DenseRows(out)


def _scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows with length `UNIT`, rounded, by operations that round alike everywhere."""
    largest = np.abs(values).max(axis=1, keepdims=True)
    exact = np.rint(values / np.where(largest > 0, largest, 1.0) * _FINE)
    squares = (exact.astype(np.int64) ** 2).sum(axis=1, keepdims=True).astype(np.float64)
    return np.asarray(np.rint(exact * (UNIT / np.sqrt(np.maximum(squares, 1.0)))))


def label_vectors(
    given: Mapping[Any, Any], classes: NDArray[Any], *, width: int, name: str = "label_embeddings"
) -> LabelVectors:
    """The vectors of labels by their columns; a ValueError for labels that do not exist."""
    if not isinstance(given, Mapping):
        raise ValueError(
            f"{name} must be a mapping from labels to vectors. Got {type(given).__name__}."
        )
    column = {label: i for i, label in enumerate(classes.tolist())}
    for label in given:
        if label not in column:
            raise ValueError(f"{name} has a vector for {label!r:.80}, which is not a label.")
    labels = sorted((column[label], label) for label in given)
    vectors = []
    for _, label in labels:
        vector = np.asarray(given[label])
        if vector.shape != (width,) or vector.dtype.kind not in "fiu":
            raise ValueError(
                f"{name} must hold vectors of {width:,} numbers, as embeddings do. "
                f"Got the shape {vector.shape} and type {vector.dtype} for {label!r:.80}."
            )
        vectors.append(vector.astype(np.float64))
        if not np.isfinite(vectors[-1]).all():
            raise ValueError(f"{name} must be finite. Got NaN or infinity for {label!r:.80}.")
    matrix = np.array(vectors).reshape(len(vectors), width)
    numbers = np.array([number for number, _ in labels], dtype=np.int64)
    return LabelVectors(numbers, dense_rows(matrix, len(matrix), name=name))
