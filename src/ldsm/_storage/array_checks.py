"""Checks of arrays that a file holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .gaps import unordered


def check_types(
    name: str, arrays: Iterable[NDArray[Any]], types: Iterable[tuple[type, ...]]
) -> None:
    for array, allowed in zip(arrays, types, strict=True):
        if array.dtype not in allowed or array.ndim != 1:
            raise ValueError(f"the arrays of its {name} have a wrong type or shape")


def check_order(
    name: str,
    offsets: NDArray[np.int64],
    numbers: NDArray[Any],
    limit: int,
    kind: str,
    owner: str,
    *,
    gaps: bool = False,
) -> None:
    if offsets[0] != 0 or offsets[-1] != len(numbers) or np.any(offsets[1:] < offsets[:-1]):
        raise ValueError(f"the offsets of its {name} do not rise from 0 to {len(numbers)}")
    outside, falling = unordered(numbers, offsets, limit, gaps=gaps)
    if outside.any():
        raise ValueError(f"its {name} has a {kind} out of range")
    if falling.any():
        raise ValueError(f"the {kind}s of its {name} do not rise within a {owner}")
