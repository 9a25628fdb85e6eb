"""All words of a corpus, counted chunk by chunk, and which words and bigrams become features.

Nothing but the distinct words need fit in memory: the texts, as numbers of words, may lie in files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer

from ... import _core
from ..._arrays.texts import Packed, encoded, packed, unpacked, word_characters
from ..._execution.executor import Control, Executor, Part, Result, Task, ThreadExecutor
from ..._execution.parts import counted, even_ranges
from ..._execution.scratch import GrowingArray
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


@dataclass(frozen=True, eq=False)
class LearnedWords:
    """All words of some texts, in order of appearance, and the texts in these words."""

    words: list[bytes]
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
        return even_ranges(np.diff(self.offsets), _CHUNK_WORDS, _MOST_RANGES)

    @cached_property
    def texts_with(self) -> NDArray[np.int64]:
        """The number of texts with each word."""
        return counted(self.indices, len(self.words))

    def counts_of(self, first: int, last: int) -> sp.csr_array:
        """How often some texts have each word."""
        start, stop = self.indptr[first], self.indptr[last]
        arrays = self.counts[start:stop], self.indices[start:stop]
        indptr = self.indptr[first : last + 1] - start
        return sp.csr_array((*arrays, indptr), shape=(last - first, len(self.words)))

    def texts(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Some texts one word after the other, as offsets and words."""
        start, stop = self.offsets[first], self.offsets[last]
        return self.offsets[first : last + 1] - start, self.sequence[start:stop]


def learn_words(
    texts: Iterable[str], *, lowercase: bool, n_jobs: int | None = 1, folder: str | None = None
) -> LearnedWords:
    """Count all words, in one pass over the texts; no text is kept.

    With a `folder`, what grows with the texts lies in unnamed files there.
    """
    number: dict[bytes, int] = {}
    indices, counts, sequence = (GrowingArray(np.int32, folder) for _ in range(3))
    indptr, offsets = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    for found in in_windows(ThreadExecutor(n_jobs), _count_words, _chunks(texts, lowercase)):
        its_indptr, its_words, its_counts, text, ends, its_offsets, its_sequence = found
        named = [number.setdefault(word, len(number)) for word in unpacked(text, ends)]
        its_numbers = np.array(named, dtype=np.int32)
        indices.append(its_numbers[its_words])
        counts.append(its_counts)
        indptr.append(its_indptr[1:] + indptr[-1][-1])
        sequence.append(its_numbers[its_sequence])
        offsets.append(its_offsets[1:] + offsets[-1][-1])
    return LearnedWords(
        list(number),
        np.concatenate(indptr),
        indices.whole(),
        counts.whole(),
        np.concatenate(offsets),
        sequence.whole(),
    )


def in_windows(
    executor: Executor, task: Task[Part, Result], parts: Iterable[Part]
) -> Iterator[Result]:
    """The results of a task in order, of which few are in memory at once."""
    rest = iter(parts)
    while some := list(islice(rest, executor.at_once)):
        yield from executor.map(task, some)


def _count_words(texts: Packed, control: Control) -> Any:
    return _core.count_words(*texts, word_characters(texts[0]), cancel=control.cancel)


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
    n_texts, texts = learned.n_texts, learned.texts_with
    least, most = (_in_texts(value, n_texts) for value in (vectorizer.min_df, vectorizer.max_df))
    kept = (texts >= least) & (texts <= most)
    stop_words = vectorizer.get_stop_words()
    if stop_words:
        listed = {word.encode("utf-8", "surrogatepass") for word in stop_words}
        kept &= np.array([word not in listed for word in learned.words], dtype=bool)
    # The order of UTF-8 is that of the characters' numbers, in which Python sorts.
    order = sorted(np.flatnonzero(kept).tolist(), key=learned.words.__getitem__)
    if vectorizer.max_features is not None and len(order) > vectorizer.max_features:
        times = counted(learned.sequence, len(texts))[order]
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
    learned: LearnedWords,
    chosen: ChosenWords,
    *,
    n_jobs: int | None,
    memory_limit: int | None = None,
) -> ChosenBigrams:
    """The most frequent bigrams of words that keep a column, except those of very many texts.

    The table of all bigrams is made by ranges of their first word, so that one range at a time and
    thread must fit into the limit.
    """
    executor, each = ThreadExecutor(n_jobs), _BIGRAMS_AT_ONCE
    if memory_limit is not None:
        each = max(1, min(each, memory_limit // (_BIGRAM_BYTES * executor.at_once)))
    n_words = len(chosen.words)
    occurrences = np.zeros(n_words, np.int64)
    for start in range(0, len(learned.sequence), _CHUNK_WORDS):
        columns = chosen.column[learned.sequence[start : start + _CHUNK_WORDS]]
        occurrences += np.bincount(columns[columns >= 0], minlength=n_words)
    task = _BigramTask(learned, chosen.column)
    found = list(in_windows(executor, task, even_ranges(occurrences, each, _MOST_RANGES)))
    keys, texts = (np.concatenate([part[i] for part in found]) for i in (0, 1))
    able = np.flatnonzero(texts <= MOST_SHARE * learned.n_texts)
    # Ties go to the bigrams that come first; they are kept in their order.
    kept = np.sort(able[np.lexsort((able, -texts[able]))[: BIGRAMS_PER_WORD * n_words]])
    return ChosenBigrams(keys[kept], texts[kept])


@dataclass(frozen=True, eq=False)
class _BigramTask:
    """Finds the bigrams whose first word is in a range, (first, one past the last)."""

    learned: LearnedWords
    column: NDArray[np.int32]

    def __call__(self, words: tuple[int, int], control: Control) -> Sequence[NDArray[Any]]:
        return _core.find_bigrams(
            self.learned.offsets,
            self.learned.sequence,
            self.column,
            LEAST_TEXTS,
            *words,
            cancel=control.cancel,
        )
