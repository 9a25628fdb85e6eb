"""The words of texts, counted by the core: those of scikit-learn's default pattern, much faster.

Words are runs of two or more word characters, in lower case. Python decides what a word character
is and what the lower case of a text is, so the words are exactly the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer

from .. import _core
from .._arrays.features import FeatureArrays, arrays_if_canonical, feature_arrays
from .._arrays.matrices import map_columns
from .._arrays.texts import Packed, encoded, packed, unpacked, word_characters
from .._execution.executor import Control, ThreadExecutor
from .._features.blocks import BLOCKS, Layout
from .._storage.strings import Strings
from ..datasets.dataset import BigramForm

TOKEN_PATTERN = r"(?u)\b\w\w+\b"
_CHUNK_BYTES = 1 << 21  # of texts counted together, which each thread holds in memory
# A bigram must occur in this many texts, and in at most this share of them: "of the" says nothing.
LEAST_TEXTS = 3
MOST_SHARE = 0.05
BIGRAMS_PER_WORD = 2
# Titles and summaries come first: the first words of a longer text count several times.
HEAD_WORDS, HEAD_MORE_TIMES = 30, 2


def are_plain_words(vectorizer: TfidfVectorizer) -> bool:
    """Whether the core counts what this vectorizer would."""
    return bool(
        type(vectorizer) is TfidfVectorizer
        and vectorizer.analyzer == "word"
        and vectorizer.token_pattern == TOKEN_PATTERN
        and vectorizer.tokenizer is None
        and vectorizer.preprocessor is None
        and vectorizer.strip_accents is None
        and tuple(vectorizer.ngram_range) == (1, 1)
    )


class Counts(NamedTuple):
    """How often each text has each feature: the arrays of a CSR matrix.

    Making a matrix of SciPy's takes longer than counting the words of a title.
    """

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    shape: tuple[int, int]

    @classmethod
    def of(cls, matrix: Any) -> Counts:
        return cls(matrix.indptr, matrix.indices, matrix.data, matrix.shape)

    def matrix(self) -> sp.csr_array:
        return sp.csr_array((self.data, self.indices, self.indptr), shape=self.shape)

    def arrays(self) -> FeatureArrays:
        """The same rows as the core reads them."""
        arrays = arrays_if_canonical(self.indptr, self.indices, self.data, self.shape[1])
        return feature_arrays(self.matrix()) if arrays is None else arrays


class LearnedWords(NamedTuple):
    """All words of some texts, in order of appearance, and how often each text has them."""

    words: list[bytes]
    counts: sp.csr_array
    # The texts one word after the other.
    offsets: NDArray[np.int64]
    sequence: NDArray[np.int32]
    # Likewise the beginnings of long ones, if these count more.
    heads: tuple[NDArray[np.int64], NDArray[np.int32]] | None = None


def learn_words(texts: Iterable[str], *, lowercase: bool, n_jobs: int | None = 1) -> LearnedWords:
    """Count all words, in one pass over the texts; no text is kept."""
    number: dict[bytes, int] = {}
    indptr, indices, counts = [np.zeros(1, np.int64)], list[Any](), list[Any]()
    offsets, sequence = [np.zeros(1, np.int64)], list[Any]()
    chunks, executor = _chunks(texts, lowercase), ThreadExecutor(n_jobs)
    while some := list(islice(chunks, executor.at_once)):
        for found in executor.map(_count_words, some):
            its_indptr, its_words, its_counts, text, ends, its_offsets, its_sequence = found
            named = [number.setdefault(word, len(number)) for word in unpacked(text, ends)]
            its_numbers = np.array(named, dtype=np.int32)
            indices.append(its_numbers[its_words])
            counts.append(its_counts)
            indptr.append(its_indptr[1:] + indptr[-1][-1])
            sequence.append(its_numbers[its_sequence])
            offsets.append(its_offsets[1:] + offsets[-1][-1])
    nothing = np.zeros(0, np.int32)
    matrix = sp.csr_array(
        (
            np.concatenate([*counts, nothing]),
            np.concatenate([*indices, nothing]),
            np.concatenate(indptr),
        ),
        shape=(sum(map(len, indptr)) - 1, len(number)),
    )
    texts_of_words = np.concatenate(offsets), np.concatenate([*sequence, nothing])
    return LearnedWords(list(number), matrix, *texts_of_words)


def _count_words(texts: Packed, control: Control) -> Any:
    return _core.count_words(*texts, word_characters(texts[0]), cancel=control.cancel)


def with_head(learned: LearnedWords) -> LearnedWords:
    """With the first words of longer texts counted more times; in the texts themselves, too."""
    lengths = np.diff(learned.offsets)
    rows = np.flatnonzero(lengths > HEAD_WORDS)
    first = (learned.offsets[rows][:, None] + np.arange(HEAD_WORDS)).ravel()
    words = learned.sequence[first]
    heads = np.zeros(len(lengths) + 1, dtype=np.int64)
    heads[rows + 1] = HEAD_WORDS
    more = np.full(len(words), HEAD_MORE_TIMES, dtype=np.int32)
    extra = sp.csr_array((more, words, np.cumsum(heads)), shape=learned.counts.shape)
    return learned._replace(
        counts=sp.csr_array(learned.counts + extra), heads=(np.cumsum(heads), words)
    )


@dataclass(frozen=True, eq=False)
class WordTable:
    """Finds words, bigrams and sub-words in texts."""

    finder: _core.WordFinder
    layout: Layout

    @classmethod
    def of(
        cls, words: Strings, bigrams: BigramForm | None = None, sub_words: Strings | None = None
    ) -> WordTable:
        sub_words = Strings.pack([]) if sub_words is None else sub_words
        keys = bigram_keys(bigrams)
        finder = _core.WordFinder(*_bytes(words), keys, *_bytes(sub_words))
        return cls(finder, Layout((len(words), len(keys), len(sub_words))))

    def counts(
        self, texts: list[str], *, lowercase: bool, dtype: Any, head_words: int = 0
    ) -> dict[str, Counts]:
        """By block, how often each text has each of its features."""
        text = packed([encoded(text, lowercase=lowercase) for text in texts])
        found = self.finder.count(
            *text,
            word_characters(text[0]),
            head_words=head_words,
            more_times=HEAD_MORE_TIMES if head_words else 0,
        )
        return {
            block: Counts(
                # scikit-learn wants one type for both.
                indptr.astype(numbers.dtype) if len(numbers) < 2**31 else indptr,
                numbers,
                counts.astype(dtype),
                (len(texts), self.layout[block]),
            )
            for block, (indptr, numbers, counts) in zip(BLOCKS, found, strict=True)
        }


def _bytes(strings: Strings) -> Packed:
    """What a finder reads during its lifetime."""
    return _in_memory(strings.data, np.uint8), _in_memory(strings.offsets, np.int64)


def _in_memory(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """The array itself, unless it is mapped: a finder checks it once, but its file may change."""
    if isinstance(array, np.memmap):
        return np.array(array, dtype=dtype)
    return np.ascontiguousarray(array, dtype=dtype)


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


def bigram_keys(bigrams: BigramForm | None) -> NDArray[np.uint64]:
    """Bigrams as the core takes them."""
    if bigrams is None:
        return np.zeros(0, np.uint64)
    first, second = bigrams.first.astype(np.uint64), bigrams.second.astype(np.uint64)
    return np.asarray(first << np.uint64(32) | second)


class ChosenBigrams(NamedTuple):
    """Bigrams of chosen words, as numbers of words, and how often each text has them."""

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    counts: sp.csr_array


def chosen_bigrams(learned: LearnedWords, column: NDArray[np.int64]) -> ChosenBigrams:
    """The most frequent bigrams of words that keep a column, except those of very many texts."""
    n_texts = learned.counts.shape[0]
    sequence = column[learned.sequence].astype(np.int32)
    bigrams, texts = _core.find_bigrams(learned.offsets, sequence, LEAST_TEXTS)
    able = np.flatnonzero(texts <= MOST_SHARE * n_texts)
    most = BIGRAMS_PER_WORD * int(np.count_nonzero(column >= 0))
    # Ties go to the bigrams that come first; they are kept in their order.
    kept = np.sort(able[np.lexsort((able, -texts[able]))[:most]])
    shape = (n_texts, len(kept))
    indptr, numbers, counts = _core.count_bigrams(learned.offsets, sequence, bigrams[kept])
    matrix = sp.csr_array((counts, numbers, indptr), shape=shape)
    if learned.heads is not None:
        offsets, first = learned.heads
        sequence = column[first].astype(np.int32)
        indptr, numbers, counts = _core.count_bigrams(offsets, sequence, bigrams[kept])
        more = sp.csr_array((HEAD_MORE_TIMES * counts, numbers, indptr), shape=shape)
        matrix = sp.csr_array(matrix + more)
    matrix.sort_indices()
    first, second = bigrams[kept] >> np.uint64(32), bigrams[kept] & np.uint64(0xFFFFFFFF)
    return ChosenBigrams(first.astype(np.int32), second.astype(np.int32), matrix)


class ChosenWords(NamedTuple):
    """Words with their counts, and the column of each learned word, -1 for none."""

    words: Strings
    counts: sp.csr_array
    column: NDArray[np.int64]


def chosen_words(learned: LearnedWords, vectorizer: TfidfVectorizer) -> ChosenWords | None:
    """The words that the vectorizer's settings keep, sorted; None if there are none."""
    counts = learned.counts
    n_texts, n_words = counts.shape
    rows = np.bincount(counts.indices, minlength=n_words)
    least, most = (_in_texts(value, n_texts) for value in (vectorizer.min_df, vectorizer.max_df))
    kept = (rows >= least) & (rows <= most)
    stop_words = vectorizer.get_stop_words()
    if stop_words:
        listed = {word.encode("utf-8", "surrogatepass") for word in stop_words}
        kept &= np.array([word not in listed for word in learned.words], dtype=bool)
    # The order of UTF-8 is that of the characters' numbers, in which Python sorts.
    order = sorted(np.flatnonzero(kept).tolist(), key=learned.words.__getitem__)
    if vectorizer.max_features is not None and len(order) > vectorizer.max_features:
        times = np.asarray(counts.sum(axis=0)).ravel()[order]
        frequent = np.argsort(-times, kind="stable")[: vectorizer.max_features]
        order = [order[i] for i in np.sort(frequent).tolist()]
    if not order:
        return None
    column = np.full(n_words, -1, dtype=np.int64)
    column[order] = np.arange(len(order))
    words = [learned.words[i] for i in order]
    return ChosenWords(Strings(*packed(words)), map_columns(counts, column, len(order)), column)


def _in_texts(share: Any, n_texts: int) -> float:
    """A minimum or maximum, as scikit-learn understands it: a number of texts or a share."""
    return float(share if isinstance(share, int | np.integer) else share * n_texts)
