"""Is this a forest? What prediction relies on is checked before, in time linear in the size.

A forest from a file may hold anything. The errors name the array or the node; ``load`` puts the
file's name before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from .forest import MODEL_ARRAYS, STATISTICS_ARRAYS, Forest

LARGEST = np.iinfo(np.int32).max
MOST_FEATURES = LARGEST - 8  # as in the core
# Entries looked at together: temporaries stay in the cache, however large the forest.
BLOCK = 1 << 18


def check_forest(forest: Forest, *, everything: bool = True) -> None:
    """Raise a ValueError, naming the node, unless the arrays are those of trees.

    Parameters
    ----------
    forest : Forest
    everything : bool, default=True
        False: only what is small beside the weights, that is types, sizes and who is whose child.
        The router checks the rest of what it follows on its way.
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
    with ThreadPoolExecutor(2) as pool:  # NumPy lets go of the interpreter while it works
        checks = [_check_weights, _check_features, _check_histograms]
        for outcome in [pool.submit(check, forest) for check in checks]:
            outcome.result()


def _check_sizes(forest: Forest) -> None:
    """Types and lengths, each by itself and against each other."""
    if not 2 <= forest.arity <= 8:
        raise ValueError(f"the arity must lie in [2, 8], and is {forest.arity}")
    if not 0 <= forest.n_features <= MOST_FEATURES:
        raise ValueError(f"the number of features, {forest.n_features}, is out of range")
    if not 1 <= forest.n_labels <= LARGEST:
        raise ValueError(f"the number of labels, {forest.n_labels}, is out of range")
    n_nodes, n_entries = len(forest.first_child), len(forest.weight_features)
    n_means = n_entries if len(forest.weight_means) else 0
    n_splits = int(np.count_nonzero(forest.first_child))
    shapes: dict[str, tuple[int, ...]] = {
        "tree_offsets": (len(forest.tree_offsets),),
        "weight_offsets": (n_nodes + 1,),
        "weight_features": (n_entries,),
        "weights": (n_entries, forest.arity),
        "weight_means": (n_means,),
        "weight_scales": (n_means,),
        "histogram_offsets": (n_nodes + 1,),
        "histogram_labels": (len(forest.histogram_labels),),
        "histogram_counts": (len(forest.histogram_labels),),
        "epoch_objective": (n_splits, forest.epoch_objective.shape[-1]),
    }
    for name, dtype in {**MODEL_ARRAYS, **STATISTICS_ARRAYS}.items():
        array, shape = getattr(forest, name), shapes.get(name, (n_nodes,))
        if array.dtype != dtype:
            raise ValueError(f"{name} must be of type {np.dtype(dtype)}, and is {array.dtype}")
        if array.shape != shape:
            raise ValueError(f"{name} must have the shape {shape}, and has {array.shape}")
    if len(forest.tree_offsets) < 2:
        raise ValueError("the forest has no trees")


def _check_ends(offsets: NDArray[np.int64], n_entries: int, name: str) -> None:
    if offsets[0] != 0 or offsets[-1] != n_entries:
        raise ValueError(
            f"{name} must lead from 0 to {n_entries}, and lead from {offsets[0]} to {offsets[-1]}"
        )


def _check_rising(forest: Forest, name: str) -> None:
    offsets = getattr(forest, name)
    for part in _blocks(len(offsets) - 1):
        falls = offsets[part.start + 1 : part.stop + 1] < offsets[part]
        _refuse(forest, falls, part, f"{name} decrease")


# -- the trees ---------------------------------------------------------------------------------


def _check_children(forest: Forest) -> None:
    """Every node but the root has one parent, which comes before it.

    Blocks of `arity` children that share no node and leave none out can only begin at 1,
    1 + arity, 1 + 2 arity ..., each once. So there must be as many internal nodes as such places,
    and no place may be left free.
    """
    arity, starts = forest.arity, forest.tree_offsets
    empty = starts[1:] <= starts[:-1]
    if empty.any():
        raise ValueError(f"tree_offsets do not rise: tree {np.argmax(empty)} has no nodes")
    sizes = np.diff(starts)
    places = np.concatenate([[0], np.cumsum((sizes - 1) // arity)])
    taken = np.zeros(places[-1], dtype=bool)
    n_splits = 0
    for part in _blocks(forest.n_nodes):
        first_child = forest.first_child[part]
        split = first_child != 0
        # Facts of the tree that each node of this part belongs to.
        trees = slice(
            int(np.searchsorted(starts, part.start, side="right")) - 1,
            int(np.searchsorted(starts, part.stop, side="left")),
        )
        edges = np.clip(starts[trees.start : trees.stop + 1], part.start, part.stop)
        start, size, place = (
            np.repeat(facts[trees], np.diff(edges)) for facts in (starts[:-1], sizes, places[:-1])
        )
        node = np.arange(part.start, part.stop) - start
        outside = split & ((first_child <= node) | (first_child > size - arity))
        _refuse(forest, outside, part, "a child lies outside the tree or before its parent")
        child = first_child[split] - 1
        if np.any(child % arity):
            _refuse_parents(forest)
        taken[place[split] + child // arity] = True
        n_splits += len(child)
    if n_splits != len(taken) or np.any((sizes - 1) % arity) or not taken.all():
        _refuse_parents(forest)


def _refuse_parents(forest: Forest) -> NoReturn:
    """Name the first node that has two parents, or none; slow, once it is known that one does."""
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


# -- what the nodes hold -----------------------------------------------------------------------


def _check_weights(forest: Forest) -> None:
    for name in ("weights", "weight_means", "weight_scales"):
        values = getattr(forest, name)
        for part in _blocks(len(values)):
            finite = np.isfinite(values[part])
            if not finite.all():
                bad = ~finite.reshape(len(finite), -1).all(axis=1)
                _refuse(forest, bad, part, f"{name} are not finite", forest.weight_offsets)


def _check_features(forest: Forest) -> None:
    _check_numbers(forest, "weight_features", forest.n_features + 1, forest.weight_offsets)


def _check_histograms(forest: Forest) -> None:
    offsets, counts = forest.histogram_offsets, forest.histogram_counts
    _check_numbers(forest, "histogram_labels", forest.n_labels, offsets)
    for part in _blocks(len(counts)):
        if counts[part].min() < 1:
            _refuse(forest, counts[part] < 1, part, "a label count is not positive", offsets)
    for part in _blocks(forest.n_nodes):
        _refuse(forest, forest.node_rows[part] < 0, part, "its number of rows is negative")
        _refuse(forest, forest.node_labels[part] < 0, part, "its number of labels is negative")
        # A label is counted once per row: no score can exceed 1.
        nodes = part.start + np.flatnonzero(np.diff(offsets[part.start : part.stop + 1]))
        if len(nodes):
            first, last = offsets[nodes[0]], offsets[nodes[-1] + 1]
            most = np.maximum.reduceat(counts[first:last], offsets[nodes] - first)
            more = most > forest.node_rows[nodes]
            _refuse(forest, more, nodes, "a label is counted more often than there are rows")


def _check_numbers(forest: Forest, name: str, limit: int, offsets: NDArray[np.int64]) -> None:
    """Numbers of features or labels lie in range, and rise within each node."""
    numbers = getattr(forest, name)
    for part in _blocks(len(numbers)):
        block = numbers[part]
        if block.min() < 0 or block.max() >= limit:
            outside = (block < 0) | (block >= limit)
            _refuse(forest, outside, part, f"{name} must lie in [0, {limit})", offsets)
        # Where numbers do not rise, another node must begin. The block's first is compared with the
        # last of the block before.
        first = max(part.start - 1, 0)
        falls = numbers[first + 1 : part.stop] <= numbers[first : part.stop - 1]
        falls = first + 1 + np.flatnonzero(falls)
        inside = offsets[np.searchsorted(offsets, falls)] != falls
        _refuse(forest, inside, falls, f"{name} do not rise", offsets)


def _blocks(length: int) -> Iterator[slice]:
    for start in range(0, length, BLOCK):
        yield slice(start, min(start + BLOCK, length))


def _refuse(
    forest: Forest,
    bad: NDArray[np.bool_],
    where: slice | NDArray[np.int64],
    what: str,
    offsets: NDArray[np.int64] | None = None,
) -> None:
    """If anything is bad, say what of the first node; `offsets` tell whose the entries are."""
    if not bad.any():
        return
    at = int(np.argmax(bad))
    node = where.start + at if isinstance(where, slice) else int(where[at])
    if offsets is not None:
        node = int(np.searchsorted(offsets, node, side="right")) - 1
    tree = int(np.searchsorted(forest.tree_offsets, node, side="right")) - 1
    raise ValueError(f"node {node - int(forest.tree_offsets[tree])} of tree {tree}: {what}")
