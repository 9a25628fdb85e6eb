"""Small problems for the ranker and the products of label vectors."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ldsm import _core

N_ROWS, N_FEATURES, N_LABELS = 120, 30, 12
SETTINGS: dict[str, Any] = {
    "cost": 0.5,
    "tolerance": 0.5,
    "max_epochs": 30,
    "prune": 0.0,
    "compress": False,
    "seed": 3,
}
WIDTHS = [N_FEATURES, 4096, 4097, 200_000]
# With a finer tolerance, float32 may not get there.
EXACT = SETTINGS | {"tolerance": 1e-5, "max_epochs": 20000}


def checked(matrix: sp.csr_array) -> _core.CheckedFeatures:
    return _core.CheckedFeatures(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32),
        matrix.data.astype(np.float32),
        matrix.shape[1],
    )


def label_pairs(lists: Any, y: Any, **settings: Any) -> Any:
    lists, y = (_core.CheckedLabels(*labels, N_LABELS) for labels in (lists, y))
    return _core.label_pairs([lists], y, **{"first": 0, "last": N_LABELS, **settings})


def make_rows(seed: int = 0, n_rows: int = N_ROWS) -> sp.csr_array:
    return sp.csr_array(
        sp.random(n_rows, N_FEATURES, 0.2, format="csr", dtype=np.float32, random_state=seed)
    )


def far_apart(x: sp.csr_array, n_features: int) -> sp.csr_array:
    """The same rows; half of the features stay the first ones, the others become the last."""
    half = N_FEATURES // 2
    columns = x.indices + np.where(x.indices < half, 0, n_features - N_FEATURES)
    return sp.csr_array((x.data, columns, x.indptr), shape=(x.shape[0], n_features))


def named(vectors: Any) -> Any:
    names = ("offsets", "features", "weights", "units")
    return SimpleNamespace(**dict(zip(names, vectors, strict=True)))


def products_of(vectors: Any, x: sp.csr_array, indptr: Any, labels: Any) -> NDArray[np.float32]:
    return _core.label_products(named(vectors), checked(x), indptr, labels)


def decoded(vectors: Any) -> Any:
    """Compressed vectors as exact ones with the same entries."""
    offsets, gaps, codes, units = vectors
    features = [np.cumsum(part, dtype=np.int32) for part in np.split(gaps, offsets[1:-1])]
    weights = codes.astype(np.float32) * np.repeat(units, np.diff(offsets))
    return offsets, np.concatenate(features), weights, np.zeros(0, np.float32)


def dense(vectors: Any, n_features: int = N_FEATURES) -> NDArray[np.float64]:
    """Weights of labels x features; the last column is the constant."""
    if len(vectors[3]):
        vectors = decoded(vectors)
    offsets, features, weights, _ = vectors
    out = np.zeros((len(offsets) - 1, n_features + 1))
    out[np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), features] = weights
    return out


def make_lists(seed: int, mean: float) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    chosen = np.random.default_rng(seed).random((N_ROWS, N_LABELS)) < mean / N_LABELS
    indptr = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))]).astype(np.int64)
    return indptr, np.nonzero(chosen)[1].astype(np.int32)


def unit(matrix: sp.csr_array) -> NDArray[np.float64]:
    dense = matrix.toarray().astype(np.float64)
    norms = np.linalg.norm(dense, axis=1, keepdims=True)
    return np.divide(dense, norms, out=np.zeros_like(dense), where=norms > 0)


def all_pairs(seed: int = 1) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    lists, y = make_lists(seed, 5), make_lists(seed + 1, 2)
    return label_pairs(lists, y, fill_to=0, seed=0)


def train_ranker(x: Any, offsets: Any, rows: Any, positive: Any, **settings: Any) -> Any:
    """The core's, with parameters one by one; `part`: the labels to train, all by default."""
    names = ("cost", "tolerance", "max_epochs", "prune", "compress")
    params = _core.RankerParams(**{name: settings.pop(name) for name in names})
    if "start" in settings:
        amounts = (settings.pop(name) for name in ("start", "squares", "firmness", "rows_before"))
        settings["start"] = _core.RankerStart(*amounts)
    first = 0
    if "part" in settings:
        first, last = settings.pop("part")
        start, stop = offsets[[first, last]]
        offsets = offsets[first : last + 1] - start
        rows, positive = rows[start:stop], positive[start:stop]
    pairs = _core.CheckedPairs(offsets, rows, positive, x.n_rows, first)
    return _core.train_ranker(x, pairs, params, **settings)


def train_centroids(x: Any, offsets: Any, rows: Any, positive: Any, **settings: Any) -> Any:
    pairs = _core.CheckedPairs(offsets, rows, positive, x.n_rows)
    return _core.train_centroids(x, pairs, **settings)
