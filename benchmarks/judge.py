"""Metrics of predictions row by row, for paired comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ldsm import metrics

KS = (1, 3, 5)
RESAMPLES = 2000

Floats = npt.NDArray[np.float64]


class Judge:
    """Precision and propensity-scored precision of every row, in percent."""

    def __init__(self, Y_train: Any, Y_test: Any) -> None:
        self.Y = Y_test
        self.gain = 1 / metrics.propensities(Y_train)
        self.attainable = best_at(Y_test, self.gain).mean(axis=0)

    def precision(self, labels: npt.NDArray[Any]) -> Floats:
        return 100 * self._hits_at(labels, np.ones(self.Y.shape[1]))

    def psp(self, labels: npt.NDArray[Any]) -> Floats:
        return 100 * self._hits_at(labels, self.gain) / self.attainable

    def _hits(self, labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Where a label is a true one; -1, no label, is none."""
        Y = self.Y
        rows = [Y.indices[Y.indptr[i] : Y.indptr[i + 1]] for i in range(Y.shape[0])]
        return np.array([np.isin(row, true) for row, true in zip(labels, rows, strict=True)])

    def _hits_at(self, labels: npt.NDArray[Any], gain: Floats) -> Floats:
        """For each row and k: the gain of the hits among the first k, over k."""
        found = self._hits(labels) * gain[labels]
        return np.stack([found[:, :k].sum(axis=1) / k for k in KS], axis=1)


def best_at(Y: Any, gain: Floats) -> Floats:
    """For each row and k: the gain of the best possible list, over k."""
    out = np.zeros((Y.shape[0], len(KS)))
    for row in range(Y.shape[0]):
        true = np.sort(gain[Y.indices[Y.indptr[row] : Y.indptr[row + 1]]])[::-1]
        out[row] = [true[:k].sum() / k for k in KS]
    return out


def difference(ours: Floats, theirs: Floats) -> tuple[float, float, float]:
    """Mean of the rows' differences, and the 95 % interval of a paired bootstrap."""
    gap = ours - theirs
    rng = np.random.default_rng(0)
    means = [gap[rng.integers(len(gap), size=len(gap))].mean() for _ in range(RESAMPLES)]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(gap.mean()), float(low), float(high)
