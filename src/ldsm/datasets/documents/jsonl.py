"""Documents with label names as JSON: one object per line, or an array of objects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from ..._storage.paths import PathLike, printable
from ..._storage.strings import is_unicode
from ..._storage.syntax.json_arrays import array_items
from ..._storage.text_files import (
    MAX_LINE_LENGTH,
    UTF8,
    malformed,
    read_pieces,
    whole_lines,
    writing,
)
from ..._wording import argument
from ..dataset import Dataset
from .document import Document, field_names, joined_fields
from .label_names import LabelNames, named, names_by_label


def iter_jsonl(
    path: PathLike,
    *,
    text: str | Sequence[str] = "text",
    labels: str | None = "labels",
    encoding: str = UTF8,
    max_line_length: int = MAX_LINE_LENGTH,
    label_names: LabelNames | None = None,
) -> Iterator[tuple[str, list[str]]]:
    """Documents one at a time, for corpora larger than memory.

    Parameters
    ----------
    path : path
        One JSON object per line, or an array of objects; plain, ``.gz`` or ``.bz2``.
    text : str or list of str
        The field that holds the document, or several, such as ``["title", "body"]``, which are
        joined by newlines.
    labels : str
        The field that holds the list of label names. A single string is one label; whole numbers
        are read as strings. None: documents without labels. Other fields are ignored.
    encoding : str, default="utf-8"
        Encoding of the file.
    max_line_length : int, default=4194304
        Maximum length of a line or array item, in characters.
    label_names : sequence of str, mapping or path, optional
        Names of the labels, if the file has numbers, counted from 0, or codes. A text file has a
        name per line, or a code, a tab and a name.

    Yields
    ------
    text, labels : str and list of str

    Raises
    ------
    ValueError
        For malformed input, with file, line number and text. Empty lines are allowed only at the
        end.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("notes.jsonl").write_text('{"body": "cod quota", "tags": ["law", "fish"]}\\n')
    >>> list(iter_jsonl("notes.jsonl", text="body", labels="tags"))
    [('cod quota', ['law', 'fish'])]
    """
    for document in read_jsonl(
        path,
        text=text,
        labels=labels,
        encoding=encoding,
        max_line_length=max_line_length,
        label_names=label_names,
    ):
        yield document.text, document.labels


def read_jsonl(
    path: PathLike,
    *,
    text: str | Sequence[str] = "text",
    labels: str | None = "labels",
    encoding: str = UTF8,
    max_line_length: int = MAX_LINE_LENGTH,
    label_names: LabelNames | None = None,
    id_field: str | None = None,
) -> Iterator[Document]:
    """Like :func:`iter_jsonl`, with the ids in a field: strings or numbers."""
    texts, names_of = field_names(text), names_by_label(label_names)
    for number, line, record in json_records(path, encoding, max_line_length):
        if not isinstance(record, dict):
            raise malformed(path, number, "expected a JSON object", line)
        for field in texts:
            _check_field(path, number, line, record, field, "text")
            if not isinstance(record[field], str):
                raise malformed(path, number, f"field {field!r} must be a string", line)
        names: list[str] | None = []
        if labels is not None:
            _check_field(path, number, line, record, labels, "labels")
            names = _label_names(record[labels])
        if names is None:
            raise malformed(
                path, number, f"field {labels!r} must be a list of strings or whole numbers", line
            )
        if not all(map(is_unicode, names)):
            problem = f"field {labels!r} holds a lone surrogate, which is not valid Unicode"
            raise malformed(path, number, problem, line)
        name = None
        if id_field is not None:
            _check_field(path, number, line, record, id_field, "id_field")
            name = record[id_field]
            if isinstance(name, bool) or not isinstance(name, str | int | float):
                problem = f"field {id_field!r} must be a string or a number"
                raise malformed(path, number, problem, line)
        yield Document(
            joined_fields([record[field] for field in texts]),
            named(names, names_of, path, number),
            None if name is None else str(name),
        )


def load_jsonl(
    path: PathLike,
    *,
    text: str | Sequence[str] = "text",
    labels: str = "labels",
    encoding: str = UTF8,
    max_line_length: int = MAX_LINE_LENGTH,
    label_names: LabelNames | None = None,
) -> Dataset:
    """Read documents and their label names; see :func:`iter_jsonl` for the format.

    Parameters
    ----------
    path : path
        The file; ``.gz`` and ``.bz2`` are compressed.
    text : str or list of str, default="text"
        The field of the document, or several, which are joined.
    labels : str, default="labels"
        The field of the labels.
    encoding : str, default="utf-8"
        Encoding of the file.
    max_line_length : int, default=4194304
        Maximum length of a line or array item, in characters.
    label_names : sequence of str, mapping or path, optional
        Names of the labels, if the file has numbers, counted from 0, or codes. A text file has a
        name per line, or a code, a tab and a name.

    Returns
    -------
    Dataset
        With `texts`; its `label_names` are those of the file, sorted.
    """
    documents = read_jsonl(
        path,
        text=text,
        labels=labels,
        encoding=encoding,
        max_line_length=max_line_length,
        label_names=label_names,
    )
    return Dataset.from_documents(documents, printable(path))


def save_jsonl(
    data: Dataset,
    path: PathLike,
    *,
    text: str | Sequence[str] = "text",
    labels: str = "labels",
) -> None:
    """Write a Dataset of documents as JSON Lines.

    With several text fields, the text is in the first, and the others are empty.

    Parameters
    ----------
    data : Dataset
        With `texts`.
    path : path
        The file; ``.gz`` and ``.bz2`` are compressed.
    text : str or list of str, default="text"
        The field of the document, or several, which are joined.
    labels : str, default="labels"
        The field of the labels.

    Examples
    --------
    >>> from pathlib import Path
    >>> save_jsonl(Dataset.from_texts(["to be"], [["b", "a"]]), "notes.jsonl")
    >>> Path("notes.jsonl").read_text()
    '{"text": "to be", "labels": ["a", "b"]}\\n'
    >>> data = load_jsonl("notes.jsonl")
    >>> data.texts, data.labels, data.label_names
    (['to be'], [['a', 'b']], ['a', 'b'])
    """
    if data.texts is None:
        raise ValueError("This format holds texts, but the Dataset has only features.")
    first, *others = field_names(text)
    with writing(path) as file:
        for document, names in zip(data.texts, data.labels, strict=True):
            record: dict[str, Any] = {first: document, **dict.fromkeys(others, "")}
            record[labels] = [str(name) for name in names]
            file.write(json.dumps(record, ensure_ascii=False).encode("utf-8") + b"\n")


def json_records(
    path: PathLike, encoding: str, max_line_length: int
) -> Iterator[tuple[int, str, Any]]:
    """The JSON values of a file, each with its line number and text."""
    pieces = read_pieces(path, encoding)
    first = next((piece for piece in pieces if piece[1].strip()), None)
    if first is None:
        return
    if first[1].lstrip().startswith("["):
        yield from array_items(path, chain([first], pieces), max_line_length)
        return
    blank = 1 if first[0] > 1 else 0
    for number, text in whole_lines(path, chain([first], pieces), max_line_length):
        line = text.removesuffix("\n").removesuffix("\r")
        if not line.strip():
            blank = blank or number
            continue
        if blank:
            raise malformed(path, blank, "expected a JSON object, got an empty line")
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            problem = f"is not JSON, one object per line or an array of objects: {error}"
            raise malformed(path, number, problem, line) from None
        yield number, line, value


def _check_field(
    path: PathLike, number: int, line: str, record: dict[str, Any], field: str, used_as: str
) -> None:
    if field not in record:
        listed = ", ".join(repr(key[:40]) for key in list(record)[:10]) or "nothing"
        problem = f"has no field {field!r}, only {listed}; use {argument(used_as)} to name another"
        raise malformed(path, number, problem, line)


def _label_names(value: Any) -> list[str] | None:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        return None
    # bool is an int in Python, but "true" is not a label.
    if any(isinstance(item, bool) or not isinstance(item, (str, int)) for item in value):
        return None
    return [str(item) for item in value]
