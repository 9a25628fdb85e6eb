"""Where the labels of a model go when they get other columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .forest import Forest, narrowed

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NewColumns:
    """Where each old column goes."""

    place: Numbers  # by old column: the new one, -1 for none
    n_labels: int

    @property
    def source(self) -> Numbers:
        """By new column: the old one, -1 for a new label."""
        source = np.full(self.n_labels, -1, dtype=np.int64)
        kept = np.flatnonzero(self.place >= 0)
        source[self.place[kept]] = kept
        return source

    @cached_property
    def keeps_order(self) -> bool:
        """Whether labels that stay follow each other as before."""
        return bool(np.all(np.diff(self.place[self.place >= 0]) > 0))

    @cached_property
    def only_adds(self) -> bool:
        """Whether all labels stay, in their order: then only their numbers change."""
        return self.keeps_order and bool(np.all(self.place >= 0))

    def taken(self, values: NDArray[Any], fill: Any) -> NDArray[Any]:
        """Values by new column; `fill` for new labels."""
        source = self.source
        return np.where(source >= 0, values[source], np.asarray(fill, dtype=values.dtype))

    def within(
        self, offsets: Numbers, labels: NDArray[Any], values: NDArray[Any]
    ) -> tuple[Numbers, NDArray[Any], NDArray[Any]]:
        """Lists of labels with their values; labels ascend within a list."""
        if self.only_adds:
            return offsets, narrowed(self.place.astype(np.int32), self.n_labels - 1)[labels], values
        columns = self.place[labels]
        kept = np.flatnonzero(columns >= 0)
        new_offsets = np.concatenate([[0], np.cumsum(columns >= 0)])[offsets]
        columns, values = columns[kept], values[kept]
        if not self.keeps_order:
            order = _sorting(new_offsets, columns)
            columns, values = columns[order], values[order]
        chosen = narrowed(columns.astype(np.int32), self.n_labels - 1)
        return new_offsets.astype(np.int64), chosen, values


def _sorting(offsets: Numbers, columns: Numbers) -> Numbers:
    """The order that makes columns ascend within their lists, most of which do already."""
    lists = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    falls = (columns[1:] < columns[:-1]) & (lists[1:] == lists[:-1])
    mixed = np.zeros(len(offsets) - 1, dtype=bool)
    mixed[lists[1:][falls]] = True
    entries = np.flatnonzero(mixed[lists])
    order = np.arange(len(columns))
    order[entries] = entries[np.lexsort((columns[entries], lists[entries]))]
    return order


@dataclass(frozen=True, eq=False)
class Moved:
    """Where each label goes that the matchers know: labels first, then those that were dropped."""

    columns: NewColumns  # of the labels alone
    known: NewColumns
    bins: NDArray[np.bool_] | None  # which entries of the leaves stay; None: all of labels that do
    in_indexes: bool  # whether dropped labels stay in the indexes

    @classmethod
    def without_dropped(cls, forest: Forest, columns: NewColumns) -> Moved:
        place = np.append(columns.place, np.full(forest.n_dropped, -1))
        return cls(columns, NewColumns(place, columns.n_labels), None, False)

    @property
    def n_labels(self) -> int:
        return self.columns.n_labels

    @property
    def n_dropped(self) -> int:
        return self.known.n_labels - self.n_labels

    @cached_property
    def indexed(self) -> NewColumns:
        """The same for an index."""
        if self.in_indexes:
            return self.known
        place = np.where(self.known.place < self.n_labels, self.known.place, -1)
        return NewColumns(place, self.n_labels)

    def places(self, forest: Forest) -> NDArray[np.int32]:
        """The places of the labels in their first order, if that is not their order now."""
        before = forest.places if len(forest.places) else np.arange(forest.n_known)
        source = self.known.source
        if np.any(source < 0):
            return np.zeros(0, np.int32)
        order = np.argsort(before[source], kind="stable")
        places = np.empty(len(order), dtype=np.int32)
        places[order] = np.arange(len(order))
        same = not self.n_dropped and np.array_equal(places, np.arange(len(places)))
        return places[:0] if same else places
