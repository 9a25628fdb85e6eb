"""Training the second stage on out-of-bag shortlists: trees that match, a ranker that ranks.

Each row is scored by the trees that never saw it, so the shortlists are like those that new rows
will get. A part of the rows is held out while the ranker learns, and teaches the blend; then the
ranker goes on with all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from . import _core
from .blend import Blend, Pairs, fit_blend, tail_scores
from .inputs import FeatureArrays, LabelArrays
from .interrupts import Recall
from .metrics import jain_propensities
from .second_stage import LabelVectors, SecondStage, centroid_distances

# Chosen on held-out training rows of Bibtex, Delicious and EURLEX57K (docs/tuning.md).
# C of the ranker: rows of equal values (words present or not) tell less and want a smoother one.
COST, COST_BINARY = 1.0, 0.5
TOLERANCE = 1.0
MAX_EPOCHS = 30
PRUNE = 0.02
FILL_TO = 50
CENTROID_PRUNE = 0.01
HELD_OUT_SHARE, HELD_OUT_ROWS = 0.2, 2500
GAMMAS = tuple(2.0**i for i in range(-2, 9))
# No blend can be told from fewer held-out pairs of each kind, true and false.
FEWEST_PAIRS = 20
# Streams of random numbers apart from those of the trees, which are numbered from 0.
_HELD_OUT_STREAM = 2**63


@dataclass(frozen=True)
class Shortlists:
    """Each training row's labels by the trees that never saw it, labels ascending."""

    indptr: NDArray[np.int64]
    labels: NDArray[np.int32]
    scores: NDArray[np.float32]

    def rows(self, chosen: NDArray[np.int64]) -> Shortlists:
        lengths = np.diff(self.indptr)[chosen]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
        entries = np.repeat(self.indptr[chosen], lengths) + within
        return Shortlists(indptr, self.labels[entries], self.scores[entries])


@dataclass(frozen=True)
class TailParams:
    """Of ``rerank="tail"``: beta, gamma or None to learn it, and the rows a centroid needs."""

    tree_share: float
    gamma: float | None
    min_rows: int


def train_second_stage(
    rerank: str,
    x: FeatureArrays,
    y: LabelArrays,
    lists: Shortlists,
    tail: TailParams,
    *,
    n_features: int,
    seed: int,
    n_jobs: int | None,
) -> SecondStage | None:
    """The second stage, or None where "auto" has too little to go by.

    The same bits for any `n_jobs`.
    """
    training = _Training(x, y, lists, tail, n_features, seed, n_jobs)
    if not training.can_blend:
        if rerank == "auto":
            return None
        raise ValueError(
            f"rerank={rerank!r} needs at least {FEWEST_PAIRS} true and {FEWEST_PAIRS} false labels "
            f"on the out-of-bag shortlists of held-out rows. Got {training.truth.sum()} and "
            f"{(~training.truth).sum()}: use rerank='auto' or None, or more rows or trees."
        )
    if rerank == "tail":
        return training.tail_stage()
    return training.linear_stage(choose=rerank == "auto")


class _Training:
    """What all kinds of second stage share: the pairs of rows and labels, and the held-out ones."""

    def __init__(
        self,
        x: FeatureArrays,
        y: LabelArrays,
        lists: Shortlists,
        tail: TailParams,
        n_features: int,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        self.x, self.y, self.tail = x, y, tail
        self.n_features, self.seed, self.n_jobs = n_features, seed, n_jobs
        self.lists = lists
        self.label_rows = np.bincount(y.indices, minlength=y.n_labels).astype(np.int64)
        share = min(HELD_OUT_SHARE, HELD_OUT_ROWS / x.n_rows)
        self.held_out = _core.bag_mask(seed, _HELD_OUT_STREAM, x.n_rows, share)
        self.held_rows = np.flatnonzero(self.held_out)
        self.held = lists.rows(self.held_rows)
        self.held_key = _keys(self.held_rows, self.held.indptr, self.held.labels, y.n_labels)
        y_rows = np.repeat(np.arange(x.n_rows), np.diff(y.indptr))
        y_key = y_rows * np.int64(y.n_labels) + y.indices
        self.truth = np.isin(self.held_key, y_key, assume_unique=True)

    @property
    def can_blend(self) -> bool:
        n_true = int(self.truth.sum())
        return min(n_true, len(self.truth) - n_true) >= FEWEST_PAIRS

    # -- the paper's tail re-ranking ----------------------------------------------------------

    def tail_stage(self) -> SecondStage:
        share = self.tail.tree_share
        pairs = self._held_pairs(distances=self._held_distances())
        gamma = self.tail.gamma
        if gamma is None:
            gain = 1 / jain_propensities(self.label_rows, self.x.n_rows)[self.held.labels]
            worth = [self._precision(tail_scores(pairs, share, g), gain).mean() for g in GAMMAS]
            gamma = GAMMAS[int(np.argmax(worth))]
        blend = fit_blend("tail", pairs, self.truth, tree_share=share, gamma=gamma)
        return self._stage(blend, centroids=self._centroids())

    # -- the linear ranker --------------------------------------------------------------------

    def linear_stage(self, *, choose: bool) -> SecondStage:
        """With `choose` the simplest blend that no other surely beats; else the one with ranker."""
        ranker, margins = self._ranker()
        distances = self._held_distances() if choose else None
        pairs = self._held_pairs(margins=margins, distances=distances)
        kind = self._chosen_kind(pairs) if choose else "linear"
        blend = fit_blend(kind, pairs, self.truth)
        return self._stage(
            blend,
            ranker=None if kind == "trees" else ranker,
            centroids=self._centroids() if kind == "linear+tail" else None,
        )

    def _ranker(self) -> tuple[LabelVectors, NDArray[np.float32]]:
        """The ranker of all rows, and the margins of the held-out lists by one without these."""
        offsets, rows, positive = self._label_pairs(self.lists, FILL_TO)
        n_jobs = joblib.effective_n_jobs(self.n_jobs)
        parts = _even_parts(offsets, 8 * n_jobs if n_jobs > 1 else 1)
        recall = Recall.for_tasks(len(parts))

        def train(task: int) -> tuple[Sequence[NDArray[Any]], NDArray[np.float32]]:
            first, last = parts[task]
            start, stop = offsets[first], offsets[last]
            with recall.entered(task) as cancel:
                return _core.train_ranker(
                    self.x.checked,
                    offsets[first : last + 1] - start,
                    rows[start:stop],
                    positive[start:stop],
                    first_label=first,
                    held_out=self.held_out,
                    cost=COST_BINARY if self.x.checked.is_binary else COST,
                    tolerance=TOLERANCE,
                    max_epochs=MAX_EPOCHS,
                    prune=PRUNE,
                    seed=self.seed,
                    cancel=cancel,
                )

        with recall.on_failure():
            tasks = (joblib.delayed(train)(task) for task in range(len(parts)))
            done = list(joblib.Parallel(n_jobs=n_jobs, require="sharedmem")(tasks))
        ranker = _joined([vectors for vectors, _ in done])
        margins = np.concatenate([margins for _, margins in done])
        # The core speaks of the held-out pairs label by label, the shortlists row by row.
        held = self.held_out[rows].view(bool)
        labels = np.repeat(np.arange(self.y.n_labels), np.diff(offsets))[held]
        key = rows[held] * np.int64(self.y.n_labels) + labels
        order = np.argsort(key)
        return ranker, margins[order[np.searchsorted(key, self.held_key, sorter=order)]]

    # -- helpers ------------------------------------------------------------------------------

    def _label_pairs(
        self, lists: Shortlists, fill_to: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint8]]:
        return _core.label_pairs(
            _core.CheckedLabels(lists.indptr, lists.labels, self.y.n_labels),
            self.y.checked,
            fill_to=fill_to,
            seed=self.seed,
        )

    def _centroids(self, left_out: NDArray[np.uint8] | None = None) -> LabelVectors:
        own = Shortlists(self.y.indptr, self.y.indices, np.empty(0, np.float32))
        return LabelVectors(
            *_core.train_centroids(
                self.x.checked,
                *self._label_pairs(own, 0),
                left_out=left_out,
                min_rows=self.tail.min_rows,
                prune=CENTROID_PRUNE,
            )
        )

    def _held_distances(self) -> NDArray[np.float64]:
        """Of the held-out lists to the centroids of the other rows."""
        return centroid_distances(
            self._centroids(self.held_out),
            _chosen_rows(self.x, self.held_rows),
            self.n_features,
            self.held.indptr,
            self.held.labels,
        )

    def _held_pairs(self, **signals: NDArray[Any] | None) -> Pairs:
        return Pairs(self.held.scores, self.label_rows[self.held.labels], **signals)

    def _stage(self, blend: Blend, **vectors: LabelVectors | None) -> SecondStage:
        return SecondStage(blend, self.n_features, self.label_rows, **vectors)

    def _chosen_kind(self, pairs: Pairs) -> str:
        kind, precision = "trees", self._precision(pairs.tree_scores)
        for richer in ("linear", "linear+tail"):
            its = self._precision(self._cross_fitted(richer, pairs))
            gain = its - precision
            # A stage costs memory and time: it must gain more than one standard error.
            if gain.mean() > gain.std() / np.sqrt(len(gain)):
                kind, precision = richer, its
        return kind

    def _cross_fitted(self, kind: str, pairs: Pairs) -> NDArray[np.float64]:
        """Scores by a blend that was not fitted on the row: halves, both ways."""
        row = np.repeat(np.arange(len(self.held_rows)), np.diff(self.held.indptr))
        scores = np.empty(len(row))
        for half in (0, 1):
            there, here = row % 2 != half, row % 2 == half
            blend = fit_blend(kind, pairs[there], self.truth[there])
            scores[here] = blend.probabilities(pairs[here])
        return scores

    def _precision(
        self, scores: NDArray[Any], gain: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Mean of P@1, P@3 and P@5 of each held-out row, its list in the order of the scores."""
        lengths = np.diff(self.held.indptr)
        row = np.repeat(np.arange(len(lengths)), lengths)
        order = np.lexsort((self.held.labels, -scores, row))
        rank = np.arange(len(row)) - np.repeat(self.held.indptr[:-1], lengths)
        hits = self.truth[order] * (1.0 if gain is None else gain[order])
        weight = np.select(
            [rank < 1, rank < 3, rank < 5], [1 + 1 / 3 + 1 / 5, 1 / 3 + 1 / 5, 1 / 5]
        )
        return np.bincount(row, hits * weight / 3, len(lengths)).astype(np.float64)


def _keys(
    rows: NDArray[np.int64], indptr: NDArray[np.int64], labels: NDArray[np.int32], n_labels: int
) -> NDArray[np.int64]:
    """One number per (row, label) pair."""
    return np.asarray(np.repeat(rows, np.diff(indptr)) * np.int64(n_labels) + labels)


def _chosen_rows(x: FeatureArrays, rows: NDArray[np.int64]) -> FeatureArrays:
    chosen = Shortlists(x.indptr, x.indices, x.values).rows(rows)
    return FeatureArrays(chosen.indptr, chosen.labels, chosen.scores, x.n_features)


def _even_parts(offsets: NDArray[np.int64], n_parts: int) -> list[tuple[int, int]]:
    """Consecutive labels with about as many pairs each, as (first, one past the last)."""
    targets = np.linspace(0, offsets[-1], n_parts + 1)[1:-1]
    cuts = np.unique(np.concatenate([[0], np.searchsorted(offsets, targets), [len(offsets) - 1]]))
    return list(pairwise(cuts.tolist()))


def _joined(parts: Sequence[Sequence[NDArray[Any]]]) -> LabelVectors:
    ends = np.cumsum([0] + [part[0][-1] for part in parts])
    offsets = [part[0][1:] + end for part, end in zip(parts, ends[:-1], strict=True)]
    return LabelVectors(
        np.concatenate([np.zeros(1, np.int64), *offsets]),
        np.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] for part in parts]),
    )
