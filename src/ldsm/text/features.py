"""Features of texts: words and perhaps bigrams and sub-words, each in its own block.

Nothing is tokenised, and no word decoded, until the vectorizer of a file is first used.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer

from .._arrays.features import feature_arrays
from .._arrays.texts import packed
from .._execution.chosen import stage_executor
from .._execution.executor import Executor
from .._execution.scratch import Scratch
from .._execution.threads import state_of
from .._features.blocks import BIGRAMS, MAIN, SUB_WORDS, Blocks, Layout
from .._storage.paths import PathLike
from .._storage.strings import Strings
from .._storage.tasks.kept_results import KeepingExecutor
from .._trees.checkpoint import words_folder
from ..datasets.dataset import BigramForm, SubWordForm, TextForm
from ..datasets.documents.document import fit_words, no_words
from .counts.counting import CountedTexts, CountingTask
from .counts.learned_words import chosen_bigrams, chosen_words, learn_words
from .counts.sub_words import chosen_sub_words, shown, sub_word_idf
from .counts.weights import idf_of, weighed
from .counts.words import HEAD_WORDS, Counts, WordTable, are_plain_words, bigram_form
from .vectorizer import (
    DTYPES,
    are_savable,
    unfitted_vectorizer,
    vectorizer_settings,
    with_idf,
)


@dataclass(frozen=True, eq=False)
class TextFeatures:
    """How texts become features: words and perhaps bigrams (two adjacent words).

    The vectorizer, which knows only the words, is built when it is first used.
    """

    settings: Mapping[str, Any]
    words: Strings
    idf: NDArray[Any] | None
    bigrams: BigramForm | None = None
    sub_words: SubWordForm | None = None
    head_words: int = 0  # of longer texts, which count more times; 0: none

    @classmethod
    def of(cls, vectorizer: TfidfVectorizer) -> TextFeatures:
        """The features of a vectorizer that is fitted already."""
        features = cls({}, Strings.pack([]), None)
        vars(features)["vectorizer"] = vectorizer
        return features

    @cached_property
    def names(self) -> list[str]:
        """The words, behind them the bigrams, and behind these the sub-words."""
        words: list[str] = self.vectorizer.get_feature_names_out().tolist()
        names = list(words)
        if self.bigrams is not None:
            first, second = self.bigrams.first.tolist(), self.bigrams.second.tolist()
            names += [f"{words[a]} {words[b]}" for a, b in zip(first, second, strict=True)]
        if self.sub_words is not None:
            names += shown(self.sub_words.words)
        return names

    @property
    def are_words(self) -> bool:
        """Whether the features of the first block are single words."""
        its = self.vectorizer
        return its.analyzer == "word" and tuple(its.ngram_range) == (1, 1)

    @property
    def layout(self) -> Layout:
        """The blocks that texts become."""
        n_words = len(self.words) or len(self.vectorizer.vocabulary_)
        bigrams, sub_words = (
            0 if part is None else len(part.idf) for part in (self.bigrams, self.sub_words)
        )
        return Layout.of(main=n_words, bigrams=bigrams, sub_words=sub_words)

    @property
    def form(self) -> TextForm | None:
        """What a store keeps, if it is known; `kept_form` also asks the vectorizer."""
        if not self.settings:
            return None
        return TextForm(self.settings, self.idf, self.bigrams, self.sub_words, self.head_words)

    def blocks(self, texts: list[str]) -> Blocks:
        """The features of texts."""
        if not self.is_counted_here:
            return Blocks.of(feature_arrays(self.vectorizer.transform(texts)))
        return self.weighed(self.counts(texts))

    def counts(self, texts: list[str]) -> dict[str, Counts]:
        """By block, how often texts have each feature, if the core counts them."""
        counts = self._table.counts(
            texts,
            lowercase=self.settings["lowercase"],
            dtype=DTYPES[self.settings["dtype"]],
            head_words=self.head_words,
        )
        return {block: counts[block] for block in self.idf_by_block}

    def weighed(self, counts: Mapping[str, Counts]) -> Blocks:
        """The features of counts, made in place."""
        return Blocks(
            {
                block: weighed(counts[block], self.settings, idf).arrays()
                for block, idf in self.idf_by_block.items()
            }
        )

    def reweighed(self, **changes: Any) -> TextFeatures:
        """The same words, bigrams and sub-words with another idf."""
        features = replace(self, **changes)
        for kept in ("_table", "known_words", "is_counted_here"):  # take long to make
            if kept in vars(self):
                vars(features)[kept] = vars(self)[kept]
        return features

    @cached_property
    def known_words(self) -> frozenset[str]:
        return frozenset(self.words)

    @property
    def idf_by_block(self) -> dict[str, NDArray[Any] | None]:
        """The idf of each feature; None if they are not weighted by it."""
        weights = {MAIN: self.idf}
        if self.bigrams is not None:
            weights[BIGRAMS] = self.bigrams.idf
        if self.sub_words is not None:
            weights[SUB_WORDS] = self.sub_words.idf
        return weights

    @cached_property
    def is_counted_here(self) -> bool:
        """Whether the core counts the words; otherwise scikit-learn does."""
        settings = self.settings
        return bool(settings) and are_plain_words(unfitted_vectorizer(settings, None))

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self, "_table")

    @cached_property
    def _table(self) -> WordTable:
        sub_words = None if self.sub_words is None else self.sub_words.words
        return WordTable.of(self.words, self.bigrams, sub_words)

    @cached_property
    def vectorizer(self) -> TfidfVectorizer:
        return with_idf(unfitted_vectorizer(self.settings, self.words), self.idf)

    def hashed(self) -> Iterator[str | NDArray[Any]]:
        """What enters the fingerprint of a model."""
        words = self.vectorizer.get_feature_names_out().tolist()
        yield json.dumps([vectorizer_settings(self.vectorizer), words])
        if self.vectorizer.use_idf:
            yield self.vectorizer.idf_
        yield from self.bigrams or ()
        if self.head_words:
            yield str(self.head_words)
        if self.sub_words is not None:
            yield json.dumps(list(self.sub_words.words))
            yield self.sub_words.idf


class _Work(NamedTuple):
    """What counts words, and where large arrays lie; None: in memory."""

    executor: Executor
    scratch: Scratch | None

    @classmethod
    def of(
        cls, n_jobs: int | None, memory_limit: int | None, checkpoint_dir: PathLike | None
    ) -> _Work:
        executor = stage_executor(n_jobs)
        scratch = None if memory_limit is None else Scratch(tempfile.gettempdir())
        if checkpoint_dir is not None:
            folder = words_folder(checkpoint_dir)
            if not executor.IN_PROCESS:
                scratch = Scratch(folder, shared=True)
            executor = KeepingExecutor(executor, folder)
        return cls(executor, scratch)


def learn_features(
    vectorizer: TfidfVectorizer,
    texts: Iterable[str],
    n_jobs: int | None,
    *,
    with_parts: Callable[[int], bool] = lambda n_texts: False,
    label_names: Callable[[], Iterable[str]] = lambda: (),
    memory_limit: int | None = None,
    checkpoint_dir: PathLike | None = None,
) -> tuple[Blocks, TextFeatures]:
    """Learn the words of texts; returns their features, and how those of other texts are made.

    If `with_parts` is true for their number, and the core counts their words, bigrams and sub-words
    are features, too. `label_names`, called once the texts are read, decides which sub-words. With
    a `memory_limit`, what grows with the texts lies in unnamed files of the temporary folder. The
    counts of each chunk are kept in the folder `checkpoint_dir`, from which the same call resumes.
    """
    settings = vectorizer_settings(vectorizer)
    if (
        not are_plain_words(vectorizer)
        or vectorizer.vocabulary is not None
        or not are_savable(settings)
    ):
        X = fit_words(vectorizer, texts)
        return Blocks.of(feature_arrays(X)), TextFeatures.of(vectorizer)
    executor, scratch = _Work.of(n_jobs, memory_limit, checkpoint_dir)
    learned = learn_words(texts, lowercase=vectorizer.lowercase, executor=executor, scratch=scratch)
    in_words, n_texts = learned.texts, learned.texts.n_texts
    chosen = chosen_words(learned, vectorizer)
    if chosen is None:
        problem = "no terms remain" if learned.words else "empty vocabulary"
        raise no_words(vectorizer, n_texts, problem)
    features = TextFeatures(settings, chosen.words, None)
    task = CountingTask(in_words, chosen.column, len(chosen.words))
    with_all = with_parts(n_texts)
    if with_all:
        bigrams = chosen_bigrams(in_words, chosen, executor=executor, memory_limit=memory_limit)
        sub_words = chosen_sub_words(learned, label_names())
        task = replace(
            task,
            bigrams=bigrams.keys,
            sub_words=sub_words.of_words,
            phrases=(*packed(learned.words), sub_words.words.data, sub_words.words.offsets),
        )
    counted = CountedTexts(task, vectorizer.dtype, executor, scratch)

    def idf(block: str) -> NDArray[Any]:
        texts_with = counted.texts_with[block]
        return idf_of(texts_with, n_texts, vectorizer.dtype, smooth=vectorizer.smooth_idf)

    if vectorizer.use_idf:
        features = replace(features, idf=idf(MAIN))
    if with_all:
        features = replace(
            features,
            bigrams=bigram_form(bigrams.keys, idf(BIGRAMS).astype(np.float32)),
            sub_words=SubWordForm(
                sub_words.words,
                sub_word_idf(counted.texts_with[SUB_WORDS], n_texts, sub_words.of_phrases),
                sub_words.indexed,
            ),
            head_words=HEAD_WORDS,
        )
    return counted.weighed(settings, features.idf_by_block, n_jobs), features
