"""Recognise rows that have been learned before, within a batch or by earlier ones.

A copy shows nothing that the row has not shown: neither what labels look like, nor, as a batch does
not, how often they occur. To recognise copies, a model keeps a hash of each row that it has learned
since its training, never the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.labels import LabelArrays
from .blocks import Blocks

# By row, the hash of its features, and that of its features and labels.
RowKeys = NDArray[np.uint64]
NO_ROWS: RowKeys = np.zeros((0, 2), np.uint64)
NO_ROWS.flags.writeable = False


class Fresh(NamedTuple):
    """The rows of a batch that are not copies."""

    rows: NDArray[np.int64]
    learned: RowKeys  # of all rows learned so far, these included


def row_keys(x: Blocks, y: LabelArrays) -> RowKeys:
    """The hashes of rows. Neither the number of features nor the columns of labels matter."""
    parts = [
        _by_row(block.indptr, values)
        for block in x.arrays.values()
        for values in (block.indices, block.values)
    ]
    if x.dense is not None:
        parts.append(iter(x.dense.values))
    names = [repr(label).encode("utf-8", "surrogatepass") for label in y.classes.tolist()]
    keys = np.empty((x.n_rows, 2), np.uint64)
    for row, (own, *content) in enumerate(zip(_by_row(y.indptr, y.indices), *parts, strict=True)):
        digest = blake2b(digest_size=8)
        for part in content:
            digest.update(part.nbytes.to_bytes(8, "little"))
            digest.update(part)
        keys[row, 0] = int.from_bytes(digest.digest(), "little")
        digest.update(b"\0".join(sorted(names[label] for label in own.tolist())))
        keys[row, 1] = int.from_bytes(digest.digest(), "little")
    return keys


def _by_row(indptr: NDArray[np.int64], values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (values[start:end] for start, end in pairwise(indptr.tolist()))


def fresh_rows(keys: RowKeys, learned: RowKeys) -> Fresh:
    """Which rows of a batch have not been learned yet; copies within the batch count once.

    If a row comes with other labels than before, its former labels are forgotten, so that they can
    be restored.
    """
    _, first = np.unique(keys[:, 1], return_index=True)
    rows = np.sort(first).astype(np.int64)
    rows = rows[~np.isin(keys[rows, 1], learned[:, 1])]
    changed = np.isin(learned[:, 0], keys[rows, 0]) & ~np.isin(learned[:, 1], keys[:, 1])
    return Fresh(rows, np.concatenate([learned[~changed], keys[rows]]))
