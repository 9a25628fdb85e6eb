"""Measure the cost and the gain of Dask on one machine with two worker processes.

Fit: two threads grow trees on synthetic data for about two minutes. The same fit runs with a
checkpoint, which every worker writes too, and with two running workers. There is no second stage,
because the driver would train it in each case.
Prediction: one process loads the model and predicts a million rows chunk by chunk, then two workers
do the same. Stores, trees and models are in a temporary folder.

Run: python benchmarks/cluster.py [--quick] [folder]
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import ldsm.dask
from ldsm import LdSMClassifier, datasets, load
from ldsm.dask.prediction import ROWS

N_WORKERS = 2
FIT_SECONDS = 135.0  # of two threads; to be above two minutes
TURNS = 2
THREADS, CHECKPOINT = f"{N_WORKERS} threads", f"{N_WORKERS} threads with a checkpoint"
WORKERS = f"{N_WORKERS} Dask workers"
SHAPE = {"n_features": 50_000, "n_labels": 3_000, "labels_per_row": 4, "nonzeros_per_row": 60}
QUICK_SHAPE = {"n_features": 300, "n_labels": 40}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the program")
    parser.add_argument("folder", nargs="?", help="where to put a temporary folder")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder, prefix="ldsm-cluster-"))
    try:
        with (
            LocalCluster(
                n_workers=N_WORKERS,
                threads_per_worker=1,
                processes=True,
                memory_limit=None,
                dashboard_address=":0",
            ) as cluster,
            Client(cluster) as client,
        ):
            print("| what | measured |\n|---|---|")
            fits(client, folder, quick=options.quick)
            predictions(client, folder, quick=options.quick)
    finally:
        shutil.rmtree(folder)


def fits(client: Client, folder: Path, *, quick: bool) -> None:
    """Time fits."""
    n_rows, shape = (1_000, QUICK_SHAPE) if quick else (400_000, SHAPE)
    datasets.make_xmc(n_rows, **shape, seed=0).save(folder / "train")
    data = datasets.open_store(folder / "train")

    def estimator(n_trees: int) -> LdSMClassifier:
        return LdSMClassifier(n_trees, rerank=None, random_state=0, n_jobs=N_WORKERS)

    n_trees = N_WORKERS
    seconds, _ = timed(lambda: estimator(n_trees).fit(data))
    if not quick:
        n_trees = N_WORKERS * math.ceil(FIT_SECONDS / seconds)
    # Workers that run have imported what they need: they are asked for a tree each.
    ldsm.dask.fit(client, data, None, estimator(N_WORKERS), folder / "first")
    ways: dict[str, Callable[[str], LdSMClassifier]] = {
        THREADS: lambda _: estimator(n_trees).fit(data),
        CHECKPOINT: lambda trees: estimator(n_trees).fit(data, checkpoint_dir=trees),
        WORKERS: lambda trees: ldsm.dask.fit(client, data, None, estimator(n_trees), trees),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    fingerprints = set()
    for _ in range(TURNS):
        for name, way in ways.items():
            with tempfile.TemporaryDirectory(dir=folder) as trees:
                seconds, fitted = timed(partial(way, trees))
            times[name].append(seconds)
            fingerprints.add(fitted.fingerprint_)
            size = fitted.forest_.nbytes
            del fitted  # the next one needs the memory
    assert len(fingerprints) == 1
    say(
        f"fit: {n_rows:,} rows, {data.n_features:,} features, {data.n_labels:,} labels, "
        f"{n_trees} trees of {size / n_trees / 1e6:,.0f} MB",
        f"seconds, {TURNS} turns",
    )
    for name, seconds in times.items():
        say(name, ", ".join(f"{value:.1f}" for value in seconds))
    for name in (CHECKPOINT, THREADS):
        ratio = statistics.mean(times[WORKERS]) / statistics.mean(times[name])
        say(f"overhead of Dask against {name}", f"{100 * (ratio - 1):+.1f} %")


def predictions(client: Client, folder: Path, *, quick: bool) -> None:
    """Time predictions, each with the loading of the model."""
    model = folder / "model.ldsm"
    small = LdSMClassifier(8, max_nodes=4_095, rerank=None, random_state=0, n_jobs=N_WORKERS)
    small.fit(datasets.open_store(folder / "train")).save(model)
    say("model file of 8 smaller trees", f"{os.path.getsize(model) / 1e6:,.0f} MB")
    n_rows, shape = (500, QUICK_SHAPE) if quick else (100_000, SHAPE)
    block = datasets.make_xmc(n_rows, **shape, seed=0, part="test")
    datasets.save_store((block for _ in range(10)), folder / "rows")
    data = datasets.open_store(folder / "rows")
    rows_per_task = min(ROWS, len(data) // 8)

    def alone(model: Path) -> list[np.ndarray]:
        clf = load(model)
        clf.set_params(n_jobs=1)
        parts = [
            clf.predict_topk(data.select(slice(start, start + rows_per_task)).X)
            for start in range(0, len(data), rows_per_task)
        ]
        return [np.concatenate([part[i] for part in parts]) for i in (0, 1)]

    def by_workers(model: Path) -> list[np.ndarray]:
        return list(ldsm.dask.predict(client, model, data, rows_per_task=rows_per_task))

    def into_files(model: Path) -> list[np.ndarray]:
        with tempfile.TemporaryDirectory(dir=folder) as output:
            ldsm.dask.predict(client, model, data, rows_per_task=rows_per_task, output_dir=output)
        return []

    ways = {
        f"prediction: {len(data):,} rows, top 5, one process": alone,
        WORKERS: by_workers,
        f"{WORKERS}, answers in files": into_files,
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    expected: list[np.ndarray] = []
    for turn in range(TURNS):
        for name, way in ways.items():
            again = folder / f"{way.__name__} {turn}.ldsm"  # each process that predicts loads it
            os.link(model, again)
            seconds, found = timed(partial(way, again))
            times[name].append(seconds)
            expected = expected or found
            assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=False))
    one = statistics.mean(next(iter(times.values())))
    for name, seconds in times.items():
        gain = f": {one / statistics.mean(seconds):.2f} ×" if name.startswith(WORKERS) else ""
        say(name, ", ".join(f"{value:.1f}" for value in seconds) + gain)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def say(what: str, measured: str) -> None:
    print(f"| {what} | {measured} |", flush=True)


if __name__ == "__main__":
    main()
