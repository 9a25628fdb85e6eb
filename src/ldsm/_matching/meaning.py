"""A matcher: labels whose vectors go with a row's dense vector, which an encoder has made.

The vector of a label is ridge regression in closed form: the mean of its rows, its name counted as
a few of them, less the mean of all rows, times the inverse of their covariance plus a ridge. The
score is that of linear discriminant analysis. So a fit needs sums alone, and no row is kept.

Sums and products are of whole numbers that float64 holds exactly, and everything else is done
number by number: the same bits in any order, on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._arrays.dense_rows import UNIT, DenseRows, LabelVectors
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
from .space import (
    BITS,
    STEP,
    Floats,
    LabelledRows,
    NameMap,
    Space,
    mirrored,
    rounded,
)

if TYPE_CHECKING:
    from typing_extensions import Self

# Chosen on held-out training rows (docs/experiments.md).
# A label's name, or without one the mean of all rows, counts as this many of its rows.
NAME_ROWS = 3
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
    MUST_GAIN: ClassVar = True

    @classmethod
    def train(cls, name: str, training: Training) -> TrainedMatcher[Meaning] | None:
        """From sums over the rows, with held-out rows and without."""
        data, rows = training.data, training.data.blocks.dense
        if rows is None:
            return None
        space, names = Space.of(rows), data.label_vectors
        least = training.settings["tail_min_rows"]
        shown = LabelledRows(rows, data.y)
        kept = shown.without(training.held_rows)
        whole = cls.of(space, shown, names, least)
        others = whole.relearned(space, kept, names, least)
        if names is None:
            return HeldOut(whole, others)
        alone = names.among(data.y.counts < least)
        if len(alone.labels) == 0:
            return HeldOut(whole, others)
        return HeldOut(
            whole.by_names(alone, NameMap.of(space, shown, names, least)),
            others.by_names(alone, NameMap.of(space, kept, names, least)),
        )

    @classmethod
    def of(
        cls, space: Space, shown: LabelledRows, names: LabelVectors | None, min_rows: int = 1
    ) -> Meaning:
        """The vectors of labels from their rows and names.

        Rows of a label with fewer than `min_rows` do not count.
        """
        n_labels, width = shown.y.n_labels, shown.rows.width
        lower = space.precision[np.tril_indices(width)].astype(np.float32)
        units, biases = np.zeros((2, n_labels), dtype=np.float32)
        codes = np.zeros((n_labels, width), dtype=np.int8)
        empty = cls(codes, units, biases, space.mean.astype(np.float32), lower)
        return empty._of_rows(space, shown, np.arange(n_labels), names, min_rows)

    def relearned(
        self, space: Space, kept: LabelledRows, names: LabelVectors | None, min_rows: int = 1
    ) -> Self:
        """The same from the rows that are kept: other vectors for labels of the others."""
        assert kept.apart_from is not None
        labels = np.flatnonzero(kept.apart_from.y.counts)
        return self._of_rows(space, kept, labels, names, min_rows)

    def _of_rows(
        self,
        space: Space,
        shown: LabelledRows,
        labels: NDArray[np.int64],
        names: LabelVectors | None,
        min_rows: int,
    ) -> Self:
        """With vectors of these labels, ascending, that are made of rows and names."""
        arrays = {name: array.copy() for name, array in self.arrays().items()}
        for place, sums, counts in shown.each(labels):
            part = labels[place]
            counts[counts < min_rows] = 0
            means = space.deviations(sums, counts) * counts[:, None]
            named = np.zeros(len(part), dtype=bool)
            if names is not None:
                at = np.searchsorted(names.labels, part)
                at[at == len(names.labels)] = 0
                named = names.labels[at] == part if len(names.labels) else named
                own = names.rows.values[at[named]] / UNIT
                means[named] += NAME_ROWS * (own - space.mean)
            means = rounded(means / (counts + NAME_ROWS)[:, None])
            vectors = means @ space.precision
            vectors[(counts == 0) & ~named] = 0
            codes, units = _encoded(vectors)
            # Codes and means are whole numbers of their steps: these sums are exact in any order.
            middle = np.rint((space.mean + means / 2) / (STEP / 2))
            products = np.einsum("ij,ij->i", codes.astype(np.float64), middle)
            arrays["codes"][part], arrays["units"][part] = codes, units
            arrays["biases"][part] = products * (STEP / 2) * (units.astype(np.float64) * UNIT)
        return type(self)(**arrays)

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
        labels, space = np.flatnonzero(y.counts), self._space
        sums, n_new = LabelledRows(rows, y).sums(labels)
        means, more = space.deviations(sums, n_new), n_new[:, None].astype(np.float64)
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
        means = rounded(names.rows.values[new] / UNIT - space.mean)
        vectors = means @ space.precision
        return self._with_vectors(names.labels[new], vectors, _products(vectors, means))

    def by_names(self, names: LabelVectors, places: NameMap | None) -> Self:
        """With vectors of these labels that are made from their names alone."""
        if places is None:
            return self
        means = places.predicted(names.rows)
        vectors = means @ self._space.precision
        return self._with_vectors(names.labels, vectors, _products(vectors, means))

    def of_names(self, training: Training) -> Self:
        """With such vectors of all labels, as if none had rows; held-out rows are left out."""
        data, least = training.data, training.settings["tail_min_rows"]
        names, rows = data.label_vectors, data.blocks.dense
        assert names is not None and rows is not None
        kept = LabelledRows(rows, data.y).without(training.held_rows)
        return self.by_names(names, NameMap.of(self._space, kept, names, least))

    @property
    def _space(self) -> Space:
        width = len(self.mean)
        lower = np.zeros((width, width))
        lower[np.tril_indices(width)] = self.precision
        return Space(self.mean.astype(np.float64), mirrored(lower))

    def _with_vectors(self, labels: NDArray[np.int64], vectors: Floats, squares: Floats) -> Self:
        """With other vectors for some labels, and their products with their own means."""
        arrays = {name: array.copy() for name, array in self.arrays().items()}
        arrays["codes"][labels], arrays["units"][labels] = _encoded(vectors)
        decoded = _decoded(arrays["codes"][labels], arrays["units"][labels])
        products = _products(decoded, self.mean.astype(np.float64))
        arrays["biases"][labels] = (products + squares / 2)[:, 0]
        return type(self)(**arrays)


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
    scale = np.where(largest > 0, largest, 1.0) / 2**BITS
    whole = np.broadcast_to(np.rint(means / (STEP / 2)), vectors.shape)
    sums = np.einsum("ij,ij->i", np.rint(vectors / scale), whole)
    return np.asarray(sums[:, None] * (scale * (STEP / 2)))
