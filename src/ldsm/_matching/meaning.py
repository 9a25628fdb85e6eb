"""A matcher: labels whose vectors go with a row's dense vector, which an encoder has made.

The vector of a label is ridge regression in closed form: the mean of its rows, its name counted as
a few of them, less the mean of all rows, times the inverse of their covariance plus a ridge. The
score is that of linear discriminant analysis. So a fit needs sums alone, and no row is kept.

Sums and products are of whole numbers that float64 holds exactly, and everything else is done
number by number: the same bits in any order, on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._arrays.matrices import label_csr
from .._features.dense import UNIT, DenseRows, LabelVectors
from .._storage.fields import Array, Sizes, Table
from .._trees.columns import Moved
from .part import (
    LARGEST,
    Allowed,
    Cancel,
    HeldOut,
    Matcher,
    Places,
    Ranking,
    Scores,
    TrainedMatcher,
    Training,
    Update,
)
from .shortlists import Shortlists

if TYPE_CHECKING:
    from typing_extensions import Self

Floats = NDArray[np.float64]

# Chosen on held-out training rows (docs/experiments.md).
RIDGE = 0.03  # as a share of the mean variance
# A label's name, or without one the mean of all rows, counts as this many of its rows.
NAME_ROWS = 3
# Means are rounded to multiples of a step, the inverse to 20 bits: then products are exact.
_STEP = 2.0**-19
_BITS = 20
_LABELS = 16_384  # worked on together
_LARGEST_CODE = 127


@dataclass(frozen=True, eq=False)
class Meaning(Matcher):
    """The vectors of labels; a label without rows and name has a unit of 0."""

    codes: NDArray[np.int8]  # known labels x dimensions
    units: NDArray[np.float32]  # a vector is its codes times its unit; rows have the length 2**14
    biases: NDArray[np.float32]  # a label's score is the product with its vector, less its bias
    mean: NDArray[np.float32]  # of the rows of the fit
    precision: NDArray[np.float32]  # the inverse, by its lower triangle

    TABLE: ClassVar = Table(
        "meaning",
        Array("codes", (np.int8,), ("known", "features")),
        Array("units", (np.float32,), ("known",), bounds=(0, LARGEST)),
        Array("biases", (np.float32,), ("known",), bounds=(-LARGEST, LARGEST)),
        Array("mean", (np.float32,), ("features",), bounds=(-1, 1)),
        Array("precision", (np.float32,), ("triangle",), bounds=(-LARGEST, LARGEST)),
        since=3,
    )
    OWNER: ClassVar = "label"
    ALL_ROWS: ClassVar = False

    @classmethod
    def train(cls, name: str, training: Training) -> TrainedMatcher[Meaning] | None:
        """From sums over the rows, with held-out rows and without."""
        data, rows = training.data, training.data.blocks.dense
        if rows is None:
            return None
        space, names = Space.of(rows), data.label_vectors
        least = training.settings["tail_min_rows"]
        groups = label_csr(data.y.indptr, data.y.indices, data.n_labels).T.tocsr()
        kept = np.flatnonzero(training.held_out == 0)
        return HeldOut(
            space.meaning(groups, rows, names, least),
            space.meaning(groups[:, kept], rows.take(kept), names, least),
        )

    def check(self, name: str, sizes: Sizes, *, verify: bool) -> None:
        width = len(self.mean)
        if len(self.precision) != width * (width + 1) // 2:
            raise ValueError("the arrays of its meaning do not fit each other in size")

    @property
    def known(self) -> NDArray[np.uint8]:
        """1 for each label that has a vector."""
        return (self.units > 0).astype(np.uint8)

    def ranked(
        self, x: DenseRows, length: int, allowed: Allowed, places: Places, cancel: Cancel
    ) -> Ranking:
        return _core.rank_by_meaning(self, x.values, length, allowed, places, cancel)

    def scores(self, x: DenseRows, lists: Shortlists, cancel: Cancel = None) -> Scores:
        return _core.meaning_scores(self, x.values, lists.indptr, lists.labels, cancel)

    def relabelled(self, moved: Moved) -> Self:
        source = moved.known.source
        if not moved.in_indexes:
            source[moved.n_labels :] = -1  # data of dropped labels are not needed
        own = source >= 0
        return replace(
            self,
            codes=np.where(own[:, None], self.codes[source], np.int8(0)),
            units=np.where(own, self.units[source], np.float32(0)),
            biases=np.where(own, self.biases[source], np.float32(0)),
        )

    @property
    def weights_per_owner(self) -> NDArray[np.int64]:
        return np.where(self.units > 0, len(self.mean), 0)

    # -- incremental learning -----------------------------------------------------------------

    def learned(self, name: str, update: Update) -> Self:
        """With the means of labels moved towards new rows; the space stays as it was."""
        rows, y, counts = update.new.x.dense, update.new.y, update.new.counts_before
        assert rows is not None
        labels = np.flatnonzero(y.counts)
        groups = label_csr(y.indptr, y.indices, y.n_labels).T.tocsr()[labels]
        space = self._space
        means, more = space.deviations(groups, rows)
        # The vector of a label with too few rows so far does not include them.
        known = np.where(counts < update.min_rows, 0, counts)[labels][:, None]
        more[known + more < update.min_rows] = 0
        share = more / (known + NAME_ROWS + more)
        vectors = _decoded(self.codes[labels], self.units[labels])
        moved = means @ space.precision
        # A vector's product with its own mean is quadratic in the mean, which moves by `share`.
        before = 2 * (self.biases[labels][:, None] - _products(vectors, space.mean))
        between, after = _products(vectors, means), _products(moved, means)
        squares = (1 - share) ** 2 * before + 2 * share * (1 - share) * between + share**2 * after
        return self._with_vectors(labels, (1 - share) * vectors + share * moved, squares)

    def with_names(self, names: LabelVectors) -> Self:
        """With vectors made from names for labels without a vector."""
        new = np.flatnonzero(self.units[names.labels] == 0)
        space = self._space
        means = _rounded(names.rows.values[new] / UNIT - space.mean)
        vectors = means @ space.precision
        return self._with_vectors(names.labels[new], vectors, _products(vectors, means))

    def by_names_alone(self, names: LabelVectors) -> Self:
        """With vectors made from names alone, as for labels without rows."""
        blank = replace(self, codes=np.zeros_like(self.codes), units=np.zeros_like(self.units))
        return blank.with_names(names)

    @property
    def _space(self) -> Space:
        width = len(self.mean)
        lower = np.zeros((width, width))
        lower[np.tril_indices(width)] = self.precision
        return Space(self.mean.astype(np.float64), _mirrored(lower))

    def _with_vectors(self, labels: NDArray[np.int64], vectors: Floats, squares: Floats) -> Self:
        """With other vectors for some labels, and their products with their own means."""
        arrays = {name: array.copy() for name, array in self.arrays().items()}
        arrays["codes"][labels], arrays["units"][labels] = _encoded(vectors)
        decoded = _decoded(arrays["codes"][labels], arrays["units"][labels])
        products = _products(decoded, self.mean.astype(np.float64))
        arrays["biases"][labels] = (products + squares / 2)[:, 0]
        return type(self)(**arrays)


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
        mean = _rounded(total / (n * UNIT))
        share = total / n
        covariance = rows.products() / n - share[:, None] * share
        variance = sum(np.diag(covariance).tolist()) / width
        # Fewer rows than dimensions do not show how all of them vary.
        ridge = max(variance, 1.0) * (RIDGE + width / n)
        covariance[np.diag_indices(width)] += ridge
        return cls(mean, _mirrored(_in_bits(_inverse(covariance) * float(UNIT) ** 2)))

    def deviations(self, groups: Any, rows: DenseRows) -> tuple[Floats, Floats]:
        """The means of groups of rows, sparse rows of ones, less the mean of all; their sizes."""
        telling = rows.values.any(axis=1)
        sizes = np.asarray(groups @ telling.astype(np.float64))[:, None]
        means = rows.sums(groups) / (UNIT * np.maximum(sizes, 1))
        return np.where(sizes > 0, _rounded(means - self.mean), 0.0), sizes

    def meaning(
        self, groups: Any, rows: DenseRows, names: LabelVectors | None, min_rows: int = 1
    ) -> Meaning:
        """The vectors of labels from their rows, for each a sparse row of ones, and names.

        Rows of a label with fewer than `min_rows` do not count.
        """
        n_labels, width = groups.shape[0], rows.width
        codes = np.zeros((n_labels, width), dtype=np.int8)
        units, biases = np.zeros((2, n_labels), dtype=np.float32)
        for first in range(0, n_labels, _LABELS):
            part = slice(first, first + _LABELS)
            means, sizes = self.deviations(groups[part], rows)
            sizes[sizes < min_rows] = 0
            means *= sizes
            named = np.zeros(len(sizes), dtype=bool)
            if names is not None:
                chosen = np.flatnonzero((names.labels >= first) & (names.labels < part.stop))
                own = names.labels[chosen] - first
                means[own] += NAME_ROWS * (names.rows.values[chosen] / UNIT - self.mean)
                named[own] = True
            means = _rounded(means / (sizes + NAME_ROWS))
            vectors = means @ self.precision
            vectors[(sizes[:, 0] == 0) & ~named] = 0
            codes[part], units[part] = _encoded(vectors)
            # Codes and means are whole numbers of their steps: these sums are exact in any order.
            middle = np.rint((self.mean + means / 2) / (_STEP / 2))
            sums = np.einsum("ij,ij->i", codes[part].astype(np.float64), middle)
            biases[part] = sums * (_STEP / 2) * (units[part].astype(np.float64) * UNIT)
        lower = self.precision[np.tril_indices(width)].astype(np.float32)
        return Meaning(codes, units, biases, self.mean.astype(np.float32), lower)


def _inverse(matrix: Floats) -> Floats:
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


def _mirrored(matrix: Floats) -> Floats:
    """The lower triangle, and the same above it."""
    return np.asarray(np.tril(matrix) + np.tril(matrix, -1).T)


def _in_bits(matrix: Floats) -> Floats:
    """Rounded to multiples of a power of two, at most 2**20 of them."""
    step = 2.0 ** (np.frexp(np.abs(matrix).max())[1] - _BITS)
    return np.asarray(np.rint(matrix / step) * step)


def _rounded(means: Floats) -> Floats:
    return np.asarray(np.rint(means / _STEP) * _STEP)


def _encoded(vectors: Floats) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Vectors as codes, and the unit of each for rows of length `UNIT`."""
    units = (np.abs(vectors).max(axis=1) / (_LARGEST_CODE * UNIT)).astype(np.float32)
    scale = np.where(units > 0, units.astype(np.float64) * UNIT, 1.0)
    codes = np.rint(vectors / scale[:, None])
    return np.clip(codes, -_LARGEST_CODE, _LARGEST_CODE).astype(np.int8), units


def _decoded(codes: NDArray[np.int8], units: NDArray[np.float32]) -> Floats:
    return np.asarray(codes * (units.astype(np.float64) * UNIT)[:, None])


def _products(vectors: Floats, means: Floats) -> Floats:
    """The products of vectors with means, row by row, in one column.

    The vectors are rounded to 20 bits, so that the sums are exact in any order.
    """
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    scale = np.where(largest > 0, largest, 1.0) / 2**_BITS
    whole = np.broadcast_to(np.rint(means / (_STEP / 2)), vectors.shape)
    sums = np.einsum("ij,ij->i", np.rint(vectors / scale), whole)
    return np.asarray(sums[:, None] * (scale * (_STEP / 2)))
