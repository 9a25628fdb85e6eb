"""Shortlists: each row's candidates, by the trees, by indexes of features and by labels' names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from .._execution.executor import Control, Executor
from .._execution.threads import CancelFlag
from .._features.blocks import Blocks
from .._trees.forest import Forest
from .feature_index import FeatureIndex, FoldedIndex
from .names import NameIndex

_CHUNK = 512  # rows; a multiple of 8, so that chunks of packed bits start at whole bytes
Floats = NDArray[np.float32]


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
    # By row: how much its most telling feature, sub-words apart, and all features tell of labels.
    most_telling: Floats | None = None
    evidence: Floats | None = None

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

    def by_pair(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """The arrays with an entry for each label of a list, by name."""
        of_rows = ("indptr", "most_telling", "evidence")
        for name in [field.name for field in fields(self) if field.name not in of_rows]:
            if (values := getattr(self, name)) is not None:
                yield name, values

    def brief(self) -> Shortlists:
        """Without the scores that only a blend needs."""
        return Shortlists(self.indptr, self.labels, self.tree_scores, coverages=self.coverages)

    def without_scores(self) -> Shortlists:
        """The same labels, as they would stand on the list of a row that nothing is known of."""
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


def match(
    forest: Forest,
    x: Blocks,
    length: int,
    index: FeatureIndex | None = None,
    *,
    by_rows: bool,
    sub_index: FeatureIndex | None = None,
    allowed: NDArray[np.uint8] | None = None,
    cancel: CancelFlag | None = None,
    **others: Any,
) -> Shortlists:
    """The shortlists of new rows, at most `length` labels; `others`: see ``_core.Matchers``."""
    indexes, sub_indexes = ([] if one is None else [one] for one in (index, sub_index))
    known = _Known(indexes, sub_indexes, **others)
    return _matched(forest, x, length, known, by_rows, allowed, cancel)


@dataclass(frozen=True)
class _Known:
    """What ``_core.Matchers`` are made of."""

    indexes: Sequence[FeatureIndex]
    sub_indexes: Sequence[FeatureIndex]
    telling_sub_words: NDArray[np.uint8] | None = None
    names: NameIndex | None = None
    match_names: bool = False
    unseen: NDArray[np.uint8] | None = None


def _matched(
    forest: Forest,
    x: Blocks,
    length: int,
    known: _Known,
    by_rows: bool,
    allowed: NDArray[np.uint8] | None,
    cancel: CancelFlag | None,
    **masks: Any,
) -> Shortlists:
    # Words that were learned after the trees had grown are known to the index alone.
    own, indexed = x.read_by("trees").leading(forest.n_features), None
    if known.indexes and len(known.indexes[0].units) != forest.n_features:
        indexed = x.read_by("index").checked
    named, sub_words = known.names is not None, None
    if named or known.sub_indexes:
        sub_words = x.read_by("sub_index").checked
    rows = _core.MatchRows(own.checked, indexed, sub_words, **masks)
    matchers = _core.Matchers(**vars(known))
    found = _core.shortlists(forest, by_rows, rows, matchers, length, allowed, cancel)
    indptr, labels, tree_scores, index_scores, sub_scores, coverages, cosines, *of_rows = found
    best, most_telling, evidence = of_rows
    return Shortlists(
        indptr,
        labels,
        tree_scores,
        index_scores if known.indexes else None,
        sub_scores if known.sub_indexes else None,
        coverages if named else None,
        cosines if named else None,
        np.repeat(best, np.diff(indptr)) if named else None,
        most_telling,
        evidence,
    )


@dataclass(frozen=True)
class Matchers:
    """What finds labels besides the trees."""

    index: FoldedIndex | None = None
    sub_index: FoldedIndex | None = None
    names: NameIndex | None = None
    match_names: bool = False  # whether names find labels, or only score those that others find
    telling_sub_words: NDArray[np.uint8] | None = None  # 1 for each that counts as evidence

    @property
    def parts(self) -> dict[str, Any]:
        """What new rows are matched by, by name."""
        folded = {"index": self.index, "sub_index": self.sub_index}
        return {name: of and of.whole for name, of in folded.items()} | {"names": self.names}


@dataclass(frozen=True, eq=False)
class OutOfBag:
    """Matches training rows by what has never seen them: trees out of bag, indexes out of fold."""

    forest: Forest
    x: Blocks
    seed: int
    subsample: float
    by_rows: bool
    executor: Executor
    allowed: NDArray[np.uint8] | None = None  # 1 for each label that a list may hold; None: all

    def match(
        self,
        length: int,
        matchers: Matchers,
        rows: NDArray[np.int64] | None = None,
    ) -> Shortlists:
        """The shortlists of some rows, or of all: then with the scores that all rows need.

        A row that every tree saw has no tree scores.
        """
        n_rows, n_trees = self.x.n_rows, self.forest.n_trees
        # One bit per row and tree, to keep the masks of a large forest small.
        masks = (_core.bag_mask(self.seed, t, n_rows, self.subsample) for t in range(n_trees))
        bags = np.stack([np.packbits(self._chosen(mask, rows)) for mask in masks])
        folded = matchers.index or matchers.sub_index
        task = _OutOfBagTask(
            self.forest,
            self.x if rows is None else self.x.take(rows),
            bags,
            None if folded is None else self._chosen(folded.folds, rows),
            matchers,
            length,
            self.by_rows,
            self.allowed,
            brief=rows is None,
        )
        chunks = range(-(-task.x.n_rows // _CHUNK))
        return Shortlists.joined(self.executor.map(task, chunks, name="shortlist chunk"))

    @staticmethod
    def _chosen(numbers: NDArray[Any], rows: NDArray[np.int64] | None) -> NDArray[Any]:
        return numbers if rows is None else numbers[rows]


@dataclass(frozen=True, eq=False)
class _OutOfBagTask:
    """Matches a chunk of training rows, by its number."""

    forest: Forest
    x: Blocks
    bags: NDArray[np.uint8]  # bits, trees x rows: which have seen which
    folds: NDArray[np.uint8] | None
    matchers: Matchers
    length: int
    by_rows: bool
    allowed: NDArray[np.uint8] | None
    brief: bool  # without the scores that only a blend needs

    def __call__(self, chunk: int, control: Control) -> Shortlists:
        start, stop = chunk * _CHUNK, min((chunk + 1) * _CHUNK, self.x.n_rows)
        bags = self.bags[:, start // 8 : (stop + 7) // 8]
        matchers = self.matchers
        indexes, sub_indexes = (
            () if index is None else index.parts for index in (matchers.index, matchers.sub_index)
        )
        known = _Known(
            indexes,
            sub_indexes,
            matchers.telling_sub_words,
            matchers.names,
            matchers.match_names,
        )
        lists = _matched(
            self.forest,
            self.x.rows(start, stop),
            self.length,
            known,
            self.by_rows,
            self.allowed,
            control.cancel,
            skip=np.ascontiguousarray(np.unpackbits(bags, axis=1, count=stop - start).T),
            fold=None if self.folds is None else self.folds[start:stop],
        )
        return lists.brief() if self.brief else lists
