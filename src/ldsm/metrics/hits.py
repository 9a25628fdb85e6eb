"""Find the true labels among ranked predictions: the arithmetic behind `ldsm.metrics`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

_Floats = npt.NDArray[np.float64]
_Labels = npt.NDArray[np.integer[Any]]
_CELLS = 1 << 20  # scores sorted at a time, so that temporaries stay in the cache
_MARKS = 1 << 25  # one-byte marks of the hit search: rows x labels searched together


class Ranked(NamedTuple):
    """True labels and their ranks, counted from 0, as parallel arrays."""

    rows: npt.NDArray[np.integer[Any]]
    ranks: npt.NDArray[np.integer[Any]]
    labels: npt.NDArray[np.integer[Any]]


class Ranking:
    """The hits up to rank k, found once; each metric at any smaller k is a sum over them."""

    def __init__(
        self, truth: sp.csr_array, top: npt.NDArray[np.int32], k: int, weights: _Floats | None
    ):
        self.truth, self.k, self.weights = truth, k, weights
        self.sizes = np.diff(truth.indptr)
        self.n_labelled = int(np.count_nonzero(self.sizes))
        self.hits = _find_hits(truth, top)
        longest = max(top.shape[1], self.sizes.max(initial=1))
        self.discounts = 1 / np.log2(np.arange(2, longest + 2))

    @cached_property
    def best(self) -> Ranked:
        """The best possible order: the true labels of each row by decreasing weight."""
        assert self.weights is not None
        parts = (self.weights[self.truth.indices], self.truth.indices, self.truth.indptr)
        top = top_of_sparse(sp.csr_array(parts, shape=self.truth.shape), self.k)
        rows, ranks = np.nonzero(top >= 0)
        return Ranked(rows, ranks, top[rows, ranks])

    def gain(self, ranked: Ranked, k: int, weights: _Floats | None, discount: bool) -> float:
        if k < self.k:
            ranked = Ranked(*(part[ranked.ranks < k] for part in ranked))
        gains = np.ones(len(ranked.rows)) if weights is None else weights[ranked.labels]
        if discount:
            ideal = np.cumsum(self.discounts)[np.minimum(self.sizes, k) - 1]
            gains *= self.discounts[ranked.ranks]
            gains *= (1 / ideal)[ranked.rows]
        return float(gains.sum())

    def value(self, metric: str, k: int) -> float:
        """A metric by its name in `ldsm.metrics.ranking_report`."""
        if metric == "coverage":
            return _ratio(*map(len, self.covered(k)))
        return _ratio(*self.terms(metric, k))

    def terms(self, metric: str, k: int) -> tuple[float, float]:
        """Numerator and denominator, which can be added over parts of the rows."""
        if metric == "precision":
            return self.gain(self.hits, k, None, discount=False), len(self.sizes) * k
        if metric == "ndcg":
            return self.gain(self.hits, k, None, discount=True), self.n_labelled
        if metric == "recall":
            rows = self.hits.rows[self.hits.ranks < k]
            return float((1 / self.sizes[rows]).sum()), self.n_labelled
        if metric == "r_precision":
            rows = self.hits.rows[self.hits.ranks < k]
            return float((1 / np.minimum(self.sizes[rows], k)).sum()), self.n_labelled
        discount = {"psp": False, "psndcg": True}[metric]
        hits, best = (self.gain(r, k, self.weights, discount) for r in (self.hits, self.best))
        return hits, best

    def covered(self, k: int) -> tuple[_Labels, _Labels]:
        """The labels predicted correctly for some row, and the labels true for some row."""
        hit, true = self.hits.labels[self.hits.ranks < k], self.truth.indices
        return np.flatnonzero(np.bincount(hit)), np.flatnonzero(np.bincount(true))


@dataclass(frozen=True)
class RankingSums:
    """Sums behind the metrics of some rows; sums over parts of the rows can be added."""

    metrics: Sequence[str]  # to report
    terms: dict[tuple[str, int], tuple[float, float]]  # see `Ranking.terms`; by (metric, k)
    covered: dict[int, tuple[_Labels, _Labels]]  # see `Ranking.covered`; by k

    @classmethod
    def of(cls, ranking: Ranking, metrics: Sequence[str], ks: Sequence[int]) -> RankingSums:
        summed = [name for name in metrics if name != "coverage"]
        return cls(
            metrics,
            {(name, k): ranking.terms(name, k) for name in summed for k in ks},
            {k: ranking.covered(k) for k in ks},
        )

    def __add__(self, other: RankingSums) -> RankingSums:
        terms, covered = {}, {}
        for key, (part, whole) in self.terms.items():
            more, more_whole = other.terms[key]
            terms[key] = part + more, whole + more_whole
        for k, (hit, true) in self.covered.items():
            more_hit, more_true = other.covered[k]
            covered[k] = np.union1d(hit, more_hit), np.union1d(true, more_true)
        return RankingSums(self.metrics, terms, covered)

    def report(self) -> dict[str, float]:
        """The metrics of all added rows: "precision@1" and so on."""
        terms_by_name = {
            (name, k): self.terms[name, k] if name != "coverage" else map(len, self.covered[k])
            for name in self.metrics
            for k in self.covered
        }
        return {f"{name}@{k}": _ratio(*terms) for (name, k), terms in terms_by_name.items()}


def _find_hits(truth: sp.csr_array, top: npt.NDArray[np.int32]) -> Ranked:
    """Mark the true labels of some rows in a table of rows x labels, and look up predictions."""
    n_rows, k = top.shape
    width = truth.shape[1] + 1  # the first cell of a row, where -1 lands, is never marked
    step = max(1, min(_MARKS // max(width, 8 * k), n_rows))
    marks = np.zeros(step * width, dtype=bool)
    hits = []
    for start in range(0, n_rows, step):
        bounds = truth.indptr[start : start + step + 1]
        first_cell = np.arange(len(bounds) - 1) * width + 1
        true = truth.indices[bounds[0] : bounds[-1]] + np.repeat(first_cell, np.diff(bounds))
        marks[true] = True
        hits.append(np.flatnonzero(marks[top[start : start + step] + first_cell[:, None]]))
        hits[-1] += start * k
        marks[true] = False
    cells = np.concatenate(hits)
    return Ranked(*np.divmod(cells, max(k, 1)), top.ravel()[cells])


def top_of_dense(scores: npt.NDArray[Any], k: int) -> npt.NDArray[np.int32]:
    n_rows, width = scores.shape
    top = np.empty((n_rows, min(k, width)), dtype=np.int32)
    step = max(1, _CELLS // max(width, 1))
    for start in range(0, n_rows, step):
        best, missing = _best_columns(scores[start : start + step], k)
        top[start : start + step] = np.where(missing, -1, best)
    return top


def top_of_sparse(scores: sp.csr_array, k: int) -> npt.NDArray[np.int32]:
    """Like `top_of_dense`, on chunks of rows of similar length, padded with -inf."""
    data = scores.data if scores.data.dtype.kind == "f" else scores.data.astype(np.float64)
    lengths = np.diff(scores.indptr)
    by_length = np.argsort(-lengths, kind="stable")
    top = np.full((len(lengths), min(k, int(lengths.max(initial=0)))), -1, dtype=np.int32)
    start = 0
    while start < len(lengths) and (longest := lengths[by_length[start]]):
        rows = by_length[start : start + max(1, _CELLS // longest)]
        first_cell = scores.indptr[rows, None]
        padding = np.arange(longest) >= lengths[rows, None]
        chunk = data[np.where(padding, 0, first_cell + np.arange(longest))]
        chunk[padding] = -np.inf
        best, missing = _best_columns(chunk, k)
        labels = scores.indices[np.where(missing, 0, first_cell + best)]
        top[rows, : labels.shape[1]] = np.where(missing, -1, labels)
        start += len(rows)
    return top


def _best_columns(
    scores: npt.NDArray[Any], k: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Columns of each row's k best scores, ties by column; and which scores are -inf."""
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
    # Cheaper than a stable sort: sort with ties in any order, then each group of ties by column.
    order = np.argsort(-scores, axis=1)
    scores = np.take_along_axis(scores, order, axis=1)
    group = np.zeros(order.shape, dtype=np.int32 if order.shape[1] < 2**15 else np.int64)
    np.cumsum(scores[:, 1:] != scores[:, :-1], axis=1, out=group[:, 1:])
    group *= order.shape[1]
    order = np.sort(group + order.astype(group.dtype), axis=1) - group
    best = order if columns is None else np.take_along_axis(columns, order, axis=1)
    return best, scores == -np.inf


def _ratio(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else float("nan")
