"""Measure speed and memory of the trees alone, relative to omikuji 0.5.2 (Parabel).

    make bench

Every figure is a ratio to another measurement in the same run. The two alternate; the best counts.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import data
import peers_env
from ldsm import LdSMClassifier, _core
from ldsm._arrays.features import feature_arrays
from ldsm._arrays.labels import label_arrays
from ldsm._trees.params import TreeParams

HERE = Path(__file__).parent
table = Table("what", "measured", "must", "goal", title="The engine, one thread unless said")


def best_of(runs, work):
    """Shortest wall time: noise only ever adds."""
    times = []
    for i in range(runs):
        start = time.perf_counter()
        work(i)
        times.append(time.perf_counter() - start)
    return min(times)


def run_omikuji(train, test):
    with tempfile.TemporaryDirectory() as folder:
        peers_env.write_data(Path(folder), "delicious", train.X, train.Y, test.X)
        run = peers_env.run_peer("omikuji-parabel", Path(folder))
    if run is None:
        sys.exit("The engine is measured against omikuji, which did not run.")
    return run.facts


def grow(arrays, **params):
    tree = params.pop("tree")
    settings = TreeParams(relaxations=0, standardize=False, subsample=1.0, **params)
    return _core.grow_tree(*arrays, settings, seed=1, tree=tree, memory_limit=1 << 32)


def arrays_of(train):
    return feature_arrays(train.X).checked, label_arrays(train.Y).checked


def training_against_omikuji(arrays, omikuji):
    paper = {"max_nodes": 1000, "n_epochs": 20, "learning_rate": 0.1, "integrity_weight": 2.0}
    for arity, penalty, must, goal in ((2, 1.0, 30, 45), (4, 4.0, 16, 25)):
        seconds = best_of(
            7,
            lambda i, m=arity, p=penalty: grow(
                arrays, tree=i, arity=m, multiway_penalty=p, optimizer="nag", **paper
            ),
        )
        table.add_row(
            f"one Delicious tree, M = {arity}, 1000 nodes, 20 epochs",
            f"{seconds:.3f} s = omikuji's {omikuji['train_seconds']:.1f} s / "
            f"{omikuji['train_seconds'] / seconds:.1f}",
            f"/ {must}",
            f"/ {goal}",
        )


def bare_library(folder):
    library = folder / "bare.so"
    flags = ["-O3", "-std=c++20", "-shared", "-fPIC"]
    subprocess.run(["c++", *flags, str(HERE / "bare_kernel.cpp"), "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    for name in ("bare_plain", "bare_lanes"):
        function = getattr(loaded, name)
        pointer = np.ctypeslib.ndpointer
        function.argtypes = [
            pointer(np.int64), pointer(np.int32), pointer(np.float32),
            ctypes.c_int64, ctypes.c_int, pointer(np.float32),
        ]  # fmt: skip
        function.restype = ctypes.c_float
    return loaded


def cost_per_nonzero(name, train, bare):
    arrays = arrays_of(train)
    x = feature_arrays(train.X)
    indptr, indices, values = x.indptr, x.indices, x.values
    epochs = 10
    visited = len(values) * epochs

    def run_bare(function):
        weights = np.zeros(2 * train.X.shape[1], dtype=np.float32)
        function(indptr, indices, values, len(indptr) - 1, epochs, weights)

    plain = best_of(5, lambda i: run_bare(bare.bare_plain)) / visited
    lanes = best_of(5, lambda i: run_bare(bare.bare_lanes)) / visited
    table.add_row(
        f"{name}: bare dot + update, per non-zero",
        f"{1e9 * plain:.2f} ns plain loop, {1e9 * lanes:.2f} ns in four partial sums",
    )
    for optimizer, rate, must, goal in (
        ("nag", 0.1, "1.8 x", "1.5 x"),
        ("sgd", 0.2, "", ""),
        ("asgd", 0.5, "1.5 x", "1.25 x"),
    ):

        def root_only(n_epochs, optimizer=optimizer, rate=rate):
            return best_of(
                5,
                lambda i: grow(
                    arrays, tree=0, arity=2, max_nodes=3, n_epochs=n_epochs, learning_rate=rate,
                    integrity_weight=2.0, multiway_penalty=1.0, optimizer=optimizer,
                ),
            )  # fmt: skip

        whole = root_only(epochs + 1)
        loop = (whole - root_only(1)) / visited
        table.add_row(
            f"{name}: {optimizer} at the root, per non-zero",
            f"{1e9 * loop:.2f} ns = {loop / plain:.2f} x plain, {loop / lanes:.2f} x partial sums "
            f"({whole / (visited * (epochs + 1) / epochs) / plain:.2f} x plain with copying, "
            "routing and output)",
            must,
            goal,
        )


def prediction_against_omikuji(train, test, omikuji):
    clf = LdSMClassifier(
        50, max_nodes=1000, n_epochs=20, learning_rate=0.1, optimizer="nag", random_state=0,
        relax_integrity=False, multiway_penalty=1.0, rerank=None, n_jobs=2,
    ).fit(train.X, train.Y)  # fmt: skip
    clf.set_params(n_jobs=1)
    batch = 1e3 * best_of(5, lambda i: clf.predict_topk(test.X, k=5)) / len(test)
    table.add_row(
        "batch prediction, 50 trees of 1000 nodes, Delicious",
        f"{batch:.4f} ms/row = {batch / omikuji['predict_ms_per_row']:.2f} x omikuji's "
        f"{omikuji['predict_ms_per_row']:.3f}",
        "1 x",
        "0.5 x",
    )
    rows = [test.X[[i]] for i in range(1000)]
    single = best_of(5, lambda i: [clf.predict_topk(row, k=5) for row in rows])
    table.add_row(
        "one row at a time, public API, 50 trees", f"{single:.3f} ms", "0.4 ms", "0.15 ms"
    )


FIT = """
import gc, pickle, re, sys, time
from pathlib import Path
from ldsm import LdSMClassifier

def memory(name):
    return 1024 * int(re.search(name + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])

train, params = pickle.loads(sys.stdin.buffer.read())
LdSMClassifier(1).fit([[1, 0], [0, 1]], [[1], [2]])  # trigger late imports
gc.collect()
Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
before = memory("VmRSS")
start = time.perf_counter()
clf = LdSMClassifier(rerank=None, **params).fit(*train)
seconds = time.perf_counter() - start
print(seconds, memory("VmHWM") - before, clf.forest_.nbytes)
"""


def start_fit(train, **params):
    process = subprocess.Popen(
        [sys.executable, "-c", FIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdin.write(pickle.dumps(((train.X, train.Y), params)))
    process.stdin.close()
    return process


def finish_fit(process):
    numbers = process.stdout.read().split()
    process.wait()
    return tuple(float(n) for n in numbers)


def threads(train):
    params = {"max_nodes": 1000, "n_epochs": 20, "optimizer": "nag", "random_state": 0}
    ratios = []
    for _ in range(3):
        pair = [start_fit(train, n_estimators=25, **params) for _ in range(2)]
        alone = max(finish_fit(process)[0] for process in pair)
        together = finish_fit(start_fit(train, n_estimators=50, n_jobs=2, **params))[0]
        ratios.append(alone / together)
    table.add_row(
        "50 trees, n_jobs=2, against two one-thread fits of 25 at once",
        f"{max(ratios):.2f} x the speed",
        "0.95 x",
    )


def memory(name, train, **params):
    _, peak, model = finish_fit(start_fit(train, n_jobs=1, random_state=0, **params))
    X = train.X
    given = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    beyond = (peak - 2 * model) / 1e6
    table.add_row(
        f"memory of a fit beyond its input, {name}",
        f"{peak / 1e6:.0f} MB = 2 x model ({model / 1e6:.0f} MB) + {beyond:.0f} MB "
        f"(input {given / 1e6:.0f} MB)",
        "+ 200 MB",
    )


def import_time():
    # As when installed, where modules are compiled.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def seconds(code):
        command = [sys.executable, "-c", code]
        return best_of(5, lambda i: subprocess.run(command, check=True, env=environment))

    beyond = seconds("import ldsm") - seconds("import sklearn.base, sklearn.utils.validation")
    table.add_row("import ldsm beyond scikit-learn", f"{beyond:.3f} s", "0.3 s", "0.1 s")


def main():
    train, test = data.load("delicious")
    omikuji = run_omikuji(train, test)
    training_against_omikuji(arrays_of(train), omikuji)
    eurlex = data.load("eurlex57k")[0]
    with tempfile.TemporaryDirectory() as folder:
        bare = bare_library(Path(folder))
        cost_per_nonzero("Bibtex", data.load("bibtex")[0], bare)
        cost_per_nonzero("EURLEX57K", eurlex, bare)
    prediction_against_omikuji(train, test, omikuji)
    threads(train)
    memory("Delicious, 10 trees", train, n_estimators=10)
    memory("EURLEX57K, 5 trees", eurlex, n_estimators=5)
    import_time()
    Console(width=150).print(table)


main()
