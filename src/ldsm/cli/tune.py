"""``ldsm tune``: search for good parameters on held-out rows, with Optuna."""

from __future__ import annotations

import hashlib
import json
import math
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from .. import metrics
from .._arrays.features import feature_arrays
from .._features.training_rows import layout_of
from .._storage.text_files import writing
from .._trees.params import resolve
from .._wording import percent
from ..datasets import Dataset
from ..evaluation import Evaluation
from ..metrics.scorer import F1_METRICS
from .command import program, wrong_use
from .evaluate import NAMES
from .options.cluster import DaskOption, on_cluster
from .options.estimator import EstimatorOptions, SeedOption, defaults
from .options.output import OverwriteOption, check_output
from .options.reader import Reader
from .options.tagger import TaggerOptions, split_off, with_features
from .screen import Screen
from .trial_storage import OtherSearch, stored_study

if TYPE_CHECKING:
    import optuna

METRICS = ("precision", "ndcg", "recall", "coverage", "r_precision", *F1_METRICS)
_SHOWN = 10  # trials in the table
_NAMES = {**NAMES, **{name: f"{average} F1" for name, average in F1_METRICS.items()}}
# Shorter heads for its columns.
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
        int, typer.Option(min=1, help="Number of settings to try, including earlier runs.")
    ] = 20,
    storage: Annotated[
        Path | None, typer.Option(metavar="FILE", help="SQLite file that stores the trials.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="JSON file for the best parameters."),
    ] = None,
    overwrite: OverwriteOption = False,
    validation: Annotated[float, typer.Option(help="Share of the rows to hold out.")] = 0.2,
    metric: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"Metric to maximise: {', '.join(METRICS)}. f1 is the mean over rows of the F1 of "
            "predicted sets, for which training picks the threshold.",
        ),
    ] = METRICS[0],
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            min=1,
            show_default=False,
            help="Number of predictions per row to evaluate, except for F1. "
            "[dim]\\[default: 1][/dim]",
        ),
    ] = None,
    seed: SeedOption = None,
    dask: DaskOption = None,
) -> None:
    """Search for good parameters on held-out rows.

    Tries the estimator's defaults, then settings of the paper's grid, with Optuna (pip install
    'ldsm\\[tune]'). Parameters given as options stay fixed. Only parameters of the trees are
    searched; --rerank decides the second stage, and by default compares its blends in every trial.

    With --dask, the workers of a cluster train each trial. They must see the temporary folder
    (TMPDIR).

    With --storage, a search can be interrupted, resumed or extended: the same seed tries the same
    settings, in one run or in several.
    """
    import_optuna()
    if metric not in METRICS:
        raise wrong_use(f"must be one of {', '.join(METRICS)}, got {metric!r}.", "--metric")
    if metric in F1_METRICS and k is not None:
        raise wrong_use(f"is not used with --metric {metric}: sets can have any size.", "-k")
    if params.get("warm_start"):
        raise wrong_use("cannot be used here: every trial grows its own trees.", "--warm-start")
    inputs = reader.inputs(data, *filter(None, [params.file]))
    if output is not None:
        check_output(output, "parameters", [*inputs, *filter(None, [storage])], overwrite)
    if storage is not None:
        check_output(storage, "trials", inputs, overwrite=False, where="--storage")
    seed = params.seeded(seed)
    rows = reader.load(data)
    words.estimator(params, rows, data)  # raises errors for options that do not apply
    train, held_out = with_features(*split_off(rows, validation, seed), words, params)
    search = Search(
        train,
        held_out,
        fixed=dict(params),
        min_tag_count=words.min_tag_count,
        metric=metric,
        k=None if metric in F1_METRICS else k or 1,
        seed=seed,
    )
    with search.open(storage) as study:
        earlier = len(complete_trials(study))
        if earlier:
            screen.note(f"{storage}: {earlier} trial{'s' * (earlier != 1)} from earlier runs")
        if earlier < trials:
            with (
                screen.progress(f"trying {trials - earlier} settings") as report,
                on_cluster(dask),
            ):
                search.run(study, trials, lambda done: report(done, (trials - earlier) * STEPS))
        _show(screen, study, search, data, output, [*reader.given(), *words.given()])


def _show(
    screen: Screen,
    study: optuna.Study,
    search: Search,
    data: Path,
    output: Path | None,
    options: list[str],
) -> None:
    trials = sorted(complete_trials(study), key=lambda trial: (-(trial.value or 0.0), trial.number))
    at = "" if search.k is None else f"@{search.k}"
    name = search.metric + at
    fixed = {key: value for key, value in search.fixed.items() if key != "n_jobs"}
    best = {**fixed, **trials[0].params}
    if output is not None:
        with writing(output) as file:
            file.write(json.dumps(best, indent=2).encode() + b"\n")
    if screen.json:
        listed = [
            {**t.user_attrs, "trial": t.number, name: t.value, "params": t.params} for t in trials
        ]
        screen.data({"metric": name, name: trials[0].value, "best": best, "trials": listed})
        return
    columns = list(trials[0].params)
    rows = [
        [str(t.number), percent(t.value or 0.0)]
        + [f"{t.params[column]:.3g}" if column in t.params else "-" for column in columns]
        + [f"{t.user_attrs['seconds']:.1f}"]
        for t in trials[:_SHOWN]
    ]
    title = f"{len(trials)} settings scored on {len(search.held_out):,} held-out rows, best first"
    head = f"{_NAMES[search.metric]}{at}, %"
    heads = ["trial", head, *(_HEADS.get(column, column) for column in columns), "seconds"]
    screen.table(heads, rows, title=title, bold_row=0)
    if output is not None:
        given = [str(data), "-o", "model.ldsm", "--params", str(output), *options]
        screen.note(f"next: {program()} train {shlex.join(given)}")


# -- the search: the same in one run or in several --------------------------------------------

# The paper's grid (its supplement on the experiments).
GRID: Mapping[str, tuple[Any, ...]] = {
    "arity": (2, 4),
    "integrity_weight": (0.5, 1.0, 1.5, 2.0, 4.0),
    "multiway_penalty": (0.5, 1.0, 1.5, 2.0, 4.0),
    "n_epochs": (1, 2, 3, 5, 10, 20),
}
# Ranges on a log scale; trees with more nodes than rows are not tried.
LEARNING_RATE = (0.001, 1.0)
MAX_NODES = (63, 65535)
STEPS = 1000  # of progress per trial
REPORTED = (1, 3, 5)  # every trial records P@k at these, whatever its metric


@dataclass
class Search:
    """The trials of one search on rows to train on and rows to score on, with the same columns.

    The `fixed` parameters of the estimator are not searched; `metric` is one of `METRICS`, and `k`
    is None for F1. Features that were made from texts are learned as
    `ldsm train` does, by a tagger.
    """

    train: Dataset
    held_out: Dataset
    fixed: dict[str, Any]
    min_tag_count: int | None
    metric: str
    k: int | None
    seed: int

    @property
    def max_nodes(self) -> tuple[int, int]:
        return MAX_NODES[0], max(MAX_NODES[0], min(MAX_NODES[1], len(self.train)))

    @contextmanager
    def open(self, storage: Path | None) -> Iterator[optuna.Study]:
        """A new study, or the study of the same search in the SQLite file `storage`."""
        if storage is None:
            study: optuna.Study = import_optuna().create_study(direction="maximize")
            self._start(study)
            yield study
        else:
            with stored_study(storage, lambda study: self._check(study, storage)) as study:
                yield study

    def _start(self, study: optuna.Study) -> None:
        study.enqueue_trial(self.default_point())
        study.set_user_attr("search", self.fingerprint())

    def _check(self, study: optuna.Study, storage: Path) -> None:
        """Start a new study; raise an error for a study of another search or a damaged one."""
        known = study.user_attrs.get("search")
        if known is None:
            self._start(study)
        elif known != self.fingerprint():
            raise OtherSearch(
                f"{storage} holds a search with other data, parameters, metric or seed; use "
                "another file for --storage."
            )
        names = {*GRID, "learning_rate", "max_nodes"} - self.fixed.keys()
        for trial in complete_trials(study):
            seconds = trial.user_attrs.get("seconds")
            if (
                trial.value is None
                or not math.isfinite(trial.value)
                or trial.params.keys() != names
                or any(trial.params[name] not in GRID[name] for name in names & GRID.keys())
                or type(seconds) not in (int, float)
            ):
                raise ValueError(f"trial {trial.number} was not written by ldsm tune")

    def fingerprint(self) -> str:
        """Hash of everything that a trial's score depends on, except its own parameters."""
        settings = {"metric": self.metric, "k": self.k, "seed": self.seed, **self.fixed}
        settings.pop("n_jobs", None)  # does not change results
        if self.train.text_form is not None:
            settings["min_tag_count"] = self.min_tag_count
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        for part in (self.train, self.held_out):
            for matrix in (part.X, part.Y):
                digest.update(repr(matrix.shape).encode())
                for array in (matrix.indptr, matrix.indices, matrix.data):
                    digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()

    def default_point(self) -> dict[str, Any]:
        """The estimator's defaults, where the grid has them: the first trial."""
        x = feature_arrays(self.train.X)
        own = layout_of(self.train.text_form, x.n_features).split(x).read_by("trees")
        chosen = resolve({**defaults(), **self.fixed}, own, self.train.Y.nnz)
        point = {name: getattr(chosen, name) for name in (*GRID, "learning_rate", "max_nodes")}
        point["max_nodes"] = int(np.clip(point["max_nodes"], *self.max_nodes))
        point["learning_rate"] = float(np.clip(point["learning_rate"], *LEARNING_RATE))
        return {
            name: value
            for name, value in point.items()
            if name not in self.fixed and (name not in GRID or value in GRID[name])
        }

    def run(self, study: optuna.Study, trials: int, report: Callable[[int], None]) -> None:
        """Run trials until `trials` are complete, including those of earlier runs."""
        optuna = import_optuna()
        earlier = len(complete_trials(study))
        while (complete := len(complete_trials(study))) < trials:
            # Seeded by the trial's number, so that it is the same in any run.
            number = len(_trials(study, "COMPLETE", "PRUNED"))
            state = np.random.SeedSequence([self.seed, number]).generate_state(1)[0]
            study.sampler = optuna.samplers.TPESampler(seed=int(state), constant_liar=False)
            self._done, self._report = (complete - earlier) * STEPS, report
            study.optimize(self._score, n_trials=1)
        report((trials - earlier) * STEPS)

    def _suggest(self, trial: optuna.Trial) -> dict[str, Any]:
        point = {
            name: trial.suggest_categorical(name, values)
            for name, values in GRID.items()
            if name not in self.fixed
        }
        if "learning_rate" not in self.fixed:
            point["learning_rate"] = trial.suggest_float("learning_rate", *LEARNING_RATE, log=True)
        if "max_nodes" not in self.fixed:
            point["max_nodes"] = trial.suggest_int("max_nodes", *self.max_nodes, log=True)
        return point

    def _score(self, trial: optuna.Trial) -> float:
        params = {**defaults(), **self.fixed, **self._suggest(trial)}
        penalty = params["multiway_penalty"]
        if penalty != "auto" and penalty <= params["integrity_weight"] * (params["arity"] - 3):
            # Outside the bound of the paper's Lemma 2, rows would multiply at each level.
            raise import_optuna().TrialPruned
        started = time.perf_counter()
        estimator = TaggerOptions({}, self.min_tag_count).estimator(
            EstimatorOptions(params), self.train, self.train.source
        )
        estimator.fit(
            self.train,
            callback=lambda done, total: self._report(self._done + STEPS * done // total),
        )
        trial.set_user_attr("seconds", round(time.perf_counter() - started, 3))
        evaluation = Evaluation(estimator, self.held_out)
        best, _ = evaluation.best(max(self.k or 1, *REPORTED))
        for at in REPORTED:
            precision = metrics.precision_at_k(evaluation.truth, best, at)
            trial.set_user_attr(f"precision@{at}", precision)
        if self.k is None:
            sets = evaluation.pairs.at(evaluation.model.threshold)
            return sets.f1[F1_METRICS[self.metric]]
        return float(getattr(metrics, f"{self.metric}_at_k")(evaluation.truth, best, self.k))


def import_optuna() -> Any:
    """Import Optuna, an optional extra that is slow to import, only when needed."""
    try:
        import optuna
    except ImportError:
        raise ImportError(
            "ldsm tune needs Optuna, which is not installed: pip install 'ldsm[tune]'."
        ) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def complete_trials(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """The trials that have a score."""
    return _trials(study, "COMPLETE")


def _trials(study: optuna.Study, *states: str) -> list[optuna.trial.FrozenTrial]:
    wanted = [import_optuna().trial.TrialState[state] for state in states]
    return study.get_trials(deepcopy=False, states=wanted)
