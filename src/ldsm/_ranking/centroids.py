"""Centroids: the mean of each label's training rows, scaled to unit length."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from .._arrays.features import FeatureArrays
from .._arrays.matrices import label_csr
from .._matching.feature_index import unit_values
from .._matching.part import Cancel, Scores, Trained, Training, Update
from .._matching.shortlists import Shortlists
from .label_pairs import label_pairs
from .label_vectors import LabelVectors

PRUNE = 0.01  # smaller weights are dropped
# Beside a ranker, also those below this share of a centroid's largest: what few of its rows have
# says more about these rows than about the label (docs/experiments.md).
LEAST_SHARE = 1 / 3


class Centroids(LabelVectors):
    """The centroids of all labels; labels of too few rows have none."""

    @classmethod
    def train(cls, name: str, training: Training) -> Trained:
        x, held = training.data.blocks.read_by(name), training.held
        assert held is not None
        alone = training.settings["rerank"] == "tail"

        def of_rows(left_out: NDArray[np.uint8] | None = None) -> Centroids:
            y = training.data.y
            pairs = label_pairs(y.indptr, y.indices, y, training.seed, fill_to=0)
            return cls(
                *_core.train_centroids(
                    x.checked,
                    _core.CheckedPairs(*pairs, x.n_rows),
                    left_out=left_out,
                    min_rows=training.settings["tail_min_rows"],
                    prune=PRUNE,
                    least_share=0 if alone else LEAST_SHARE,
                    compress=training.compress,
                )
            )

        others = of_rows(training.held_out)
        return Trained(others.scores(x.take(training.held_rows), held), of_rows)

    def scores(self, x: FeatureArrays, lists: Shortlists, cancel: Cancel = None) -> Scores:
        """The squared distances."""
        return self.squared_distances(x, lists.indptr, lists.labels, cancel)

    def learned(self, name: str, update: Update) -> Centroids:
        """The means of all rows of each label, from rounded means of earlier rows and new rows."""
        x, new = update.new.x.read_by(name), update.new
        # A label of too few rows so far has no centroid, so these rows are not known. A mean of
        # fewer rows than the minimum would reveal them.
        known = np.where(np.diff(self.offsets) > 0, new.counts_before, 0)
        labels = np.flatnonzero((new.y.counts > 0) & (known + new.y.counts >= update.min_rows))
        before, counts = self.taken(labels), known[labels]
        sums = _scaled(before.matrix(x.n_features)[:, : x.n_features], counts)
        unit = sp.csr_array((unit_values(x), x.indices, x.indptr), shape=(x.n_rows, x.n_features))
        given = label_csr(new.y.indptr, new.y.indices, new.y.n_labels)[:, labels].T
        sums = sp.csr_array(sums + given @ unit)
        sums.sort_indices()
        means = _scaled(sums, 1 / np.maximum(counts + new.y.counts[labels], 1))
        least = np.full(len(means.data), PRUNE, np.float32)
        if "ranker" in update.parts:
            largest = np.repeat(_largest(means), np.diff(means.indptr))
            least = np.maximum(least, LEAST_SHARE * largest)
        packed = self.packed(means, x.n_features, compress=self.is_compressed, least=least)
        return self.replaced(labels, packed)


def _largest(matrix: sp.csr_array) -> NDArray[np.float32]:
    """The largest size of a value in each row; 0 for an empty one."""
    largest = abs(matrix).max(axis=1).toarray().ravel()
    return np.asarray(largest, dtype=np.float32)


def _scaled(matrix: Any, factors: NDArray[Any]) -> sp.csr_array:
    """Each row times its factor."""
    data = matrix.data * np.repeat(factors, np.diff(matrix.indptr))
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
