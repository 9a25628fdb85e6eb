"""Compare the speed of ldsm's text readers with scikit-learn's, on the same file in one run.

    python benchmarks/parsing.py [megabytes]

Writes a file of about 100 MB with the shape of Amazon-670K (136 k features, 670 k labels, 76
non-zeros and 5 labels per row, values of six digits). Reads it three times with each reader on one
core and prints a table of the fastest runs.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file

from ldsm import datasets

FEATURES, LABELS, PER_ROW, LABELS_PER_ROW = 135_909, 670_091, 76, 5
BYTES_PER_ROW = 1_200


def random_rows(n_rows: int, rng: np.random.Generator) -> datasets.Dataset:
    """Rows of distinct, ascending features and labels, spread evenly."""

    def columns(n_columns: int, per_row: int) -> Any:
        step = n_columns // per_row
        return (np.arange(per_row) * step + rng.integers(0, step, (n_rows, per_row))).ravel()

    def matrix(values: Any, n_columns: int, per_row: int) -> Any:
        indptr = np.arange(0, n_rows * per_row + 1, per_row)
        return csr_array((values, columns(n_columns, per_row), indptr), shape=(n_rows, n_columns))

    values = np.round(rng.random(n_rows * PER_ROW), 6).astype(np.float32)
    X = matrix(values, FEATURES, PER_ROW)
    return datasets.Dataset(X, matrix(np.ones(n_rows * LABELS_PER_ROW), LABELS, LABELS_PER_ROW))


def seconds(call: Callable[[], Any]) -> float:
    """The fastest of three runs."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Write the file, read it in each way, print the table."""
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 100
    data = random_rows(round(megabytes * 1e6 / BYTES_PER_ROW), np.random.default_rng(0))
    with tempfile.TemporaryDirectory() as folder:
        plain, repo = f"{folder}/data.svm", f"{folder}/data.txt"
        store = f"{folder}/store"
        wrote = seconds(lambda: datasets.save_svmlight(data, plain, zero_based=True))
        datasets.save_xmlrepo(data, repo)
        size = os.path.getsize(plain) / 1e6
        ours = seconds(lambda: datasets.load_svmlight(plain, zero_based=True))
        ours_repo = seconds(lambda: datasets.load_xmlrepo(repo))
        theirs = seconds(
            lambda: load_svmlight_file(plain, dtype=np.float32, multilabel=True, zero_based=True)
        )
        converted = seconds(
            lambda: datasets.save_store(datasets.iter_xmlrepo(repo), store, overwrite=True)
        )
        opened = seconds(lambda: datasets.open_store(store))
        verified = seconds(lambda: datasets.open_store(store, verify=True))
        again = datasets.open_store(store)
        assert (again.X != data.X).nnz == 0
        assert (again.Y != data.Y).nnz == 0

    print(f"{len(data):,} rows, {data.X.nnz:,} non-zeros, {size:.0f} MB of text, one core\n")
    print("| what | seconds | MB/s of text | times scikit-learn |")
    print("|---|---|---|---|")
    for what, taken, comparable in (
        ("sklearn.datasets.load_svmlight_file", theirs, True),
        ("ldsm.datasets.load_svmlight", ours, True),
        ("ldsm.datasets.load_xmlrepo", ours_repo, True),
        ("ldsm.datasets.save_svmlight", wrote, False),
        ("text to store, block by block", converted, False),
        ("open_store(verify=True)", verified, False),
        ("open_store", opened, False),
    ):
        ratio = f"{theirs / taken:.1f}" if comparable else "–"
        print(f"| {what} | {taken:.4f} | {size / taken:,.0f} | {ratio} |")


if __name__ == "__main__":
    main()
