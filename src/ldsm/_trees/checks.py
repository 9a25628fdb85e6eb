"""Check everything in a forest that prediction relies on, in linear time.

A forest from a file may hold anything. Errors name the array or the node; ``load`` adds the name of
the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from .._execution.threads import in_pool
from .._storage.gaps import unordered
from .forest import FOREST, MOST_COUNTED, Forest

Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]
LARGEST = np.iinfo(np.int32).max
MOST_FEATURES = LARGEST - 8  # as in the core
# Entries checked together, so that temporaries stay in the cache.
BLOCK = 1 << 17
# Entries per task of a thread.
SHARE = 1 << 22


def check_forest(forest: Forest, *, everything: bool = True) -> None:
    """Raise a ValueError that names the node unless the arrays are valid trees.

    Unless `everything` is to be checked, only types, sizes and the links between nodes are, which
    are small next to the weights. The router checks the rest as it uses it.
    """
    _check_sizes(forest)
    _check_ends(forest.tree_offsets, forest.n_nodes, "tree_offsets")
    _check_ends(forest.weight_offsets, len(forest.weights), "weight_offsets")
    _check_ends(forest.histogram_offsets, len(forest.histogram_labels), "histogram_offsets")
    _check_children(forest)
    if not everything:
        return
    _check_rising(forest, "weight_offsets")
    _check_rising(forest, "histogram_offsets")
    n_features = forest.n_features + 1  # the last is the bias
    tasks = [
        partial(check, share)
        for check, length in (
            (partial(_check_weights, forest), len(forest.weights)),
            (partial(_check_counts, forest), forest.n_nodes),
        )
        for share in _cut(slice(0, length), SHARE)
    ]
    for part_of, kind, limit in (
        ("weight", "features", n_features),
        ("histogram", "labels", forest.n_known),
    ):
        check = partial(_check_numbers, forest, part_of, kind, limit)
        offsets = getattr(forest, f"{part_of}_offsets")
        tasks += [partial(check, nodes) for nodes in _cut_by_entries(offsets)]
    in_pool(lambda check: check(), tasks)


def _check_sizes(forest: Forest) -> None:
    """Types and lengths, also in relation to each other."""
    if not 2 <= forest.arity <= 8:
        raise ValueError(f"the arity must be in [2, 8], but is {forest.arity}")
    if not 0 <= forest.n_features <= MOST_FEATURES:
        raise ValueError(f"the number of features, {forest.n_features}, is out of range")
    if not 1 <= forest.n_labels <= LARGEST:
        raise ValueError(f"the number of labels, {forest.n_labels}, is out of range")
    _check_places(forest)
    n_nodes, n_entries = len(forest.first_child), len(forest.weight_features)
    n_means = n_entries if len(forest.weight_means) else 0
    n_units = n_nodes if forest.weights.dtype == np.int8 else 0
    if (forest.weight_features.dtype == np.int32) == (n_units > 0):
        raise ValueError("weight_features and weights must both be compressed, or neither")
    n_splits = int(np.count_nonzero(forest.first_child))
    sizes = {"nodes": n_nodes, "entries": n_entries, "means": n_means, "units": n_units}
    sizes |= {"arity": forest.arity, "splits": n_splits}
    for field in FOREST.arrays:
        field.check(field.name, getattr(forest, field.name), sizes)
    if len(forest.tree_offsets) < 2:
        raise ValueError("the forest has no trees")


def _check_places(forest: Forest) -> None:
    places = forest.places
    if places.dtype != np.int32 or places.ndim != 1:
        raise ValueError("places must be a list of int32")
    if not len(places):
        return
    if not forest.n_labels <= len(places) <= LARGEST:
        raise ValueError(f"the places of labels must be {forest.n_labels} or more")
    if not np.array_equal(np.sort(places), np.arange(len(places))):
        raise ValueError("the places of labels must be the numbers from 0, each once")


def _check_ends(offsets: Numbers, n_entries: int, name: str) -> None:
    if offsets[0] != 0 or offsets[-1] != n_entries:
        raise ValueError(
            f"{name} must go from 0 to {n_entries}, but go from {offsets[0]} to {offsets[-1]}"
        )


def _check_rising(forest: Forest, name: str) -> None:
    offsets = getattr(forest, name)
    for part in _cut(slice(0, len(offsets) - 1)):
        falls = offsets[part.start + 1 : part.stop + 1] < offsets[part]
        _refuse(forest, falls, part, f"{name} decrease")


# -- the trees ---------------------------------------------------------------------------------


def _check_children(forest: Forest) -> None:
    """Every node except the root has one parent, which comes before it.

    Children of a node are in its tree and after it, so none is a root. If there are as many
    children as nodes that need a parent, and every such node has one, each has exactly one.
    """
    arity, starts = forest.arity, forest.tree_offsets
    empty = starts[1:] <= starts[:-1]
    if empty.any():
        raise ValueError(f"tree_offsets do not rise: tree {np.argmax(empty)} has no nodes")
    has_parent = np.zeros(forest.n_nodes, dtype=bool)
    has_parent[starts[:-1]] = True  # roots need none
    n_splits = 0
    for part in _cut(slice(0, forest.n_nodes)):
        first_child = forest.first_child[part]
        splits = np.flatnonzero(first_child != 0)  # faster on bools
        child = first_child[splits]
        splits += part.start
        # The beginnings and ends of the trees that these splits belong to.
        trees = slice(
            int(np.searchsorted(starts, part.start, side="right")) - 1,
            int(np.searchsorted(starts, part.stop, side="left")),
        )
        inner = np.searchsorted(splits, starts[trees.start + 1 : trees.stop])
        shares = np.diff(inner, prepend=0, append=len(splits))
        first = np.repeat(starts[:-1][trees], shares) + child
        stop = np.repeat(starts[1:][trees], shares)
        outside = (first <= splits) | (first > stop - arity)
        _refuse(forest, outside, splits, "a child lies outside the tree or before its parent")
        for m in range(arity):
            has_parent[first + m] = True
        n_splits += len(splits)
    if n_splits * arity != forest.n_nodes - forest.n_trees or not has_parent.all():
        _refuse_parents(forest)


def _refuse_parents(forest: Forest) -> NoReturn:
    """Name the first node with no parent or with two; slow, and only called if there is one."""
    for tree in range(forest.n_trees):
        first_child = forest.first_child[slice(*forest.tree_offsets[tree : tree + 2])]
        n_nodes = len(first_child)
        first = first_child[(first_child > 0) & (first_child <= n_nodes - forest.arity)]
        parents = np.zeros(n_nodes, dtype=np.int32)
        for m in range(forest.arity):
            np.add.at(parents, first + m, 1)
        parents[0] += 1  # the root needs none
        if np.any(parents != 1):
            node = int(np.argmax(parents != 1))
            raise ValueError(f"node {node} of tree {tree} has {parents[node]} parents, not 1")
    raise AssertionError("unreachable: the trees were found faulty")


# -- the contents of nodes ---------------------------------------------------------------------


def _check_weights(forest: Forest, share: slice) -> None:
    for name in ("weights", "weight_means", "weight_scales"):
        values = getattr(forest, name)
        if not len(values) or values.dtype == np.int8:  # no means unless standardised
            continue
        for part in _cut(share):
            finite = np.isfinite(values[part])
            if not finite.all():
                bad = ~finite.reshape(len(finite), -1).all(axis=1)
                _refuse(forest, bad, part, f"{name} are not finite", forest.weight_offsets)


def _check_numbers(forest: Forest, part_of: str, kind: str, limit: int, nodes: slice) -> None:
    """Numbers of features or labels are in range and increase within each node."""
    name = f"{part_of}_{kind}"
    offsets = getattr(forest, f"{part_of}_offsets")[nodes.start : nodes.stop + 1]
    numbers = getattr(forest, name)
    gaps = forest.is_compressed and kind == "features"
    outside, falling = unordered(numbers, offsets, limit, gaps=gaps)
    _refuse(forest, outside, nodes, f"{name} must lie in [0, {limit})")
    _refuse(forest, falling, nodes, f"{name} do not rise")


def _cut_by_entries(offsets: Numbers) -> Iterator[slice]:
    """Ranges of nodes with about `BLOCK` entries each, or one node with more."""
    edges = np.searchsorted(offsets, np.arange(0, offsets[-1], BLOCK), side="left")
    edges = np.unique(np.concatenate([[0], edges, [len(offsets) - 1]]))
    for start, stop in pairwise(edges.tolist()):
        yield slice(start, stop)


def _check_counts(forest: Forest, share: slice) -> None:
    offsets, counts = forest.histogram_offsets, forest.histogram_counts
    for part in _cut(share):
        if len(forest.weight_units):
            units = forest.weight_units[part]
            _refuse(forest, ~(np.isfinite(units) & (units >= 0)), part, "weight_units are damaged")
        for name in ("node_rows", "node_labels"):
            numbers = getattr(forest, name)[part]
            if numbers.min() < 0 or numbers.max() > MOST_COUNTED:
                wrong = (numbers < 0) | (numbers > MOST_COUNTED)
                _refuse(forest, wrong, part, f"{name} is negative or too large")
        edges = offsets[part.start : part.stop + 1]
        filled = np.flatnonzero(edges[1:] != edges[:-1])
        if not len(filled):
            continue
        bins = slice(edges[0], edges[-1])
        if counts[bins].min() < 1:
            _refuse(forest, counts[bins] < 1, bins, "a label count is not positive", offsets)
        # A label is counted once per row: no score can exceed 1.
        most = np.maximum.reduceat(counts[bins], edges[filled] - edges[0])
        more = most > forest.node_rows[part][filled]
        what = "a label is counted more often than there are rows"
        _refuse(forest, more, filled + part.start, what)


def _cut(whole: slice, length: int = BLOCK) -> Iterator[slice]:
    for start in range(whole.start, whole.stop, length):
        yield slice(start, min(start + length, whole.stop))


def _refuse(
    forest: Forest, bad: Flags, where: slice | Numbers, what: str, offsets: Numbers | None = None
) -> None:
    """If anything is bad, raise an error for the first node; `offsets` map entries to nodes."""
    if not bad.any():
        return
    at = int(np.argmax(bad))
    node = where.start + at if isinstance(where, slice) else int(where[at])
    if offsets is not None:
        node = int(np.searchsorted(offsets, node, side="right")) - 1
    tree = int(np.searchsorted(forest.tree_offsets, node, side="right")) - 1
    raise ValueError(f"node {node - int(forest.tree_offsets[tree])} of tree {tree}: {what}")
