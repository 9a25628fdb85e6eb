"""Logistic regression, by which blends are fitted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import _core

Floats = NDArray[np.float64]

_RIDGE = 1.0
_STEPS = 100


def logistic(odds: Floats) -> Floats:
    """The probabilities of log-odds."""
    return np.exp(-np.logaddexp(0.0, -odds))


def logistic_regression(x: Floats, truth: NDArray[np.uint8], weights: Floats) -> Floats:
    """Newton's method with a slight ridge on the terms `x`; the first term is constant.

    The terms are standardised in place: they can be the largest array of a fit.
    """
    mean = x.mean(axis=0)
    mean[0] = 0.0
    x -= mean
    scale = np.sqrt(np.einsum("ij,ij->j", x, x) / len(x))
    scale = np.where(scale > 1e-12, scale, 1.0)
    x /= scale
    ridge = np.full(x.shape[1], _RIDGE)
    ridge[0] = 1e-9

    def sums(w: Floats) -> tuple[float, Floats, Floats]:
        loss, slope, lower = _core.logistic_sums(x, truth, weights, w)
        curvature = lower + np.tril(lower, -1).T + np.diag(ridge)
        return loss + 0.5 * float(np.sum(ridge * w * w)), slope + ridge * w, curvature

    w = np.zeros(x.shape[1])
    loss, slope, curvature = sums(w)
    for _ in range(_STEPS):
        step, size = np.linalg.solve(curvature, slope), 1.0
        tried = sums(w - step)
        while size > 1e-6 and tried[0] > loss:
            size /= 2
            tried = sums(w - size * step)
        w, before = w - size * step, loss
        loss, slope, curvature = tried
        if before - loss <= 1e-6 * abs(before):
            break
    w = w / scale
    w[0] -= np.sum(w[1:] * mean[1:])
    return w
