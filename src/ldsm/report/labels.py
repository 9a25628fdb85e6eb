"""Statistics of labels on held-out rows: recall, confusions and cost of prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._arrays.features import FeatureArrays
from .._trees.forest import Forest
from ..evaluation import Evaluation
from ..metrics.hits import Ranking

ENOUGH_ROWS = 10
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """Counts of each label on the held-out rows, with the predictions of `Evaluation.top`."""

    rows: NDArray[np.int64]  # that have the label
    predicted: NDArray[np.int64]  # with the label among their best predictions
    right: NDArray[np.int64]  # with both

    @property
    def recall(self) -> NDArray[np.float64]:
        """The share of a label's rows for which it is predicted; 0 if it has no rows."""
        return np.asarray(self.right / np.maximum(self.rows, 1))

    def enough(self, wanted: int) -> int:
        """Minimum number of rows for a comparison: ten, or fewer if too few labels have ten."""
        most = np.sort(self.rows)[::-1]
        return max(1, min(ENOUGH_ROWS, int(most[min(wanted, len(most)) - 1])))


class Confusion(NamedTuple):
    """A true label, a label predicted instead, and the number of rows where this happened."""

    true: int
    predicted: int
    rows: int


class Work(NamedTuple):
    """The work per row: splits evaluated, leaves reached, and their mean depth."""

    splits: NDArray[np.int64]
    leaves: NDArray[np.int64]
    depth: NDArray[np.float64]


def count_labels(evaluation: Evaluation) -> LabelCounts:
    """Count the rows where each label is true, predicted, and both."""
    columns, scores = evaluation.top
    n_labels = evaluation.truth.shape[1]
    hits = Ranking(evaluation.truth, columns, columns.shape[1], None).hits
    predicted = scores > 0  # labels without a score are padding
    right = hits.labels[predicted[hits.rows, hits.ranks]]
    return LabelCounts(
        *(
            np.bincount(labels, minlength=n_labels)
            for labels in (evaluation.truth.indices, columns[predicted], right)
        )
    )


def confusions(evaluation: Evaluation, limit: int) -> list[Confusion]:
    """The labels that are confused in the most rows.

    A row with n true labels is judged by its n best predictions (at most five): each missed true
    label counts as confused with each wrong label among them.
    """
    columns, scores = evaluation.top
    truth = evaluation.truth
    sizes = np.diff(truth.indptr)
    hits = Ranking(truth, columns, columns.shape[1], None).hits
    judged = (np.arange(columns.shape[1]) < sizes[:, None]) & (scores > 0)
    is_right = np.zeros(columns.shape, dtype=bool)
    is_right[hits.rows, hits.ranks] = True
    wrong, right_labels = (
        _indicator(columns, judged & which, truth.shape[1]) for which in (~is_right, is_right)
    )
    missed = sp.csr_array((np.ones(truth.nnz, np.int32), truth.indices, truth.indptr), truth.shape)
    missed = (missed - right_labels).tocsr()
    missed.eliminate_zeros()
    confused = (missed.T.tocsr() @ wrong).tocoo()
    order = np.lexsort((confused.col, confused.row, -confused.data))[:limit]
    return [
        Confusion(*map(int, entry))
        for entry in zip(
            confused.row[order], confused.col[order], confused.data[order], strict=True
        )
    ]


def prediction_work(forest: Forest, x: FeatureArrays) -> Work:
    """The work of predicting each row, over all trees."""
    leaf, depth = forest.is_leaf, forest.node_depth()
    parts = []
    for start in range(0, x.n_rows, _ROWS_AT_ONCE):
        part = x.rows(start, min(start + _ROWS_AT_ONCE, x.n_rows))
        offsets, nodes = forest.visited_nodes(part)
        leaves = _sums(leaf[nodes], offsets)
        depths = _sums(depth[nodes] * leaf[nodes], offsets)
        parts.append(Work(np.diff(offsets) - leaves, leaves, depths / np.maximum(leaves, 1)))
    return Work(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def mean_by_label(values: NDArray[np.generic], evaluation: Evaluation) -> NDArray[np.float64]:
    """For each label, the mean of `values` over its rows; 0 if it has no rows."""
    rows = np.bincount(evaluation.truth.indices, minlength=evaluation.truth.shape[1])
    return np.asarray((evaluation.truth.T @ values.astype(np.float64)) / np.maximum(rows, 1))


def _indicator(
    columns: NDArray[np.int32], chosen: NDArray[np.bool_], n_labels: int
) -> sp.csr_array:
    """A 0/1 matrix with 1 for each chosen column of a row."""
    indptr = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))])
    values = np.ones(indptr[-1], dtype=np.int32)
    matrix = sp.csr_array((values, columns[chosen], indptr), shape=(len(columns), n_labels))
    matrix.sort_indices()
    return matrix


def _sums(values: NDArray[np.generic], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums of the values between consecutive offsets; parts may be empty."""
    total = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    return np.diff(total[offsets])
