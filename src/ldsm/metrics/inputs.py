"""Check the input of `ldsm.metrics` and convert it to one form."""

from __future__ import annotations

from itertools import chain
from numbers import Integral
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._arrays.matrices import canonical_csr, invalid, label_matrix
from .._arrays.structure import check_structure
from .hits import top_of_dense, top_of_sparse


def read_labels(y: Any, name: str) -> tuple[sp.csr_array, bool]:
    """0/1 CSR matrix without stored zeros, and whether its width was given, not inferred."""
    if sp.issparse(y) or getattr(y, "ndim", 1) == 2:
        return label_matrix(y, name), True
    allowed = "a 2-D 0/1 matrix or a list of lists of distinct integer label ids"
    try:
        rows = list(y)
        sizes = [len(row) for row in rows]
        flat = np.array(list(chain.from_iterable(rows)))
    except (TypeError, ValueError):
        fail(name, type(y).__name__, allowed)
    if flat.size and (flat.ndim != 1 or flat.dtype.kind not in "iu"):
        fail(name, f"labels of dtype {flat.dtype}", allowed)
    ids = _check_ids(flat, name, lowest=0)
    parts = (np.ones(ids.size), ids, np.cumsum([0, *sizes]))
    matrix = canonical_csr(sp.csr_array(parts, shape=(len(sizes), int(ids.max(initial=-1)) + 1)))
    if (twice := matrix.data > 1).any():
        fail(name, f"label {matrix.indices[twice][0]} twice in a row", allowed)
    return matrix, False


def read_predictions(y_pred: Any, k: int) -> tuple[npt.NDArray[np.int32], int | None]:
    """Label ids, best first, -1 for none; and the number of labels if scores were given."""
    if sp.issparse(y_pred) and y_pred.ndim == 2:
        check_structure(y_pred, "y_pred")
        matrix = canonical_csr(y_pred)
        _check_scores(matrix.data)
        return top_of_sparse(matrix, k), int(matrix.shape[1])
    scores = None
    if isinstance(y_pred, tuple):
        if len(y_pred) != 2:
            fail("y_pred", f"a tuple of {len(y_pred)}", "a tuple (labels, scores)")
        y_pred, scores = y_pred[0], np.asarray(y_pred[1])
    try:
        array = np.asarray(y_pred)
    except ValueError:
        fail("y_pred", "rows of unequal length", "an array; -1 fills missing label ids")
    if array.ndim != 2 or array.dtype.kind not in ("iuf" if scores is None else "iu"):
        allowed = "a 2-D array of integer label ids or of floating scores, or a sparse matrix"
        fail("y_pred", f"{array.dtype} of shape {array.shape}", allowed)
    if array.dtype.kind == "f":
        _check_scores(array)
        return top_of_dense(array, k), array.shape[1]
    top = _check_ids(array, "y_pred", lowest=-1)
    if scores is not None:
        if scores.shape != top.shape:
            fail("y_pred", f"scores of shape {scores.shape}", f"labels and scores, {top.shape}")
        _check_scores(scores[top >= 0])
    ordered = np.sort(top, axis=1)
    if (twice := (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        row, rank = np.argwhere(twice)[0]
        allowed = "distinct label ids in each row (an integer array is ids; give scores as floats)"
        fail("y_pred", f"label {ordered[row, rank]} twice in row {row}", allowed)
    return top, None


def read_weights(propensities: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The inverse propensities."""
    allowed = "a 1-D array of numbers in (0, 1], one per label (not their inverses)"
    try:
        values = np.asarray(propensities, dtype=np.float64)
    except (TypeError, ValueError):
        fail("propensities", type(propensities).__name__, allowed)
    if values.ndim != 1:
        fail("propensities", f"shape {values.shape}", allowed)
    if (wrong := ~((values > 0) & (values <= 1))).any():
        fail("propensities", values[wrong][0].item(), allowed)
    return 1 / values


def common_width(widths: dict[str, tuple[int, bool]]) -> int:
    """The number of labels: the common width of the matrices, else from the largest label id."""
    fixed = {name: width for name, (width, is_fixed) in widths.items() if is_fixed}
    if len(set(fixed.values())) > 1:
        fail(" and ".join(fixed), list(fixed.values()), "of the same number of labels")
    width = max(fixed.values()) if fixed else max(width for width, _ in widths.values())
    for name, (needed, _) in widths.items():
        if needed > width:
            fail(name, f"label id {needed - 1}", f"label ids below the number of labels, {width}")
    return width


def widen(matrix: sp.csr_array, width: int) -> sp.csr_array:
    parts = (matrix.data, matrix.indices, matrix.indptr)
    return sp.csr_array(parts, shape=(matrix.shape[0], width))


def check_rows(n_true: int, n_pred: int) -> None:
    if n_true != n_pred or not n_true:
        fail("y_true and y_pred", [n_true, n_pred], "of the same number of rows, at least 1")


def _check_ids(ids: npt.NDArray[Any], name: str, lowest: int) -> npt.NDArray[np.int32]:
    if ids.size and not lowest <= ids.min() <= ids.max() < 2**31 - 1:
        wrong = ids.min() if ids.min() < lowest else ids.max()
        fail(name, f"label id {wrong}", f"label ids from {lowest} to 2^31 - 2")
    return ids.astype(np.int32)


def _check_scores(scores: npt.NDArray[Any]) -> None:
    if scores.dtype.kind not in "biuf":
        fail("y_pred", f"scores of dtype {scores.dtype}", "real numbers")
    if np.isnan(scores).any():
        fail("y_pred", "nan", "free of nan scores")


def positive(name: str, value: Any) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        fail(name, value, "an integer >= 1")
    return int(value)


def fail(name: str, value: Any, allowed: str) -> NoReturn:
    raise invalid(name, value, allowed)
