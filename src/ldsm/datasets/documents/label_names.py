"""Names for labels that a file gives as numbers or codes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..._storage.paths import PathLike
from ..._storage.syntax.csv_rows import BrokenRow, csv_rows
from ..._storage.text_files import format_suffix, malformed, read_lines
from ..._wording import argument
from .table_columns import DELIMITERS

LabelNames = Sequence[str] | Mapping[str, str] | Mapping[int, str] | PathLike


def names_by_label(names: LabelNames | None) -> dict[str, str] | None:
    """The name of each number, counted from 0, or of each code; None if there are no names.

    A file has a name per line, or a code and its name, as two columns of a table or separated by a
    tab.

    Examples
    --------
    >>> names_by_label(["fish", "law"])
    {'0': 'fish', '1': 'law'}
    """
    if names is None:
        return None
    if isinstance(names, Mapping):
        rows: Iterable[tuple[str, str]] = ((str(code), name) for code, name in names.items())
    elif isinstance(names, str | os.PathLike):
        rows = _of_file(names)
    else:
        rows = ((str(number), name) for number, name in enumerate(names))
    found: dict[str, str] = {}
    for code, name in rows:
        if code in found or not name:
            problem = "two names" if code in found else "no name"
            raise ValueError(f"label_names must have one name per label. Got {problem} for {code}.")
        found[code] = name
    if not found:
        raise ValueError("label_names must have at least one name. Got none.")
    return found


def named(
    labels: list[str], names: Mapping[str, str] | None, path: PathLike, row: int
) -> list[str]:
    """The names of a row's labels; an error with file and line for one that has no name."""
    if names is None:
        return labels
    for label in labels:
        if label not in names:
            codes = list(names)
            known = f"{len(codes):,} labels, {codes[0]} to {codes[-1]}"
            raise malformed(path, row, f"{argument('label_names')} names {known}. Got {label!r}")
    return [names[label] for label in labels]


def _of_file(path: PathLike) -> Iterator[tuple[str, str]]:
    rows = [(number, row) for number, row in _rows(path) if any(row)]
    width = len(rows[0][1]) if rows else 1
    for place, (number, row) in enumerate(rows):
        if len(row) != width or width > 2:
            expected = "a name per line, or a code and a name"
            raise malformed(path, number, f"expected {expected}", " | ".join(row))
        if place != number - 1 and width == 1:
            raise malformed(path, number - 1, "expected a name, got an empty line")
        yield (row[0], row[1]) if width == 2 else (str(place), row[0])


def _rows(path: PathLike) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line, stripped."""
    delimiter = DELIMITERS.get(format_suffix(path))
    if delimiter is None:
        for number, line in read_lines(path):
            yield number, [cell.strip() for cell in line.split("\t")]
        return
    try:
        lines = read_lines(path, keep_ends=True)
        for number, row in csv_rows(lines, delimiter):
            yield number, [cell.strip() for cell in row]
    except BrokenRow as broken:
        raise malformed(path, broken.number, str(broken), broken.text) from None
