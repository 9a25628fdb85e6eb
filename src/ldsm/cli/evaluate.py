"""``ldsm evaluate``: the usual metrics on labelled data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .._model.sets.thresholds import AVERAGES, threshold_words
from .._wording import percent
from ..evaluation import Evaluation, Scores
from ..evaluation.results import KS, SHORT_NAMES
from .command import wrong_use
from .model import open_model
from .options.cluster import DaskOption, on_cluster
from .options.model import EncoderOption, JobsOption, ModelArgument, TailOption
from .options.reader import Reader
from .screen import Screen

# Rows of the table: names in `metrics.ranking_report` and names for users.
NAMES = {
    **SHORT_NAMES,
    "recall": "recall",
    "recall_all": "recall, all labels",
    "coverage": "coverage",
    "r_precision": "RP",
}


def evaluate(
    screen: Screen,
    reader: Reader,
    model: ModelArgument,
    data: Annotated[Path, typer.Argument(metavar="DATA", exists=True, help="Labelled data.")],
    k: Annotated[
        list[int] | None,
        typer.Option("-k", min=1, help="Number of predictions per row; may be repeated."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Evaluate the sets of labels with at least this score."),
    ] = None,
    propensity_dataset: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Use the A and B of this data set, e.g. `amazon-670k`."),
    ] = None,
    a: Annotated[float | None, typer.Option("--a", help="A of the propensities.")] = None,
    b: Annotated[float | None, typer.Option("--b", help="B of the propensities.")] = None,
    tail: TailOption = 0.0,
    encoder: EncoderOption = None,
    n_jobs: JobsOption = None,
    dask: DaskOption = None,
) -> None:
    """Evaluate a model on labelled data: P, nDCG, PSP, PSnDCG, recall, coverage, RP at k, and F1.

    Propensities are computed from the label counts stored in the model, with A = 0.55 and B = 1.5
    by default. Labels without training rows are reported; "recall, all labels" and F1 "over all
    true labels" count them as misses. "Best possible P" is the precision of a perfect model; it is
    below 100 if rows have fewer labels than predictions. Sets of labels are evaluated at the
    model's threshold, at 0.5, and at the threshold with the best samples F1 on these data.

    With --dask, workers score the rows. They must see the temporary folder (TMPDIR).
    """
    if (a is None) != (b is None):
        raise wrong_use("A and B must be given together.", "--a, --b")
    if a is not None and propensity_dataset is not None:
        raise wrong_use("cannot be combined with --a and --b.", "--propensity-dataset")
    opened = open_model(model, n_jobs, encoder)
    if threshold is not None:
        opened.classifier.threshold_ = threshold
    reader = reader.as_trained(opened.fitted.training, data)
    try:
        propensities = opened.fitted.propensities(dataset=propensity_dataset, a=a, b=b)
    except ValueError as error:
        raise wrong_use(str(error), "--propensity-dataset, --a, --b") from None
    with screen.progress(f"evaluating {data.name}", stages=True), on_cluster(dask):
        evaluation = Evaluation(opened.estimator, opened.checked(reader.load(data)))
        ks = sorted(set(k or KS))
        scores = evaluation.scores(ks, propensities=propensities, tail=tail)
    if screen.json:
        screen.data(scores.as_dict())
    else:
        show_scores(screen, scores, f"{data.name}: {scores.n_rows:,} rows")


def set_rows(scores: Scores) -> list[list[str]]:
    """The quality of the predicted sets, in per cent; a row for each threshold."""
    names = {"model": "model's threshold", "0.5": "0.5", "best": "best samples F1"}
    rows = [
        [
            names[key],
            threshold_words(sets.threshold),
            *map(percent, (sets.precision, sets.recall, *sets.f1.values())),
        ]
        for key, sets in scores.sets.items()
    ]
    if scores.unseen.dropped_per_row.any():
        sets = scores.sets["model"]
        rows.insert(1, ["  over all true labels", "", "", "", *map(percent, sets.f1_all.values())])
    return rows


def show_scores(screen: Screen, scores: Scores, title: str) -> None:
    """The report as a table, in per cent."""
    rows = [
        [name, *(percent(scores.ranking[f"{key}@{k}"]) for k in scores.ks)]
        for key, name in NAMES.items()
        if f"{key}@{scores.ks[0]}" in scores.ranking
    ]
    best = ["best possible P", *(percent(scores.best_precision[k]) for k in scores.ks)]
    rows.insert(1, best)
    screen.table(["%", *(f"@{k}" for k in scores.ks)], rows, title=title)
    if scores.sets:
        heads = ["sets of labels, %", "threshold", "precision", "recall"]
        screen.table([*heads, *(f"F1, {average}" for average in AVERAGES)], set_rows(scores))
    if scores.n_unlabelled:
        screen.note(
            f"{scores.n_unlabelled:,} of {scores.n_rows:,} rows have no label and count as misses "
            "in P"
        )
    if scores.unseen.labels or scores.unseen.features:
        screen.note(f"in the data: {scores.unseen}")
