"""Check the input of the classifier by scikit-learn's rules and make arrays for the core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from .._arrays.features import FeatureArrays, canonical_arrays, feature_arrays
from .._arrays.joined_labels import warn_if_joined
from .._arrays.labels import known_labels, label_arrays
from .._arrays.structure import check_structure
from .._storage.strings import Strings
from .._trees.training_data import TrainingData
from ..datasets.dataset import Dataset

if TYPE_CHECKING:
    from .fitted import FittedModel

SPARSE_FORMATS = ["csr", "csc", "coo"]  # others are converted to the first


def training_data(estimator: BaseEstimator, X: Any, y: Any, *, refit: bool) -> TrainingData:
    """The training data of `fit` from X and y.

    With `refit`, X must have the features of the estimator's last fit.
    """
    store = X.store if isinstance(X, Dataset) else None
    # Pairs of words are for the ranker: they would swamp the trees.
    form = X.text_form if isinstance(X, Dataset) else None
    n_ranked = None if form is None else X.n_features - form.n_sub_words
    n_matched = None if form is None or n_ranked is None else n_ranked - form.n_pairs
    synonyms = X.label_synonyms if isinstance(X, Dataset) else None
    X, y, names = _unpacked(X, y)
    labels = label_arrays(y, names)
    warn_if_joined(labels.classes)
    check_structure(X, "X")
    given = X
    # Feature names are recorded on another estimator, so that a failed fit changes nothing.
    noted = estimator if refit else type(estimator)()
    X = validate_data(noted, X, accept_sparse=SPARSE_FORMATS, dtype="numeric", reset=not refit)
    x = feature_arrays(X).apart_from(given)
    if x.n_rows != labels.n_rows:
        raise ValueError(
            f"X and y must have the same number of rows. Got inconsistent numbers of samples: "
            f"{x.n_rows} and {labels.n_rows}."
        )
    feature_names = getattr(noted, "feature_names_in_", None)
    if feature_names is not None:
        feature_names = Strings.pack(feature_names.tolist())
    sub_words = None if form is None else form.sub_words
    return TrainingData(x, labels, feature_names, store, n_matched, n_ranked, sub_words, synonyms)


def new_rows(estimator: BaseEstimator, X: Any) -> FeatureArrays:
    """The rows X given to a method of a fitted classifier, as arrays."""
    named = estimator.model_.feature_names is not None
    if sp.issparse(X) and X.shape[0] > 0 and X.shape[1] == estimator.n_features_in_ and not named:
        # Skip scikit-learn's checks if they would change nothing.
        arrays = canonical_arrays(X)
        if arrays is not None:
            return arrays
    check_structure(X, "X")
    X = validate_data(estimator, X, accept_sparse=SPARSE_FORMATS, dtype="numeric", reset=False)
    return feature_arrays(X)


def one_row(estimator: BaseEstimator, x: Any) -> FeatureArrays:
    """A single row, as a vector or as a matrix; its number of rows is checked elsewhere."""
    return new_rows(estimator, x if sp.issparse(x) or np.ndim(x) != 1 else np.asarray(x)[None, :])


def labelled_rows(
    estimator: BaseEstimator, model: FittedModel, X: Any, y: Any
) -> tuple[FeatureArrays, sp.csr_array]:
    """Rows and their labels in the model's columns; unknown labels are left out."""
    X, y, names = _unpacked(X, y)
    truth = known_labels(y, names, model.classes, model.label_form)
    x = new_rows(estimator, X)
    if x.n_rows != truth.shape[0]:
        raise ValueError(
            f"X and y must have the same number of rows. Got {x.n_rows} and {truth.shape[0]}."
        )
    return x, truth


def _unpacked(X: Any, y: Any) -> tuple[Any, Any, Sequence[str] | None]:
    """Features, labels and, from a Dataset, the names of the labels."""
    if not isinstance(X, Dataset):
        return X, y, None
    if y is not None:
        raise ValueError("A Dataset includes its labels: y must be omitted.")
    if X.X is None:
        raise ValueError(
            "X must hold features. Got a Dataset of texts: use TextTagger, or turn the texts into "
            "features first."
        )
    return X.X, X.Y, X.label_names
