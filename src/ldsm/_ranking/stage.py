"""The second stage: rescores the shortlist of a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._execution.threads import CancelFlag, state_of
from .._features.blocks import BIGRAMS, MAIN, SUB_WORDS, Blocks
from .._features.copies import RowKeys
from .._matching.evidence import (
    Evidence,
    best_of_rows,
    most_frequent,
    replaced,
    with_name_matches,
)
from .._matching.feature_index import FeatureIndex, unit_masses
from .._matching.matchers import Matchers, match
from .._matching.meaning import Meaning
from .._matching.names import NameIndex
from .._matching.part import Part, Scores
from .._matching.shortlists import Shortlists
from .._trees.forest import Forest
from .blend import Blend, Listed, Pairs
from .centroids import Centroids
from .ranker import Ranker

Kind = TypeVar("Kind", bound=Part)


@dataclass(frozen=True, eq=False)
class SecondStage:
    """Makes and rescores shortlists; trained in ``ldsm._ranking.training``."""

    blend: Blend
    # Training rows per label. Copies of rows that were learned before do not count, because the
    # blend would take their labels to be frequent in other rows, too.
    label_counts: NDArray[np.int64]
    length: int  # of a shortlist
    parts: Mapping[str, Part]  # those that the blend needs, by their names in `PARTS`
    match_names: bool = False  # whether names find labels, or only score those that others find
    # How far the blend's scores of a row are trusted. Models of earlier versions do not have it:
    # their scores are the blend's for every row.
    evidence: Evidence | None = None
    # The score by meaning of the best label of a usual row, which is evidence enough; 0: none is.
    usual_meaning: float = 0.0
    telling_sub_words: NDArray[np.uint8] | None = None  # 1 for each that counts as evidence
    # For updates: by block, the mass of each feature in the rows so far. Predictions do not depend
    # on it. Models of earlier versions lack it and cannot be updated.
    masses: Mapping[str, NDArray[np.float32]] | None = None
    # By label: rows with it that were held out while the ranker learned, and on how many of them it
    # was among the five best. For people only; models of earlier versions do not have it.
    tested: NDArray[np.uint16] | None = None
    n_copies: int = 0  # training rows that are copies of others learned before
    # Hashes of the rows learned since the training, by which copies are recognised.
    learned_rows: RowKeys | None = None
    # By label that was dropped, if there are names: 1 if it had training rows.
    dropped_seen: NDArray[np.uint8] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self, "_matchers")

    def with_parts(self, **parts: Part) -> SecondStage:
        """The same with other parts of these names."""
        return replace(self, parts={**self.parts, **parts})

    @property
    def index(self) -> FeatureIndex | None:
        return _of_kind(FeatureIndex, self.parts.get("index"))

    @property
    def sub_index(self) -> FeatureIndex | None:
        return _of_kind(FeatureIndex, self.parts.get("sub_index"))

    @property
    def names(self) -> NameIndex | None:
        return _of_kind(NameIndex, self.parts.get("names"))

    @property
    def meaning(self) -> Meaning | None:
        return _of_kind(Meaning, self.parts.get("meaning"))

    @property
    def ranker(self) -> Ranker | None:
        return _of_kind(Ranker, self.parts.get("ranker"))

    @property
    def centroids(self) -> Centroids | None:
        return _of_kind(Centroids, self.parts.get("centroids"))

    def masses_of(self, x: Blocks) -> dict[str, NDArray[np.float64]]:
        """By block, the mass of each feature in some rows; of sub-words only for their index."""
        ranked, width = unit_masses(x.read_by("ranker")), x.main.n_features
        masses = {MAIN: ranked[:width], BIGRAMS: ranked[width:]}
        if self.index is not None:
            masses[MAIN] = unit_masses(x.read_by("index"))
        if self.sub_index is not None:
            masses[SUB_WORDS] = unit_masses(x.read_by("sub_index"))
        return masses

    def shortlists(
        self,
        forest: Forest,
        x: Blocks,
        *,
        allowed: NDArray[np.uint8] | None = None,
        cancel: CancelFlag | None = None,
    ) -> Shortlists:
        """The candidates of each row."""
        unseen = self._unseen
        if unseen is not None and not self.blend.unseen:
            allowed = 1 - unseen if allowed is None else allowed & (1 - unseen)
        return match(forest, x, self.length, self._matchers, allowed=allowed, cancel=cancel)

    @cached_property
    def _matchers(self) -> Matchers:
        return Matchers.of(
            self.parts,
            telling_sub_words=self.telling_sub_words,
            match_names=self.match_names,
            unseen=self._unseen if self.blend.unseen else None,
        )

    @cached_property
    def _unseen(self) -> NDArray[np.uint8] | None:
        """1 for each label that is known by its name alone; None if there are no such.

        Labels that were dropped come last.
        """
        unseen = self.label_counts == 0
        if self.dropped_seen is not None:
            unseen = np.append(unseen, self.dropped_seen == 0)
        return unseen.astype(np.uint8) if self.names is not None and unseen.any() else None

    def or_most_frequent(
        self, x: Blocks, lists: Shortlists, allowed: NDArray[np.uint8] | None = None
    ) -> Shortlists:
        """The shortlists, where rows without evidence get the most frequent labels."""
        if self.evidence is None or self.evidence.suffices(lists):
            return lists
        certainty = self._certainty(x, lists)
        unknown = certainty <= 0
        if not unknown.any():
            return lists
        row = np.repeat(np.arange(len(unknown)), np.diff(lists.indptr))
        named = with_name_matches(certainty, lists, self.label_counts) > 0
        unknown[row[named]] = False
        return replaced(lists, unknown, most_frequent(self.label_counts, self.length, allowed))

    def pairs(
        self,
        x: Blocks,
        lists: Shortlists,
        cancel: CancelFlag | None = None,
        *,
        n_training_rows: int | None = None,
        known: Mapping[str, Scores] | None = None,
    ) -> Pairs:
        """The signals of the labels on each row's shortlist.

        Given the number of training rows, also how far they can be trusted. `known` scores of parts
        are taken as they are.
        """
        scores = dict(known or {})
        for name, part in self.parts.items():
            if name not in scores:
                own = part.scores(x.read_by(name), lists, cancel)
                scores |= {} if own is None else {name: own}
        counts = self.blend.counts(self.label_counts)
        pairs = Pairs.of(Listed(lists, counts, scores, self.blend.most_cosine))
        if n_training_rows is None:
            return pairs
        return self.with_certainty(x, pairs, lists, n_training_rows)

    def with_certainty(
        self, x: Blocks, pairs: Pairs, lists: Shortlists, n_training_rows: int
    ) -> Pairs:
        """The signals of listed labels, with how far they can be relied on."""
        if self.evidence is None or self.evidence.suffices(lists):
            return pairs
        certainty = self._certainty(x, lists)
        certainty = with_name_matches(certainty, lists, self.label_counts)
        rates = self.base_rates(n_training_rows)[lists.labels]
        return replace(pairs, certainty=certainty, base_rates=rates)

    def _certainty(self, x: Blocks, lists: Shortlists) -> NDArray[np.float32]:
        """How far the scores of each row can be trusted, by its features or by its meaning."""
        assert self.evidence is not None
        certainty = self.evidence.certainty(lists)
        unsure = np.flatnonzero(certainty < 1)
        if self.usual_meaning <= 0 or len(unsure) == 0:
            return certainty
        assert self.meaning is not None and x.dense is not None
        own = lists.take(unsure)
        best = best_of_rows(self.meaning.scores(x.dense.take(unsure), own), own.indptr)
        share = np.clip(best / np.float32(self.usual_meaning), 0, 1)
        certainty[unsure] = np.maximum(certainty[unsure], share)
        return certainty

    def base_rates(self, n_training_rows: int) -> NDArray[np.float64]:
        """The share of the training rows that have each label; of one without any, half a row."""
        counts = np.where(self.label_counts > 0, self.label_counts, 0.5)
        return np.minimum(counts / max(1, n_training_rows - self.n_copies), 1.0)

    def scores(
        self,
        x: Blocks,
        lists: Shortlists,
        cancel: CancelFlag | None = None,
        *,
        n_training_rows: int,
    ) -> NDArray[np.float32]:
        """Probabilities of the labels on each row's shortlist."""
        pairs = self.pairs(x, lists, cancel, n_training_rows=n_training_rows)
        return self.blend.probabilities(pairs)


def _of_kind(kind: type[Kind], part: Part | None) -> Kind | None:
    assert part is None or isinstance(part, kind)
    return part
