"""Measure the depth of the trees and compare it with two statements of the paper.

The paper observes depths between log_M K and 3 log_M K on its data sets (K labels). Its Definition
1 implies a bound: a split with balancedness beta and mean share p of the parent's (row, label)
pairs gives no child more than p + beta of them, and a node with fewer than two pairs is never
split. If the splits above the deepest leaf have p + beta with the geometric mean s, its depth is at
most

    1 + log(pairs of the root / 2) / log(1 / s)

There is no bound in K alone, because a label may occupy any number of leaves.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ldsm._trees.forest import Forest


def depth_facts(forest: Forest, n_rows: int) -> dict[str, Any]:
    """Depths, logarithms and the bound; the bound is None where splits send every pair on."""
    statistics = forest.tree_statistics()
    deepest = int(np.argmax(statistics["depth"]))
    bounds = [_bound(forest, tree) for tree in range(forest.n_trees)]
    holds = all(
        bound is None or depth <= bound + 1e-6
        for depth, bound in zip(statistics["depth"], bounds, strict=True)
    )
    return {
        "max_depth": int(statistics["depth"].max()),
        "mean_depth": float(statistics["mean_leaf_depth"].mean()),
        "nodes": float(statistics["nodes"].mean()),
        "leaves_per_row": float(statistics["leaves_per_row"].mean()),
        "log_labels": math.log(forest.n_labels, forest.arity),
        "log_rows": math.log(n_rows, forest.arity),
        "bound": bounds[deepest],
        "bound_holds": bool(holds),
    }


def _bound(forest: Forest, tree: int) -> float | None:
    """The bound of one tree, along the way to its deepest leaf."""
    start, stop = forest.tree_offsets[tree : tree + 2]
    pairs = forest.node_labels[start:stop]
    first = forest.first_child[start:stop]
    beta = forest.balancedness[start:stop]
    log_share = np.zeros(stop - start)  # of a node's pairs in the root's, at most; in logarithms
    depth = np.zeros(stop - start, dtype=np.int64)
    # A child comes after its parent, so one pass in node order is enough.
    for node in np.flatnonzero(first):
        children = slice(first[node], first[node] + forest.arity)
        share = pairs[children].sum() / (forest.arity * pairs[node]) + beta[node]
        log_share[children] = log_share[node] + math.log(min(1.0, share))
        depth[children] = depth[node] + 1
    leaf = int(np.argmax(depth))
    if depth[leaf] == 0:
        return 0.0
    rate = -log_share[leaf] / depth[leaf]
    return 1 + math.log(pairs[0] / 2) / rate if rate > 0 else None
