"""Where dense rows lie: their mean, their covariance, and how names of labels lie beside them.

Sums and products are of whole numbers that float64 holds exactly, and everything else is done
number by number: the same bits in any order, on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._arrays.dense_rows import UNIT, DenseRows, LabelVectors
from .._arrays.labels import LabelArrays

Floats = NDArray[np.float64]

# Chosen on held-out training rows (docs/experiments.md).
RIDGE = 0.03  # as a share of the mean variance
# Means are rounded to multiples of a step, the inverse to 20 bits: then products are exact.
STEP = 2.0**-19
BITS = 20
LABELS = 16_384  # whose rows are summed together
_TOGETHER = 512  # of these that are worked on at once
_COARSE = 2.0**-16  # a step of means whose products are summed over all labels


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Dense rows with their labels, and perhaps which of them do not count."""

    rows: DenseRows
    y: LabelArrays
    apart_from: LabelledRows | None = None

    def without(self, rows: NDArray[np.int64]) -> LabelledRows:
        """The same without some of the rows."""
        return replace(self, apart_from=LabelledRows(self.rows.take(rows), self.y.take(rows)))

    def sums(self, labels: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The sums of the rows of some labels, whole numbers; how many rows there are."""
        slot = np.full(self.y.n_labels, -1, dtype=np.int32)
        slot[labels] = np.arange(len(labels))
        sums, counts = _core.sums_by_label(
            self.rows.values, self.y.indptr, self.y.indices, slot, len(labels)
        )
        if self.apart_from is not None:
            fewer, own = self.apart_from.sums(labels)
            sums -= fewer
            counts -= own
        return sums, counts

    def each(self, labels: NDArray[np.int64]) -> Iterator[tuple[slice, Any, Any]]:
        """The same for a few labels at a time, whose numbers stay in the processor's cache."""
        for start in range(0, len(labels), LABELS):
            sums, counts = self.sums(labels[start : start + LABELS])
            for at in range(0, len(sums), _TOGETHER):
                part = slice(at, at + _TOGETHER)
                yield slice(start + at, start + at + _TOGETHER), sums[part], counts[part]


@dataclass(frozen=True, eq=False)
class Space:
    """Where the rows of a fit lie: their mean, and the inverse of their covariance and a ridge."""

    mean: Floats  # in steps
    precision: Floats  # of 20 bits

    @classmethod
    def of(cls, rows: DenseRows) -> Space:
        moments = rows.moments()
        n, width = max(1, moments.n), rows.width
        share = moments.total / n
        covariance = moments.products / n - share[:, None] * share
        variance = sum(np.diag(covariance).tolist()) / width
        # Fewer rows than dimensions do not show how all of them vary.
        ridge = max(variance, 1.0) * (RIDGE + width / n)
        covariance[np.diag_indices(width)] += ridge
        mean = rounded(moments.total / (n * UNIT))
        return cls(mean, mirrored(in_bits(inverse(covariance) * float(UNIT) ** 2)))

    def deviations(self, sums: NDArray[Any], counts: NDArray[np.int64]) -> Floats:
        """The means of some labels' rows, less the mean of all; zeros for a label without rows."""
        means = rounded(sums / (UNIT * np.maximum(counts, 1))[:, None] - self.mean)
        means[counts == 0] = 0
        return means


@dataclass(frozen=True, eq=False)
class NameMap:
    """Predicts the mean of a label's rows from the vector of its name.

    Names are written unlike rows, and lie elsewhere. This is ridge regression over the labels that
    have both, each of which counts once.
    """

    names: Floats  # their mean, in steps
    means: Floats  # that of the rows of their labels, likewise
    slope: Floats  # of 20 bits

    @classmethod
    def of(
        cls, space: Space, shown: LabelledRows, names: LabelVectors, min_rows: int = 1
    ) -> NameMap | None:
        """From the rows of labels; None if no label has rows and a name."""
        width, n = shown.rows.width, 0
        name_sum, mean_sum = np.zeros((2, width))
        name_products, cross_products = np.zeros((2, width, width))
        for part, sums, counts in shown.each(names.labels):
            used = counts >= max(1, min_rows)
            own = names.rows.values[part][used].astype(np.float64)
            theirs = np.rint(space.deviations(sums[used], counts[used]) / _COARSE)
            n += len(own)
            name_sum += own.sum(axis=0)
            mean_sum += theirs.sum(axis=0)
            name_products += own.T @ own  # exact for up to 2**21 labels, as are the others
            cross_products += own.T @ theirs
        if n == 0:
            return None
        share = name_sum / n
        covariance = name_products / n - share[:, None] * share
        cross = cross_products / n - share[:, None] * (mean_sum / n)
        spread = sum(np.diag(covariance).tolist()) / width
        # Fewer labels than dimensions do not show how all of them vary.
        covariance[np.diag_indices(width)] += max(spread, 1.0) * (RIDGE + width / n)
        solved = in_bits(mirrored(inverse(covariance))) @ in_bits(cross)
        slope = in_bits(solved * (_COARSE * UNIT))
        return cls(rounded(share / UNIT), rounded(mean_sum / n * _COARSE), slope)

    def predicted(self, names: DenseRows) -> Floats:
        """The predicted means, less the mean of all rows."""
        return rounded(rounded(names.values / UNIT - self.names) @ self.slope + self.means)


def inverse(matrix: Floats) -> Floats:
    """Of a symmetric positive matrix, by elimination: each number alone, in a fixed order."""
    out = matrix.copy()
    for k in range(len(out)):
        pivot = 1 / out[k, k]
        column = out[:, k].copy()
        row = column * pivot
        out -= column[:, None] * row
        out[k] = out[:, k] = row
        out[k, k] = -pivot
    return np.asarray(-out)


def mirrored(matrix: Floats) -> Floats:
    """The lower triangle, and the same above it."""
    return np.asarray(np.tril(matrix) + np.tril(matrix, -1).T)


def in_bits(matrix: Floats) -> Floats:
    """Rounded to multiples of a power of two, at most 2**20 of them."""
    step = 2.0 ** (np.frexp(np.abs(matrix).max())[1] - BITS)
    return np.asarray(np.rint(matrix / step) * step)


def rounded(means: Floats) -> Floats:
    return np.asarray(np.rint(means / STEP) * STEP)
