"""Documents with label names as a table: CSV or TSV with a cell of labels."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from ..._arrays.joined_labels import find_joined
from ..._storage.paths import PathLike, printable
from ..._storage.syntax.csv_rows import BrokenRow, csv_rows
from ..._storage.text_files import (
    MAX_LINE_LENGTH,
    UTF8,
    format_suffix,
    malformed,
    read_lines,
    writing,
)
from ..._wording import argument, warn
from ..dataset import Dataset
from .document import Document, field_names, joined_fields
from .label_names import LabelNames, named, names_by_label
from .table_columns import DELIMITERS, Columns, by_number, listed, looks_like_data

_COMMA = ","
_SEPARATORS = (",", ";", "|", "/", "\t")  # possible separators of labels in a cell
Column = str | int  # a name, or a number if there is no header
_ROWS_TO_GUESS = 1000
_ROWS_TO_COMPARE = 100  # with the first row, to see whether it is a header


def iter_table(
    path: PathLike,
    *,
    text: Column | Sequence[Column] = "text",
    labels: Column | None = "labels",
    separator: str | None = None,
    delimiter: str | None = None,
    encoding: str = UTF8,
    max_line_length: int = MAX_LINE_LENGTH,
    header: bool = True,
    quotes: bool = True,
    label_names: LabelNames | None = None,
) -> Iterator[tuple[str, list[str]]]:
    """Documents one at a time, for tables larger than memory.

    Parameters
    ----------
    path : path
        Plain, ``.gz`` or ``.bz2``.
    text : str or int, or list of these
        The column that holds the document, or several, such as ``["title", "body"]``, which are
        joined by newlines.
    labels : str or int
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
    header : bool, default=True
        Whether the first row has the column names. If not, columns are numbered from 1, and the
        first is the text and the second the labels, unless others are given.
    quotes : bool, default=True
        Whether quotes enclose cells, as spreadsheets write them. If not, they are characters like
        others, and every line is a row.
    label_names : sequence of str, mapping or path, optional
        Names of the labels, if the file has numbers, counted from 0, or codes. A text file has a
        name per line, or a code, a tab and a name.

    Yields
    ------
    text, labels : str and list of str

    Raises
    ------
    ValueError
        For a row with more or fewer cells than the first, an empty or unnamed label, broken quotes
        or too many characters, with file, line number and text. Empty lines are allowed only at the
        end.

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
        header=header,
        quotes=quotes,
        label_names=label_names,
    ):
        yield document.text, document.labels


def read_table(
    path: PathLike,
    *,
    text: Column | Sequence[Column] = "text",
    labels: Column | None = "labels",
    separator: str | None = None,
    delimiter: str | None = None,
    encoding: str = UTF8,
    max_line_length: int = MAX_LINE_LENGTH,
    header: bool = True,
    quotes: bool = True,
    label_names: LabelNames | None = None,
    id_field: str | None = None,
) -> Iterator[Document]:
    """Like :func:`iter_table`, with the ids in a column."""
    if separator == "":
        raise ValueError("separator must be a string of at least one character. Got ''.")
    table = _Table(path, _delimiter(path, delimiter), encoding, max_line_length, header, quotes)
    if not header:
        text = by_number(text, "text", "1")
        labels = None if labels is None else by_number(labels, "labels", "2")[0]
    if separator is None:
        separator = _COMMA if labels is None else table.guessed_separator(str(labels))
    names_of = names_by_label(label_names)
    first, rows = table.opened()
    is_data = header and looks_like_data(first, table.first_rows())
    columns = Columns(path, first, is_data, header)
    texts = [columns.number(name, "text") for name in field_names(text)]
    tagged = None if labels is None else columns.number(str(labels), "labels")
    id_column = None if id_field is None else columns.number(id_field, "id_field")
    if is_data:
        warn(
            f"The first row of {printable(path)} is read as column names, but looks like data: "
            f"{listed(first)}. If it is a document, use {argument('header', False)} and number the "
            "columns from 1.",
        )
    blank = 0
    for number, row in rows:
        if not row:
            blank = blank or number
            continue
        if blank:
            raise malformed(path, blank, "expected a row, got an empty line")
        if len(row) != len(first):
            problem = f"expected {len(first)} cells, got {len(row)}"
            if len(row) > len(first):
                problem += "; put cells that contain the delimiter in quotes"
            raise malformed(path, number, problem, repr(row[:100]))
        cell = "" if tagged is None else row[tagged]
        names = [name.strip() for name in cell.split(separator)] if cell.strip() else []
        if "" in names:
            problem = f"empty label in column {labels!r}, split at {separator!r}"
            raise malformed(path, number, problem, cell)
        names = named(names, names_of, path, number)
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


def guess_separator(path: PathLike, labels: str, delimiter: str | None, **options: Any) -> str:
    """The default separator of :func:`iter_table` for a file; `options` are others of it."""
    table = _Table(path, _delimiter(path, delimiter), **options)
    return table.guessed_separator(labels if table.header else by_number(labels, "labels", "2")[0])


def load_table(
    path: PathLike,
    *,
    text: Column | Sequence[Column] = "text",
    labels: Column = "labels",
    separator: str | None = None,
    delimiter: str | None = None,
    encoding: str = UTF8,
    max_line_length: int = MAX_LINE_LENGTH,
    header: bool = True,
    quotes: bool = True,
    label_names: LabelNames | None = None,
) -> Dataset:
    """Read documents and their label names; see :func:`iter_table` for the format.

    Parameters
    ----------
    path : path
        The file; ``.gz`` and ``.bz2`` are compressed.
    text : str or int, or list of these, default="text"
        The column of the document, or several, which are joined.
    labels : str or int, default="labels"
        The column of the labels.
    separator : str, optional
        Separator between the labels in a cell; see :func:`iter_table` for the default.
    delimiter : str, optional
        Separator between cells; by default a comma for ``.csv``, a tab for ``.tsv`` and ``.tab``.
    encoding : str, default="utf-8"
        Encoding of the file.
    max_line_length : int, default=4194304
        Maximum length of a row, in characters.
    header : bool, default=True
        Whether the first row has the column names. If not, columns are numbered from 1, and the
        first is the text and the second the labels, unless others are given.
    quotes : bool, default=True
        Whether quotes enclose cells, as spreadsheets write them. If not, they are characters like
        others, and every line is a row.
    label_names : sequence of str, mapping or path, optional
        Names of the labels, if the file has numbers, counted from 0, or codes. A text file has a
        name per line, or a code, a tab and a name.

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
        header=header,
        quotes=quotes,
        label_names=label_names,
    )
    return Dataset.from_documents(documents, printable(path))


def save_table(
    data: Dataset,
    path: PathLike,
    *,
    text: Column | Sequence[Column] = "text",
    labels: Column = "labels",
    separator: str = ",",
    delimiter: str | None = None,
    header: bool = True,
    quotes: bool = True,
) -> None:
    """Write a Dataset of documents as a table; label names must not contain the separator.

    With several text columns, the text is in the first, and the others are empty.

    Parameters
    ----------
    data : Dataset
        With `texts`.
    path : path
        The file; ``.gz`` and ``.bz2`` are compressed.
    text : str or int, or list of these, default="text"
        The column of the document, or several, which are joined.
    labels : str or int, default="labels"
        The column of the labels.
    separator : str, default=","
        Separator between the labels in a cell.
    delimiter : str, optional
        Separator between cells; by default a comma for ``.csv``, a tab for ``.tsv`` and ``.tab``.
    header : bool, default=True
        Whether to write column names. If not, columns are numbered from 1; those between are empty.
    quotes : bool, default=True
        Whether to enclose cells in quotes that need them. If not, such cells raise an error.

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
    if header:
        columns = [*field_names(text), str(labels)]
    else:
        columns = [*by_number(text, "text", "1"), *by_number(labels, "labels", "2")]
    with writing(path) as file:
        lines = io.TextIOWrapper(file, encoding="utf-8", newline="")
        # The default line end "\\r\\n" makes the writer quote cells that hold either character.
        style: Any = {} if quotes else {"quoting": csv.QUOTE_NONE, "quotechar": None}
        writer = csv.writer(lines, delimiter=_delimiter(path, delimiter), **style)
        width, first, last = len(columns), 0, len(columns) - 1
        if header:
            writer.writerow(columns)
        else:
            numbers = [_place(column) for column in columns]
            width, first, last = max(numbers) + 1, numbers[0], numbers[-1]
        for document, names in zip(data.texts, data.labels, strict=True):
            row = [""] * width
            row[first], row[last] = document, separator.join(str(name) for name in names)
            try:
                writer.writerow(row)
            except csv.Error:  # only without quotes
                raise ValueError(
                    f"A cell with a delimiter or a line end needs quotes. Got {row!r:.100}."
                ) from None
        lines.detach()  # flushes, without closing the file


def _place(column: str) -> int:
    if not column.isdecimal() or int(column) == 0:
        raise ValueError(f"Without a header, columns are numbers from 1. Got {column!r}.")
    return int(column) - 1


def _guessed_separator(cells: list[str], column: str | None) -> str:
    found = None if any(_COMMA in cell for cell in cells) else find_joined(cells)
    if found is None:
        return _COMMA
    warn(
        f"The labels in column {column!r} are split at {found.separator!r}, because in the first "
        f"{len(cells):,} rows {found} "
        f"Pass {argument('separator', found.separator)} to confirm this and silence the warning.",
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


@dataclass(frozen=True)
class _Table:
    """A file of rows, and how it is read."""

    path: PathLike
    delimiter: str
    encoding: str = UTF8
    max_line_length: int = MAX_LINE_LENGTH
    header: bool = True
    quotes: bool = True

    def opened(self) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
        """The names or numbers of the columns, and the rows."""
        rows = self._rows()
        first = next(rows, (1, []))
        if self.header:
            return first[1], rows
        return [str(number + 1) for number in range(len(first[1]))], chain([first], rows)

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Each row with the number of its first line."""
        path, most = self.path, self.max_line_length
        # Line ends within quotes belong to the cell.
        lines = read_lines(path, keep_ends=True, encoding=self.encoding, max_line_length=most)
        try:
            yield from csv_rows(lines, self.delimiter, most, quotes=self.quotes)
        except BrokenRow as row:
            problem = f"is not a row of a table: {row}"
            if self.quotes and '"' in row.text:
                way_out = f"use {argument('quotes', False)}"
                problem += f". If quotes are ordinary characters here, {way_out}"
            raise malformed(path, row.number, problem, row.text) from None

    def first_rows(self) -> list[list[str]]:
        """Some rows after the first; none for a pipe, which can be read only once."""
        if not os.path.isfile(self.path):
            return []
        return [row for _, row in islice(self._rows(), 1, 1 + _ROWS_TO_COMPARE)]

    def guessed_separator(self, labels: str) -> str:
        """What separates the labels of a cell in the column of this name."""
        if not os.path.isfile(self.path):
            return _COMMA  # a pipe can be read only once
        header, rows = self.opened()
        if header.count(labels) != 1:
            return _COMMA  # the reader raises the error
        column, first = header.index(labels), islice(rows, _ROWS_TO_GUESS)
        cells = [row[column] for _, row in first if len(row) == len(header)]
        return _guessed_separator(cells, labels)
