"""Why a row gets its labels: the path through each tree, the deciding features, the leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.features import FeatureArrays
from .forest import Forest


@dataclass(frozen=True)
class Reason:
    """What one feature added to the margins of a node (the bias is feature number D)."""

    feature: int
    value: float
    contributions: NDArray[np.float32]  # one per direction


@dataclass(frozen=True)
class Step:
    """One internal node on a row's path."""

    node: int  # within the tree
    depth: int
    margins: NDArray[np.float32]
    directions: tuple[int, ...]  # the children the row was sent to
    reasons: list[Reason]  # the features that favoured these directions most, strongest first


@dataclass(frozen=True)
class Leaf:
    """One leaf that a row reached, with its labels, most frequent first."""

    node: int
    depth: int
    rows: int
    labels: NDArray[np.int32]
    shares: NDArray[np.float64]  # the leaf's scores: count / rows, or the paper's count / sum


@dataclass(frozen=True)
class TreePath:
    """A row's path through one tree. Steps are in node order, parents before children."""

    tree: int
    steps: list[Step]
    leaves: list[Leaf]


def explain_row(
    forest: Forest, row: FeatureArrays, max_reasons: int, *, bias: int
) -> list[TreePath]:
    """Follow one row through every tree of a Forest; `bias` is the number of that feature.

    The features of a step are ordered by how far their contribution to the directions taken exceeds
    their mean contribution to the others.
    """
    if row.n_rows != 1:
        raise ValueError(f"explain takes exactly one row. Got {row.n_rows}.")
    if not isinstance(max_reasons, Integral) or max_reasons < 0:
        raise ValueError(
            f"The 'max_reasons' parameter must be an int >= 0. Got {max_reasons!r} instead."
        )
    _, visited = forest.visited_nodes(row)
    values = np.zeros(forest.n_features + 1, dtype=np.float32)
    own = row.leading(forest.n_features)
    values[own.indices] = own.values
    values[forest.n_features] = 1.0  # the bias
    with np.errstate(over="ignore", invalid="ignore"):  # the router accepts it, too
        paths = _paths(forest, values, visited, max_reasons)
    if bias == forest.n_features:
        return paths
    return [_renumbered(path, forest.n_features, bias) for path in paths]


def _renumbered(path: TreePath, bias: int, number: int) -> TreePath:
    """The path with another number for the bias, because trees do not use all features."""
    steps = [
        replace(
            step,
            reasons=[
                replace(reason, feature=number) if reason.feature == bias else reason
                for reason in step.reasons
            ],
        )
        for step in path.steps
    ]
    return replace(path, steps=steps)


def _paths(
    forest: Forest,
    values: NDArray[np.float32],
    visited: NDArray[np.int32],
    max_reasons: int,
) -> list[TreePath]:
    went = set(visited.tolist())
    ends = np.searchsorted(visited, forest.tree_offsets)
    paths = []
    for tree in range(forest.n_trees):
        start = int(forest.tree_offsets[tree])
        steps, leaves = [], []
        above = {start: (-1, 0)}  # the parent and the depth of nodes on the path
        for node in visited[ends[tree] : ends[tree + 1]].tolist():
            parent, depth = above[node]
            if forest.first_child[node] == 0:
                leaves.append(_leaf(forest, node, parent, start, depth))
                continue
            first = start + int(forest.first_child[node])
            directions = tuple(m for m in range(forest.arity) if first + m in went)
            above.update((first + m, (node, depth + 1)) for m in directions)
            steps.append(_step(forest, node, values, directions, max_reasons, start, depth))
        paths.append(TreePath(tree, steps, leaves))
    return paths


def pull_of(directions: tuple[int, ...], arity: int) -> NDArray[np.float32]:
    """Factors for contributions: the mean of the directions taken, less that of the others."""
    factors = np.full(arity, -1.0 / max(1, arity - len(directions)), dtype=np.float32)
    factors[list(directions)] = 1.0 / max(1, len(directions))
    return factors


def _step(
    forest: Forest,
    node: int,
    values: NDArray[np.float32],
    directions: tuple[int, ...],
    max_reasons: int,
    start: int,
    depth: int,
) -> Step:
    part = slice(*forest.weight_offsets[node : node + 2])
    features, weights = forest.node_weights(node)
    _check_range(features, len(values), node, "a feature number")
    x = values[features]
    if len(forest.weight_means):
        x = (x - forest.weight_means[part]) * forest.weight_scales[part]
    contributions = x[:, None] * weights
    pull = contributions @ pull_of(directions, forest.arity)
    order = np.lexsort((features, -np.abs(pull)))[:max_reasons]
    order = order[contributions[order].any(axis=1)]
    reasons = [Reason(int(features[i]), float(x[i]), contributions[i]) for i in order.tolist()]
    margins = contributions.sum(axis=0, dtype=np.float32)
    return Step(node - start, depth, margins, directions, reasons)


def _leaf(forest: Forest, node: int, parent: int, start: int, depth: int) -> Leaf:
    answering = node
    offsets = forest.histogram_offsets
    if offsets[node] == offsets[node + 1] and parent >= 0:
        answering = parent  # no label reached the leaf: its parent answers
    part = slice(*offsets[answering : answering + 2].tolist())
    if not 0 <= part.start <= part.stop <= len(forest.histogram_labels):
        raise _damaged(answering, "its histogram lies outside the stored ones")
    labels = forest.histogram_labels[part].astype(np.int32)
    _check_range(labels, forest.n_known, answering, "a label number")
    rows = int(forest.node_rows[answering])
    if len(labels) and rows < 1:
        raise _damaged(answering, "it has labels but no rows")
    counts = forest.histogram_counts[part].astype(np.int64)
    shares = counts / (max(1, rows) if forest.by_rows else max(1, counts.sum()))
    order = np.argsort(-counts, kind="stable")
    order = order[labels[order] < forest.n_labels]
    shares = shares[order]
    return Leaf(node - start, depth, rows, labels[order], shares)


# A forest that was opened unverified may hold anything: numbers are checked before use.


def _check_range(numbers: NDArray[Any], limit: int, node: int, what: str) -> None:
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= limit):
        raise _damaged(node, f"{what} is out of range")


def _damaged(node: int, reason: str) -> ValueError:
    """The same error as the router's."""
    return ValueError(f"The forest is damaged at node {node}: {reason}.")
