"""Convert label names in truth and predictions to numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from .inputs import fail

_MISSING = (-1, None)  # padding in a row of predictions


def frame_rows(y: Any) -> list[list[str]] | None:
    """The column names of each row's ones, if `y` is a DataFrame with named columns."""
    columns = getattr(y, "columns", None)
    if columns is None or np.ndim(y) != 2 or not all(isinstance(name, str) for name in columns):
        return None
    names = list(columns)
    return [[names[i] for i in np.flatnonzero(row)] for row in np.asarray(y)]


def numbered(y_true: Any, y_pred: Any, y_train: Any = None) -> tuple[Any, Any, Any]:
    """The arguments with numbers instead of names, if the predictions are names."""
    labels = y_pred[0] if isinstance(y_pred, tuple) and len(y_pred) == 2 else y_pred
    if sp.issparse(labels):
        return y_true, y_pred, y_train
    try:
        array = np.asarray(labels)
    except ValueError:  # rows of unequal length, which the reader rejects
        return y_true, y_pred, y_train
    if array.ndim != 2 or array.dtype.kind not in "OU":
        return y_true, y_pred, y_train
    number: dict[Any, int] = {}
    names = array.ravel().tolist()
    rows = [_numbers(y, name, number) for y, name in ((y_true, "y_true"), (y_train, "y_train"))]
    if not {type(label) for label in number} & {type(name) for name in names}:
        return y_true, y_pred, y_train  # numbers and names, which the reader rejects
    ids = [-1 if name in _MISSING else number.setdefault(name, len(number)) for name in names]
    top = np.array(ids).reshape(array.shape)
    return rows[0], (top, y_pred[1]) if isinstance(y_pred, tuple) else top, rows[1]


def _numbers(y: Any, name: str, number: dict[Any, int]) -> list[list[int]] | None:
    if y is None:
        return None
    rows = frame_rows(y)
    if rows is None:
        if sp.issparse(y) or getattr(y, "ndim", 1) == 2:
            allowed = "lists of labels, or a DataFrame with named columns, as y_pred holds names"
            fail(name, "a matrix without names", allowed)
        rows = [list(row) for row in y]
    return [[number.setdefault(label, len(number)) for label in row] for row in rows]
