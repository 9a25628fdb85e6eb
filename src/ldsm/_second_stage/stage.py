"""The second stage at work: a row's shortlist, scored anew and put in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._arrays.features import FeatureArrays
from .blend import Blend, Pairs
from .vectors import LabelVectors

SHORTLIST = 100  # labels of a row that the second stage looks at
_CHUNK = 8192  # rows scored together: a label's vector is unpacked once for all of them


@dataclass(frozen=True, eq=False)
class SecondStage:
    """What scores shortlists anew.

    Attributes
    ----------
    blend : Blend
    label_counts : int64 (n_labels,)
        Training rows per label.
    ranker, centroids : LabelVectors or None
        Those that the blend needs.
    """

    blend: Blend
    label_counts: NDArray[np.int64]
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
        """All that is known of the labels on each row's list."""
        margins = distances = None
        if self.ranker is not None:
            margins = self.ranker.products(x, indptr, labels, cancel)
        if self.centroids is not None:
            distances = self.centroids.squared_distances(x, indptr, labels, cancel)
        return Pairs(tree_scores, self.label_counts[labels], margins, distances)

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
        """The vectors that the blend needs, by name."""
        for name in self.blend.needs:
            vectors: LabelVectors = getattr(self, name)
            yield name, vectors


def best_first(
    labels: NDArray[np.int32],
    scores: NDArray[np.float32],
    k: int,
    label_weights: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The k best of each row's labels and their scores.

    `label_weights` change the order, not the scores. Equal scores: the lower label first; labels of
    score 0 come last, in the order they had.
    """
    place = np.broadcast_to(np.arange(labels.shape[1]), labels.shape)
    merit = scores.astype(np.float64)
    if label_weights is not None:
        merit = merit * label_weights[labels]
    tie = np.where(scores > 0, labels, place)
    order = np.lexsort((tie, -merit), axis=1)[:, :k]
    return np.take_along_axis(labels, order, axis=1), np.take_along_axis(scores, order, axis=1)
