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

CENTROID_PRUNE = 0.01  # chosen on held-out training rows (docs/experiments.md)


class Centroids(LabelVectors):
    """The centroids of all labels; labels of too few rows have none."""

    @classmethod
    def train(cls, name: str, training: Training) -> Trained:
        x, held = training.data.blocks.read_by(name), training.held
        assert held is not None

        def of_rows(left_out: NDArray[np.uint8] | None = None) -> Centroids:
            y = training.data.y
            pairs = label_pairs(y.indptr, y.indices, y, training.seed, fill_to=0)
            return cls(
                *_core.train_centroids(
                    x.checked,
                    _core.CheckedPairs(*pairs, x.n_rows),
                    left_out=left_out,
                    min_rows=training.settings["tail_min_rows"],
                    prune=CENTROID_PRUNE,
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
        packed = self.packed(means, x.n_features, prune=CENTROID_PRUNE, compress=self.is_compressed)
        return self.replaced(labels, packed)


def _scaled(matrix: Any, factors: NDArray[Any]) -> sp.csr_array:
    """Each row times its factor."""
    data = matrix.data * np.repeat(factors, np.diff(matrix.indptr))
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
