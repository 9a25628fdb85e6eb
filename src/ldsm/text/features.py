"""Features of texts: the default vectorizer, and vectorizers as settings and arrays of a file.

A file can hold only the settings below, and no function. Nothing is tokenised, and no word decoded,
until the vectorizer of a file is first used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.utils.sparsefuncs_fast import (
    inplace_csr_row_normalize_l1,
    inplace_csr_row_normalize_l2,
)

from .._arrays.features import feature_arrays
from .._execution.threads import state_of
from .._features.blocks import BIGRAMS, MAIN, SUB_WORDS, Blocks, Layout
from .._features.training_rows import layout_of
from .._model.fitted import MOST_ROWS
from .._model.names import names_from_arrays, names_to_arrays, plain
from .._storage.container import Arrays, take
from .._storage.strings import Strings
from ..datasets.dataset import BigramForm, Dataset, SubWordForm, TextForm
from ..datasets.documents import fit_words, no_words
from .sub_words import chosen_sub_words, shown, sub_word_idf
from .token_patterns import is_linear
from .words import (
    HEAD_WORDS,
    WordTable,
    are_plain_words,
    bigram_keys,
    chosen_bigrams,
    chosen_words,
    learn_words,
    with_head,
)

# Longer sequences of words or characters are of no use, and their number has no bound.
LONGEST_NGRAM = 20
MOST_HEAD_WORDS = 10_000
LARGEST_IDF = 100  # of a word that one of 10^43 documents has
DTYPES = {"float32": np.float32, "float64": np.float64}


def _one_of(*values: Any) -> Callable[[Any], bool]:
    return lambda value: any(type(value) is type(one) and value == one for one in values)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_share_or_count(value: Any) -> bool:
    """As scikit-learn has it: a share of the documents is a float, their number an int."""
    return (
        1 <= value <= MOST_ROWS if type(value) is int else type(value) is float and 0 <= value <= 1
    )


def _are_stop_words(value: Any) -> bool:
    return value in (None, "english") or (
        isinstance(value, list) and all(isinstance(word, str) for word in value)
    )


def _is_ngram_range(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and all(type(plain(n)) is int for n in value)
        and 1 <= value[0] <= value[1] <= LONGEST_NGRAM
    )


# All parameters of a TfidfVectorizer except `input`, which is "content", the functions, which
# cannot be stored, and the vocabulary, which is an array. With each, what a file may say of it.
SETTINGS: Mapping[str, Callable[[Any], bool]] = {
    "encoding": lambda value: isinstance(value, str),
    "decode_error": _one_of("strict", "ignore", "replace"),
    "strip_accents": _one_of(None, "ascii", "unicode"),
    "lowercase": _is_bool,
    "analyzer": _one_of("word", "char", "char_wb"),
    "stop_words": _are_stop_words,
    "token_pattern": lambda value: isinstance(value, str | None),
    "ngram_range": _is_ngram_range,
    "max_df": _is_share_or_count,
    "min_df": _is_share_or_count,
    "max_features": lambda value: value is None or (type(value) is int and value >= 1),
    "binary": _is_bool,
    "dtype": _one_of(*DTYPES),
    "norm": _one_of("l1", "l2", None),
    "use_idf": _is_bool,
    "smooth_idf": _is_bool,
    "sublinear_tf": _is_bool,
}
FUNCTIONS = ("preprocessor", "tokenizer", "analyzer")


def default_vectorizer(**changes: Any) -> TfidfVectorizer:
    """The vectorizer of a TextTagger's words by default; `changes` override its parameters.

    Features are the words that occur in two or more documents: this halves the vocabulary, and
    keeps words of a single document out of the model. A word's weight grows with the logarithm of
    its count. Stop words, other word patterns and other minimum counts made no measurable
    difference to precision on random held-out training documents of two corpora.

    Parameters
    ----------
    **changes
        Parameters of scikit-learn's TfidfVectorizer.

    Examples
    --------
    >>> from ldsm.text import TextTagger, default_vectorizer
    >>> tagger = TextTagger(vectorizer=default_vectorizer(ngram_range=(1, 2)))
    """
    return TfidfVectorizer(**{"sublinear_tf": True, "min_df": 2, "dtype": np.float32, **changes})


def vectorizer_settings(vectorizer: TfidfVectorizer) -> dict[str, Any]:
    """The parameters as JSON values; functions by their names."""
    params = vectorizer.get_params(deep=False)
    settings = {name: params[name] for name in SETTINGS}
    for name in FUNCTIONS:
        if callable(params[name]):
            function = params[name]
            settings[name] = f"function {getattr(function, '__qualname__', type(function))}"
    settings["dtype"] = np.dtype(settings["dtype"]).name
    settings["ngram_range"] = [int(n) for n in settings["ngram_range"]]
    if not isinstance(settings["stop_words"], str | None):
        settings["stop_words"] = sorted(settings["stop_words"])
    return {name: plain(value) for name, value in settings.items()}


def vectorizer_state(vectorizer: TfidfVectorizer) -> tuple[dict[str, Any], Arrays]:
    """Settings and arrays of a fitted vectorizer; a ValueError for one that cannot be saved."""
    if type(vectorizer) is not TfidfVectorizer:
        raise ValueError(
            f"Only a TfidfVectorizer itself can be saved. Got {type(vectorizer).__name__}."
        )
    for name in FUNCTIONS:
        if callable(function := getattr(vectorizer, name)):
            raise ValueError(
                "A vectorizer with a custom function cannot be saved, because a model file holds "
                f"no code. Got {name}={function!r}."
            )
    settings = vectorizer_settings(vectorizer)
    for name, allowed in SETTINGS.items():
        if not allowed(settings[name]):
            raise ValueError(f"A vectorizer with {name}={settings[name]!r} cannot be saved.")
    arrays = names_to_arrays("words", vectorizer.get_feature_names_out().tolist())
    if vectorizer.use_idf:
        arrays["idf"] = vectorizer.idf_
    return settings, arrays


@dataclass(frozen=True, eq=False)
class TextFeatures:
    """How texts become features: words and perhaps bigrams (two adjacent words).

    The vectorizer, which knows the words only, is put together when it is first used.
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
    def layout(self) -> Layout:
        """The blocks that texts become."""
        n_words = len(self.words) or len(self.vectorizer.vocabulary_)
        bigrams, sub_words = (
            0 if part is None else len(part.idf) for part in (self.bigrams, self.sub_words)
        )
        return Layout.of(main=n_words, bigrams=bigrams, sub_words=sub_words)

    @property
    def form(self) -> TextForm | None:
        """What a store keeps, if it is at hand: `kept_form` also asks the vectorizer."""
        if not self.settings:
            return None
        return TextForm(self.settings, self.idf, self.bigrams, self.sub_words, self.head_words)

    def blocks(self, texts: list[str]) -> Blocks:
        """The features of texts."""
        if not self.is_counted_here:
            return Blocks.of(feature_arrays(self.vectorizer.transform(texts)))
        return self.weighed(self.counts(texts))

    def counts(self, texts: list[str]) -> dict[str, sp.csr_array]:
        """By block, how often texts have each feature, if the core counts them."""
        counts = self._table.counts(
            texts,
            lowercase=self.settings["lowercase"],
            dtype=DTYPES[self.settings["dtype"]],
            head_words=self.head_words,
        )
        return {block: counts[block] for block in self.idf_by_block}

    def weighed(self, counts: Mapping[str, Any]) -> Blocks:
        """The features of counts, made in place."""
        return Blocks(
            {
                block: feature_arrays(weighed(counts[block], self.settings, idf))
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


def learn_features(
    vectorizer: TfidfVectorizer,
    texts: Iterable[str],
    n_jobs: int | None,
    *,
    with_parts: Callable[[int], bool] = lambda n_texts: False,
    label_names: Callable[[], Iterable[str]] = lambda: (),
) -> tuple[Blocks, TextFeatures]:
    """Learn the words of texts; their features, and how those of others are made.

    If `with_parts` says so of their number, and the core counts their words, bigrams and sub-words
    are features, too. Which sub-words, depends on `label_names`, which is asked once the texts are
    read.
    """
    settings = vectorizer_settings(vectorizer)
    if (
        not are_plain_words(vectorizer)
        or vectorizer.vocabulary is not None
        or vectorizer.max_features is not None
        or not all(allowed(settings[name]) for name, allowed in SETTINGS.items())
    ):
        X = fit_words(vectorizer, texts)
        return Blocks.of(feature_arrays(X)), TextFeatures.of(vectorizer)
    learned = learn_words(texts, lowercase=vectorizer.lowercase, n_jobs=n_jobs)
    with_all = with_parts(learned.counts.shape[0])
    if with_all:
        learned = with_head(learned)
    chosen = chosen_words(learned, vectorizer)
    if chosen is None:
        problem = "no terms remain" if learned.words else "empty vocabulary"
        raise no_words(vectorizer, learned.counts.shape[0], problem)
    counts = {MAIN: chosen.counts.astype(vectorizer.dtype)}
    idf = _idf(counts[MAIN], vectorizer) if vectorizer.use_idf else None
    features = TextFeatures(settings, chosen.words, idf)
    if with_all:
        found = chosen_bigrams(learned, chosen.column)
        counts[BIGRAMS] = found.counts.astype(vectorizer.dtype)
        bigram_idf = _idf(counts[BIGRAMS], vectorizer).astype(np.float32)
        spelled = chosen_sub_words(learned, label_names())
        counts[SUB_WORDS] = spelled.counts.astype(vectorizer.dtype)
        features = replace(
            features,
            bigrams=BigramForm(found.first, found.second, bigram_idf),
            sub_words=SubWordForm(spelled.words, sub_word_idf(spelled.counts), spelled.indexed),
            head_words=HEAD_WORDS,
        )
    return features.weighed(counts), features


def _idf(counts: Any, vectorizer: TfidfVectorizer) -> NDArray[Any]:
    if counts.shape[1] == 0:
        return np.zeros(0, dtype=counts.dtype)
    idf: NDArray[Any] = TfidfTransformer(smooth_idf=vectorizer.smooth_idf).fit(counts).idf_
    return idf


def weighed(counts: Any, settings: Mapping[str, Any], idf: NDArray[Any] | None) -> Any:
    """The features of a block's counts, made in place.

    scikit-learn, whose numbers these are, takes much longer over a single text.
    """
    if settings["binary"]:
        counts.data[:] = 1
    if settings["sublinear_tf"]:
        np.log(counts.data, counts.data)
        counts.data += 1.0
    if idf is not None:
        counts.data *= idf[counts.indices]
    return rescaled(counts, settings)


def rescaled(X: Any, settings: Mapping[str, Any]) -> Any:
    """Rows of the length that the settings ask for, made in place."""
    scale = {"l1": inplace_csr_row_normalize_l1, "l2": inplace_csr_row_normalize_l2}
    if settings["norm"] in scale:
        scale[settings["norm"]](X)
    return X


def unfitted_vectorizer(settings: Mapping[str, Any], words: Strings | None) -> TfidfVectorizer:
    """The vectorizer that checked settings describe; `words` fixes its vocabulary."""
    values = dict(settings)
    values["dtype"] = DTYPES[values["dtype"]]
    values["ngram_range"] = tuple(values["ngram_range"])
    return TfidfVectorizer(**values, vocabulary=words)


def with_idf(vectorizer: TfidfVectorizer, idf: NDArray[Any] | None) -> TfidfVectorizer:
    """Given a vocabulary and weights, a vectorizer is fitted.

    One without weights gets those that change nothing.
    """
    vectorizer.use_idf = True
    vectorizer.idf_ = np.ones(len(vectorizer.vocabulary)) if idf is None else idf
    vectorizer.use_idf = idf is not None
    return vectorizer


def features_state(features: TextFeatures) -> tuple[dict[str, Any], Arrays]:
    """Settings and arrays of features; a ValueError for a vectorizer that cannot be saved."""
    settings, arrays = vectorizer_state(features.vectorizer)
    if features.bigrams is not None:
        arrays |= {f"pairs.{name}": values for name, values in features.bigrams._asdict().items()}
    if features.sub_words is not None:
        arrays |= names_to_arrays("sub_words", features.sub_words.words)
        arrays["sub_words.idf"] = features.sub_words.idf
    return settings, arrays


def kept_form(features: TextFeatures) -> TextForm:
    """What a store keeps; a ValueError for a vectorizer that cannot be saved."""
    settings, arrays = vectorizer_state(features.vectorizer)
    return TextForm(
        settings, arrays.get("idf"), features.bigrams, features.sub_words, features.head_words
    )


def features_from_state(
    settings: Mapping[str, Any],
    arrays: Arrays,
    *,
    indexed: bool,
    head_words: int,
    verify: bool,
    trust_pattern: bool,
) -> TextFeatures:
    """What `features_state` stored; its arrays are removed from `arrays`."""
    words, idf = names_from_arrays("words", arrays, verify=verify), arrays.pop("idf", None)
    bigrams = None
    if "pairs.first" in arrays:
        bigrams = BigramForm(*(take(arrays, f"pairs.{name}") for name in BigramForm._fields))
    sub_words = None
    if "sub_words.idf" in arrays:
        spelled = names_from_arrays("sub_words", arrays, verify=verify)
        sub_words = SubWordForm(spelled, take(arrays, "sub_words.idf"), indexed)
    form = TextForm(settings, idf, bigrams, sub_words, head_words)
    return checked_features(form, words, verify=verify, trust_pattern=trust_pattern)


def checked_features(
    form: TextForm, words: Strings, *, verify: bool = True, trust_pattern: bool = False
) -> TextFeatures:
    """The features that a file describes; a ValueError if it cannot be."""
    settings, idf, bigrams, sub_words, head_words = form
    if type(head_words) is not int or not 0 <= head_words <= MOST_HEAD_WORDS:
        raise ValueError(f"its texts cannot begin with {head_words!r:.40} words")
    if settings.keys() != SETTINGS.keys():
        unknown = min(settings.keys() ^ SETTINGS.keys())
        raise ValueError(f"its settings of the vectorizer lack or have {unknown[:80]!r}")
    for name, allowed in SETTINGS.items():
        if not allowed(settings[name]):
            raise ValueError(f"its vectorizer has a wrong {name}, {str(settings[name])[:80]!r}")
    least, most = settings["min_df"], settings["max_df"]
    if type(least) is type(most) and least > most:
        raise ValueError(f"its vectorizer has a min_df of {least}, but a max_df of {most}")
    if settings["analyzer"] == "word" and settings["token_pattern"] is None:
        raise ValueError("its vectorizer reads words, but has no token pattern")
    _check_pattern(settings["token_pattern"], trust_pattern)
    if not words:
        raise ValueError("its vectorizer has no words")
    if settings["use_idf"]:
        if idf is None or idf.shape != (len(words),) or idf.dtype not in DTYPES.values():
            raise ValueError("its array 'idf' is missing or has a wrong type or length")
        if verify:
            _check_idf("words", idf)
    elif idf is not None:
        raise ValueError("it has an array 'idf' that its vectorizer does not use")
    if bigrams is not None:
        _check_bigrams(bigrams, len(words), idf)
    if sub_words is not None:
        its = sub_words.idf
        if idf is None or its.shape != (len(sub_words.words),) or its.dtype != np.float32:
            raise ValueError("the arrays of its sub-words have a wrong type or length")
        if verify:
            _check_idf("sub-words", its)
    return TextFeatures(settings, words, idf, bigrams, sub_words, head_words)


def features_of(data: Dataset) -> TextFeatures:
    """How the features of a Dataset were made from texts."""
    assert data.text_form is not None
    if data.feature_names is None:
        raise ValueError(f"Features of texts must have names, their words. Got none in {data!r}.")
    n_words = layout_of(data.text_form, data.n_features)[MAIN]
    names = Strings.pack(data.feature_names)
    words = Strings(names.data[: names.offsets[n_words]], names.offsets[: n_words + 1])
    try:
        return checked_features(data.text_form, words)
    except ValueError as error:
        raise ValueError(f"The words of {data!r} cannot be used: {error}.") from None


def _check_bigrams(bigrams: BigramForm, n_words: int, idf: NDArray[Any] | None) -> None:
    types = (np.int32, np.int32, np.float32)
    if idf is None or any(
        array.dtype != kind or array.shape != bigrams.first.shape or array.ndim != 1
        for array, kind in zip(bigrams, types, strict=True)
    ):
        raise ValueError("the arrays of its bigrams have a wrong type or length")
    numbers = np.concatenate([bigrams.first, bigrams.second])
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < n_words:
        raise ValueError("its bigrams have a word out of range")
    keys = bigram_keys(bigrams)
    if np.any(keys[1:] <= keys[:-1]):
        raise ValueError("its bigrams do not ascend")
    _check_idf("bigrams", bigrams.idf)


def _check_idf(of: str, idf: NDArray[Any]) -> None:
    if not ((idf >= 0) & (idf <= LARGEST_IDF)).all():  # false for NaN
        raise ValueError(f"the idf of its {of} is not a number from 0 to {LARGEST_IDF}")


def _check_pattern(pattern: str | None, trusted: bool) -> None:
    if pattern is None:
        return
    if not trusted and not is_linear(pattern):
        raise ValueError(
            f"its token pattern, {pattern[:80]!r}, might never come to an end on some text; if you "
            "trust whoever wrote the file, Python's ldsm.load(path, trust_pattern=True) reads it"
        )
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"its token pattern is wrong: {error}") from None
