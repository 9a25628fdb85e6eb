"""What users hand to the classifier, checked by scikit-learn's rules, as arrays for the core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from .._arrays.inputs import (
    FeatureArrays,
    canonical_arrays,
    feature_arrays,
    known_labels,
    label_arrays,
)
from .._arrays.sparse import check_structure
from .._trees.training_data import Rows
from ..datasets.dataset import Dataset

SPARSE_FORMATS = ["csr", "csc", "coo"]  # others are turned into the first


def training_rows(clf: Any, X: Any, y: Any, *, more: bool) -> tuple[Rows, NDArray[Any] | None]:
    """X and y as they were given to `fit`, and the features' names if X brings them.

    With `more`, X must fit the former fit.
    """
    store = X.store if isinstance(X, Dataset) else None
    X, y, names = _unpacked(X, y)
    labels = label_arrays(y, names)
    check_structure(X, "X")
    # What X says of its features is noted on a stand-in: a fit that fails changes nothing.
    noted = clf if more else type(clf)()
    X = validate_data(noted, X, accept_sparse=SPARSE_FORMATS, dtype="numeric", reset=not more)
    x = feature_arrays(X)
    if x.n_rows != labels.n_rows:
        raise ValueError(
            f"X and y must have the same number of rows. Got inconsistent numbers of samples: "
            f"{x.n_rows} and {labels.n_rows}."
        )
    feature_names = getattr(noted, "feature_names_in_", None)
    return Rows(x, labels, noted.n_features_in_, store), feature_names


def new_rows(clf: Any, X: Any) -> FeatureArrays:
    """X as it was given to a method of a fitted classifier."""
    check_is_fitted(clf, "forest_")
    if sp.issparse(X) and X.shape[1] == clf.n_features_in_ and X.shape[0] > 0:
        # What scikit-learn's checks would pass unchanged need not wait for them.
        arrays = canonical_arrays(X)
        if arrays is not None and not hasattr(clf, "feature_names_in_"):
            return arrays
    check_structure(X, "X")
    X = validate_data(clf, X, accept_sparse=SPARSE_FORMATS, dtype="numeric", reset=False)
    return feature_arrays(X)


def one_row(clf: Any, x: Any) -> FeatureArrays:
    """A row as such, or as a matrix of rows; whether it is one is for others to say."""
    return new_rows(clf, x if sp.issparse(x) or np.ndim(x) != 1 else np.asarray(x)[None, :])


def labelled_rows(clf: Any, X: Any, y: Any) -> tuple[FeatureArrays, sp.csr_array]:
    """Rows with the labels of theirs that training saw."""
    X, y, names = _unpacked(X, y)
    truth = known_labels(y, names, clf.classes_, clf._label_form)
    x = new_rows(clf, X)
    if x.n_rows != truth.shape[0]:
        raise ValueError(
            f"X and y must have the same number of rows. Got {x.n_rows} and {truth.shape[0]}."
        )
    return x, truth


def _unpacked(X: Any, y: Any) -> tuple[Any, Any, Sequence[str] | None]:
    """Features, labels and the names of the labels, where a Dataset brings them."""
    if not isinstance(X, Dataset):
        return X, y, None
    if y is not None:
        raise ValueError("A Dataset brings its own labels: y must be left out.")
    if X.X is None:
        raise ValueError(
            "X must hold features. Got a Dataset of texts: TextTagger is for them, or they are "
            "turned into features first."
        )
    return X.X, X.Y, X.label_names
