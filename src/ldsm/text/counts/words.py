"""The words of texts, counted by the core: those of scikit-learn's default pattern, much faster.

Words are runs of two or more word characters, in lower case. Python decides what a word character
is and what the lower case of a text is, so the words are exactly the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer

from ... import _core
from ..._arrays.features import FeatureArrays, arrays_if_canonical, feature_arrays
from ..._arrays.texts import Packed, encoded, packed, word_characters
from ..._features.blocks import BLOCKS, Layout
from ..._storage.strings import Strings
from ...datasets.dataset import BigramForm

TOKEN_PATTERN = r"(?u)\b\w\w+\b"
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

    def rows(self, first: int, last: int) -> Counts:
        """A view of some texts."""
        start, stop = self.indptr[first], self.indptr[last]
        # scikit-learn wants one type for both.
        indptr = (self.indptr[first : last + 1] - start).astype(self.indices.dtype)
        indices, data = self.indices[start:stop], self.data[start:stop]
        return Counts(indptr, indices, data, (last - first, self.shape[1]))

    def arrays(self) -> FeatureArrays:
        """The same rows as the core reads them."""
        arrays = arrays_if_canonical(self.indptr, self.indices, self.data, self.shape[1])
        return feature_arrays(self.matrix()) if arrays is None else arrays


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


def bigram_form(keys: NDArray[np.uint64], idf: NDArray[np.float32]) -> BigramForm:
    """Bigrams as a store keeps them."""
    first, second = keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)
    return BigramForm(first.astype(np.int32), second.astype(np.int32), idf)


def bigram_keys(bigrams: BigramForm | None) -> NDArray[np.uint64]:
    """Bigrams as the core takes them."""
    if bigrams is None:
        return np.zeros(0, np.uint64)
    first, second = bigrams.first.astype(np.uint64), bigrams.second.astype(np.uint64)
    return np.asarray(first << np.uint64(32) | second)
