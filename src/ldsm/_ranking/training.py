"""Train the second stage on shortlists of the training rows.

Each row is matched by trees and an index that never saw it, so the shortlists are like those of new
rows. Some rows are held out while the ranker learns, and used to fit the blend; then the ranker
continues with all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._execution.executor import Control, ThreadExecutor
from .._matching.evidence import Evidence, best_of_rows
from .._matching.matchers import MATCHERS
from .._matching.meaning import Meaning
from .._matching.part import Part, Scores, Trained, Training
from .._matching.shortlists import Shortlists
from .._matching.training_lists import Matching, shared
from .._trees.params import AUTO, effort_of
from ..metrics.propensities import propensities_from_counts
from .blend import (
    KINDS,
    OPTIONS,
    UNSEEN_MEANING_TERMS,
    UNSEEN_TERMS,
    Blend,
    Listed,
    Option,
    Pairs,
    fit_blend,
    rounded,
    tail_scores,
    with_option,
)
from .parts import SCORERS
from .stage import SecondStage
from .unseen import fit_unseen, with_base_of

GAMMAS = tuple(2.0**i for i in range(-2, 9))
# A blend cannot be fitted to fewer true or fewer false held-out pairs.
FEWEST_PAIRS = 20
# False pairs per true pair; more do not improve a blend.
FALSE_PER_TRUE = 10
# A label counts as found if it is among this many best of its row.
FOUND_AT = 5
# A random stream of the false pairs.
_FALSE_STREAM = 2**63 + 3


class Tested(NamedTuple):
    """A second stage, and the scores that it gives to rows that its parts have not seen."""

    stage: SecondStage
    held_scores: NDArray[np.float32]  # of the pairs on `Matching.held`


def train_second_stage(rerank: str, training: Training, matching: Matching) -> Tested | None:
    """The second stage, or None if "auto" has too little to learn from."""
    stage = _StageTraining(training, matching)
    if not can_blend(stage.truth):
        if rerank == AUTO:
            return None
        raise ValueError(
            f"rerank={rerank!r} needs at least {FEWEST_PAIRS} true and {FEWEST_PAIRS} false labels "
            f"on the out-of-bag shortlists of held-out rows. Got {stage.truth.sum()} and "
            f"{(~stage.truth).sum()}: use rerank='auto' or None, or more rows or trees."
        )
    if rerank == "tail":
        return stage.tail_stage()
    compares = effort_of(training.settings).compares_blends
    return stage.linear_stage(choose=rerank == AUTO and compares)


class _StageTraining:
    """What all kinds of second stage share: the shortlists and the held-out pairs."""

    def __init__(self, training: Training, matching: Matching) -> None:
        self.training = replace(training, lists=matching.lists, held=matching.held)
        self.data, self.y, self.matching = training.data, training.data.y, matching
        self.settings, self.held_rows = training.settings, training.held_rows
        self.held = matching.held
        self.truth = shared(self.held, self.y.take(self.held_rows))
        self.weights = blend_weights(self.truth, training.seed)
        self.most_cosine = self._most_cosine()
        self.cross_fitted: dict[str, NDArray[np.float64]] = {}  # precision by kind of blend

    def _most_cosine(self) -> float:
        """The cosine that the names of nearly all true labels stay below; 0 if that is unknown."""
        if self.held.cosines is None or not self.truth.any():
            return 0.0
        return float(f"{np.quantile(self.held.cosines[self.truth], 0.99):.6g}")

    # -- the paper's tail scores --------------------------------------------------------------

    def tail_stage(self) -> Tested:
        share, gamma = self.settings["tail_blend"], self.settings["tail_gamma"]
        centroids = SCORERS["centroids"].train("centroids", self.training)
        pairs = self._held_pairs(centroids=centroids.held_scores)
        if gamma == AUTO:
            propensities = propensities_from_counts(self.y.counts, self.data.n_rows)
            gain = None if propensities is None else 1 / propensities[self.held.labels]
            worth = [self._precision(tail_scores(pairs, share, g), gain).mean() for g in GAMMAS]
            gamma = GAMMAS[int(np.argmax(worth))]
        blend = self._fitted("tail", pairs, tree_share=share, gamma=float(gamma))
        return self._stage(blend, pairs, {"centroids": centroids})

    # -- the linear ranker --------------------------------------------------------------------

    def linear_stage(self, *, choose: bool) -> Tested:
        """With `choose`, the blend also gets the options that clearly improve it."""
        chosen = SCORERS if choose else {"ranker": SCORERS["ranker"]}
        trained = {name: part.train(name, self.training) for name, part in chosen.items()}
        pairs = self._held_pairs(**{name: part.held_scores for name, part in trained.items()})
        kind = "linear"
        for option in OPTIONS:
            richer = with_option(kind, option)
            if self._is_needed(option) or (
                self._is_possible(option, trained) and self._gains(richer, kind, pairs)
            ):
                kind = richer
        blend = replace(self._fitted(kind, pairs), most_cosine=self.most_cosine)
        if self.matching.unseen is not None:
            blend = replace(blend, unseen=self._unseen(kind, pairs, self.matching.unseen))
        if "names" not in blend.needs:
            blend = replace(blend, most_cosine=0.0)
        return self._stage(blend, pairs, trained)

    def _is_needed(self, option: Option) -> bool:
        """Whether it belongs to a matcher that finds labels, which must also score them."""
        matchers = self.matching.matchers
        if option.part == "names":
            return matchers.match_names and self._have_names()
        return option.part in matchers.trained and option.part not in matchers.undecided

    def _is_possible(self, option: Option, trained: Collection[str]) -> bool:
        if option.part == "names":
            return self._have_names()
        return option.part in trained or option.part in self.matching.matchers.undecided

    def _have_names(self) -> bool:
        """Whether rows name enough of their true labels to learn from."""
        coverages = self.held.coverages
        return coverages is not None and int(np.sum(self.truth & (coverages > 0))) >= FEWEST_PAIRS

    def _unseen(self, kind: str, pairs: Pairs, lists: Shortlists) -> tuple[float, ...]:
        """Coefficients for labels without rows, fitted to the names of other labels.

        Without enough true and false matches there are none, and these labels have no score.
        """
        used, weights = pairs.signal("k") > 0, np.ones(len(self.truth))
        terms: tuple[str, ...] = UNSEEN_TERMS
        if "meaning" in KINDS[kind].needs and self.data.label_vectors is not None:
            pairs, terms = pairs.with_signal("h", self._meaning_of_names()), UNSEEN_MEANING_TERMS
            used, weights = self.weights > 0, self.weights
        if not can_blend(self.truth[used]):
            return ()
        fitted = fit_unseen(pairs[used], self.truth[used], weights[used], terms)
        if terms == UNSEEN_TERMS:  # the lists know nothing of labels that are found by meaning
            unseen = Pairs.of(Listed(lists, self.y.counts, {}, self.most_cosine))
            right = shared(lists, self.y.take(self.held_rows))
            fitted = with_base_of(fitted, unseen, right, terms, prior=FEWEST_PAIRS)
        return rounded(fitted)

    def _meaning_of_names(self) -> Scores:
        """The scores of held-out pairs by vectors of labels that are made from names alone."""
        dense = self.data.blocks.dense
        assert dense is not None
        meaning: Meaning = self.matching.matchers.trained["meaning"].whole
        by_names = meaning.of_names(self.training)
        return by_names.scores(dense.take(self.held_rows), self.held)

    def _stage(self, blend: Blend, pairs: Pairs, trained: Mapping[str, Trained]) -> Tested:
        matchers = self.matching.matchers
        parts: dict[str, Part] = {**matchers.parts}
        parts |= {name: one.whole() for name, one in trained.items() if name in blend.needs}
        stage = SecondStage(
            blend,
            self.y.counts,
            self.matching.length,
            {name: parts[name] for name in blend.needs},
            match_names="names" in blend.needs and matchers.match_names,
            telling_sub_words=matchers.telling_sub_words if "sub_index" in parts else None,
            tested=self._tested(blend.probabilities(pairs)),
        )
        evidence = Evidence.of(
            self.held,
            stage.base_rates(self.data.n_rows),
            indexed=stage.index is not None or stage.sub_index is not None,
        )
        masses = stage.masses_of(self.data.blocks)
        narrow = {block: values.astype(np.float32) for block, values in masses.items()}
        usual = self._usual_meaning(pairs) if "meaning" in blend.needs else 0.0
        stage = replace(stage, evidence=evidence, masses=narrow, usual_meaning=usual)
        rows = self.data.blocks.take(self.held_rows)
        pairs = stage.with_certainty(rows, pairs, self.held, self.data.n_rows)
        return Tested(stage, blend.probabilities(pairs))

    def _usual_meaning(self, pairs: Pairs) -> float:
        """The median score by meaning of the best labels of held-out rows."""
        best = best_of_rows(pairs.signal("h"), self.held.indptr)
        return max(0.0, float(f"{np.median(best):.6g}")) if len(best) else 0.0

    def _tested(self, scores: NDArray[np.float32]) -> NDArray[np.uint16]:
        """How many held-out rows have each label, and how many of them find it."""
        labels, hits = self.held.labels, self.truth & (self._rank(scores) < FOUND_AT)
        counts = [
            np.bincount(found, minlength=self.y.n_labels)
            for found in (self.y.take(self.held_rows).indices, labels[hits])
        ]
        return np.stack(counts, axis=1).astype(np.uint16)  # of at most HELD_OUT_ROWS rows, or so

    def _rank(self, scores: NDArray[Any]) -> NDArray[np.int64]:
        """The place of each held-out pair in its row, from 0, by the scores.

        Pairs that are not among the best all have the place `FOUND_AT`.
        """
        starts, lengths = self.held.indptr[:-1], np.diff(self.held.indptr)
        table = np.full((len(lengths), max(1, lengths.max(initial=0))), -np.inf)
        table[np.arange(table.shape[1]) < lengths[:, None]] = scores
        rank = np.full(len(scores), FOUND_AT)
        for place in range(FOUND_AT):
            best = table.argmax(axis=1)  # of equal scores the first, whose label is lowest
            rows = np.flatnonzero(lengths > place)
            rank[starts[rows] + best[rows]] = place
            table[np.arange(len(best)), best] = -np.inf
        return rank

    # -- helpers ------------------------------------------------------------------------------

    def _held_pairs(self, **scores: Scores) -> Pairs:
        """The signals of held-out pairs, by parts that have not seen their rows."""
        for name, trained in self.matching.matchers.trained.items():
            own = MATCHERS[name].held_scores(name, trained, self.training, self.truth)
            scores |= {} if own is None else {name: own}
        return Pairs.of(Listed(self.held, self.y.counts, scores, self.most_cosine))

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
