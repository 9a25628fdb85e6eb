"""Small random multi-label problems, and how to hand them to the core and to its twin."""

from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp

from ldsm import _core
from ldsm._arrays.features import feature_arrays
from ldsm._arrays.labels import label_arrays
from ldsm._trees.params import TreeParams

TREE_PARAMS = [field.name for field in fields(TreeParams)]


def make_problem(seed, kind="binary", n_rows=None, n_features=None, n_labels=None):
    """A dense X and a dense 0/1 Y with linear structure; some rows have no labels.

    `kind`: "binary" (sparse, all ones), "weights" (sparse, any positive values) or "dense".
    """
    rng = np.random.default_rng(seed)
    n = n_rows or int(rng.integers(20, 60))
    d = n_features or int(rng.integers(4, 12))
    k = n_labels or int(rng.integers(3, 9))
    if kind == "dense":
        X = rng.normal(size=(n, d)).astype(np.float32)
    else:
        X = (rng.random((n, d)) < 0.35).astype(np.float32)
        if kind == "weights":
            X *= rng.random((n, d)).astype(np.float32) + np.float32(0.1)
    score = X @ rng.normal(size=(d, k))
    Y = (score + 0.5 * rng.normal(size=(n, k)) > np.quantile(score, 0.7)).astype(int)
    Y[rng.random(n) < 0.1] = 0
    Y[0, 0] = 1
    return X, Y


def core_arguments(X, Y):
    """The first arguments of `_core.grow_tree`."""
    return feature_arrays(sp.csr_array(X)).checked, label_arrays(sp.csr_array(Y)).checked


def naive_arguments(X, Y):
    """The first arguments of `NaiveTree`."""
    rows = [{int(f): float(row[f]) for f in np.flatnonzero(row)} for row in X]
    labels = [[int(k) for k in np.flatnonzero(row)] for row in Y]
    return rows, labels, X.shape[1]


def tree_params(**changes):
    """Parameters of a small tree."""
    params = {
        "seed": 1,
        "tree": 0,
        "arity": 2,
        "max_nodes": 15,
        "n_epochs": 3,
        "learning_rate": 0.3,
        "integrity_weight": 2.0,
        "multiway_penalty": 1.0,
        "relaxations": 3,
        "optimizer": "nag",
        "standardize": False,
        "subsample": 1.0,
        "min_split_labels": 1,
        "prune_share": 0.03,
        "compress": False,
    }
    return {**params, **changes}


def grow(x, y, **settings):
    """`_core.grow_tree` with the parameters one by one."""
    params = SimpleNamespace(**{name: settings.pop(name) for name in TREE_PARAMS})
    return _core.grow_tree(x, y, params, **settings)
