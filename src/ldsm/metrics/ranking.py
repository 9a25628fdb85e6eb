"""Metrics of extreme multi-label classification, as fractions in [0, 1].

**True labels** (`y_true`, `y_train`): a 0/1 matrix with one column per label, sparse or dense; or a
list of label-id lists, one per row. A list of lists always means label ids.

**Predictions** (`y_pred` of the ``*_at_k`` functions), one of:

- a sparse matrix of scores. Labels that are not stored are not predicted; stored values, zero and
  negative ones too, rank by value.
- a dense array of *floating* scores. Every label ranks, zeros too; ``-inf`` means "not predicted".
- an array of *integer* label ids, best first, -1 where a prediction is missing.
- a tuple ``(labels, scores)`` as ``predict_topk`` returns it. The order of the columns is the
  ranking; the scores are checked, not used.

So the dtype of a dense array decides: integers are label ids, floats are scores. Equal scores: the
lower label id first. Where a row has fewer than k predictions the missing ones are misses. Rows
without true labels count 0 in precision and are left out of nDCG and recall; if no row has a label,
all metrics but precision are nan. No input is changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

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

__all__ = [
    "coverage_at_k",
    "f1_score",
    "ndcg_at_k",
    "precision_at_k",
    "propensities",
    "psndcg_at_k",
    "psp_at_k",
    "ranking_report",
    "recall_at_k",
    "topk_scorer",
]

_Floats = npt.NDArray[np.float64]
_GENERAL, _WIKIPEDIA, _AMAZON = (0.55, 1.5), (0.5, 0.4), (0.6, 2.6)
# Family names, to be followed by an optional "titles" and size: "amazontitles670k".
_FAMILIES = {
    **dict.fromkeys(("amazoncat", "bibtex", "delicious", "eurlex", "mediamill"), _GENERAL),
    **dict.fromkeys(("rcv1x", "wiki10", "wikiseealso"), _GENERAL),
    **dict.fromkeys(("wikilshtc", "wikipedia", "wikipedialarge", "wikipedialshtc"), _WIKIPEDIA),
    **dict.fromkeys(("wiki500k", "wikititles500k"), _WIKIPEDIA),
    "amazon": _AMAZON,
}
_WEIGHTED = ("psp", "psndcg")
_UNWEIGHTED = ("precision", "ndcg", "recall", "coverage")
_METRICS = (*_UNWEIGHTED, *_WEIGHTED)


def precision_at_k(y_true: Any, y_pred: Any, k: int = 5) -> float:
    """Share of the k predictions that are true labels (P@k).

    Parameters
    ----------
    y_true : 0/1 matrix or list of label-id lists
        The true labels; the forms are described at the top of `ldsm.metrics`.
    y_pred : sparse or floating scores, integer label ids, or (labels, scores)
        The predictions; likewise.
    k : int, default=5
        How many predictions of each row count.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> precision_at_k([[0, 2], [1]], [[2, 1], [1, 0]], k=2)
    0.5
    """
    return _rank(y_true, y_pred, [k]).value("precision", k)


def ndcg_at_k(y_true: Any, y_pred: Any, k: int = 5) -> float:
    """Precision with the hit at rank r counted 1/log2(r + 1), over the best attainable (nDCG@k).

    Parameters and result are those of `precision_at_k`.

    Examples
    --------
    >>> round(ndcg_at_k([[0, 2], [1]], [[2, 1], [0, 1]], k=2), 4)
    0.622
    """
    return _rank(y_true, y_pred, [k]).value("ndcg", k)


def recall_at_k(y_true: Any, y_pred: Any, k: int = 5) -> float:
    """Share of a row's true labels among its k predictions, averaged over the rows (R@k).

    Parameters and result are those of `precision_at_k`.

    Examples
    --------
    >>> recall_at_k([[0, 2], [1]], [[2, 1], [1, 0]], k=2)
    0.75
    """
    return _rank(y_true, y_pred, [k]).value("recall", k)


def coverage_at_k(y_true: Any, y_pred: Any, k: int = 5) -> float:
    """Share of the distinct true labels that are predicted correctly for at least one row.

    Low coverage beside high precision: the model lives on the frequent labels. Parameters and
    result are those of `precision_at_k`.

    Examples
    --------
    >>> coverage_at_k([[0, 1], [0], [0, 2]], [[0], [0], [2]], k=1)
    0.6666666666666666
    """
    return _rank(y_true, y_pred, [k]).value("coverage", k)


def psp_at_k(y_true: Any, y_pred: Any, k: int = 5, *, propensities: npt.ArrayLike) -> float:
    """Propensity-scored precision (PSP@k): a hit counts 1/propensity, over the best attainable.

    The argument `propensities` holds one number in (0, 1] per label, as the function of that name
    returns them; the other parameters and the result are those of `precision_at_k`.

    Examples
    --------
    >>> psp_at_k([[0, 1], [1]], [[0], [1]], k=1, propensities=[0.5, 0.25])
    0.75
    """
    return _rank(y_true, y_pred, [k], propensities).value("psp", k)


def psndcg_at_k(y_true: Any, y_pred: Any, k: int = 5, *, propensities: npt.ArrayLike) -> float:
    """Propensity-scored nDCG (PSnDCG@k).

    Each row's gain, predicted and best attainable alike, is divided by the row's ideal plain DCG;
    then the sums over the rows are divided. Parameters and result are those of `psp_at_k`.

    Examples
    --------
    >>> round(psndcg_at_k([[0, 1]], [[0, 1]], k=2, propensities=[0.5, 0.25]), 4)
    0.8597
    """
    return _rank(y_true, y_pred, [k], propensities).value("psndcg", k)


def f1_score(y_true: Any, y_pred: Any, average: str = "micro") -> float:
    """F1 of predicted label sets (0/1 matrices or lists of label ids), by scikit-learn.

    `average` is ``"micro"`` (over all row-label pairs), ``"macro"`` (the mean over the labels) or
    ``"samples"`` (the mean over the rows). A label or row with nothing true and nothing predicted
    counts 0.

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
    # scikit-learn takes one column for a binary target: add an empty one, and leave it out again.
    true, pred = (widen(matrix, max(width, 2)) for matrix in (true, pred))
    labels = None if width > 1 else [0]
    from sklearn import metrics  # half of what `import ldsm` would take, and only this needs it

    return float(metrics.f1_score(true, pred, labels=labels, average=average, zero_division=0))


def propensities(
    y_train: Any,
    *,
    dataset: str | None = None,
    a: float | None = None,
    b: float | None = None,
    n_labels: int | None = None,
) -> _Floats:
    """Propensity of every label by the model of Jain, Prabhu and Varma (KDD 2016).

    Annotators miss labels, rare ones most of all. A label's propensity is the estimated chance that
    it was recorded where it applies, ``p = 1 / (1 + C (n + B)^-A)`` for a label on n of the N
    training rows, ``C = (ln N - 1)(B + 1)^A``.

    What A and B mean: a label with one training row always gets ``1 / ln N``, and A and B say how
    the propensity rises from there towards 1. **A** is the speed: with A near 0 all labels get
    almost the same propensity, with a large A labels of middling frequency already count as nearly
    always recorded. **B** is the delay: it is added to every count, so labels with far fewer rows
    than B are treated alike. Neither can be read off your own labels: the authors estimated them
    where missing labels could be counted, on Wikipedia and Amazon data, and the general values are
    the means of the two. Use a data set's own values to compare with published tables, the general
    ones otherwise.

    Parameters
    ----------
    y_train : 0/1 matrix or list of label-id lists
        The labels of all training rows, at least three.
    dataset : str, optional
        Take A and B of this data set: 0.5, 0.4 for WikiLSHTC-325K and Wikipedia-500K, 0.6, 2.6 for
        the Amazon sets (such as ``"amazon-670k"``), the general 0.55, 1.5 for AmazonCat and the
        other sets of the repository. Case and punctuation are ignored.
    a, b : float, optional
        A and B, to be given together; 0.55 and 1.5 if neither these nor `dataset` are given.
    n_labels : int, optional
        Number of labels, where `y_train` is lists and may lack the last ones.

    Returns
    -------
    ndarray of shape (n_labels,)
        Numbers in (0, 1).

    Examples
    --------
    >>> propensities([[0], [0, 1], [0], [0, 2]], dataset="Amazon-670K").round(3)
    array([0.788, 0.721, 0.721])
    """
    train, fixed = read_labels(y_train, "y_train")
    if n_labels is not None:
        sizes = {"n_labels": (positive("n_labels", n_labels), True)}
        train = widen(train, common_width(sizes | {"y_train": (train.shape[1], fixed)}))
    return _jain(train, *_a_and_b(dataset, a, b))


def jain_propensities(
    counts: npt.ArrayLike, n_rows: int, a: float = _GENERAL[0], b: float = _GENERAL[1]
) -> _Floats:
    """As `propensities`, from the number of rows of each label out of `n_rows` training rows."""
    c = (np.log(n_rows) - 1) * (b + 1) ** a
    return np.asarray(1 / (1 + c * (np.asarray(counts) + b) ** -a))


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

    The propensity-scored ones are there if `propensities` are given, or the training labels
    `y_train` to estimate them from (with A and B of `dataset`).

    Examples
    --------
    >>> ranking_report([[0, 2], [1]], [[2, 1], [0, 1]], ks=[1])
    {'precision@1': 0.5, 'ndcg@1': 0.5, 'recall@1': 0.25, 'coverage@1': 0.3333333333333333}
    """
    if propensities is not None and y_train is not None:
        fail("y_train", type(y_train).__name__, "None where propensities are given")
    if y_train is None and dataset is not None:
        fail("dataset", dataset, "None where no y_train is given")
    if not (ks := list(ks)):
        fail("ks", ks, "a non-empty sequence of integers >= 1")
    a_and_b = _a_and_b(dataset, None, None)
    ranking = _rank(y_true, y_pred, ks, propensities, y_train, a_and_b)
    return _sums(ranking, ks).report()


def ranking_sums(
    y_true: Any, y_pred: Any, ks: Sequence[int], *, propensities: npt.ArrayLike | None = None
) -> RankingSums:
    """As `ranking_report`, for a part of the rows: add up those of all parts, then report."""
    return _sums(_rank(y_true, y_pred, ks, propensities), ks)


def topk_scorer(metric: str = "precision", k: int = 5, *, propensities: Any = None) -> TopKScorer:
    """Return a scikit-learn scorer, for `cross_val_score`, `GridSearchCV` and the like.

    `metric` is ``"precision"``, ``"ndcg"``, ``"recall"``, ``"coverage"``, ``"psp"`` or
    ``"psndcg"``; the last two need `propensities`, one per column, or a dict by label name where Y
    is lists of names. An estimator without ``predict_topk``, a pipeline for instance, is ranked by
    its ``predict_proba`` or ``decision_function``.

    Examples
    --------
    >>> topk_scorer("ndcg", k=3)
    TopKScorer(metric='ndcg', k=3, propensities=None)
    """
    if metric not in _METRICS:
        fail("metric", metric, f"one of {', '.join(map(repr, _METRICS))}")
    if (propensities is not None) != (metric in _WEIGHTED):
        allowed = f"given for {' and '.join(_WEIGHTED)}, and only there"
        fail("propensities", type(propensities).__name__, allowed)
    return TopKScorer(metric, positive("k", k), propensities)


@dataclass(frozen=True, eq=False)
class TopKScorer:
    """Callable ``(estimator, X, y) -> float``; made by `topk_scorer`."""

    metric: str
    k: int
    propensities: Any = None

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        methods = ("predict_topk", "predict_proba", "decision_function")
        method = next((name for name in methods if hasattr(estimator, name)), None)
        if method is None:
            fail("estimator", estimator, f"one with {' or '.join(methods)}")
        if method == "predict_topk":
            top = np.asarray(estimator.predict_topk(X, k=self.k)[0])
        else:
            top = read_predictions(getattr(estimator, method)(X), self.k)[0]
        propensities = self.propensities
        if not _is_indicator(y, estimator):
            column = {name: i for i, name in enumerate(estimator.classes_)}
            if method == "predict_topk":
                names = top.ravel().tolist()
                if unknown := set(names) - column.keys() - {-1, None}:
                    fail("estimator", unknown.pop(), "one that predicts labels of its classes_")
                top = np.array([column.get(n, -1) for n in names], np.int64).reshape(top.shape)
            # A label that training never saw gets a column beyond the known ones: always a miss.
            rows = (row if _is_row(row) else [row] for row in y)
            y = [[column.setdefault(name, len(column)) for name in row] for row in rows]
            if propensities is not None:
                if not isinstance(propensities, Mapping) or column.keys() - propensities.keys():
                    allowed = "a dict with every label name of y and classes_"
                    fail("propensities", type(propensities).__name__, allowed)
                propensities = [propensities[name] for name in column]
        elif not sp.issparse(y):
            y = np.asarray(y)
        ranking = _rank(y, top, [self.k], propensities)
        return ranking.value(self.metric, self.k)


def _is_row(row: Any) -> bool:
    return isinstance(row, Iterable) and not isinstance(row, str | bytes)


def _is_indicator(y: Any, estimator: Any) -> bool:
    """Whether y is a 0/1 matrix, as the estimator reads it: nested lists may be one too."""
    if sp.issparse(y) or getattr(y, "ndim", 1) == 2:
        return True
    width = len(getattr(estimator, "classes_", ()))
    # As label names, rows of 0 and 1 only, each as long as there are labels, would be absurd.
    return all(isinstance(r, list | tuple) and len(r) == width and set(r) <= {0, 1} for r in y)


def _rank(
    y_true: Any,
    y_pred: Any,
    ks: Sequence[int],
    propensities: npt.ArrayLike | None = None,
    y_train: Any = None,
    a_and_b: tuple[float, float] = _GENERAL,
) -> Ranking:
    """Check the input, bring it to one form and find the hits."""
    k = max(positive("k", k) for k in ks)
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
        weights = 1 / _jain(widen(train, width), *a_and_b)
    return Ranking(widen(truth, width), top[:, :k], k, weights)


def _sums(ranking: Ranking, ks: Sequence[int]) -> RankingSums:
    return RankingSums.of(ranking, _METRICS if ranking.weights is not None else _UNWEIGHTED, ks)


def _jain(train: sp.csr_array, a: float, b: float) -> _Floats:
    n_rows, n_labels = train.shape
    if n_rows < 3:
        fail("y_train", f"{n_rows} rows", "of at least 3 rows: the model needs ln N > 1")
    return jain_propensities(np.bincount(train.indices, minlength=n_labels), n_rows, a, b)


def _a_and_b(dataset: str | None, a: float | None, b: float | None) -> tuple[float, float]:
    if dataset is None and a is None and b is None:
        return _GENERAL
    if dataset is None:
        if a is None or b is None or not (0 < a < np.inf and 0 < b < np.inf):
            fail("a, b", (a, b), "two positive numbers")
        return float(a), float(b)
    if a is not None or b is not None:
        fail("dataset", dataset, "None where a and b are given")
    plain = re.sub(r"[^a-z0-9]", "", dataset.lower()).removeprefix("lf")
    for family, values in _FAMILIES.items():
        if re.fullmatch(rf"{family}(titles)?(\d+[km]?)?", plain):
            return values
    fail("dataset", dataset, f"a name that starts with one of {', '.join(_FAMILIES)}")
