"""``ldsm tune``: good parameters for your data, found on rows held out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._runtime.wording import percent
from .._storage.text_files import writing
from .command import wrong_use
from .estimator import EstimatorOptions
from .reader import Reader
from .scoring import NAMES
from .screen import Screen
from .search import STEPS, Search, complete_trials, import_optuna
from .training import TaggerOptions, matrices, split_off

if TYPE_CHECKING:
    import optuna

METRICS = ("precision", "ndcg", "recall", "coverage")
_SHOWN = 10  # trials in the table
# Heads of its columns, where names are too long.
_HEADS = {
    "integrity_weight": "lambda 1",
    "multiway_penalty": "lambda 2",
    "n_epochs": "epochs",
    "learning_rate": "rate",
    "max_nodes": "max nodes",
}


def tune(
    screen: Screen,
    reader: Reader,
    words: TaggerOptions,
    params: EstimatorOptions,
    data: Annotated[Path, typer.Argument(metavar="DATA", exists=True, help="Training data.")],
    trials: Annotated[
        int, typer.Option(min=1, help="Settings to try, earlier runs included.")
    ] = 20,
    storage: Annotated[
        Path | None, typer.Option(metavar="FILE", help="SQLite file to keep the trials in.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Best parameters, as JSON."),
    ] = None,
    validation: Annotated[float, typer.Option(help="Share of the rows to score on.")] = 0.2,
    metric: Annotated[
        str, typer.Option(metavar="NAME", help=f"What to raise: {', '.join(METRICS)}.")
    ] = METRICS[0],
    k: Annotated[int, typer.Option("-k", min=1, help="Predictions of a row that count.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Of the search, the split and the trees.")] = 0,
) -> None:
    """Search for good parameters on held-out rows.

    Tries the estimator's defaults, then settings of the paper's grid, with Optuna
    (pip install 'ldsm\\[tune]'). Parameters given as options are kept fixed. The grid is one of
    trees: the second stage is left to --rerank, which by default compares its forms in every trial.

    With --storage, a search that was interrupted, or that should go on, continues where it stopped:
    the same seed tries the same settings, in one run or in several.
    """
    import_optuna()
    if metric not in METRICS:
        raise wrong_use(f"must be one of {', '.join(METRICS)}, got {metric!r}.", "--metric")
    if params.get("warm_start"):
        raise wrong_use("every trial grows its own trees.", "--warm-start")
    train, held_out = matrices(*split_off(reader.load(data), validation, seed), words)
    fixed = {"random_state": seed, **params}
    search = Search(train, held_out, fixed=fixed, metric=metric, k=k, seed=seed)
    study = search.open(storage)
    earlier = len(complete_trials(study))
    if earlier:
        screen.note(f"{storage}: {earlier} trial{'s' * (earlier != 1)} from earlier runs")
    if earlier < trials:
        with screen.progress(f"trying {trials - earlier} settings") as report:
            search.run(study, trials, lambda done: report(done, (trials - earlier) * STEPS))
    _show(screen, study, search, data, output)


def _show(
    screen: Screen, study: optuna.Study, search: Search, data: Path, output: Path | None
) -> None:
    trials = sorted(complete_trials(study), key=lambda trial: (-(trial.value or 0.0), trial.number))
    name = f"{search.metric}@{search.k}"
    given = {key: value for key, value in search.fixed.items() if key != "n_jobs"}
    best = {**given, **trials[0].params}
    if output is not None:
        with writing(output) as file:
            file.write(json.dumps(best, indent=2).encode() + b"\n")
    if screen.json:
        found = [
            {**t.user_attrs, "trial": t.number, name: t.value, "params": t.params} for t in trials
        ]
        screen.data({"metric": name, name: trials[0].value, "best": best, "trials": found})
        return
    columns = list(trials[0].params)
    rows = [
        [str(t.number), percent(t.value or 0.0)]
        + [f"{t.params[column]:.3g}" if column in t.params else "-" for column in columns]
        + [f"{t.user_attrs['seconds']:.1f}"]
        for t in trials[:_SHOWN]
    ]
    title = f"{len(trials)} settings scored on {len(search.held_out):,} held-out rows, best first"
    head = f"{NAMES[search.metric]}@{search.k}, %"
    heads = ["trial", head, *(_HEADS.get(column, column) for column in columns), "seconds"]
    screen.table(heads, rows, title=title, bold_row=0)
    if output is not None:
        screen.note(f"next: ldsm train {data} -o model.ldsm --params {output}")
