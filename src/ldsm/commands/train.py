"""``ldsm train``: from a data file to a model file."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from .command import wrong_use
from .estimator import EstimatorOptions
from .model import Model, as_model
from .reader import Reader
from .scoring import Scores, propensities_of, score, show
from .screen import Screen, duration, size
from .training import TaggerOptions, new_model, split_off

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
) -> None:
    """Train a model and save it to one file.

    Texts (JSON Lines, CSV, TSV, or a store of them) give a model that reads texts, features
    (xmlrepo, svmlight, or a store of them) one that reads features. The file appears whole at the
    end, or not at all; a former one is replaced. With --warm-start it is gone on with: the trees of
    the former file are kept, and more are grown from the same data.
    """
    folder = output.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK) or output.is_dir():
        raise wrong_use(f"{output} cannot be written.", "--output")
    if validation is None and tune_threshold:
        validation = _VALIDATION
    fitted = new_model(reader, data, params, words, output)
    started = time.perf_counter()
    held_out = None
    if validation is not None:
        rows, held_out = split_off(reader.load(data), validation, seed)
    else:
        rows = fitted.rows(reader, data)
    with screen.progress(f"growing {fitted.n_trees} trees") as report:
        fitted.fit(rows, report)
    model = as_model(output, fitted.estimator)
    seconds = time.perf_counter() - started
    scores = None
    if held_out is not None:
        if tune_threshold:
            fitted.estimator.tune_threshold(held_out)
        scores = score(model, held_out, propensities=propensities_of(model))
        model.clf.training_["validation"] = scores.as_dict()
    fitted.estimator.save(output, compress=compress)
    _show(screen, model, scores, seconds, tune_threshold)


def _show(
    screen: Screen, model: Model, scores: Scores | None, seconds: float, tuned: bool
) -> None:
    forest = model.clf.forest_
    facts: dict[str, Any] = {
        "model": str(model.path),
        "kind": model.kind,
        "rows": model.n_rows,
        "features": forest.n_features,
        "labels": len(model.clf.classes_),
        "trees": forest.n_trees,
        "nodes": forest.n_nodes,
        "seconds": round(seconds, 3),
        "bytes": model.path.stat().st_size,
        "fingerprint": model.fingerprint,
    }
    if screen.json:
        screen.data({**facts, "validation": None if scores is None else scores.as_dict()})
        return
    screen.note(
        f"{facts['rows']:,} rows, {facts['features']:,} features, {facts['labels']:,} labels; "
        f"{facts['trees']:,} trees, {facts['nodes']:,} nodes in {duration(seconds)}"
    )
    screen.note(f"{model.path}: {size(facts['bytes'])}")
    if scores is not None:
        show(screen, scores, f"{scores.n_rows:,} held-out rows")
        if tuned:
            screen.note("The threshold was tuned on these rows: its F1 is on the bright side.")
