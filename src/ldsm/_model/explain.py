"""Why a label gets its score: what each stage adds, and the features for and against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._features.blocks import Blocks
from .._matching.shortlists import Shortlists
from .._ranking.blend import BASE, SOURCES, TREES, Pairs
from .._trees.params import Number
from .._trees.row_paths import TreePath, explain_row
from .fitted import FittedModel


@dataclass(frozen=True)
class LabelScore:
    """One label of a row, and where its score comes from.

    Attributes
    ----------
    label : object
        The label as in `classes_`.
    column : int
    score : float
        The score that `predict_topk` returns.
    tree_score : float
        The trees' score; without a second stage, the score itself.
    index_score : float or None
        How strongly the row's features go with the label, by the index from features to labels.
    margin : float or None
        Margin of the label's linear classifier; above 0 it speaks for the label.
    distance : float or None
        Squared distance from the row, scaled to unit length, to the label's centroid.
    shares : dict of str to float
        What each stage adds to the log-odds of the score, which is their sum. "base" is the mean
        over the row's shortlist, or, if that has only this label, what the stages give on a row
        without features; "trees", "linear", "features" (the index), "tail" (the centroids),
        "frequency" (the label's number of training rows), "sub-words" (their index), "name" (of the
        label) and "meaning" (the embeddings) say how far each lifts this label above the base.
        Without a second stage there is only "trees", infinite for a score of 1.
    bias : float or None
        The part of the margin that is the same for every row.
    reasons : list of (int, float)
        Features and what each adds to the margin, strongest first; the bias is the rest.
    name : (str, float) or None
        The name of the label that the row matches best, and how much of it the row has, from 0 to
        1. None if names are not used, or nothing of the name is there.
    certainty : float
        How far the row has enough evidence to rely on the stages, from 0 to 1; the label's
        frequency counts for the rest. At 0, the score is the share of the training rows that have
        the label.
    meaning : float or None
        The score of the row's embedding for the label; None without embeddings.
    """

    label: Any
    column: int
    score: float
    tree_score: float
    index_score: float | None
    margin: float | None
    distance: float | None
    shares: dict[str, float]
    bias: float | None
    reasons: list[tuple[int, float]]
    name: tuple[str, float] | None = None
    certainty: float = 1.0
    meaning: float | None = None


class RowExplainer:
    """Explains the scores of one row. Its shortlist is computed once, for all questions.

    `max_reasons` is the maximum number of features that explain a label.
    """

    def __init__(self, model: FittedModel, row: Blocks) -> None:
        if row.n_rows != 1:
            raise ValueError(f"explain_scores takes exactly one row. Got {row.n_rows}.")
        self.model, self.row = model, row

    def best(self, k: int, max_reasons: int) -> list[LabelScore]:
        """The k best labels; fewer if fewer have a score."""
        Number(1, integer=True).check("k", k)
        _check_reasons(max_reasons)
        return [self._listed(i, max_reasons) for i in self._order[:k]]

    def among(self, columns: Sequence[int], max_reasons: int) -> list[LabelScore]:
        """The given labels that have a score, best first."""
        _check_reasons(max_reasons)
        wanted, labels = set(columns), self._lists.labels
        return [self._listed(i, max_reasons) for i in self._order if labels[i] in wanted]

    def label(self, column: int, max_reasons: int) -> LabelScore:
        """One label. If it is not listed, its score is 0, but features may speak for it."""
        _check_reasons(max_reasons)
        place = self.place(column)
        if place is None:
            return self._unlisted(column, max_reasons)
        return self._listed(self._order[place - 1], max_reasons)

    def place(self, column: int) -> int | None:
        """The place of a label among those with a score, from 1; None if it has none."""
        found = np.flatnonzero(self._lists.labels[self._order] == column)
        return int(found[0]) + 1 if len(found) else None

    # -- computed once ----------------------------------------------------------------------------

    @cached_property
    def _lists(self) -> Shortlists:
        # Without a second stage, every label of the leaves has a score.
        return self.model.shortlists(self.row, least=self.model.n_labels)

    @cached_property
    def _pairs(self) -> Pairs | None:
        """The signals of the candidates, if there are any and a second stage."""
        stage = self.model.second_stage
        if stage is None or len(self._lists.labels) == 0:
            return None
        return stage.pairs(self.row, self._lists, n_training_rows=self.model.n_training_rows)

    @cached_property
    def _scores(self) -> NDArray[np.float32]:
        stage, pairs = self.model.second_stage, self._pairs
        if stage is None or pairs is None:
            return self._lists.tree_scores
        return stage.blend.probabilities(pairs)

    @cached_property
    def _order(self) -> list[int]:
        """Places on the shortlist of the labels that have a score, best first."""
        order: list[int] = np.lexsort((self._lists.labels, -self._scores)).tolist()
        return [i for i in order if self._scores[i] > 0]

    @cached_property
    def _shares(self) -> dict[str, NDArray[np.float64]]:
        """What each stage adds to the log-odds of the candidates' scores."""
        stage, pairs = self.model.second_stage, self._pairs
        if stage is None or pairs is None:
            return {TREES: _log_odds(self._scores)}
        shares = stage.blend.shares(pairs)
        if len(self._lists.labels) > 1:
            return _relative(shares, {name: part.mean() for name, part in shares.items()})
        # A single candidate is compared with itself on a row without leaves and features.
        empty = stage.pairs(self.row.without_features(), self._lists.without_scores())
        return _relative(shares, stage.blend.shares(empty))

    # -- single labels ----------------------------------------------------------------------------

    def _listed(self, i: int, max_reasons: int) -> LabelScore:
        """The label at a place on the shortlist."""
        column, pairs = int(self._lists.labels[i]), self._pairs
        bias, reasons = self._reasons(column, max_reasons)
        certainty = None if pairs is None else _at(pairs.certainty, i)
        return LabelScore(
            label=self._name(column),
            column=column,
            score=float(self._scores[i]),
            tree_score=float(self._lists.tree_scores[i]),
            index_score=None if pairs is None else _at(pairs.index_scores, i),
            margin=None if pairs is None else _at(pairs.margins, i),
            distance=None if pairs is None else _at(pairs.distances, i),
            shares={name: float(values[i]) for name, values in self._shares.items()},
            bias=bias,
            reasons=reasons,
            name=self._name_match(column),
            certainty=1.0 if certainty is None else certainty,
            meaning=None if pairs is None else pairs.value("h", i),
        )

    def _unlisted(self, column: int, max_reasons: int) -> LabelScore:
        bias, every = self._reasons(column, None)
        return LabelScore(
            label=self._name(column),
            column=column,
            score=0.0,
            tree_score=0.0,
            index_score=None,
            margin=None if bias is None else bias + sum(part for _, part in every),
            distance=None,
            shares={},
            bias=bias,
            reasons=every[:max_reasons],
            name=self._name_match(column),
        )

    def _name(self, column: int) -> Any:
        return self.model.classes[column : column + 1].tolist()[0]

    def _name_match(self, column: int) -> tuple[str, float] | None:
        stage = self.model.second_stage
        if stage is None or stage.names is None:
            return None
        found = stage.names.best_match(self.row.read_by("names"), column)
        return None if found is None else (found[0] or str(self._name(column)), found[1])

    def _reasons(
        self, column: int, most: int | None
    ) -> tuple[float | None, list[tuple[int, float]]]:
        """The bias of a label's linear classifier, and its strongest contributions in the row."""
        stage = self.model.second_stage
        if stage is None or stage.ranker is None:
            return None, []
        return stage.ranker.reasons(self.row.read_by("ranker"), column, most)


def explain_paths(model: FittedModel, row: Blocks, max_reasons: int) -> list[TreePath]:
    """The row's path through every tree."""
    return explain_row(
        model.forest,
        row.read_by("trees"),
        max_reasons,
        bias=row.n_features,
    )


def strongest_features(model: FittedModel, column: int, most: int) -> list[int]:
    """The features that speak most for a label in its linear classifier, strongest first."""
    stage = model.second_stage
    if stage is None or stage.ranker is None:
        return []
    features, weights = stage.ranker.vector(column)
    # The bias, last, is no feature.
    able = np.flatnonzero((features < model.layout.width_for("ranker")) & (weights > 0))
    strongest: list[int] = features[able[np.lexsort((able, -weights[able]))[:most]]].tolist()
    return strongest


def _relative(
    shares: Mapping[str, NDArray[np.float64]], reference: Mapping[str, Any]
) -> dict[str, NDArray[np.float64]]:
    """The same sums, with each stage relative to a reference, whose sum is the base.

    The blend's own shares are relative to signals of 0: large numbers that cancel.
    """
    base = np.zeros(len(shares[BASE])) + sum(reference.values())
    with np.errstate(invalid="ignore"):  # a file that was not verified may hold infinite numbers
        rest = {name: shares[name] - reference[name] for name in SOURCES if name in shares}
    return {BASE: base, **rest}


def _at(values: NDArray[Any] | None, i: int) -> float | None:
    return None if values is None else float(values[i])


def _check_reasons(most: Any) -> None:
    Number(0, integer=True).check("max_reasons", most)


def _log_odds(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """Infinite for a score of 1."""
    scores = scores.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(scores) - np.log1p(-np.minimum(scores, 1.0))  # a damaged file may give more
