"""Why a label gets its score: what each stage adds, and the features for and against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.features import FeatureArrays
from .._features.blocks import Blocks
from .._matching.shortlists import Shortlists
from .._ranking.blend import BASE, SOURCES, TREES, Pairs
from .._ranking.label_vectors import LabelVectors
from .._ranking.stage import SecondStage
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
        "frequency" (the label's number of training rows), "sub-words" (their index) and "name"
        (of the label) say how far each lifts this label above the base. Without a second stage
        there is only "trees", infinite for a score of 1.
    bias : float or None
        The part of the margin that is the same for every row.
    reasons : list of (int, float)
        Features and what each adds to the margin, strongest first; the bias is the rest.
    name : (str, float) or None
        The name of the label that the row matches best, and how much of it the row has, from 0 to
        1. None if names are not used, or nothing of the name is there.
    certainty : float
        How far the row tells enough to rely on the stages, from 0 to 1; the label's frequency
        counts for the rest. At 0 nothing is known of the row: the score is the share of the
        training rows that have the label.
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


def explain_scores(
    model: FittedModel,
    row: Blocks,
    k: int,
    max_reasons: int,
    columns: Sequence[int] | None = None,
) -> list[LabelScore]:
    """Explain the k best labels of one row, or those of `columns` that are candidates.

    Labels without a score are left out.
    """
    if row.n_rows != 1:
        raise ValueError(f"explain_scores takes exactly one row. Got {row.n_rows}.")
    Number(1, integer=True).check("k", k)
    Number(0, integer=True).check("max_reasons", max_reasons)
    stage = model.second_stage
    lists, scores = model.scored_shortlists(row, None, None, least=k)
    listed, tree_scores = lists.labels, lists.tree_scores
    order = np.lexsort((listed, -scores)).tolist()
    order = order[:k] if columns is None else [i for i in order if listed[i] in set(columns)]
    names = model.classes[listed].tolist()
    if stage is None or len(listed) == 0:
        return [
            LabelScore(
                names[i], int(listed[i]), score, score, None, None, None, {TREES: _logit(score)},
                None, [],
            )
            for i, score in ((i, float(scores[i])) for i in order)
            if score > 0
        ]  # fmt: skip
    pairs = stage.pairs(row, lists, n_training_rows=model.n_training_rows)
    ranked = row.read_by("ranker")
    shares = stage.blend.shares(pairs)
    if len(listed) > 1:
        shares = _relative(shares, {name: part.mean() for name, part in shares.items()})
    else:  # nothing to compare it with but itself, on a row without features
        shares = _relative(shares, stage.blend.shares(_on_an_empty_row(stage, lists, row)))
    explained = []
    for i in order:
        bias, reasons = _reasons(stage.ranker, int(listed[i]), ranked, max_reasons)
        explained.append(
            LabelScore(
                names[i],
                int(listed[i]),
                float(scores[i]),
                float(tree_scores[i]),
                None if pairs.index_scores is None else float(pairs.index_scores[i]),
                None if pairs.margins is None else float(pairs.margins[i]),
                None if pairs.distances is None else float(pairs.distances[i]),
                {name: float(values[i]) for name, values in shares.items()},
                bias,
                reasons,
                _name_match(stage, row, int(listed[i]), names[i]),
                1.0 if pairs.certainty is None else float(pairs.certainty[i]),
            )
        )
    return [label for label in explained if label.score > 0]


def explain_paths(model: FittedModel, row: Blocks, max_reasons: int) -> list[TreePath]:
    """The row's way through every tree."""
    return explain_row(
        model.forest,
        row.read_by("trees"),
        max_reasons,
        by_rows=model.by_rows,
        bias=row.n_features,
    )


def unlisted(model: FittedModel, row: Blocks, column: int, max_reasons: int) -> LabelScore:
    """A label that is no candidate of the row: its score is 0, but features may speak for it."""
    stage = model.second_stage
    bias, reasons, margin, name = None, [], None, None
    if stage is not None:
        ranked = row.read_by("ranker")
        every = _reasons(stage.ranker, column, ranked, ranked.indices.size)
        bias, reasons = every[0], every[1][:max_reasons]
        if bias is not None:
            margin = bias + sum(part for _, part in every[1])
        name = _name_match(stage, row, column, model.classes[column])
    return LabelScore(
        model.classes[column], column, 0.0, 0.0, None, margin, None, {}, bias, reasons, name
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


def _name_match(
    stage: SecondStage, row: Blocks, column: int, label: Any
) -> tuple[str, float] | None:
    if stage.names is None:
        return None
    found = stage.names.best_match(row.read_by("names"), column)
    return None if found is None else (found[0] or str(label), found[1])


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


def _on_an_empty_row(stage: SecondStage, lists: Shortlists, row: Blocks) -> Pairs:
    """The signals of the same labels on a row that no leaf and no feature says anything about."""
    return stage.pairs(row.without_features(), lists.without_scores())


def _reasons(
    ranker: LabelVectors | None,
    column: int,
    row: FeatureArrays,
    max_reasons: int,
) -> tuple[float | None, list[tuple[int, float]]]:
    """The bias of a label's linear classifier, and its strongest contributions in the row."""
    if ranker is None:
        return None, []
    features, stored = ranker.vector(column)
    weights = np.zeros(row.n_features + 1)
    weights[features] = stored
    values = row.values.astype(np.float64)
    length = np.sqrt(np.sum(values**2))
    products = weights[row.indices] * values / (length if length > 0 else 1.0)
    strongest = np.lexsort((row.indices, -np.abs(products)))[:max_reasons]
    reasons = [(int(row.indices[i]), float(products[i])) for i in strongest if products[i]]
    return float(weights[row.n_features]), reasons


def _logit(score: float) -> float:
    with np.errstate(divide="ignore"):
        return float(np.log(score) - np.log1p(-min(score, 1.0)))  # a damaged file may give more
