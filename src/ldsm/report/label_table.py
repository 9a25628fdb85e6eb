"""Tables of labels: those with the most mistakes, and all of them, searchable."""

from __future__ import annotations

import numpy as np

from .._wording import number, shortened
from ..evaluation import Evaluation
from .html import SEARCHABLE, Markup, Share, element, folded, note, table
from .labels import Confused, LabelCounts, Sets, taken_for

NAME_WIDTH = 60  # characters of a label
MAX_LABELS = 2000
MAX_COSTLY = 20
_CONFUSED = 3  # labels to show


def label_name(evaluation: Evaluation, label: int) -> str:
    """The name of a label, shortened."""
    return shortened(str(evaluation.model.classes[label]), NAME_WIDTH)


def costly_labels(evaluation: Evaluation, sets: Sets, counts: LabelCounts) -> list[Markup]:
    """The labels with the most mistakes, and what they are confused with."""
    mistakes = counts.mistakes
    able = np.flatnonzero(mistakes)
    chosen = able[np.lexsort((able, -mistakes[able]))[:MAX_COSTLY]]
    if not len(chosen):
        return [element("p", "There are no mistakes.")]
    share = mistakes[chosen].sum() / mistakes.sum()
    text = (
        f"These {len(chosen):,} of {len(counts.rows):,} labels make {100 * share:.0f} % of all "
        "mistakes. If two labels stand for each other in many rows, check whether people keep "
        "them apart in the training data."
    )
    instead = taken_for(chosen, sets.missed, sets.wrong, _CONFUSED)
    for_others = taken_for(chosen, sets.wrong, sets.missed, _CONFUSED)
    heads = ["label", "mistakes", "found", "right", "predicted where it is missed"]
    heads += ["true where it is wrong", "training rows"]
    rows = [
        [
            label_name(evaluation, label),
            number(int(mistakes[label])),
            Share(int(counts.right[label]), int(counts.rows[label])),
            Share(int(counts.right[label]), int(counts.predicted[label])),
            _listed(evaluation, missed),
            _listed(evaluation, wrong),
            number(int(evaluation.model.label_counts[label])),
        ]
        for label, missed, wrong in zip(chosen.tolist(), instead, for_others, strict=True)
    ]
    shown = table(heads, rows, text=heads[2:6], cards=True)
    return [element("p", text), element("div", shown, class_="wide"), _meaning(evaluation)]


def label_table(evaluation: Evaluation, counts: LabelCounts) -> list[Markup]:
    """The labels of the held-out rows, most frequent first."""
    able = np.flatnonzero((counts.rows > 0) | (counts.predicted > 0))
    shown = able[np.lexsort((able, -counts.predicted[able], -counts.rows[able]))[:MAX_LABELS]]
    if not len(shown):
        return [element("p", "No row has a label.")]
    text = "Click on a heading to sort. F1 in per cent."
    if len(able) > len(shown):
        text += f" Shown are the {len(shown):,} most frequent of {len(able):,} labels."
    heads = ["label", "rows", "found", "right", "F1", "in the top 5", "training rows"]
    rows = [
        [
            label_name(evaluation, label),
            number(int(counts.rows[label])),
            Share(int(counts.right[label]), int(counts.rows[label])),
            Share(int(counts.right[label]), int(counts.predicted[label])),
            f"{200 * counts.right[label] / (counts.predicted[label] + counts.rows[label]):.0f}",
            Share(int(counts.in_top[label]), int(counts.rows[label])),
            number(int(evaluation.model.label_counts[label])),
        ]
        for label in shown.tolist()
    ]
    cells = table(heads, rows, text=["found", "right", "in the top 5"])
    return [note(text), element("div", cells, class_=SEARCHABLE), _meaning(evaluation)]


def _meaning(evaluation: Evaluation) -> Markup:
    single = evaluation.model.label_form == "single"
    how = "is the best one" if single else "reaches the model's threshold"
    return folded(
        "What the columns mean",
        note(
            f"A label is predicted for a row if its score {how}. Found: for how many of the "
            "label's rows it is predicted (recall). Right: how many of the rows for which it is "
            "predicted have it (precision). F1: harmonic mean of both. In the top 5: in how many "
            "of its rows it is among the five best labels. Mistakes: rows for which it is missed "
            "or wrongly predicted. The columns of other labels count the rows where one label is "
            "missed and the other one is predicted wrongly."
        ),
    )


def _listed(evaluation: Evaluation, found: list[Confused]) -> str:
    return ", ".join(f"{label_name(evaluation, one.label)} ({one.rows:,})" for one in found) or "–"
