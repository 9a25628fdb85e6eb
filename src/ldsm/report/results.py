"""What a reader wants to know first: how good the model is, and whether its threshold fits."""

from __future__ import annotations

import math

from .._model.sets.thresholds import AVERAGES, threshold_words
from .._wording import counted, number, percent
from ..evaluation import Evaluation
from ..evaluation.results import KS, SHORT_NAMES, Scores
from .figures import threshold_figure
from .html import Markup, element, folded, joined, note, table

_METRICS = {**SHORT_NAMES, "recall": "recall", "coverage": "coverage", "r_precision": "RP"}
_SETS = {"model": "model's", "0.5": "at 0.5", "best": "best here"}


def head(title: str, evaluation: Evaluation, scores: Scores, *, reads_texts: bool) -> Markup:
    """The title, one sentence about model and rows, and the most important figures."""
    model = evaluation.model
    lead = (
        f"A model that reads {'texts' if reads_texts else 'features'} and predicts "
        f"{'one label' if model.label_form == 'single' else 'any number of labels'} per row, out "
        f"of {model.n_labels:,}; evaluated on {counted(evaluation.n_rows, 'row')}, "
        f"{evaluation.n_labelled:,} of them with labels."
    )
    tiles = [
        _tile("P@1", scores.ranking["precision@1"], "the best label of a row is right"),
        _tile("Recall@5", scores.ranking["recall@5"], "of a row's labels are in the top 5"),
    ]
    if scores.sets:
        sets = scores.sets["model"]
        both = f"precision {percent(sets.precision)}, recall {percent(sets.recall)}"
        tiles.append(_tile("F1 over all pairs", sets.f1["micro"], both))
        at = threshold_words(sets.threshold, 2)
        tiles.append(_tile("F1 per row", sets.f1["samples"], f"at the model's threshold, {at}"))
    tiles_list = element("dl", joined(tiles), class_="tiles")
    return element("header", element("h1", title), element("p", lead, class_="lead"), tiles_list)


def _tile(name: str, value: float, text: str) -> Markup:
    shown = "–" if math.isnan(value) else f"{percent(value)} %"
    return element("div", element("dt", name), element("dd", element("b", shown), text))


def results(evaluation: Evaluation, scores: Scores) -> Markup:
    """The tables of all metrics, in per cent."""
    rows = []
    for name, short in _METRICS.items():
        if f"{name}@1" not in scores.ranking:
            continue
        over = evaluation.n_rows if name == "precision" else evaluation.n_labelled
        rows.append([short, *(percent(scores.ranking[f"{name}@{k}"]) for k in KS), number(over)])
        if name == "precision":
            best = [percent(scores.best_precision[k]) for k in KS]
            rows.append(["best possible P", *best, number(over)])
    tables = [element("div", table(["%", *(f"@{k}" for k in KS), "rows"], rows))]
    if scores.sets:
        tables.append(element("div", _sets(scores)))
    parts = [element("div", *tables, class_="grid"), _meaning(scores)]
    if evaluation.unseen.labels or evaluation.unseen.features:
        parts.append(note(f"In the data: {evaluation.unseen}."))
    return joined(parts)


def _sets(scores: Scores) -> Markup:
    """Measures as rows and thresholds as columns, which fits a narrow window."""
    shown = scores.sets
    rows = [["threshold", *(threshold_words(s.threshold) for s in shown.values())]]
    rows.append(["precision", *(percent(s.precision) for s in shown.values())])
    rows.append(["recall", *(percent(s.recall) for s in shown.values())])
    rows += [[f"F1, {a}", *(percent(s.f1[a]) for s in shown.values())] for a in AVERAGES]
    if scores.unseen.dropped_per_row.any():
        rows += [
            [f"F1, {a}, all true labels", *(percent(s.f1_all[a]) for s in shown.values())]
            for a in AVERAGES
        ]
    return table(["sets by threshold, %", *(_SETS[name] for name in shown)], rows)


def _meaning(scores: Scores) -> Markup:
    k = max(KS)
    notes = [
        "At 1, 3 and 5 predictions per row. P: share of correct predictions; at best "
        f"{percent(scores.best_precision[k])} at {k}, because rows have "
        f"{scores.labels_per_row:.1f} labels on average. nDCG: as P, but early hits count more, "
        "relative to the best possible value. PSP and PSnDCG: hits on rare labels count more, with "
        "propensities from the model's label counts (A = 0.55, B = 1.5), relative to the best "
        "possible value. Recall: share of a row's labels that are found. Coverage: share of labels "
        "that are found for at least one row. RP: hits relative to the maximum possible for the "
        "row. Rows without labels count as misses in P and are left out of the other metrics."
    ]
    if scores.sets:
        notes.append(
            "A row's set holds the labels that reach the threshold. Precision and recall are over "
            "all (row, label) pairs. F1 is computed over all pairs (micro), or as the mean over "
            "labels (macro) or rows (samples). Over all true labels, those unknown to the model "
            "count as misses."
        )
    return folded("What the metrics mean", *map(note, notes))


def threshold(evaluation: Evaluation, scores: Scores) -> list[Markup]:
    """F1 against the threshold, and what another threshold would bring."""
    now, best = scores.sets["model"], scores.sets["best"]
    gain = 100 * (best.f1["samples"] - now.f1["samples"])
    its, common = threshold_words(now.threshold), threshold_words(best.threshold)
    if isinstance(now.threshold, float):
        text = f"The threshold of the model is {its}; the best one on these rows is {common}. "
    else:
        how = "has a threshold for each label"
        if now.threshold is not None:
            how = "chooses the set with the highest expected F1 for each row"
        text = f"The model {how}. One threshold for all labels, the best on these rows, is "
        text += f"{common}. "
    if gain > 0:
        text += f"It would raise F1 per row by {gain:.1f} points, to {percent(best.f1['samples'])}."
    else:
        text += "It would not raise F1 per row."
    advice = [
        "A higher threshold predicts fewer labels, and more of them are right. A lower one finds "
        "more of the true labels. The best threshold was read off these very rows, so it flatters "
        "a little. To use another one, pass ",
        element("code", "--threshold"),
        " to predict and evaluate, or assign ",
        element("code", "threshold_"),
        " in Python.",
    ]
    words = element("div", element("p", text), element("p", *advice, class_="note"))
    return [element("div", threshold_figure(evaluation), words, class_="grid")]
