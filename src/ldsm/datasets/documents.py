"""Documents with label names, as files of texts hold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .._storage.paths import PathLike, printable
from .dataset import Dataset

# Between the fields of one text: no word or sequence of words goes on across it.
_BETWEEN_FIELDS = "\n"


class Document(NamedTuple):
    """A text with its labels and, if asked for, its id."""

    text: str
    labels: list[str]
    id: str | None = None


def field_names(text: str | Sequence[str]) -> list[str]:
    """The fields that hold the text, of which there may be several."""
    names = [text] if isinstance(text, str) else list(text)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"text must name one field or several. Got {text!r}.")
    return names


def joined_fields(parts: Sequence[str]) -> str:
    """One text of several fields, such as title and body; empty ones leave nothing behind."""
    return parts[0] if len(parts) == 1 else _BETWEEN_FIELDS.join(filter(None, parts))


def collect(documents: Iterable[Document], path: PathLike) -> Dataset:
    """A Dataset of all documents of a file."""
    everything = list(documents)
    texts = [document.text for document in everything]
    labels = [document.labels for document in everything]
    return Dataset.from_texts(texts, labels, source=printable(path))
