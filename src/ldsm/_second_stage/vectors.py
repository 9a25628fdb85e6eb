"""One sparse vector of features per label: the weights of the ranker, or centroids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._arrays.features import FeatureArrays
from .._runtime.threads import CancelFlag

Offsets = NDArray[np.int64]
Labels = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class LabelVectors:
    """One sparse vector per label; feature number D is a constant 1."""

    offsets: NDArray[np.int64]  # n_labels + 1
    features: NDArray[np.int32]  # ascending within a label
    weights: NDArray[np.float32]

    def __post_init__(self) -> None:
        for array in (self.offsets, self.features, self.weights):
            array.flags.writeable = False

    def __setstate__(self, state: dict[str, NDArray[np.generic]]) -> None:
        vars(self).update(state)
        self.__post_init__()

    @classmethod
    def concatenated(cls, parts: Sequence[Sequence[NDArray[Any]]]) -> LabelVectors:
        """The vectors of consecutive labels from (offsets, features, weights) of each part."""
        ends = np.cumsum([0] + [part[0][-1] for part in parts])
        offsets = [part[0][1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
        return cls(
            np.concatenate([np.zeros(1, np.int64), *offsets]),
            np.concatenate([part[1] for part in parts]),
            np.concatenate([part[2] for part in parts]),
        )

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + self.features.nbytes + self.weights.nbytes

    def products(
        self, x: FeatureArrays, indptr: Offsets, labels: Labels, cancel: CancelFlag | None
    ) -> NDArray[np.float32]:
        """Products of each row, scaled to unit length, with the vectors of its labels."""
        return _core.label_products(
            self.offsets, self.features, self.weights, x.checked, indptr, labels, cancel
        )

    def squared_distances(
        self, x: FeatureArrays, indptr: Offsets, labels: Labels, cancel: CancelFlag | None = None
    ) -> NDArray[np.float64]:
        """Squared distances of each row, scaled to unit length, to the vectors of its labels."""
        products = self.products(x, indptr, labels, cancel).astype(np.float64)
        lengths = (np.diff(x.indptr) > 0).astype(np.float64)  # an empty row has length 0
        own = np.repeat(lengths, np.diff(indptr))
        return np.maximum(own - 2 * products + self._squared_norms(labels), 0.0)

    def _squared_norms(self, labels: Labels) -> NDArray[np.float64]:
        """Squared norms of the vectors of `labels`, each computed once."""
        chosen, place = np.unique(labels, return_inverse=True)
        starts, lengths = self.offsets[chosen], self.offsets[chosen + 1] - self.offsets[chosen]
        own = np.repeat(np.arange(len(chosen)), lengths)
        first = np.cumsum(lengths) - lengths
        entries = np.repeat(starts - first, lengths) + np.arange(len(own))
        squares = self.weights[entries].astype(np.float64) ** 2
        return np.bincount(own, squares, len(chosen)).astype(np.float64)[place]
