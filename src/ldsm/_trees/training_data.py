"""Training data as one object: arrays in this process, a path on the way to another one."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.features import FeatureArrays, feature_arrays
from .._arrays.labels import LabelArrays, label_arrays
from ..datasets.dataset import StoreLocation
from ..datasets.store import open_located

_opening = threading.Lock()


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Rows and labels as the core reads them.

    Pickled, those of a store become `StoredTrainingData`: a process that can open the folder itself
    is not sent arrays.

    Attributes
    ----------
    x, y
        Features and labels, a row each.
    feature_names : ndarray of object or None
        As X brought them.
    store : StoreLocation or None
        Where the same rows lie on disk, if they do.
    """

    x: FeatureArrays
    y: LabelArrays
    feature_names: NDArray[Any] | None = None
    store: StoreLocation | None = None

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
        """Hash of rows and labels: equal for equal ones, in whatever form X came."""
        x, y = self.x, self.y
        digest = hashlib.sha256(repr((x.n_features, y.form, y.classes.tolist())).encode())
        for array in (x.indptr, x.indices, x.values, y.indptr, y.indices):
            digest.update(str(len(array)).encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()

    def opened(self) -> TrainingData:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.store is not None:
            return StoredTrainingData, (self.store,)
        return TrainingData, (self.x, self.y, self.feature_names)


@dataclass(frozen=True)
class StoredTrainingData:
    """The rows of a store, by the place where they lie."""

    store: StoreLocation

    def opened(self) -> TrainingData:
        """The rows, mapped; opened once per process. Raises if another store lies there."""
        with _opening:  # threads that arrive together must not each convert the rows
            return _opened(self.store)


@lru_cache(maxsize=1)  # a process works for one fit at a time
def _opened(store: StoreLocation) -> TrainingData:
    data = open_located(store)
    # What `fit` does to any matrix: a store that is not sorted, say, gives the same arrays here.
    labels = label_arrays(data.Y, data.label_names)
    return TrainingData(feature_arrays(data.X), labels, store=store)
