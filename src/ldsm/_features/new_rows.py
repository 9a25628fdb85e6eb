"""A batch of new rows, and what it shows.

A batch shows what labels look like. It shows how often they occur only if its labels are
distributed like those of earlier rows. A label that a row lacks may be wrong for the row, or may
just be missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, pdtrc

from .._arrays.labels import LabelArrays
from .blocks import Blocks

# What it means if a row lacks a known label.
ABSENT = ("auto", "negative", "unknown")
# Whether scores are fitted to a batch whose labels are distributed unlike those of earlier rows.
PRIOR = ("auto", "batch")
# A batch is skewed if its label shares differ from those of earlier rows by more than this multiple
# of the difference expected of a random batch (random batches of eight data sets: at most 1.31), or
# if a random batch would hardly ever have as many rows of one of its labels.
UNLIKE, HARDLY_EVER = 1.5, 1e-6


@dataclass(frozen=True, eq=False)
class NewRows:
    """Rows to learn from, in the columns of the model, and what it had seen before."""

    x: Blocks
    y: LabelArrays
    counts_before: NDArray[np.int64]  # rows of each label
    n_before: int  # rows in all
    absent: str = "auto"  # one of ABSENT
    prior: str = "auto"  # one of PRIOR

    @property
    def counts(self) -> NDArray[np.int64]:
        return self.counts_before + self.y.counts

    @property
    def n_rows(self) -> int:
        return self.n_before + self.x.n_rows

    @property
    def known(self) -> NDArray[np.bool_]:
        """The labels of earlier rows."""
        return self.counts_before > 0

    @cached_property
    def shows_frequencies(self) -> bool:
        """Whether labels occur in the batch as often as they do elsewhere."""
        return self.prior == "batch" or not self.is_skewed

    @cached_property
    def is_skewed(self) -> bool:
        """Whether known labels are distributed unlike those of earlier rows.

        A batch without known labels is skewed, too.
        """
        counts, before = self.y.counts[self.known], self.counts_before[self.known]
        n = int(counts.sum())
        if n == 0:
            return True
        expected = n * (before / before.sum())
        if np.abs(counts - expected).sum() > UNLIKE * _mean_deviation(expected).sum():
            return True
        some = counts > 0
        as_many = pdtrc(counts[some] - 1, expected[some])  # the probability of at least as many
        return bool(as_many.min() * len(counts) < HARDLY_EVER)

    @cached_property
    def of_unknown_frequency(self) -> NDArray[np.bool_]:
        """The new labels of which the batch has examples without showing how often they occur.

        The batch is skewed, or their share of it is larger than that of any known label in earlier
        rows: a new label is not expected to be more frequent than all others.
        """
        most = self.counts_before.max(initial=0) / max(1, self.n_before)
        frequent = self.y.counts > most * self.y.n_rows
        return np.asarray(~self.known & (self.y.counts > 0) & (frequent | self.is_skewed))

    @property
    def is_ordinary(self) -> NDArray[np.bool_]:
        """By row: whether it shows how often labels occur, and which of them are wrong for it."""
        return np.asarray(self.lacks & (self._n_of(self.of_unknown_frequency) == 0))

    @cached_property
    def lacks(self) -> NDArray[np.bool_]:
        """By row: whether the known labels that it lacks are wrong for it.

        By default they are, unless the row has only new labels: it may be no more than an example
        of these.
        """
        if self.absent != "auto":
            return np.full(self.y.n_rows, self.absent == "negative")
        return np.asarray((self._n_of(self.known) > 0) | (self._n_of(~self.known) == 0))

    def _n_of(self, labels: NDArray[np.bool_]) -> NDArray[np.int64]:
        """By row: how many of the given labels it has."""
        before = np.concatenate([[0], np.cumsum(labels[self.y.indices])])
        return np.asarray(before[self.y.indptr[1:]] - before[self.y.indptr[:-1]])


def _mean_deviation(mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean absolute deviation of counts of independent events (Poisson)."""
    whole = np.floor(mean)
    with np.errstate(divide="ignore"):
        logarithm = (whole + 1) * np.log(mean) - mean - gammaln(whole + 1)
    return np.asarray(2 * np.exp(logarithm))
