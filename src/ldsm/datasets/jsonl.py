"""Documents with label names as JSON Lines: one object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .._storage.paths import PathLike, printable
from .._storage.strings import is_unicode
from .._storage.text_files import UTF8, malformed, read_lines, writing
from .dataset import Dataset


def iter_jsonl(
    path: PathLike,
    *,
    text: str = "text",
    labels: str | None = "labels",
    encoding: str = UTF8,
) -> Iterator[tuple[str, list[str]]]:
    """Documents one at a time, for corpora larger than memory.

    Parameters
    ----------
    path : path
        One JSON object per line; plain, ``.gz`` or ``.bz2``.
    text, labels : str
        The fields that hold the document and the list of its label names. A single string is one
        label; whole numbers are read as strings. Other fields are ignored. None for `labels`:
        documents without labels.
    encoding : str, default="utf-8"

    Yields
    ------
    text, labels : str and list of str

    Raises
    ------
    ValueError
        For anything else, with file, line number and text. Empty lines are allowed only at the end.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("notes.jsonl").write_text('{"body": "cod quota", "tags": ["law", "fish"]}\\n')
    >>> list(iter_jsonl("notes.jsonl", text="body", labels="tags"))
    [('cod quota', ['law', 'fish'])]
    """
    blank = 0
    for number, line in read_lines(path, encoding=encoding):
        if not line.strip():
            blank = blank or number
            continue
        if blank:
            raise malformed(path, blank, "expected a JSON object, got an empty line")
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise malformed(path, number, f"is not JSON: {error}", line) from None
        if not isinstance(record, dict):
            raise malformed(path, number, "expected a JSON object", line)
        for field in (text, labels):
            if field is not None and field not in record:
                raise malformed(path, number, f"has no field {field!r}", line)
        if not isinstance(record[text], str):
            raise malformed(path, number, f"field {text!r} must be a string", line)
        names = [] if labels is None else _label_names(record[labels])
        if names is None:
            raise malformed(
                path, number, f"field {labels!r} must be a list of strings or whole numbers", line
            )
        if not all(map(is_unicode, names)):
            problem = f"field {labels!r} holds a lone surrogate, which is not valid Unicode"
            raise malformed(path, number, problem, line)
        yield record[text], names


def load_jsonl(
    path: PathLike, *, text: str = "text", labels: str = "labels", encoding: str = UTF8
) -> Dataset:
    """Read documents and their label names; see :func:`iter_jsonl` for the format.

    Returns
    -------
    Dataset
        With `texts`; its `label_names` are those of the file, sorted.
    """
    return collect(iter_jsonl(path, text=text, labels=labels, encoding=encoding), path)


def save_jsonl(
    data: Dataset, path: PathLike, *, text: str = "text", labels: str = "labels"
) -> None:
    """Write a Dataset of documents as JSON Lines.

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
    with writing(path) as file:
        for document, names in zip(data.texts, data.labels, strict=True):
            record = {text: document, labels: [str(name) for name in names]}
            file.write(json.dumps(record, ensure_ascii=False).encode("utf-8") + b"\n")


def collect(documents: Iterator[tuple[str, list[str]]], path: PathLike) -> Dataset:
    """A Dataset of all documents."""
    pairs = list(documents)
    texts, labels = [text for text, _ in pairs], [names for _, names in pairs]
    return Dataset.from_texts(texts, labels, source=printable(path))


def _label_names(value: Any) -> list[str] | None:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        return None
    # bool is an int in Python, but "true" is not meant as a label.
    if any(isinstance(item, bool) or not isinstance(item, (str, int)) for item in value):
        return None
    return [str(item) for item in value]
