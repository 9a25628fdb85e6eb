"""The labels that one request may predict: all, only some, or all but some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Allowed = NDArray[np.uint8]  # 1 for each column that may be predicted


def chosen_columns(columns: Mapping[Any, int], only: Any, without: Any) -> Allowed | None:
    """The columns that may be predicted, given the column of each label; None if all may.

    Examples
    --------
    >>> chosen_columns({"a": 0, "b": 1, "c": 2}, ["a", "b"], ["b"])
    array([1, 0, 0], dtype=uint8)
    """
    if only is None and without is None:
        return None
    allowed = np.full(len(columns), only is None, dtype=np.uint8)
    if only is not None:
        allowed[_columns(columns, only, "only")] = 1
    if without is not None:
        allowed[_columns(columns, without, "without")] = 0
    if not allowed.any():
        names = "only" if without is None else "without" if only is None else "only and without"
        raise ValueError(f"The choice of labels ({names}) must leave at least one. Got none.")
    return allowed


def _columns(columns: Mapping[Any, int], labels: Any, argument: str) -> list[int]:
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise ValueError(
            f"The {argument!r} parameter must be a list of labels. Got {labels!r:.80}."
        )
    found = []
    for label in labels:
        try:
            found.append(columns[label])
        except (KeyError, TypeError):
            raise ValueError(
                f"The {argument!r} parameter must name labels of the model. Got {label!r:.80}."
            ) from None
    return found
