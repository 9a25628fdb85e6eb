"""The second stage: the trees' shortlist of a row, scored anew.

Vectors by label (weights of a linear classifier, or centroids), a blend that weighs them against
the trees, and the order that comes of it. ``ldsm.ranking`` trains it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import _core
from .blend import Blend, Pairs
from .inputs import FeatureArrays

SHORTLIST = 100  # labels of a row that the second stage looks at
_CHUNK = 8192  # rows scored together: a label's vector is unpacked once for all of them


@dataclass(frozen=True, eq=False)
class LabelVectors:
    """One sparse vector per label; feature number D is a constant 1.

    Attributes
    ----------
    offsets : int64 (n_labels + 1,)
    features : int32 (n,), ascending within a label
    weights : float32 (n,)
    """

    offsets: NDArray[np.int64]
    features: NDArray[np.int32]
    weights: NDArray[np.float32]

    def __post_init__(self) -> None:
        for array in (self.offsets, self.features, self.weights):
            array.flags.writeable = False

    def __setstate__(self, state: dict[str, NDArray[np.generic]]) -> None:
        vars(self).update(state)
        self.__post_init__()

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + self.features.nbytes + self.weights.nbytes

    def products(
        self,
        x: FeatureArrays,
        n_features: int,
        indptr: NDArray[np.int64],
        labels: NDArray[np.int32],
        cancel: NDArray[np.int32] | None = None,
    ) -> NDArray[np.float32]:
        """Each row, scaled to unit length, times the vectors of the labels on its list."""
        return _core.label_products(
            self.offsets, self.features, self.weights, x.checked, indptr, labels, cancel
        )

    def squared_norms(self, labels: NDArray[np.int32]) -> NDArray[np.float64]:
        """Of the vectors of `labels`, each looked at once."""
        chosen, place = np.unique(labels, return_inverse=True)
        starts, lengths = self.offsets[chosen], self.offsets[chosen + 1] - self.offsets[chosen]
        own = np.repeat(np.arange(len(chosen)), lengths)
        first = np.cumsum(lengths) - lengths
        entries = np.repeat(starts - first, lengths) + np.arange(len(own))
        squares = self.weights[entries].astype(np.float64) ** 2
        return np.bincount(own, squares, len(chosen)).astype(np.float64)[place]


@dataclass(frozen=True, eq=False)
class SecondStage:
    """What re-scores shortlists.

    Attributes
    ----------
    blend : Blend
    n_features : int
    label_rows : int64 (n_labels,)
        Training rows per label.
    ranker, centroids : LabelVectors or None
        Whichever the blend needs.
    """

    blend: Blend
    n_features: int
    label_rows: NDArray[np.int64]
    ranker: LabelVectors | None = None
    centroids: LabelVectors | None = None

    def pairs(
        self,
        x: FeatureArrays,
        indptr: NDArray[np.int64],
        labels: NDArray[np.int32],
        tree_scores: NDArray[np.float32],
        cancel: NDArray[np.int32] | None = None,
    ) -> Pairs:
        """All that the stages know of the labels on each row's list."""
        margins = distances = None
        if self.ranker is not None:
            margins = self.ranker.products(x, self.n_features, indptr, labels, cancel)
        if self.centroids is not None:
            distances = centroid_distances(
                self.centroids, x, self.n_features, indptr, labels, cancel
            )
        return Pairs(tree_scores, self.label_rows[labels], margins, distances)

    def scores(
        self,
        x: FeatureArrays,
        labels: NDArray[np.int32],
        tree_scores: NDArray[np.float32],
        cancel: NDArray[np.int32] | None = None,
    ) -> NDArray[np.float32]:
        """Probabilities of the labels on each row's shortlist, an array of the same shape.

        Labels that the trees do not know in a row (score 0) keep 0, and so do all behind the first
        `SHORTLIST`, so that a longer list does not change the head of a shorter one.
        """
        out = np.zeros(labels.shape, dtype=np.float32)
        known = tree_scores > 0
        known[:, SHORTLIST:] = False
        tree_scores = np.minimum(tree_scores, 1)  # those of a damaged file may be infinite
        for start in range(0, x.n_rows, _CHUNK):
            rows = slice(start, min(start + _CHUNK, x.n_rows))
            mask = known[rows]
            indptr = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int64)
            part = self.pairs(
                x.rows(rows.start, rows.stop),
                indptr,
                labels[rows][mask],
                tree_scores[rows][mask],
                cancel,
            )
            out[rows][mask] = self.blend.probabilities(part)
        return out

    def vectors(self) -> Iterator[tuple[str, LabelVectors]]:
        """The vectors there are, by name."""
        if self.ranker is not None:
            yield "ranker", self.ranker
        if self.centroids is not None:
            yield "centroids", self.centroids


def centroid_distances(
    centroids: LabelVectors,
    x: FeatureArrays,
    n_features: int,
    indptr: NDArray[np.int64],
    labels: NDArray[np.int32],
    cancel: NDArray[np.int32] | None = None,
) -> NDArray[np.float64]:
    """Squared distances between unit rows and the centroids of the labels on their lists."""
    products = centroids.products(x, n_features, indptr, labels, cancel).astype(np.float64)
    lengths = (np.diff(x.indptr) > 0).astype(np.float64)  # an empty row has none to scale
    own = np.repeat(lengths, np.diff(indptr))
    return np.maximum(own - 2 * products + centroids.squared_norms(labels), 0.0)


def best_first(
    labels: NDArray[np.int32],
    scores: NDArray[np.float32],
    k: int,
    label_weights: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The k best of each row's labels and their scores.

    `label_weights` change the order, not the scores. Equal labels: the lower one first; labels of
    score 0 come last, in the order they had.
    """
    place = np.broadcast_to(np.arange(labels.shape[1]), labels.shape)
    merit = scores.astype(np.float64)
    if label_weights is not None:
        merit = merit * label_weights[labels]
    tie = np.where(scores > 0, labels, place)
    order = np.lexsort((tie, -merit), axis=1)[:, :k]
    return np.take_along_axis(labels, order, axis=1), np.take_along_axis(scores, order, axis=1)
