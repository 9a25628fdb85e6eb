"""A searchable, sortable table of all labels with precision, recall and F1."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._model.thresholds import above_threshold
from .._wording import number, shortened
from ..evaluation import Evaluation
from .examples import NAME_WIDTH
from .html import SEARCHABLE, Markup, element, note, table
from .labels import LabelCounts

MAX_LABELS = 2000


def label_table(evaluation: Evaluation, counts: LabelCounts) -> list[Markup]:
    """The labels of the held-out rows, most frequent first."""
    predicted, right = _sets(evaluation)
    able = np.flatnonzero((counts.rows > 0) | (predicted > 0))
    shown = able[np.lexsort((able, -predicted[able], -counts.rows[able]))[:MAX_LABELS]]
    single = evaluation.model.label_form == "single"
    how = "is the best one" if single else "reaches the model's threshold"
    text = (
        f"A label is predicted for a row if its score {how}. Precision: share of these rows that "
        "have the label. Recall: share of the label's rows for which it is predicted. Recall@5: "
        "share of the label's rows with the label in the top 5. F1: harmonic mean of precision and "
        "recall. All in per cent."
    )
    if len(able) > len(shown):
        text += f" Shown are the {len(shown):,} most frequent of {len(able):,} labels."
    if not len(shown):
        return [note(text), element("p", "No row has a label.")]
    heads = ["label", "rows", "predicted", "precision", "recall", "F1", "recall@5"]
    heads.append("training rows")
    rows = [
        [
            shortened(str(evaluation.model.classes[label]), NAME_WIDTH),
            number(int(counts.rows[label])),
            number(int(predicted[label])),
            _share(right[label], predicted[label]),
            _share(right[label], counts.rows[label]),
            _share(2 * right[label], predicted[label] + counts.rows[label]),
            _share(counts.right[label], counts.rows[label]),
            number(int(evaluation.model.label_counts[label])),
        ]
        for label in shown.tolist()
    ]
    return [note(text), element("div", table(heads, rows), class_=SEARCHABLE)]


def _sets(evaluation: Evaluation) -> tuple[Any, Any]:
    """For each label, the number of rows it is predicted for, and of those that have it."""
    model, truth = evaluation.model, evaluation.truth
    n_labels = truth.shape[1]
    if model.label_form == "single":
        best = evaluation.top[0][:, 0]
        hit = np.asarray(truth[np.arange(evaluation.n_rows), best]).ravel() > 0
        return np.bincount(best, minlength=n_labels), np.bincount(best[hit], minlength=n_labels)
    scores = model.scores(evaluation.x, n_jobs=evaluation.n_jobs)
    decided = above_threshold(scores, model.threshold)
    decided.data = np.ones(decided.nnz, dtype=np.int32)
    both = decided.multiply(truth).tocsr()
    return tuple(np.bincount(m.indices, minlength=n_labels) for m in (decided, both))  # type: ignore[return-value]


def _share(part: Any, whole: Any) -> str:
    return f"{100 * part / whole:.0f}" if whole else "–"
