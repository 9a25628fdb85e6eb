"""The second stage: rescores the shortlist of a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._arrays.features import FeatureArrays
from .._runtime.threads import CancelFlag
from .blend import Blend, Pairs
from .vectors import Labels, LabelVectors, Offsets

Scores = NDArray[np.float32]
SHORTLIST = 100  # labels per row that the second stage rescores
_CHUNK = 8192  # rows scored together, so that a label's vector is unpacked once for all of them


@dataclass(frozen=True, eq=False)
class SecondStage:
    """Rescores shortlists; trained in ``ldsm._second_stage.training``."""

    blend: Blend
    label_counts: NDArray[np.int64]  # training rows per label
    ranker: LabelVectors | None = None  # None unless the blend needs it
    centroids: LabelVectors | None = None

    def pairs(
        self,
        x: FeatureArrays,
        indptr: Offsets,
        labels: Labels,
        tree_scores: Scores,
        cancel: CancelFlag | None = None,
    ) -> Pairs:
        """The signals of the labels on each row's shortlist."""
        margins = distances = None
        if self.ranker is not None:
            margins = self.ranker.products(x, indptr, labels, cancel)
        if self.centroids is not None:
            distances = self.centroids.squared_distances(x, indptr, labels, cancel)
        return Pairs(tree_scores, self.label_counts[labels], margins, distances)

    def scores(
        self,
        x: FeatureArrays,
        labels: Labels,
        tree_scores: Scores,
        cancel: CancelFlag | None = None,
    ) -> Scores:
        """Probabilities of the labels on each row's shortlist, an array of the same shape.

        Labels with a tree score of 0 keep 0, and so do all after the first `SHORTLIST`, so that a
        longer list does not change the beginning.
        """
        out = np.zeros(labels.shape, dtype=np.float32)
        known = tree_scores > 0
        known[:, SHORTLIST:] = False
        tree_scores = np.minimum(tree_scores, 1)  # may be infinite in a damaged file
        for start in range(0, x.n_rows, _CHUNK):
            rows = slice(start, min(start + _CHUNK, x.n_rows))
            mask = known[rows]
            indptr = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int64)
            part = x.rows(rows.start, rows.stop)
            pairs = self.pairs(part, indptr, labels[rows][mask], tree_scores[rows][mask], cancel)
            out[rows][mask] = self.blend.probabilities(pairs)
        return out

    def vectors(self) -> Iterator[tuple[str, LabelVectors]]:
        """The vectors that the blend needs, by name."""
        for name in self.blend.needs:
            vectors: LabelVectors = getattr(self, name)
            yield name, vectors


def best_first(
    labels: Labels, scores: Scores, k: int, label_weights: NDArray[np.float64] | None = None
) -> tuple[Labels, Scores]:
    """The k best of each row's labels and their scores.

    `label_weights` change the order, not the scores. Ties go to the lower label; labels with score
    0 come last, in their previous order.
    """
    place = np.broadcast_to(np.arange(labels.shape[1]), labels.shape)
    merit = scores.astype(np.float64)
    if label_weights is not None:
        merit = merit * label_weights[labels]
    tie = np.where(scores > 0, labels, place)
    order = np.lexsort((tie, -merit), axis=1)[:, :k]
    return np.take_along_axis(labels, order, axis=1), np.take_along_axis(scores, order, axis=1)
