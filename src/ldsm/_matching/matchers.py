"""The registry of matchers, and how they, with the trees, make the shortlists of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._execution.executor import Control, Executor
from .._execution.threads import CancelFlag, state_of
from .._features.blocks import Blocks
from .._trees.forest import Forest
from .feature_index import FeatureIndex, SubWordIndex
from .meaning import Meaning
from .names import NameIndex
from .part import Matcher, Part, Ranking, TrainedMatcher
from .shortlists import Shortlists

# In the order in which they are tried.
MATCHERS: Mapping[str, type[Matcher]] = {
    "index": FeatureIndex,
    "sub_index": SubWordIndex,
    "names": NameIndex,
    "meaning": Meaning,
}
UNSEEN_LABELS = 20  # without a training row, that a matcher adds to a list; as in the core
# Rows per part: few for a small set, so that all threads get some. Multiples of 8, so that chunks
# of packed bits start at whole bytes.
_FEW_ROWS, _MANY_ROWS = 512, 2048
_MANY_FROM = 16_384
_MOST_CHUNKS = 256  # a file each, if they are kept


@dataclass(frozen=True)
class _Known:
    """What ``_core.Matchers`` are made of."""

    indexes: Sequence[Any] = ()
    sub_indexes: Sequence[Any] = ()
    telling_sub_words: NDArray[np.uint8] | None = None
    names: Any = None
    match_names: bool = False
    unseen: NDArray[np.uint8] | None = None

    @classmethod
    def of(
        cls,
        found: Mapping[str, Sequence[Matcher]],
        telling_sub_words: NDArray[np.uint8] | None = None,
        **others: Any,
    ) -> _Known:
        """From each matcher, or one for each fold."""
        return cls(
            indexes=found.get("index", ()),
            sub_indexes=found.get("sub_index", ()),
            telling_sub_words=telling_sub_words if "sub_index" in found else None,
            names=next(iter(found.get("names", ())), None),
            **others,
        )

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self, "core")

    @cached_property
    def core(self) -> _core.Matchers:
        """The same for the core, checked only once."""
        return _core.Matchers(**{field.name: getattr(self, field.name) for field in fields(self)})


class Matchers(NamedTuple):
    """What new rows are matched by besides the trees."""

    known: _Known
    outside: Mapping[str, Matcher]  # those that the core does not know

    @classmethod
    def of(cls, parts: Mapping[str, Part], **others: Any) -> Matchers:
        """The matchers among the parts of a model; for `others`, see ``_core.Matchers``."""
        found = {name: part for name, part in parts.items() if isinstance(part, Matcher)}
        known = _Known.of({name: (matcher,) for name, matcher in found.items()}, **others)
        return cls(known, {name: part for name, part in found.items() if not part.IN_CORE})


TREES_ALONE = Matchers.of({})


def match(
    forest: Forest,
    x: Blocks,
    length: int,
    matchers: Matchers = TREES_ALONE,
    *,
    allowed: NDArray[np.uint8] | None = None,
    cancel: CancelFlag | None = None,
) -> Shortlists:
    """The shortlists of new rows, at most `length` labels, by the trees and the matchers."""
    known, places = matchers.known, forest.places if len(forest.places) else None

    def ranked(most: int, able: NDArray[np.uint8] | None) -> list[Ranking]:
        return [
            matcher.ranked(x.read_by(name), most, able, places, cancel)
            for name, matcher in matchers.outside.items()
        ]

    if known.unseen is None:
        rankings = {"given": ranked(length, allowed)}
    else:
        every = np.ones_like(known.unseen) if allowed is None else allowed
        new, others = (every & mask for mask in (known.unseen, 1 - known.unseen))
        rankings = {"given": ranked(length, others), "added": ranked(UNSEEN_LABELS, new)}
    return _matched(forest, x, length, known, allowed, cancel, **rankings)


def _matched(
    forest: Forest,
    x: Blocks,
    length: int,
    known: _Known,
    allowed: NDArray[np.uint8] | None,
    cancel: CancelFlag | None,
    **of_rows: Any,
) -> Shortlists:
    # Words that were learned after the trees had grown are known to the index alone.
    own, indexed = x.read_by("trees").leading(forest.n_features), None
    if known.indexes and len(known.indexes[0].units) != forest.n_features:
        indexed = x.read_by("index").checked
    named, sub_words = known.names is not None, None
    if named or known.sub_indexes:
        sub_words = x.read_by("sub_index").checked
    rows = _core.MatchRows(own.checked, indexed, sub_words, **of_rows)
    found = _core.shortlists(forest, rows, known.core, length, allowed, cancel)
    indptr, labels, tree_scores, index_scores, sub_scores, coverages, cosines, *by_row = found
    best, most_telling, evidence = by_row
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
class TrainedMatchers:
    """What finds labels besides the trees, for training rows and for new ones."""

    trained: Mapping[str, TrainedMatcher[Any]] = field(default_factory=dict)
    match_names: bool = True  # whether names find labels, or only score those that others find
    telling_sub_words: NDArray[np.uint8] | None = None  # 1 for each that counts as evidence
    undecided: tuple[str, ...] = ()  # those that are used only if their scores improve the blend

    def plus(self, name: str, trained: TrainedMatcher[Any]) -> TrainedMatchers:
        return replace(self, trained={**self.trained, name: trained})

    @property
    def names(self) -> NameIndex | None:
        return self.trained["names"].whole if "names" in self.trained else None

    @property
    def of_all_rows(self) -> TrainedMatchers:
        """Those that all training rows are matched by."""
        own = {name: one for name, one in self.trained.items() if one.whole.ALL_ROWS}
        return self if len(own) == len(self.trained) else replace(self, trained=own)

    @property
    def parts(self) -> dict[str, Part]:
        """What new rows are matched by, by name."""
        return {name: trained.whole for name, trained in self.trained.items()}


@dataclass(frozen=True, eq=False)
class OutOfBag:
    """Matches training rows with what never saw them: trees out of bag, matchers out of fold."""

    forest: Forest
    x: Blocks
    seed: int
    subsample: float
    executor: Executor
    threads: Executor  # for a few rows, which are not worth sending
    folds: NDArray[np.uint8]  # of the rows
    allowed: NDArray[np.uint8] | None = None  # 1 for each label that a list may hold; None: all

    def match(self, length: int, matchers: TrainedMatchers, rows: NDArray[np.int64]) -> Shortlists:
        """The shortlists of a few rows. A row that every tree saw has no tree scores."""
        return Shortlists.joined(self._matched(length, matchers, rows, self.threads))

    def match_all(self, length: int, matchers: TrainedMatchers) -> list[Shortlists]:
        """Those of all rows, chunk by chunk, without the scores that only a blend needs."""
        return self._matched(length, matchers.of_all_rows, None, self.executor)

    def match_names(
        self, names: NameIndex, labels: NDArray[np.uint8], rows: NDArray[np.int64]
    ) -> Shortlists:
        """The labels whose names match a few rows best, as new rows get those without a row.

        `labels`: 1 for each that counts as one without a row.
        """
        x, known = self.x.take(rows), _Known.of({"names": (names,)}, unseen=labels)
        no_trees = np.ones((len(rows), self.forest.n_trees), dtype=np.uint8)

        def match(chunk: tuple[int, int], control: Control) -> Shortlists:
            some, skip = x.rows(*chunk), no_trees[slice(*chunk)]
            return _matched(self.forest, some, 1, known, labels, control.cancel, skip=skip)

        return Shortlists.joined(self.threads.map(match, _chunks(len(rows))))

    def _matched(
        self,
        length: int,
        matchers: TrainedMatchers,
        rows: NDArray[np.int64] | None,
        executor: Executor,
    ) -> list[Shortlists]:
        n_rows, n_trees = self.x.n_rows, self.forest.n_trees
        # One bit per row and tree, to keep the masks of a large forest small.
        masks = (_core.bag_mask(self.seed, t, n_rows, self.subsample) for t in range(n_trees))
        bags = np.stack([np.packbits(self._chosen(mask, rows)) for mask in masks])
        task = _OutOfBagTask(
            self.forest,
            self.x.with_dense(None) if rows is None else self.x.take(rows),
            bags,
            self._chosen(self.folds, rows),
            matchers,
            length,
            self.allowed,
            rows,
        )
        return executor.map(task, _chunks(task.x.n_rows), name="shortlist chunk")

    @staticmethod
    def _chosen(numbers: NDArray[Any], rows: NDArray[np.int64] | None) -> NDArray[Any]:
        return numbers if rows is None else numbers[rows]


def _chunks(n_rows: int) -> list[tuple[int, int]]:
    """Chunks of rows, each as (first, one past the last)."""
    size = _FEW_ROWS
    if n_rows > _MANY_FROM:
        size = max(_MANY_ROWS, -(-n_rows // (8 * _MOST_CHUNKS)) * 8)
    return [(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


@dataclass(frozen=True, eq=False)
class _OutOfBagTask:
    """Matches a chunk of training rows, (first, one past the last)."""

    forest: Forest
    x: Blocks
    bags: NDArray[np.uint8]  # bits, trees x rows: which have seen which
    folds: NDArray[np.uint8]
    matchers: TrainedMatchers
    length: int
    allowed: NDArray[np.uint8] | None
    rows: NDArray[np.int64] | None  # their numbers; None: all, without what only a blend needs

    @staticmethod
    def packed(lists: Shortlists) -> dict[str, NDArray[Any]]:
        return lists.arrays()

    @staticmethod
    def unpacked(arrays: Mapping[str, NDArray[Any]]) -> Shortlists:
        return Shortlists(**arrays)

    def __call__(self, chunk: tuple[int, int], control: Control) -> Shortlists:
        start, stop = chunk
        bags, folds = self.bags[:, start // 8 : (stop + 7) // 8], self.folds[start:stop]
        x, matchers = self.x.rows(start, stop), self.matchers
        rows = np.arange(start, stop) if self.rows is None else self.rows[start:stop]
        rankings = [
            trained.ranked(x.read_by(name), rows, self.length, self.allowed, control.cancel)
            for name, trained in matchers.trained.items()
            if not trained.whole.IN_CORE
        ]
        known = _Known.of(
            {name: trained.for_core() for name, trained in matchers.trained.items()},
            telling_sub_words=matchers.telling_sub_words,
            match_names=matchers.match_names,
        )
        lists = _matched(
            self.forest,
            x,
            self.length,
            known,
            self.allowed,
            control.cancel,
            skip=np.ascontiguousarray(np.unpackbits(bags, axis=1, count=stop - start).T),
            given=rankings,
            fold=folds if known.indexes or known.sub_indexes else None,
        )
        return lists.brief() if self.rows is None else lists
