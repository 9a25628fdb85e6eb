"""Documents from typed values: the cells of a Parquet or Feather file, or of a data frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..._storage.paths import PathLike
from ..._storage.strings import is_unicode
from ..._storage.text_files import malformed
from ..._wording import argument
from .document import Document, joined_fields
from .label_names import named


def read_records(
    records: Iterable[Sequence[Any]],
    source: PathLike,
    *,
    n_texts: int,
    separator: str | None,
    names: Mapping[str, str] | None,
) -> Iterator[Document]:
    """A document from each record: its texts, its labels, and its id.

    Missing values are empty texts, no labels and no id. Errors name the `source` and the record,
    counted from 1.
    """
    if separator == "":
        raise ValueError("separator must be a string of at least one character. Got ''.")
    for row, (*texts, labels, identifier) in enumerate(records, 1):
        parts = [_text(value, source, row) for value in texts[:n_texts]]
        own = _labels(labels, separator, source, row)
        yield Document(
            joined_fields(parts),
            named(own, names, source, row),
            None if _is_missing(identifier) else str(identifier),
        )


def column_number(names: Sequence[str], name: Any, used_as: str, source: PathLike) -> int:
    """The number of a column; `used_as` is the argument that names it."""
    if list(names).count(name) == 1:
        return list(names).index(name)
    listed = ", ".join(repr(str(one)[:40]) for one in names[:10]) or "nothing"
    problem = f"has no column {name!r}, only {listed}; use {argument(used_as)} to name another"
    if name in names:
        problem = f"has several columns {name!r}; use {argument(used_as)} to name another"
    raise ValueError(f"{source} {problem}.")


def _text(value: Any, source: PathLike, row: int) -> str:
    if isinstance(value, str):
        return value
    if _is_missing(value):
        return ""
    raise malformed(source, row, f"a text must be a string. Got {_shown(value)}")


def _labels(value: Any, separator: str | None, source: PathLike, row: int) -> list[str]:
    if _is_missing(value):
        return []
    if isinstance(value, str):
        if separator is None:
            return [value] if value.strip() else []
        value = [part.strip() for part in value.split(separator)] if value.strip() else []
        if "" in value:
            problem = f"an empty label, split at {separator!r}"
            raise malformed(source, row, problem, separator.join(value))
    if hasattr(value, "tolist"):  # an array, or a number of NumPy
        value = value.tolist()
    elif hasattr(value, "to_list"):
        value = value.to_list()
    labels = [_label(item) for item in (value if isinstance(value, list | tuple) else [value])]
    found = [label for label in labels if label is not None]
    if len(found) < len(labels):
        problem = f"labels must be strings or whole numbers. Got {_shown(value)}"
        raise malformed(source, row, problem)
    return found


def _label(value: Any) -> str | None:
    """A label as a text; None for anything else. pandas turns whole numbers into floats."""
    if isinstance(value, str):
        return str(value) if value and is_unicode(value) else None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _is_missing(value: Any) -> bool:
    if isinstance(value, float):
        return value != value
    return value is None or type(value).__name__ == "NAType"  # of pandas


def _shown(value: Any) -> str:
    return f"{value!r:.60} ({type(value).__name__})"
