"""The second stage: rescores the shortlist of a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._arrays.features import FeatureArrays
from .._runtime.threads import CancelFlag
from .._trees.forest import Forest
from .blend import Blend, Pairs
from .feature_index import FeatureIndex
from .shortlists import Shortlists, match
from .vectors import LabelVectors

Scores = NDArray[np.float32]
SHORTLIST = 100  # labels per row, unless more are found worth having


@dataclass(frozen=True, eq=False)
class SecondStage:
    """Makes and rescores shortlists; trained in ``ldsm._second_stage.training``."""

    blend: Blend
    label_counts: NDArray[np.int64]  # training rows per label
    length: int  # of a shortlist
    # Parts that are None unless the blend needs them.
    index: FeatureIndex | None = None
    ranker: LabelVectors | None = None
    centroids: LabelVectors | None = None

    def shortlists(
        self,
        forest: Forest,
        x: FeatureArrays,
        *,
        by_rows: bool,
        allowed: NDArray[np.uint8] | None = None,
        cancel: CancelFlag | None = None,
    ) -> Shortlists:
        """The candidates of each row."""
        return match(
            forest, x, self.length, self.index, by_rows=by_rows, allowed=allowed, cancel=cancel
        )

    def pairs(self, x: FeatureArrays, lists: Shortlists, cancel: CancelFlag | None = None) -> Pairs:
        """The signals of the labels on each row's shortlist."""
        indptr, labels = lists.indptr, lists.labels
        margins = distances = None
        if self.ranker is not None:
            margins = self.ranker.products(x, indptr, labels, cancel)
        if self.centroids is not None:
            distances = self.centroids.squared_distances(x, indptr, labels, cancel)
        tree_scores = np.minimum(lists.tree_scores, 1)  # may be infinite in a damaged file
        return Pairs(tree_scores, self.label_counts[labels], margins, distances, lists.index_scores)

    def scores(
        self, x: FeatureArrays, lists: Shortlists, cancel: CancelFlag | None = None
    ) -> Scores:
        """Probabilities of the labels on each row's shortlist."""
        return self.blend.probabilities(self.pairs(x, lists, cancel))

    def parts(self) -> Iterator[tuple[str, FeatureIndex | LabelVectors]]:
        """What the blend needs, by name."""
        for name in self.blend.needs:
            part: FeatureIndex | LabelVectors = getattr(self, name)
            yield name, part
