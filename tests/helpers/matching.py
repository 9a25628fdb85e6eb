"""Problems for matchers, and shortlists in plain Python."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsm import Forest, _core
from ldsm._arrays.features import feature_arrays
from problems import core_arguments, grow, make_problem, tree_params

N_ROWS, N_FEATURES, N_LABELS, N_FOLDS = 90, 14, 25, 3


def problem(kind: str, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Dense X and Y; some rows are empty, one label and one feature are in no row."""
    X, Y = make_problem(seed, "weights", n_rows=N_ROWS, n_features=N_FEATURES, n_labels=N_LABELS)
    rng = np.random.default_rng(seed + 100)
    if kind == "fours":  # unit rows of 0, 1/2 and -1/2: sums are exact, and many weights are equal
        X = np.zeros_like(X)
        for row in X:
            row[rng.choice(N_FEATURES, 4, replace=False)] = 1
    X = X * rng.choice([-1, 1], X.shape).astype(np.float32)
    X[::20] = 0
    X[:, 4] = 0
    if kind == "fours":
        X[np.count_nonzero(X, axis=1) != 4] = 0
    Y[:, 7] = 0
    return X, Y


def unit(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """Without signs, scaled as the core does: in double precision, then rounded."""
    out = np.zeros_like(X)
    for row, values in zip(out, X.astype(np.float64), strict=True):
        squares = sum(v * v for v in values.tolist())
        if squares > 0:
            row[:] = np.abs(1 / np.sqrt(squares) * values)
    return out


def index_of_all(X: Any, Y: Any, keep: int) -> Any:
    fold = np.zeros(len(X), np.uint8)
    return _core.train_feature_indexes(*core_arguments(X, Y), fold, n_folds=1, keep=keep)[1]


def make_forest(X: Any, Y: Any, n_trees: int = 4, **changes: Any) -> Forest:
    params = {"subsample": 0.7, "max_nodes": 31, **changes}
    trees = [grow(*core_arguments(X, Y), **tree_params(**params, tree=t)) for t in range(n_trees)]
    return Forest.from_trees(trees, arity=2, n_features=N_FEATURES, n_labels=N_LABELS)


def by_trees(forest: Forest, X: Any) -> list[dict[int, np.float32]]:
    indptr, labels, scores = _core.route_scores(forest, feature_arrays(X).checked)
    found = [dict(zip(labels[a:b].tolist(), scores[a:b], strict=True)) for a, b in rows_of(indptr)]
    assert all(found)
    return found


def rows_of(indptr: Any) -> list[tuple[int, int]]:
    return list(zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True))


def by_index(index: Any, values: NDArray[np.float32]) -> dict[int, np.float32]:
    """The scores of one unit row: sums in float32, features in order."""
    out: dict[int, np.float32] = {}
    for f in np.flatnonzero(values):
        unit = values[f] * index.units[f]
        for e in range(*index.offsets[f : f + 2]):
            label = int(index.labels[e])
            out[label] = out.get(label, np.float32(0)) + unit * np.float32(index.codes[e])
    return out


def naive_list(matchers: list[dict[int, np.float32]], length: int, allowed: Any) -> list[int]:
    """The best labels of the matchers in turn, without repeats."""
    ranked = [
        sorted((k for k in scores if allowed is None or allowed[k]), key=lambda k: (-scores[k], k))
        for scores in matchers
    ]
    chosen: list[int] = []
    for at in range(max(map(len, ranked), default=0)):
        for labels in ranked:
            if at < len(labels) and labels[at] not in chosen and len(chosen) < length:
                chosen.append(labels[at])
    return sorted(chosen)


def shortlists(
    forest: Any,
    x: Any,
    length: int,
    indexes: Any,
    allowed: Any = None,
    **options: Any,
) -> Any:
    """The core's, with rows and matchers in parts."""
    of_rows = ("indexed", "sub_words", "skip", "fold", "given", "added")
    of_call = ("cancel", "simd")
    rows, call, others = (
        {name: options[name] for name in options if kind(name)}
        for kind in (
            lambda name: name in of_rows,
            lambda name: name in of_call,
            lambda name: name not in of_rows + of_call,
        )
    )
    matchers = _core.Matchers(indexes, **others)
    return _core.shortlists(forest, _core.MatchRows(x, **rows), matchers, length, allowed, **call)
