"""Where dense rows lie: their mean, their covariance, and how names of labels lie beside them.

Sums and products are of whole numbers that float64 holds exactly, and everything else is done
number by number: the same bits in any order, on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._features.dense import UNIT, DenseRows, LabelVectors

Floats = NDArray[np.float64]

# Chosen on held-out training rows (docs/experiments.md).
RIDGE = 0.03  # as a share of the mean variance
# Means are rounded to multiples of a step, the inverse to 20 bits: then products are exact.
STEP = 2.0**-19
BITS = 20
LABELS = 16_384  # worked on together
_COARSE = 2.0**-16  # a step of means whose products are summed over all labels


@dataclass(frozen=True, eq=False)
class Space:
    """Where the rows of a fit lie: their mean, and the inverse of their covariance and a ridge."""

    mean: Floats  # in steps
    precision: Floats  # of 20 bits

    @classmethod
    def of(cls, rows: DenseRows) -> Space:
        values = rows.values[rows.values.any(axis=1)]
        rows = DenseRows(values)
        n, width = max(1, rows.n_rows), rows.width
        total = rows.values.sum(axis=0, dtype=np.int64).astype(np.float64)
        mean = rounded(total / (n * UNIT))
        share = total / n
        covariance = rows.products() / n - share[:, None] * share
        variance = sum(np.diag(covariance).tolist()) / width
        # Fewer rows than dimensions do not show how all of them vary.
        ridge = max(variance, 1.0) * (RIDGE + width / n)
        covariance[np.diag_indices(width)] += ridge
        return cls(mean, mirrored(in_bits(inverse(covariance) * float(UNIT) ** 2)))

    def deviations(self, groups: Any, rows: DenseRows) -> tuple[Floats, Floats]:
        """The means of groups of rows, sparse rows of ones, less the mean of all; their sizes."""
        telling = rows.values.any(axis=1)
        sizes = np.asarray(groups @ telling.astype(np.float64))[:, None]
        means = rows.sums(groups) / (UNIT * np.maximum(sizes, 1))
        return np.where(sizes > 0, rounded(means - self.mean), 0.0), sizes


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
        cls, space: Space, groups: Any, rows: DenseRows, names: LabelVectors, min_rows: int = 1
    ) -> NameMap | None:
        """From the rows of labels, for each a sparse row of ones; None if none has both."""
        width, n = rows.width, 0
        name_sum, mean_sum = np.zeros((2, width))
        name_products, cross_products = np.zeros((2, width, width))
        for start in range(0, len(names.labels), LABELS):
            part = slice(start, start + LABELS)
            means, sizes = space.deviations(groups[names.labels[part]], rows)
            used = sizes[:, 0] >= min_rows
            own = names.rows.values[part][used].astype(np.float64)
            theirs = np.rint(means[used] / _COARSE)
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
