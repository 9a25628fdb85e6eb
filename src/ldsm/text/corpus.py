"""Read documents and their tags one at a time, so that none need stay in memory.

A corpus has one of three forms: texts and tags side by side, pairs of both, or a Dataset of texts.
It is read only once, so lists, packed strings, generators and open files all work.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sized
from itertools import islice, pairwise, zip_longest
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from .._storage.strings import is_unicode
from ..datasets.dataset import Dataset
from ..metrics.names import frame_rows

Item = TypeVar("Item")
Pair = tuple[str, list[str]]
_MISSING = object()
_FORMS = (
    "texts and tags must be given side by side, as (text, tags) pairs, as yielded by "
    "datasets.iter_jsonl(path), or as a Dataset of texts"
)


def read_texts(texts: Any) -> Iterator[str]:
    """The documents of a Dataset or of any iterable of str, one after the other."""
    if isinstance(texts, Dataset):
        texts = _texts_of(texts)
    if isinstance(texts, str | bytes):
        raise ValueError(
            "texts must be a list or another iterable of str, one for each document. "
            f"Got one {type(texts).__name__}: put a single document into a list."
        )
    if not isinstance(texts, Iterable):
        raise ValueError(f"texts must be an iterable of str. Got {texts!r}.")
    if _is_table(texts):
        raise ValueError(f"texts must be one column of str. Got {_table(texts)}: pass one column.")
    return (_checked_text(text, i) for i, text in enumerate(texts))


def read_pairs(texts: Any, tags: Any = None) -> Iterator[Pair]:
    """Documents with their tags, one after the other, from any of the three forms."""
    if isinstance(texts, Dataset):
        if tags is not None:
            raise ValueError("A Dataset includes its tags: tags must be omitted.")
        return _pairs_of(texts)
    documents = read_texts(texts) if tags is not None or isinstance(texts, str | bytes) else texts
    if tags is None:
        return _split_pairs(documents)
    if _is_table(tags):
        _check_indicators(tags)
    tags = tags if (rows := frame_rows(tags)) is None else rows
    if isinstance(tags, str | bytes) or not isinstance(tags, Iterable):
        raise ValueError(
            f"tags must be an iterable of lists of str, one list for each document. Got {tags!r}."
        )
    if isinstance(texts, Sized) and isinstance(tags, Sized) and len(texts) != len(tags):
        raise ValueError(
            f"texts and tags must have the same length. Got {len(texts)} and {len(tags)}."
        )
    return _zipped(documents, tags)


def in_chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of up to `size` items."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
        del chunk  # before the next one is read


def tags_of(data: Dataset) -> Iterator[list[str]]:
    """The tags of each row of a Dataset; labels without names are called by their numbers."""
    names = data.label_names
    if names is None:
        names = [str(i) for i in range(data.n_labels)]
    names = list(names)  # packed names would be decoded again for every document
    for start, stop in pairwise(data.Y.indptr.tolist()):
        yield [names[i] for i in data.Y.indices[start:stop].tolist()]


class TagCollector:
    """Passes documents on and keeps their tags as numbers, in order of appearance."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._pairs = pairs
        self._number: dict[str, int] = {}
        self._numbers = array("i")
        self._ends = array("q", [0])

    def texts(self) -> Iterator[str]:
        """The documents; the tags of each one that is taken are kept."""
        number = self._number
        for text, tags in self._pairs:
            # A tag given twice counts once.
            self._numbers.extend({number.setdefault(tag, len(number)) for tag in tags})
            self._ends.append(len(self._numbers))
            yield text

    def __len__(self) -> int:
        return len(self._ends) - 1

    def names(self) -> list[str]:
        """The tags so far, sorted."""
        return sorted(self._number)

    def matrix(self, min_count: int) -> tuple[sp.csr_array, list[str], dict[str, int]]:
        """0/1 matrix of documents x tags, the names of its tags, and the rare tags left out."""
        names = self.names()
        column = np.empty(len(names), dtype=np.int32)
        column[[self._number[name] for name in names]] = np.arange(len(names))
        indptr = np.array(self._ends, dtype=np.int64)
        ones = np.ones(len(self._numbers), dtype=np.int32)
        indices = column[np.array(self._numbers, dtype=np.int32)]
        Y = sp.csr_array((ones, indices, indptr), shape=(len(indptr) - 1, len(names)))
        Y.sort_indices()
        counts = np.bincount(Y.indices, minlength=len(names))
        rare = {names[i]: int(counts[i]) for i in np.flatnonzero(counts < min_count).tolist()}
        kept = np.flatnonzero(counts >= min_count)
        return Y[:, kept], [names[i] for i in kept.tolist()], rare


def _checked_text(text: Any, row: int) -> str:
    if not isinstance(text, str):
        raise ValueError(f"Document {row} must be a str. Got {_shown(text)}.")
    return text


def _checked_tags(tags: Any, row: int) -> list[str]:
    if isinstance(tags, str | bytes) or not isinstance(tags, Iterable):
        split = ": split it first" if isinstance(tags, str) else ""
        raise ValueError(
            f"The tags of document {row} must be a list of str. Got {_shown(tags)}{split}."
        )
    checked = []
    for tag in tags:
        if not isinstance(tag, str):
            raise ValueError(f"The tags of document {row} must be str. Got {_shown(tag)}.")
        if not is_unicode(tag):
            raise ValueError(
                f"The tags of document {row} must be valid Unicode. Got {_shown(tag)}, which holds "
                "a lone surrogate."
            )
        checked.append(str(tag))  # NumPy's str becomes Python's
    return checked


def _zipped(texts: Iterable[str], tags: Iterable[Any]) -> Iterator[Pair]:
    for row, (text, some) in enumerate(zip_longest(texts, tags, fillvalue=_MISSING)):
        if text is _MISSING or some is _MISSING:
            more, fewer = ("tags", "texts") if text is _MISSING else ("texts", "tags")
            raise ValueError(
                f"texts and tags must have the same length. Got {row} {fewer} and more {more}."
            )
        yield _checked_text(text, row), _checked_tags(some, row)


def _split_pairs(pairs: Any) -> Iterator[Pair]:
    if not isinstance(pairs, Iterable):
        raise ValueError(f"{_FORMS}. Got {_shown(pairs)}.")
    if hasattr(pairs, "columns"):
        raise ValueError(
            f"{_FORMS}. Got {_table(pairs)}: datasets.load_frame reads it, or pass two columns."
        )
    for row, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"{_FORMS}. Got {_shown(pair)} at document {row}, and no tags.")
        yield _checked_text(pair[0], row), _checked_tags(pair[1], row)


def _texts_of(data: Dataset) -> Iterable[str]:
    if data.texts is None:
        raise ValueError(f"The Dataset must hold texts. Got {data!r}.")
    return data.texts


def _pairs_of(data: Dataset) -> Iterator[Pair]:
    """The documents of a Dataset with their tags."""
    for row, (text, tags) in enumerate(zip(_texts_of(data), tags_of(data), strict=True)):
        yield _checked_text(text, row), tags


def _is_table(value: Any) -> bool:
    return len(getattr(value, "shape", ())) == 2 and not sp.issparse(value)


def _table(value: Any) -> str:
    """A table in words."""
    columns = list(getattr(value, "columns", ()))
    named = f" with columns {', '.join(map(repr, columns[:5]))}" if columns else ""
    more = " ..." if len(columns) > 5 else ""
    return f"a {type(value).__name__} of shape {tuple(value.shape)}{named}{more}"


def _check_indicators(table: Any) -> None:
    """Raise an error unless a table of tags has one column per tag, of 0 and 1."""
    values = np.asarray(table)
    if values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        raise ValueError(
            "tags must be one column of lists of str, or a table of 0 and 1 with a column per tag. "
            f"Got {_table(table)}: pass one column."
        )


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text[:60]}... ({type(value).__name__})" if len(text) > 60 else text
