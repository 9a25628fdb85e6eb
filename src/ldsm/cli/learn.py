"""``ldsm learn``: let a model learn from new rows."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import scipy.sparse as sp
import typer

from .._arrays.features import feature_matrix
from .._model.learn import training_due
from .._runtime.wording import counted, duration, size
from ..datasets import Dataset
from ..evaluation import Evaluation, Scores
from ..evaluation.alignment import has_label_names, model_features
from .command import wrong_use
from .evaluate import show_scores
from .model import Model, open_model
from .options.model import JobsOption, ModelArgument
from .options.output import OverwriteOption, check_output, check_place
from .options.reader import Reader
from .screen import Screen
from .tally import Tally


def learn(
    screen: Screen,
    reader: Reader,
    model: ModelArgument,
    data: Annotated[Path, typer.Argument(metavar="DATA", exists=True, help="New labelled data.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Model file to write."),
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Replace MODEL, once all is learned.")
    ] = False,
    overwrite: OverwriteOption = False,
    n_jobs: JobsOption = None,
) -> None:
    """Let a model learn from new rows, without the old ones: in a small part of the time.

    Labels that the model does not know become its labels. First the model is measured on the new
    rows, which it has not seen: what it knew of them. A falling precision tells that the data have
    changed.

    The trees keep their splits, so a new training is due now and then; this command says when.

    The file is written completely or not at all: with --in-place there is always the old model or
    the new one.
    """
    if in_place == (output is not None):
        raise wrong_use("give either a file to write or --in-place.", "--output, --in-place")
    target = model if output is None else output
    if output is not None:
        check_place(output)
        if output.exists() and os.path.samefile(output, model):
            raise wrong_use(f"{output} is the model itself; --in-place replaces it.", "--output")
        check_output(output, "a model", reader.inputs(model, data), overwrite)
    opened = open_model(model, n_jobs)
    reader = reader.as_trained(opened.fitted.training, data)
    rows = opened.checked(reader.load(data))
    has_label_names(opened.fitted.classes, rows)
    tally = Tally.of(rows)
    if tally.n_rows == 0:
        raise ValueError(f"There are no rows to learn from. Got {data}, which has none.")
    if not tally.labels:
        raise ValueError(f"{data} must hold at least one label. Got none: no row has a label.")
    screen.note(tally.summary())
    for oddity in tally.oddities(of_all_rows=False):
        screen.note(f"note: {oddity}", style="yellow")
    if opened.reads_texts and rows.texts is None:
        screen.note(
            "note: a store adds no new words to the model; its texts would",
            style="yellow",
        )
    n_labels = opened.fitted.n_labels
    with screen.progress(f"measuring {model.name} on {data.name}"):
        propensities = opened.fitted.propensities()
        scores = Evaluation(opened.estimator, rows).scores(propensities=propensities)
    started = time.perf_counter()
    with screen.progress(f"learning {data.name}"):
        opened.estimator.partial_fit(_in_model_form(opened, rows))
    seconds = time.perf_counter() - started
    opened.estimator.save(target)
    _show(screen, Model(target, opened.estimator), scores, n_labels, seconds)


def _in_model_form(model: Model, rows: Dataset) -> Dataset:
    """The rows, as wide as the model where a file cannot tell: of texts, they stay as they are."""
    if model.reads_texts:
        return rows
    if rows.n_features > model.fitted.n_features:
        raise ValueError(
            f"The data must have the features of the model, {model.fitted.n_features:,}. "
            f"Got {rows.n_features:,}."
        )
    X = feature_matrix(model_features(model.estimator, rows, model.path))
    Y = rows.Y
    if rows.label_names is None and rows.n_labels < model.fitted.n_labels:
        shape = (len(rows), model.fitted.n_labels)
        Y = sp.csr_array((Y.data, Y.indices, Y.indptr), shape=shape)
    return replace(rows, X=X, Y=Y, feature_names=None)


def _show(screen: Screen, model: Model, scores: Scores, n_labels: int, seconds: float) -> None:
    fitted = model.fitted
    due = training_due(fitted)
    facts: dict[str, Any] = {
        "model": str(model.path),
        "learned": scores.n_rows,
        "new_labels": fitted.n_labels - n_labels,
        "rows": fitted.n_training_rows,
        "labels": fitted.n_labels,
        "seconds": round(seconds, 3),
        "bytes": model.path.stat().st_size,
        "fingerprint": model.estimator.fingerprint_,
        "training_due": due,
    }
    if screen.json:
        screen.data({**facts, "before": scores.as_dict()})
        return
    show_scores(screen, scores, f"what the model knew of {scores.n_rows:,} new rows")
    screen.note(
        f"learned {counted(facts['learned'], 'row')} and "
        f"{counted(facts['new_labels'], 'new label')} in {duration(seconds)}: "
        f"{facts['rows']:,} rows and {facts['labels']:,} labels in all"
    )
    if due is not None:
        screen.note(f"note: {due}", style="yellow")
    screen.note(f"{model.path}: {size(facts['bytes'])}")
