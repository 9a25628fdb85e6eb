"""Features of texts: the default vectorizer, and vectorizers as settings and arrays of a file.

A file can hold only the settings below, and no function. scikit-learn checks their values, as for
any vectorizer.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from .._model.names import names_from_arrays, names_to_arrays, plain
from .._storage.container import Arrays

# All parameters of a TfidfVectorizer except `input`, which is "content", the functions, which
# cannot be stored, and the vocabulary, which is an array.
SETTINGS = (
    "encoding",
    "decode_error",
    "strip_accents",
    "lowercase",
    "analyzer",
    "stop_words",
    "token_pattern",
    "ngram_range",
    "max_df",
    "min_df",
    "max_features",
    "binary",
    "dtype",
    "norm",
    "use_idf",
    "smooth_idf",
    "sublinear_tf",
)
FUNCTIONS = ("preprocessor", "tokenizer", "analyzer")
DTYPES = {"float32": np.float32, "float64": np.float64}


def default_vectorizer(**changes: Any) -> TfidfVectorizer:
    """The vectorizer that a TextTagger uses by default; `changes` override its parameters.

    Features are the words that occur in two or more documents: this halves the vocabulary, and
    keeps words of a single document out of the model. A word's weight grows with the logarithm of
    its count. Stop words, other word patterns and other minimum counts made no measurable
    difference to precision on random held-out training documents of two corpora.

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
    if settings["dtype"] not in DTYPES:
        raise ValueError(f"A vectorizer of dtype {settings['dtype']} cannot be saved.")
    arrays = names_to_arrays("words", vectorizer.get_feature_names_out().tolist())
    if vectorizer.use_idf:
        arrays["idf"] = vectorizer.idf_
    return settings, arrays


def unfitted_vectorizer(settings: Mapping[str, Any], words: list[str] | None) -> TfidfVectorizer:
    """The vectorizer that the settings describe; `words` fixes its vocabulary."""
    if settings.keys() != set(SETTINGS):
        unknown = min(settings.keys() ^ set(SETTINGS))
        raise ValueError(f"its settings of the vectorizer lack or have {unknown[:80]!r}")
    values = dict(settings)
    if values["dtype"] not in DTYPES or not isinstance(values["ngram_range"], list):
        raise ValueError("its settings of the vectorizer have a wrong type or range")
    values["dtype"] = DTYPES[values["dtype"]]
    values["ngram_range"] = tuple(values["ngram_range"])
    return TfidfVectorizer(**values, vocabulary=words)


def vectorizer_from_state(settings: Mapping[str, Any], arrays: Arrays) -> TfidfVectorizer:
    """The fitted vectorizer; its arrays are removed from `arrays`."""
    words = names_from_arrays("words", arrays)
    vectorizer = unfitted_vectorizer(settings, words)
    try:
        # With a fixed vocabulary this learns nothing, but makes the vectorizer check its parameters
        # and get ready. Its warnings were shown when it was first fitted.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            vectorizer.fit([""])
    except (re.error, OverflowError) as error:
        raise ValueError(f"its settings of the vectorizer are wrong: {error}") from None
    if vectorizer.use_idf:
        idf = arrays.pop("idf", None)
        if idf is None or idf.shape != (len(words),) or idf.dtype not in DTYPES.values():
            raise ValueError("its array 'idf' is missing or has a wrong type or length")
        if not np.isfinite(idf).all():
            raise ValueError("its array 'idf' is not finite")
        vectorizer.idf_ = idf
    return vectorizer
