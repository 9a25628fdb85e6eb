"""Train the second stage on shortlists of the training rows.

Each row is matched by trees and an index that never saw it, so the shortlists are like those of new
rows. Some rows are held out while the ranker learns, and used to fit the blend; then the ranker
continues with all rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._arrays.labels import LabelArrays
from .._execution.executor import Control, Executor, ThreadExecutor
from .._features.training_rows import TrainingRows
from .._matching.evidence import Evidence, long_runs
from .._matching.feature_index import train_index
from .._matching.names import name_index
from .._matching.shortlists import Matchers, OutOfBag, Shortlists
from .._trees.params import AUTO
from ..metrics.propensities import propensities_from_counts
from .blend import Blend, Listed, Pairs, fit_blend, fit_unseen, rounded, tail_scores
from .label_vectors import LabelVectors
from .ranker import COST, COST_BINARY, LabelPairs, train_ranker
from .stage import SHORTLIST, SecondStage

# Chosen on held-out training rows (docs/tuning.md).
FILL_TO = 50
CENTROID_PRUNE = 0.01
HELD_OUT_SHARE, HELD_OUT_ROWS = 0.2, 2500
GAMMAS = tuple(2.0**i for i in range(-2, 9))
# A blend cannot be fitted to fewer true or fewer false held-out pairs.
FEWEST_PAIRS = 20
# A random stream that no tree uses: those are numbered from 0.
_HELD_OUT_STREAM = 2**63
# By the length of a shortlist: how many times as many true labels twice the length must find.
# Beyond 100, the ranker's time grows more than precision does.
LONGER_IF = {50: 1.01, 100: 1.05}
# How many times as many true labels sub-words and names must find. Otherwise codes that look like
# words of some texts by chance would pass for names.
MORE_BY_SPELLING = 1.005
# False pairs per true pair; more do not improve a blend.
FALSE_PER_TRUE = 10
# A label counts as found if it is among this many best of its row.
FOUND_AT = 5
# A random stream of the false pairs.
_FALSE_STREAM = 2**63 + 3


@dataclass(frozen=True)
class Matching:
    """How training rows are matched, and new rows will be."""

    lists: Shortlists  # of all training rows
    held: Shortlists  # of those that are held out, with all scores
    length: int
    matchers: Matchers


def match_training_rows(
    oob: OutOfBag, data: TrainingRows, seed: int, *, with_index: bool
) -> Matching:
    """Shortlists of the training rows.

    With `with_index`, held-out rows decide whether an index finds more of their labels than the
    trees alone, whether sub-words and names find more still, and whether longer lists find many
    more.
    """
    sample = np.flatnonzero(held_out_rows(data.n_rows, seed))

    def matching(length: int, matchers: Matchers) -> Matching:
        length = min(length, data.n_labels)
        lists = oob.match(length, matchers)
        if matchers.names is not None:
            truth = shared(lists, data.y)
            assert lists.coverages is not None
            names = matchers.names.counted(lists.labels, lists.coverages, truth)
            matchers, lists = replace(matchers, names=names), replace(lists, coverages=None)
        return Matching(lists, oob.match(length, matchers, sample), length, matchers)

    if not with_index:
        return matching(SHORTLIST, Matchers())
    y = data.y.take(sample)
    lengths = [*LONGER_IF, 2 * max(LONGER_IF)]

    def found(length: int, matchers: Matchers) -> int:
        return int(shared(oob.match(length, matchers, sample), y).sum())

    matchers, most = Matchers(), found(lengths[-1], Matchers())

    def add(least: float = 1.0, **changes: Any) -> None:
        """Use more if that finds at least `least` times as many true labels."""
        nonlocal matchers, most
        more = replace(matchers, **changes)
        if (its := found(lengths[-1], more)) >= least * most:
            matchers, most = more, its

    add(index=train_index(data.blocks.read_by("index"), data.y, seed))
    if (form := data.sub_word_form) is not None and data.blocks.has("sub_index"):
        if form.indexed:
            add(
                MORE_BY_SPELLING,
                sub_index=train_index(data.blocks.read_by("sub_index"), data.y, seed),
                telling_sub_words=long_runs(form.words),
            )
        if data.with_names:
            names = name_index(data.y.classes.tolist(), form, data.label_synonyms)
            matchers = replace(matchers, names=names)
            add(MORE_BY_SPELLING, match_names=True)
    length, so_far = lengths[0], found(lengths[0], matchers)
    for longer in lengths[1:]:
        more = most if longer == lengths[-1] else found(longer, matchers)
        if length >= data.n_labels or more < LONGER_IF[length] * so_far:
            break
        length, so_far = longer, more
    return matching(length, matchers)


def train_second_stage(
    rerank: str,
    data: TrainingRows,
    matching: Matching,
    settings: Mapping[str, Any],
    seed: int,
    executor: Executor,
    *,
    compress: bool,
) -> SecondStage | None:
    """The second stage, or None if "auto" has too little to learn from.

    `settings` are the estimator's parameters; the result does not depend on the executor.
    """
    training = _Training(data, matching, settings, seed, executor, compress=compress)
    if not training.can_blend:
        if rerank == AUTO:
            return None
        raise ValueError(
            f"rerank={rerank!r} needs at least {FEWEST_PAIRS} true and {FEWEST_PAIRS} false labels "
            f"on the out-of-bag shortlists of held-out rows. Got {training.truth.sum()} and "
            f"{(~training.truth).sum()}: use rerank='auto' or None, or more rows or trees."
        )
    if rerank == "tail":
        return training.tail_stage()
    return training.linear_stage(choose=rerank == AUTO)


def held_out_rows(n_rows: int, seed: int, share: float = HELD_OUT_SHARE) -> NDArray[np.uint8]:
    """1 for each row that the blend is fitted on, of at most the given share."""
    share = min(share, HELD_OUT_ROWS / n_rows)
    return _core.bag_mask(seed, _HELD_OUT_STREAM, n_rows, share)


class _Training:
    """What all kinds of second stage share: the shortlists and the held-out pairs."""

    def __init__(
        self,
        data: TrainingRows,
        matching: Matching,
        settings: Mapping[str, Any],
        seed: int,
        executor: Executor,
        *,
        compress: bool,
    ) -> None:
        self.data, self.y, self.matching = data, data.y, matching
        self.x = data.blocks.read_by("ranker")  # and by the centroids
        self.settings, self.seed, self.compress = settings, seed, compress
        self.executor = executor
        self.held_out = held_out_rows(data.n_rows, seed)
        self.held_rows = np.flatnonzero(self.held_out)
        self.held = matching.held
        self.truth = shared(self.held, self.y.take(self.held_rows))
        self.weights = blend_weights(self.truth, seed)
        self.most_cosine = self._most_cosine()
        self.cross_fitted: dict[str, NDArray[np.float64]] = {}  # precision by kind of blend

    def _most_cosine(self) -> float:
        """What nearly all true labels' names have at most; 0 if there is nothing to tell by."""
        if self.held.cosines is None or not self.truth.any():
            return 0.0
        return float(f"{np.quantile(self.held.cosines[self.truth], 0.99):.6g}")

    @property
    def can_blend(self) -> bool:
        return can_blend(self.truth)

    # -- the paper's tail scores --------------------------------------------------------------

    def tail_stage(self) -> SecondStage:
        share, gamma = self.settings["tail_blend"], self.settings["tail_gamma"]
        pairs = self._held_pairs(distances=self._held_distances())
        if gamma == AUTO:
            propensities = propensities_from_counts(self.y.counts, self.x.n_rows)
            gain = None if propensities is None else 1 / propensities[self.held.labels]
            worth = [self._precision(tail_scores(pairs, share, g), gain).mean() for g in GAMMAS]
            gamma = GAMMAS[int(np.argmax(worth))]
        blend = self._fitted("tail", pairs, tree_share=share, gamma=float(gamma))
        return self._stage(blend, pairs)

    # -- the linear ranker --------------------------------------------------------------------

    def linear_stage(self, *, choose: bool) -> SecondStage:
        """With `choose`, the blend has the centroids too if it clearly gains from them."""
        matchers = self.matching.matchers
        ranker, margins = self._ranker()
        kind = "linear" if matchers.index is None else "linear+index"
        if matchers.sub_index is not None:
            kind = f"{kind}+subwords"
        distances = self._held_distances() if choose else None
        pairs = self._held_pairs(margins=margins, distances=distances)
        # Lists that names have filled are scored by them, too.
        if self._have_names() and (
            matchers.match_names or self._gains(f"{kind}+names", kind, pairs)
        ):
            kind = f"{kind}+names"
        if choose and self._gains(f"{kind}+tail", kind, pairs):
            kind = f"{kind}+tail"
        blend = replace(self._fitted(kind, pairs), most_cosine=self.most_cosine)
        if matchers.names is not None and not self.y.counts.all():
            blend = replace(blend, unseen=self._unseen(pairs))
        if "names" not in blend.needs:
            blend = replace(blend, most_cosine=0.0)
        return self._stage(blend, pairs, ranker)

    def _have_names(self) -> bool:
        """Whether there is something to learn from about names: true labels that are named."""
        coverages = self.held.coverages
        return coverages is not None and int(np.sum(self.truth & (coverages > 0))) >= FEWEST_PAIRS

    def _unseen(self, pairs: Pairs) -> tuple[float, ...]:
        """How labels that no row has are scored: as others are, by their names alone.

        They are rather like rare labels, so frequent ones count for less. Without enough true and
        false matches there is nothing to go by: then they have no score.
        """
        used = pairs.signal("k") > 0
        truth = self.truth[used]
        if min(np.count_nonzero(truth), np.count_nonzero(~truth)) < FEWEST_PAIRS:
            return ()
        weights = 1 / np.sqrt(pairs.label_counts[used])
        return rounded(fit_unseen(pairs[used], truth, weights))

    def _stage(self, blend: Blend, pairs: Pairs, ranker: LabelVectors | None = None) -> SecondStage:
        matchers = self.matching.matchers
        trained: dict[str, Any] = {**matchers.parts, "ranker": ranker}
        if "centroids" in blend.needs:
            trained["centroids"] = self._centroids()
        stage = SecondStage(
            blend,
            self.y.counts,
            self.matching.length,
            {name: trained[name] for name in blend.needs},
            match_names="names" in blend.needs and matchers.match_names,
            telling_sub_words=matchers.telling_sub_words,
            tested=self._tested(blend.probabilities(pairs)),
        )
        evidence = Evidence.of(
            self.held,
            stage.base_rates(self.x.n_rows),
            indexed=stage.index is not None or stage.sub_index is not None,
        )
        masses = stage.masses_of(self.data.blocks)
        narrow = {block: values.astype(np.float32) for block, values in masses.items()}
        return replace(stage, evidence=evidence, masses=narrow)

    def _tested(self, scores: NDArray[np.float32]) -> NDArray[np.uint16]:
        """How many held-out rows have each label, and how many of them find it."""
        labels, hits = self.held.labels, self.truth & (self._rank(scores) < FOUND_AT)
        counts = [
            np.bincount(found, minlength=self.y.n_labels)
            for found in (self.y.take(self.held_rows).indices, labels[hits])
        ]
        return np.stack(counts, axis=1).astype(np.uint16)  # of at most HELD_OUT_ROWS rows, or so

    def _rank(self, scores: NDArray[Any]) -> NDArray[np.int64]:
        """The place of each held-out pair in its row, from 0, by the scores."""
        lengths = np.diff(self.held.indptr)
        row = np.repeat(np.arange(len(lengths)), lengths)
        order = np.lexsort((self.held.labels, -scores, row))
        rank = np.empty(len(row), dtype=np.int64)
        rank[order] = np.arange(len(row)) - np.repeat(self.held.indptr[:-1], lengths)
        return rank

    def _ranker(self) -> tuple[LabelVectors, NDArray[np.float32]]:
        """The ranker of all rows, and the held-out margins of a ranker trained without them."""
        pairs = offsets, rows, _ = self._label_pairs(self.matching.lists, FILL_TO)
        ranker, margins = train_ranker(
            self.executor,
            self.x,
            pairs,
            held_out=self.held_out,
            cost=COST_BINARY if self.x.is_binary else COST,
            compress=self.compress,
            seed=self.seed,
        )
        # The core returns the held-out pairs by label, but shortlists are by row.
        held = self.held_out[rows].view(bool)
        labels = np.repeat(np.arange(self.y.n_labels), np.diff(offsets))[held]
        key = rows[held] * np.int64(self.y.n_labels) + labels
        order = np.argsort(key)
        wanted = _keys(self.held_rows, self.held.indptr, self.held.labels, self.y.n_labels)
        return ranker, margins[order[np.searchsorted(key, wanted, sorter=order)]]

    # -- helpers ------------------------------------------------------------------------------

    def _label_pairs(self, lists: Shortlists | LabelArrays, fill_to: int) -> LabelPairs:
        labels = lists.labels if isinstance(lists, Shortlists) else lists.indices
        checked = _core.CheckedLabels(lists.indptr, labels, self.y.n_labels)
        return _core.label_pairs(checked, self.y.checked, fill_to=fill_to, seed=self.seed)

    def _centroids(self, left_out: NDArray[np.uint8] | None = None) -> LabelVectors:
        return LabelVectors(
            *_core.train_centroids(
                self.x.checked,
                _core.CheckedPairs(*self._label_pairs(self.y, 0), self.x.n_rows),
                left_out=left_out,
                min_rows=self.settings["tail_min_rows"],
                prune=CENTROID_PRUNE,
                compress=self.compress,
            )
        )

    def _held_distances(self) -> NDArray[np.float64]:
        """Distances of the held-out pairs to the centroids of the other rows."""
        return self._centroids(self.held_out).squared_distances(
            self.x.take(self.held_rows), self.held.indptr, self.held.labels
        )

    def _held_pairs(self, **signals: Any) -> Pairs:
        held, names = self.held, self.matching.matchers.names
        if names is not None:
            assert held.coverages is not None
            odds = names.odds_without(held.labels, held.coverages, self.truth)
            signals |= {"name_odds": odds, "most_cosine": self.most_cosine}
        return Pairs.of(Listed(held, self.y.counts, **signals))

    def _gains(self, richer: str, kind: str, pairs: Pairs) -> bool:
        """Whether a richer blend, which costs memory and time, gains more than a standard error."""
        missing = [k for k in (richer, kind) if k not in self.cross_fitted]
        self.cross_fitted |= self._cross_fitted(missing, pairs)
        gain = self.cross_fitted[richer] - self.cross_fitted[kind]
        return bool(gain.mean() > gain.std() / np.sqrt(len(gain)))

    def _fitted(
        self, kind: str, pairs: Pairs, chosen: NDArray[np.bool_] | None = None, **formula: float
    ) -> Blend:
        """A blend fitted to the pairs that count, or to the chosen ones of them."""
        used = self.weights > 0 if chosen is None else chosen & (self.weights > 0)
        return fit_blend(kind, pairs[used], self.truth[used], self.weights[used], **formula)

    def _cross_fitted(self, kinds: list[str], pairs: Pairs) -> dict[str, NDArray[np.float64]]:
        """Precision of each half of the rows by blends fitted on the other half."""
        row = np.repeat(np.arange(len(self.held_rows)), np.diff(self.held.indptr))
        scores = {kind: np.empty(len(row)) for kind in kinds}

        def fit(part: tuple[str, int], control: Control) -> None:
            kind, scored = part[0], row % 2 == part[1]
            blend = self._fitted(kind, pairs, ~scored)
            scores[kind][scored] = blend.probabilities(pairs[scored])

        halves = [(kind, half) for kind in kinds for half in (0, 1)]
        ThreadExecutor(self.settings["n_jobs"]).map(fit, halves)
        return {kind: self._precision(values) for kind, values in scores.items()}

    def _precision(
        self, scores: NDArray[Any], gain: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Mean of P@1, P@3 and P@5 of each held-out row, ordered by the scores."""
        lengths = np.diff(self.held.indptr)
        row = np.repeat(np.arange(len(lengths)), lengths)
        rank = self._rank(scores)
        hits = self.truth * (1.0 if gain is None else gain)
        weight = np.select(
            [rank < 1, rank < 3, rank < 5], [1 + 1 / 3 + 1 / 5, 1 / 3 + 1 / 5, 1 / 5]
        )
        return np.bincount(row, hits * weight / 3, len(lengths)).astype(np.float64)


def can_blend(truth: NDArray[np.bool_]) -> bool:
    """Whether there are enough true and false pairs to fit a blend to."""
    n_true = int(truth.sum())
    return min(n_true, len(truth) - n_true) >= FEWEST_PAIRS


def blend_weights(truth: NDArray[np.bool_], seed: int) -> NDArray[np.float64]:
    """How much each pair counts when a blend is fitted.

    Most pairs are false. Where there are very many, a sample of them stands for all.
    """
    false = np.flatnonzero(~truth)
    share = FALSE_PER_TRUE * int(truth.sum()) / max(1, len(false))
    weights = np.ones(len(truth))
    if 0 < share < 1:
        chosen = _core.bag_mask(seed, _FALSE_STREAM, len(false), share)
        weights[false] = chosen * (len(false) / chosen.sum())
    return weights


def shared(lists: Shortlists, y: LabelArrays) -> NDArray[np.bool_]:
    """Which labels of some rows' lists are among the rows' own."""
    rows = np.arange(y.n_rows)
    listed = _keys(rows, lists.indptr, lists.labels, y.n_labels)
    own = _keys(rows, y.indptr, y.indices, y.n_labels)
    return np.isin(listed, own, assume_unique=True)


def _keys(
    rows: NDArray[np.int64], indptr: NDArray[np.int64], labels: NDArray[np.int32], n_labels: int
) -> NDArray[np.int64]:
    """One number per (row, label) pair."""
    return np.asarray(np.repeat(rows, np.diff(indptr)) * np.int64(n_labels) + labels)
