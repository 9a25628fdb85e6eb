"""Divide work into parts that depend on the data alone, by amounts and counts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

_COUNTED_AT_ONCE = 1 << 20


def even_ranges(amounts: NDArray[np.int64], each: int, most: int) -> list[tuple[int, int]]:
    """Ranges of about equal amounts, as (first, one past the last).

    A range has an amount of at least `each`. There is at least one, and at most `most`.
    """
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(amounts)])
    n_ranges = min(max(1, int(ends[-1]) // each), most)
    targets = np.linspace(0, ends[-1], n_ranges + 1)[1:-1]
    cuts = np.unique(np.concatenate([[0], np.searchsorted(ends, targets), [len(amounts)]]))
    return list(pairwise(cuts.tolist())) or [(0, 0)]


def counted(numbers: NDArray[np.integer[Any]], n: int) -> NDArray[np.int64]:
    """How often each number from 0 occurs; like ``np.bincount``, but without a wide copy."""
    counts = np.zeros(n, np.int64)
    for start in range(0, len(numbers), _COUNTED_AT_ONCE):
        counts += np.bincount(numbers[start : start + _COUNTED_AT_ONCE], minlength=n)
    return counts
