"""The (row, label) pairs that labels are trained on, made for one range of labels at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._arrays.labels import LabelArrays, LabelNumbers
from .._execution.parts import even_ranges
from .._execution.threads import CancelFlag
from .._matching.shortlists import Shortlists

# A label that fewer rows list also learns from others, up to this number.
FILL_TO = 50
# Ranges of fewer pairs are not worth a thread; each range reads all rows and lists for itself.
RANGE_PAIRS, MOST_RANGES = 65_536, 64

# By label, the rows that its classifier learns from: offsets, rows, whether they have the label.
LabelPairs = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8]]


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

    lists: Sequence[LabelNumbers]  # chunks of consecutive rows
    own: LabelNumbers  # of all rows
    seed: int

    @classmethod
    def from_lists(cls, lists: Sequence[Shortlists], y: LabelArrays, seed: int) -> ListedPairs:
        chunks = [LabelNumbers(chunk.indptr, chunk.labels, y.n_labels) for chunk in lists]
        return cls(chunks, y.numbers, seed)

    def ranges(self) -> list[tuple[int, int]]:
        n_labels = self.own.n_labels
        counts = np.bincount(self.own.indices, minlength=n_labels)
        for chunk in self.lists:
            counts += np.bincount(chunk.indices, minlength=n_labels)
        return label_ranges(counts)

    def of(self, first: int, last: int, cancel: CancelFlag) -> LabelPairs:
        return _core.label_pairs(
            [chunk.checked for chunk in self.lists],
            self.own.checked,
            first=first,
            last=last,
            fill_to=FILL_TO,
            seed=self.seed,
            cancel=cancel,
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
    return even_ranges(counts, RANGE_PAIRS, MOST_RANGES)
