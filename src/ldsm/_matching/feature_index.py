"""A matcher: an index from features, such as words, to the labels that go with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from .._arrays.features import FeatureArrays
from .._features.blocks import READS, Layout
from .._features.new_rows import NewRows
from .._storage.fields import Array, Sizes, Table
from .._storage.gaps import check_order
from .._trees.columns import Moved
from .._trees.forest import narrowed
from .part import (
    FOLDS,
    LARGEST,
    MORE_BY_SPELLING,
    Cancel,
    Folded,
    Matcher,
    TrainedMatcher,
    Training,
    Update,
)
from .shortlists import Shortlists

if TYPE_CHECKING:
    from typing_extensions import Self

Index = TypeVar("Index", bound="FeatureIndex")
KEPT_LABELS = 64  # per feature
PRIOR_MASS = 2.0  # as in the core: the mass of each feature assumed in rows without the label


@dataclass(frozen=True, eq=False)
class FeatureIndex(Matcher):
    """For each feature the labels that go with it most. A weight is a code times the unit."""

    offsets: NDArray[np.int64]  # n_features + 1
    labels: NDArray[Any]  # ascending within a feature; the narrowest type that holds them
    codes: NDArray[np.uint8]
    units: NDArray[np.float32]  # n_features

    TABLE: ClassVar = Table(
        "index",
        Array("offsets", (np.int64,), ("features+1",)),
        Array("labels", (np.int32, np.uint16, np.uint8), ("entries",)),
        Array("codes", (np.uint8,), ("entries",)),
        Array("units", (np.float32,), ("features",), bounds=(0, LARGEST)),
        since=2,
    )
    IN_CORE: ClassVar = True

    @classmethod
    def train(cls, name: str, training: Training) -> TrainedMatcher[Self] | None:
        """In one pass over the rows."""
        data = training.data
        if not data.blocks.has(name):
            return None
        x = data.blocks.read_by(name)
        *parts, whole = (
            cls(offsets, narrowed(labels, data.n_labels - 1), codes, units)
            for offsets, labels, codes, units in _core.train_feature_indexes(
                x.checked, data.y.checked, training.folds, n_folds=FOLDS, keep=KEPT_LABELS
            )
        )
        return Folded(whole, tuple(parts), training.folds)

    def check(self, name: str, sizes: Sizes, *, verify: bool) -> None:
        if verify:
            check_order(name, self.offsets, self.labels, sizes["known"], "label", "feature")

    def scores(self, x: FeatureArrays, lists: Shortlists, cancel: Cancel = None) -> None:
        return None

    def relabelled(self, moved: Moved) -> Self:
        lists = moved.indexed.within(self.offsets, self.labels, self.codes)
        return type(self)(*lists, self.units)

    def widened(self, name: str, before: Layout, after: Layout) -> Self:
        more = after.width_for(name) - before.width_for(name)
        return with_features(self, after.width_for(name)) if more else self

    def learned(self, name: str, update: Update) -> Self:
        (block,) = READS[name]
        x, new = update.new.x.read_by(name), update.new
        return with_rows(self, update.masses_before[block], x, new, update.seed)


class SubWordIndex(FeatureIndex):
    """An index of sub-words."""

    WORTH: ClassVar = MORE_BY_SPELLING

    @classmethod
    def train(cls, name: str, training: Training) -> TrainedMatcher[Self] | None:
        form = training.data.sub_word_form
        return super().train(name, training) if form is not None and form.indexed else None


# -- incremental learning ---------------------------------------------------------------------


def unit_values(x: FeatureArrays) -> NDArray[np.float64]:
    """The values of rows that are scaled to unit length."""
    row = np.repeat(np.arange(x.n_rows), np.diff(x.indptr))
    values = x.values.astype(np.float64)
    lengths = np.sqrt(np.bincount(row, values**2, x.n_rows))
    return np.asarray(values / lengths[row])


def unit_masses(x: FeatureArrays) -> NDArray[np.float64]:
    """The sum of each feature's values over the rows, scaled to unit length, without their sign."""
    return np.bincount(x.indices, np.abs(unit_values(x)), x.n_features).astype(np.float64)


def with_rows(
    index: Index, masses: NDArray[np.float32], x: FeatureArrays, new: NewRows, seed: int
) -> Index:
    """The index with new rows of its features `x` added; `masses` are those of the rows before.

    What was dropped or rounded off before is lost, so the result is close to the index of all rows,
    but not equal.
    """
    offsets, labels, codes, units = _core.extend_feature_index(
        index,
        masses,
        x.checked,
        new.y.checked,
        _lift(new.counts_before, new.n_before),
        _lift(new.counts, new.n_rows),
        keep=KEPT_LABELS,
        seed=seed,
    )
    return type(index)(offsets, narrowed(labels, new.y.n_labels - 1), codes, units)


def _lift(counts: NDArray[np.int64], n_rows: int) -> NDArray[np.float64]:
    return np.where(counts > 0, (n_rows / np.maximum(counts, 1)) ** 0.25, 0.0)


def with_features(index: Index, n_features: int) -> Index:
    """The index with room for more features; these have no labels yet."""
    more = n_features - len(index.units)
    return type(index)(
        np.append(index.offsets, np.full(more, index.offsets[-1])),
        index.labels,
        index.codes,
        np.append(index.units, np.zeros(more, np.float32)),
    )


def mean_rows(
    index: FeatureIndex,
    masses: NDArray[np.float32],
    labels: NDArray[np.int64],
    counts: NDArray[np.int64],
    n_rows: int,
) -> sp.csr_array:
    """The mean rows of some labels, as far as the index knows them: one row for each."""
    place = np.full(len(counts), -1, dtype=np.int64)
    place[labels] = np.arange(len(labels))
    own = place[index.labels]
    kept = np.flatnonzero(own >= 0)
    feature = np.repeat(np.arange(len(index.units)), np.diff(index.offsets))[kept]
    weights = index.codes[kept] * index.units[feature].astype(np.float64)
    lift = np.maximum(_lift(counts, n_rows), 1e-9)[labels[own[kept]]]
    mass = weights * (masses[feature].astype(np.float64) + PRIOR_MASS) / lift
    shape = (len(labels), len(index.units))
    return sp.csr_array(sp.coo_array((mass, (own[kept], feature)), shape=shape))
