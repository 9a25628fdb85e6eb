"""Labels in all forms that `fit` takes, converted to arrays for the core."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from .. import _core
from .._execution.memory import check_columns
from .._execution.threads import state_of
from .._storage.strings import is_unicode
from .._wording import warn
from .matrices import label_csr, label_matrix, rebuilt, take_rows

LabelForm = Literal["sparse", "dense", "lists", "single"]
LABEL_FORMS: tuple[LabelForm, ...] = ("sparse", "dense", "lists", "single")
_LABEL_BYTES = 64  # the least that training keeps for each column of y


@dataclass(frozen=True, eq=False)
class LabelNumbers:
    """The labels of rows by number alone: what a task needs of Y."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    n_labels: int

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self, "checked")

    @cached_property
    def checked(self) -> _core.CheckedLabels:
        """The same arrays for the core, checked only once."""
        return _core.CheckedLabels(self.indptr, self.indices, self.n_labels)


@dataclass(frozen=True, eq=False)
class LabelArrays:
    """Y as arrays for the core, with the labels' names and original form."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    classes: NDArray[Any]
    form: LabelForm

    @cached_property
    def checked(self) -> _core.CheckedLabels:
        """The same arrays for the core, checked only once."""
        return _core.CheckedLabels(self.indptr, self.indices, self.n_labels)

    @property
    def n_labels(self) -> int:
        return len(self.classes)

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def numbers(self) -> LabelNumbers:
        """The same without names."""
        return LabelNumbers(self.indptr, self.indices, self.n_labels)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Rows per label."""
        return np.bincount(self.indices, minlength=self.n_labels).astype(np.int64)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the labels: their form, their names and their rows."""
        digest = hashlib.sha256(repr((self.form, self.classes.tolist())).encode())
        for array in (self.indptr, self.indices):
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()

    def rows(self, start: int, stop: int) -> LabelArrays:
        """A view of some consecutive rows; only the offsets are copied."""
        first, last = self.indptr[start], self.indptr[stop]
        indptr = self.indptr[start : stop + 1] - first
        return LabelArrays(indptr, self.indices[first:last], self.classes, self.form)

    def take(self, rows: NDArray[np.int64]) -> LabelArrays:
        """The labels of the given rows, copied."""
        matrix = take_rows(label_csr(self.indptr, self.indices, self.n_labels), rows)
        indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
        return LabelArrays(indptr, indices, self.classes, self.form)

    def in_columns(self, number: Mapping[Any, int], classes: NDArray[Any]) -> LabelArrays:
        """The same labels among `classes`, where `number` gives the column of each."""
        column = np.array([number[label] for label in self.classes.tolist()], dtype=np.int32)
        columns = column[self.indices]
        rows = np.repeat(np.arange(self.n_rows), np.diff(self.indptr))
        in_order = columns[np.lexsort((columns, rows))]
        return LabelArrays(self.indptr, in_order, classes, self.form)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt, (LabelArrays, self.indptr, self.indices, self.classes, self.form)


def label_arrays(
    Y: Any, names: Sequence[Any] | None = None, trained: LabelForm | None = None
) -> LabelArrays:
    """Recognise the form of Y; `names` are the labels behind the columns of a sparse matrix.

    A sparse matrix or a 2-D array of 0 and 1 (or rectangular nested lists of them) is an indicator
    matrix; other nested sequences are labels per row; a flat sequence is one label per row. If a
    model was `trained` on lists, nested lists of 0 and 1 are labels too.
    """
    if Y is None:
        raise ValueError(
            "LdSMClassifier requires y to be passed, but the target y is None: "
            "give an indicator matrix, a list of labels per row, or one label per row."
        )
    if sp.issparse(Y):
        return _from_matrix(Y, names, "sparse")
    if hasattr(Y, "__array__"):  # pandas objects and other array-likes
        columns = _column_names(Y)
        Y = np.asarray(Y)
        if columns is not None and np.isin(Y, (0, 1)).all():
            return _from_matrix(Y, columns, "dense")
    if isinstance(Y, np.ndarray):
        if Y.ndim == 2 and Y.shape[1] == 1 and not np.all(np.isin(Y, (0, 1))):
            warn(
                "A column-vector y was passed when a 1d array was expected. It is read as one "
                "label per row; use y.ravel() to say so.",
                DataConversionWarning,
            )
            return _from_single(Y.ravel())
        if Y.ndim == 2:
            return _from_matrix(Y, None, "dense")
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
        return _from_single(faithful_array(rows))
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
        return _from_matrix(np.asarray(rows), None, "dense")
    return _from_lists(rows)


def known_labels(
    Y: Any, names: Sequence[Any] | None, classes: NDArray[Any], form: LabelForm
) -> sp.csr_array:
    """Labels of new rows as a 0/1 matrix in the columns of training: `classes`, given as `form`.

    Columns of an indicator matrix are matched by number unless `names` name them, or it is a
    DataFrame and the labels of training are names, too. Labels that training never saw have no
    column and are left out.
    """
    labels = label_arrays(Y, names, trained=form)
    if names is None and all(isinstance(label, str) for label in classes[:1].tolist()):
        names = _column_names(Y)
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
        column = [number.get(label, -1) for label in labels.classes.tolist()]
        columns = np.array(column, dtype=np.int32)[labels.indices]
    seen = columns >= 0
    pairs = (np.ones(seen.sum(), dtype=np.int8), (rows[seen], columns[seen]))
    return sp.csr_array(pairs, shape=(labels.n_rows, len(classes)))


def in_classes(labels: LabelArrays, classes: Any) -> LabelArrays:
    """The labels in the columns of `classes`, which lists all labels; sorted if possible.

    The columns of a matrix keep their places, so `classes` must be their numbers.
    """
    try:
        chosen = list(classes)
    except TypeError:
        raise ValueError(f"classes must be a list of labels. Got {classes!r:.80}.") from None
    own = labels.classes.tolist()
    if labels.form in ("sparse", "dense"):
        if chosen != own:
            raise ValueError(
                f"classes must be the {len(own):,} columns of y, from {own[0]!r} to {own[-1]!r}. "
                f"Got {len(chosen):,} labels that are not the same."
            )
        return labels
    all_classes, _ = _encode(chosen, "classes")
    number = {label: i for i, label in enumerate(all_classes.tolist())}
    for label in own:
        if label not in number:
            raise ValueError(f"The labels of y must be among classes. Got {label!r:.80}.")
    return labels.in_columns(number, all_classes)


def _column_names(Y: Any) -> list[str] | None:
    """The names of the columns of a DataFrame, if all are strings."""
    columns = getattr(Y, "columns", None)
    if columns is None or np.ndim(Y) != 2:
        return None
    names = list(columns)
    if not names or not all(isinstance(name, str) for name in names):
        return None
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"The columns of Y must have different names. Got {twice!r} twice.")
    return names


def _is_collection(value: Any) -> bool:
    return isinstance(value, (list, tuple, set, frozenset, np.ndarray))


def _is_zero_or_one(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and value in (0, 1)


def _check_some_labels(n_pairs: int) -> None:
    if n_pairs == 0:
        raise ValueError("Y must hold at least one label. Got none: no row has a label.")


def _from_matrix(Y: Any, names: Sequence[Any] | None, form: LabelForm) -> LabelArrays:
    rows = label_matrix(Y, "y")
    if rows.shape[1] == 0:
        raise ValueError(
            f"Y must have at least one column. Got shape {rows.shape}: no row has a label."
        )
    _check_some_labels(rows.nnz)
    check_columns("y", rows.shape[1], _LABEL_BYTES)
    classes = np.arange(rows.shape[1]) if names is None else object_array(names)
    # A copy, because the user's own array may change while the core reads it.
    return LabelArrays(rows.indptr.astype(np.int64), rows.indices.copy(), classes, form)


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
    """Distinct labels, sorted if they can be compared, else in order of appearance."""
    try:
        distinct = list(dict.fromkeys(labels))
    except TypeError:
        bad = next(label for label in labels if not isinstance(label, Hashable))
        raise ValueError(f"Labels must be hashable. Got {bad!r} in {name}.") from None
    for label in distinct:
        if label is None or label != label:
            raise ValueError(f"Labels must not be missing. Got {label!r} in {name}.")
        if isinstance(label, str) and not is_unicode(label):
            raise ValueError(
                f"Labels must be valid Unicode. Got {label!r} in {name}, which holds a lone "
                "surrogate."
            )
    with contextlib.suppress(TypeError):
        distinct.sort()
    number = {label: i for i, label in enumerate(distinct)}
    codes = np.fromiter((number[label] for label in labels), dtype=np.int64, count=len(labels))
    kinds = {type(label) for label in distinct}
    if len(kinds) == 1 and issubclass(next(iter(kinds)), (bool, int, str, np.integer, np.str_)):
        return faithful_array(distinct), codes
    return object_array(distinct), codes


def faithful_array(items: Sequence[Any]) -> NDArray[Any]:
    """An array of the items' own type if that keeps them exactly, else of objects.

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
    return array if back and same and whole else object_array(items)


def object_array(items: Sequence[Any]) -> NDArray[Any]:
    """A 1-D array of the unchanged items, even of tuples."""
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array
