"""Explain a few held-out rows, chosen by the model's confidence and correctness."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._wording import shortened
from ..evaluation import Evaluation
from ..text.explanations import TextExplainer, TextExplanation, Weighted
from .html import Markup, element, joined, note, table

MAX_WORDS = 6
NAME_WIDTH = 60  # characters of a label
_CHARACTERS = 420  # of a document to show


def examples(evaluation: Evaluation) -> Iterator[Markup]:
    """For each example, a heading, the row, its labels and the explanation."""
    k = evaluation.top[0].shape[1]
    for title, row in _chosen(evaluation).items():
        x = evaluation.x.rows(row, row + 1)
        explainer = TextExplainer(evaluation.model, x, evaluation.feature_names)
        explanation = explainer.explanation(k, max_words=MAX_WORDS, max_tags=1)
        yield element("h3", f"{title}: row {row:,}")
        yield _content(evaluation, row)
        yield _labels(evaluation, row, explanation)
        yield _trees(explanation)


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
    n = evaluation.x.rows(row, row + 1).n_values
    return note(f"{n:,} non-zero feature{'s' * (n != 1)}.")


def _labels(evaluation: Evaluation, row: int, explanation: TextExplanation) -> Markup:
    truth = evaluation.truth
    true = evaluation.model.classes[
        truth.indices[truth.indptr[row] : truth.indptr[row + 1]]
    ].tolist()
    kind = "features" if evaluation.texts is None else "words"
    stages = list(explanation.scores[0].shares) if explanation.scores else []
    linear = bool(explanation.scores) and explanation.scores[0].bias is not None
    heads = ["label", "true", "score"]
    heads += stages if len(stages) > 1 else []
    heads += [f"{kind} for and against it"] if linear else []
    rows = []
    for s in explanation.scores:
        cells: list[Any] = [
            shortened(str(s.tag), NAME_WIDTH),
            _yes_or_no(s.tag in true),
            f"{s.score:.3f}",
        ]
        cells += [f"{s.shares[name]:+.2f}" for name in stages] if len(stages) > 1 else []
        rows.append([*cells, _listed(s.words)] if linear else cells)
    predicted = {s.tag for s in explanation.scores}
    missed = [shortened(str(label), NAME_WIDTH) for label in true if label not in predicted]
    if missed:
        text = f"Missed true labels: {', '.join(missed)}."
    else:
        text = "All true labels are predicted." if true else "The row has no label."
    text_columns = ["true", heads[-1]] if linear else ["true"]
    shown = table(heads, rows, text_columns, cards=True)
    return joined([shown, note(text)])


def _trees(explanation: TextExplanation) -> Markup:
    leaves = [leaf for path in explanation.paths for leaf in path.leaves]
    depth = np.mean([leaf.depth for leaf in leaves])
    return note(
        f"Trees: {len(leaves)} leaves in {len(explanation.paths)} trees, at a mean depth of "
        f"{depth:.1f}. Strongest influence on the path: {_listed(explanation.words) or 'none'}."
    )


def _yes_or_no(value: bool) -> Markup:
    return element("span", "yes" if value else "no", class_="good" if value else "bad")


def _listed(words: Weighted) -> str:
    return ", ".join(f"{shortened(word, 40)} {weight:+.2f}" for word, weight in words)
