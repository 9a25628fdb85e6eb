"""Documents with label names as a table: CSV or TSV with a header and a cell of labels."""

from __future__ import annotations

import csv
import io
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from .._arrays.joined_labels import find_joined
from .._storage.paths import PathLike, printable
from .._storage.syntax.csv_rows import BrokenRow, csv_rows
from .._storage.text_files import (
    MAX_LINE_LENGTH,
    UTF8,
    format_suffix,
    malformed,
    read_lines,
    writing,
)
from .._wording import argument
from .dataset import Dataset
from .documents import Document, field_names, joined_fields

_COMMA = ","
_SEPARATORS = (",", ";", "|", "/", "\t")  # possible separators of labels in a cell
_ROWS_TO_GUESS = 1000
_ROWS_TO_COMPARE = 100  # with the first row, to see whether it is a header
_MAX_NAME_WORDS = 8  # longer cells are not column names
_USUAL_NAMES = {"text", "body", "content", "title", "description", "id", "uri", "identifier"}
_USUAL_NAMES |= {"labels", "label", "tags", "tag"}
DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}


def iter_table(
    path: PathLike,
    *,
    text: str | Sequence[str] = "text",
    labels: str | None = "labels",
    separator: str | None = None,
    delimiter: str | None = None,
    encoding: str = UTF8,
    max_line_length: int = MAX_LINE_LENGTH,
) -> Iterator[tuple[str, list[str]]]:
    """Documents one at a time, for tables larger than memory.

    Parameters
    ----------
    path : path
        With a header line, cells quoted as in spreadsheets; plain, ``.gz`` or ``.bz2``.
    text : str or list of str
        The column that holds the document, or several, such as ``["title", "body"]``, which are
        joined by newlines.
    labels : str
        The column that holds the labels. None: no labels.
    separator : str, optional
        Separator between the labels in a cell. Spaces around a label are ignored; an empty cell
        means no labels. By default a comma, unless none of the first 1,000 cells has one and their
        labels are obviously separated by one of ``| ; /``, which is then reported in a warning.
    delimiter : str, optional
        Separator between cells; by default a comma for ``.csv``, a tab for ``.tsv`` and ``.tab``.
    encoding : str, default="utf-8"
        Encoding of the file.
    max_line_length : int, default=4194304
        Maximum length of a row, in characters.

    Yields
    ------
    text, labels : str and list of str

    Raises
    ------
    ValueError
        For a row with more or fewer cells than the header, an empty label, broken quotes or too
        many characters, with file, line number and text. Empty lines are allowed only at the end.

    Warns
    -----
    UserWarning
        If the first row looks like data, because it is not read as a document.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("notes.csv").write_text('id,text,tags\\n1,"cod, herring",fish;law\\n')
    >>> list(iter_table("notes.csv", labels="tags", separator=";"))
    [('cod, herring', ['fish', 'law'])]
    """
    for document in read_table(
        path,
        text=text,
        labels=labels,
        separator=separator,
        delimiter=delimiter,
        encoding=encoding,
        max_line_length=max_line_length,
    ):
        yield document.text, document.labels


def read_table(
    path: PathLike,
    *,
    text: str | Sequence[str] = "text",
    labels: str | None = "labels",
    separator: str | None = None,
    delimiter: str | None = None,
    encoding: str = UTF8,
    max_line_length: int = MAX_LINE_LENGTH,
    id_field: str | None = None,
) -> Iterator[Document]:
    """Like :func:`iter_table`, with the ids in a column."""
    if separator == "":
        raise ValueError("separator must be a string of at least one character. Got ''.")
    if separator is None:
        separator = _COMMA
        if labels is not None:
            separator = guess_separator(path, labels, delimiter, encoding, max_line_length)
    rows = _rows(path, _delimiter(path, delimiter), encoding, max_line_length)
    _, header = next(rows, (1, []))
    is_data = looks_like_data(header, _first_rows(path, delimiter, encoding, max_line_length))
    columns = _Columns(path, header, is_data)
    texts = [columns.number(name, "text") for name in field_names(text)]
    tagged = None if labels is None else columns.number(labels, "labels")
    id_column = None if id_field is None else columns.number(id_field, "id_field")
    if is_data:
        warnings.warn(
            f"The first row of {printable(path)} is read as column names, but looks like data: "
            f"{_listed(header)}. If it is a document, add a line with column names above it.",
            stacklevel=2,
        )
    blank = 0
    for number, row in rows:
        if not row:
            blank = blank or number
            continue
        if blank:
            raise malformed(path, blank, "expected a row, got an empty line")
        if len(row) != len(header):
            problem = f"expected {len(header)} cells, got {len(row)}"
            if len(row) > len(header):
                problem += "; put cells that contain the delimiter in quotes"
            raise malformed(path, number, problem, repr(row[:100]))
        cell = "" if tagged is None else row[tagged]
        names = [name.strip() for name in cell.split(separator)] if cell.strip() else []
        if "" in names:
            problem = f"empty label in column {labels!r}, split at {separator!r}"
            raise malformed(path, number, problem, cell)
        document = joined_fields([row[column] for column in texts])
        yield Document(document, names, None if id_column is None else row[id_column])


def separator_for(labels: Iterable[Any], trained: str | None) -> str | None:
    """A separator for the labels of a cell that does not occur in a label.

    The separator of the training data is preferred; None if every separator occurs in a label.
    """
    everything = "\n".join(map(str, labels))
    for separator in (trained, *_SEPARATORS):
        if isinstance(separator, str) and separator and separator not in everything:
            return separator
    return None


def guess_separator(
    path: PathLike,
    labels: str,
    delimiter: str | None,
    encoding: str = UTF8,
    max_line_length: int = MAX_LINE_LENGTH,
) -> str:
    """The default separator of :func:`iter_table` for a file."""
    if not os.path.isfile(path):
        return _COMMA  # a pipe can be read only once
    rows = _rows(path, _delimiter(path, delimiter), encoding, max_line_length)
    _, header = next(rows, (1, []))
    if header.count(labels) != 1:
        return _COMMA  # the reader raises the error
    column, first = header.index(labels), islice(rows, _ROWS_TO_GUESS)
    cells = [row[column] for _, row in first if len(row) == len(header)]
    return _guessed_separator(cells, labels)


def load_table(
    path: PathLike,
    *,
    text: str | Sequence[str] = "text",
    labels: str = "labels",
    separator: str | None = None,
    delimiter: str | None = None,
    encoding: str = UTF8,
    max_line_length: int = MAX_LINE_LENGTH,
) -> Dataset:
    """Read documents and their label names; see :func:`iter_table` for the format.

    Parameters
    ----------
    path : path
        The file; ``.gz`` and ``.bz2`` are compressed.
    text : str or list of str, default="text"
        The column of the document, or several, which are joined.
    labels : str, default="labels"
        The column of the labels.
    separator : str, optional
        Separator between the labels in a cell; see :func:`iter_table` for the default.
    delimiter : str, optional
        Separator between cells; by default a comma for ``.csv``, a tab for ``.tsv`` and ``.tab``.
    encoding : str, default="utf-8"
        Encoding of the file.
    max_line_length : int, default=4194304
        Maximum length of a row, in characters.

    Returns
    -------
    Dataset
        With `texts`; its `label_names` are those of the file, sorted.
    """
    documents = read_table(
        path,
        text=text,
        labels=labels,
        separator=separator,
        delimiter=delimiter,
        encoding=encoding,
        max_line_length=max_line_length,
    )
    return Dataset.from_documents(documents, printable(path))


def save_table(
    data: Dataset,
    path: PathLike,
    *,
    text: str | Sequence[str] = "text",
    labels: str = "labels",
    separator: str = ",",
    delimiter: str | None = None,
) -> None:
    """Write a Dataset of documents as a table; label names must not contain the separator.

    With several text columns, the text is in the first, and the others are empty.

    Parameters
    ----------
    data : Dataset
        With `texts`.
    path : path
        The file; ``.gz`` and ``.bz2`` are compressed.
    text : str or list of str, default="text"
        The column of the document, or several, which are joined.
    labels : str, default="labels"
        The column of the labels.
    separator : str, default=","
        Separator between the labels in a cell.
    delimiter : str, optional
        Separator between cells; by default a comma for ``.csv``, a tab for ``.tsv`` and ``.tab``.

    Examples
    --------
    >>> from pathlib import Path
    >>> save_table(Dataset.from_texts(["to be"], [["b", "a"]]), "notes.csv")
    >>> Path("notes.csv").read_text()
    'text,labels\\nto be,"a,b"\\n'
    >>> load_table("notes.csv").labels
    [['a', 'b']]
    """
    if data.texts is None:
        raise ValueError("This format holds texts, but the Dataset has only features.")
    for name in data.label_names or ():
        if separator in name or name != name.strip() or not name:
            raise ValueError(
                f"The label {name!r} cannot be written: labels must not be empty, contain "
                f"the separator {separator!r} or have spaces around them."
            )
    with writing(path) as file:
        lines = io.TextIOWrapper(file, encoding="utf-8", newline="")
        # The default line end "\\r\\n" makes the writer quote cells that hold either character.
        writer = csv.writer(lines, delimiter=_delimiter(path, delimiter))
        columns = field_names(text)
        empty = [""] * (len(columns) - 1)
        writer.writerow([*columns, labels])
        for document, names in zip(data.texts, data.labels, strict=True):
            writer.writerow([document, *empty, separator.join(str(name) for name in names)])
        lines.detach()  # flushes, without closing the file


def _guessed_separator(cells: list[str], column: str | None) -> str:
    found = None if any(_COMMA in cell for cell in cells) else find_joined(cells)
    if found is None:
        return _COMMA
    warnings.warn(
        f"The labels in column {column!r} are split at {found.separator!r}, because in the first "
        f"{len(cells):,} rows {found} "
        f"Pass {argument('separator', found.separator)} to confirm this and silence the warning.",
        stacklevel=3,
    )
    return found.separator


def _delimiter(path: PathLike, delimiter: str | None) -> str:
    if delimiter is None:
        delimiter = DELIMITERS.get(format_suffix(path))
    if delimiter is None or len(delimiter) != 1 or delimiter in '"\r\n':
        raise ValueError(
            "delimiter must be one character, no quote or line end, or the file's suffix one of "
            f"{', '.join(DELIMITERS)}. Got {delimiter!r} for {printable(path)}."
        )
    return delimiter


def _rows(
    path: PathLike, delimiter: str, encoding: str, max_line_length: int
) -> Iterator[tuple[int, list[str]]]:
    """Each row with the number of its first line."""
    # Line ends within quotes belong to the cell.
    lines = read_lines(path, keep_ends=True, encoding=encoding, max_line_length=max_line_length)
    try:
        yield from csv_rows(lines, delimiter, max_line_length)
    except BrokenRow as row:
        raise malformed(path, row.number, f"is not a row of a table: {row}", row.text) from None


class _Columns(NamedTuple):
    """The header of a table, or its first row if it has no header."""

    path: PathLike
    header: list[str]
    is_data: bool  # whether it looks like a row

    def number(self, name: str, used_as: str) -> int:
        """The number of a column; `used_as` is the argument that names it."""
        path, header = self.path, self.header
        if header.count(name) == 1:
            return header.index(name)
        if not header:
            raise malformed(path, 1, "is empty: expected a header line with column names")
        if header.count(name) > 1:
            problem = (
                f"has {header.count(name)} columns {name!r}; use {argument(used_as)} to name "
                "another"
            )
            raise malformed(path, 1, problem, repr(header))
        other = next((d for d in ";\t|," if len(header) == 1 and d in header[0]), None)
        if other is not None:
            separator = argument("delimiter", other)
            remedy = f"the cells seem to be separated by {other!r}; try {separator}"
            raise malformed(path, 1, f"has no column {name!r}; {remedy}", header[0])
        missing = "a line with column names, such as text and labels"
        if self.is_data:
            problem = f"has no column {name!r} and looks like data: {_listed(header)}"
            raise malformed(path, 1, f"{problem}. Add {missing}, above it")
        listed = _listed(header)
        if set(name.split(",")) <= set(header):
            listed += f" (use {argument(used_as)} once per column)"
        problem = f"has no column {name!r}, only {listed}; use {argument(used_as)} to name another"
        raise malformed(path, 1, f"{problem}, or, if this line is data, add {missing}, above it")


def _listed(header: list[str]) -> str:
    return ", ".join(repr(column[:40]) for column in header[:10])


def _first_rows(
    path: PathLike, delimiter: str | None, encoding: str, max_line_length: int
) -> list[list[str]]:
    """Some rows after the first; none for a pipe, which can be read only once."""
    if not os.path.isfile(path):
        return []
    rows = _rows(path, _delimiter(path, delimiter), encoding, max_line_length)
    return [row for _, row in islice(rows, 1, 1 + _ROWS_TO_COMPARE)]


def looks_like_data(first: list[str], rows: list[list[str]]) -> bool:
    """Whether the first row of a table looks like data, not like column names.

    Data has repeated cells, numbers, or sentences as long as those below.
    """
    names = [cell.strip() for cell in first]
    if not _USUAL_NAMES.isdisjoint(name.lower() for name in names):
        return False
    if len(set(names)) < len(names):
        return True
    start = 0 if names and names[0] else 1  # pandas numbers its columns, possibly after its index
    for column, name in enumerate(names):
        below = [row[column] for row in rows if len(row) > column]
        n_words = len(name.split())
        lengths = sorted(len(cell.split()) for cell in below)
        if (
            n_words >= _MAX_NAME_WORDS
            or (_is_number(name) and name != str(column - start))
            or (name and name in below)
            or (lengths and n_words >= max(3, lengths[len(lengths) // 2] / 2))
        ):
            return True
    return False


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
