"""Time saving, loading and opening model files of about 1 GB.

The first forest is synthetic: balanced trees with random weights and histograms, of the sizes that
a large text corpus gives. The second is the hardest to check: trees trained on a dozen features,
with many small nodes, repeated until they fill the file. The files are in a temporary folder and in
the page cache, so the benchmark measures this program and not the disk. For comparison, it also
measures reading and hashing the bytes.

Run: python benchmarks/model_file.py [GB] [folder]
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ldsm import Forest, LdSMClassifier, load
from ldsm._execution.threads import POOL_THREADS
from ldsm._model.saved_form import model_to_state
from ldsm._storage import container as model_file
from ldsm._trees.checks import check_forest
from ldsm.classifier import hold_model

N_FEATURES, N_LABELS, N_TREES, N_NODES = 200_000, 13_000, 20, 65_535
BINS_PER_LEAF = 12


def make_model(n_bytes: int) -> LdSMClassifier:
    """A classifier whose forest fills about this number of bytes."""
    rng = np.random.default_rng(0)
    rows = sp.random(200, N_FEATURES, 1e-4, "csr", dtype=np.float32, random_state=0)
    labels = sp.csr_array(
        (np.ones(200), rng.integers(N_LABELS, size=200), np.arange(201)), shape=(200, N_LABELS)
    )
    clf = LdSMClassifier(n_estimators=1, rerank=None, random_state=0).fit(rows, labels)
    clf.set_params(n_estimators=N_TREES)
    n_splits = N_NODES // 2
    bytes_left = n_bytes // N_TREES - N_NODES * 76 - (n_splits + 1) * BINS_PER_LEAF * 8
    entries = max(1, bytes_left // (12 * n_splits))
    trees = [make_tree(rng, n_splits, entries) for _ in range(N_TREES)]
    forest = Forest.from_trees(trees, arity=2, n_features=N_FEATURES, n_labels=N_LABELS)
    return hold_model(clf, replace(clf.model_, forest=forest))


def make_tree(rng: np.random.Generator, n_splits: int, entries: int) -> dict[str, Any]:
    """A complete binary tree: every split has `entries` weights, every leaf a few labels."""
    n_nodes = 2 * n_splits + 1
    is_split = np.arange(n_nodes) < n_splits
    gaps = rng.integers(1, max(2, N_FEATURES // entries), size=(n_splits, entries), dtype=np.int32)
    bins = rng.integers(1, N_LABELS // BINS_PER_LEAF, size=(n_splits + 1, BINS_PER_LEAF))
    counts = rng.integers(1, 20, size=bins.size, dtype=np.int32)
    nothing = np.full(n_nodes, np.nan)
    return {
        "first_child": np.where(is_split, 2 * np.arange(n_nodes) + 1, 0).astype(np.int32),
        "weight_offsets": np.append(0, np.cumsum(is_split * entries)),
        "weight_features": (np.cumsum(gaps, axis=1, dtype=np.int32) - 1).ravel(),
        "weights": rng.normal(size=(n_splits * entries, 2)).astype(np.float32),
        "weight_means": np.empty(0, np.float32),
        "weight_scales": np.empty(0, np.float32),
        "histogram_offsets": np.append(0, np.cumsum(~is_split * BINS_PER_LEAF)),
        "histogram_labels": (np.cumsum(bins, axis=1) - 1).astype(np.int32).ravel(),
        "histogram_counts": counts,
        "node_rows": np.full(n_nodes, 1000),
        "node_labels": np.full(n_nodes, 3000),
        "node_entropy": np.zeros(n_nodes),
        "objective": nothing,
        "balancedness": nothing,
        "purity": nothing,
        "integrity_weight": nothing.astype(np.float32),
        "epoch_objective": np.zeros((n_splits, 3), np.float32),
    }


def make_small_nodes(n_bytes: int) -> LdSMClassifier:
    """Trained trees of small nodes, repeated to fill about this number of bytes."""
    rng = np.random.default_rng(0)
    rows = rng.random((20_000, 12), dtype=np.float32)
    labels = (rows @ rng.normal(size=(12, 20)) > 0.9).astype(int)
    clf = LdSMClassifier(
        n_estimators=20, max_nodes=5000, standardize=False, rerank=None, random_state=0
    ).fit(rows, labels)
    while clf.forest_.nbytes < 0.7 * n_bytes:
        clf.model_ = replace(clf.model_, forest=clf.forest_.extended(clf.forest_))
    return clf


def best(function: Callable[[], object], repeats: int = 7) -> float:
    """Seconds of the best run; results are let go before the next."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        kept = function()
        times.append(time.perf_counter() - start)
        del kept
    return min(times)


def measure(clf: LdSMClassifier, path: str) -> None:
    saving = best(lambda: clf.save(path), 2)
    size, forest = os.path.getsize(path), clf.forest_
    print(
        f"{size / 1e9:.2f} GB: {forest.n_trees} trees, {forest.n_nodes:,} nodes, "
        f"{len(forest.weights):,} x 2 weights; {POOL_THREADS} threads; best runs"
    )
    block = memoryview(np.ones(64 << 20, np.uint8))
    row = sp.random(1, clf.n_features_in_, 5e-4, "csr", dtype=np.float32, random_state=1)

    def plain_read() -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def first_row() -> object:
        return load(path, verify=False).predict_topk(row, k=5)

    for name, seconds in {
        "save": saving,
        "load": best(lambda: load(path)),
        "  of which: read and compare the checksum": best(lambda: model_file.read(path)),
        "  of which: check the structure": best(lambda: check_forest(forest)),
        "file.read() alone": best(plain_read),
        "SHA-256 alone, one thread": best(lambda: hashlib.sha256(block)) * size / len(block),
        "CRC-32 alone, one thread": best(lambda: zlib.crc32(block)) * size / len(block),
    }.items():
        print(f"{name:45}{seconds:9.3f} s {size / seconds / 1e9:8.2f} GB/s")
    for name, seconds in {
        "open, verify=False": best(lambda: load(path, verify=False)),
        "open, verify=False, and predict a first row": best(first_row),
    }.items():
        print(f"{name:45}{1e3 * seconds:9.2f} ms")
    model_file.write(path, *_named(model_to_state(clf.model_, clf.get_params(), compress=True)))
    print(f"{'size with compress=True':45}{os.path.getsize(path) / size:9.2f} of it\n")


def main(n_bytes: int, folder: str | None) -> None:
    for make in (make_model, make_small_nodes):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            measure(make(n_bytes), os.path.join(place, "model.ldsm"))


def _named(state: tuple[dict[str, Any], dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"kind": "LdSMClassifier", **state[0]}, state[1]


if __name__ == "__main__":
    gigabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    main(int(gigabytes * 1e9), sys.argv[2] if len(sys.argv) > 2 else None)
