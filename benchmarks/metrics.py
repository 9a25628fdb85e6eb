"""Time each ranking metric on 100,000 rows x top 100, for three forms of prediction.

Run: python benchmarks/metrics.py [n_labels]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from ldsm import metrics

N_ROWS, K, LABELS_PER_ROW = 100_000, 100, 5


def seconds(function: Callable[[], object]) -> float:
    """Best of three runs."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def make_labels(rng: np.random.Generator, n_labels: int, per_row: int) -> np.ndarray:
    """Distinct random label ids in each row: a random start, then random gaps."""
    gaps = rng.integers(1, max(2, n_labels // per_row), size=(N_ROWS, per_row))
    return (np.cumsum(gaps, axis=1) + rng.integers(n_labels, size=(N_ROWS, 1))) % n_labels


def as_csr(labels: np.ndarray, values: np.ndarray, n_labels: int) -> sp.csr_array:
    indptr = np.arange(N_ROWS + 1) * labels.shape[1]
    matrix = sp.csr_array((values.ravel(), labels.ravel(), indptr), shape=(N_ROWS, n_labels))
    matrix.sort_indices()
    return matrix


def main(n_labels: int) -> None:
    rng = np.random.default_rng(0)
    true_ids = make_labels(rng, n_labels, LABELS_PER_ROW)
    y_true = as_csr(true_ids, np.ones(true_ids.shape), n_labels)
    top = rng.permuted(make_labels(rng, n_labels, K), axis=1)
    # The hits: a true label put on a random rank, unless the row has it already.
    rank = rng.integers(K, size=N_ROWS)
    free = ~(top == true_ids[:, :1]).any(axis=1)
    top[free, rank[free]] = true_ids[free, 0]
    scores = np.sort(rng.random(top.shape, dtype=np.float32), axis=1)[:, ::-1]
    forms = {
        "top-k ids": top,
        "CSR float32": as_csr(top, scores, n_labels),
        "CSR float64": as_csr(top, scores.astype(np.float64), n_labels),
    }
    weights = metrics.propensities(y_true)
    calls: dict[str, Callable[..., object]] = {
        "precision": metrics.precision_at_k,
        "ndcg": metrics.ndcg_at_k,
        "recall": metrics.recall_at_k,
        "coverage": metrics.coverage_at_k,
        "psp": lambda t, p, k: metrics.psp_at_k(t, p, k, propensities=weights),
        "psndcg": lambda t, p, k: metrics.psndcg_at_k(t, p, k, propensities=weights),
        "report, 4 ks": lambda t, p, k: metrics.ranking_report(
            t, p, ks=(1, 3, 5, k), propensities=weights
        ),
    }
    print(f"{N_ROWS:,} rows x top {K}, {n_labels:,} labels, one core; seconds, best of 3")
    print(f"{'':14}" + "".join(f"{form:>13}" for form in forms))
    for name, call in calls.items():
        times = [seconds(lambda c=call, p=p: c(y_true, p, K)) for p in forms.values()]
        print(f"{name:14}" + "".join(f"{t:13.3f}" for t in times))
    sets = as_csr(top[:, :LABELS_PER_ROW], np.ones(true_ids.shape), n_labels)
    for average in ("micro", "macro", "samples"):
        taken = seconds(lambda a=average: metrics.f1_score(y_true, sets, a))
        print(f"F1 {average:11}{taken:13.3f}   (sets of {LABELS_PER_ROW})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 670_000)
