"""How `ldsm predict` writes its answers: plain lines, JSON Lines or a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from .._runtime.wording import escaped
from .._storage.text_files import format_suffix, writing
from .command import wrong_use
from .screen import Screen, json_line

# Columns of a table of predictions, by which it is known again.
FIRST_COLUMN = "row"
LAST_COLUMNS = ("labels", "scores")
# Between the "label score" pairs of a plain line; labels may contain spaces.
_BETWEEN = "\t"
_SEPARATORS = (",", ";", "|", "/", "\t")  # between the labels of a cell
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")


class Answer(NamedTuple):
    """The labels of one row, best first with their scores."""

    row: int
    id: str | None
    pairs: Sequence[tuple[Any, float]]


Write = Callable[[Answer], object]


def check_form(output: Path | None, json: bool) -> None:
    """Raise an error if two forms are asked for at once."""
    if json and output is not None and format_suffix(output) in _DELIMITERS:
        raise wrong_use(f"{output} is a table; --json writes JSON Lines.", "--json")


@contextmanager
def answers_to(
    screen: Screen, output: Path | None, labels: Sequence[Any], separator: str | None, ids: bool
) -> Iterator[Write]:
    """A function that writes answers to the file, in the form of its suffix, or to stdout.

    `labels` are all that can occur, `separator` the one of the training data. With `ids`, the
    answers have them.
    """
    if output is None:
        shown = _json if screen.json else _plain
        yield lambda answer: screen.line(shown(answer))
        return
    suffix = format_suffix(output)
    if suffix in _DELIMITERS:
        between = _separator(labels, separator)
        with writing(output) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            yield _table(text, _DELIMITERS[suffix], between, ids)
            text.detach()  # flushes, without closing the file
        return
    shown = _json if screen.json or suffix in _JSON_SUFFIXES else _plain
    with writing(output) as file:
        yield lambda answer: file.write(shown(answer).encode("utf-8") + b"\n")


def _table(file: io.TextIOWrapper, delimiter: str, separator: str, ids: bool) -> Write:
    table = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    table.writerow([FIRST_COLUMN, *(["id"] if ids else []), *LAST_COLUMNS])

    def write(answer: Answer) -> None:
        labels = separator.join(str(label) for label, _ in answer.pairs)
        scores = separator.join(f"{score:.6g}" for _, score in answer.pairs)
        table.writerow([answer.row, *([answer.id] if ids else []), labels, scores])

    return write


def _separator(labels: Sequence[Any], trained: str | None) -> str:
    """What stands between the labels of a cell, so that it can be read again.

    That of the training data, unless a label contains it.
    """
    everything = "\n".join(map(str, labels))
    for separator in (trained, *_SEPARATORS):
        if separator is not None and separator not in everything:
            return separator
    raise wrong_use(
        "some label contains each separator that a table could use; write to a .jsonl file.",
        "--output",
    )


def _json(answer: Answer) -> str:
    known_by = {} if answer.id is None else {"id": answer.id}
    labels, scores = [label for label, _ in answer.pairs], [score for _, score in answer.pairs]
    rounded = [round(score, 6) for score in scores]
    return json_line({"row": answer.row, **known_by, "labels": labels, "scores": rounded})


def _plain(answer: Answer) -> str:
    cells = [f"{escaped(str(label))} {score:.4f}" for label, score in answer.pairs]
    if answer.id is not None:
        cells.insert(0, escaped(answer.id))
    return _BETWEEN.join(cells)
