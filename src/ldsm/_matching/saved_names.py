"""Take the index of names out of the arrays of a file."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from .. import _core
from .._storage.array_checks import check_order, check_types
from .._storage.container import Arrays, take
from .names import NameIndex

_PLACE = "second_stage.names"
_LARGEST = 1e15  # for an idf or the length of a name: their squares stay finite


def names_from_state(
    arrays: Arrays, n_sub_words: int, n_labels: int, n_dropped: int, *, verify: bool
) -> NameIndex:
    """The index of names; invalid content is a ValueError."""
    index = NameIndex(*(take(arrays, f"{_PLACE}.{field.name}") for field in fields(NameIndex)))
    numbers = ((np.int64,), (np.uint8, np.uint16, np.int32), (np.float32,), (np.float32,))
    types = (*numbers, (np.int32,), (np.uint8,), (np.int64,), (np.int64,), (np.int64,))
    check_types("names", index.arrays().values(), types)
    n_names = len(index.owners)
    if (
        len(index.offsets) != n_sub_words + 1
        or len(index.idf) != n_sub_words
        or len(index.norms) != n_names
        or len(index.text_offsets) not in (1, n_names + 1)
        or (len(index.text_offsets) == 1 and np.count_nonzero(index.owners < n_labels) != n_labels)
        or not len(index.matched) == len(index.right) == n_labels + (n_dropped > 0)
    ):
        raise ValueError("the arrays of its names do not fit each other in size")
    if verify:
        check_order("names", index.offsets, index.names, n_names, "name", "sub-word")
        owners = index.owners
        if not (n_names and owners[0] == 0 and owners[-1] == n_labels + n_dropped - 1):
            raise ValueError("its names are not those of all labels, from the first to the last")
        if np.any(owners[1:] < owners[:-1]) or np.any(owners[1:] > owners[:-1] + 1):
            raise ValueError("the labels of its names do not rise by one each")
        for name, values in (("idf", index.idf), ("norms", index.norms)):
            if not ((values >= 0) & (values <= _LARGEST)).all():  # false for NaN
                raise ValueError(f"its names have {name} that are not numbers from 0")
        if np.any(index.idf <= 0) or np.any(index.norms[index.names] <= 0):
            raise ValueError("its names have a weight of 0")
        if np.any(index.right < 0) or np.any(index.matched < index.right):
            raise ValueError("its names were right more often than they were matched")
        wrong = _core.check_names(index.text, index.text_offsets, unique=False)
        if wrong is not None:
            raise ValueError(f"its name {wrong[0]} {wrong[1]}")
    return index
