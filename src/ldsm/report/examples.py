"""Explain a few held-out rows, chosen by the model's confidence and correctness."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._wording import counted, shortened
from ..evaluation import Evaluation
from ..text.explanations import TextExplainer, TextExplanation, Weighted
from .html import Markup, element, joined, note, table
from .label_table import NAME_WIDTH

MAX_WORDS = 6
_CHARACTERS = 420  # of a document to show


def examples(evaluation: Evaluation) -> Markup:
    """For each example, a heading, the row, its labels and the explanation."""
    return joined([_about_words(evaluation), element("div", *_articles(evaluation), class_="grid")])


def _about_words(evaluation: Evaluation) -> Markup:
    stage = evaluation.model.second_stage
    if stage is None or stage.ranker is None:
        return Markup()
    kind = "Features" if evaluation.texts is None else "Words"
    return note(
        f"{kind} with a positive number are evidence for the label, those with a negative number "
        "against it."
    )


def _articles(evaluation: Evaluation) -> Iterator[Markup]:
    k = evaluation.top[0].shape[1]
    for title, row in _chosen(evaluation).items():
        x = evaluation.x.rows(row, row + 1)
        explainer = TextExplainer(evaluation.model, x, evaluation.feature_names)
        explanation = explainer.explanation(k, max_words=MAX_WORDS, max_tags=1)
        yield element(
            "article",
            element("h3", f"{title}: row {row:,}"),
            _content(evaluation, row),
            _labels(evaluation, row, explanation),
        )


def _chosen(evaluation: Evaluation) -> dict[str, int]:
    """Rows by kind of example; ties go to the first row."""
    columns, scores = evaluation.top
    best = scores[:, 0].astype(np.float64)
    truth = evaluation.truth
    right = np.asarray(truth[np.arange(evaluation.n_rows), columns[:, 0]]).ravel() > 0
    labelled = np.diff(truth.indptr) > 0
    order = {
        "Most confident and right": np.where(right, -best, np.inf),
        "Most confident and wrong": np.where(labelled & ~right, -best, np.inf),
        "A typical score": np.abs(best - np.median(best)),
        "Least confident": best,
    }
    chosen: dict[str, int] = {}
    for title, key in order.items():
        key[list(chosen.values())] = np.inf
        row = int(np.argmin(key))
        if key[row] < np.inf:
            chosen[title] = row
    return chosen


def _content(evaluation: Evaluation, row: int) -> Markup:
    if evaluation.texts is not None:
        return element("blockquote", shortened(evaluation.texts[row], _CHARACTERS) or "(empty)")
    return note(f"{counted(evaluation.x.rows(row, row + 1).n_values, 'non-zero feature')}.")


def _labels(evaluation: Evaluation, row: int, explanation: TextExplanation) -> Markup:
    truth = evaluation.truth
    true = evaluation.model.classes[
        truth.indices[truth.indptr[row] : truth.indptr[row + 1]]
    ].tolist()
    linear = bool(explanation.scores) and explanation.scores[0].bias is not None
    kind = "features" if evaluation.texts is None else "words"
    heads = ["label", "true", "score", *([f"{kind} for and against it"] if linear else [])]
    rows = []
    for s in explanation.scores:
        cells: list[Any] = [
            shortened(str(s.tag), NAME_WIDTH),
            _yes_or_no(s.tag in true),
            f"{s.score:.3f}",
        ]
        rows.append([*cells, _listed(s.words)] if linear else cells)
    parts = [table(heads, rows, ["true", heads[-1]] if linear else ["true"], cards=True)]
    predicted = {s.tag for s in explanation.scores}
    missed = [shortened(str(label), NAME_WIDTH) for label in true if label not in predicted]
    if missed:
        parts.append(note(f"Other true labels: {', '.join(missed)}."))
    elif not true:
        parts.append(note("The row has no label."))
    if not linear:
        words = _listed(explanation.words) or "none"
        parts.append(note(f"The {kind} with the most influence in the trees: {words}."))
    return joined(parts)


def _yes_or_no(value: bool) -> Markup:
    return element("span", "yes" if value else "no", class_="good" if value else "bad")


def _listed(words: Weighted) -> str:
    return ", ".join(f"{shortened(word, 40)} {weight:+.2f}" for word, weight in words)
