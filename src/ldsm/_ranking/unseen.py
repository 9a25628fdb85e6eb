"""Scores of labels without training rows, which are known by their names alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .blend import Pairs
from .logistic import Floats, logistic, logistic_regression

_STEPS = 100
_WIDEST = 50.0  # log-odds of a certain pair


def fit_unseen(
    pairs: Pairs, truth: NDArray[np.bool_], weights: Floats, terms: tuple[str, ...]
) -> Floats:
    """Coefficients fitted to the names of labels with rows.

    Labels without rows resemble rare ones, so frequent ones count for less.
    """
    weights = weights / np.sqrt(pairs.label_counts)
    design = _core.blend_terms(pairs, terms)
    return logistic_regression(design, truth.astype(np.uint8), weights)


def with_base_of(
    coefficients: Floats,
    pairs: Pairs,
    right: NDArray[np.bool_],
    terms: tuple[str, ...],
    *,
    prior: float,
) -> Floats:
    """The same with the constant at which scores of labels without rows are as often right.

    The `pairs` show it: they are of labels that only held-out rows have. As many right matches as
    `prior` count as if the constant were right.
    """
    if not len(right):
        return coefficients
    odds = _core.blend_terms(pairs, terms) @ coefficients
    scores = logistic(odds).sum()
    wanted = scores * (right.sum() + prior) / (scores + prior)
    low, high = -_WIDEST - odds.max(), _WIDEST - odds.min()
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if logistic(odds + middle).sum() < wanted:
            low = middle
        else:
            high = middle
    return np.append(coefficients[0] + high, coefficients[1:])
