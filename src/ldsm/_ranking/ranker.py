"""The ranker: a linear classifier for each label, trained range by range of labels.

What a label's classifier becomes does not depend on its range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._arrays.features import FeatureArrays
from .._execution.executor import Control, Executor
from .._execution.threads import state_of
from .label_vectors import LabelVectors

# Chosen on held-out training rows (docs/tuning.md).
# C: binary features carry less information and need more regularisation.
COST, COST_BINARY = 1.0, 0.5
TOLERANCE = 1.0
MAX_EPOCHS = 30
PRUNE = 0.1
# Ranges of fewer pairs are not worth a thread; each range scales all rows for itself.
RANGE_PAIRS, MOST_RANGES = 16_384, 64

# By label, the rows that its classifier learns from: offsets, rows, whether they have the label.
LabelPairs = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8]]
Trained = tuple[Sequence[NDArray[Any]], NDArray[np.float32]]


class RankerStart(NamedTuple):
    """The weights that training starts from, and how firmly they stay."""

    vectors: LabelVectors
    squares: NDArray[np.float32]  # by feature
    firmness: NDArray[np.float64]  # by label
    rows: NDArray[np.float64]  # by label


@dataclass(frozen=True, eq=False)
class RankerTask:
    """Trains the classifiers of a range of labels, (first, one past the last)."""

    x: FeatureArrays
    pairs: LabelPairs
    params: Mapping[str, Any]  # those of `_core.RankerParams`
    seed: int
    held_out: NDArray[np.uint8] | None
    start: RankerStart | None

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self, "_checked")

    @cached_property
    def _checked(self) -> tuple[_core.CheckedPairs, _core.RankerStart | None]:
        """The pairs and the start for the core, checked once for all ranges."""
        start = None if self.start is None else _core.RankerStart(*self.start)
        return _core.CheckedPairs(*self.pairs, self.x.n_rows), start

    def __call__(self, part: tuple[int, int], control: Control) -> Trained:
        """The vectors, as arrays, and the margins of held-out pairs, by label."""
        pairs, start = self._checked
        return _core.train_ranker(
            self.x.checked,
            pairs.labels(*part),
            _core.RankerParams(**self.params),
            seed=self.seed,
            held_out=self.held_out,
            start=start,
            cancel=control.cancel,
        )


def train_ranker(
    executor: Executor,
    x: FeatureArrays,
    pairs: LabelPairs,
    *,
    cost: float,
    compress: bool,
    seed: int,
    held_out: NDArray[np.uint8] | None = None,
    start: RankerStart | None = None,
) -> tuple[LabelVectors, NDArray[np.float32]]:
    """The classifiers of all labels, and the margins of held-out pairs, by label."""
    params = {
        "cost": cost,
        "tolerance": TOLERANCE,
        "max_epochs": MAX_EPOCHS,
        "prune": PRUNE,
        "compress": compress,
    }
    task = RankerTask(x, pairs, params, seed, held_out, start)
    trained = executor.map(task, label_ranges(pairs[0]), name="label range")
    vectors = LabelVectors.concatenated([arrays for arrays, _ in trained])
    return vectors, np.concatenate([margins for _, margins in trained])


def label_ranges(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Ranges of labels with about equally many pairs, as (first, one past the last)."""
    n_ranges = min(max(1, int(offsets[-1]) // RANGE_PAIRS), MOST_RANGES)
    targets = np.linspace(0, offsets[-1], n_ranges + 1)[1:-1]
    cuts = np.unique(np.concatenate([[0], np.searchsorted(offsets, targets), [len(offsets) - 1]]))
    return list(pairwise(cuts.tolist()))
