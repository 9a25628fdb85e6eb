"""Update a fitted tagger with new documents: their words, their tags, and how these go together."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer

from .._arrays.features import FeatureArrays, feature_arrays
from .._arrays.joined_labels import warn_if_joined
from .._arrays.labels import LabelArrays, object_array
from .._arrays.texts import are_phrases
from .._execution.executor import ThreadExecutor
from .._execution.memory import out_of_memory
from .._features.blocks import BIGRAMS, MAIN, SUB_WORDS, Blocks
from .._features.copies import Fresh, RowKeys, fresh_rows, row_keys
from .._model.fitted import FittedModel
from .._model.learn import check_can_learn, learned, learned_rows, with_words
from .._storage.strings import Strings
from ..classifier import hold_model
from ..datasets.dataset import Dataset
from .corpus import Pair, TagCollector, tags_of
from .counts.learned_words import chosen_words, learn_words
from .features import TextFeatures
from .fitted import FittedText, RareTags
from .training import described, made_blocks
from .vectorizer import unfitted_vectorizer, with_idf

# The most words, old and new together, as a multiple of those that the trees know.
MOST_WORDS = 2


def learned_text(
    fitted: FittedText,
    pairs: Iterable[Pair] | Dataset,
    min_tag_count: int,
    *,
    new_words: bool,
    absent: str,
    prior: str,
) -> FittedText:
    """The tagger with new documents learned; without `new_words`, only of words that it knows.

    A Dataset holds features that were made from the documents earlier, and so has no new words.
    """
    model = fitted.classifier.model_
    check_can_learn(model)
    with out_of_memory("learn new documents"):
        made = pairs if isinstance(pairs, Dataset) else None
        encoder = fitted.encoder if model.reads_dense else None
        if isinstance(pairs, Dataset):
            if encoder is not None:
                dense = encoder.made_earlier(pairs)
            pairs = (("", tags) for tags in tags_of(pairs))
        collector = TagCollector(pairs)
        texts = list(collector.texts())
        if not texts:
            raise ValueError("There must be at least one document to learn from. Got none.")
        labels, rare = _tags(collector, model, fitted.rare.as_dict(), min_tag_count)
        stage, vectors = model.second_stage, None
        n_before = model.n_training_rows - (0 if stage is None else stage.n_copies)
        features, before = fitted.features, learned_rows(model)
        if made is not None:
            x, features, fresh = _counted_in_made(features, made, labels, before, n_before)
        else:
            if new_words:
                features = _with_new_words(features, texts, model, fitted.classifier.n_jobs)
            x, features, fresh = _counted_in(features, texts, labels, before, n_before)
        if encoder is not None:
            new = [name for name in labels.classes.tolist() if name not in model.columns]
            if made is None:
                dense = encoder.rows(texts)
                vectors = dict(
                    zip(new, encoder.label_vectors([[its] for its in new]).values, strict=True)
                )
            elif made.label_embeddings is not None:
                known = made.label_embeddings.by_name(made.label_names or ())
                vectors = {name: known[name] for name in new if name in known}
            x = x.with_dense(dense)
        if more := x.main.n_features - model.layout[MAIN]:
            model = with_words(model, more)
        model = learned(
            model,
            x,
            labels,
            # The mean of fewer documents would reveal what is in them.
            min_rows=max(fitted.classifier.tail_min_rows, min_tag_count),
            n_jobs=fitted.classifier.n_jobs,
            absent=absent,
            prior=prior,
            sub_words=features.sub_words,
            fresh=fresh,
            label_embeddings=vectors,
        )
    classifier = hold_model(copy(fitted.classifier), model)
    classifier.__dict__.pop("oob_scores_", None)  # of the documents and tags of the fit
    return fitted._replace(classifier=classifier, features=features, rare=RareTags.of(rare))


def _tags(
    collector: TagCollector, model: FittedModel, rare: dict[str, int], min_tag_count: int
) -> tuple[LabelArrays, dict[str, int]]:
    """The tags that are learned, and the counts of those that are not."""
    Y, names, _ = collector.matrix(0)
    known = set(model.classes.tolist())
    counts = np.bincount(Y.indices, minlength=len(names)).tolist()
    seen = {name: rare.get(name, 0) + count for name, count in zip(names, counts, strict=True)}
    kept = [name in known or seen[name] >= min_tag_count for name in names]
    rare = rare | seen
    for name, is_kept in zip(names, kept, strict=True):
        if is_kept:
            del rare[name]
    Y = sp.csr_array(Y[:, np.flatnonzero(kept)])
    Y.sort_indices()
    classes = object_array([name for name, is_kept in zip(names, kept, strict=True) if is_kept])
    warn_if_joined(classes)
    indptr, indices = Y.indptr.astype(np.int64), Y.indices.astype(np.int32)
    return LabelArrays(indptr, indices, classes, model.label_form), rare


# -- new words --------------------------------------------------------------------------------


def _with_new_words(
    features: TextFeatures, texts: list[str], model: FittedModel, n_jobs: int | None
) -> TextFeatures:
    """With the new words of these texts added after the known ones.

    Only the linear classifiers and the index can use them.
    """
    stage, n_words = model.second_stage, features.layout[MAIN]
    most = int(MOST_WORDS * model.forest.n_features) - n_words
    if stage is None or stage.ranker is None or most <= 0:
        return features
    if features.settings:
        vectorizer = unfitted_vectorizer(features.settings, None)
    else:
        vectorizer = clone(features.vectorizer).set_params(vocabulary=None)
    if vectorizer.max_features is not None:
        return features
    _count_all(vectorizer, model.n_training_rows + len(texts))
    if len(texts) < vectorizer.min_df:
        return features
    if features.is_counted_here:
        found = _new_words(features, vectorizer, texts, n_jobs)
    else:
        found = _new_terms(features, vectorizer, texts)
    return features if not found else _with_words(features, found[:most])


def _new_words(
    features: TextFeatures, vectorizer: TfidfVectorizer, texts: list[str], n_jobs: int | None
) -> list[str]:
    """The new words of these texts that the vectorizer would keep, most frequent first."""
    spoken = learn_words(texts, lowercase=vectorizer.lowercase, executor=ThreadExecutor(n_jobs))
    chosen = chosen_words(spoken, vectorizer)
    if chosen is None:
        return []
    return _by_frequency(list(chosen.words), chosen.texts, features.known_words)


def _new_terms(features: TextFeatures, vectorizer: TfidfVectorizer, texts: list[str]) -> list[str]:
    """The same by the vectorizer itself, with its own idea of words."""
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError:  # no words, or none that are frequent enough
        return []
    n_texts = np.bincount(counts.indices, minlength=counts.shape[1])
    known = frozenset(features.vectorizer.vocabulary_)
    return _by_frequency(vectorizer.get_feature_names_out().tolist(), n_texts, known)


def _count_all(vectorizer: TfidfVectorizer, n_texts: int) -> None:
    """Shares are of all texts, not of these: a word of a new topic may be in most of them."""
    if isinstance(vectorizer.min_df, float):
        vectorizer.min_df = max(1, ceil(vectorizer.min_df * n_texts))
    if isinstance(vectorizer.max_df, float):
        vectorizer.max_df = int(vectorizer.max_df * n_texts)
    vectorizer.max_df = max(vectorizer.min_df, vectorizer.max_df)


def _by_frequency(words: list[str], n_texts: NDArray[np.int64], known: frozenset[str]) -> list[str]:
    order = np.argsort(-n_texts, kind="stable").tolist()
    return [words[i] for i in order if words[i] not in known]


def _with_words(features: TextFeatures, words: list[str]) -> TextFeatures:
    """With further words, whose idf is not known yet."""
    if features.settings:
        names = features.words + Strings.pack(words)
        idf = None if features.idf is None else _padded(features.idf, len(words))
        return replace(features, words=names, idf=idf)
    vectorizer = features.vectorizer
    known = vectorizer.get_feature_names_out().tolist()
    idf = _padded(vectorizer.idf_, len(words)) if vectorizer.use_idf else None
    return TextFeatures.of(_rebuilt(vectorizer, [*known, *words], idf))


def _rebuilt(
    vectorizer: TfidfVectorizer, words: list[str], idf: NDArray[Any] | None
) -> TfidfVectorizer:
    return with_idf(clone(vectorizer).set_params(vocabulary=words), idf)


def _padded(idf: NDArray[Any], more: int) -> NDArray[Any]:
    """With the idf of words without texts: infinite, so that their count is 0."""
    return np.append(idf, np.full(more, np.inf, dtype=idf.dtype))


# -- how many documents have a word -----------------------------------------------------------


def _counted_in(
    features: TextFeatures, texts: list[str], y: LabelArrays, before: RowKeys, n_before: int
) -> tuple[Blocks, TextFeatures, Fresh]:
    """The features of new texts, weighted by the number of all texts with each word.

    Copies of a document do not make its words more frequent. They are recognised by their words,
    because weights change. `before` are the rows learned so far.
    """
    if not features.is_counted_here:
        return _counted_by_vectorizer(features, texts, y, before, n_before)
    counts = features.counts(texts)
    x = Blocks({block: its.arrays() for block, its in counts.items()})
    fresh = fresh_rows(row_keys(x, y), before)
    features = _with_rows(features, x.take(fresh.rows), n_before)
    return features.weighed(counts), features, fresh


def _counted_in_made(
    features: TextFeatures, data: Dataset, y: LabelArrays, before: RowKeys, n_before: int
) -> tuple[Blocks, TextFeatures, Fresh]:
    """The same for features that were made from the texts earlier."""
    features = described(features)
    fresh = fresh_rows(row_keys(Blocks.of(feature_arrays(data.X)), y), before)
    x = made_blocks(features, data).take(fresh.rows)
    features = _with_rows(features, x, n_before)
    return made_blocks(features, data), features, fresh


def _rows_with_each(x: FeatureArrays) -> NDArray[np.int64]:
    return np.bincount(x.indices, minlength=x.n_features)


def _with_rows(features: TextFeatures, x: Blocks, n_before: int) -> TextFeatures:
    """The features with the idf of all texts, of which `x` are the new ones."""
    if features.idf is None or not x.n_rows:
        return features
    n_texts = (n_before, n_before + x.n_rows)
    rows = {block: _rows_with_each(arrays) for block, arrays in x.arrays.items()}
    smooth = bool(features.settings["smooth_idf"])
    changes: dict[str, Any] = {"idf": _idf(features.idf, rows[MAIN], n_texts, smooth)}
    if features.bigrams is not None and BIGRAMS in rows:
        idf = _idf(features.bigrams.idf, rows[BIGRAMS], n_texts, smooth)
        changes["bigrams"] = features.bigrams._replace(idf=idf)
    if features.sub_words is not None and SUB_WORDS in rows:
        known = features.sub_words
        idf = _idf(known.idf, rows[SUB_WORDS], n_texts, smooth=True)
        phrases = are_phrases(known.words.data, known.words.offsets)
        idf = np.where(phrases, known.idf, idf)  # theirs are not by their texts
        changes["sub_words"] = features.sub_words._replace(idf=idf)
    return features.reweighed(**changes)


def _counted_by_vectorizer(
    features: TextFeatures, texts: list[str], y: LabelArrays, before: RowKeys, n_before: int
) -> tuple[Blocks, TextFeatures, Fresh]:
    vectorizer = features.vectorizer
    words = vectorizer.get_feature_names_out().tolist()
    # What a text has does not depend on the weights.
    plain = _rebuilt(vectorizer, words, None).set_params(norm=None)
    x = Blocks.of(feature_arrays(plain.transform(texts)))
    fresh = fresh_rows(row_keys(x, y), before)
    if not vectorizer.use_idf or not len(fresh.rows):
        return features.blocks(texts), features, fresh
    x = x.take(fresh.rows)
    n_texts = (n_before, n_before + x.n_rows)
    idf = _idf(vectorizer.idf_, _rows_with_each(x.main), n_texts, vectorizer.smooth_idf)
    if features.settings:
        features = replace(features, idf=idf)
    else:
        features = TextFeatures.of(_rebuilt(vectorizer, words, idf))
    return features.blocks(texts), features, fresh


def _idf(
    idf: NDArray[Any], rows: NDArray[np.int64], n_texts: tuple[int, int], smooth: bool
) -> NDArray[Any]:
    """The idf as in scikit-learn, of earlier texts, whose counts follow from it, and new ones."""
    more = 1 if smooth else 0
    before, after = n_texts
    counts = np.rint((before + more) / np.exp(idf.astype(np.float64) - 1) - more)
    counts = np.maximum(counts, 0) + rows
    # A word without texts keeps its idf.
    with np.errstate(divide="ignore"):
        new = np.log((after + more) / (counts + more)) + 1
    return np.where(np.isfinite(new), new, idf).astype(idf.dtype)
