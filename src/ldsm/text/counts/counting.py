"""From learned words to the features of the texts, chunk by chunk: first counts, then weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ... import _core
from ..._arrays.matrices import map_columns
from ..._execution.executor import Control, Executor, ThreadExecutor
from ..._execution.scratch import GrowingArray, Scratch
from ..._features.blocks import BIGRAMS, BLOCKS, MAIN, SUB_WORDS, Blocks
from .learned_words import TextsInWords
from .weights import weighed
from .words import HEAD_MORE_TIMES, HEAD_WORDS, Counts


@dataclass(frozen=True, eq=False)
class CountingTask:
    """Counts the features of some texts, (first, one past the last), by block."""

    texts: TextsInWords
    column: NDArray[np.int32]  # of each word, -1 for none
    n_words: int  # that have a column
    bigrams: NDArray[np.uint64] | None = None  # None: words are the only features
    sub_words: sp.csr_array | None = None  # words x sub-words
    # All words and sub-words, as bytes and offsets each: these include phrases.
    phrases: tuple[Any, ...] = ()

    def __call__(self, chunk: tuple[int, int], control: Control) -> dict[str, Counts]:
        counts = self.texts.counts_of(*chunk)
        if self.bigrams is None or self.sub_words is None:
            return {MAIN: Counts.of(map_columns(counts, self.column, self.n_words))}
        counts = sp.csr_array(counts + self._more_of_heads(chunk))
        found = {
            MAIN: map_columns(counts, self.column, self.n_words),
            BIGRAMS: self._bigrams(chunk, control),
            SUB_WORDS: sp.csr_array(counts @ self.sub_words + self._phrases(chunk, control)),
        }
        for matrix in found.values():
            matrix.sort_indices()
        return {block: Counts.of(matrix) for block, matrix in found.items()}

    @staticmethod
    def packed(counts: Mapping[str, Counts]) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {}
        for block, its in counts.items():
            own = {"indptr": its.indptr, "indices": its.indices, "counts": its.data}
            arrays |= {f"{block}.{name}": array for name, array in own.items()}
            arrays[f"{block}.columns"] = np.array([its.shape[1]])
        return arrays

    @staticmethod
    def unpacked(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Counts]:
        counts = {}
        for block in BLOCKS:
            if f"{block}.indptr" in arrays:
                indptr, indices, data = (
                    arrays[f"{block}.{name}"] for name in ("indptr", "indices", "counts")
                )
                shape = len(indptr) - 1, int(arrays[f"{block}.columns"][0])
                counts[block] = Counts(indptr, indices, data, shape)
        return counts

    def _heads(self, chunk: tuple[int, int]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The first words of longer texts, as offsets and words."""
        offsets, sequence = self.texts.texts(*chunk)
        lengths = np.diff(offsets)
        rows = np.flatnonzero(lengths > HEAD_WORDS)
        first = (offsets[rows][:, None] + np.arange(HEAD_WORDS)).ravel()
        ends = np.zeros(len(offsets), dtype=np.int64)
        ends[rows + 1] = HEAD_WORDS
        return np.cumsum(ends), sequence[first]

    def _more_of_heads(self, chunk: tuple[int, int]) -> sp.csr_array:
        """How many more times the first words of longer texts count."""
        offsets, words = self._heads(chunk)
        more = np.full(len(words), HEAD_MORE_TIMES, dtype=np.int32)
        return sp.csr_array((more, words, offsets), shape=(len(offsets) - 1, len(self.column)))

    def _bigrams(self, chunk: tuple[int, int], control: Control) -> sp.csr_array:
        bigrams = self.bigrams
        assert bigrams is not None

        def count(offsets: NDArray[np.int64], words: NDArray[np.int32]) -> Any:
            columns = self.column[words]
            return _core.count_bigrams(offsets, columns, bigrams, cancel=control.cancel)

        return self._with_heads(chunk, len(bigrams), count)

    def _phrases(self, chunk: tuple[int, int], control: Control) -> sp.csr_array:
        assert self.sub_words is not None

        def count(offsets: NDArray[np.int64], words: NDArray[np.int32]) -> Any:
            return _core.count_phrases(offsets, words, *self.phrases, cancel=control.cancel)

        return self._with_heads(chunk, self.sub_words.shape[1], count)

    def _with_heads(
        self, chunk: tuple[int, int], n_columns: int, count: Callable[..., Any]
    ) -> sp.csr_array:
        """What is counted in sequences of words, more times in the first words of longer texts."""
        shape = (chunk[1] - chunk[0], n_columns)
        counts = sp.csr_array(shape, dtype=np.int32)
        for times, sequences in (
            (1, self.texts.texts(*chunk)),
            (HEAD_MORE_TIMES, self._heads(chunk)),
        ):
            indptr, numbers, found = count(*sequences)
            counts = counts + sp.csr_array((times * found, numbers, indptr), shape=shape)
        return sp.csr_array(counts)


class CountedTexts:
    """The counts of all features, which become weights in place."""

    def __init__(self, task: CountingTask, dtype: Any, executor: Executor, scratch: Scratch | None):
        """They lie in the `scratch` files, if there are any."""
        self.chunks = task.texts.chunks()
        self.texts_with: dict[str, NDArray[np.int64]] = {}  # of each feature
        indptr: dict[str, list[NDArray[Any]]] = {}
        growing: dict[str, tuple[GrowingArray, GrowingArray]] = {}
        widths: dict[str, int] = {}
        for found in executor.stream(task, self.chunks, name="text chunk"):
            for block, its in found.items():
                if block not in growing:
                    growing[block] = GrowingArray(np.int32, scratch), GrowingArray(dtype, scratch)
                    indptr[block] = [np.zeros(1, np.int64)]
                    widths[block] = its.shape[1]
                    self.texts_with[block] = np.zeros(its.shape[1], np.int64)
                growing[block][0].append(its.indices)
                growing[block][1].append(its.data)
                indptr[block].append(its.indptr[1:] + indptr[block][-1][-1])
                self.texts_with[block] += np.bincount(its.indices, minlength=its.shape[1])
        self.counts = {
            block: Counts(
                np.concatenate(indptr[block]),
                indices.whole(),
                values.whole(),
                (task.texts.n_texts, widths[block]),
            )
            for block, (indices, values) in growing.items()
        }

    def weighed(
        self,
        settings: Mapping[str, Any],
        idf: Mapping[str, NDArray[Any] | None],
        n_jobs: int | None,
    ) -> Blocks:
        """The features, made in place of the counts, in threads of this process."""

        def weigh(chunk: tuple[int, int], control: Control) -> None:
            for block, its in self.counts.items():
                weighed(its.rows(*chunk), settings, idf[block])

        ThreadExecutor(n_jobs).map(weigh, self.chunks)
        return Blocks({block: its.arrays() for block, its in self.counts.items()})
