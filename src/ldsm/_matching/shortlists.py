"""Shortlists: the candidates of some rows, with the scores of the matchers that know them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._arrays.lists import taken_lists
from .._execution.threads import state_of

Floats = NDArray[np.float32]
SHORTLIST = 100  # labels per row, unless more are found worth having
_OF_ROWS = ("most_telling", "evidence")


@dataclass(frozen=True, eq=False)
class Shortlists:
    """The shortlist of each row, labels ascending, with the scores of the matchers.

    A score is None if there is no such matcher.
    """

    indptr: NDArray[np.int64]
    labels: NDArray[np.int32]
    tree_scores: Floats
    index_scores: Floats | None = None
    sub_scores: Floats | None = None  # by the index of sub-words
    coverages: Floats | None = None  # how much of the label's name the row has
    cosines: Floats | None = None  # of the row with the name
    best_cosine: Floats | None = None  # the largest of any label of the row
    # By row: the evidence of its best feature, sub-words aside, and of all features together.
    most_telling: Floats | None = None
    evidence: Floats | None = None

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self, "least_evidence")

    @cached_property
    def least_evidence(self) -> np.float32:
        """The evidence of the row that has least."""
        assert self.evidence is not None
        return np.min(self.evidence, initial=np.float32(np.inf))

    @classmethod
    def joined(cls, parts: Sequence[Shortlists]) -> Shortlists:
        """The lists of consecutive rows."""
        if len(parts) == 1:
            return parts[0]
        ends = np.cumsum([0] + [part.indptr[-1] for part in parts[:-1]])
        indptr = [part.indptr[1:] + end for part, end in zip(parts, ends, strict=True)]
        first, *others = (field.name for field in fields(cls))
        arrays: dict[str, Any] = {first: np.concatenate([np.zeros(1, np.int64), *indptr])}
        for name in others:
            values = [getattr(part, name) for part in parts]
            arrays[name] = None if values[0] is None else np.concatenate(values)
        return cls(**arrays)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Those that there are, by name."""
        named = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: values for name, values in named if values is not None}

    def by_pair(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """The arrays with an entry for each label of a list, by name."""
        of_rows = ("indptr", *_OF_ROWS)
        for name in [field.name for field in fields(self) if field.name not in of_rows]:
            if (values := getattr(self, name)) is not None:
                yield name, values

    def take(self, rows: NDArray[np.int64]) -> Shortlists:
        """The lists of the given rows, in their order."""
        indptr, entries = taken_lists(self.indptr, rows)
        changes: dict[str, Any] = {name: values[entries] for name, values in self.by_pair()}
        for name in _OF_ROWS:
            if (values := getattr(self, name)) is not None:
                changes[name] = values[rows]
        return replace(self, **{**changes, "indptr": indptr})

    def with_rows(self, rows: NDArray[np.int64], lists: Shortlists) -> Shortlists:
        """With other lists for some rows."""
        order = np.arange(len(self.indptr) - 1)
        order[rows] = len(order) + np.arange(len(rows))
        return Shortlists.joined([self, lists]).take(order)

    def brief(self) -> Shortlists:
        """Without the scores that only a blend needs."""
        return Shortlists(self.indptr, self.labels, self.tree_scores, coverages=self.coverages)

    def without_scores(self) -> Shortlists:
        """The same labels with scores of 0, as on the list of a row without evidence."""
        scores = [field.name for field in fields(self)][2:]
        known = {name: values for name in scores if (values := getattr(self, name)) is not None}
        changes: dict[str, Any] = {name: np.zeros_like(values) for name, values in known.items()}
        return replace(self, **changes)

    def tree_matrix(self, n_labels: int) -> sp.csr_array:
        """The trees' scores as a matrix of rows x labels."""
        shape = (len(self.indptr) - 1, n_labels)
        matrix = sp.csr_array((self.tree_scores, self.labels, self.indptr), shape=shape, copy=True)
        matrix.eliminate_zeros()
        return matrix
