"""``ldsm demo``: train and try a model, in seconds, on a corpus that comes with Python."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, TypeVar

import joblib
import numpy as np
import typer
from numpy.typing import NDArray
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .. import metrics
from .._trees.params import AUTO
from .._wording import percent
from ..classifier import LdSMClassifier
from ..datasets import Dataset, load_stdlib_docs
from ..evaluation import Evaluation
from ..text import TextTagger
from .command import program
from .options.output import OverwriteOption, check_output
from .screen import Report, Screen
from .serve import run_service

QUESTIONS = (
    "compress a stream of bytes",
    "parse a date and time",
    "wait until a thread ends",
    "send an email message",
    "connect to a database",
    "the square root of a number",
)
# The questions ask for a module: only these tags are predicted.
ASKED = "module:"
KS = (1, 3, 5)
_TAGS_SHOWN = 3
_ASKED = "Questions in plain English: which module?"
_MIN_COUNT = 5  # documents per tag; most rarer tags are words of a single name
_HELD_OUT = 0.2

Result = TypeVar("Result")
Answers = dict[str, list[tuple[str, float]]]  # tags and their scores by question


@dataclass(frozen=True)
class Method:
    """A method in the comparison: one row of the table."""

    name: str
    precision: dict[int, float]
    train_seconds: float
    predict_seconds: float


def demo(
    screen: Screen,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the model to this file.")
    ] = None,
    overwrite: OverwriteOption = False,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Then serve the model on a web page; see ldsm serve."),
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the page; 0 for any free port.")
    ] = 8000,
    trees: Annotated[
        int | None,
        typer.Option(min=1, help="Number of trees; by default as many as improve the model."),
    ] = None,
    n_jobs: Annotated[int, typer.Option(help="Number of threads; -1 for all cores.")] = -1,
    seed: Annotated[int, typer.Option(min=0, help="Seed for the held-out rows and the trees.")] = 0,
) -> None:
    """Try it: learn to tag the docstrings of Python's standard library.

    Needs no data and no network. The corpus is built from the standard library of this Python; a
    fifth of it is held out. The model is compared with two baselines: the most popular tags and one
    linear support vector machine per tag. It then tags questions in plain English.
    """
    if save is not None:
        check_output(save, "a model", [], overwrite, "--save")
    with screen.progress("reading the standard library"):
        corpus = load_stdlib_docs(min_count=_MIN_COUNT)
    train, test = corpus.split(_HELD_OUT, seed=seed)
    screen.note(
        f"{len(corpus):,} {corpus.source}, {corpus.n_labels:,} tags: {len(train):,} to learn from, "
        f"{len(test):,} held out"
    )
    classifier = LdSMClassifier(trees or AUTO, n_jobs=n_jobs, random_state=seed)
    tagger = TextTagger(classifier)
    with screen.progress(
        f"learning with {trees} trees" if trees else "learning", stages=True
    ) as report:
        tagger.fit(train, callback=report)
    methods = _compare(screen, tagger, train, test, n_jobs)
    asked = [tag for tag in tagger.classes_.tolist() if tag.startswith(ASKED)]
    answers = dict(
        zip(QUESTIONS, tagger.predict(QUESTIONS, k=_TAGS_SHOWN, only=asked), strict=True)
    )
    if save is not None:
        tagger.save(save)
    if screen.json:
        screen.data(_as_dict(train, test, methods, answers, save))
    else:
        _show(screen, methods, answers, save)
    if serve:
        _serve(screen, tagger, save, port)


def _serve(screen: Screen, tagger: TextTagger, save: Path | None, port: int) -> None:
    """Serve the model on a page; a model that was not saved is deleted afterwards."""
    from ..serve.settings import Settings

    with TemporaryDirectory(prefix="ldsm-demo-") as folder:
        path = save or Path(folder, "demo.ldsm")
        if save is None:
            tagger.save(path)
        settings = Settings(corrections=(save or Path("demo")).absolute().parent)
        run_service(screen, [path], settings, host="127.0.0.1", port=port)


def _compare(
    screen: Screen, tagger: TextTagger, train: Dataset, test: Dataset, n_jobs: int
) -> list[Method]:
    """Compare the model with baselines on the same rows and threads; the SVM uses the words."""
    learned, held_out = Evaluation(tagger, train), Evaluation(tagger, test)
    Y = learned.truth
    X, words = (rows.x.read_by("trees").matrix() for rows in (held_out, learned))
    (best, _), best_seconds = _timed(lambda: held_out.best(max(KS)))
    popular, popular_seconds = _timed(lambda: popular_labels(Y, len(test), max(KS)))
    with screen.progress(f"training {Y.shape[1]} linear models") as report:
        planes, fit_seconds = _timed(lambda: one_vs_rest(words, Y, n_jobs, report))
    scores, linear_seconds = _timed(lambda: np.asarray(X @ planes[0] + planes[1]))
    name = f"ldsm, {held_out.model.forest.n_trees} trees"
    if held_out.model.second_stage is not None:
        name += " + second stage"
    compared = [
        ("most popular tags", popular, 0.0, popular_seconds),
        ("linear SVM for each tag", scores, fit_seconds, linear_seconds),
        (name, best, held_out.model.training["seconds"], best_seconds),
    ]
    return [
        Method(name, {k: metrics.precision_at_k(held_out.truth, best, k) for k in KS}, fit, predict)
        for name, best, fit, predict in compared
    ]


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def _show(screen: Screen, methods: Sequence[Method], answers: Answers, save: Path | None) -> None:
    rows = [
        [m.name, *(percent(m.precision[k]) for k in KS)]
        + [f"{m.train_seconds:.2f}", f"{m.predict_seconds:.2f}"]
        for m in methods
    ]
    columns = ["on held-out docstrings, %", *(f"P@{k}" for k in KS), "train s", "predict s"]
    if screen.out.is_terminal:
        screen.show()
    screen.table(columns, rows, bold_row=len(rows) - 1)
    if screen.out.is_terminal:
        _show_answers(screen, answers)
    else:
        screen.line("")
        screen.line(_ASKED)
        for question, tags in answers.items():
            screen.line("\t".join([question, *(f"{tag} {score:.2f}" for tag, score in tags)]))
    screen.note("What to try next", style="bold")
    commands = next_commands(save)
    for command, why in commands.items():
        screen.note(f"  {command.ljust(max(map(len, commands)))}  # {why}")


def _show_answers(screen: Screen, answers: Answers) -> None:
    grid = Table.grid(padding=(0, 2))
    for question, tags in answers.items():
        line = Text()
        for tag, score in tags:
            line.append(f"{tag.removeprefix(ASKED)} ", style="cyan")
            line.append(f"{score:.2f}  ", style="dim")
        grid.add_row(Text(question), line)
    screen.show(Text(_ASKED, style="bold"))
    screen.show(Padding(grid, (1, 2)))


def next_commands(save: Path | None) -> dict[str, str]:
    """Commands to copy, with their purposes; most need a saved model."""
    model, ldsm = shlex.quote(str(save or "docs.ldsm")), program()
    keep = {} if save else {f"{ldsm} demo --save {model}": "keep the model, then:"}
    return keep | {
        f"{ldsm} explain {model} {shlex.quote(QUESTIONS[0])}": "the deciding words and the path",
        f"echo 'sort a list' | {ldsm} predict {model}": "any text, one per line",
        f"{ldsm} serve {model}": "a page to try it on, and an API",
        f"{ldsm} inspect {model}": "parameters, trees, sizes",
        f"{ldsm} train --help": "your own texts and labels",
    }


def _as_dict(
    train: Dataset, test: Dataset, methods: Sequence[Method], answers: Answers, save: Path | None
) -> dict[str, Any]:
    return {
        "documents": len(train),
        "held_out": len(test),
        "tags": train.n_labels,
        "methods": [
            {
                "name": m.name,
                **{f"precision@{k}": value for k, value in m.precision.items()},
                "train_seconds": round(m.train_seconds, 3),
                "predict_seconds": round(m.predict_seconds, 3),
            }
            for m in methods
        ],
        "questions": {
            question: {"labels": [tag for tag, _ in tags], "scores": [s for _, s in tags]}
            for question, tags in answers.items()
        },
        "model": None if save is None else str(save),
    }


# -- baselines --------------------------------------------------------------------------------


def popular_labels(Y: Any, n_rows: int, k: int) -> NDArray[np.int64]:
    """The k labels with the most training rows, the same for every row."""
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    return np.tile(np.argsort(-counts, kind="stable")[:k], (n_rows, 1))


def one_vs_rest(
    X: Any, Y: Any, n_jobs: int, report: Report
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights and intercepts of a linear support vector machine per label, trained in threads."""
    X = X.astype(np.float64)  # liblinear's type: convert once, not for every label
    columns = Y.tocsc()
    parallel = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    fitted = []
    for model in parallel(joblib.delayed(_fit_label)(X, columns, i) for i in range(Y.shape[1])):
        fitted.append(model)
        report(len(fitted), Y.shape[1])
    return np.stack([weights for weights, _ in fitted], axis=1), np.array([b for _, b in fitted])


def _fit_label(X: Any, columns: Any, label: int) -> tuple[NDArray[np.float64], float]:
    y = np.zeros(X.shape[0], dtype=np.int8)
    y[columns.indices[columns.indptr[label] : columns.indptr[label + 1]]] = 1
    if not y.any() or y.all():  # only one class
        return np.zeros(X.shape[1]), float(np.where(y.any(), 1.0, -1.0))
    from sklearn.svm import LinearSVC  # only the demo needs it

    svm = LinearSVC(random_state=0).fit(X, y)
    return svm.coef_[0], float(svm.intercept_[0])
