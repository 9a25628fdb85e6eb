"""Shortlists of training rows, by the trees that never saw each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from .._arrays.features import FeatureArrays
from .._trees.forest import Forest

_CHUNK = 65536  # rows; a multiple of 8, so that chunks of packed bits start at whole bytes


@dataclass(frozen=True, eq=False)
class Shortlists:
    """The shortlist of each row, labels ascending, with the trees' scores."""

    indptr: NDArray[np.int64]
    labels: NDArray[np.int32]
    scores: NDArray[np.float32]

    def rows(self, chosen: NDArray[np.int64]) -> Shortlists:
        """The shortlists of some rows, in the given order."""
        lengths = np.diff(self.indptr)[chosen]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
        entries = np.repeat(self.indptr[chosen], lengths) + within
        return Shortlists(indptr, self.labels[entries], self.scores[entries])

    def matrix(self, n_labels: int) -> sp.csr_array:
        """The scores as a matrix of rows x labels."""
        shape = (len(self.indptr) - 1, n_labels)
        return sp.csr_array((self.scores, self.labels, self.indptr), shape=shape)


def out_of_bag(
    forest: Forest,
    x: FeatureArrays,
    seed: int,
    subsample: float,
    fill_order: NDArray[np.int32],
    *,
    by_rows: bool,
    k: int,
) -> Shortlists:
    """Each row's k best labels by the trees that never saw it.

    A row that every tree saw has no scores.
    """
    n_rows, n_trees = x.n_rows, forest.n_trees
    # One bit per row and tree, to keep the masks of a large forest small.
    bags = np.stack(
        [np.packbits(_core.bag_mask(seed, t, n_rows, subsample)) for t in range(n_trees)]
    )
    counts, labels, scores = [], [], []
    for start in range(0, n_rows, _CHUNK):
        stop = min(start + _CHUNK, n_rows)
        part = bags[:, start // 8 : (stop + 7) // 8]
        skip = np.ascontiguousarray(np.unpackbits(part, axis=1, count=stop - start).T)
        best, score = forest.top_labels(
            x.rows(start, stop), k, fill_order, by_rows=by_rows, skip=skip
        )
        scored = score > 0
        counts.append(scored.sum(axis=1))
        order = np.argsort(np.where(scored, best, np.iinfo(np.int32).max), axis=1, kind="stable")
        scored = np.take_along_axis(scored, order, axis=1)
        labels.append(np.take_along_axis(best, order, axis=1)[scored])
        scores.append(np.take_along_axis(score, order, axis=1)[scored])
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64)
    return Shortlists(indptr, np.concatenate(labels), np.concatenate(scores))
