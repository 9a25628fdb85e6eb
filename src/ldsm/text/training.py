"""From documents and their tags to what a classifier is fitted on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from .._runtime.wording import argument
from .._trees.params import RERANK_ROWS
from ..datasets.dataset import Dataset
from ..datasets.vocabulary import label_names, with_labels
from .corpus import TagCollector
from .features import TextFeatures, features_of, learn_features


class Corpus(NamedTuple):
    """Features and tags of documents, how the features are made, and tags that are too rare."""

    data: Dataset
    features: TextFeatures
    rare: dict[str, int]


def read_corpus(
    collector: TagCollector,
    vectorizer: TfidfVectorizer,
    vocabulary: Any,
    *,
    min_tag_count: int,
    n_jobs: int | None,
    with_parts: Callable[[int], bool],
) -> Corpus:
    """Learn the words of documents, in one pass over them."""
    called: dict[str, list[str]] = {}

    def all_names() -> Iterator[str]:
        if vocabulary is not None:
            called.update(label_names(vocabulary, collector.names()))
        yield from collector.names()
        for names in called.values():
            yield from names

    X, features = learn_features(
        vectorizer, collector.texts(), n_jobs, with_parts=with_parts, label_names=all_names
    )
    Y, names, rare = collector.matrix(min_tag_count)
    _check_tags(names, rare, len(collector), min_tag_count)
    data = Dataset(X, Y, label_names=names, text_form=features.form)
    return Corpus(data if vocabulary is None else _named(data, called, rare), features, rare)


def made_corpus(data: Dataset, min_tag_count: int) -> Corpus:
    """Features that were made from texts earlier."""
    features = features_of(data)
    counts = np.bincount(data.Y.indices, minlength=data.n_labels)
    kept = counts >= min_tag_count
    names = np.array(data.label_names or range(data.n_labels), dtype=object)
    rare = dict(zip(names[~kept].tolist(), counts[~kept].tolist(), strict=True))
    _check_tags(names[kept], rare, len(data), min_tag_count)
    if rare:
        data = replace(data, Y=data.Y[:, kept], label_names=names[kept].tolist())
    return Corpus(data, features, rare)


def _check_tags(names: Sized, rare: Mapping[str, int], n_documents: int, least: int) -> None:
    if len(names):
        return
    if not rare:
        raise ValueError(
            f"There must be at least one tag on the {n_documents:,} documents. Got none: no "
            "row has a label."
        )
    wanted = f"{least:,} documents" if least > 1 else "a document"
    raise ValueError(
        f"At least one tag must have {wanted} ({argument('min_tag_count')}). "
        f"Got {len(rare):,} tags on {n_documents:,} documents."
    )


def _named(data: Dataset, names: Mapping[str, list[str]], rare: Mapping[str, int]) -> Dataset:
    """The data with the names of its tags, and with those that no document has."""
    assert data.text_form is not None and data.label_names is not None
    if data.text_form.sub_words is None:
        raise ValueError(
            f"A vocabulary needs at least {RERANK_ROWS:,} documents and a linear second stage: "
            f"{argument('rerank', 'auto')} or {argument('rerank', 'linear')}, and "
            f"{argument('subsample')} below 1. Got {len(data):,} documents."
        )
    Y, labels = with_labels(data.Y, data.label_names, names.keys() - rare.keys())
    return replace(data, Y=Y, label_names=labels, label_synonyms=names)
