"""Convert a fitted tagger, and features made from texts, to a header and arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._features.blocks import MAIN
from .._features.training_rows import layout_of
from .._model.names import plain
from .._model.saved_form import model_to_state
from .._storage.container import Arrays
from .._storage.fields import FLAG, MAPPING, Array, Entry, Kind, Names, Table, optional, whole
from .._storage.strings import Strings
from ..classifier import LdSMClassifier, classifier_from_state
from ..datasets.dataset import BigramForm, Dataset, SubWordForm, TextForm
from .counts.words import bigram_keys
from .encoders.encoder import LONGEST_NAME, PROBES
from .features import TextFeatures
from .vectorizer import (
    CONSTRAINTS,
    DTYPES,
    WORD_DEFAULTS,
    WORDS,
    checked_settings,
    savable_settings,
)

if TYPE_CHECKING:
    from .fitted import FittedText
    from .tagger import TextTagger

_IDF = (0, 100)  # that of a word in one of 10^43 documents
_NUMBER, _WEIGHT = (np.int32,), (np.float32,)
_NAME = Kind(
    f"a text of at most {LONGEST_NAME} characters",
    lambda value: type(value) is str and len(value) <= LONGEST_NAME,
)
_NO_NUMBERS = np.zeros(0, np.int32)
FEATURES = Table(
    "text",
    Entry("vectorizer", MAPPING),
    Entry("indexed_sub_words", FLAG, default=None, since=2),
    Entry("head_words", whole(0, 10_000), default=0, since=2),
    Names("words"),
    Array("idf", tuple(DTYPES.values()), ("words",), bounds=_IDF, default=None),
    Array("pairs.first", _NUMBER, ("pairs",), default=None, since=2),
    Array("pairs.second", _NUMBER, ("pairs",), default=None, since=2),
    Array("pairs.idf", _WEIGHT, ("pairs",), bounds=_IDF, default=None, since=2),
    Names("sub_words", default=None, since=2),
    Array("sub_words.idf", _WEIGHT, ("sub_words",), bounds=_IDF, default=None, since=2),
)


def _allowed(name: str) -> Kind:
    """What the constraints of a parameter allow."""
    rules = CONSTRAINTS[name]
    return Kind(" or ".join(map(str, rules)), lambda value: any(r.allows(value) for r in rules))


TEXT = Table(
    "text",
    FEATURES.entry("vectorizer"),
    Entry("default_vectorizer", FLAG),
    Entry("given_words", FLAG),
    Entry("default_classifier", FLAG),
    Entry("min_tag_count", whole(1, 2**63 - 1)),
    *(Entry(name, _allowed(name), default=WORD_DEFAULTS[name], since=3) for name in WORDS),
    FEATURES.entry("indexed_sub_words"),
    FEATURES.entry("head_words"),
    Names("rare_tags"),
    Array("rare_tag_counts", (np.int64,), ("rare_tags",)),
    Names("titled_tags", default=Strings.pack([]), since=2),
    Names("tag_titles", unique=False, default=Strings.pack([]), since=2),
    Names("grouped_tags", default=Strings.pack([]), since=2),
    Names("groups", default=Strings.pack([]), since=2),
    Array("members.tag", _NUMBER, ("members",), default=_NO_NUMBERS, since=2),
    Array("members.group", _NUMBER, ("members",), default=_NO_NUMBERS, since=2),
    Entry("encoder", optional(_NAME), default=None, since=3),
    Array("encoder.probes", (np.int16,), (len(PROBES), "dense"), default=None, since=3),
)
GROUPS = ("grouped_tags", "groups", "members.tag", "members.group")


def tagger_to_state(tagger: TextTagger, fitted: FittedText) -> tuple[dict[str, Any], Arrays]:
    """A fitted TextTagger as header entries and arrays; see `model_to_state`."""
    classifier, features, rare, titles, groups, encoder = fitted
    stored = _values(kept_form(features), _words_of(features))
    values = {
        **stored,
        "default_vectorizer": tagger.vectorizer is None,
        # Asked of the parameter, because a loaded vectorizer always has a given vocabulary.
        "given_words": tagger.vectorizer is not None and tagger.vectorizer.vocabulary is not None,
        "default_classifier": tagger.classifier is None,
        **{name: plain(getattr(tagger, name)) for name in CONSTRAINTS},
        "encoder": None if encoder is None else encoder.name,
        "encoder.probes": None if encoder is None else encoder.probes,
        "rare_tags": rare.names,
        "rare_tag_counts": rare.counts,
        "titled_tags": titles.tags,
        "tag_titles": titles.titles,
        **dict(zip(GROUPS, (groups.tags, groups.groups, groups.tag, groups.group), strict=True)),
    }
    header, arrays = model_to_state(classifier.model_, classifier.get_params(deep=False))
    arrays |= FEATURES.saved(stored) | TEXT.saved(values)
    return {"text": TEXT.written(values), **header}, arrays


def text_from_state(
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    verify: bool,
    trust_pattern: bool,
) -> tuple[dict[str, Any], LdSMClassifier, TextFeatures]:
    """What `tagger_to_state` stored: the fields of `TEXT`, the classifier and the features.

    Invalid content is a ValueError.
    """
    header, rest = dict(header), dict(arrays)
    text = TEXT.read(header.pop("text", None))
    features = _features_from(text, rest, verify=verify, trust_pattern=trust_pattern)
    text |= TEXT.taken(rest, verify=verify)
    if len(text["titled_tags"]) != len(text["tag_titles"]):
        raise ValueError("its numbers of titles and titled tags differ")
    classifier = classifier_from_state(header, rest, verify=verify)
    layout, probes = classifier.model_.layout, text["encoder.probes"]
    if replace(layout, dense=0) != features.layout:
        raise ValueError("its trees and its words do not have the same number of features")
    if (text["encoder"] is None) != (probes is None):
        raise ValueError("its encoder has a name, but no vectors, or vectors, but no name")
    if layout.dense != (0 if probes is None else probes.shape[1]):
        raise ValueError("its encoder does not have the dimensions of its embeddings")
    return text, classifier, features


# -- features ---------------------------------------------------------------------------------


def kept_form(features: TextFeatures) -> TextForm:
    """What a store keeps; a ValueError for a vectorizer that cannot be saved."""
    settings, vectorizer = savable_settings(features.vectorizer), features.vectorizer
    idf = vectorizer.idf_ if vectorizer.use_idf else None
    return TextForm(settings, idf, features.bigrams, features.sub_words, features.head_words)


def _words_of(features: TextFeatures) -> Strings:
    return Strings.pack(features.vectorizer.get_feature_names_out().tolist())


def _values(form: TextForm, words: Strings) -> dict[str, Any]:
    """The fields of `FEATURES`."""
    bigrams = (None,) * len(BigramForm._fields) if form.bigrams is None else form.bigrams
    sub_words, idf, indexed = form.sub_words or (None, None, None)
    return {
        "vectorizer": form.settings,
        "indexed_sub_words": indexed,
        "head_words": form.head_words,
        "words": words,
        "idf": form.idf,
        **{f"pairs.{name}": array for name, array in zip(BigramForm._fields, bigrams, strict=True)},
        "sub_words": sub_words,
        "sub_words.idf": idf,
    }


def checked_features(
    form: TextForm, words: Strings, *, trust_pattern: bool = False
) -> TextFeatures:
    """The features that a store describes; a ValueError if it cannot be."""
    values = _values(form, words)
    header, arrays = FEATURES.read(FEATURES.written(values)), FEATURES.saved(values)
    return _features_from(header, arrays, verify=True, trust_pattern=trust_pattern)


def _features_from(
    text: Mapping[str, Any], arrays: Arrays, *, verify: bool, trust_pattern: bool
) -> TextFeatures:
    """The features that a file describes; their arrays are removed from `arrays`."""
    settings = checked_settings(text["vectorizer"], trust_pattern=trust_pattern)
    found = FEATURES.taken(arrays, verify=verify)
    words, idf = found["words"], found["idf"]
    if not words:
        raise ValueError("its vectorizer has no words")
    if settings["use_idf"] != (idf is not None):
        raise ValueError("its array 'idf' is missing, or its vectorizer does not use it")
    parts = [found[f"pairs.{name}"] for name in BigramForm._fields]
    bigrams = None
    if any(part is not None for part in parts):
        if idf is None or any(part is None for part in parts):
            raise ValueError("the arrays of its bigrams are not complete")
        bigrams = BigramForm(*parts)
        _check_bigrams(bigrams, len(words))
    sub_words = None
    if found["sub_words.idf"] is not None:
        if idf is None or found["sub_words"] is None:
            raise ValueError("the arrays of its sub-words are not complete")
        indexed = bool(text["indexed_sub_words"])
        sub_words = SubWordForm(found["sub_words"], found["sub_words.idf"], indexed)
    elif found["sub_words"] is not None:
        raise ValueError("the arrays of its sub-words are not complete")
    return TextFeatures(settings, words, idf, bigrams, sub_words, text["head_words"])


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


def _check_bigrams(bigrams: BigramForm, n_words: int) -> None:
    numbers = np.concatenate([bigrams.first, bigrams.second])
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < n_words:
        raise ValueError("its bigrams have a word out of range")
    keys = bigram_keys(bigrams)
    if np.any(keys[1:] <= keys[:-1]):
        raise ValueError("its bigrams do not ascend")
