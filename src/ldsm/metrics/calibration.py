"""Calibration: how often labels with a given score are true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .hits import Ranking
from .inputs import check_rows, fail, positive, read_labels, read_predictions, widen

__all__ = ["Reliability", "reliability"]


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predictions in bins by score; empty bins are left out.

    Attributes
    ----------
    scores : float64 (n_bins,)
        Mean score of each bin.
    frequencies : float64 (n_bins,)
        Share of the bin's predictions that are true labels.
    counts : int64 (n_bins,)
        Number of predictions in each bin.
    error : float
        The expected calibration error (ECE): the distance between score and frequency, averaged
        over all predictions.
    """

    scores: npt.NDArray[np.float64]
    frequencies: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]
    error: float


def reliability(y_true: Any, labels: Any, scores: Any, n_bins: int = 10) -> Reliability:
    """Compare scores with the share of true labels.

    Parameters
    ----------
    y_true : 0/1 matrix or list of label-id lists
        The true labels, as for `ldsm.metrics`.
    labels, scores : arrays of shape (n_rows, k)
        Column numbers and their scores in [0, 1], as returned by ``predict_topk`` if Y was a
        matrix. -1 means no prediction.
    n_bins : int, default=10
        Number of bins of equal width.

    Examples
    --------
    >>> found = reliability([[0], [1]], [[0, 1], [0, 1]], [[0.75, 0.25], [0.75, 0.25]])
    >>> found.scores, found.frequencies, found.counts, found.error
    (array([0.25, 0.75]), array([0.5, 0.5]), array([2, 2]), 0.25)
    """
    positive("n_bins", n_bins)
    truth, _ = read_labels(y_true, "y_true")
    values = np.asarray(scores, dtype=np.float64)
    columns, _ = read_predictions((labels, values), max(1, np.shape(labels)[-1]))
    check_rows(truth.shape[0], columns.shape[0])
    predicted = columns >= 0
    if (wrong := predicted & ~((values >= 0) & (values <= 1))).any():
        fail("scores", values[wrong][0].item(), "in [0, 1]")
    truth = widen(truth, max(truth.shape[1], int(columns.max(initial=-1)) + 1))
    hits = Ranking(truth, columns, columns.shape[1], None).hits
    right = np.zeros(columns.shape, dtype=bool)
    right[hits.rows, hits.ranks] = True
    bins = np.minimum((values[predicted] * n_bins).astype(np.int64), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    used = counts > 0
    mean_score, frequency = (
        np.bincount(bins, weights=of[predicted], minlength=n_bins)[used] / counts[used]
        for of in (values, right)
    )
    gaps = np.abs(mean_score - frequency) * counts[used]
    error = float(gaps.sum() / counts.sum()) if counts.any() else float("nan")
    return Reliability(mean_score, frequency, counts[used], error)
