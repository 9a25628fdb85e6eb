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
from functools import cached_property
from itertools import chain
from numbers import Integral
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.metrics import f1_score as _sklearn_f1_score

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
_METRICS = ("precision", "ndcg", "recall", "coverage", *_WEIGHTED)
_CELLS = 1 << 20  # scores ranked at a time: the temporaries stay in the cache
_MARKS = 1 << 25  # one-byte marks of the hit search: rows x labels looked at together


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
    return _rank(y_true, y_pred, [k]).precision(k)


def ndcg_at_k(y_true: Any, y_pred: Any, k: int = 5) -> float:
    """Precision with the hit at rank r counted 1/log2(r + 1), over the best attainable (nDCG@k).

    Parameters and result are those of `precision_at_k`.

    Examples
    --------
    >>> round(ndcg_at_k([[0, 2], [1]], [[2, 1], [0, 1]], k=2), 4)
    0.622
    """
    return _rank(y_true, y_pred, [k]).ndcg(k)


def recall_at_k(y_true: Any, y_pred: Any, k: int = 5) -> float:
    """Share of a row's true labels among its k predictions, averaged over the rows (R@k).

    Parameters and result are those of `precision_at_k`.

    Examples
    --------
    >>> recall_at_k([[0, 2], [1]], [[2, 1], [1, 0]], k=2)
    0.75
    """
    return _rank(y_true, y_pred, [k]).recall(k)


def coverage_at_k(y_true: Any, y_pred: Any, k: int = 5) -> float:
    """Share of the distinct true labels that are predicted correctly for at least one row.

    Low coverage beside high precision: the model lives on the frequent labels. Parameters and
    result are those of `precision_at_k`.

    Examples
    --------
    >>> coverage_at_k([[0, 1], [0], [0, 2]], [[0], [0], [2]], k=1)
    0.6666666666666666
    """
    return _rank(y_true, y_pred, [k]).coverage(k)


def psp_at_k(y_true: Any, y_pred: Any, k: int = 5, *, propensities: npt.ArrayLike) -> float:
    """Propensity-scored precision (PSP@k): a hit counts 1/propensity, over the best attainable.

    The argument `propensities` holds one number in (0, 1] per label, as the function of that name
    returns them; the other parameters and the result are those of `precision_at_k`.

    Examples
    --------
    >>> psp_at_k([[0, 1], [1]], [[0], [1]], k=1, propensities=[0.5, 0.25])
    0.75
    """
    return _rank(y_true, y_pred, [k], propensities).psp(k)


def psndcg_at_k(y_true: Any, y_pred: Any, k: int = 5, *, propensities: npt.ArrayLike) -> float:
    """Propensity-scored nDCG (PSnDCG@k).

    Each row's gain, predicted and best attainable alike, is divided by the row's ideal plain DCG;
    then the sums over the rows are divided. Parameters and result are those of `psp_at_k`.

    Examples
    --------
    >>> round(psndcg_at_k([[0, 1]], [[0, 1]], k=2, propensities=[0.5, 0.25]), 4)
    0.8597
    """
    return _rank(y_true, y_pred, [k], propensities).psndcg(k)


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
        _fail("average", average, "'micro', 'macro' or 'samples'")
    true, true_fixed = _read_labels(y_true, "y_true")
    pred, pred_fixed = _read_labels(y_pred, "y_pred")
    _check_rows(true.shape[0], pred.shape[0])
    widths = {"y_true": (true.shape[1], true_fixed), "y_pred": (pred.shape[1], pred_fixed)}
    width = _common_width(widths)
    # scikit-learn takes one column for a binary target: add an empty one, and leave it out again.
    true, pred = (_widen(matrix, max(width, 2)) for matrix in (true, pred))
    labels = None if width > 1 else [0]
    return float(_sklearn_f1_score(true, pred, labels=labels, average=average, zero_division=0))


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
    train, fixed = _read_labels(y_train, "y_train")
    if n_labels is not None:
        sizes = {"n_labels": (_positive("n_labels", n_labels), True)}
        train = _widen(train, _common_width(sizes | {"y_train": (train.shape[1], fixed)}))
    return _jain(train, *_a_and_b(dataset, a, b))


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
        _fail("y_train", type(y_train).__name__, "None where propensities are given")
    if y_train is None and dataset is not None:
        _fail("dataset", dataset, "None where no y_train is given")
    if not (ks := list(ks)):
        _fail("ks", ks, "a non-empty sequence of integers >= 1")
    a_and_b = _a_and_b(dataset, None, None)
    ranking = _rank(y_true, y_pred, ks, propensities, y_train, a_and_b)
    names = _METRICS if ranking.weights is not None else _METRICS[: -len(_WEIGHTED)]
    return {f"{name}@{k}": getattr(ranking, name)(k) for name in names for k in ks}


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
        _fail("metric", metric, f"one of {', '.join(map(repr, _METRICS))}")
    if (propensities is not None) != (metric in _WEIGHTED):
        allowed = f"given for {' and '.join(_WEIGHTED)}, and only there"
        _fail("propensities", type(propensities).__name__, allowed)
    return TopKScorer(metric, _positive("k", k), propensities)


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
            _fail("estimator", estimator, f"one with {' or '.join(methods)}")
        if method == "predict_topk":
            top = np.asarray(estimator.predict_topk(X, k=self.k)[0])
        else:
            top = _read_predictions(getattr(estimator, method)(X), self.k)[0]
        propensities = self.propensities
        if not _is_indicator(y, estimator):
            column = {name: i for i, name in enumerate(estimator.classes_)}
            if method == "predict_topk":
                names = top.ravel().tolist()
                if unknown := set(names) - column.keys() - {-1, None}:
                    _fail("estimator", unknown.pop(), "one that predicts labels of its classes_")
                top = np.array([column.get(n, -1) for n in names], np.int64).reshape(top.shape)
            # A label that training never saw gets a column beyond the known ones: always a miss.
            rows = (row if _is_row(row) else [row] for row in y)
            y = [[column.setdefault(name, len(column)) for name in row] for row in rows]
            if propensities is not None:
                if not isinstance(propensities, Mapping) or column.keys() - propensities.keys():
                    allowed = "a dict with every label name of y and classes_"
                    _fail("propensities", type(propensities).__name__, allowed)
                propensities = [propensities[name] for name in column]
        elif not sp.issparse(y):
            y = np.asarray(y)
        ranking = _rank(y, top, [self.k], propensities)
        return float(getattr(ranking, self.metric)(self.k))


def _is_row(row: Any) -> bool:
    return isinstance(row, Iterable) and not isinstance(row, str | bytes)


def _is_indicator(y: Any, estimator: Any) -> bool:
    """Whether y is a 0/1 matrix, as the estimator reads it: nested lists may be one too."""
    if sp.issparse(y) or getattr(y, "ndim", 1) == 2:
        return True
    width = len(getattr(estimator, "classes_", ()))
    # As label names, rows of 0 and 1 only, each as long as there are labels, would be absurd.
    return all(isinstance(r, list | tuple) and len(r) == width and set(r) <= {0, 1} for r in y)


class _Ranked(NamedTuple):
    """True labels at their ranks, counted from 0: three parallel arrays."""

    rows: npt.NDArray[np.integer[Any]]
    ranks: npt.NDArray[np.integer[Any]]
    labels: npt.NDArray[np.integer[Any]]


class _Ranking:
    """The hits up to rank k, found once; each metric at any smaller k is a sum over them."""

    def __init__(
        self, truth: sp.csr_array, top: npt.NDArray[np.int32], k: int, weights: _Floats | None
    ):
        self.truth, self.k, self.weights = truth, k, weights
        self.sizes = np.diff(truth.indptr)
        self.n_labelled = np.count_nonzero(self.sizes)
        self.hits = _find_hits(truth, top)
        longest = max(top.shape[1], self.sizes.max(initial=1))
        self.discounts = 1 / np.log2(np.arange(2, longest + 2))

    @cached_property
    def best(self) -> _Ranked:
        """The perfect ranking: the true labels of each row, the heaviest first."""
        assert self.weights is not None
        parts = (self.weights[self.truth.indices], self.truth.indices, self.truth.indptr)
        top = _top_of_sparse(sp.csr_array(parts, shape=self.truth.shape), self.k)
        rows, ranks = np.nonzero(top >= 0)
        return _Ranked(rows, ranks, top[rows, ranks])

    def gain(self, ranked: _Ranked, k: int, weights: _Floats | None, discount: bool) -> float:
        if k < self.k:
            ranked = _Ranked(*(part[ranked.ranks < k] for part in ranked))
        gains = np.ones(len(ranked.rows)) if weights is None else weights[ranked.labels]
        if discount:
            ideal = np.cumsum(self.discounts)[np.minimum(self.sizes, k) - 1]
            gains *= self.discounts[ranked.ranks]
            gains *= (1 / ideal)[ranked.rows]
        return float(gains.sum())

    def precision(self, k: int) -> float:
        return self.gain(self.hits, k, None, discount=False) / (len(self.sizes) * k)

    def ndcg(self, k: int) -> float:
        return _ratio(self.gain(self.hits, k, None, discount=True), self.n_labelled)

    def recall(self, k: int) -> float:
        rows = self.hits.rows[self.hits.ranks < k]
        return _ratio((1 / self.sizes[rows]).sum(), self.n_labelled)

    def coverage(self, k: int) -> float:
        seen = (self.hits.labels[self.hits.ranks < k], self.truth.indices)
        return _ratio(*(np.count_nonzero(np.bincount(labels)) for labels in seen))

    def psp(self, k: int) -> float:
        return _ratio(*(self.gain(r, k, self.weights, False) for r in (self.hits, self.best)))

    def psndcg(self, k: int) -> float:
        return _ratio(*(self.gain(r, k, self.weights, True) for r in (self.hits, self.best)))


def _rank(
    y_true: Any,
    y_pred: Any,
    ks: Sequence[int],
    propensities: npt.ArrayLike | None = None,
    y_train: Any = None,
    a_and_b: tuple[float, float] = _GENERAL,
) -> _Ranking:
    """Check the input, bring it to one form and find the hits."""
    k = max(_positive("k", k) for k in ks)
    truth, truth_fixed = _read_labels(y_true, "y_true")
    top, n_scored = _read_predictions(y_pred, k)
    _check_rows(truth.shape[0], top.shape[0])
    widths = {"y_true": (truth.shape[1], truth_fixed)}
    widths["y_pred"] = (n_scored or int(top.max(initial=-1)) + 1, n_scored is not None)
    weights = None
    if propensities is not None:
        weights = _inverse(propensities)
        widths["propensities"] = (len(weights), True)
    if y_train is not None:
        train, train_fixed = _read_labels(y_train, "y_train")
        widths["y_train"] = (train.shape[1], train_fixed)
    width = _common_width(widths)
    if y_train is not None:
        weights = 1 / _jain(_widen(train, width), *a_and_b)
    return _Ranking(_widen(truth, width), top[:, :k], k, weights)


def _find_hits(truth: sp.csr_array, top: npt.NDArray[np.int32]) -> _Ranked:
    """Mark the true labels of some rows in a table of rows x labels, look the predictions up."""
    n_rows, k = top.shape
    width = truth.shape[1] + 1  # the first cell of a row is never marked: there -1 lands
    step = max(1, min(_MARKS // max(width, 8 * k), n_rows))
    marks = np.zeros(step * width, dtype=bool)
    found = []
    for start in range(0, n_rows, step):
        bounds = truth.indptr[start : start + step + 1]
        first_cell = np.arange(len(bounds) - 1) * width + 1
        true = truth.indices[bounds[0] : bounds[-1]] + np.repeat(first_cell, np.diff(bounds))
        marks[true] = True
        found.append(np.flatnonzero(marks[top[start : start + step] + first_cell[:, None]]))
        found[-1] += start * k
        marks[true] = False
    cells = np.concatenate(found)
    return _Ranked(*np.divmod(cells, max(k, 1)), top.ravel()[cells])


def _read_labels(y: Any, name: str) -> tuple[sp.csr_array, bool]:
    """0/1 CSR matrix without stored zeros, and whether its width is given or just large enough."""
    if sp.issparse(y) or getattr(y, "ndim", 1) == 2:
        y = y if sp.issparse(y) else np.asarray(y)
        if y.ndim != 2 or y.dtype.kind not in "biuf":
            _fail(name, f"{y.dtype} of shape {y.shape}", "a 2-D matrix of 0 and 1")
        matrix = _canonical(y)
        if not np.all(matrix.data):
            matrix = matrix.copy()
            matrix.eliminate_zeros()
        if (wrong := matrix.data != 1).any():
            _fail(name, matrix.data[wrong][0].item(), "a matrix of 0 and 1")
        return matrix, True
    allowed = "a 2-D 0/1 matrix or a list of lists of distinct integer label ids"
    try:
        rows = list(y)
        sizes = [len(row) for row in rows]
        flat = np.array(list(chain.from_iterable(rows)))
    except (TypeError, ValueError):
        _fail(name, type(y).__name__, allowed)
    if flat.size and (flat.ndim != 1 or flat.dtype.kind not in "iu"):
        _fail(name, f"labels of dtype {flat.dtype}", allowed)
    ids = _check_ids(flat, name, lowest=0)
    parts = (np.ones(ids.size), ids, np.cumsum([0, *sizes]))
    matrix = _canonical(sp.csr_array(parts, shape=(len(sizes), int(ids.max(initial=-1)) + 1)))
    if (twice := matrix.data > 1).any():
        _fail(name, f"label {matrix.indices[twice][0]} twice in a row", allowed)
    return matrix, False


def _read_predictions(y_pred: Any, k: int) -> tuple[npt.NDArray[np.int32], int | None]:
    """Label ids, best first, -1 for none; and the number of labels if these were scores."""
    if sp.issparse(y_pred) and y_pred.ndim == 2:
        matrix = _canonical(y_pred)
        _check_scores(matrix.data)
        return _top_of_sparse(matrix, k), int(matrix.shape[1])
    scores = None
    if isinstance(y_pred, tuple):
        if len(y_pred) != 2:
            _fail("y_pred", f"a tuple of {len(y_pred)}", "a pair (labels, scores)")
        y_pred, scores = y_pred[0], np.asarray(y_pred[1])
    try:
        array = np.asarray(y_pred)
    except ValueError:
        _fail("y_pred", "rows of unequal length", "an array; -1 fills missing label ids")
    if array.ndim != 2 or array.dtype.kind not in ("iuf" if scores is None else "iu"):
        allowed = "a 2-D array of integer label ids or of floating scores, or a sparse matrix"
        _fail("y_pred", f"{array.dtype} of shape {array.shape}", allowed)
    if array.dtype.kind == "f":
        _check_scores(array)
        return _top_of_dense(array, k), array.shape[1]
    top = _check_ids(array, "y_pred", lowest=-1)
    if scores is not None:
        if scores.shape != top.shape:
            _fail("y_pred", f"scores of shape {scores.shape}", f"labels and scores, {top.shape}")
        _check_scores(scores[top >= 0])
    ordered = np.sort(top, axis=1)
    if (twice := (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        row, rank = np.argwhere(twice)[0]
        allowed = "distinct label ids in each row (an integer array is ids; give scores as floats)"
        _fail("y_pred", f"label {ordered[row, rank]} twice in row {row}", allowed)
    return top, None


def _top_of_dense(scores: npt.NDArray[Any], k: int) -> npt.NDArray[np.int32]:
    n_rows, width = scores.shape
    top = np.empty((n_rows, min(k, width)), dtype=np.int32)
    step = max(1, _CELLS // max(width, 1))
    for start in range(0, n_rows, step):
        best, missing = _best_columns(scores[start : start + step], k)
        top[start : start + step] = np.where(missing, -1, best)
    return top


def _top_of_sparse(scores: sp.csr_array, k: int) -> npt.NDArray[np.int32]:
    """As for dense scores, on blocks of rows of like length, padded with -inf."""
    data = scores.data if scores.data.dtype.kind == "f" else scores.data.astype(np.float64)
    lengths = np.diff(scores.indptr)
    by_length = np.argsort(-lengths, kind="stable")
    top = np.full((len(lengths), min(k, int(lengths.max(initial=0)))), -1, dtype=np.int32)
    start = 0
    while start < len(lengths) and (longest := lengths[by_length[start]]):
        rows = by_length[start : start + max(1, _CELLS // longest)]
        first_cell = scores.indptr[rows, None]
        padding = np.arange(longest) >= lengths[rows, None]
        block = data[np.where(padding, 0, first_cell + np.arange(longest))]
        block[padding] = -np.inf
        best, missing = _best_columns(block, k)
        labels = scores.indices[np.where(missing, 0, first_cell + best)]
        top[rows, : labels.shape[1]] = np.where(missing, -1, labels)
        start += len(rows)
    return top


def _best_columns(
    scores: npt.NDArray[Any], k: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Columns of each row's k best scores, lower column first among equals; which are -inf."""
    n_rows, width = scores.shape
    columns = None
    if k < width:
        kth = np.partition(scores, width - k, axis=1)[:, width - k, None]
        keep, tied = scores > kth, scores == kth
        room = k - keep.sum(axis=1, keepdims=True)
        if (tied.sum(axis=1, keepdims=True) > room).any():
            tied &= np.cumsum(tied, axis=1) <= room
        columns = np.nonzero(keep | tied)[1].reshape(n_rows, k)
        scores = np.take_along_axis(scores, columns, axis=1)
    # A stable sort for less: sort with equals in any order, then each group of equals by column.
    order = np.argsort(-scores, axis=1)
    scores = np.take_along_axis(scores, order, axis=1)
    group = np.zeros(order.shape, dtype=np.int32 if order.shape[1] < 2**15 else np.int64)
    np.cumsum(scores[:, 1:] != scores[:, :-1], axis=1, out=group[:, 1:])
    group *= order.shape[1]
    order = np.sort(group + order.astype(group.dtype), axis=1) - group
    best = order if columns is None else np.take_along_axis(columns, order, axis=1)
    return best, scores == -np.inf


def _jain(train: sp.csr_array, a: float, b: float) -> _Floats:
    n_rows, n_labels = train.shape
    if n_rows < 3:
        _fail("y_train", f"{n_rows} rows", "of at least 3 rows: the model needs ln N > 1")
    counts = np.bincount(train.indices, minlength=n_labels)
    c = (np.log(n_rows) - 1) * (b + 1) ** a
    return np.asarray(1 / (1 + c * (counts + b) ** -a))


def _a_and_b(dataset: str | None, a: float | None, b: float | None) -> tuple[float, float]:
    if dataset is None and a is None and b is None:
        return _GENERAL
    if dataset is None:
        if a is None or b is None or not (0 < a < np.inf and 0 < b < np.inf):
            _fail("a, b", (a, b), "two positive numbers")
        return float(a), float(b)
    if a is not None or b is not None:
        _fail("dataset", dataset, "None where a and b are given")
    plain = re.sub(r"[^a-z0-9]", "", dataset.lower()).removeprefix("lf")
    for family, values in _FAMILIES.items():
        if re.fullmatch(rf"{family}(titles)?(\d+[km]?)?", plain):
            return values
    _fail("dataset", dataset, f"a name that starts with one of {', '.join(_FAMILIES)}")


def _inverse(propensities: npt.ArrayLike) -> _Floats:
    allowed = "a 1-D array of numbers in (0, 1], one per label (not their inverses)"
    try:
        values = np.asarray(propensities, dtype=np.float64)
    except (TypeError, ValueError):
        _fail("propensities", type(propensities).__name__, allowed)
    if values.ndim != 1:
        _fail("propensities", f"shape {values.shape}", allowed)
    if (wrong := ~((values > 0) & (values <= 1))).any():
        _fail("propensities", values[wrong][0].item(), allowed)
    return 1 / values


def _common_width(widths: dict[str, tuple[int, bool]]) -> int:
    """The number of labels: as the matrices say, which must agree, else the largest label id."""
    fixed = {name: width for name, (width, is_fixed) in widths.items() if is_fixed}
    if len(set(fixed.values())) > 1:
        _fail(" and ".join(fixed), list(fixed.values()), "of the same number of labels")
    width = max(fixed.values()) if fixed else max(width for width, _ in widths.values())
    for name, (needed, _) in widths.items():
        if needed > width:
            _fail(name, f"label id {needed - 1}", f"label ids below the number of labels, {width}")
    return width


def _widen(matrix: sp.csr_array, width: int) -> sp.csr_array:
    parts = (matrix.data, matrix.indices, matrix.indptr)
    return sp.csr_array(parts, shape=(matrix.shape[0], width))


def _canonical(matrix: Any) -> sp.csr_array:
    """CSR, sorted and without duplicates; a copy where that takes a change."""
    csr = sp.csr_array(matrix)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def _ratio(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else float("nan")


def _check_rows(n_true: int, n_pred: int) -> None:
    if n_true != n_pred or not n_true:
        _fail("y_true and y_pred", [n_true, n_pred], "of the same number of rows, at least 1")


def _check_ids(ids: npt.NDArray[Any], name: str, lowest: int) -> npt.NDArray[np.int32]:
    if ids.size and not lowest <= ids.min() <= ids.max() < 2**31 - 1:
        wrong = ids.min() if ids.min() < lowest else ids.max()
        _fail(name, f"label id {wrong}", f"label ids from {lowest} to 2^31 - 2")
    return ids.astype(np.int32)


def _check_scores(scores: npt.NDArray[Any]) -> None:
    if scores.dtype.kind not in "biuf":
        _fail("y_pred", f"scores of dtype {scores.dtype}", "real numbers")
    if np.isnan(scores).any():
        _fail("y_pred", "nan", "free of nan scores")


def _positive(name: str, value: Any) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        _fail(name, value, "an integer >= 1")
    return int(value)


def _fail(name: str, value: Any, allowed: str) -> NoReturn:
    shown = value if isinstance(value, str) and " " in value else repr(value)
    raise ValueError(f"The '{name}' argument must be {allowed}. Got {shown} instead.")
