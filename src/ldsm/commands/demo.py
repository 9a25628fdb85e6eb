"""``ldsm demo``: a real corpus that every Python has, learned, measured and asked, in seconds."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .. import metrics
from ..datasets import Dataset, load_stdlib_docs
from ..text import TextTagger
from .baselines import OneVsRest, popular_labels
from .estimator import defaults
from .model import Model, as_model
from .screen import Screen, percent

QUESTIONS = (
    "compress a stream of bytes",
    "parse a date and time",
    "wait until a thread has finished",
    "open a network connection",
    "send an email message",
)
KS = (1, 3, 5)
_TAGS_SHOWN = 4
_MIN_COUNT = 5  # documents of a tag: rarer ones are mostly words of a single name
_HELD_OUT = 0.2

Result = TypeVar("Result")


@dataclass(frozen=True)
class Method:
    """A row of the table."""

    name: str
    precision: dict[int, float]
    train_seconds: float
    predict_seconds: float


def demo(
    screen: Screen,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the model, to go on with.")
    ] = None,
    trees: Annotated[int, typer.Option(min=1, help="Trees to grow.")] = defaults()["n_estimators"],
    n_jobs: Annotated[int, typer.Option(help="Threads, for every method; -1 for all cores.")] = -1,
    seed: Annotated[int, typer.Option(min=0, help="Of the rows held out and of the trees.")] = 0,
) -> None:
    """Try it: learn to tag the docstrings of Python's standard library.

    Needs no data and no network. The corpus is built from this Python's own standard library, a
    fifth of it held out. The trees are measured beside two baselines: the most popular tags, and a
    linear support vector machine for each tag. Then they tag questions in plain English.
    """
    with screen.progress("reading the standard library"):
        corpus = load_stdlib_docs(min_count=_MIN_COUNT)
    train, test = corpus.split(_HELD_OUT, seed=seed)
    screen.note(
        f"{len(corpus):,} {corpus.source}, {corpus.n_labels:,} tags: {len(train):,} to learn from, "
        f"{len(test):,} held out"
    )
    tagger = TextTagger(n_estimators=trees, n_jobs=n_jobs, random_state=seed)
    with screen.progress(f"growing {trees} trees") as report:
        _, seconds = _timed(lambda: tagger.fit(train, callback=report))
    model = as_model(save or Path("docs.ldsm"), tagger)
    methods = _compare(screen, model, seconds, train, test, n_jobs)
    answers = {q: tagger.predict([q], k=_TAGS_SHOWN)[0] for q in QUESTIONS}
    if save is not None:
        tagger.save(save)
    if screen.json:
        screen.data(_as_dict(train, test, methods, answers, save))
        return
    _show(screen, methods, answers, save)


def _compare(
    screen: Screen, model: Model, seconds: float, train: Dataset, test: Dataset, n_jobs: int
) -> list[Method]:
    """The trees and the baselines, on the same features and the same held-out rows."""
    test, _ = test.align(train)
    X = model.features(test)
    ours, ours_seconds = _timed(lambda: model.top_columns(model.features(test), max(KS)))
    popular, popular_seconds = _timed(lambda: popular_labels(train.Y, len(test), max(KS)))
    words = model.features(train)
    with screen.progress(f"training {train.n_labels} linear models") as report:
        linear, fit_seconds = _timed(lambda: OneVsRest(n_jobs).fit(words, train.Y, report))
    scores, linear_seconds = _timed(lambda: linear.scores(X))
    found = [
        ("most popular tags", popular, 0.0, popular_seconds),
        ("linear SVM for each tag", scores, fit_seconds, linear_seconds),
        (f"ldsm, {model.clf.forest_.n_trees} trees", ours, seconds, ours_seconds),
    ]
    return [
        Method(name, {k: metrics.precision_at_k(test.Y, best, k) for k in KS}, fit, predict)
        for name, best, fit, predict in found
    ]


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def _show(
    screen: Screen,
    methods: Sequence[Method],
    answers: dict[str, list[tuple[str, float]]],
    save: Path | None,
) -> None:
    rows = [
        [m.name, *(percent(m.precision[k]) for k in KS)]
        + [f"{m.train_seconds:.2f}", f"{m.predict_seconds:.2f}"]
        for m in methods
    ]
    columns = ["on held-out docstrings, %", *(f"P@{k}" for k in KS), "train s", "predict s"]
    screen.table(columns, rows, bold_row=len(rows) - 1)
    if screen.out.is_terminal:
        _show_answers(screen, answers)
    else:
        for question, tags in answers.items():
            screen.line("\t".join([question, *(f"{tag} {score:.2f}" for tag, score in tags)]))
    _show_next(screen, save)


def _show_answers(screen: Screen, answers: dict[str, list[tuple[str, float]]]) -> None:
    grid = Table.grid(padding=(0, 2))
    for question, tags in answers.items():
        line = Text()
        for tag, score in tags:
            line.append(f"{tag} ", style="cyan")
            line.append(f"{score:.2f}  ", style="dim")
        grid.add_row(Text(question, style="italic"), line)
    screen.show(Text("Questions in plain English", style="bold"))
    screen.show(Padding(grid, (0, 1)))


def _show_next(screen: Screen, save: Path | None) -> None:
    """Commands to copy; those with a model need one that was saved."""
    model = shlex.quote(str(save or "docs.ldsm"))
    commands = {} if save else {f"ldsm demo --save {model}": "keep the model; then"}
    commands |= {
        f"ldsm explain {model} {shlex.quote(QUESTIONS[0])}": "which words, which way",
        f"echo 'sort a list' | ldsm predict {model}": "any text, a line each",
        f"ldsm inspect {model}": "parameters and trees",
        "ldsm train notes.jsonl -o notes.ldsm": 'your own: {"text": ..., "labels": [...]} a line',
    }
    screen.note("What to try next", style="bold")
    width = max(map(len, commands))
    for command, why in commands.items():
        screen.note(f"  {command.ljust(width)}  # {why}")


def _as_dict(
    train: Dataset,
    test: Dataset,
    methods: Sequence[Method],
    answers: dict[str, list[tuple[str, float]]],
    save: Path | None,
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
