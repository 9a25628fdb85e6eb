"""The report page: facts, metrics, figures, labels and examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._model.facts import model_facts, shown_history, shown_params
from .._storage.paths import PathLike
from .._storage.text_files import writing
from .._version import __version__
from .._wording import bare, duration, number, percent, shortened, size
from ..evaluation import Evaluation
from ..evaluation.alignment import Estimator, classifier_of
from ..evaluation.results import KS, SHORT_NAMES, Scores
from ..plotting import import_matplotlib
from ..text.tagger import TextTagger
from .examples import NAME_WIDTH, examples
from .figures import figures
from .html import Markup, element, facts, joined, note, page, table
from .label_table import label_table
from .labels import LabelCounts, confusions, count_labels, mean_by_label, prediction_work

MAX_CONFUSIONS = 15
_METRICS = {**SHORT_NAMES, "recall": "recall", "coverage": "coverage", "r_precision": "RP"}
MAX_LABELS = 10


@dataclass(frozen=True)
class Report:
    """A finished report.

    Attributes
    ----------
    html : str
        The page: one self-contained document. Its only script searches and sorts a table.
    metrics : dict of str to float
        All metrics, with the names of `ldsm.evaluation.Scores.as_dict`.
    """

    html: str
    metrics: dict[str, float]

    def save(self, path: PathLike) -> None:
        """Write the page to a file, completely or not at all.

        Parameters
        ----------
        path : path
            Usually with the suffix ``.html``.
        """
        with writing(path) as file:
            file.write(self.html.encode("utf-8", "backslashreplace"))


def make_report(
    model: Estimator,
    X: Any,
    y: Any = None,
    *,
    model_name: str = "the model",
    data_name: str = "held-out rows",
    feature_names: Sequence[str] | None = None,
) -> Report:
    """Evaluate a model on labelled rows not used in training, and report on one HTML page.

    The same model and rows give the same page. Needs matplotlib: ``pip install "ldsm[plot]"``.

    Parameters
    ----------
    model : LdSMClassifier or TextTagger
        Fitted.
    X : matrix, texts or Dataset
        Rows or texts; a Dataset includes its labels. See `ldsm.evaluation.Evaluation`.
    y : labels, optional
        In any form that `fit` accepts.
    model_name, data_name : str
        Names for the page.
    feature_names : sequence of str, optional
        For models that read features and have no names for them.

    Examples
    --------
    >>> from ldsm import LdSMClassifier, datasets
    >>> train = datasets.make_xmc(200, 40, 10, seed=0)
    >>> test = datasets.make_xmc(50, 40, 10, seed=0, part="test")
    >>> report = make_report(LdSMClassifier(3, random_state=0).fit(train), test)
    >>> report.save("report.html")
    >>> report.html[:15], sorted(report.metrics)[:2]
    ('<!DOCTYPE html>', ['best_precision@1', 'best_precision@3'])
    """
    import_matplotlib()  # fail early if it is missing
    evaluation = Evaluation(model, X, y, feature_names=feature_names)
    scores = evaluation.scores(propensities=evaluation.model.propensities())
    counts = count_labels(evaluation)
    title = f"{model_name} on {data_name}"
    params = classifier_of(model).get_params(deep=False)
    parts = [
        _head(title, evaluation, model.fingerprint_, reads_texts=isinstance(model, TextTagger)),
        _section("Metrics", _metrics(evaluation, scores)),
        _section(
            "Figures", element("div", joined(figures(evaluation, model), "\n"), class_="figures")
        ),
        _section("Confused labels", *_confused(evaluation, counts)),
        _section("Labels by recall", *_found(evaluation, counts)),
        _section("All labels", *label_table(evaluation, counts)),
        _section("Slowest labels", *_slow(evaluation, counts)),
        _section("Examples", _about_scores(evaluation), *examples(evaluation)),
        _section("Parameters", facts(shown_params(params, evaluation.model, bare))),
    ]
    return Report(page(title, *parts), scores.as_dict())


def _about_scores(evaluation: Evaluation) -> Markup:
    kind = "features" if evaluation.texts is None else "words"
    stage = evaluation.model.second_stage
    text = "The score of a label is its mean share in the leaves that the row reaches."
    if stage is not None:
        text = (
            "Next to the score: the contribution of each stage to its log-odds, relative to the "
            "mean over the row's shortlist (base)."
        )
    if stage is not None and stage.ranker is not None:
        text += (
            f" The {kind} shown contribute most to the margin of the label's linear classifier; "
            "positive values are evidence for the label, negative values against it."
        )
    return note(text)


def _section(title: str, *parts: Markup) -> Markup:
    return element("section", element("h2", title), *parts)


def _head(title: str, evaluation: Evaluation, fingerprint: str, *, reads_texts: bool) -> Markup:
    model = evaluation.model
    known, stage = model_facts(model), model.second_stage
    finished = model.training.get("finished", "-")
    lead = (
        f"A model that reads {'texts' if reads_texts else 'features'} and predicts "
        f"{'one label' if model.label_form == 'single' else 'any number of labels'} per row, out "
        f"of {known['labels']:,}; evaluated on {evaluation.n_rows:,} "
        f"row{'s' * (evaluation.n_rows != 1)}, {evaluation.n_labelled:,} of them with labels."
    )
    shown = {
        "rows here": number(evaluation.n_rows),
        "labels here": number(int(np.count_nonzero(np.diff(evaluation.truth.tocsc().indptr)))),
        "training rows": number(known["training_rows"]),
        "words" if reads_texts else "features": number(known["features"]),
        "labels": number(known["labels"]),
        "labels with training rows": number(known["labels_with_rows"]),
        "trees": number(known["trees"]),
        "children per node": number(model.forest.arity),
        "nodes": number(known["nodes"]),
        "deepest leaf": number(known["depth"]),
        "mean depth of a row's leaf": f"{known['mean_leaf_depth']:.1f}",
        f"log{chr(ord('₀') + model.forest.arity)} of the labels": f"{known['log_M_K']:.1f}",
        "leaves per row and tree": f"{known['leaves_per_row']:.2f}",
        "second stage": "none" if stage is None else stage.blend.kind,
        "memory": size(known["memory"]),
        "trained in": duration(model.training["seconds"]),
        "trained at": finished.replace("T", " ").replace("+00:00", " UTC"),
        **{f"{when} UTC": what for when, what in shown_history(model).items()},
        "fingerprint": fingerprint[:16] + "…",
        "ldsm": __version__,
    }
    return element("header", element("h1", title), element("p", lead, class_="lead"), facts(shown))


def _metrics(evaluation: Evaluation, scores: Scores) -> Markup:
    rows = []
    for name, short in _METRICS.items():
        if f"{name}@1" not in scores.ranking:
            continue
        over = evaluation.n_rows if name == "precision" else evaluation.n_labelled
        rows.append([short, *(percent(scores.ranking[f"{name}@{k}"]) for k in KS), number(over)])
        if name == "precision":
            best = [percent(scores.best_precision[k]) for k in KS]
            rows.append(["best possible P", *best, number(over)])
    tables = [table(["%", *(f"@{k}" for k in KS), "rows"], rows)]
    if scores.f1:
        heads = ["sets of labels, %", *scores.f1]
        tables.append(table(heads, [["F1", *map(percent, scores.f1.values())]]))
    k = max(KS)
    notes = [
        "At 1, 3 and 5 predictions per row. P: share of correct predictions; at best "
        f"{percent(scores.best_precision[k])} at {k}, because rows have "
        f"{scores.labels_per_row:.1f} labels on average. nDCG: as P, but early hits count more, "
        "relative to the best possible value. PSP and PSnDCG: hits on rare labels count more, with "
        "propensities from the model's label counts (A = 0.55, B = 1.5), relative to the best "
        "possible value. Recall: share of a row's labels that are found. Coverage: share of labels "
        "that are found for at least one row. RP: hits relative to the maximum possible for the "
        "row. Rows without labels count as misses in P and are left out of the other metrics.",
    ]
    if scores.f1:
        notes.append(
            "F1 is computed from the sets of labels that reach the model's threshold: over all "
            "(row, label) pairs (micro), or as the mean over labels (macro) or rows (samples)."
        )
    if evaluation.unseen.labels or evaluation.unseen.features:
        notes.append(f"In the data: {evaluation.unseen}.")
    return joined([*tables, *map(note, notes)])


def _confused(evaluation: Evaluation, counts: LabelCounts) -> list[Markup]:
    text = note(
        "A row with n true labels is judged by its n best predictions, at most five. Each missed "
        "true label counts as confused with each wrong label among them, once per row."
    )
    found = confusions(evaluation, MAX_CONFUSIONS)
    if not found:
        return [text, element("p", "No labels were confused.")]
    heads = ["missed", "predicted instead", "rows", "of the missed label's rows", "%"]
    rows = [
        [
            _name(evaluation, one.true),
            _name(evaluation, one.predicted),
            number(one.rows),
            number(int(counts.rows[one.true])),
            f"{100 * one.rows / counts.rows[one.true]:.0f}",
        ]
        for one in found
    ]
    return [text, table(heads, rows, text=["predicted instead"])]


def _found(evaluation: Evaluation, counts: LabelCounts) -> list[Markup]:
    enough = counts.enough(2 * MAX_LABELS)
    able = np.flatnonzero(counts.rows >= enough)
    text = note(
        f"Recall@5: share of a label's rows with the label in the top 5. "
        f"Only labels with at least {enough} rows: {len(able):,} of {len(counts.rows):,}. "
        '"Predicted": number of rows with the label in the top 5. Ties are ordered by number of '
        "rows."
    )
    if not len(able):
        return [text, element("p", "No row has a label.")]
    recall, rows = counts.recall[able], counts.rows[able]
    best = able[np.lexsort((able, -rows, -recall))[:MAX_LABELS]]
    worst = able[np.lexsort((able, -rows, recall))]
    worst = worst[~np.isin(worst, best)][:MAX_LABELS]
    sides = []
    for title, labels in (("Lowest recall", worst), ("Highest recall", best)):
        if len(labels):
            heads = ["label", "recall@5, %", "rows", "predicted", "training rows"]
            cells = _label_rows(
                evaluation,
                labels,
                [
                    [f"{100 * value:.0f}" for value in counts.recall[labels]],
                    counts.rows[labels].tolist(),
                    counts.predicted[labels].tolist(),
                    evaluation.model.label_counts[labels].tolist(),
                ],
            )
            sides.append(element("div", element("h3", title), table(heads, cells)))
    return [text, element("div", *sides, class_="side")]


def _slow(evaluation: Evaluation, counts: LabelCounts) -> list[Markup]:
    work = prediction_work(evaluation.model.forest, evaluation.x.read_by("trees"))
    enough = counts.enough(MAX_LABELS)
    n_trees = evaluation.model.forest.n_trees
    text = note(
        "The work of predicting a row, over all trees: splits evaluated, with one linear regressor "
        f"per child; leaves reached, {n_trees:,} if the row takes one path in every tree; and the "
        "mean depth of these leaves. The table shows means over the rows of a label, for the "
        f"labels with the most splits among those with at least {enough} rows. The mean over all "
        f"rows is {work.splits.mean():.1f} splits and {work.leaves.mean():.1f} leaves "
        f"at a mean depth of {work.depth.mean():.1f}."
    )
    able = np.flatnonzero(counts.rows >= enough)
    if not len(able):
        return [text, element("p", "No row has a label.")]
    splits, leaves, depth = (mean_by_label(values, evaluation) for values in work)
    slowest = able[np.lexsort((able, -splits[able]))[:MAX_LABELS]]
    cells = _label_rows(
        evaluation,
        slowest,
        [
            *([f"{value:.1f}" for value in values[slowest]] for values in (splits, leaves, depth)),
            counts.rows[slowest].tolist(),
        ],
    )
    return [text, table(["label", "splits", "leaves", "mean depth", "rows"], cells)]


def _label_rows(
    evaluation: Evaluation, labels: NDArray[np.int64], columns: Sequence[Sequence[Any]]
) -> list[list[str]]:
    return [
        [_name(evaluation, label), *(number(value) for value in values)]
        for label, *values in zip(labels.tolist(), *columns, strict=True)
    ]


def _name(evaluation: Evaluation, label: int) -> str:
    return shortened(str(evaluation.model.classes[label]), NAME_WIDTH)
