"""Ranking metrics: precision, nDCG, recall, coverage, propensity-scored forms, and F1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from .hits import Ranking, RankingSums
from .inputs import (
    check_rows,
    common_width,
    fail,
    positive,
    read_labels,
    read_predictions,
    read_weights,
    widen,
)
from .names import numbered
from .propensities import propensities as label_propensities

WEIGHTED = ("psp", "psndcg")
UNWEIGHTED = ("precision", "ndcg", "recall", "coverage", "r_precision")
METRICS = (*UNWEIGHTED, *WEIGHTED)


def precision_at_k(y_true: Any, y_pred: Any, k: int = 5) -> float:
    """Share of the k predictions that are true labels (P@k).

    Parameters
    ----------
    y_true : 0/1 matrix or list of label-id lists
        The true labels; the forms are described at the top of `ldsm.metrics`.
    y_pred : scores, label ids, or (labels, scores)
        The predictions; the forms are described there, too.
    k : int, default=5
        Number of predictions per row to evaluate.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> precision_at_k([[0, 2], [1]], [[2, 1], [1, 0]], k=2)
    0.5
    """
    return rank(y_true, y_pred, [k]).value("precision", k)


def ndcg_at_k(y_true: Any, y_pred: Any, k: int = 5) -> float:
    """Precision in which a hit at rank r counts 1/log2(r + 1), relative to the best (nDCG@k).

    Parameters
    ----------
    y_true : 0/1 matrix or list of label-id lists
        The true labels; the forms are described at the top of `ldsm.metrics`.
    y_pred : scores, label ids, or (labels, scores)
        The predictions; the forms are described there, too.
    k : int, default=5
        Number of predictions per row to evaluate.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> round(ndcg_at_k([[0, 2], [1]], [[2, 1], [0, 1]], k=2), 4)
    0.622
    """
    return rank(y_true, y_pred, [k]).value("ndcg", k)


def recall_at_k(y_true: Any, y_pred: Any, k: int = 5) -> float:
    """Share of a row's true labels among its k predictions, averaged over the rows (R@k).

    Parameters
    ----------
    y_true : 0/1 matrix or list of label-id lists
        The true labels; the forms are described at the top of `ldsm.metrics`.
    y_pred : scores, label ids, or (labels, scores)
        The predictions; the forms are described there, too.
    k : int, default=5
        Number of predictions per row to evaluate.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> recall_at_k([[0, 2], [1]], [[2, 1], [1, 0]], k=2)
    0.75
    """
    return rank(y_true, y_pred, [k]).value("recall", k)


def r_precision_at_k(y_true: Any, y_pred: Any, k: int = 5) -> float:
    """Precision relative to the best possible: hits / min(k, true labels), over the rows (RP@k).

    The R-Precision@K of Chalkidis et al. (ACL 2019). With fewer than k true labels it is the recall
    at k, otherwise the precision at k.

    Parameters
    ----------
    y_true : 0/1 matrix or list of label-id lists
        The true labels; the forms are described at the top of `ldsm.metrics`.
    y_pred : scores, label ids, or (labels, scores)
        The predictions; the forms are described there, too.
    k : int, default=5
        Number of predictions per row to evaluate.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> r_precision_at_k([[0, 2], [1]], [[2, 1], [1, 0]], k=2)
    0.75
    """
    return rank(y_true, y_pred, [k]).value("r_precision", k)


def coverage_at_k(y_true: Any, y_pred: Any, k: int = 5) -> float:
    """Share of the distinct true labels that are found in at least one row.

    Low coverage with high precision means that the model mostly predicts frequent labels.

    Parameters
    ----------
    y_true : 0/1 matrix or list of label-id lists
        The true labels; the forms are described at the top of `ldsm.metrics`.
    y_pred : scores, label ids, or (labels, scores)
        The predictions; the forms are described there, too.
    k : int, default=5
        Number of predictions per row to evaluate.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> coverage_at_k([[0, 1], [0], [0, 2]], [[0], [0], [2]], k=1)
    0.6666666666666666
    """
    return rank(y_true, y_pred, [k]).value("coverage", k)


def psp_at_k(y_true: Any, y_pred: Any, k: int = 5, *, propensities: npt.ArrayLike) -> float:
    """Propensity-scored precision (PSP@k): a hit counts 1/propensity, relative to the best.

    Parameters
    ----------
    y_true : 0/1 matrix or list of label-id lists
        The true labels; the forms are described at the top of `ldsm.metrics`.
    y_pred : scores, label ids, or (labels, scores)
        The predictions; the forms are described there, too.
    k : int, default=5
        Number of predictions per row to evaluate.
    propensities : array of shape (n_labels,)
        Numbers in (0, 1], as returned by `ldsm.metrics.propensities`.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> psp_at_k([[0, 1], [1]], [[0], [1]], k=1, propensities=[0.5, 0.25])
    0.75
    """
    return rank(y_true, y_pred, [k], propensities).value("psp", k)


def psndcg_at_k(y_true: Any, y_pred: Any, k: int = 5, *, propensities: npt.ArrayLike) -> float:
    """Propensity-scored nDCG (PSnDCG@k).

    Each row's gain and its best possible gain are divided by the row's ideal plain DCG; the result
    is the ratio of their sums over the rows.

    Parameters
    ----------
    y_true : 0/1 matrix or list of label-id lists
        The true labels; the forms are described at the top of `ldsm.metrics`.
    y_pred : scores, label ids, or (labels, scores)
        The predictions; the forms are described there, too.
    k : int, default=5
        Number of predictions per row to evaluate.
    propensities : array of shape (n_labels,)
        Numbers in (0, 1], as returned by `ldsm.metrics.propensities`.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> round(psndcg_at_k([[0, 1]], [[0, 1]], k=2, propensities=[0.5, 0.25]), 4)
    0.8597
    """
    return rank(y_true, y_pred, [k], propensities).value("psndcg", k)


def f1_score(y_true: Any, y_pred: Any, average: str = "micro") -> float:
    """F1 of predicted label sets, by scikit-learn.

    A label or row with nothing true and nothing predicted counts as 0.

    Parameters
    ----------
    y_true, y_pred : 0/1 matrix or list of label-id lists
        The true and the predicted sets.
    average : {"micro", "macro", "samples"}, default="micro"
        Over all (row, label) pairs, or the mean over labels or rows.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> f1_score([[0, 1], [1]], [[0], [1]])
    0.8
    """
    if average not in ("micro", "macro", "samples"):
        fail("average", average, "'micro', 'macro' or 'samples'")
    true, true_fixed = read_labels(y_true, "y_true")
    pred, pred_fixed = read_labels(y_pred, "y_pred")
    check_rows(true.shape[0], pred.shape[0])
    widths = {"y_true": (true.shape[1], true_fixed), "y_pred": (pred.shape[1], pred_fixed)}
    width = common_width(widths)
    # scikit-learn takes one column for a binary target: add an empty one and ignore it.
    true, pred = (widen(matrix, max(width, 2)) for matrix in (true, pred))
    labels = None if width > 1 else [0]
    from sklearn import metrics  # slow to import, and needed only here

    return float(metrics.f1_score(true, pred, labels=labels, average=average, zero_division=0))


def ranking_report(
    y_true: Any,
    y_pred: Any,
    ks: Sequence[int] = (1, 3, 5),
    *,
    propensities: npt.ArrayLike | None = None,
    y_train: Any = None,
    dataset: str | None = None,
) -> dict[str, float]:
    """All ranking metrics in one pass: a dict such as ``{"precision@1": 0.7, ...}``.

    Parameters
    ----------
    y_true : 0/1 matrix or list of label-id lists
        The true labels; the forms are described at the top of `ldsm.metrics`.
    y_pred : scores, label ids, or (labels, scores)
        The predictions; the forms are described there, too.
    ks : sequence of int, default=(1, 3, 5)
        Numbers of predictions to evaluate.
    propensities : array of shape (n_labels,), optional
        For PSP@k and PSnDCG@k.
    y_train : 0/1 matrix or list of label-id lists, optional
        The labels of the training rows, to estimate the propensities from.
    dataset : str, optional
        With `y_train`: use the A and B of this data set, see `ldsm.metrics.propensities`.

    Returns
    -------
    dict of str to float
        By name, such as "precision@1"; propensity-scored metrics only with propensities.

    Examples
    --------
    >>> report = ranking_report([[0, 2], [1]], [[2, 1], [0, 1]], ks=[1])
    >>> report["precision@1"], report["recall@1"], sorted(report)[:2]
    (0.5, 0.25, ['coverage@1', 'ndcg@1'])
    """
    if propensities is not None and y_train is not None:
        fail("y_train", type(y_train).__name__, "None if propensities are given")
    if y_train is None and dataset is not None:
        fail("dataset", dataset, "None if y_train is not given")
    if not (ks := list(ks)):
        fail("ks", ks, "a non-empty sequence of integers >= 1")
    return _sums(rank(y_true, y_pred, ks, propensities, y_train, dataset), ks).report()


def ranking_sums(
    y_true: Any, y_pred: Any, ks: Sequence[int], *, propensities: npt.ArrayLike | None = None
) -> RankingSums:
    """The sums behind `ranking_report` for a part of the rows; add them over all parts."""
    return _sums(rank(y_true, y_pred, ks, propensities), ks)


def rank(
    y_true: Any,
    y_pred: Any,
    ks: Sequence[int],
    propensities: npt.ArrayLike | None = None,
    y_train: Any = None,
    dataset: str | None = None,
) -> Ranking:
    """Check the input, convert it to one form and find the hits."""
    k = max(positive("k", k) for k in ks)
    y_true, y_pred, y_train = numbered(y_true, y_pred, y_train)
    truth, truth_fixed = read_labels(y_true, "y_true")
    top, n_scored = read_predictions(y_pred, k)
    check_rows(truth.shape[0], top.shape[0])
    widths = {"y_true": (truth.shape[1], truth_fixed)}
    widths["y_pred"] = (n_scored or int(top.max(initial=-1)) + 1, n_scored is not None)
    weights = None
    if propensities is not None:
        weights = read_weights(propensities)
        widths["propensities"] = (len(weights), True)
    if y_train is not None:
        train, train_fixed = read_labels(y_train, "y_train")
        widths["y_train"] = (train.shape[1], train_fixed)
    width = common_width(widths)
    if y_train is not None:
        weights = 1 / label_propensities(widen(train, width), dataset=dataset)
    return Ranking(widen(truth, width), top[:, :k], k, weights)


def _sums(ranking: Ranking, ks: Sequence[int]) -> RankingSums:
    return RankingSums.of(ranking, METRICS if ranking.weights is not None else UNWEIGHTED, ks)
