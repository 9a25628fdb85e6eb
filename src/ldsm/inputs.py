"""What users hand in, turned into the arrays of the core.

Every form of the same data gives the same arrays, bit for bit: CSR, CSC, COO or dense, any index
width, sorted or not, with duplicates or explicit zeros. The user's objects are never changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from . import _core
from .sparse_checks import check_structure

LabelForm = Literal["sparse", "dense", "lists", "single"]


@dataclass(frozen=True, eq=False)
class FeatureArrays:
    """Rows of X as the core reads them: sorted, without duplicates or zeros."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    n_features: int

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @cached_property
    def checked(self) -> _core.CheckedFeatures:
        """The same rows for the core, checked once."""
        return _core.CheckedFeatures(self.indptr, self.indices, self.values, self.n_features)

    def rows(self, start: int, stop: int) -> FeatureArrays:
        """A view of some consecutive rows; only the offsets are copied."""
        first, last = self.indptr[start], self.indptr[stop]
        part = FeatureArrays(
            self.indptr[start : stop + 1] - first,
            self.indices[first:last],
            self.values[first:last],
            self.n_features,
        )
        vars(part)["checked"] = self.checked.rows(start, stop)
        return part

    def __reduce__(self) -> tuple[Any, ...]:
        return FeatureArrays, (self.indptr, self.indices, self.values, self.n_features)


def feature_arrays(X: Any) -> FeatureArrays:
    """The core's arrays of a matrix, sparse or dense. Values must be finite in float32."""
    arrays = canonical_arrays(X)
    if arrays is not None:
        return arrays
    if sp.issparse(X) and X.format == "csr":
        # A new object around the same arrays: scipy caches flags on the one it is asked about.
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape, copy=True)
    else:
        X = sp.csr_array(X if sp.issparse(X) else _known_to_scipy(np.atleast_2d(np.asarray(X))))
    if X.data.dtype.kind != "f":
        X = X.astype(np.float64)  # duplicates of small integers must not overflow when added
    X.sum_duplicates()
    with np.errstate(over="ignore"):
        values = X.data.astype(np.float32)
    if not np.all(np.isfinite(values)):
        bad = X.data[~np.isfinite(values)][0]
        raise ValueError(
            f"Input X must hold values that float32 can represent, "
            f"of size at most {np.finfo(np.float32).max:.3g}. Got {bad!r}."
        )
    X = sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
    X.eliminate_zeros()  # also those that are too small for float32
    return FeatureArrays(
        np.ascontiguousarray(X.indptr, dtype=np.int64),
        np.ascontiguousarray(X.indices, dtype=np.int32),
        X.data,
        X.shape[1],
    )


def _known_to_scipy(X: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in a type that sparse matrices can have: of this machine, not of 16 bits."""
    dtype = X.dtype.newbyteorder("=")
    return X.astype(np.float32 if dtype == np.float16 else dtype, copy=False)


def canonical_arrays(X: Any) -> FeatureArrays | None:
    """The core's arrays of a clean CSR matrix, without a detour; None for anything else.

    Clean: numbers of a floating type, finite, sorted, without duplicates or zeros.
    """
    if not sp.issparse(X) or X.format != "csr" or X.data.dtype.kind != "f":
        return None
    if X.shape[1] > np.iinfo(np.int32).max or len(X.indptr) != X.shape[0] + 1:
        return None
    indices = X.indices
    if X.indptr.dtype.kind != "i" or indices.dtype.kind != "i" or X.data.ndim != 1:
        return None
    if X.indptr.ndim != 1 or indices.ndim != 1:
        return None
    if indices.dtype != np.int32:
        if len(indices) and not (indices.min() >= 0 and indices.max() < X.shape[1]):
            return None
        indices = indices.astype(np.int32)
    with np.errstate(over="ignore"):
        values = X.data.astype(np.float32, copy=False)
    indptr = X.indptr.astype(np.int64, copy=False)
    arrays = FeatureArrays(
        np.ascontiguousarray(indptr),
        np.ascontiguousarray(indices),
        np.ascontiguousarray(values),
        X.shape[1],
    )
    checked = _core.CheckedFeatures.if_canonical(
        arrays.indptr, arrays.indices, arrays.values, arrays.n_features
    )
    if checked is None:
        return None
    vars(arrays)["checked"] = checked
    return arrays


@dataclass(frozen=True)
class LabelArrays:
    """Y as the core reads it, and how to give labels back in the form they came."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    classes: NDArray[Any]
    form: LabelForm

    @property
    def n_labels(self) -> int:
        return len(self.classes)

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @cached_property
    def checked(self) -> _core.CheckedLabels:
        """The same labels for the core, checked once."""
        return _core.CheckedLabels(self.indptr, self.indices, self.n_labels)

    def __reduce__(self) -> tuple[Any, ...]:
        return LabelArrays, (self.indptr, self.indices, self.classes, self.form)


def data_fingerprint(x: FeatureArrays, y: LabelArrays, n_features: int) -> str:
    """Hash of the training data: equal for equal rows and labels, in whatever form X came."""
    digest = hashlib.sha256(repr((n_features, y.form, y.classes.tolist())).encode())
    for array in (x.indptr, x.indices, x.values, y.indptr, y.indices):
        digest.update(str(len(array)).encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def label_fingerprint(y: LabelArrays) -> str:
    """Hash of the labels alone: their form, their names and whose they are."""
    digest = hashlib.sha256(repr((y.form, y.classes.tolist())).encode())
    for array in (y.indptr, y.indices):
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def label_arrays(
    Y: Any, names: Sequence[Any] | None = None, trained: LabelForm | None = None
) -> LabelArrays:
    """Recognise the form of Y; `names` are the labels behind the columns of a sparse matrix.

    A sparse matrix or a 2-D array of 0 and 1 (or rectangular nested lists of them) is an indicator
    matrix; other nested sequences are labels per row; a flat sequence is one label per row. Where
    a model was `trained` on lists, nested lists of 0 and 1 are labels too.
    """
    if Y is None:
        raise ValueError(
            "LdSMClassifier requires y to be passed, but the target y is None: "
            "give an indicator matrix, a list of labels per row, or one label per row."
        )
    if sp.issparse(Y):
        check_structure(Y, "y")
        return _from_sparse(Y, names)
    if hasattr(Y, "__array__"):  # pandas objects and other array-likes
        Y = np.asarray(Y)
    if isinstance(Y, np.ndarray):
        if Y.ndim == 2 and Y.shape[1] == 1 and not np.all(np.isin(Y, (0, 1))):
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected. It is read as one "
                "label per row; use y.ravel() to say so.",
                DataConversionWarning,
                stacklevel=3,
            )
            return _from_single(Y.ravel())
        if Y.ndim == 2:
            return _from_dense(Y)
        if Y.ndim == 1:
            nested = Y.dtype == object and len(Y) > 0 and all(_is_collection(row) for row in Y)
            return _from_lists(list(Y)) if nested else _from_single(Y)
        raise ValueError(f"Y must have one or two dimensions. Got an array of shape {Y.shape}.")
    try:
        rows = list(Y)
    except TypeError:
        raise ValueError(
            f"y must be a matrix, a list of labels per row or one label per row. Got {Y!r}."
        ) from None
    if not any(_is_collection(row) for row in rows):
        return _from_single(_faithful_array(rows))
    if not all(_is_collection(row) for row in rows):
        at = next(i for i, row in enumerate(rows) if not _is_collection(row))
        raise ValueError(
            f"Y mixes lists of labels with single labels. Got {rows[at]!r} at row {at}."
        )
    rows = [list(row) for row in rows]
    width = len(rows[0])
    rectangular = width > 0 and all(len(row) == width for row in rows)
    indicator = rectangular and all(_is_zero_or_one(value) for row in rows for value in row)
    if indicator and trained != "lists":
        return _from_dense(np.asarray(rows))
    return _from_lists(rows)


def known_labels(
    Y: Any, names: Sequence[Any] | None, classes: NDArray[Any], form: LabelForm
) -> sp.csr_array:
    """Labels of new rows as a 0/1 matrix in the columns of training: `classes`, given as `form`.

    Columns of an indicator matrix are matched by number unless `names` name them. Labels that
    training never saw have no column and are left out.
    """
    labels = label_arrays(Y, names, trained=form)
    rows = np.repeat(np.arange(labels.n_rows), np.diff(labels.indptr))
    columns = labels.indices
    if names is None and labels.form in ("sparse", "dense"):
        if labels.n_labels != len(classes):
            raise ValueError(
                f"y must have one column for each of the {len(classes)} labels of training. "
                f"Got {labels.n_labels}."
            )
    else:
        number = {label: i for i, label in enumerate(classes.tolist())}
        found = [number.get(label, -1) for label in labels.classes.tolist()]
        columns = np.array(found, dtype=np.int32)[labels.indices]
    seen = columns >= 0
    pairs = (np.ones(seen.sum(), dtype=np.int8), (rows[seen], columns[seen]))
    return sp.csr_array(pairs, shape=(labels.n_rows, len(classes)))


def _is_collection(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset, np.ndarray))


def _is_zero_or_one(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and value in (0, 1)


def _check_some_labels(n_pairs: int) -> None:
    if n_pairs == 0:
        raise ValueError("Y must hold at least one label. Got no label in any row.")


def _from_sparse(Y: Any, names: Sequence[Any] | None) -> LabelArrays:
    if Y.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"y must have fewer than 2**31 columns. Got {Y.shape[1]}.")
    csr = sp.csr_array(Y, copy=True)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    if csr.nnz and not np.all(csr.data == 1):
        bad = csr.data[csr.data != 1][0]
        raise ValueError(f"Y must be an indicator matrix of 0 and 1. Got the value {bad!r}.")
    _check_some_labels(csr.nnz)
    return LabelArrays(
        csr.indptr.astype(np.int64),
        csr.indices.astype(np.int32),
        np.arange(csr.shape[1]) if names is None else _object_array(names),
        "sparse",
    )


def _from_dense(Y: NDArray[Any]) -> LabelArrays:
    if Y.shape[1] == 0:
        raise ValueError(f"Y must have at least one column. Got an array of shape {Y.shape}.")
    try:
        is_zero, is_one = Y == 0, Y == 1
        if not np.all(is_zero | is_one):
            bad = Y[~(is_zero | is_one)].ravel()[0]
            raise ValueError(f"Y must be an indicator matrix of 0 and 1. Got the value {bad!r}.")
    except TypeError:
        raise ValueError(
            f"Y must be an indicator matrix of 0 and 1. Got {Y.dtype} values."
        ) from None
    rows, labels = np.nonzero(is_one)
    _check_some_labels(len(rows))
    indptr = np.zeros(len(Y) + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=len(Y)), out=indptr[1:])
    return LabelArrays(indptr, labels.astype(np.int32), np.arange(Y.shape[1]), "dense")


def _from_single(y: NDArray[Any]) -> LabelArrays:
    if y.ndim != 1:
        raise ValueError(f"Y must have one label per row. Got an array of shape {y.shape}.")
    if len(y) == 0:
        raise ValueError("Y must have at least one row. Got an empty sequence.")
    if y.dtype.kind == "f":
        if not np.all(np.isfinite(y)):
            raise ValueError("Input y contains NaN or infinity.")
        if np.any(y != np.floor(y)):
            bad = y[y != np.floor(y)][0]
            raise ValueError(
                f"Unknown label type: continuous. One label per row must be an int, a str or "
                f"another hashable name. Got {bad!r}."
            )
    if y.dtype == object:
        classes, codes = _encode(list(y), "Y")
    else:
        classes, codes = np.unique(y, return_inverse=True)
    return LabelArrays(
        np.arange(len(y) + 1, dtype=np.int64), codes.astype(np.int32).ravel(), classes, "single"
    )


def _from_lists(rows: Sequence[Iterable[Any]]) -> LabelArrays:
    flat: list[Any] = []
    indptr = np.zeros(len(rows) + 1, dtype=np.int64)
    for i, row in enumerate(rows):
        try:
            seen = dict.fromkeys(row)  # a label named twice counts once
        except TypeError:
            bad = next(label for label in row if not isinstance(label, Hashable))
            raise ValueError(f"Labels must be hashable. Got {bad!r} at row {i} of Y.") from None
        flat.extend(seen)
        indptr[i + 1] = len(flat)
    _check_some_labels(len(flat))
    classes, codes = _encode(flat, "Y")
    order = np.lexsort((codes, np.repeat(np.arange(len(rows)), np.diff(indptr))))
    return LabelArrays(indptr, codes[order].astype(np.int32), classes, "lists")


def _encode(labels: Sequence[Any], name: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Distinct labels, sorted where they can be compared, else in order of appearance."""
    try:
        distinct = list(dict.fromkeys(labels))
    except TypeError:
        bad = next(label for label in labels if not isinstance(label, Hashable))
        raise ValueError(f"Labels must be hashable. Got {bad!r} in {name}.") from None
    for label in distinct:
        if label is None or label != label:
            raise ValueError(f"Labels must not be missing. Got {label!r} in {name}.")
    with contextlib.suppress(TypeError):
        distinct.sort()
    number = {label: i for i, label in enumerate(distinct)}
    codes = np.fromiter((number[label] for label in labels), dtype=np.int64, count=len(labels))
    kinds = {type(label) for label in distinct}
    if len(kinds) == 1 and issubclass(next(iter(kinds)), (bool, int, str, np.integer, np.str_)):
        return _faithful_array(distinct), codes
    return _object_array(distinct), codes


def _faithful_array(items: Sequence[Any]) -> NDArray[Any]:
    """An array of the items' own type where it holds them as they are, else of objects.

    NumPy drops trailing NULs, rounds huge integers and turns 1 and "a" into "1" and "a".
    """
    array = np.asarray(items)
    back = array.tolist() if array.ndim == 1 else []
    same = all(
        a == b and isinstance(a, str) == isinstance(b, str)
        for a, b in zip(back, items, strict=False)
    )
    whole = array.dtype.kind != "f" or not any(
        isinstance(item, (int, np.integer)) for item in items
    )
    return array if back and same and whole else _object_array(items)


def _object_array(items: Sequence[Any]) -> NDArray[Any]:
    """A 1-D array of the items as they are, tuples and all."""
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array
