"""``ldsm train``: from a data file to a model file."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from .._runtime.wording import duration, size
from ..classifier import LdSMClassifier
from ..datasets import Dataset
from ..text.tagger import TextTagger
from .cluster import FLAG, fit_on_cluster
from .command import wrong_use
from .estimator import EstimatorOptions
from .model import Model, as_model, open_model
from .reader import Reader
from .scoring import Scores, in_columns, propensities_of, score, show
from .screen import Report, Screen
from .training import TaggerOptions, split_off

_VALIDATION = 0.1  # share of the rows that --tune-threshold holds out, unless told otherwise


def train(
    screen: Screen,
    reader: Reader,
    words: TaggerOptions,
    params: EstimatorOptions,
    data: Annotated[Path, typer.Argument(metavar="DATA", exists=True, help="Training data.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Model file, by custom .ldsm.")
    ],
    validation: Annotated[
        float | None, typer.Option(help="Hold out this share of the rows, and report on them.")
    ] = None,
    tune_threshold: Annotated[
        bool,
        typer.Option(
            "--tune-threshold",
            help=f"Choose the threshold of sets on held-out rows ({_VALIDATION:.0%} by default).",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the rows held out.")] = 0,
    compress: Annotated[
        bool, typer.Option("--compress", help="Half the size: weights in 16 bits.")
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep finished trees in this folder; a run that was killed goes on from there.",
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Grow the trees on the Dask cluster at tcp://..., or in N processes: local:N.",
        ),
    ] = None,
) -> None:
    """Train a model and save it to one file.

    Texts (JSON Lines, CSV, TSV, or a store of them) give a model that reads texts, features
    (xmlrepo, svmlight, or a store of them) one that reads features.

    The file appears whole at the end, or not at all; a former one is replaced. With --warm-start
    the former one is gone on with: its trees are kept, and more are grown from the same data.

    With --checkpoint every finished tree is kept in a folder, whatever happens to the run: the same
    command goes on from there and ends with the same model. The folder stays; delete it in the end.

    With --dask, DATA must be a store (see `ldsm convert`) and --checkpoint is needed: workers see
    both under the same path. The model is the same as without.
    """
    if not output.parent.is_dir() or not os.access(output.parent, os.W_OK) or output.is_dir():
        raise wrong_use(f"{output} cannot be written.", "--output")
    if dask is not None and (validation is not None or tune_threshold or params.get("warm_start")):
        raise wrong_use(
            "is not for --validation, --tune-threshold and --warm-start, which change the rows or "
            "the model here.",
            FLAG,
        )
    if validation is None and tune_threshold:
        validation = _VALIDATION
    started = time.perf_counter()
    rows, held_out = _rows(reader, data, validation, seed)
    with screen.progress(f"training on {data.name}") as report:
        if dask is not None:
            words.refuse(str(data))
            model = as_model(output, fit_on_cluster(dask, params, rows, checkpoint, report))
        elif params.get("warm_start") and output.exists():
            model = _gone_on(output, params, rows or reader.load(data), report, checkpoint)
        else:
            model = _fitted(output, params, words, rows, reader, data, report, checkpoint)
    seconds = time.perf_counter() - started
    scores = None
    if held_out is not None:
        if tune_threshold:
            model.estimator.tune_threshold(held_out)
        scores = score(model, held_out, propensities=propensities_of(model))
        model.clf.training_["validation"] = scores.as_dict()
    model.estimator.save(output, compress=compress)
    taken = model.clf.training_.get("trees_from_checkpoint", 0)
    if taken:
        screen.note(f"{taken:,} of {model.clf.forest_.n_trees:,} trees taken from {checkpoint}")
    _show(screen, model, scores, seconds, tune_threshold)


def _rows(
    reader: Reader, data: Path, validation: float | None, seed: int
) -> tuple[Dataset | None, Dataset | None]:
    """Rows to train on and rows held out. Neither: documents are better read one by one."""
    if validation is not None:
        return split_off(reader.load(data), validation, seed)
    if reader.documents(data) is not None:
        return None, None
    return reader.load(data), None


def _fitted(
    output: Path,
    params: EstimatorOptions,
    words: TaggerOptions,
    rows: Dataset | None,
    reader: Reader,
    data: Path,
    report: Report,
    checkpoint: Path | None,
) -> Model:
    estimator: LdSMClassifier | TextTagger
    if rows is not None and rows.texts is None:
        words.refuse(str(data))
        estimator = LdSMClassifier(**params)
    else:
        estimator = words.tagger(params)
    corpus = reader.documents(data) if rows is None else rows
    return as_model(output, estimator.fit(corpus, callback=report, checkpoint_dir=checkpoint))


def _gone_on(
    output: Path,
    params: EstimatorOptions,
    rows: Dataset,
    report: Report,
    checkpoint: Path | None,
) -> Model:
    """The former model with more trees."""
    model = open_model(output)
    aligned, _ = in_columns(model, rows)
    aligned = replace(aligned, X=model.features(aligned), texts=None)
    model.clf.set_params(**params)
    model.clf.fit(aligned, callback=report, checkpoint_dir=checkpoint)
    return model


def _show(screen: Screen, model: Model, scores: Scores | None, seconds: float, tuned: bool) -> None:
    forest, stage = model.clf.forest_, model.clf.second_stage_
    facts: dict[str, Any] = {
        "model": str(model.path),
        "kind": model.kind,
        "rows": model.n_rows,
        "features": forest.n_features,
        "labels": len(model.clf.classes_),
        "trees": forest.n_trees,
        "nodes": forest.n_nodes,
        "second_stage": None if stage is None else stage.blend.kind,
        "seconds": round(seconds, 3),
        "bytes": model.path.stat().st_size,
        "fingerprint": model.fingerprint,
    }
    if screen.json:
        screen.data({**facts, "validation": None if scores is None else scores.as_dict()})
        return
    screen.note(
        f"{facts['rows']:,} rows, {facts['features']:,} features, {facts['labels']:,} labels: "
        f"{facts['trees']:,} trees, {facts['nodes']:,} nodes, second stage: "
        f"{facts['second_stage'] or 'none'}, in {duration(seconds)}"
    )
    if model.tagger is not None and model.tagger.rare_tags_:
        screen.note(f"{len(model.tagger.rare_tags_):,} rare tags were not learned")
    if scores is not None:
        show(screen, scores, f"{scores.n_rows:,} held-out rows")
        if tuned:
            screen.note("The threshold was tuned on these rows: its F1 is on the bright side.")
    screen.note(f"{model.path}: {size(facts['bytes'])}")
