"""Checks of rising numbers, such as a node's features, stored as they are or as gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Faults = NDArray[np.bool_]


def unordered(
    numbers: NDArray[Any], offsets: NDArray[np.int64], limit: int, *, gaps: bool
) -> tuple[Faults, Faults]:
    """Which vectors have numbers outside [0, limit), and which have numbers that do not rise.

    Vector i has the entries from ``offsets[i]`` to ``offsets[i + 1]``; offsets rise, and may begin
    anywhere. With `gaps`, each number is the distance from the one before, from 0 in the first.
    """
    first, last = int(offsets[0]), int(offsets[-1])
    starts = offsets[:-1] - first
    block = numbers[first:last]
    filled = np.flatnonzero(offsets[1:] > offsets[:-1])
    outside, falling = (np.zeros(len(starts), dtype=bool) for _ in range(2))
    if not len(filled):
        return outside, falling
    begins = starts[filled]
    if gaps:
        outside[filled] = np.add.reduceat(block, begins, dtype=np.int64) >= limit
        rises = block > 0
    else:
        lowest, highest = (f.reduceat(block, begins) for f in (np.minimum, np.maximum))
        outside[filled] = (lowest < 0) | (highest >= limit)
        rises = np.empty(len(block), dtype=bool)
        np.greater(block[1:], block[:-1], out=rises[1:])
    rises[begins] = True
    falling[filled] = ~np.logical_and.reduceat(rises, begins)
    return outside, falling


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
