"""A fitted tagger as a header and arrays, and back: the classifier's, and those of the words.

Of the vectorizer the file can name none but the settings below, and no function. What they may be
is checked by scikit-learn, as for any vectorizer.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer

from .._model.state import (
    classifier_from_state,
    classifier_state,
    names_from_arrays,
    names_to_arrays,
)
from ..classifier import LdSMClassifier

Arrays = dict[str, NDArray[Any]]

# Every parameter of a TfidfVectorizer but `input`, which is "content", the functions, which cannot
# be stored, and the vocabulary, which is an array.
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


def tagger_state(tagger: Any, *, compress: bool = False) -> tuple[dict[str, Any], Arrays]:
    """A fitted TextTagger as header entries and arrays; see `persistence.classifier_state`."""
    settings, arrays = vectorizer_state(tagger.vectorizer_)
    text = {
        "vectorizer": settings,
        "default_vectorizer": tagger.vectorizer is None,
        # By the parameter: a vectorizer that was loaded always has a vocabulary given.
        "given_words": tagger.vectorizer is not None and tagger.vectorizer.vocabulary is not None,
        "default_classifier": tagger.classifier is None,
        "min_tag_count": int(tagger.min_tag_count),
    }
    arrays |= names_to_arrays("rare_tags", list(tagger.rare_tags_))
    arrays["rare_tag_counts"] = np.array(list(tagger.rare_tags_.values()), dtype=np.int64)
    header, trees = classifier_state(tagger.classifier_, compress=compress)
    return {"text": text, **header}, {**arrays, **trees}


def restore_tagger(
    tagger: Any, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, verify: bool
) -> None:
    """Give a new tagger what `tagger_state` described; what does not fit is a ValueError."""
    text, rest = header["text"], dict(arrays)
    if not isinstance(text, dict) or not isinstance(text.get("vectorizer"), dict):
        raise ValueError("its header has no proper entry 'text'")
    for name in ("default_vectorizer", "given_words", "default_classifier"):
        if not isinstance(text[name], bool):
            raise ValueError(f"its header has no proper entry {name!r}")
    vectorizer = vectorizer_from_state(text["vectorizer"], rest)
    words = vectorizer.get_feature_names_out().tolist()
    rare, counts = names_from_arrays("rare_tags", rest), rest.pop("rare_tag_counts")
    if counts.shape != (len(rare),) or counts.dtype != np.int64:
        raise ValueError("its array 'rare_tag_counts' has a wrong type or length")
    classifier = classifier_from_state(LdSMClassifier, header, rest, verify=verify)
    if classifier.n_features_in_ != len(words):
        raise ValueError("its trees and its words do not have the same number of features")
    tagger.min_tag_count = text["min_tag_count"]
    tagger.classifier_, tagger.vectorizer_ = classifier, vectorizer
    tagger.rare_tags_ = dict(zip(rare, counts.tolist(), strict=True))
    if not text["default_vectorizer"]:
        given = words if text["given_words"] else None
        tagger.vectorizer = unfitted_vectorizer(text["vectorizer"], given)
    if not text["default_classifier"]:
        tagger.classifier = clone(classifier)


def vectorizer_settings(vectorizer: TfidfVectorizer) -> dict[str, Any]:
    """The parameters as JSON holds them; functions by their names."""
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
    return {name: _plain(value) for name, value in settings.items()}


def vectorizer_state(vectorizer: TfidfVectorizer) -> tuple[dict[str, Any], Arrays]:
    """Settings and arrays of a fitted vectorizer.

    Raises
    ------
    ValueError
        If a function, or the code of a subclass, takes part in it.
    """
    if type(vectorizer) is not TfidfVectorizer:
        raise ValueError(
            f"Only a TfidfVectorizer itself can be saved. Got {type(vectorizer).__name__}."
        )
    for name in FUNCTIONS:
        if callable(function := getattr(vectorizer, name)):
            raise ValueError(
                f"A vectorizer with a function of one's own cannot be saved: a model file holds no "
                f"code. Got {name}={function!r}."
            )
    settings = vectorizer_settings(vectorizer)
    if settings["dtype"] not in DTYPES:
        raise ValueError(f"A vectorizer of dtype {settings['dtype']} cannot be saved.")
    arrays = names_to_arrays("words", vectorizer.get_feature_names_out().tolist())
    if vectorizer.use_idf:
        arrays["idf"] = vectorizer.idf_
    return settings, arrays


def unfitted_vectorizer(settings: Mapping[str, Any], words: list[str] | None) -> TfidfVectorizer:
    """The vectorizer that the settings describe; with `words`, for these and no others."""
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
    """The fitted vectorizer; its arrays are taken out of the others."""
    words = names_from_arrays("words", arrays)
    vectorizer = unfitted_vectorizer(settings, words)
    try:
        # With a given vocabulary nothing is learned from the text. It makes the vectorizer check
        # its parameters and get ready. What it warns of was said when it was fitted.
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


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
