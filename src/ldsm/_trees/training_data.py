"""What trees are grown from: arrays in this process, a path when sent to another one."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from .._arrays.features import FeatureArrays, feature_arrays
from .._arrays.labels import LabelArrays, label_arrays
from .._features.training_rows import rows_fingerprint
from ..datasets.dataset import StoreLocation
from ..datasets.store import open_located

_opening = threading.Lock()


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Rows and labels as the core reads them.

    When pickled, rows of a store become `StoredTrainingData`, because another process can open the
    store itself.
    """

    x: FeatureArrays
    y: LabelArrays
    store: StoreLocation | None = None  # its first features are those of `x`

    @property
    def n_rows(self) -> int:
        return self.x.n_rows

    @property
    def n_features(self) -> int:
        return self.x.n_features

    @property
    def n_labels(self) -> int:
        return self.y.n_labels

    @cached_property
    def fingerprint(self) -> str:
        """Hash of rows and labels; it does not depend on the form of X."""
        return rows_fingerprint([self.x], self.y)

    def opened(self) -> TrainingData:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.store is not None:
            return StoredTrainingData, (self.store, self.n_features)
        return TrainingData, (self.x, self.y)


@dataclass(frozen=True)
class StoredTrainingData:
    """The rows of a store, by its location."""

    store: StoreLocation
    n_features: int  # the first ones of the store

    def opened(self) -> TrainingData:
        """The rows, memory-mapped; opened once per process. Raises if the store has changed."""
        with _opening:  # threads must not each convert the rows
            return _opened(self.store, self.n_features)


@lru_cache(maxsize=1)  # a process works for one fit at a time
def _opened(store: StoreLocation, n_features: int) -> TrainingData:
    data = open_located(store)
    # The same conversion as in `fit`, so that the arrays are the same.
    labels = label_arrays(data.Y, data.label_names)
    return TrainingData(feature_arrays(data.X).leading(n_features), labels, store)
