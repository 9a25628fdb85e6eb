"""Convert a fitted tagger to a header and arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._model.names import names_from_arrays, names_to_arrays, take_array
from .._model.saved_form import model_to_state
from .._storage.container import Arrays
from ..classifier import classifier_from_state
from .features import features_from_state, features_state, unfitted_vectorizer
from .fitted import FittedText, RareTags, TagTitles, fitted_text, hold_text

if TYPE_CHECKING:
    from .tagger import TextTagger


def tagger_to_state(tagger: TextTagger) -> tuple[dict[str, Any], Arrays]:
    """A fitted TextTagger as header entries and arrays; see `model_to_state`."""
    classifier, features, rare, titles = fitted_text(tagger)
    settings, arrays = features_state(features)
    text = {
        "vectorizer": settings,
        "default_vectorizer": tagger.vectorizer is None,
        # Asked of the parameter, because a loaded vectorizer always has a given vocabulary.
        "given_words": tagger.vectorizer is not None and tagger.vectorizer.vocabulary is not None,
        "default_classifier": tagger.classifier is None,
        "min_tag_count": int(tagger.min_tag_count),
    }
    if (sub_words := features.sub_words) is not None:
        text["indexed_sub_words"] = sub_words.indexed
    if features.head_words:
        text["head_words"] = features.head_words
    arrays |= names_to_arrays("rare_tags", rare.names)
    arrays["rare_tag_counts"] = rare.counts
    if titles.tags:
        arrays |= names_to_arrays("titled_tags", titles.tags)
        arrays |= names_to_arrays("tag_titles", titles.titles)
    header, trees = model_to_state(classifier.model_, classifier.get_params(deep=False))
    return {"text": text, **header}, {**arrays, **trees}


def restore_tagger(
    tagger: TextTagger,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    verify: bool,
    trust_pattern: bool,
) -> None:
    """Restore what `tagger_to_state` stored to a new tagger; invalid content is a ValueError."""
    text, rest = header["text"], dict(arrays)
    if not isinstance(text, dict) or not isinstance(text.get("vectorizer"), dict):
        raise ValueError("its header has no proper entry 'text'")
    for name in ("default_vectorizer", "given_words", "default_classifier"):
        if not isinstance(text[name], bool):
            raise ValueError(f"its header has no proper entry {name!r}")
    indexed = text.get("indexed_sub_words", False)
    if not isinstance(indexed, bool):
        raise ValueError("its header has no proper entry 'indexed_sub_words'")
    features = features_from_state(
        text["vectorizer"],
        rest,
        indexed=indexed,
        head_words=text.get("head_words", 0),
        verify=verify,
        trust_pattern=trust_pattern,
    )
    rare = names_from_arrays("rare_tags", rest, verify=verify)
    counts = take_array(rest, "rare_tag_counts", np.int64, len(rare))
    titles = TagTitles.of({})
    if "titled_tags.text" in rest:
        titles = TagTitles(
            names_from_arrays("titled_tags", rest, verify=verify),
            names_from_arrays("tag_titles", rest, verify=verify, unique=False),
        )
        if len(titles.tags) != len(titles.titles):
            raise ValueError("its titles of tags are not as many as the tags that have one")
    classifier = classifier_from_state(header, rest, verify=verify)
    if classifier.model_.layout != features.layout:
        raise ValueError("its trees and its words do not have the same number of features")
    tagger.min_tag_count = text["min_tag_count"]
    hold_text(tagger, FittedText(classifier, features, RareTags(rare, counts), titles))
    if not text["default_vectorizer"]:
        vocabulary = features.words if text["given_words"] else None
        tagger.vectorizer = unfitted_vectorizer(text["vectorizer"], vocabulary)
    if not text["default_classifier"]:
        tagger.classifier = clone(classifier)
