"""Statistics of a forest by level: training, balance and purity of its splits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .forest import Forest

Floats = NDArray[np.float64]
QUARTILES = (0.25, 0.75)


@dataclass(frozen=True, eq=False)
class LevelStatistics:
    """One statistic of the splits at each level: mean and quartiles, weighted by rows."""

    mean: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class Levels:
    """The splits of all trees by level; level 0 holds the roots."""

    splits: NDArray[np.int64]  # at the level, over all trees
    # (n_levels, n_epochs): J after each epoch, the mean over the splits, weighted by their rows.
    epoch_objective: Floats
    balancedness: LevelStatistics  # the paper's beta; 0 is best: children of equal size
    purity: LevelStatistics  # alpha; 0 is best: no label in two children


def by_level(forest: Forest) -> Levels:
    """Statistics of the splits of each level; empty if every tree is a single leaf."""
    inner = ~forest.is_leaf
    level = forest.node_depth()[inner]
    rows = forest.node_rows[inner].astype(np.float64)
    n_levels = int(level.max(initial=-1)) + 1
    parts = [np.flatnonzero(level == i) for i in range(n_levels)]
    epochs = forest.epoch_objective.astype(np.float64)
    objective = [np.average(epochs[part], axis=0, weights=rows[part]) for part in parts]
    return Levels(
        np.array([len(part) for part in parts], dtype=np.int64),
        np.array(objective).reshape(n_levels, epochs.shape[1]),
        _statistics(forest.balancedness[inner], rows, parts),
        _statistics(forest.purity[inner], rows, parts),
    )


def leaf_depths(forest: Forest) -> Floats:
    """Share of the training rows' leaves at each depth, over all trees."""
    leaf = forest.is_leaf
    rows = np.bincount(forest.node_depth()[leaf], weights=forest.node_rows[leaf])
    return np.asarray(rows / rows.sum())


def balanced_depth(n_labels: int, arity: int) -> float:
    """log_M K: the depth of a balanced tree of arity M with one leaf for each of K labels."""
    return math.log(max(n_labels, 1), arity)


def _statistics(values: Floats, rows: Floats, parts: list[NDArray[Any]]) -> LevelStatistics:
    means = [np.average(values[part], weights=rows[part]) for part in parts]
    low, high = ([_quantile(values[part], rows[part], q) for part in parts] for q in QUARTILES)
    return LevelStatistics(np.array(means), np.array(low), np.array(high))


def _quantile(values: Floats, weights: Floats, share: float) -> float:
    """The smallest value that, with those below it, has this share of the weight."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(below, share * below[-1])])
