"""From documents and their tags to features: what a classifier is fitted on, and a store keeps."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from .._arrays.dense_rows import LabelVectors
from .._arrays.features import feature_arrays
from .._arrays.labels import label_arrays
from .._execution.executor import ProgressCallback
from .._execution.scratch import Scratch
from .._features.blocks import Blocks
from .._features.training_rows import TrainingRows
from .._storage.paths import PathLike, printable
from .._storage.strings import Strings
from .._trees.params import RERANK_ROWS
from .._wording import argument
from ..datasets.dataset import Dataset
from ..datasets.vocabulary import Names, concepts_of, label_groups, label_names, with_labels
from .corpus import Pair, TagCollector
from .counts.weights import rescaled
from .encoders.encoder import EncodedTexts, FittedEncoder
from .features import TextFeatures, learn_features
from .saved_form import checked_features, features_of, kept_form


class Corpus(NamedTuple):
    """Features and tags of documents, how the features are made, and tags that are too rare."""

    rows: TrainingRows
    features: TextFeatures
    rare: dict[str, int]
    groups: Names  # of tags, from a vocabulary


def read_corpus(
    collector: TagCollector,
    vectorizer: TfidfVectorizer,
    vocabulary: Any,
    *,
    min_tag_count: int,
    n_jobs: int | None,
    memory_limit: int | None,
    checkpoint_dir: PathLike | None,
    with_parts: Callable[[int], bool],
    encoder: FittedEncoder | None = None,
    callback: ProgressCallback | None = None,
) -> Corpus:
    """Learn the words of documents, and encode these and the names of tags, in one pass."""
    called: Names = {}
    groups: Names = {}

    def all_names() -> Iterator[str]:
        if vocabulary is not None:
            concepts, labels = concepts_of(vocabulary), collector.names()
            called.update(label_names(concepts, labels))
            groups.update(label_groups(concepts, labels))
        yield from collector.names()
        for its in called.values():
            yield from its

    texts = collector.texts()
    if encoder is not None:
        scratch = None if memory_limit is None else Scratch(tempfile.gettempdir())
        encoded = EncodedTexts(encoder, callback, scratch)
        texts = encoded.passing(texts)
    blocks, features = learn_features(
        vectorizer,
        texts,
        n_jobs,
        with_parts=with_parts,
        label_names=all_names,
        memory_limit=memory_limit,
        checkpoint_dir=checkpoint_dir,
    )
    Y, names, rare = collector.matrix(min_tag_count)
    _check_tags(names, rare, len(collector), min_tag_count)
    synonyms = None
    if vocabulary is not None:
        _check_names(features, len(collector))
        Y, names = with_labels(Y, names, called.keys() - rare.keys())
        synonyms = called
    rows = TrainingRows(
        blocks,
        label_arrays(Y, names),
        sub_word_form=features.sub_words,
        label_synonyms=synonyms,
    )
    if encoder is not None:
        shown = [called.get(name, (name,)) for name in names]
        vectors = _vectors_of(shown, encoder)
        rows = replace(rows, blocks=blocks.with_dense(encoded.rows()), label_vectors=vectors)
    learned = set(names)
    return Corpus(rows, features, rare, {tag: its for tag, its in groups.items() if tag in learned})


def vectorized(
    documents: Iterable[Pair],
    vectorizer: TfidfVectorizer,
    *,
    with_parts: Callable[[int], bool],
    n_jobs: int | None = None,
    encoder: FittedEncoder | None = None,
) -> Dataset:
    """Documents as features that a store can keep, and that a tagger can be fitted on."""
    collector = TagCollector(documents)
    texts = collector.texts()
    if encoder is not None:
        encoded = EncodedTexts(encoder)
        texts = encoded.passing(texts)
    blocks, features = learn_features(
        vectorizer, texts, n_jobs, with_parts=with_parts, label_names=collector.names
    )
    Y, names, _ = collector.matrix(1)
    X, columns = blocks.joined().matrix(), Strings.pack(features.names)
    form = kept_form(features)
    if encoder is None:
        return Dataset(X, Y, label_names=names, feature_names=columns, text_form=form)
    return Dataset(
        X,
        Y,
        label_names=names,
        feature_names=columns,
        text_form=form._replace(encoder=encoder.form),
        embeddings=encoded.rows(),
        label_embeddings=_vectors_of([[name] for name in names], encoder),
    )


def _vectors_of(names: Sequence[Sequence[str]], encoder: FittedEncoder) -> LabelVectors:
    """The vectors of all labels, from the names of each."""
    return LabelVectors(np.arange(len(names)), encoder.label_vectors(names))


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
        vectors = data.label_embeddings
        if vectors is not None:
            vectors = vectors.in_columns(np.where(kept, np.cumsum(kept) - 1, -1))
        data = replace(
            data,
            Y=data.Y[:, kept],
            label_names=names[kept].tolist(),
            label_embeddings=vectors,
        )
    blocks = features.layout.split(feature_arrays(data.X)).apart_from(data.X)
    rows = TrainingRows(
        blocks.with_dense(data.embeddings),
        label_arrays(data.Y, data.label_names),
        store=data.store,
        sub_word_form=features.sub_words,
        label_synonyms=data.label_synonyms,
        label_vectors=data.label_embeddings,
    )
    return Corpus(rows, features, rare, {})


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


def _check_names(features: TextFeatures, n_documents: int) -> None:
    """Raise an error if there are no sub-words, which the names of tags need."""
    if features.sub_words is None:
        raise ValueError(
            f"A vocabulary needs at least {RERANK_ROWS:,} documents and a linear second stage: "
            f"{argument('rerank', 'auto')} or {argument('rerank', 'linear')}, and "
            f"{argument('subsample')} below 1. Got {n_documents:,} documents."
        )


# -- features that were made earlier, as a store keeps them --------------------------------------


def has_made_features(texts: Any) -> TypeGuard[Dataset]:
    """Whether these are rows whose features were made from texts earlier."""
    return isinstance(texts, Dataset) and texts.text_form is not None


def vectorized_by(
    features: TextFeatures, encoder: FittedEncoder | None = None
) -> Callable[[Dataset], Dataset]:
    """A function that turns the texts of a Dataset into these features, as a store keeps them.

    It takes one chunk of a Dataset after the other.
    """
    form, names = kept_form(features), Strings.pack(features.names)
    if encoder is not None:
        form = form._replace(encoder=encoder.form)
    n_before, vectors = 0, None

    def vectorize(data: Dataset) -> Dataset:
        nonlocal n_before, vectors
        texts = list(data.texts or ())
        X, dense = features.blocks(texts).joined().matrix(), None
        if encoder is not None:
            dense = encoder.rows(texts, n_before)
            if vectors is None:
                vectors = _vectors_of([[name] for name in data.label_names or ()], encoder)
        n_before += len(texts)
        return replace(
            data,
            X=X,
            texts=None,
            feature_names=names,
            text_form=form,
            embeddings=dense,
            label_embeddings=vectors,
        )

    return vectorize


def made_blocks(features: TextFeatures, data: Dataset) -> Blocks:
    """Features made earlier with the weights of `features`; an error if the columns are others.

    Weights change with incremental learning. Where they have not, these are the same numbers that
    the texts themselves would give.
    """
    made, features = check_same_words(features, data), described(features)
    blocks, weights = made.layout.split(feature_arrays(data.X)), features.idf_by_block
    arrays = dict(blocks.arrays)
    for block, old in made.idf_by_block.items():
        new = weights[block]
        if old is None or new is None or np.array_equal(old, new):
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            change = new / old
        if not np.isfinite(change).all():
            raise ValueError(f"The words of {data!r} cannot be used: some have an idf of 0.")
        X = arrays[block].matrix().copy()
        X.data *= change[X.indices]
        arrays[block] = feature_arrays(rescaled(X, made.settings))
    return Blocks(arrays)


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
    return _same_parts(one.bigrams, other.bigrams, "first", "second") and _same_parts(
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
