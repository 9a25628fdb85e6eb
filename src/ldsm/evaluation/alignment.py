"""Check that a Dataset fits a model, and bring its rows into the model's columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._features.blocks import Blocks
from .._model.inputs import new_rows, own_embeddings
from ..classifier import LdSMClassifier
from ..datasets.alignment import Unseen
from ..datasets.dataset import Dataset
from ..text import TextTagger
from ..text.fitted import fitted_text
from ..text.training import check_same_words

Estimator = LdSMClassifier | TextTagger


def classifier_of(estimator: Estimator) -> LdSMClassifier:
    """The fitted classifier, or the one inside a tagger."""
    if isinstance(estimator, TextTagger):
        check_is_fitted(estimator, "classifier_")
        return estimator.classifier_
    if not isinstance(estimator, LdSMClassifier):
        raise ValueError(
            "'model' must be a fitted LdSMClassifier or TextTagger. "
            f"Got {type(estimator).__name__}."
        )
    check_is_fitted(estimator, "model_")
    return estimator


def check_kind(estimator: Estimator, data: Dataset, name: object = "") -> None:
    """Raise an error unless the model `name` reads rows of this kind: texts or features.

    A model that reads texts also reads features made with its words.
    """
    model = f"model {name}" if name else "model"
    if isinstance(estimator, TextTagger) and data.text_form is not None:
        check_same_words(estimator.features_, data, f"the {model}")
    elif (data.texts is not None) != isinstance(estimator, TextTagger):
        has, wants = ("texts", "features") if data.texts is not None else ("features", "texts")
        raise ValueError(f"The {model} reads {wants}, but the data holds {has}.")


def has_label_names(classes: NDArray[Any], data: Dataset) -> bool:
    """Whether labels are names, not numbers; raises an error if model and rows differ."""
    named = any(isinstance(label, str) for label in classes[:1].tolist())
    if named != (data.label_names is not None):
        has, wants = ("numbers", "names") if named else ("names", "numbers")
        raise ValueError(
            f"The model's labels are {wants}, but the data's are {has}: they cannot be compared."
        )
    return named


def in_columns(estimator: Estimator, data: Dataset, name: object = "") -> tuple[Dataset, Unseen]:
    """The rows in the model's columns, and the labels and features unknown to the model."""
    check_kind(estimator, data, name)
    model = classifier_of(estimator).model_
    if isinstance(estimator, TextTagger) and data.label_names is None:
        # A tagger uses their numbers as names.
        data = replace(data, label_names=[str(i) for i in range(data.n_labels)])
    named = has_label_names(model.classes, data)
    if not named and not np.array_equal(model.classes, np.arange(model.n_labels)):
        # Numbers that are not column numbers are compared like names.
        named = True
        data = replace(data, label_names=[str(i) for i in range(data.n_labels)])
    # One row with all labels represents the training set.
    seen = sp.csr_array((model.label_counts > 0).astype(np.int32)[None, :])
    # Features of texts keep their columns: `model_rows` maps them.
    of_texts = isinstance(estimator, TextTagger)
    width = data.n_features if of_texts else model.n_features
    reference = Dataset(
        None if data.X is None else sp.csr_array((1, width), dtype=np.float32),
        seen,
        texts=None if data.texts is None else [""],
        label_names=[str(label) for label in model.classes] if named else None,
    )
    aligned, unseen = replace(data, feature_names=None).align(reference)
    return replace(aligned, feature_names=data.feature_names if of_texts else None), unseen


def model_rows(estimator: Estimator, data: Dataset, name: object = "") -> Blocks:
    """Rows in the model's features; features unknown to the model are left out."""
    check_kind(estimator, data, name)
    if isinstance(estimator, TextTagger):
        return fitted_text(estimator).rows(data)
    X, width = data.X, classifier_of(estimator).n_features_in_
    if X.shape[1] > width:
        X = X[:, :width]
    elif X.shape[1] < width:
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
    classifier = classifier_of(estimator)
    return new_rows(classifier, X, own_embeddings(classifier.model_, data, None))
