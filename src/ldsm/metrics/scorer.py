"""Scikit-learn scorers for the ranking metrics and for F1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from .inputs import fail, positive, read_predictions
from .names import frame_rows
from .ranking import METRICS, WEIGHTED, f1_score, rank

# F1 of predicted sets, by average. Training picks the threshold for the first.
F1_METRICS = {"f1": "samples", "f1_micro": "micro", "f1_macro": "macro"}
_K = 5


def topk_scorer(
    metric: str = "precision", k: int | None = None, *, propensities: Any = None
) -> TopKScorer | SetScorer:
    """Return a scikit-learn scorer, for `cross_val_score`, `GridSearchCV` and the like.

    For an estimator without ``predict_topk``, such as a pipeline, ``predict_proba`` or
    ``decision_function`` is used. F1 is that of the sets by ``predict_sets``, or ``predict``.

    Parameters
    ----------
    metric : str, default="precision"
        "precision", "ndcg", "recall", "coverage", "r_precision", "psp" or "psndcg"; or the F1 of
        predicted sets: "f1" is the mean over rows, for which `fit` picks the threshold, "f1_macro"
        the mean over labels, and "f1_micro" is over all (row, label) pairs.
    k : int, default=5
        Number of predictions per row to evaluate; not used for F1.
    propensities : array or dict, optional
        For "psp" and "psndcg": one per column, or by label name if Y is lists of names.

    Examples
    --------
    >>> topk_scorer("ndcg", k=3)
    TopKScorer(metric='ndcg', k=3, propensities=None)
    >>> topk_scorer("f1")
    SetScorer(metric='f1')
    """
    if metric not in (*METRICS, *F1_METRICS):
        fail("metric", metric, f"one of {', '.join(map(repr, (*METRICS, *F1_METRICS)))}")
    if (propensities is not None) != (metric in WEIGHTED):
        allowed = f"given for {' and '.join(WEIGHTED)} only"
        fail("propensities", type(propensities).__name__, allowed)
    if metric in F1_METRICS:
        if k is not None:
            fail("k", k, "None for F1, which is of predicted sets of any size")
        return SetScorer(metric)
    return TopKScorer(metric, _K if k is None else positive("k", k), propensities)


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
        named = frame_rows(y)
        if named is not None and top.dtype.kind in "OU":
            y = named
        if not _is_indicator(y, estimator):
            column = {name: i for i, name in enumerate(estimator.classes_)}
            if method == "predict_topk":
                names = top.ravel().tolist()
                if unknown := set(names) - column.keys() - {-1, None}:
                    fail("estimator", unknown.pop(), "one that predicts labels of its classes_")
                top = np.array([column.get(n, -1) for n in names], np.int64).reshape(top.shape)
            y = _numbered(y, column)
            if propensities is not None:
                if not isinstance(propensities, Mapping) or column.keys() - propensities.keys():
                    allowed = "a dict with every label name of y and classes_"
                    fail("propensities", type(propensities).__name__, allowed)
                propensities = [propensities[name] for name in column]
        elif not sp.issparse(y):
            y = np.asarray(y)
        ranking = rank(y, top, [self.k], propensities)
        return ranking.value(self.metric, self.k)


@dataclass(frozen=True)
class SetScorer:
    """Callable ``(estimator, X, y) -> float``: F1 of predicted sets; made by `topk_scorer`."""

    metric: str

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        if hasattr(estimator, "predict_sets"):
            sets = [[label for label, _ in row] for row in estimator.predict_sets(X)]
        elif hasattr(estimator, "predict"):
            sets = estimator.predict(X)
        else:
            fail("estimator", estimator, "one with predict_sets or predict")
        average = F1_METRICS[self.metric]
        if sp.issparse(sets) or getattr(sets, "ndim", 1) == 2:
            return f1_score(y if sp.issparse(y) else np.asarray(y), sets, average)
        named = frame_rows(y)
        if named is None and (sp.issparse(y) or getattr(y, "ndim", 1) == 2):
            allowed = "lists of labels, or a DataFrame with named columns, as the sets hold names"
            fail("y", "a matrix without names", allowed)
        column = {name: i for i, name in enumerate(estimator.classes_)}
        predicted = [row if _is_row(row) else [row] for row in sets]
        if unknown := {label for row in predicted for label in row} - column.keys():
            fail("estimator", unknown.pop(), "one that predicts labels of its classes_")
        numbers = _numbered(predicted, column), _numbered(y if named is None else named, column)
        pred, true = (_indicator(rows, len(column)) for rows in numbers)
        return f1_score(true, pred, average)


def _is_row(row: Any) -> bool:
    return isinstance(row, Iterable) and not isinstance(row, str | bytes)


def _numbered(rows: Any, column: dict[Any, int]) -> list[list[int]]:
    """The columns of the labels of each row; a label unknown to the model gets a new one."""
    lists = (row if _is_row(row) else [row] for row in rows)
    return [[column.setdefault(name, len(column)) for name in row] for row in lists]


def _indicator(rows: list[list[int]], width: int) -> sp.csr_array:
    """0/1 matrix of the columns of each row; a label given twice counts once."""
    distinct = [sorted(set(row)) for row in rows]
    indptr = np.cumsum([0, *map(len, distinct)])
    indices = np.array(list(chain.from_iterable(distinct)), dtype=np.int32)
    return sp.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(rows), width))


def _is_indicator(y: Any, estimator: Any) -> bool:
    """Whether the estimator reads y as a 0/1 matrix; nested lists may be one too."""
    if sp.issparse(y) or getattr(y, "ndim", 1) == 2:
        return True
    width = len(getattr(estimator, "classes_", ()))
    # Rows of only 0 and 1, with one entry per label, are not label names.
    return all(isinstance(r, list | tuple) and len(r) == width and set(r) <= {0, 1} for r in y)
