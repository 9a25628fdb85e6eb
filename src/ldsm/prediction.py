"""What a forest says of many rows: in threads, over all labels or some."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import gen_even_slices

from .forest import Forest
from .inputs import FeatureArrays
from .interrupts import Recall

# Fewer rows than this are not worth waking threads for.
PARALLEL_ROWS = 64
Answer = TypeVar("Answer")


def top_columns(
    forest: Forest,
    x: FeatureArrays,
    k: int,
    fill_order: NDArray[np.int32],
    allowed: NDArray[np.uint8] | None,
    *,
    by_rows: bool,
    n_jobs: int | None,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The k best columns of each row, best first, and their scores."""
    parts = _in_parallel(
        lambda part, cancel: forest.top_labels(
            part, k, fill_order, by_rows=by_rows, allowed=allowed, cancel=cancel
        ),
        x,
        n_jobs,
    )
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def all_scores(
    forest: Forest,
    x: FeatureArrays,
    allowed: NDArray[np.uint8] | None,
    *,
    by_rows: bool,
    n_jobs: int | None,
) -> sp.csr_array:
    """Every positive score; columns that are not allowed stay empty."""

    def score(part: FeatureArrays, cancel: NDArray[np.int32] | None) -> sp.csr_array:
        indptr, labels, values = forest.scores(part, by_rows=by_rows, cancel=cancel)
        return sp.csr_array((values, labels, indptr), shape=(part.n_rows, forest.n_labels))

    scores = sp.vstack(_in_parallel(score, x, n_jobs), format="csr")
    if allowed is not None:
        scores.data *= allowed[scores.indices]
        scores.eliminate_zeros()
    return scores


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
