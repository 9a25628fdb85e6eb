"""The protocol of a model's parts: each is one class of named arrays.

A matcher (``_matching``) finds labels for shortlists, a scorer (``_ranking``) scores those listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._arrays.frozen_arrays import FrozenArrays
from .._execution.executor import Executor
from .._execution.threads import CancelFlag, state_of
from .._features.blocks import Layout
from .._features.new_rows import NewRows
from .._features.training_rows import TrainingRows
from .._storage.container import Arrays
from .._storage.fields import Sizes, Table
from .._trees.columns import Moved
from .shortlists import Shortlists

if TYPE_CHECKING:
    from typing_extensions import Self

LARGEST = 1e30  # of numbers in a file: products with any float32, and their sums, stay finite
FOLDS = 4  # a training row is matched by a matcher that has not seen its fold
HELD_OUT_SHARE, HELD_OUT_ROWS = 0.2, 2500
TRIED_ROWS = 1000  # held-out rows that are enough to compare ways to make shortlists
# Sub-words and names must find this many times as many true labels. Otherwise codes that happen to
# look like words of some texts would pass for names.
MORE_BY_SPELLING = 1.005
# Random streams that no tree uses: those are numbered from 0.
_HELD_OUT_STREAM, _FOLD_STREAM = 2**63, 2**63 + 1

Scores = NDArray[Any]  # a number for each label on some rows' shortlists
Rows = NDArray[np.int64]
Ranking = tuple[NDArray[np.int64], NDArray[np.int32]]  # by row, labels best first: offsets, labels
Allowed = NDArray[np.uint8] | None  # 1 for each label that may be listed; None: all
Places = NDArray[np.int32] | None  # of labels in their first order; None: their numbers
Cancel = CancelFlag | None


@dataclass(frozen=True, eq=False)
class Training:
    """What parts are trained on. The executor decides where, not what they learn."""

    data: TrainingRows
    settings: Mapping[str, Any]  # the estimator's parameters
    seed: int
    executor: Executor
    compress: bool
    lists: Sequence[Shortlists] = ()  # of all rows, chunk by chunk; only for scorers
    held: Shortlists | None = None  # of held-out rows; only for scorers

    @cached_property
    def held_out(self) -> NDArray[np.uint8]:
        """1 for each row that the blend is fitted on."""
        return held_out_rows(self.data.n_rows, self.seed)

    @cached_property
    def held_rows(self) -> Rows:
        return np.flatnonzero(self.held_out)

    @cached_property
    def tried_rows(self) -> Rows:
        """Some of these, spread evenly."""
        return self.held_rows[:: -(-len(self.held_rows) // TRIED_ROWS) or 1]

    @cached_property
    def folds(self) -> NDArray[np.uint8]:
        """The fold of each row."""
        folds = np.zeros(self.data.n_rows, dtype=np.uint8)
        for bit in range(FOLDS.bit_length() - 1):
            half = _core.bag_mask(self.seed, _FOLD_STREAM + bit, len(folds), 0.5)
            folds |= half << np.uint8(bit)
        return folds


def held_out_rows(n_rows: int, seed: int, share: float = HELD_OUT_SHARE) -> NDArray[np.uint8]:
    """1 for each row that the blend is fitted on, of at most the given share."""
    share = min(share, HELD_OUT_ROWS / n_rows)
    return _core.bag_mask(seed, _HELD_OUT_STREAM, n_rows, share)


@dataclass(frozen=True, eq=False)
class Update:
    """New rows for a part to learn."""

    new: NewRows
    seed: int
    min_rows: int  # the estimator's `tail_min_rows`
    executor: Executor
    masses_before: Mapping[str, NDArray[np.float32]]  # of the features of all rows so far, by block
    masses: Mapping[str, NDArray[np.float32]]  # the new rows included
    # For scorers, which learn after all matchers.
    parts: Mapping[str, Part]  # matchers that have learned, and scorers that have not
    length: int  # of a shortlist
    lists: Shortlists | None = None  # of the new rows


class Part(FrozenArrays):
    """One part of a model; its `name` is a key of `PARTS` and of `READS`."""

    TABLE: ClassVar[Table]
    OWNER: ClassVar[str] = "feature"  # what each list of weights belongs to
    offsets: NDArray[np.int64]  # of these lists

    @property
    def weights_per_owner(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    @classmethod
    def from_arrays(cls, name: str, arrays: Arrays, sizes: Sizes, *, verify: bool) -> Self:
        """The part of a file, removed from `arrays`; a ValueError if it is wrong.

        `sizes`: the number of "features" that it reads, of "labels", and of labels that matchers
        "know", dropped ones included. With `verify`, all its numbers are checked.
        """
        part = cls(**cls.TABLE.taken(arrays, f"second_stage.{name}.", verify=verify, sizes=sizes))
        part.check(name, sizes, verify=verify)
        return part

    def check(self, name: str, sizes: Sizes, *, verify: bool) -> None:
        """Raise a ValueError for what the table cannot say."""
        raise NotImplementedError

    def scores(self, x: Any, lists: Shortlists, cancel: Cancel = None) -> Scores | None:
        """The scores of listed labels, for signals; None if the lists have them.

        `x`: what `Blocks.read_by` gives.
        """
        raise NotImplementedError

    def relabelled(self, moved: Moved) -> Self:
        """The same with labels in other columns."""
        raise NotImplementedError

    def widened(self, name: str, before: Layout, after: Layout) -> Self:
        """The same with room for new features of the main block, which are not learned yet."""
        return self

    def learned(self, name: str, update: Update) -> Self:
        """With new rows learned. What is fitted to scores of other parts stays as it is."""
        return self


class Matcher(Part):
    """A part that finds labels."""

    WORTH: ClassVar[float] = 1.0  # how many times as many true labels it must help to find
    # Whether its scores must improve the blend if it finds no more labels than others.
    MUST_GAIN: ClassVar[bool] = False
    IN_CORE: ClassVar[bool] = False  # whether the core ranks its labels and returns their scores
    # Whether it matches all training rows, or only held-out ones because all would take too long.
    ALL_ROWS: ClassVar[bool] = True

    @classmethod
    def train(cls, name: str, training: Training) -> TrainedMatcher[Self] | None:
        """The matcher of some training rows; None if they have nothing that it reads."""
        raise NotImplementedError

    def ranked(
        self,
        x: Any,
        length: int,
        allowed: Allowed,
        places: Places,
        cancel: Cancel,
    ) -> Ranking:
        """The best labels of each row, at most `length`; of equal ones, the lower place first."""
        raise NotImplementedError

    @classmethod
    def held_scores(
        cls,
        name: str,
        trained: TrainedMatcher[Self],
        training: Training,
        truth: NDArray[np.bool_],
    ) -> Scores | None:
        """`scores` of held-out pairs, by what has not seen them; `truth`: which are right."""
        assert training.held is not None
        if cls.IN_CORE:
            return None
        rows = training.held_rows
        x = training.data.blocks.take(rows).read_by(name)
        return trained.scores(x, rows, training.held)


Kind = TypeVar("Kind", bound=Matcher)


@dataclass(frozen=True, eq=False)
class TrainedMatcher(Generic[Kind]):
    """A matcher of all training rows, which answers for them as if it had not seen them.

    This class is for matchers that learn nothing from rows.
    """

    whole: Kind

    def for_core(self) -> Sequence[Kind]:
        """The matcher of each fold, or one for all."""
        return (self.whole,)

    def ranked(self, x: Any, rows: Rows, length: int, allowed: Allowed, cancel: Cancel) -> Ranking:
        """`Matcher.ranked` for the training rows of these numbers."""
        return self.whole.ranked(x, length, allowed, None, cancel)

    def scores(self, x: Any, rows: Rows, lists: Shortlists) -> Scores | None:
        """`Part.scores` for the training rows of these numbers."""
        return self.whole.scores(x, lists)


@dataclass(frozen=True, eq=False)
class HeldOut(TrainedMatcher[Kind]):
    """A matcher for held-out rows only, which was also trained without these.

    Held-out rows are asked about for several lengths of shortlists. Their longest lists are kept,
    because shorter ones are the beginnings of these.
    """

    others: Kind
    _longest: dict[tuple[bytes, bytes | None], tuple[int, Ranking]] = field(
        default_factory=dict, init=False
    )

    def __getstate__(self) -> dict[str, Any]:
        return {**state_of(self), "_longest": {}}

    def ranked(self, x: Any, rows: Rows, length: int, allowed: Allowed, cancel: Cancel) -> Ranking:
        key = rows.tobytes(), None if allowed is None else allowed.tobytes()
        longest, found = self._longest.get(key, (0, None))
        if found is None or longest < length:
            found = self.others.ranked(x, length, allowed, None, cancel)
            self._longest[key] = length, found
        return found if longest <= length else _beginnings(found, length)

    def scores(self, x: Any, rows: Rows, lists: Shortlists) -> Scores | None:
        return self.others.scores(x, lists)


@dataclass(frozen=True, eq=False)
class Folded(TrainedMatcher[Kind]):
    """A matcher that was also trained without each fold of the rows."""

    parts: tuple[Kind, ...]  # by fold
    folds: NDArray[np.uint8]  # by row

    def for_core(self) -> Sequence[Kind]:
        return self.parts

    def ranked(self, x: Any, rows: Rows, length: int, allowed: Allowed, cancel: Cancel) -> Ranking:
        found = [
            (own, matcher.ranked(x.take(own), length, allowed, None, cancel))
            for own, matcher in self._each(rows)
        ]
        return _in_order(found, x.n_rows)

    def scores(self, x: Any, rows: Rows, lists: Shortlists) -> Scores | None:
        out: Scores | None = None
        row_of = np.repeat(np.arange(x.n_rows), np.diff(lists.indptr))
        for own, matcher in self._each(rows):
            scores = matcher.scores(x.take(own), lists.take(own))
            if scores is None:
                return None
            out = np.zeros(len(row_of), dtype=scores.dtype) if out is None else out
            out[np.isin(row_of, own)] = scores
        return out

    def _each(self, rows: Rows) -> Iterator[tuple[Rows, Kind]]:
        """For each fold the places of its rows, and the matcher that has not seen them."""
        for fold, matcher in enumerate(self.parts):
            yield np.flatnonzero(self.folds[rows] == fold), matcher


def _beginnings(ranking: Ranking, length: int) -> Ranking:
    """The first labels of each list."""
    indptr, labels = ranking
    lengths = np.minimum(np.diff(indptr), length)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    own = np.arange(int(starts[-1])) - np.repeat(starts[:-1] - indptr[:-1], lengths)
    return starts, labels[own]


def _in_order(found: list[tuple[Rows, Ranking]], n_rows: int) -> Ranking:
    """The lists of all rows, from those of some rows each."""
    lengths = np.zeros(n_rows, dtype=np.int64)
    for rows, (offsets, _) in found:
        lengths[rows] = np.diff(offsets)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    labels = np.zeros(int(indptr[-1]), dtype=np.int32)
    for rows, (offsets, own) in found:
        start = np.repeat(indptr[rows] - offsets[:-1], np.diff(offsets))
        labels[start + np.arange(len(own))] = own
    return indptr, labels


class Trained(NamedTuple):
    """A scorer that was trained."""

    held_scores: Scores  # of held-out pairs, by one that has not seen their rows
    whole: Callable[[], Scorer]  # trains the scorer of all rows


class Scorer(Part):
    """A part that scores listed labels."""

    @classmethod
    def train(cls, name: str, training: Training) -> Trained:
        """The scorer of some training rows."""
        raise NotImplementedError
