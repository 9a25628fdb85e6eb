"""Shortlists: each row's candidates, by the trees and by an index from features to labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from .._arrays.features import FeatureArrays
from .._runtime.threads import CancelFlag, in_threads
from .._trees.forest import Forest
from .feature_index import FeatureIndex, FoldedIndex

_CHUNK = 8192  # rows; a multiple of 8, so that chunks of packed bits start at whole bytes


@dataclass(frozen=True, eq=False)
class Shortlists:
    """The shortlist of each row, labels ascending, with the scores of the matchers."""

    indptr: NDArray[np.int64]
    labels: NDArray[np.int32]
    tree_scores: NDArray[np.float32]
    index_scores: NDArray[np.float32] | None  # None if the trees match alone

    @classmethod
    def joined(cls, parts: Sequence[Shortlists]) -> Shortlists:
        """The lists of consecutive rows."""
        if len(parts) == 1:
            return parts[0]
        ends = np.cumsum([0] + [part.indptr[-1] for part in parts[:-1]])
        indptr = [part.indptr[1:] + end for part, end in zip(parts, ends, strict=True)]
        by_index = [part.index_scores for part in parts if part.index_scores is not None]
        return cls(
            np.concatenate([np.zeros(1, np.int64), *indptr]),
            np.concatenate([part.labels for part in parts]),
            np.concatenate([part.tree_scores for part in parts]),
            np.concatenate(by_index) if by_index else None,
        )

    def rows(self, chosen: NDArray[np.int64]) -> Shortlists:
        """The shortlists of some rows, in the given order."""
        lengths = np.diff(self.indptr)[chosen]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
        entries = np.repeat(self.indptr[chosen], lengths) + within
        by_index = None if self.index_scores is None else self.index_scores[entries]
        return Shortlists(indptr, self.labels[entries], self.tree_scores[entries], by_index)

    def tree_matrix(self, n_labels: int) -> sp.csr_array:
        """The trees' scores as a matrix of rows x labels."""
        shape = (len(self.indptr) - 1, n_labels)
        matrix = sp.csr_array((self.tree_scores, self.labels, self.indptr), shape=shape, copy=True)
        matrix.eliminate_zeros()
        return matrix


def match(
    forest: Forest,
    x: FeatureArrays,
    length: int,
    index: FeatureIndex | None,
    *,
    by_rows: bool,
    allowed: NDArray[np.uint8] | None = None,
    cancel: CancelFlag | None = None,
) -> Shortlists:
    """The shortlists of new rows, at most `length` labels each."""
    indexes = [] if index is None else [index]
    return _matched(forest, x, length, indexes, by_rows, allowed=allowed, cancel=cancel)


def _matched(
    forest: Forest,
    x: FeatureArrays,
    length: int,
    indexes: Sequence[FeatureIndex],
    by_rows: bool,
    **options: Any,
) -> Shortlists:
    own = x.leading(forest.n_features).checked
    found = _core.shortlists(forest, by_rows, own, length, indexes, **options)
    return Shortlists(*found[:3], found[3] if indexes else None)


@dataclass(frozen=True, eq=False)
class OutOfBag:
    """Matches training rows by what has never seen them: trees out of bag, indexes out of fold."""

    forest: Forest
    x: FeatureArrays
    seed: int
    subsample: float
    by_rows: bool
    n_jobs: int

    def match(
        self,
        length: int,
        index: FoldedIndex | None,
        rows: NDArray[np.int64] | None = None,
    ) -> Shortlists:
        """The shortlists of all rows, or of some. A row that every tree saw has no tree scores."""
        n_rows, n_trees = self.x.n_rows, self.forest.n_trees
        indexes = () if index is None else index.parts
        # One bit per row and tree, to keep the masks of a large forest small.
        masks = (_core.bag_mask(self.seed, t, n_rows, self.subsample) for t in range(n_trees))
        bags = np.stack([np.packbits(self._chosen(mask, rows)) for mask in masks])
        x = self.x if rows is None else self.x.take(rows)
        folds = None if index is None else self._chosen(index.folds, rows)

        def match(task: int, cancel: CancelFlag) -> Shortlists:
            start, stop = task * _CHUNK, min((task + 1) * _CHUNK, x.n_rows)
            part = bags[:, start // 8 : (stop + 7) // 8]
            skip = np.ascontiguousarray(np.unpackbits(part, axis=1, count=stop - start).T)
            fold = None if folds is None else folds[start:stop]
            return _matched(
                self.forest, x.rows(start, stop), length, indexes, self.by_rows,
                skip=skip, fold=fold, cancel=cancel,
            )  # fmt: skip

        return Shortlists.joined(in_threads(match, -(-x.n_rows // _CHUNK), self.n_jobs))

    @staticmethod
    def _chosen(numbers: NDArray[Any], rows: NDArray[np.int64] | None) -> NDArray[Any]:
        return numbers if rows is None else numbers[rows]
