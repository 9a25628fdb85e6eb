"""A scikit-learn scorer for the ranking metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from .inputs import fail, positive, read_predictions
from .names import frame_rows
from .ranking import METRICS, WEIGHTED, rank


def topk_scorer(metric: str = "precision", k: int = 5, *, propensities: Any = None) -> TopKScorer:
    """Return a scikit-learn scorer, for `cross_val_score`, `GridSearchCV` and the like.

    For an estimator without ``predict_topk``, such as a pipeline, ``predict_proba`` or
    ``decision_function`` is used.

    Parameters
    ----------
    metric : str, default="precision"
        "precision", "ndcg", "recall", "coverage", "r_precision", "psp" or "psndcg".
    k : int, default=5
        Number of predictions per row to evaluate.
    propensities : array or dict, optional
        For "psp" and "psndcg": one per column, or by label name if Y is lists of names.

    Examples
    --------
    >>> topk_scorer("ndcg", k=3)
    TopKScorer(metric='ndcg', k=3, propensities=None)
    """
    if metric not in METRICS:
        fail("metric", metric, f"one of {', '.join(map(repr, METRICS))}")
    if (propensities is not None) != (metric in WEIGHTED):
        allowed = f"given for {' and '.join(WEIGHTED)} only"
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
            # A label unknown to the model gets a new column, which is always a miss.
            rows = (row if _is_row(row) else [row] for row in y)
            y = [[column.setdefault(name, len(column)) for name in row] for row in rows]
            if propensities is not None:
                if not isinstance(propensities, Mapping) or column.keys() - propensities.keys():
                    allowed = "a dict with every label name of y and classes_"
                    fail("propensities", type(propensities).__name__, allowed)
                propensities = [propensities[name] for name in column]
        elif not sp.issparse(y):
            y = np.asarray(y)
        ranking = rank(y, top, [self.k], propensities)
        return ranking.value(self.metric, self.k)


def _is_row(row: Any) -> bool:
    return isinstance(row, Iterable) and not isinstance(row, str | bytes)


def _is_indicator(y: Any, estimator: Any) -> bool:
    """Whether the estimator reads y as a 0/1 matrix; nested lists may be one too."""
    if sp.issparse(y) or getattr(y, "ndim", 1) == 2:
        return True
    width = len(getattr(estimator, "classes_", ()))
    # Rows of only 0 and 1, with one entry per label, are not label names.
    return all(isinstance(r, list | tuple) and len(r) == width and set(r) <= {0, 1} for r in y)
