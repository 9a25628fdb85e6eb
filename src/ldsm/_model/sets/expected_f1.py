"""Label sets with the highest expected F1, instead of those above a threshold.

If scores are calibrated and labels independent, the expected F1 of a row's k best labels is known.
Each row gets the best k: few labels if some are sure, more if many are equally likely.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

# An integral by n nodes is exact for polynomials up to the degree 2n - 1. Here the degree is the
# size of a set plus the number of true labels: with 32 nodes, any that matters.
_NODES, _WEIGHTS = (0.5 * values for values in np.polynomial.legendre.leggauss(32))
_NODES = _NODES + 0.5  # from [-1, 1] to [0, 1]
_MOST_CELLS = 2**18  # of rows x labels, at the same time


class ExpectedF1(NamedTuple):
    """The rule that a row's set is the one with the highest expected F1.

    The F1 of an empty set is 1 if the row has no labels, otherwise 0.
    """

    # The probability that no scored label is true, times this, is that of a row without labels.
    # In a row that has labels, all of them may be missing from those scored.
    empty: float
    common: float  # the best threshold for all labels, for users who want a single number

    @classmethod
    def of(cls, scores: sp.csr_array, n_empty: int, common: float) -> ExpectedF1:
        """From scores of held-out rows, `n_empty` of which have no labels."""
        expected = sum(float(_nothing(ranked).sum()) for ranked, _ in _ranked(scores))
        return cls(float(f"{min(1.0, n_empty / max(expected, 1e-9)):.6g}"), common)

    def chosen(self, scores: sp.csr_array) -> NDArray[np.bool_]:
        """Which stored scores belong to the set of their row; of equal ones the lower column."""
        chosen = np.zeros(len(scores.data), dtype=bool)
        for ranked, places in _ranked(scores):
            values = expected_f1(ranked)
            sizes = values.argmax(axis=1) + 1
            sizes[self.empty * _nothing(ranked) > values.max(axis=1)] = 0
            inside = np.arange(ranked.shape[1]) < sizes[:, None]
            chosen[places[inside & (ranked > 0)]] = True
        return chosen


def expected_f1(ranked: NDArray[np.float64]) -> NDArray[np.float64]:
    """The expected F1 of the first k labels of each row, for k from 1 to the best k of any row.

    `ranked` are the probabilities of a row's labels, in falling order. A true label of the set adds
    2 / (k + N), where N is the number of true labels. 1 / (k + N) is the integral of x^(k + N - 1)
    from 0 to 1, and the expectation of x^N is the product of 1 - p + p x over all labels.
    """
    ranked, every = ranked[:, : _largest(ranked)], ranked
    values = np.zeros(ranked.shape)
    for x, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
        # Sums and products in order: then padding with zeros changes no bit.
        powers = 2 * weight * np.cumprod(np.full(ranked.shape[1], x))
        of_all = np.cumprod(1 - every * (1 - x), axis=1)[:, -1:]
        values += powers * of_all * np.cumsum(ranked / (1 - ranked * (1 - x)), axis=1)
    return values


def _largest(ranked: NDArray[np.float64]) -> int:
    """No row's best set is larger, by bounds of the expected F1 (Jensen's inequality)."""
    size = np.arange(1, ranked.shape[1] + 1)
    sums = np.cumsum(ranked, axis=1)
    above = 2 * sums / (size + sums)  # falls with the size
    below = 2 * sums / (size + 1 + sums[:, -1:])
    return max(1, int(np.sum(above >= below.max(axis=1, keepdims=True), axis=1).max(initial=1)))


def _nothing(ranked: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability that no label of a row is true."""
    return np.asarray(np.cumprod(1 - ranked, axis=1)[:, -1])


def _ranked(scores: sp.csr_array) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
    """The scores of some rows at a time in falling order, and where they are stored.

    Shorter rows are padded with zeros.
    """
    lengths = np.diff(scores.indptr)
    width = max(1, int(lengths.max(initial=0)))
    step = max(1, _MOST_CELLS // width)
    for start in range(0, len(lengths), step):
        own = lengths[start : start + step]
        stored = slice(scores.indptr[start], scores.indptr[start + len(own)])
        used = np.arange(width) < own[:, None]
        table, places = np.zeros(used.shape), np.zeros(used.shape, dtype=np.int64)
        table[used] = np.clip(scores.data[stored], 0, 1)
        places[used] = np.arange(stored.start, stored.stop)
        order = np.argsort(-table, axis=1, kind="stable")
        yield np.take_along_axis(table, order, 1), np.take_along_axis(places, order, 1)
