"""Statistics of labels on held-out rows: hits, mistakes, confusions and cost of prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._arrays.features import FeatureArrays
from .._arrays.matrices import canonical_csr, label_csr
from .._model.sets.thresholds import above_threshold
from .._trees.forest import Forest
from ..evaluation import Evaluation
from ..metrics.hits import Ranking

ENOUGH_ROWS = 10
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """Counts of each label on the held-out rows."""

    rows: NDArray[np.int64]  # that have the label
    predicted: NDArray[np.int64]  # for which it is predicted
    right: NDArray[np.int64]  # both
    in_top: NDArray[np.int64]  # that have it among their five best labels

    @property
    def mistakes(self) -> NDArray[np.int64]:
        """Rows for which the label is missed or wrongly predicted."""
        return np.asarray(self.rows + self.predicted - 2 * self.right)

    def enough(self, wanted: int) -> int:
        """Minimum number of rows for a comparison: ten, or fewer if too few labels have ten."""
        most = np.sort(self.rows)[::-1]
        return max(1, min(ENOUGH_ROWS, int(most[min(wanted, len(most)) - 1])))


@dataclass(frozen=True, eq=False)
class Sets:
    """Predicted and true labels of the held-out rows as 0/1 matrices of rows x labels."""

    predicted: sp.csr_array
    right: sp.csr_array
    missed: sp.csr_array
    wrong: sp.csr_array

    @classmethod
    def of(cls, evaluation: Evaluation) -> Sets:
        """The labels that reach the model's threshold; the best one if rows have one label."""
        model = evaluation.model
        truth = _ones(canonical_csr(evaluation.truth))
        if model.label_form == "single":
            best, offsets = evaluation.top[0][:, 0], np.arange(evaluation.n_rows + 1)
            predicted = _ones(label_csr(offsets, best, model.n_labels))
        else:
            predicted = _ones(above_threshold(evaluation.pairs.scores.copy(), model.threshold))
        right = _ones(sp.csr_array(predicted.multiply(truth)))
        return cls(predicted, right, _without(truth, right), _without(predicted, right))


class Confused(NamedTuple):
    """A label, and the number of rows where it takes the place of another one."""

    label: int
    rows: int


class Work(NamedTuple):
    """The work per row: splits evaluated, leaves reached, and their mean depth."""

    splits: NDArray[np.int64]
    leaves: NDArray[np.int64]
    depth: NDArray[np.float64]


def count_labels(evaluation: Evaluation, sets: Sets) -> LabelCounts:
    """Count the rows where each label is true, predicted, and both."""
    columns, scores = evaluation.top
    hits = Ranking(evaluation.truth, columns, columns.shape[1], None).hits
    in_top = hits.labels[scores[hits.rows, hits.ranks] > 0]  # labels without a score are padding
    of = (evaluation.truth.indices, sets.predicted.indices, sets.right.indices, in_top)
    n_labels = evaluation.truth.shape[1]
    return LabelCounts(*(np.bincount(labels, minlength=n_labels) for labels in of))


def taken_for(
    labels: NDArray[np.int64], theirs: sp.csr_array, others: sp.csr_array, limit: int
) -> list[list[Confused]]:
    """For each label, the labels of `others` in the rows where it is in `theirs`; most rows first.

    With missed and wrong labels: what is predicted where a label is missed. With wrong and missed
    labels: what is true where a label is predicted.
    """
    rows = (theirs[:, labels].T @ others).tocsr()
    found = []
    for start, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        columns, counts = rows.indices[start:end], rows.data[start:end]
        order = np.lexsort((columns, -counts))[:limit]
        found.append([Confused(int(columns[i]), int(counts[i])) for i in order])
    return found


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


def _ones(matrix: sp.csr_array) -> sp.csr_array:
    """The same entries as ones, in integers that can be counted."""
    values = np.ones(matrix.nnz, dtype=np.int32)
    return sp.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)


def _without(matrix: sp.csr_array, other: sp.csr_array) -> sp.csr_array:
    rest = sp.csr_array(matrix - other)
    rest.eliminate_zeros()
    return rest


def _sums(values: NDArray[np.generic], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums of the values between consecutive offsets; parts may be empty."""
    total = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    return np.diff(total[offsets])
