"""The vectorizer of texts: its default, its settings in a file, and which of these are safe.

A file can hold only the settings below, and no function. A regular expression can take exponential
time on a short text, and minutes to compile. An untrusted file may only have one whose form makes
its time linear in the text: a fixed number of characters, each of a given class, followed by a run
of one class. Matching such a run never backtracks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer

from .._model.fitted import MOST_ROWS
from .._model.names import plain
from .._storage.fields import FLAG, TEXT, Entry, Kind, Table, one_of, optional, whole
from .._storage.strings import Strings
from .._trees.params import AUTO, Choice, Number, Rule

# Longer sequences of words or characters are of no use, and their number has no bound.
LONGEST_NGRAM = 20
DTYPES = {"float32": np.float32, "float64": np.float64}
FUNCTIONS = ("preprocessor", "tokenizer", "analyzer")


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
        isinstance(value, list)
        and len(value) == 2
        and all(type(n) is int for n in value)
        and 1 <= value[0] <= value[1] <= LONGEST_NGRAM
    )


_SHARE_OR_COUNT = Kind("a share of the documents or their number", _is_share_or_count)
# All parameters of a TfidfVectorizer except `input`, which is "content", the functions, which
# cannot be stored, and the vocabulary, which is an array.
VECTORIZER = Table(
    "vectorizer",
    Entry("encoding", TEXT),
    Entry("decode_error", one_of("strict", "ignore", "replace")),
    Entry("strip_accents", one_of(None, "ascii", "unicode")),
    Entry("lowercase", FLAG),
    Entry("analyzer", one_of("word", "char", "char_wb")),
    Entry("stop_words", Kind("None, 'english' or a list of words", _are_stop_words)),
    Entry("token_pattern", optional(TEXT)),
    Entry("ngram_range", Kind(f"two numbers from 1 to {LONGEST_NGRAM}", _is_ngram_range)),
    Entry("max_df", _SHARE_OR_COUNT),
    Entry("min_df", _SHARE_OR_COUNT),
    Entry("max_features", optional(whole(1, MOST_ROWS))),
    Entry("binary", FLAG),
    Entry("dtype", one_of(*DTYPES)),
    Entry("norm", one_of("l1", "l2", None)),
    Entry("use_idf", FLAG),
    Entry("smooth_idf", FLAG),
    Entry("sublinear_tf", FLAG),
)


MIN_DF = 2  # texts that a word must occur in
_COUNT = Number(1, 1_000_000_000, integer=True)
# How words become features; a given vectorizer replaces them all.
WORDS: Mapping[str, tuple[Rule, ...]] = {
    "min_df": (_COUNT,),
    "max_words": (Choice((None,)), _COUNT),
    "ngrams": (Choice((AUTO,)), Number(1, LONGEST_NGRAM, integer=True)),
    "stop_words": (Choice((None, "english")),),
}
WORD_DEFAULTS: Mapping[str, Any] = {
    "min_df": MIN_DF,
    "max_words": None,
    "ngrams": AUTO,
    "stop_words": None,
}
# The parameters of TextTagger that are numbers or words.
CONSTRAINTS: Mapping[str, tuple[Rule, ...]] = {
    "min_tag_count": (Number(1, integer=True),),
    **WORDS,
}


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
    return TfidfVectorizer(
        **{"sublinear_tf": True, "min_df": MIN_DF, "dtype": np.float32, **changes}
    )


def word_vectorizer(params: Mapping[str, Any]) -> TfidfVectorizer:
    """The vectorizer of the words that the parameters describe."""
    longest = 1 if params["ngrams"] == AUTO else params["ngrams"]
    return default_vectorizer(
        min_df=params["min_df"],
        max_features=params["max_words"],
        ngram_range=(1, longest),
        stop_words=params["stop_words"],
    )


def given_words(params: Mapping[str, Any]) -> list[str]:
    """The names of the parameters of `WORDS` that do not have their default."""
    return [name for name, default in WORD_DEFAULTS.items() if params[name] != default]


def vectorizer_settings(vectorizer: TfidfVectorizer) -> dict[str, Any]:
    """The parameters as JSON values; functions by their names."""
    params = vectorizer.get_params(deep=False)
    settings = {entry.name: params[entry.name] for entry in VECTORIZER.entries}
    for name in FUNCTIONS:
        if callable(params[name]):
            function = params[name]
            settings[name] = f"function {getattr(function, '__qualname__', type(function))}"
    settings["dtype"] = np.dtype(settings["dtype"]).name
    settings["ngram_range"] = [int(n) for n in settings["ngram_range"]]
    if not isinstance(settings["stop_words"], str | None):
        settings["stop_words"] = sorted(settings["stop_words"])
    return {name: plain(value) for name, value in settings.items()}


def savable_settings(vectorizer: TfidfVectorizer) -> dict[str, Any]:
    """The settings of a vectorizer; a ValueError for one that cannot be saved."""
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
    for entry in VECTORIZER.entries:
        if not entry.kind.allows(value := settings[entry.name]):
            raise ValueError(f"A vectorizer with {entry.name}={value!r} cannot be saved.")
    return settings


def are_savable(settings: Mapping[str, Any]) -> bool:
    return all(entry.kind.allows(settings[entry.name]) for entry in VECTORIZER.entries)


def checked_settings(stored: Any, *, trust_pattern: bool) -> dict[str, Any]:
    """The settings of a file; a ValueError if they cannot be those of a vectorizer."""
    settings = VECTORIZER.read(stored)
    least, most = settings["min_df"], settings["max_df"]
    if type(least) is type(most) and least > most:
        raise ValueError(f"its vectorizer has a min_df of {least}, but a max_df of {most}")
    pattern = settings["token_pattern"]
    if settings["analyzer"] == "word" and pattern is None:
        raise ValueError("its vectorizer reads words, but has no token pattern")
    if pattern is None:
        return settings
    if not trust_pattern and not is_linear(pattern):
        raise ValueError(
            f"its token pattern, {pattern[:80]!r}, might never come to an end on some text; if you "
            "trust the author of the file, Python's ldsm.load(path, trust_pattern=True) reads it"
        )
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"its token pattern is wrong: {error}") from None
    return settings


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


# -- safe regular expressions ------------------------------------------------------------------

LONGEST_PATTERN = 200  # characters
_MOST_REPEATS = 64

# A class of characters: \w and the like, a set of them, any, or one given character.
_ONE = r"\\[wWdDsS]|\\[^\w\s]"
_ATOM = rf"(?:{_ONE}|\[\^?(?:[^\[\]\\\n]|{_ONE})+\]|[^\\\[\]{{}}()*+?|^$\n])"
_FORM = re.compile(
    rf"(?:\(\?u\))?"
    rf"(?:\\b)?"
    rf"(?:(?:{_ATOM}(?:\{{\d{{1,2}}\}})?)*?)"
    rf"(?:(?P<run>{_ATOM})(?:[+*]|\{{\d{{1,2}},(?:\d{{1,2}})?\}}))?"
    rf"(?P<end>\\b)?"
)


def is_linear(pattern: str) -> bool:
    """Whether a pattern is certain to take time in proportion to the text.

    Examples
    --------
    >>> is_linear(r"(?u)\\b\\w\\w+\\b"), is_linear(r"(?:a+)+$")
    (True, False)
    """
    form = _FORM.fullmatch(pattern) if len(pattern) <= LONGEST_PATTERN else None
    if form is None:
        return False
    counts = re.findall(r"\{(\d+)(?:,(\d*))?\}", pattern)
    if any(int(count or 0) > _MOST_REPEATS for pair in counts for count in pair):
        return False
    # Behind a run of word characters a word ends; behind another run the search would go back.
    return form["end"] is None or form["run"] in (None, r"\w")
