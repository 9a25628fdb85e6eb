"""From documents and their tags to features: what a classifier is fitted on, and a store keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import replace
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from .._storage.paths import printable
from .._storage.strings import Strings
from .._trees.params import RERANK_ROWS
from .._wording import argument
from ..datasets.dataset import Dataset
from ..datasets.vocabulary import label_names, with_labels
from .corpus import Pair, TagCollector
from .features import (
    TextFeatures,
    checked_features,
    features_of,
    kept_form,
    learn_features,
    rescaled,
)


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


def vectorized(
    documents: Iterable[Pair],
    vectorizer: TfidfVectorizer,
    *,
    with_parts: Callable[[int], bool],
    n_jobs: int | None = None,
) -> Dataset:
    """Documents as features that a store can keep, and that a tagger can be fitted on."""
    collector = TagCollector(documents)
    X, features = learn_features(
        vectorizer, collector.texts(), n_jobs, with_parts=with_parts, label_names=collector.names
    )
    Y, names, _ = collector.matrix(1)
    columns = Strings.pack(features.names)
    return Dataset(X, Y, label_names=names, feature_names=columns, text_form=kept_form(features))


def made_corpus(data: Dataset, min_tag_count: int) -> Corpus:
    """Features that were made from texts earlier."""
    features = features_of(data)
    if data.label_names is None:
        data = replace(data, label_names=[str(i) for i in range(data.n_labels)])
    counts = np.bincount(data.Y.indices, minlength=data.n_labels)
    kept = counts >= min_tag_count
    names = np.array(data.label_names, dtype=object)
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


# -- features that were made earlier, as a store keeps them --------------------------------------


def has_made_features(texts: Any) -> TypeGuard[Dataset]:
    """Whether these are rows whose features were made from texts earlier."""
    return isinstance(texts, Dataset) and texts.text_form is not None


def vectorized_by(features: TextFeatures) -> Callable[[Dataset], Dataset]:
    """A function that turns the texts of a Dataset into these features, as a store keeps them."""
    form, names = kept_form(features), Strings.pack(features.names)

    def vectorize(data: Dataset) -> Dataset:
        X = features.transform(list(data.texts or ()))
        return replace(data, X=X, texts=None, feature_names=names, text_form=form)

    return vectorize


def made_matrix(features: TextFeatures, data: Dataset) -> sp.csr_array:
    """Features made earlier with the weights of `features`; an error if the columns are others.

    Weights change with incremental learning. Where they have not, these are the same numbers that
    the texts themselves would give.
    """
    made, features = check_same_words(features, data), described(features)
    old, new = made.every_idf, features.every_idf
    if old is None or new is None or np.array_equal(old, new):
        return data.X
    with np.errstate(divide="ignore", invalid="ignore"):
        change = new / old
    if not np.isfinite(change).all():
        raise ValueError(f"The words of {data!r} cannot be used: some have an idf of 0.")
    X = data.X.copy()
    X.data *= change[X.indices]
    return rescaled(X, made.settings, made.starts)


def check_same_words(
    features: TextFeatures, data: Dataset, model: str = "the model"
) -> TextFeatures:
    """How the features of a Dataset were made; an error unless their columns are the model's."""
    made = features_of(data)
    if not _same_columns(made, described(features)):
        name = repr(data) if data.store is None else f"The store {printable(data.store.folder)}"
        raise ValueError(
            f"{name} was vectorized with other words than {model}. Use its texts, or vectorize "
            "them with the words of the model: `ldsm convert --vectorize --like MODEL`."
        )
    return made


def _same_columns(one: TextFeatures, other: TextFeatures) -> bool:
    """Whether all columns count the same, whatever their weights."""
    if (one.settings, one.head_words, one.words) != (other.settings, other.head_words, other.words):
        return False
    return _same_parts(one.pairs, other.pairs, "first", "second") and _same_parts(
        one.sub_words, other.sub_words, "words", "indexed"
    )


def _same_parts(one: Any, other: Any, *fields: str) -> bool:
    if one is None or other is None:
        return one is other
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in fields)


def described(features: TextFeatures) -> TextFeatures:
    """The same by settings and arrays, where only a vectorizer has them."""
    if features.settings:
        return features
    words = Strings.pack(features.vectorizer.get_feature_names_out().tolist())
    return checked_features(kept_form(features), words, trust_pattern=True)
