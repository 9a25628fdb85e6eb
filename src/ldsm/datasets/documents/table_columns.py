"""The columns of a table: by the names in its first row, or by number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..._storage.paths import PathLike
from ..._storage.text_files import malformed
from ..._wording import argument

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_MAX_NAME_WORDS = 8  # longer cells are not column names
_USUAL_NAMES = {"text", "body", "content", "title", "description", "id", "uri", "identifier"}
_USUAL_NAMES |= {"labels", "label", "tags", "tag"}


class Columns(NamedTuple):
    """The columns of a table."""

    path: PathLike
    header: list[str]  # names, or numbers from 1 if the table has no header
    is_data: bool = False  # whether the names look like a row
    has_names: bool = True

    def number(self, name: str, used_as: str) -> int:
        """The number of a column; `used_as` is the argument that names it."""
        path, header = self.path, self.header
        if header.count(name) == 1:
            return header.index(name)
        if not header:
            expected = "a header line with column names" if self.has_names else "rows"
            raise malformed(path, 1, f"is empty: expected {expected}")
        if not self.has_names:
            counted = "one column, 1" if len(header) == 1 else f"columns 1 to {len(header)}"
            problem = f"has {counted}, as it has no header. Got {name!r} for {argument(used_as)}"
            raise malformed(path, 1, problem)
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
        way_out = f"use {argument('header', False)} and number the columns from 1"
        if self.is_data:
            problem = f"has no column {name!r} and looks like data: {listed(header)}"
            raise malformed(path, 1, f"{problem}. If it is a row, {way_out}")
        names = listed(header)
        if set(name.split(",")) <= set(header):
            names += f" (use {argument(used_as)} once per column)"
        problem = f"has no column {name!r}, only {names}; use {argument(used_as)} to name another"
        raise malformed(path, 1, f"{problem}, or, if this line is a row, {way_out}")


def by_number(names: str | int | Sequence[str | int], usual: str, number: str) -> list[str]:
    """Columns of a table without a header, as texts; `usual` is the name that means `number`."""
    given = [names] if isinstance(names, str | int) else list(names)
    return [number if name == usual else str(name) for name in given]


def listed(header: list[str]) -> str:
    return ", ".join(repr(column[:40]) for column in header[:10])


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
