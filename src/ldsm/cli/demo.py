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
from .._runtime.wording import percent
from ..classifier import LdSMClassifier
from ..datasets import Dataset, load_stdlib_docs
from ..text.tagger import TextTagger
from .baselines import OneVsRest, popular_labels
from .estimator import defaults
from .model import Model, as_model
from .scoring import in_columns
from .screen import Screen

QUESTIONS = (
    "compress a stream of bytes",
    "parse a date and time",
    "wait until a thread ends",
    "send an email message",
    "connect to a database",
    "the square root of a number",
)
# "Which module?" leaves the competition to these tags.
ASKED = "module:"
KS = (1, 3, 5)
_TAGS_SHOWN = 3
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
    fifth of it held out. The trees with their second stage are measured beside two baselines: the
    most popular tags, and a linear support vector machine for each tag. Then they tag questions in
    plain English.
    """
    with screen.progress("reading the standard library"):
        corpus = load_stdlib_docs(min_count=_MIN_COUNT)
    train, test = corpus.split(_HELD_OUT, seed=seed)
    screen.note(
        f"{len(corpus):,} {corpus.source}, {corpus.n_labels:,} tags: {len(train):,} to learn from, "
        f"{len(test):,} held out"
    )
    tagger = TextTagger(LdSMClassifier(n_estimators=trees, n_jobs=n_jobs, random_state=seed))
    with screen.progress(f"learning with {trees} trees") as report:
        tagger.fit(train, callback=report)
    model = as_model(save or Path("docs.ldsm"), tagger)
    methods = _compare(screen, model, train, test, n_jobs)
    asked = [tag for tag in tagger.classes_.tolist() if tag.startswith(ASKED)]
    answers = dict(
        zip(QUESTIONS, tagger.predict(QUESTIONS, k=_TAGS_SHOWN, tags=asked), strict=True)
    )
    if save is not None:
        tagger.save(save)
    if screen.json:
        screen.data(_as_dict(train, test, methods, answers, save))
        return
    _show(screen, methods, answers, save)


def _compare(
    screen: Screen, model: Model, train: Dataset, test: Dataset, n_jobs: int
) -> list[Method]:
    """The model and the baselines, on the same features, threads and held-out rows."""
    train, test = (in_columns(model, part)[0] for part in (train, test))
    X, words = model.features(test), model.features(train)
    best, best_seconds = _timed(lambda: model.top_columns(X, max(KS)))
    popular, popular_seconds = _timed(lambda: popular_labels(train.Y, len(test), max(KS)))
    with screen.progress(f"training {train.n_labels} linear models") as report:
        linear, fit_seconds = _timed(lambda: OneVsRest(n_jobs).fit(words, train.Y, report))
    scores, linear_seconds = _timed(lambda: linear.scores(X))
    name = f"ldsm, {model.clf.forest_.n_trees} trees"
    if model.clf.second_stage_ is not None:
        name += " + second stage"
    found = [
        ("most popular tags", popular, 0.0, popular_seconds),
        ("linear SVM for each tag", scores, fit_seconds, linear_seconds),
        (name, best, model.clf.training_["seconds"], best_seconds),
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
    if screen.out.is_terminal:
        screen.show()
    screen.table(columns, rows, bold_row=len(rows) - 1)
    if screen.out.is_terminal:
        _show_answers(screen, answers)
    else:
        for question, tags in answers.items():
            screen.line("\t".join([question, *(f"{tag} {score:.2f}" for tag, score in tags)]))
    screen.note("What to try next", style="bold")
    commands = next_commands(save)
    for command, why in commands.items():
        screen.note(f"  {command.ljust(max(map(len, commands)))}  # {why}")


def _show_answers(screen: Screen, answers: dict[str, list[tuple[str, float]]]) -> None:
    grid = Table.grid(padding=(0, 2))
    for question, tags in answers.items():
        line = Text()
        for tag, score in tags:
            line.append(f"{tag.removeprefix(ASKED)} ", style="cyan")
            line.append(f"{score:.2f}  ", style="dim")
        grid.add_row(Text(question), line)
    screen.show(Text("Questions in plain English: which module?", style="bold"))
    screen.show(Padding(grid, (1, 2)))


def next_commands(save: Path | None) -> dict[str, str]:
    """Commands to copy, with what they are for; those with a model need one that was saved."""
    model = shlex.quote(str(save or "docs.ldsm"))
    keep = {} if save else {f"ldsm demo --save {model}": "keep the model, then:"}
    return keep | {
        f"ldsm explain {model} {shlex.quote(QUESTIONS[0])}": "which words, which way",
        f"echo 'sort a list' | ldsm predict {model}": "any text, one a line",
        f"ldsm inspect {model}": "parameters, trees, sizes",
        "ldsm train notes.jsonl -o notes.ldsm": "your own texts and labels",
    }


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
