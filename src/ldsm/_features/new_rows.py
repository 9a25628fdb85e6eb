"""A batch of new rows, and what may be concluded from it.

A batch shows what labels look like. It shows how often they occur only if its labels are
distributed like those of the rows so far. And a label that a row lacks may be wrong for the row, or
may just not have been given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, pdtrc

from .._arrays.labels import LabelArrays
from .blocks import Blocks

# What it means that a row lacks a label that the model knows.
ABSENT = ("auto", "negative", "unknown")
# Whether scores are fitted to a batch whose labels are distributed unlike those of the rows so far.
PRIOR = ("auto", "batch")
# A batch is skewed if its label shares differ from those of the rows so far by this many times as
# much as those of a random batch would (random batches of eight data sets: at most 1.31), or if a
# random batch would hardly ever have as many rows of one of its labels.
UNLIKE, HARDLY_EVER = 1.5, 1e-6
# A new label is not expected to be more frequent than this share of the known ones.
USUAL = 0.99


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
        """The labels that the model has learned from rows before."""
        return self.counts_before > 0

    @cached_property
    def shows_frequencies(self) -> bool:
        """Whether labels occur in the batch as often as they do elsewhere."""
        return self.prior == "batch" or not self.is_skewed

    @cached_property
    def is_skewed(self) -> bool:
        """Whether the labels that the model knows are distributed unlike those of the rows so far.

        A batch with none of them is.
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
        """The new labels of which the batch shows examples, but not how often they occur.

        They have a larger share of its rows than nearly all known labels have of the rows so far,
        or the batch is skewed.
        """
        shares = self.counts_before[self.known] / max(1, self.n_before)
        usual = np.quantile(shares, USUAL) if len(shares) else 1.0
        frequent = self.y.counts > usual * self.y.n_rows
        return np.asarray(~self.known & (self.y.counts > 0) & (frequent | self.is_skewed))

    @property
    def is_ordinary(self) -> NDArray[np.bool_]:
        """By row: whether it shows how often labels occur, and which of them are wrong for it."""
        return np.asarray(self.lacks & (self._n_of(self.of_unknown_frequency) == 0))

    @cached_property
    def lacks(self) -> NDArray[np.bool_]:
        """By row: whether the labels that it lacks, of those the model knows, are wrong for it.

        By default they are, unless the row has new labels alone: then it is an example of these,
        and nobody may have looked for others.
        """
        if self.absent != "auto":
            return np.full(self.y.n_rows, self.absent == "negative")
        return np.asarray((self._n_of(self.known) > 0) | (self._n_of(~self.known) == 0))

    def _n_of(self, labels: NDArray[np.bool_]) -> NDArray[np.int64]:
        """By row: how many of the given labels it has."""
        before = np.concatenate([[0], np.cumsum(labels[self.y.indices])])
        return np.asarray(before[self.y.indptr[1:]] - before[self.y.indptr[:-1]])


def without_copies(x: Blocks, y: LabelArrays) -> tuple[Blocks, LabelArrays]:
    """The rows, those with the same features and the same labels once.

    A copy shows nothing that the row has not shown: neither what labels look like, nor, as a batch
    does not, how often they occur.
    """
    rows = different_rows(x, y)
    return (x, y) if len(rows) == x.n_rows else (x.take(rows), y.take(rows))


def different_rows(x: Blocks, y: LabelArrays) -> NDArray[np.int64]:
    """Which rows are not copies of earlier ones."""
    parts = [_by_row(y.indptr, y.indices)]
    for block in x.arrays.values():
        parts += [_by_row(block.indptr, block.indices), _by_row(block.indptr, block.values)]
    first: dict[tuple[bytes, ...], int] = {}
    for row, content in enumerate(zip(*parts, strict=True)):
        first.setdefault(content, row)
    return np.fromiter(first.values(), dtype=np.int64, count=len(first))


def _by_row(indptr: NDArray[np.int64], values: NDArray[Any]) -> Iterator[bytes]:
    for start, end in pairwise(indptr.tolist()):
        yield values[start:end].tobytes()


def _mean_deviation(mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far counts of independent events (Poisson) are from their mean, on average."""
    whole = np.floor(mean)
    with np.errstate(divide="ignore"):
        logarithm = (whole + 1) * np.log(mean) - mean - gammaln(whole + 1)
    return np.asarray(2 * np.exp(logarithm))
