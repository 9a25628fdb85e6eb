"""A matcher: labels whose names have sub-words in common with the text.

It also finds labels without training rows. The blend learns how much a match is worth. Training
rows show how often the match of a label's name was right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from .._arrays.features import FeatureArrays
from .._arrays.matrices import map_columns
from .._arrays.texts import (
    PHRASE_WEIGHT,
    are_phrases,
    encoded,
    packed,
    phrases_of,
    unpacked,
    words_of,
)
from .._storage.fields import Array, Sizes, Table, check_names
from .._storage.gaps import check_order
from .._storage.strings import Strings
from .._trees.columns import Moved, NewColumns, Numbers
from .._trees.forest import narrowed
from ..datasets.dataset import SubWordForm
from .part import MORE_BY_SPELLING, Cancel, Matcher, Scores, TrainedMatcher, Training
from .shortlists import Shortlists

if TYPE_CHECKING:
    from typing_extensions import Self

# A name counts as matched if the text has at least this share of it, by the weight of its
# sub-words.
MATCHED = 0.8
MOST_MATCHES = 2**53  # of all names together, so that sums stay exact
# The share of right matches of all labels counts as this many matches of each label.
_PRIOR_MATCHES = 2.0
_LARGEST = 1e15  # for an idf or the length of a name: their squares stay finite
_LEAST_SHARE = 1e-3
# Of labels on some lists: the labels, how much of their name the row has, whether it has them.
Matches = tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class NameIndex(Matcher):
    """For each sub-word the names that contain it; one or more names for each label."""

    offsets: NDArray[np.int64]  # n_sub_words + 1
    names: NDArray[np.int32]  # ascending within a sub-word
    idf: NDArray[np.float32]  # of the sub-words
    norms: NDArray[np.float32]  # of the names: the length of their sub-words' idf, 0 for none
    owners: NDArray[np.int32]  # the label of each name, ascending; the last may be dropped ones
    # The names as bytes, empty for dropped labels; none if they are those of the labels.
    text: NDArray[np.uint8]
    text_offsets: NDArray[np.int64]
    # By label: on how many shortlists of training rows its name matched, and how many of these rows
    # had it. If labels were dropped, the last entry is the sum of theirs.
    matched: NDArray[np.int64]
    right: NDArray[np.int64]

    TABLE: ClassVar = Table(
        "names",
        Array("offsets", (np.int64,), ("features+1",)),
        Array("names", (np.uint8, np.uint16, np.int32), ("entries",)),
        Array("idf", (np.float32,), ("features",), bounds=(0, _LARGEST)),
        Array("norms", (np.float32,), ("names",), bounds=(0, _LARGEST)),
        Array("owners", (np.int32,), ("names",)),
        Array("text", (np.uint8,), ("bytes",)),
        Array("text_offsets", (np.int64,), ("texts",)),
        Array("matched", (np.int64,), ("counted",)),
        Array("right", (np.int64,), ("counted",)),
        since=2,
    )
    IN_CORE: ClassVar = True
    WORTH: ClassVar = MORE_BY_SPELLING

    @classmethod
    def train(cls, name: str, training: Training) -> TrainedMatcher[NameIndex] | None:
        """From the names alone; matches are counted later, on shortlists."""
        data = training.data
        if data.sub_word_form is None or not data.blocks.has(name) or not data.with_names:
            return None
        labels = data.y.classes.tolist()
        return TrainedMatcher(name_index(labels, data.sub_word_form, data.label_synonyms))

    def check(self, name: str, sizes: Sizes, *, verify: bool) -> None:
        n_labels, n_known, n_names = sizes["labels"], sizes["known"], len(self.owners)
        n_kept, n_texts = np.count_nonzero(self.owners < n_labels), len(self.text_offsets) - 1
        if (
            n_texts not in (0, n_kept, n_names)  # dropped labels may have none
            or (n_texts == 0 and n_kept != n_labels)
            or len(self.matched) != n_labels + (n_known > n_labels)
        ):
            raise ValueError("the arrays of its names do not fit each other in size")
        if not verify:
            return
        check_order(name, self.offsets, self.names, n_names, "name", "sub-word")
        owners = self.owners
        if not (n_names and owners[0] == 0 and owners[-1] == n_known - 1):
            raise ValueError("its names are not those of all labels, from the first to the last")
        if np.any(owners[1:] < owners[:-1]) or np.any(owners[1:] > owners[:-1] + 1):
            raise ValueError("the labels of its names do not rise by one each")
        if np.any(self.idf <= 0) or np.any(self.norms[self.names] <= 0):
            raise ValueError("its names have a weight of 0")
        if np.any(self.right < 0) or np.any(self.matched < self.right):
            raise ValueError("its names were right more often than they were matched")
        if np.sum(self.matched, dtype=np.float64) > MOST_MATCHES:
            raise ValueError("its names were matched more often than there can be rows")
        check_names(f"second_stage.{name}", Strings(self.text, self.text_offsets), unique=False)

    def relabelled(self, moved: Moved) -> NameIndex:
        owners = moved.known.place[self.owners]
        order = np.argsort(owners, kind="stable")
        order = order[owners[order] >= 0]
        place = np.full(len(owners), -1, dtype=np.int64)
        place[order] = np.arange(len(order))
        owners = owners[order]
        renumbered = NewColumns(place, max(1, len(order)))
        offsets, names, _ = renumbered.within(self.offsets, self.names, self.names)
        text = Strings(self.text, self.text_offsets)
        if len(text):
            kept = (owners < moved.n_labels).tolist()
            spelled = zip(order.tolist(), kept, strict=True)
            text = Strings.pack([text[i] if own else "" for i, own in spelled])
        return NameIndex(
            offsets,
            names,
            self.idf,
            self.norms[order],
            owners.astype(np.int32),
            text.data,
            text.offsets,
            *(_sums(matches, moved) for matches in (self.matched, self.right)),
        )

    def scores(
        self, x: FeatureArrays, lists: Shortlists, cancel: Cancel = None
    ) -> NDArray[np.float32]:
        return self.odds(lists.labels)

    @classmethod
    def held_scores(
        cls,
        name: str,
        trained: TrainedMatcher[Self],
        training: Training,
        truth: NDArray[np.bool_],
    ) -> Scores:
        lists = training.held
        assert lists is not None and lists.coverages is not None
        return trained.whole.odds_without(lists.labels, lists.coverages, truth)

    def odds(self, labels: NDArray[np.int32]) -> NDArray[np.float32]:
        """Log-odds that a label is right if its name is matched."""
        return self._odds(self.matched[labels], self.right[labels])

    def odds_without(
        self,
        labels: NDArray[np.int32],
        coverages: NDArray[np.float32],
        truth: NDArray[np.bool_],
    ) -> NDArray[np.float32]:
        """The same for pairs of training rows, as if their row had not been seen."""
        seen = coverages >= MATCHED
        return self._odds(self.matched[labels] - seen, self.right[labels] - (seen & truth))

    def _odds(self, matched: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float32]:
        share = self._share_right
        yes = right + _PRIOR_MATCHES * share
        no = matched - right + _PRIOR_MATCHES * (1 - share)
        # A damaged file may claim fewer matches than right ones.
        odds = np.log(np.maximum(yes, 1e-9) / np.maximum(no, 1e-9))
        return np.asarray(odds, dtype=np.float32)

    @cached_property
    def _share_right(self) -> float:
        """Of the matches of all labels."""
        share = float(self.right.sum() / max(1, self.matched.sum()))
        return min(max(share, _LEAST_SHARE), 1 - _LEAST_SHARE)

    def counted(self, matches: Iterable[Matches]) -> NameIndex:
        """With the matches counted on the shortlists of training rows."""
        matched, right = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
        for labels, coverages, truth in matches:
            seen = coverages >= MATCHED
            matched.append(labels[seen])
            right.append(labels[seen & truth])

        def count(labels: list[NDArray[np.int32]]) -> NDArray[np.int64]:
            return np.bincount(np.concatenate(labels), minlength=len(self.matched)).astype(np.int64)

        return replace(self, matched=count(matched), right=count(right))

    def plus(self, more: NameIndex) -> NameIndex:
        """With the matches of another index of the same names added."""
        return replace(self, matched=self.matched + more.matched, right=self.right + more.right)

    def spelled_out(self, labels: Sequence[str]) -> NameIndex:
        """With the names stored, if they were the labels themselves until now."""
        if len(self.text_offsets) > 1:
            return self
        names = Strings.pack(labels)
        return replace(self, text=names.data, text_offsets=names.offsets)

    def synonyms(self, labels: Sequence[str]) -> dict[str, list[str]] | None:
        """The names of each label; None if they are the labels themselves."""
        if len(self.text_offsets) == 1:
            return None
        names: dict[str, list[str]] = {}
        for name, owner in zip(
            Strings(self.text, self.text_offsets), self.owners.tolist(), strict=True
        ):
            names.setdefault(labels[owner], []).append(name)
        return names

    def best_match(self, row: FeatureArrays, label: int) -> tuple[str | None, float] | None:
        """The name of a label that matches a row of sub-words best, and how much of it the row has.

        The name is None if it is the label itself. The result is None if the row has nothing of any
        name.
        """
        bounds = [self.offsets[row.indices + i].tolist() for i in (0, 1)]
        parts = [self.names[a:b] for a, b in zip(*bounds, strict=True)]
        names = np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)
        lengths = [len(part) for part in parts]
        own = self.owners[names] == label
        idf = np.repeat(self.idf[row.indices].astype(np.float64), lengths)[own]
        values = np.repeat(row.values.astype(np.float64), lengths)[own]
        found, place = np.unique(names[own], return_inverse=True)
        if len(found) == 0:
            return None
        norms = self.norms[found].astype(np.float64)
        coverages = np.bincount(place, idf**2) / norms**2
        best = int(np.argmax(coverages * np.bincount(place, idf * values) / norms))
        text = Strings(self.text, self.text_offsets)
        name = text[int(found[best])] if len(text) else None
        return name, min(1.0, float(coverages[best]))


def _sums(matches: Numbers, moved: Moved) -> Numbers:
    """By label; if labels were dropped, the last entry is for all of these together."""
    own = moved.columns.taken(matches, 0)
    return np.append(own, matches.sum() - own.sum()) if moved.n_dropped else own


def name_index(
    labels: Sequence[str], form: SubWordForm, names: Mapping[str, Sequence[str]] | None = None
) -> NameIndex:
    """The index of the labels' names: those that `names` gives, or the label itself."""
    spelled: list[str] = []
    owners: list[int] = []
    for number, label in enumerate(labels):
        own = (names or {}).get(label) or (label,)
        spelled += own
        owners += [number] * len(own)
    texts = [encoded(name, lowercase=True) for name in spelled]
    words, indptr, numbers = words_of(texts)
    ones = np.ones(len(numbers), dtype=np.float32)
    of_words = sp.csr_array((ones, numbers, indptr), shape=(len(spelled), len(words)))
    whole = _as_phrases(texts, form.words)
    matrix = sp.csc_array(of_words @ spelling(words, form.words) + whole)
    idf = np.ascontiguousarray(form.idf, dtype=np.float32)
    squares = np.repeat(idf.astype(np.float64) ** 2, np.diff(matrix.indptr))
    norms = np.bincount(matrix.indices, squares, len(spelled))
    if whole.nnz:  # a name that is no known phrase counts as one that no text has
        norms[np.diff(whole.indptr) == 0] *= 1 + PHRASE_WEIGHT
    norms = np.sqrt(norms)
    matrix.sort_indices()
    kept = Strings.pack(spelled if names else [])
    zero = np.zeros(len(labels), dtype=np.int64)
    return NameIndex(
        matrix.indptr.astype(np.int64),
        narrowed(matrix.indices.astype(np.int32), max(0, len(spelled) - 1)),
        idf,
        norms.astype(np.float32),
        np.array(owners, dtype=np.int32),
        kept.data,
        kept.offsets,
        zero,
        zero.copy(),
    )


def _as_phrases(names: list[bytes], sub_words: Strings) -> sp.csr_array:
    """Which of the sub-words each name is as a whole, if any."""
    phrases = are_phrases(sub_words.data, sub_words.offsets)
    spelled = unpacked(sub_words.data, sub_words.offsets) if phrases.any() else []
    number = {spelled[i]: i for i in np.flatnonzero(phrases).tolist()}
    column = np.array([number.get(phrase, -1) for phrase in phrases_of(names)], dtype=np.int64)
    known = column >= 0
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])
    ones = np.ones(int(known.sum()), dtype=np.float32)
    return sp.csr_array((ones, column[known], indptr), shape=(len(names), len(sub_words)))


def spelling(words: list[bytes], sub_words: Strings) -> sp.csr_array:
    """How often each word has each of the given sub-words."""
    number = {part: i for i, part in enumerate(unpacked(sub_words.data, sub_words.offsets))}
    indptr, parts, counts, text, offsets = _core.spell_words(*packed(words))
    column = np.array([number.get(part, -1) for part in unpacked(text, offsets)], dtype=np.int64)
    shape = (len(words), len(column))
    return map_columns(sp.csr_array((counts, parts, indptr), shape=shape), column, len(number))
