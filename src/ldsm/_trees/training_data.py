"""Training data as one object: arrays in this process, a path when sent to another one."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from .._arrays.features import FeatureArrays, feature_arrays
from .._arrays.labels import LabelArrays, label_arrays
from .._storage.strings import Strings
from ..datasets.dataset import StoreLocation, SubWordForm
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
    feature_names: Strings | None = None
    store: StoreLocation | None = None  # that holds the same rows
    n_matched: int | None = None  # the first features, which trees and index use; None: all
    n_ranked: int | None = None  # likewise, of the ranker; behind them are sub-words
    sub_word_form: SubWordForm | None = None
    label_synonyms: Mapping[str, Sequence[str]] | None = None  # names of labels that have others
    with_names: bool = True  # whether what labels are called may be used

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
        x, y = self.x, self.y
        digest = hashlib.sha256(repr((x.n_features, y.form, y.classes.tolist())).encode())
        for array in (x.indptr, x.indices, x.values, y.indptr, y.indices):
            digest.update(str(len(array)).encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()

    @cached_property
    def matched(self) -> TrainingData:
        """The same rows with the features that trees and index use."""
        if self.n_matched is None or self.n_matched >= self.n_features:
            return self
        return TrainingData(self.x.leading(self.n_matched), self.y, self.feature_names, self.store)

    @cached_property
    def ranked(self) -> FeatureArrays:
        """The features that the ranker uses."""
        return self.x if self.n_ranked is None else self.x.leading(self.n_ranked)

    @cached_property
    def sub_words(self) -> TrainingData | None:
        """The sub-words of the same rows, if there are any."""
        if self.n_ranked is None or self.n_ranked >= self.n_features:
            return None
        return TrainingData(self.x.between(self.n_ranked, self.n_features), self.y)

    def opened(self) -> TrainingData:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.store is not None:
            return StoredTrainingData, (self.store, self.n_features)
        return TrainingData, (self.x, self.y, self.feature_names)


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
    x = feature_arrays(data.X).leading(n_features)
    return TrainingData(x, labels, store=store)
