"""``ldsm learn``: let a model learn from new rows."""

from __future__ import annotations

import difflib
import os
import time
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import scipy.sparse as sp
import typer

from .._features.new_rows import ABSENT, PRIOR
from .._model.fitted import FittedModel
from .._model.history import total
from .._model.learn import training_due
from .._model.typical_rows import changed_answers
from .._wording import counted, duration, shortened, size
from ..datasets import Dataset
from ..evaluation import Evaluation, Scores
from ..evaluation.alignment import has_label_names, model_rows
from .command import wrong_use
from .evaluate import show_scores
from .model import Model, hold_lock, open_model
from .options.model import JobsOption, ModelArgument
from .options.output import OverwriteOption, check_output, check_place
from .options.reader import Reader
from .screen import Screen
from .tally import Tally


class Absent(str, Enum):
    """What it means that a row lacks a label."""

    auto, negative, unknown = ABSENT


class Prior(str, Enum):
    """Whether scores are refitted to a skewed batch."""

    auto, batch = PRIOR


_SHOWN, _NAME_WIDTH = 10, 30  # new labels, and characters of each
_CHECKED = 1000  # new labels, for names that are nearly those of others
_ALIKE = 0.85  # of two names: so much of them is the same
_TYPICAL = 100  # rows that stand for those learned before


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
    absent: Annotated[
        Absent,
        typer.Option(
            help="What it means that a row lacks a label that the model knows: the label is wrong "
            "for the row (negative), or may not have been given (unknown). auto: unknown in rows "
            "that have new labels only."
        ),
    ] = Absent.auto,
    prior: Annotated[
        Prior,
        typer.Option(
            help="Whether scores are refitted to a large batch whose labels are distributed unlike "
            "those of the rows so far: no (auto), or yes (batch)."
        ),
    ] = Prior.auto,
    overwrite: OverwriteOption = False,
    n_jobs: JobsOption = None,
) -> None:
    """Update a model with new rows, without the old ones, in a fraction of the training time.

    Labels that the model does not know become its labels. First the model is measured on the new
    rows, which it has not seen. If precision falls from batch to batch, the data have changed.

    A batch shows what labels look like, not how often they occur: examples of one new label do not
    change the answers to other rows. How the answers to typical rows have changed is shown.

    The trees keep their splits, so a new training is due now and then; this command says when.

    The file is written completely or not at all: with --in-place there is always the old model or
    the new one. If another process is changing the model, the command waits for it to finish.
    """
    if in_place == (output is not None):
        raise wrong_use("give either a file to write or --in-place.", "--output, --in-place")
    target = model if output is None else output
    if output is not None:
        check_place(output)
        if output.exists() and os.path.samefile(output, model):
            raise wrong_use(f"{output} is the model itself; --in-place replaces it.", "--output")
        check_output(output, "a model", reader.inputs(model, data), overwrite)
    else:
        hold_lock(screen, model)
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
    before = opened.fitted
    _check_names(screen, before, tally)
    with screen.progress(f"measuring {model.name} on {data.name}"):
        propensities = opened.fitted.propensities()
        scores = Evaluation(opened.estimator, rows).scores(propensities=propensities)
    started = time.perf_counter()
    with screen.progress(f"learning {data.name}"):
        opened.estimator.partial_fit(
            _in_model_form(opened, rows), absent=absent.value, prior=prior.value
        )
    seconds = time.perf_counter() - started
    opened.estimator.save(target)
    _show(screen, Model(target, opened.estimator), scores, before, seconds)


def _check_names(screen: Screen, model: FittedModel, tally: Tally) -> None:
    """Point out labels that are new to the model, and look like those that it knows."""
    known = {str(label): label for label in model.classes.tolist()}
    new = [label for label in tally.labels if str(label) not in known]
    by_case = {name.lower(): name for name in known}
    for label in new[:_CHECKED]:
        name = str(label)
        close = difflib.get_close_matches(name.lower(), by_case, n=1, cutoff=_ALIKE)
        if close:
            meant = by_case[close[0]]
            screen.note(
                f"note: {name!r} is a new label; did you mean {meant!r}?",
                style="yellow",
            )


def _in_model_form(model: Model, rows: Dataset) -> Dataset:
    """The rows, as wide as the model where a file cannot tell: of texts, they stay as they are."""
    if model.reads_texts:
        return rows
    if rows.n_features > model.fitted.n_features:
        raise ValueError(
            f"The data must have the features of the model, {model.fitted.n_features:,}. "
            f"Got {rows.n_features:,}."
        )
    X = model_rows(model.estimator, rows, model.path).joined().matrix()
    Y = rows.Y
    if rows.label_names is None and rows.n_labels < model.fitted.n_labels:
        shape = (len(rows), model.fitted.n_labels)
        Y = sp.csr_array((Y.data, Y.indices, Y.indptr), shape=shape)
    return replace(rows, X=X, Y=Y, feature_names=None)


def _show(
    screen: Screen, model: Model, scores: Scores, before: FittedModel, seconds: float
) -> None:
    fitted = model.fitted
    due = training_due(fitted)
    known = set(before.classes.tolist())
    new = [label for label in fitted.classes.tolist() if label not in known]
    changed = changed_answers(before, fitted, _TYPICAL)
    skewed = total(fitted.training, "skewed") > total(before.training, "skewed")
    facts: dict[str, Any] = {
        "model": str(model.path),
        "learned": scores.n_rows,
        "new_labels": len(new),
        "new_label_names": new,
        "skewed": skewed,
        "typical_rows": None if changed is None else changed[1],
        "changed_answers": None if changed is None else changed[0],
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
    if new:
        names = ", ".join(shortened(str(label), _NAME_WIDTH) for label in new[:_SHOWN])
        more = f" and {len(new) - _SHOWN:,} more" if len(new) > _SHOWN else ""
        screen.note(f"new labels: {names}{more}")
    if skewed:
        screen.note(
            "note: the labels of these rows are distributed unlike those of the rows so far; "
            "scores of known labels were not refitted to them (--prior batch does that)",
            style="yellow",
        )
    if changed is not None:
        screen.note(
            f"typical rows of the {counted(changed[1], 'most frequent label')}: the best answer "
            f"changed for {changed[0]:,}"
        )
    if due is not None:
        screen.note(f"note: {due}", style="yellow")
    screen.note(f"{model.path}: {size(facts['bytes'])}")
