"""Check the input of the classifier by scikit-learn's rules and make arrays for the core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from .._arrays.dense_rows import MOST_DIMENSIONS, LabelVectors, dense_rows, label_vectors
from .._arrays.features import FeatureArrays, canonical_arrays, feature_arrays
from .._arrays.joined_labels import warn_if_joined
from .._arrays.labels import LabelArrays, in_classes, known_labels, label_arrays
from .._arrays.structure import check_structure
from .._features.blocks import MAIN, Blocks, Layout
from .._features.training_rows import TrainingRows, layout_of
from .._storage.strings import Strings
from .._trees.params import is_dense, is_ranked
from ..datasets.dataset import Dataset, TextForm

if TYPE_CHECKING:
    from .fitted import FittedModel

SPARSE_FORMATS = ["csr", "csc", "coo"]  # others are converted to the first


def training_rows(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    *,
    former: FittedModel | None = None,
    classes: Any = None,
    embeddings: Any = None,
    label_embeddings: Any = None,
) -> TrainingRows:
    """The rows of a `fit` from X and y.

    X must have the features of the `former` model, if there is one. `classes` lists all labels, if
    some may have no rows.
    """
    if isinstance(X, TrainingRows):
        warn_if_joined(X.y.classes)
        return X
    store = X.store if isinstance(X, Dataset) else None
    form = X.text_form if isinstance(X, Dataset) else None
    synonyms = X.label_synonyms if isinstance(X, Dataset) else None
    if isinstance(X, Dataset) and X.embeddings is not None:
        if embeddings is not None or label_embeddings is not None:
            raise ValueError(
                "The Dataset includes its embeddings: embeddings and label_embeddings must be "
                "omitted."
            )
        embeddings, label_embeddings = X.embeddings, X.label_embeddings
        if classes is not None:
            label_embeddings = _by_label(X)
    X, y, names = _unpacked(X, y)
    labels = label_arrays(y, names)
    if classes is not None:
        labels = in_classes(labels, classes)
    warn_if_joined(labels.classes)
    check_structure(X, "X")
    given = X
    # Feature names are recorded on another estimator, so that a failed fit changes nothing.
    noted = type(estimator)() if former is None else estimator
    reset = former is None
    X = validate_data(noted, X, accept_sparse=SPARSE_FORMATS, dtype="numeric", reset=reset)
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
    layout = layout_of(form, x.n_features) if former is None else former.layout
    if embeddings is None and _may_be_vectors(x, layout, form):
        ranked = is_ranked(estimator.get_params(deep=False), x.n_rows)
        layout = replace(layout, dense=0, from_main=ranked)
    rows = TrainingRows(layout.split(x), labels, feature_names, store, sub_words, synonyms)
    return with_embeddings(rows, embeddings, label_embeddings)


def _may_be_vectors(x: FeatureArrays, layout: Layout, form: TextForm | None) -> bool:
    """Whether all features may be the vector of a row; held-out rows decide."""
    alone = layout[MAIN] == layout.n_features and (not layout.dense or layout.from_main)
    return form is None and alone and is_dense(x) and 2 <= x.n_features <= MOST_DIMENSIONS


def with_embeddings(rows: TrainingRows, embeddings: Any, label_embeddings: Any) -> TrainingRows:
    """Rows with a dense block, and the vectors of label names, if they are given."""
    if embeddings is None:
        if label_embeddings is not None:
            raise ValueError("label_embeddings need embeddings of the rows. Got None.")
        return rows
    dense = dense_rows(embeddings, rows.n_rows)
    vectors: LabelVectors | None = None
    if isinstance(label_embeddings, LabelVectors):
        vectors = label_embeddings
    elif label_embeddings is not None:
        vectors = label_vectors(label_embeddings, rows.y.classes, width=dense.width)
    return replace(rows, blocks=rows.blocks.with_dense(dense), label_vectors=vectors)


def new_rows(estimator: BaseEstimator, X: Any, embeddings: Any = None) -> Blocks:
    """The rows X given to a method of a fitted classifier, in the blocks of its model."""
    x, model = sparse_rows(estimator, X), estimator.model_
    if embeddings is not None:
        if not model.layout.dense or model.layout.from_main:
            raise ValueError("embeddings must be None: the model was trained without any.")
        return x.with_dense(dense_rows(embeddings, x.n_rows, width=model.layout.dense))
    if x.dense is None and model.reads_dense:
        raise ValueError(
            f"embeddings must be given: the model was trained with embeddings of "
            f"{model.layout.dense:,} columns, a row for each of X. Got None."
        )
    return x


def own_embeddings(model: FittedModel, X: Any, embeddings: Any) -> Any:
    """The embeddings given, or those of a Dataset, if the model reads any."""
    if not isinstance(X, Dataset) or X.embeddings is None:
        return embeddings
    if embeddings is not None:
        raise ValueError("The Dataset includes its embeddings: embeddings must be omitted.")
    return X.embeddings if model.layout.dense and not model.layout.from_main else None


def own_label_embeddings(model: FittedModel, X: Any) -> Any:
    """The vectors of a Dataset's labels, by label, if the model reads embeddings."""
    return _by_label(X) if isinstance(X, Dataset) and model.layout.dense else None


def _by_label(data: Dataset) -> Any:
    if data.label_embeddings is None:
        return None
    names = range(data.n_labels) if data.label_names is None else data.label_names
    return data.label_embeddings.by_name(names)


def sparse_rows(estimator: BaseEstimator, X: Any) -> Blocks:
    """The same without embeddings, which trees do not read."""
    if isinstance(X, Blocks):
        return X
    layout: Layout = estimator.model_.layout
    named = estimator.model_.feature_names is not None
    if sp.issparse(X) and X.shape[0] > 0 and X.shape[1] == estimator.n_features_in_ and not named:
        # Skip scikit-learn's checks if they would change nothing.
        arrays = canonical_arrays(X)
        if arrays is not None:
            return layout.split(arrays)
    check_structure(X, "X")
    X = validate_data(estimator, X, accept_sparse=SPARSE_FORMATS, dtype="numeric", reset=False)
    return layout.split(feature_arrays(X))


def as_matrix(x: Any) -> Any:
    """A single row, which may be a vector, as a matrix; its number of rows is checked elsewhere."""
    is_matrix = x is None or isinstance(x, Blocks) or sp.issparse(x) or np.ndim(x) != 1
    return x if is_matrix else np.asarray(x)[None, :]


def labelled_rows(
    estimator: BaseEstimator, model: FittedModel, X: Any, y: Any, embeddings: Any = None
) -> tuple[Blocks, sp.csr_array]:
    """Rows and their labels in the model's columns; unknown labels are left out."""
    embeddings = own_embeddings(model, X, embeddings)
    X, y, names = _unpacked(X, y)
    truth = known_labels(y, names, model.classes, model.label_form)
    x = new_rows(estimator, X, embeddings)
    _check_lengths(x.n_rows, truth.shape[0])
    return x, truth


def rows_of_one_label(
    estimator: BaseEstimator, X: Any, y: Any, embeddings: Any = None
) -> tuple[Blocks, NDArray[Any]]:
    """Rows of exactly one label each, and this label, which the model may not know."""
    is_dataset = isinstance(X, Dataset)
    embeddings = own_embeddings(estimator.model_, X, embeddings)
    X, y, names = _unpacked(X, y)
    labels, x = label_arrays(y, names), new_rows(estimator, X, embeddings)
    # A Dataset holds a matrix of labels, however many each row has.
    single = labels.form == "single" or (is_dataset and (np.diff(labels.indptr) == 1).all())
    if not single or labels.n_rows != x.n_rows:
        raise ValueError(f"y must hold one label for each of the {x.n_rows} rows of X.")
    return x, labels.classes[labels.indices]


def rows_to_learn(
    estimator: BaseEstimator,
    model: FittedModel,
    X: Any,
    y: Any,
    classes: Any,
    embeddings: Any = None,
) -> tuple[Blocks, LabelArrays]:
    """Rows of the model's features, and their labels of the model's kind, perhaps new ones."""
    embeddings = own_embeddings(model, X, embeddings)
    X, y, names = _unpacked(X, y)
    labels = label_arrays(y, names, trained=model.label_form)
    if classes is not None:
        labels = in_classes(labels, classes)
        if set(labels.classes.tolist()) != set(model.classes.tolist()):
            raise ValueError(
                f"classes must be those of the model, {model.n_labels:,} labels, at every call "
                f"after the first. Got {len(labels.classes):,} labels that are not the same."
            )
    labels = _of_kind(labels, model)
    warn_if_joined(labels.classes)
    x = new_rows(estimator, X, embeddings).apart_from(X)
    _check_lengths(x.n_rows, labels.n_rows)
    return x, labels


def _check_lengths(n_rows: int, n_labelled: int) -> None:
    if n_rows != n_labelled:
        raise ValueError(
            f"X and y must have the same number of rows. Got {n_rows} and {n_labelled}."
        )


def _of_kind(labels: LabelArrays, model: FittedModel) -> LabelArrays:
    """Labels of the kind that the model has; an error for others."""
    known = model.classes.tolist()
    kinds = {type(label) for label in known}
    if labels.form in ("sparse", "dense") and labels.classes.dtype != object:
        # A matrix without names: its columns are those of the model, and perhaps new ones.
        numbered = model.label_form in ("sparse", "dense") and known == list(range(len(known)))
        if labels.n_labels < model.n_labels or (labels.n_labels > model.n_labels and not numbered):
            least = "at least " if numbered else ""
            raise ValueError(
                f"y must have {least}the {model.n_labels:,} columns of the model. "
                f"Got {labels.n_labels:,}."
            )
        return labels if numbered else replace(labels, classes=model.classes)
    if model.label_form in ("sparse", "dense") and kinds == {int}:
        raise ValueError(
            "The model's labels are the columns of a matrix: y must be a matrix of 0 and 1. "
            f"Got labels such as {labels.classes[0]!r:.80}."
        )
    if (labels.form == "single") != (model.label_form == "single"):
        wanted = "one label" if model.label_form == "single" else "any number of labels"
        raise ValueError(f"y must be as at the first fit, {wanted} for each row.")
    for label in labels.classes.tolist():
        if type(label) not in kinds:
            names = " or ".join(sorted(kind.__name__ for kind in kinds))
            raise ValueError(f"Labels must be of the model's kind, {names}. Got {label!r:.80}.")
    return labels


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
