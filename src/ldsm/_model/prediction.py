"""What a model says of many rows: in threads, over all labels or some."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeVar

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import gen_even_slices

from .._arrays.inputs import FeatureArrays
from .._runtime.cancellation import Recall
from .._second_stage.stage import SHORTLIST, SecondStage, best_first
from .._trees.forest import Forest
from ..metrics.ranking import jain_propensities

# Fewer rows than this are not worth waking threads for.
PARALLEL_ROWS = 64
Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class Predictor:
    """What a fitted model predicts with.

    Attributes
    ----------
    forest : Forest
    stage : SecondStage or None
        Without one the order is the trees'.
    fill_order : int32 (n_labels,)
        The columns by frequency, for rows with too few scores.
    by_rows : bool
        Whether leaves score by their rows or by their labels.
    n_jobs : int or None
    """

    forest: Forest
    stage: SecondStage | None
    fill_order: NDArray[np.int32]
    by_rows: bool
    n_jobs: int | None

    def top_columns(
        self,
        x: FeatureArrays,
        k: int,
        allowed: NDArray[np.uint8] | None = None,
        weights: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The k best columns of each row, best first, and their scores.

        `weights` of the columns change the order only.
        """
        reorder = self.stage is not None or weights is not None
        length = max(k, self.shortlist_length(allowed)) if reorder else k

        def answer(
            part: FeatureArrays, cancel: NDArray[np.int32] | None
        ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
            labels, scores = self.tree_columns(part, length, allowed, cancel)
            if self.stage is not None:
                scores = self.stage.scores(part, labels, scores, cancel)
            return best_first(labels, scores, k, weights) if reorder else (labels, scores)

        parts = _in_parallel(answer, x, self.n_jobs)
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def tree_columns(
        self,
        x: FeatureArrays,
        k: int,
        allowed: NDArray[np.uint8] | None = None,
        cancel: NDArray[np.int32] | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The k best columns of each row by the trees alone, and the trees' scores."""
        return self.forest.top_labels(
            x, k, self.fill_order, by_rows=self.by_rows, allowed=allowed, cancel=cancel
        )

    def scores(self, x: FeatureArrays, allowed: NDArray[np.uint8] | None = None) -> sp.csr_array:
        """Every positive score, with a second stage of the shortlists; the others stay empty."""
        if self.stage is not None:
            return self._shortlist_scores(x, allowed)

        def score(part: FeatureArrays, cancel: NDArray[np.int32] | None) -> sp.csr_array:
            indptr, labels, values = self.forest.scores(part, by_rows=self.by_rows, cancel=cancel)
            return sp.csr_array((values, labels, indptr), shape=(part.n_rows, self.forest.n_labels))

        scores = sp.vstack(_in_parallel(score, x, self.n_jobs), format="csr")
        if allowed is not None:
            scores.data *= allowed[scores.indices]
            scores.eliminate_zeros()
        return scores

    def _shortlist_scores(
        self, x: FeatureArrays, allowed: NDArray[np.uint8] | None
    ) -> sp.csr_array:
        columns, scores = self.top_columns(x, self.shortlist_length(allowed), allowed)
        order = np.argsort(columns, axis=1)
        columns = np.take_along_axis(columns, order, axis=1)
        scores = np.take_along_axis(scores, order, axis=1)
        found = scores > 0
        indptr = np.concatenate([[0], np.cumsum(found.sum(axis=1))])
        shape = (x.n_rows, self.forest.n_labels)
        return sp.csr_array((scores[found], columns[found], indptr), shape=shape)

    def shortlist_length(self, allowed: NDArray[np.uint8] | None = None) -> int:
        """How many labels of a row the second stage looks at, where the trees know so many."""
        most = self.forest.n_labels if allowed is None else int(allowed.sum())
        return min(SHORTLIST, most)


def label_weights(
    tail: float, label_rows: NDArray[np.int64], n_rows: int
) -> NDArray[np.float64] | None:
    """What each label's score is multiplied with for the order; None for all alike."""
    check_tail(tail)
    if tail == 0:
        return None
    propensities = jain_propensities(label_rows, max(n_rows, 3))
    return np.asarray(propensities**-tail)


def check_tail(tail: float) -> None:
    """Raise unless `tail` can be an exponent of the propensities."""
    if not isinstance(tail, Real) or isinstance(tail, bool) or not 0 <= tail <= sys.float_info.max:
        raise ValueError(f"The 'tail' parameter must be a float >= 0. Got {tail!r} instead.")


def allowed_columns(labels: Iterable[Any], classes: NDArray[Any]) -> NDArray[np.uint8]:
    """1 for each column whose label is among `labels`."""
    if isinstance(labels, str):
        raise ValueError(f"The 'labels' parameter must be a list of labels. Got {labels!r}.")
    number = {label: i for i, label in enumerate(classes.tolist())}
    allowed = np.zeros(len(classes), dtype=np.uint8)
    for label in labels:
        if label not in number:
            raise ValueError(f"The 'labels' parameter must name labels seen in fit. Got {label!r}.")
        allowed[number[label]] = 1
    if not allowed.any():
        raise ValueError("The 'labels' parameter must name at least one label. Got none.")
    return allowed


def _in_parallel(
    work: Callable[[FeatureArrays, NDArray[np.int32] | None], Answer],
    x: FeatureArrays,
    n_jobs: int | None,
) -> list[Answer]:
    """Apply `work` to consecutive rows, in threads; rows are independent of each other."""
    n_jobs = joblib.effective_n_jobs(n_jobs) if x.n_rows >= PARALLEL_ROWS else 1
    if n_jobs == 1:
        return [work(x, None)]
    parts = [x.rows(s.start, s.stop) for s in gen_even_slices(x.n_rows, n_jobs)]
    recall = Recall.for_tasks(len(parts))

    def task(i: int) -> Answer:
        with recall.entered(i) as cancel:
            return work(parts[i], cancel)

    with recall.on_failure():
        tasks = (joblib.delayed(task)(i) for i in range(len(parts)))
        return list(joblib.Parallel(n_jobs=n_jobs, require="sharedmem")(tasks))
