"""Columns of one data set brought into the order of another's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.matrices import csr, map_columns


@dataclass(frozen=True, eq=False)
class Unseen:
    """Labels and features that :meth:`Dataset.align` did not find in the training set.

    Attributes
    ----------
    labels : dict
        Labels without training rows, by name or number, with their occurrences.
    features : dict
        Features without a column in the training set, with their occurrences.
    dropped_per_row : int64 array
        Number of labels per row without a column; they count as misses in recall over all true
        labels.
    """

    labels: dict[Any, int]
    features: dict[Any, int]
    dropped_per_row: NDArray[np.int64]

    def __str__(self) -> str:
        n = sum(self.labels.values())
        text = (
            f"{len(self.labels)} label{'s' * (len(self.labels) != 1)} without a training row "
            f"({n} occurrence{'s' * (n != 1)})"
        )
        if self.features:
            plural = "s" * (len(self.features) != 1)
            text += f", {len(self.features)} feature{plural} without a column"
        return text


def new_columns(
    n_before: int,
    names: Sequence[str] | None,
    n_columns: int,
    train_names: Sequence[str] | None,
    kind: str,
) -> NDArray[np.int64]:
    """The column of the training set for each column, by name or by number; -1 for none."""
    if (names is None) != (train_names is None):
        raise ValueError(f"Both data sets or neither must have {kind}. Only one has them.")
    if names is None or train_names is None:
        mapping = np.arange(n_before)
        mapping[mapping >= n_columns] = -1
        return mapping
    column = {name: i for i, name in enumerate(train_names)}
    if len(column) != len(train_names) or len(set(names)) != len(names):
        raise ValueError(f"{kind} must be unique to be aligned. A name occurs twice.")
    return np.array([column.get(name, -1) for name in names], dtype=np.int64)


def align_columns(
    matrix: Any,
    names: Sequence[str] | None,
    n_columns: int,
    train_names: Sequence[str] | None,
    kind: str,
) -> tuple[Any, dict[Any, int], NDArray[np.int64]]:
    """The aligned matrix, the occurrences in dropped columns, and their number per row."""
    mapping = new_columns(matrix.shape[1], names, n_columns, train_names, kind)
    if (mapping == np.arange(matrix.shape[1])).all():  # unchanged, so a mapped matrix stays mapped
        if matrix.shape[1] != n_columns:
            matrix = csr(matrix.indptr, matrix.indices, matrix.data, n_columns)
        return matrix, {}, np.zeros(matrix.shape[0], dtype=np.int64)
    aligned = map_columns(matrix, mapping, n_columns)
    counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
    gone = np.flatnonzero((mapping < 0) & (counts > 0))
    lost = np.diff(matrix.indptr).astype(np.int64) - np.diff(aligned.indptr)
    called: Sequence[Any] = range(matrix.shape[1]) if names is None else names
    return aligned, {called[i]: int(counts[i]) for i in gone.tolist()}, lost
