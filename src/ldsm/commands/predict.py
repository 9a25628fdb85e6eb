"""``ldsm predict``: the best labels of each row, or the set of labels that reach the threshold."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from ..datasets import Dataset
from ..datasets.files import read_lines, writing
from .command import wrong_use
from .model import JobsOption, Model, ModelArgument, open_model
from .reader import STDIN, Reader
from .screen import Screen, json_line

_ROWS_AT_ONCE = 4096
# A pair is "label score"; pairs of a row are separated so that labels may hold blanks.
_BETWEEN = "\t"


@dataclass(frozen=True)
class Wanted:
    """What is asked of each row."""

    k: int | None  # the k best labels; None: all that reach the threshold
    threshold: float | None  # None: the model's own
    labels: list[Any] | None  # only these compete


def predict(
    screen: Screen,
    reader: Reader,
    model: ModelArgument,
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Data file; - reads a document a line from stdin.")
    ] = STDIN,
    k: Annotated[
        int | None, typer.Option("-k", min=1, help="Labels per row, 5 unless sets are asked for.")
    ] = None,
    sets: Annotated[
        bool, typer.Option("--sets", help="All labels that reach the model's threshold.")
    ] = False,
    threshold: Annotated[
        float | None, typer.Option(help="All labels with at least this score; implies --sets.")
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL", help="Only this label competes; may be repeated. @FILE: a label a line."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="In place of stdout.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Rows answered together; 1 on a terminal's stdin.")
    ] = None,
    n_jobs: JobsOption = None,
) -> None:
    """Predict the labels of texts or rows, best first with their scores.

    A line for each row: label, blank, score, with tabs between the labels. --json gives JSON Lines,
    an object with "labels" and "scores" for each row. An output file appears whole at the end, or
    not at all.
    """
    if data != STDIN and not data.exists():
        raise wrong_use(f"path {str(data)!r} does not exist.", "DATA")
    if k is not None and (sets or threshold is not None):
        raise wrong_use("either the k best labels or sets, not both.", "-k")
    opened = open_model(model, n_jobs)
    wanted = Wanted(
        None if sets or threshold is not None else k or min(5, len(opened.clf.classes_)),
        threshold,
        _labels(opened, labels),
    )
    if batch_size is None:
        interactive = data == STDIN and sys.stdin.isatty()
        batch_size = 1 if interactive else _ROWS_AT_ONCE
    with _writer(screen, output) as write:
        for batch in _batches(opened, reader, data, batch_size):
            for pairs in answers(opened, batch, wanted):
                write(json_line(_record(pairs)) if screen.json else _line(pairs))


def answers(model: Model, batch: Any, wanted: Wanted) -> Iterator[list[tuple[Any, float]]]:
    """For each row its labels with their scores, best first."""
    X = model.features(batch)
    if wanted.k is None:
        yield from model.sets(X, wanted.threshold, wanted.labels)
        return
    names, scores = model.clf.predict_topk(X, k=wanted.k, labels=wanted.labels)
    for row, values in zip(names.tolist(), scores.tolist(), strict=True):
        yield list(zip(row, values, strict=True))


def _batches(model: Model, reader: Reader, data: Path, size: int) -> Iterator[Any]:
    """Rows as they come: texts in lists, features in Datasets."""
    if model.tagger is not None:
        texts = iter(reader.texts(data))
        while batch := list(islice(texts, size)):
            yield batch
        return
    file = Path("/dev/stdin") if data == STDIN else data
    blocks: Iterable[Dataset] | None = reader.blocks(file)
    for block in blocks if blocks is not None else [reader.load(file)]:
        for start in range(0, len(block), size):
            yield block.select(slice(start, start + size))


def _labels(model: Model, given: Sequence[str] | None) -> list[Any] | None:
    """Labels as the model knows them, from names, numbers or files of them."""
    if not given:
        return None
    names: list[str] = []
    for item in given:
        if item.startswith("@"):
            names += [line for _, line in read_lines(item[1:]) if line]
        else:
            names.append(item)
    known = {str(label): label for label in model.clf.classes_.tolist()}
    for name in names:
        if name not in known:
            raise wrong_use(f"the model has no label {name!r}.", "--labels")
    return [known[name] for name in names]


@contextmanager
def _writer(screen: Screen, output: Path | None) -> Iterator[Any]:
    if output is None:
        yield screen.line
        return
    with writing(output) as file:
        yield lambda line: file.write(line.encode("utf-8") + b"\n")


def _record(pairs: Sequence[tuple[Any, float]]) -> dict[str, Any]:
    return {
        "labels": [label for label, _ in pairs],
        "scores": [round(score, 6) for _, score in pairs],
    }


def _line(pairs: Sequence[tuple[Any, float]]) -> str:
    return _BETWEEN.join(f"{label} {score:.4f}" for label, score in pairs)
