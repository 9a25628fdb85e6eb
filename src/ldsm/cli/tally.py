"""A summary of the data that a command has read, with warnings about likely mistakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .._wording import shortened
from ..datasets import Dataset
from ..datasets.documents.document import Document

_SHOWN = 10  # of the most frequent labels
_NAME_WIDTH = 30
_FEW_ROWS = 20
_MANY_UNLABELLED = 0.1  # share of the rows
_MANY_RARE = 0.5  # share of the labels


class Tally:
    """Counts of rows and labels; texts are compared by their hashes."""

    def __init__(self) -> None:
        self.n_rows = self.n_unlabelled = self.n_words = 0
        self.labels: Counter[Any] = Counter()
        self._first: dict[int, int] = {}  # hash of a text -> hash of its labels
        self._other_labels: set[int] = set()  # texts with differing labels
        self._has_texts = False

    def counted(
        self, documents: Iterable[Document], done: Callable[[Tally], None]
    ) -> Iterator[tuple[str, list[str]]]:
        """The texts with their labels; `done` is called after the last."""
        self._has_texts = True
        for text, labels, _ in documents:
            self._add(labels)
            self.n_words += text.count(" ") + 1
            key, its = hash(text), hash(frozenset(labels))
            if self._first.setdefault(key, its) != its:
                self._other_labels.add(key)
            yield text, labels
        done(self)

    @classmethod
    def of(cls, data: Dataset) -> Tally:
        """The counts of rows that are already in memory."""
        tally = cls()
        if data.texts is not None:
            documents = map(Document, data.texts, data.labels)
            for _ in tally.counted(documents, lambda _: None):
                pass
            return tally
        counts = np.bincount(data.Y.indices, minlength=data.n_labels)
        names = data.label_names
        for column in np.flatnonzero(counts).tolist():
            label = column if names is None else names[column]
            tally.labels[label] = int(counts[column])
        tally.n_rows = len(data)
        tally.n_unlabelled = int(np.sum(np.diff(data.Y.indptr) == 0))
        return tally

    def _add(self, labels: list[str]) -> None:
        self.n_rows += 1
        self.n_unlabelled += not labels
        self.labels.update(set(labels))

    def summary(self, n_held_out: int = 0) -> str:
        """One line about the data, so that mistakes are noticed."""
        per_row = self.labels.total() / max(1, self.n_rows)
        common = ", ".join(
            f"{shortened(str(label), _NAME_WIDTH)} {count:,}"
            for label, count in self.labels.most_common(_SHOWN)
        )
        words = f" of about {self.n_words / max(1, self.n_rows):,.0f} words"
        return (
            f"read {self.n_rows:,} rows{words if self._has_texts else ''} with "
            f"{len(self.labels):,} labels, {per_row:.2f} per row; "
            f"most frequent: {common or 'none'}"
            + (f"; {n_held_out:,} of the rows are held out" if n_held_out else "")
        )

    def oddities(self, *, of_all_rows: bool = True) -> Iterator[str]:
        """One sentence for each likely mistake in the data.

        Some are mistakes only in the complete training data (`of_all_rows`).
        """
        if of_all_rows and self.n_rows < _FEW_ROWS:
            yield f"there are only {self.n_rows:,} rows: expect poor accuracy"
        for label, count in self.labels.most_common(3):
            if of_all_rows and count == self.n_rows and self.n_rows > 1:
                yield f"every row has the label {shortened(str(label), _NAME_WIDTH)!r}"
        if self._has_texts and self.n_rows > 1 and len(self._first) == 1:
            yield "all texts are the same: is this the right column?"
        if self._other_labels:
            yield (f"{len(self._other_labels):,} texts occur more than once, with differing labels")
        if self.n_unlabelled > _MANY_UNLABELLED * self.n_rows:
            share = f"{self.n_unlabelled / self.n_rows:.0%}"
            yield (
                f"{self.n_unlabelled:,} rows ({share}) have no label: "
                "the model learns to predict none for them, and they count as misses in P; remove "
                "them if they are merely untagged"
            )
        once = sum(count == 1 for count in self.labels.values())
        if of_all_rows and once > _MANY_RARE * len(self.labels):
            yield (
                f"{once:,} of {len(self.labels):,} labels occur in only one row: too few to "
                "learn from (for texts, --min-tag-count 2 leaves them out)"
            )
