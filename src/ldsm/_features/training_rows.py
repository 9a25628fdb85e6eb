"""The rows of a fit: feature blocks, labels and the names of labels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._arrays.dense_rows import LabelVectors
from .._arrays.features import FeatureArrays
from .._arrays.labels import LabelArrays
from .._storage.strings import Strings
from ..datasets.dataset import StoreLocation, SubWordForm, TextForm
from .blocks import Blocks, Layout


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """What every part of a model is trained on."""

    blocks: Blocks
    y: LabelArrays
    feature_names: Strings | None = None
    store: StoreLocation | None = None  # that holds the same rows
    sub_word_form: SubWordForm | None = None
    label_synonyms: Mapping[str, Sequence[str]] | None = None  # names of labels that have others
    with_names: bool = True  # whether label names may be used
    label_vectors: LabelVectors | None = None  # of names, by the encoder of the dense block

    @property
    def n_rows(self) -> int:
        return self.blocks.n_rows

    @property
    def n_features(self) -> int:
        return self.blocks.n_features

    @property
    def n_labels(self) -> int:
        return self.y.n_labels

    @cached_property
    def fingerprint(self) -> str:
        """Hash of rows and labels; it does not depend on the form of X."""
        sparse = rows_fingerprint(self.blocks.arrays.values(), self.y)
        if self.blocks.dense is None:
            return sparse
        digest = hashlib.sha256(sparse.encode())
        digest.update(np.ascontiguousarray(self.blocks.dense.values).view(np.uint8).data)
        return digest.hexdigest()


def rows_fingerprint(blocks: Iterable[FeatureArrays], y: LabelArrays) -> str:
    """Hash of the features of rows, block by block, and of their labels."""
    blocks = list(blocks)
    n_features = sum(block.n_features for block in blocks)
    digest = hashlib.sha256(repr((n_features, y.form, y.classes.tolist())).encode())
    arrays = [part for x in blocks for part in (x.indptr, x.indices, x.values)]
    for array in (*arrays, y.indptr, y.indices):
        digest.update(str(len(array)).encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def layout_of(form: TextForm | None, n_features: int) -> Layout:
    """The blocks of a matrix with all features side by side, made from texts or not."""
    if form is None:
        return Layout.of(main=n_features)
    main = n_features - form.n_bigrams - form.n_sub_words
    return Layout.of(main=main, bigrams=form.n_bigrams, sub_words=form.n_sub_words)
