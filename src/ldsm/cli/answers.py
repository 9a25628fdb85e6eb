"""How `ldsm predict` writes its answers: plain lines, JSON Lines or a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from .._storage.text_files import format_suffix, writing
from .._wording import escaped
from ..datasets.documents.table_columns import DELIMITERS
from ..datasets.documents.tables import separator_for
from ..datasets.formats import foreign_format
from .command import wrong_use
from .screen import Screen, json_line

# Columns that identify a table of predictions.
FIRST_COLUMN = "row"
LAST_COLUMNS = ("labels", "scores")
# Separates the "label score" items of a plain line; labels may contain spaces.
_BETWEEN = "\t"
_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")


class Answer(NamedTuple):
    """The labels of one row with their scores, best first."""

    row: int
    id: str | None
    scored: Sequence[tuple[Any, float]]


Write = Callable[[Answer], object]


class TableForm(NamedTuple):
    """The parts of the data's format that a table of answers keeps."""

    labels: Sequence[Any]  # every label that can occur
    separator: str | None  # between labels, in the training data
    delimiter: str | None  # between cells
    id_field: str | None  # the column of the ids, if any


def check_form(output: Path | None, json: bool) -> None:
    """Raise an error if the format is not supported or the options contradict each other."""
    if output is None:
        return
    if (kind := foreign_format(output, to_write=True)) is not None:
        raise wrong_use(f"{output} would be {kind}; write a .csv or .jsonl file.", "--output")
    if json and format_suffix(output) in DELIMITERS:
        raise wrong_use(f"{output} is a table; --json writes JSON Lines.", "--json")


@contextmanager
def answers_to(screen: Screen, output: Path | None, form: TableForm) -> Iterator[Write]:
    """A function that writes answers to stdout, or to the file in the format of its suffix."""
    name = form.id_field or "id"
    if output is None:
        yield lambda answer: screen.line(_json(answer, name) if screen.json else _plain(answer))
        return
    suffix = format_suffix(output)
    if suffix in DELIMITERS:
        between = _separator(form.labels, form.separator)
        delimiter = form.delimiter if suffix == ".csv" and form.delimiter else DELIMITERS[suffix]
        with writing(output) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            yield _table(text, delimiter, between, form.id_field)
            text.detach()  # flushes, without closing the file
        return
    in_json = screen.json or suffix in _JSON_SUFFIXES
    with writing(output) as file:
        yield lambda answer: file.write(
            (_json(answer, name) if in_json else _plain(answer)).encode("utf-8") + b"\n"
        )


def _table(file: io.TextIOWrapper, delimiter: str, separator: str, id_field: str | None) -> Write:
    table = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    ids = id_field is not None
    table.writerow([FIRST_COLUMN, *([id_field] if ids else []), *LAST_COLUMNS])

    def write(answer: Answer) -> None:
        labels = separator.join(str(label) for label, _ in answer.scored)
        scores = separator.join(f"{score:.6f}" for _, score in answer.scored)
        table.writerow([answer.row, *([answer.id] if ids else []), labels, scores])

    return write


def _separator(labels: Sequence[Any], trained: str | None) -> str:
    """The separator of the labels in a cell."""
    if (separator := separator_for(labels, trained)) is None:
        raise wrong_use(
            "every separator that a table can use occurs in a label; write to a .jsonl file.",
            "--output",
        )
    return separator


def _json(answer: Answer, id_name: str) -> str:
    id_entry = {} if answer.id is None else {id_name: answer.id}
    labels, scores = [label for label, _ in answer.scored], [score for _, score in answer.scored]
    rounded = [round(score, 6) for score in scores]
    return json_line({"row": answer.row, **id_entry, "labels": labels, "scores": rounded})


def _plain(answer: Answer) -> str:
    cells = [f"{escaped(str(label))} {score:.4f}" for label, score in answer.scored]
    if answer.id is not None:
        cells.insert(0, escaped(answer.id))
    return _BETWEEN.join(cells)
