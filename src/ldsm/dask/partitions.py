"""Training data in Dask's collections: read partition by partition, never as a whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from distributed import Client

from .tasks import results

_AHEAD = 2  # partitions per worker that are computed before they are needed


def is_collection(data: Any) -> bool:
    """Whether this is a data frame, a column, an array or a bag of Dask."""
    return hasattr(data, "__dask_graph__") and hasattr(data, "to_delayed")


def partitions(client: Client, *collections: Any) -> Iterator[tuple[Any, ...]]:
    """The corresponding partitions of collections, computed by the workers, in order.

    Only a few of them are in memory at once.
    """
    parts = [_delayed(one) for one in collections]
    if len({len(own) for own in parts}) > 1:
        counts = " and ".join(str(len(own)) for own in parts)
        raise ValueError(
            f"The rows and their labels must have the same partitions. Got {counts} of them."
        )
    waiting: deque[tuple[int, list[Any]]] = deque()
    rest = enumerate(zip(*parts, strict=True))
    while True:
        ahead = _AHEAD * max(1, len(client.nthreads())) - len(waiting)
        waiting.extend((number, client.compute(list(own))) for number, own in islice(rest, ahead))
        if not waiting:
            return
        number, futures = waiting.popleft()
        named = {f"{number}, column {i}": future for i, future in enumerate(futures)}
        del futures  # Dask keeps a result for as long as its future is held
        found = dict(results(client, named, "partition"))
        values = tuple(found[name] for name in named)
        _check_lengths(number, values)
        yield values


def documents(client: Client, texts: Any, tags: Any = None) -> Iterator[Any]:
    """Pairs of text and tags, from two columns of a data frame or a bag of pairs."""
    if tags is None:
        for (pairs,) in partitions(client, texts):
            yield from pairs
        return
    for some, their_tags in partitions(client, texts, tags):
        yield from zip(some, their_tags, strict=True)


def _delayed(collection: Any) -> Sequence[Any]:
    """One delayed object per partition; the blocks of an array must hold whole rows."""
    parts = collection.to_delayed()
    if not isinstance(parts, np.ndarray):
        return list(parts)
    if parts.ndim == 2 and parts.shape[1] > 1:
        raise ValueError(
            "The blocks of an array must hold whole rows: X.rechunk({1: -1}). "
            f"Got {parts.shape[1]} blocks per row."
        )
    return list(parts.ravel())


def _check_lengths(number: int, values: Sequence[Any]) -> None:
    lengths = {value.shape[0] if hasattr(value, "shape") else len(value) for value in values}
    if len(lengths) > 1:
        raise ValueError(
            f"Partition {number} has different numbers of rows and labels: "
            f"{' and '.join(map(str, sorted(lengths)))}."
        )
