"""Training rows as one object: arrays in this process, a path on the way to another one."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from .datasets.dataset import StoreLocation
from .datasets.store import open_located
from .inputs import FeatureArrays, LabelArrays, feature_arrays, label_arrays

_opening = threading.Lock()


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows and labels as the core reads them.

    Pickled, those of a store become `StoredRows`: whoever can open the folder is not sent arrays.

    Attributes
    ----------
    x, y
        The arrays.
    n_features : int
    store : StoreLocation or None
        Where the same rows lie on disk, if they do.
    """

    x: FeatureArrays
    y: LabelArrays
    n_features: int
    store: StoreLocation | None = None

    def opened(self) -> Rows:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.store is not None:
            return StoredRows, (self.store,)
        return _aligned, (self.x, self.y, self.n_features)


@dataclass(frozen=True)
class StoredRows:
    """The rows of a store, by the place where they lie."""

    store: StoreLocation

    def opened(self) -> Rows:
        """The rows, mapped; opened once per process. Raises where the store is another one."""
        with _opening:  # threads that come at once must not each canonicalise
            return _opened(self.store)


def _aligned(x: FeatureArrays, y: LabelArrays, n_features: int) -> Rows:
    """Rows that came as arrays, which some backends hand over as they lie in a message."""
    parts = (x.indptr, x.indices, x.values, y.indptr, y.indices)
    arrays: list[Any] = [np.require(a, requirements="A") for a in parts]
    y = replace(y, indptr=arrays[3], indices=arrays[4])
    x = FeatureArrays(arrays[0], arrays[1], arrays[2], n_features)
    return Rows(x, y, n_features)


@lru_cache(maxsize=1)  # a process works for one fit at a time
def _opened(store: StoreLocation) -> Rows:
    data = open_located(store)
    # What `fit` does to any matrix: a store that is not sorted, say, gives the same arrays here.
    labels = label_arrays(data.Y, data.label_names)
    return Rows(feature_arrays(data.X), labels, data.n_features, store)
