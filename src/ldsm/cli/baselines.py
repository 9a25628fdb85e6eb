"""What the demo compares the trees with: the most popular labels, and a linear model per label."""

from __future__ import annotations

from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.svm import LinearSVC

from .screen import Report


def popular_labels(Y: Any, n_rows: int, k: int) -> NDArray[np.int64]:
    """The k labels with most training rows, for every row alike."""
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    return np.tile(np.argsort(-counts, kind="stable")[:k], (n_rows, 1))


class OneVsRest:
    """A linear support vector machine for each label, scikit-learn's, trained in threads."""

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def fit(self, X: Any, Y: Any, report: Report) -> OneVsRest:
        X = X.astype(np.float64)  # as liblinear wants it: once, not for every label
        columns = Y.tocsc()
        parallel = joblib.Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")
        models = parallel(joblib.delayed(_fit_label)(X, columns, i) for i in range(Y.shape[1]))
        fitted = []
        for model in models:
            fitted.append(model)
            report(len(fitted), Y.shape[1])
        self.weights = np.stack([weights for weights, _ in fitted])
        self.intercepts = np.array([intercept for _, intercept in fitted])
        return self

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Distance to the plane of every label, dense."""
        return np.asarray(X @ self.weights.T + self.intercepts)


def _fit_label(X: Any, columns: Any, label: int) -> tuple[NDArray[np.float64], float]:
    y = np.zeros(X.shape[0], dtype=np.int8)
    y[columns.indices[columns.indptr[label] : columns.indptr[label + 1]]] = 1
    if not y.any() or y.all():  # nothing to tell apart
        return np.zeros(X.shape[1]), float(np.where(y.any(), 1.0, -1.0))
    svm = LinearSVC(random_state=0).fit(X, y)
    return svm.coef_[0], float(svm.intercept_[0])
