"""A matcher: an index from features, such as words, to the labels that go with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from .._arrays.features import FeatureArrays
from .._arrays.labels import LabelNumbers
from .._execution.executor import Control
from .._execution.parts import counted, even_ranges
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
# Ranges with fewer values are not worth a thread; each range reads all rows.
RANGE_ENTRIES, MOST_RANGES = 1 << 21, 64
_MASS_ROWS = 1 << 16  # whose masses are added up first; the size decides the last bits
_UNIT_ROWS = 1 << 12  # that are in memory as float64 at once
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
        """By ranges of features."""
        data = training.data
        if not data.blocks.has(name):
            return None
        x = data.blocks.read_by(name)
        task = IndexTask(x, data.y.numbers, training.folds)
        trained = training.executor.map(task, task.ranges(), name=f"{name.replace('_', ' ')} range")
        *parts, whole = (
            cls(*_concatenated([one[variant] for one in trained], data.n_labels))
            for variant in range(FOLDS + 1)
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


Variants = Sequence[Sequence[NDArray[Any]]]  # an index of each fold, and one of all rows


@dataclass(frozen=True, eq=False)
class IndexTask:
    """Trains the indexes of a range of features, (first, one past the last)."""

    x: FeatureArrays
    y: LabelNumbers
    folds: NDArray[np.uint8]

    def ranges(self) -> list[tuple[int, int]]:
        counts = counted(self.x.indices, self.x.n_features)
        return even_ranges(counts, RANGE_ENTRIES, MOST_RANGES)

    @staticmethod
    def packed(trained: Variants) -> dict[str, NDArray[Any]]:
        return {
            f"{name}.{i}": array
            for i, variant in enumerate(trained)
            for name, array in zip(FeatureIndex.array_names(), variant, strict=True)
        }

    @staticmethod
    def unpacked(arrays: Mapping[str, NDArray[Any]]) -> Variants:
        names = FeatureIndex.array_names()
        return [[arrays[f"{name}.{i}"] for name in names] for i in range(FOLDS + 1)]

    def __call__(self, part: tuple[int, int], control: Control) -> Variants:
        first, last = part
        return _core.train_feature_indexes(
            self.x.checked,
            self.y.checked,
            self.folds,
            n_folds=FOLDS,
            keep=KEPT_LABELS,
            first=first,
            last=last,
            cancel=control.cancel,
        )


def _concatenated(
    parts: Sequence[Sequence[NDArray[Any]]], n_labels: int
) -> tuple[NDArray[Any], ...]:
    """The arrays of an index from those of consecutive ranges of features."""
    ends = np.cumsum([0] + [part[0][-1] for part in parts])
    offsets = [part[0][1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
    labels, codes, units = (np.concatenate([part[i] for part in parts]) for i in (1, 2, 3))
    offsets = [np.zeros(1, np.int64), *offsets]
    return np.concatenate(offsets), narrowed(labels, n_labels - 1), codes, units


# -- incremental learning ---------------------------------------------------------------------


def unit_values(x: FeatureArrays) -> NDArray[np.float64]:
    """The values of rows that are scaled to unit length."""
    row = np.repeat(np.arange(x.n_rows), np.diff(x.indptr))
    values = x.values.astype(np.float64)
    lengths = np.sqrt(np.bincount(row, values**2, x.n_rows))
    return np.asarray(values / lengths[row])


def unit_masses(x: FeatureArrays) -> NDArray[np.float64]:
    """The sum of each feature's values over the rows, scaled to unit length, without their sign."""
    masses = np.zeros(x.n_features)
    for start in range(0, x.n_rows, _MASS_ROWS):
        stop, part = min(start + _MASS_ROWS, x.n_rows), np.zeros(x.n_features)
        for first in range(start, stop, _UNIT_ROWS):
            some = x.rows(first, min(first + _UNIT_ROWS, stop))
            np.add.at(part, some.indices, np.abs(unit_values(some)))
        masses += part
    return masses


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
