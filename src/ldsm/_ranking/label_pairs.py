"""The (row, label) pairs that labels are trained on, made for one range of labels at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._arrays.labels import LabelArrays
from .._execution.threads import CancelFlag, state_of
from .._matching.shortlists import Shortlists

# A label that fewer rows list also learns from others, up to this number.
FILL_TO = 50
# Ranges of fewer pairs are not worth a thread; each range scales all rows for itself.
RANGE_PAIRS, MOST_RANGES = 16_384, 64

# By label, the rows that its classifier learns from: offsets, rows, whether they have the label.
LabelPairs = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8]]
RowLabels = tuple[NDArray[np.int64], NDArray[np.int32]]  # of each row: offsets, labels


class PairSource(Protocol):
    """Where a task gets the pairs of its range of labels from."""

    def ranges(self) -> list[tuple[int, int]]:
        """Ranges of labels with about equally many pairs, as (first, one past the last)."""

    def of(self, first: int, last: int, cancel: CancelFlag) -> LabelPairs:
        """The pairs of the labels of a range."""


class GivenPairs(NamedTuple):
    """Pairs of all labels that have been made already."""

    offsets: NDArray[np.int64]
    rows: NDArray[np.int32]
    positive: NDArray[np.uint8]

    def ranges(self) -> list[tuple[int, int]]:
        return label_ranges(np.diff(self.offsets))

    def of(self, first: int, last: int, cancel: CancelFlag) -> LabelPairs:
        offsets = self.offsets[first : last + 1]
        start, stop = offsets[[0, -1]]
        return offsets - start, self.rows[start:stop], self.positive[start:stop]


@dataclass(frozen=True, eq=False)
class ListedPairs:
    """Pairs of labels with the rows that list them, which take far more memory than the lists."""

    lists: Sequence[RowLabels]  # chunks of consecutive rows
    own: RowLabels  # the labels of all rows
    n_labels: int
    seed: int

    @classmethod
    def from_lists(cls, lists: Sequence[Shortlists], y: LabelArrays, seed: int) -> ListedPairs:
        chunks = [(chunk.indptr, chunk.labels) for chunk in lists]
        return cls(chunks, (y.indptr, y.indices), y.n_labels, seed)

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self, "_checked")

    @cached_property
    def _checked(self) -> tuple[list[_core.CheckedLabels], _core.CheckedLabels]:
        """Lists and labels for the core, checked once for all ranges."""
        lists = [_core.CheckedLabels(*chunk, self.n_labels) for chunk in self.lists]
        return lists, _core.CheckedLabels(*self.own, self.n_labels)

    def ranges(self) -> list[tuple[int, int]]:
        counts = np.bincount(self.own[1], minlength=self.n_labels)
        for _, labels in self.lists:
            counts += np.bincount(labels, minlength=self.n_labels)
        return label_ranges(counts)

    def of(self, first: int, last: int, cancel: CancelFlag) -> LabelPairs:
        lists, own = self._checked
        return _core.label_pairs(
            lists, own, first=first, last=last, fill_to=FILL_TO, seed=self.seed, cancel=cancel
        )


def label_pairs(
    indptr: NDArray[np.int64],
    labels: NDArray[np.int32],
    y: LabelArrays,
    seed: int,
    *,
    fill_to: int = FILL_TO,
) -> LabelPairs:
    """By label, the rows that list it, at least `fill_to`, and whether they have it."""
    listed = _core.CheckedLabels(indptr, labels, y.n_labels)
    return _core.label_pairs(
        [listed], y.checked, first=0, last=y.n_labels, fill_to=fill_to, seed=seed
    )


def label_ranges(counts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ranges of labels of about equal counts, as (first, one past the last)."""
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    n_ranges = min(max(1, int(ends[-1]) // RANGE_PAIRS), MOST_RANGES)
    targets = np.linspace(0, ends[-1], n_ranges + 1)[1:-1]
    cuts = np.unique(np.concatenate([[0], np.searchsorted(ends, targets), [len(counts)]]))
    return list(pairwise(cuts.tolist()))


def pair_keys(rows: NDArray[Any], labels: NDArray[Any], n_labels: int) -> NDArray[np.int64]:
    """One number per (row, label) pair."""
    return np.asarray(rows * np.int64(n_labels) + labels)
