"""All words of a corpus, counted chunk by chunk, and which words and bigrams become features.

Nothing but the distinct words need fit in memory: the texts, as numbers of words, may lie in files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer

from ... import _core
from ..._arrays.texts import Packed, encoded, packed, unpacked, word_characters
from ..._execution.executor import Control, Executor
from ..._execution.parts import counted, even_ranges
from ..._execution.scratch import GrowingArray, Scratch
from ..._storage.strings import Strings

_CHUNK_BYTES = 1 << 21  # of texts counted together, which each thread holds in memory
_CHUNK_WORDS = 1 << 19  # of texts that become features together
# A bigram must occur in this many texts, and in at most this share of them: "of the" says nothing.
LEAST_TEXTS = 3
MOST_SHARE = 0.05
BIGRAMS_PER_WORD = 2
# The words whose bigrams are counted together, each of which may be another one; and the most bytes
# that a bigram takes meanwhile.
_BIGRAMS_AT_ONCE, _BIGRAM_BYTES = 1 << 23, 112
_MOST_RANGES = 1 << 20
_MOST_CHUNKS = 1 << 12  # a file each, if they are kept


@dataclass(frozen=True, eq=False)
class TextsInWords:
    """Some texts in numbered words."""

    n_words: int
    # How often each text has each of its words: the arrays of a CSR matrix.
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    counts: NDArray[np.int32]
    # The texts one word after the other.
    offsets: NDArray[np.int64]
    sequence: NDArray[np.int32]

    @property
    def n_texts(self) -> int:
        return len(self.indptr) - 1

    def chunks(self) -> list[tuple[int, int]]:
        """Stretches of texts, (first, one past the last), with about the same number of words."""
        return even_ranges(np.diff(self.offsets), _CHUNK_WORDS, _MOST_CHUNKS)

    def counts_of(self, first: int, last: int) -> sp.csr_array:
        """How often some texts have each word."""
        start, stop = self.indptr[first], self.indptr[last]
        arrays = self.counts[start:stop], self.indices[start:stop]
        indptr = self.indptr[first : last + 1] - start
        return sp.csr_array((*arrays, indptr), shape=(last - first, self.n_words))

    def texts(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Some texts one word after the other, as offsets and words."""
        start, stop = self.offsets[first], self.offsets[last]
        return self.offsets[first : last + 1] - start, self.sequence[start:stop]


@dataclass(frozen=True, eq=False)
class LearnedWords:
    """All words of some texts, in order of appearance, and the texts."""

    words: list[bytes]
    texts: TextsInWords

    @cached_property
    def texts_with(self) -> NDArray[np.int64]:
        """The number of texts with each word."""
        return counted(self.texts.indices, len(self.words))


def learn_words(
    texts: Iterable[str], *, lowercase: bool, executor: Executor, scratch: Scratch | None = None
) -> LearnedWords:
    """Count all words, in one pass over the texts; no text is kept.

    What grows with the texts lies in the `scratch` files, if there are any.
    """
    number: dict[bytes, int] = {}
    indices, counts, sequence = (GrowingArray(np.int32, scratch) for _ in range(3))
    indptr, offsets = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    for found in executor.stream(_WordTask(), _chunks(texts, lowercase), name="word chunk"):
        named = [number.setdefault(word, len(number)) for word in unpacked(found.text, found.ends)]
        its_numbers = np.array(named, dtype=np.int32)
        indices.append(its_numbers[found.words])
        counts.append(found.counts)
        indptr.append(found.indptr[1:] + indptr[-1][-1])
        sequence.append(its_numbers[found.sequence])
        offsets.append(found.offsets[1:] + offsets[-1][-1])
    in_words = TextsInWords(
        len(number),
        np.concatenate(indptr),
        indices.whole(),
        counts.whole(),
        np.concatenate(offsets),
        sequence.whole(),
    )
    return LearnedWords(list(number), in_words)


class _Words(NamedTuple):
    """The words of a chunk of texts, by numbers of their own."""

    indptr: NDArray[np.int64]
    words: NDArray[np.int32]
    counts: NDArray[np.int32]
    text: NDArray[np.uint8]  # all distinct words
    ends: NDArray[np.int64]
    offsets: NDArray[np.int64]
    sequence: NDArray[np.int32]


@dataclass(frozen=True)
class _WordTask:
    """Counts the words of some texts."""

    def __call__(self, texts: Packed, control: Control) -> _Words:
        found = _core.count_words(*texts, word_characters(texts[0]), cancel=control.cancel)
        return _Words(*found)

    @staticmethod
    def packed(words: _Words) -> dict[str, NDArray[Any]]:
        return words._asdict()

    @staticmethod
    def unpacked(arrays: Mapping[str, NDArray[Any]]) -> _Words:
        return _Words(**arrays)


def _chunks(texts: Iterable[str], lowercase: bool) -> Iterator[Packed]:
    """The texts, some at a time; each is let go as soon as it is encoded."""
    some, size = list[bytes](), 0
    for text in texts:
        some.append(encoded(text, lowercase=lowercase))
        size += len(some[-1])
        if size >= _CHUNK_BYTES:
            yield packed(some)
            some, size = [], 0
    if some:
        yield packed(some)


# -- which words and bigrams are features ------------------------------------------------------


class ChosenWords(NamedTuple):
    """Words in columns, the number of texts with each, and the column of each learned word."""

    words: Strings
    texts: NDArray[np.int64]
    column: NDArray[np.int32]  # -1: none


def chosen_words(learned: LearnedWords, vectorizer: TfidfVectorizer) -> ChosenWords | None:
    """The words that the vectorizer's settings keep, sorted; None if there are none."""
    n_texts, texts = learned.texts.n_texts, learned.texts_with
    least, most = (_in_texts(value, n_texts) for value in (vectorizer.min_df, vectorizer.max_df))
    kept = (texts >= least) & (texts <= most)
    stop_words = vectorizer.get_stop_words()
    if stop_words:
        listed = {word.encode("utf-8", "surrogatepass") for word in stop_words}
        kept &= np.array([word not in listed for word in learned.words], dtype=bool)
    # The order of UTF-8 is that of the characters' numbers, in which Python sorts.
    order = sorted(np.flatnonzero(kept).tolist(), key=learned.words.__getitem__)
    if vectorizer.max_features is not None and len(order) > vectorizer.max_features:
        times = counted(learned.texts.sequence, len(texts))[order]
        frequent = np.argsort(-times, kind="stable")[: vectorizer.max_features]
        order = [order[i] for i in np.sort(frequent).tolist()]
    if not order:
        return None
    column = np.full(len(texts), -1, dtype=np.int32)
    column[order] = np.arange(len(order))
    words = Strings(*packed([learned.words[i] for i in order]))
    return ChosenWords(words, texts[order], column)


def _in_texts(share: Any, n_texts: int) -> float:
    """A minimum or maximum, as scikit-learn understands it: a number of texts or a share."""
    return float(share if isinstance(share, int | np.integer) else share * n_texts)


class ChosenBigrams(NamedTuple):
    """Bigrams, ascending as the core takes them, and the number of texts with each."""

    keys: NDArray[np.uint64]
    texts: NDArray[np.int32]


def chosen_bigrams(
    texts: TextsInWords,
    chosen: ChosenWords,
    *,
    executor: Executor,
    memory_limit: int | None = None,
) -> ChosenBigrams:
    """The most frequent bigrams of words that keep a column, except those of very many texts.

    The table of all bigrams is made by ranges of their first word, so that one range at a time and
    thread must fit into the limit.
    """
    each = _BIGRAMS_AT_ONCE
    if memory_limit is not None:
        each = max(1, min(each, memory_limit // (_BIGRAM_BYTES * executor.at_once)))
    n_words = len(chosen.words)
    occurrences = np.zeros(n_words, np.int64)
    for start in range(0, len(texts.sequence), _CHUNK_WORDS):
        columns = chosen.column[texts.sequence[start : start + _CHUNK_WORDS]]
        occurrences += np.bincount(columns[columns >= 0], minlength=n_words)
    task = _BigramTask(texts, chosen.column)
    ranges = even_ranges(occurrences, each, _MOST_RANGES)
    found = list(executor.stream(task, ranges, name="bigram range"))
    keys = np.concatenate([part.keys for part in found])
    times = np.concatenate([part.texts for part in found])
    able = np.flatnonzero(times <= MOST_SHARE * texts.n_texts)
    # Ties go to the bigrams that come first; they are kept in their order.
    kept = np.sort(able[np.lexsort((able, -times[able]))[: BIGRAMS_PER_WORD * n_words]])
    return ChosenBigrams(keys[kept], times[kept])


@dataclass(frozen=True, eq=False)
class _BigramTask:
    """Finds the bigrams whose first word is in a range, (first, one past the last)."""

    texts: TextsInWords
    column: NDArray[np.int32]

    def __call__(self, words: tuple[int, int], control: Control) -> ChosenBigrams:
        found = _core.find_bigrams(
            self.texts.offsets,
            self.texts.sequence,
            self.column,
            LEAST_TEXTS,
            *words,
            cancel=control.cancel,
        )
        return ChosenBigrams(*found)

    @staticmethod
    def packed(bigrams: ChosenBigrams) -> dict[str, NDArray[Any]]:
        return bigrams._asdict()

    @staticmethod
    def unpacked(arrays: Mapping[str, NDArray[Any]]) -> ChosenBigrams:
        return ChosenBigrams(**arrays)
