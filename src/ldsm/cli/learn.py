"""``ldsm learn``: update a model with new rows."""

from __future__ import annotations

import difflib
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
from .evaluate import show_scores
from .model import Model, open_model
from .options.changes import InPlaceOption, ModelOutput, changed_file
from .options.cluster import DaskOption, on_cluster
from .options.model import EncoderOption, JobsOption, ModelArgument
from .options.output import OverwriteOption
from .options.reader import Reader
from .screen import Screen
from .tally import Tally


class Absent(str, Enum):
    """How to treat labels that a row does not have."""

    auto, negative, unknown = ABSENT


class Prior(str, Enum):
    """Whether to refit scores to a skewed batch."""

    auto, batch = PRIOR


_SHOWN, _NAME_WIDTH = 10, 30  # new labels, and characters of each
_CHECKED = 1000  # new labels compared with known names
_SIMILAR = 0.85  # least similarity of two names that may be the same label
_TYPICAL = 100  # rows that represent earlier training rows


def learn(
    screen: Screen,
    reader: Reader,
    model: ModelArgument,
    data: Annotated[Path, typer.Argument(metavar="DATA", exists=True, help="New labelled data.")],
    output: ModelOutput = None,
    in_place: InPlaceOption = False,
    absent: Annotated[
        Absent,
        typer.Option(
            help="How to treat known labels that a row does not have: as wrong for the row "
            "(negative) or as possibly missing (unknown). auto: unknown in rows that have only new "
            "labels."
        ),
    ] = Absent.auto,
    prior: Annotated[
        Prior,
        typer.Option(
            help="Whether to refit scores to a large batch whose label distribution differs from "
            "earlier rows: no (auto) or yes (batch)."
        ),
    ] = Prior.auto,
    overwrite: OverwriteOption = False,
    encoder: EncoderOption = None,
    n_jobs: JobsOption = None,
    dask: DaskOption = None,
) -> None:
    """Update a model with new rows, without the old rows, in a fraction of the training time.

    New labels are added to the model. First, the model is evaluated on the new rows, which it has
    not seen. If precision falls from batch to batch, the data have changed.

    A batch teaches what labels look like, not how often they occur: examples of one new label do
    not change the answers for other rows. The command reports how many answers to typical rows
    have changed.

    The trees keep their splits, so retrain the model from time to time; this command reports when.

    With --dask, workers match and learn the rows. They must see the temporary folder (TMPDIR).

    The file is written completely or not at all, even with --in-place. If another process is
    changing the model, the command waits for it to finish.
    """
    inputs = reader.inputs(model, data)
    target = changed_file(screen, model, output, in_place, inputs=inputs, overwrite=overwrite)
    opened = open_model(model, n_jobs, encoder)
    screen.until_end.enter_context(on_cluster(dask))
    reader = reader.as_trained(opened.fitted.training, data)
    rows = opened.checked(reader.load(data))
    has_label_names(opened.fitted.classes, rows)
    tally = Tally.of(rows)
    if tally.n_rows == 0:
        raise ValueError(f"{data} has no rows to learn from.")
    if not tally.labels:
        raise ValueError(f"{data} must hold at least one label. Got none: no row has a label.")
    screen.note(tally.summary())
    for oddity in tally.oddities(of_all_rows=False):
        screen.note(f"note: {oddity}", style="yellow")
    if opened.reads_texts and rows.texts is None:
        screen.note(
            "note: a store cannot add new words to the model; learn from the texts to add them",
            style="yellow",
        )
    before = opened.fitted
    _check_names(screen, before, tally)
    with screen.progress(f"evaluating {model.name} on {data.name}", stages=True):
        propensities = opened.fitted.propensities()
        scores = Evaluation(opened.estimator, rows).scores(propensities=propensities)
    started = time.perf_counter()
    with screen.progress(f"learning {data.name}", stages=True):
        opened.estimator.partial_fit(
            _in_model_form(opened, rows), absent=absent.value, prior=prior.value
        )
    seconds = time.perf_counter() - started
    opened.estimator.save(target)
    _show(screen, Model(target, opened.estimator), scores, before, seconds)


def _check_names(screen: Screen, model: FittedModel, tally: Tally) -> None:
    """Point out new labels whose names are similar to known ones."""
    known = {str(label): label for label in model.classes.tolist()}
    new = [label for label in tally.labels if str(label) not in known]
    by_case = {name.lower(): name for name in known}
    for label in new[:_CHECKED]:
        name = str(label)
        close = difflib.get_close_matches(name.lower(), by_case, n=1, cutoff=_SIMILAR)
        if close:
            meant = by_case[close[0]]
            screen.note(
                f"note: {name!r} is a new label; did you mean {meant!r}?",
                style="yellow",
            )


def _in_model_form(model: Model, rows: Dataset) -> Dataset:
    """The rows, with matrices as wide as the model's unless they are texts."""
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
    show_scores(screen, scores, f"before learning: {scores.n_rows:,} new rows")
    screen.note(
        f"learned {counted(facts['learned'], 'row')} and "
        f"{counted(facts['new_labels'], 'new label')} in {duration(seconds)}: "
        f"{facts['rows']:,} rows and {facts['labels']:,} labels in total"
    )
    if new:
        names = ", ".join(shortened(str(label), _NAME_WIDTH) for label in new[:_SHOWN])
        more = f" and {len(new) - _SHOWN:,} more" if len(new) > _SHOWN else ""
        screen.note(f"new labels: {names}{more}")
    if skewed:
        screen.note(
            "note: the label distribution of these rows differs from that of earlier rows; "
            "scores of known labels were not refitted (use --prior batch to refit them)",
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
