"""Concatenated lists of numbers, divided by offsets: take some of them, or replace some."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Offsets = NDArray[np.int64]


def taken_lists(offsets: Offsets, lists: NDArray[np.int64]) -> tuple[Offsets, NDArray[np.int64]]:
    """Offsets of the given lists, in their order, and where their entries are."""
    lengths = offsets[lists + 1] - offsets[lists]
    own = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return own, np.repeat(offsets[lists] - own[:-1], lengths) + np.arange(own[-1])


def replaced_lists(
    offsets: Offsets,
    values: tuple[NDArray[Any], ...],
    lists: NDArray[np.int64],
    new_offsets: Offsets,
    new_values: tuple[NDArray[Any], ...],
) -> tuple[Offsets, tuple[NDArray[Any], ...]]:
    """Offsets and values with the given lists replaced; their numbers ascend.

    What lies between two of them is copied in one piece, so few of many lists are replaced fast.
    """
    lengths = np.diff(offsets)
    lengths[lists] = np.diff(new_offsets)
    out = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    # Consecutive lists are one piece, too.
    first = np.flatnonzero(np.diff(lists, prepend=-2) > 1)
    after = np.append(first[1:], len(lists))[: len(first)]
    begins, ends = offsets[lists[first]], offsets[lists[after - 1] + 1]
    old_pieces = list(zip([0, *ends.tolist()], [*begins.tolist(), int(offsets[-1])], strict=True))
    new_pieces = list(zip(new_offsets[first].tolist(), new_offsets[after].tolist(), strict=True))

    def joined(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        pieces = [old[slice(*old_pieces[0])]]
        for old_piece, new_piece in zip(old_pieces[1:], new_pieces, strict=True):
            pieces += [new[slice(*new_piece)], old[slice(*old_piece)]]
        return np.concatenate(pieces)

    return out, tuple(joined(old, new) for old, new in zip(values, new_values, strict=True))


def pair_keys(rows: NDArray[Any], labels: NDArray[Any], n_labels: int) -> NDArray[np.int64]:
    """One number per (row, label) pair."""
    return np.asarray(rows * np.int64(n_labels) + labels)
