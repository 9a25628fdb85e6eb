"""The second matcher: an index from features, such as words, to the labels that go with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._trees.forest import narrowed
from .._trees.training_data import TrainingData
from .frozen_arrays import FrozenArrays

KEPT_LABELS = 64  # per feature
FOLDS = 4  # a training row is matched by an index that has not seen its fold
# A random stream that no tree uses, and no other part of a fit.
_FOLD_STREAM = 2**63 + 1


@dataclass(frozen=True, eq=False)
class FeatureIndex(FrozenArrays):
    """For each feature its most associated labels; a weight is a code times the feature's unit."""

    offsets: NDArray[np.int64]  # n_features + 1
    labels: NDArray[Any]  # ascending within a feature; the narrowest type that holds them
    codes: NDArray[np.uint8]
    units: NDArray[np.float32]  # n_features


@dataclass(frozen=True, eq=False)
class FoldedIndex:
    """An index of all rows, and for each fold of the rows one that has not seen it."""

    whole: FeatureIndex
    parts: tuple[FeatureIndex, ...]
    folds: NDArray[np.uint8]  # of each row


def train_index(data: TrainingData, seed: int) -> FoldedIndex:
    """Learn the index in one pass over the rows."""
    folds = np.zeros(data.n_rows, dtype=np.uint8)
    for bit in range(FOLDS.bit_length() - 1):
        half = _core.bag_mask(seed, _FOLD_STREAM + bit, data.n_rows, 0.5)
        folds |= half << np.uint8(bit)
    *parts, whole = (
        FeatureIndex(offsets, narrowed(labels, data.n_labels - 1), codes, units)
        for offsets, labels, codes, units in _core.train_feature_indexes(
            data.x.checked, data.y.checked, folds, n_folds=FOLDS, keep=KEPT_LABELS
        )
    )
    return FoldedIndex(whole, tuple(parts), folds)
