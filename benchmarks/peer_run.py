"""Train another tool on one data set, predict, and record time, size and predictions.

    .venv-peers/bin/python peer_run.py PEER FOLDER OUTPUT [--threads 1] [--seed 0] [--k 5]

Runs in the peers' environment; `peers_env.py` writes FOLDER and calls it. OUTPUT.npz holds the best
k labels of every test row with their scores, -1 and 0 where a peer gave fewer; OUTPUT.json the
times, sizes, version and settings. Only the peer's own work is timed: not the reading of the
matrices, nor the text file that omikuji must be given (reading that file is part of its training
call). Times per row are of the top 5, the best of three passes over all test rows; `..._at_k` is
one pass with the k asked for, which the exact search of napkinXC pays for.

omikuji has no seed: every run gives another model, for any `--seed`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.sparse as sp

TIMED_K, PASSES = 5, 3
# A dense weight per label and feature, one liblinear fit per label: hours beyond this.
MOST_LABELS_ONE_VS_REST = 1000


@dataclass
class Task:
    X: sp.csr_matrix
    Y: sp.csr_matrix
    X_test: sp.csr_matrix
    settings: dict
    threads: int
    seed: int
    folder: Path  # for the model and other files; ends with the run

    @property
    def model_path(self) -> str:
        return str(self.folder / "model")


# A program makes itself ready in `__init__`, trains in `train`; `save` leaves the model in
# `task.model_path` and makes ready to predict; `predict(k)` answers for all test rows.


class Omikuji:
    """The Rust implementation of Parabel and Bonsai."""

    package = "omikuji"

    def __init__(self, task):
        import omikuji

        self.task, self.library = task, omikuji
        self.text = task.folder / "train.txt"
        with open(self.text, "w") as lines:
            # It cannot read rows without features: they are left out.
            kept = np.flatnonzero(np.diff(task.X.indptr))
            lines.write(f"{len(kept)} {task.X.shape[1]} {task.Y.shape[1]}\n")
            for row in kept:
                labels = ",".join(map(str, task.Y.indices[slice(*task.Y.indptr[row : row + 2])]))
                features = " ".join(f"{i}:{v:.9g}" for i, v in pairs(task.X, row))
                lines.write(f"{labels} {features}".rstrip() + "\n")

    def train(self):
        parameters = self.library.Model.default_hyper_param()
        for name, value in self.task.settings.items():
            if name != "beam_size":
                setattr(parameters, name, value)
        self.model = self.library.Model.train_on_data(
            str(self.text), parameters, n_threads=self.task.threads
        )

    def save(self):
        self.model.save(self.task.model_path)
        self.model.init_prediction_thread_pool(self.task.threads)
        # The form its `predict` takes, made before the clock starts.
        self.rows = [pairs(self.task.X_test, i) for i in range(self.task.X_test.shape[0])]

    def predict(self, k):
        beam = self.task.settings["beam_size"]
        return [self.model.predict(row, beam_size=beam, top_k=k) for row in self.rows]


class NapkinXC:
    """Probabilistic label trees; `fit` saves the model, so its training time includes that."""

    package = "napkinxc"

    def __init__(self, task):
        from napkinxc.models import PLT

        self.task = task
        self.Y = task.Y.astype(np.float32)  # it refuses integers
        self.model = PLT(task.model_path, seed=task.seed, threads=task.threads, **task.settings)

    def train(self):
        self.model.fit(self.task.X, self.Y)

    def save(self):
        self.model.load()

    def predict(self, k):
        return self.model.predict_proba(self.task.X_test, top_k=k)


class Pecos:
    """XR-Linear; predicts with the compiled form of the saved model, its fast one."""

    package = "libpecos"

    def __init__(self, task):
        from pecos.xmc import Indexer, LabelEmbeddingFactory
        from pecos.xmc.xlinear.model import XLinearModel

        self.task = task
        self.indexer, self.embedding, self.library = Indexer, LabelEmbeddingFactory, XLinearModel
        self.Y = task.Y.astype(np.float32).tocsc()

    def train(self):
        threads, splits = self.task.threads, self.task.settings["nr_splits"]
        label_features = self.embedding.create(self.Y, self.task.X, method="pifa", threads=threads)
        clusters = self.indexer.gen(
            label_features,
            indexer_type="hierarchicalkmeans",
            nr_splits=splits,
            max_leaf_size=self.task.settings["max_leaf_size"],
            seed=self.task.seed,
            threads=threads,
        )
        self.model = self.library.train(
            self.task.X, self.Y, C=clusters, nr_splits=splits, threads=threads
        )

    def save(self):
        self.model.save(self.task.model_path)
        self.model = self.library.load(self.task.model_path, is_predict_only=True)

    def predict(self, k):
        beam = self.task.settings["beam_size"]
        return self.model.predict(
            self.task.X_test, beam_size=beam, only_topk=k, threads=self.task.threads
        )


class OneVsRest:
    """scikit-learn: one linear SVM per label, every label scored."""

    package = "scikit-learn"

    def __init__(self, task):
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.svm import LinearSVC

        if task.Y.shape[1] > MOST_LABELS_ONE_VS_REST:
            raise ValueError(
                f"one-vs-rest is run on at most {MOST_LABELS_ONE_VS_REST:,} labels, "
                f"the data has {task.Y.shape[1]:,}"
            )
        self.task = task
        svm = LinearSVC(random_state=task.seed, **task.settings)
        self.model = OneVsRestClassifier(svm, n_jobs=task.threads)
        # scikit-learn scores a label without rows 0, above most others' margins.
        self.unseen = np.asarray(task.Y.sum(axis=0)).ravel() == 0

    def train(self):
        self.model.fit(self.task.X, self.task.Y)

    def save(self):
        import joblib

        joblib.dump(self.model, self.task.model_path)

    def predict(self, k):
        scores = self.model.decision_function(self.task.X_test)
        scores[:, self.unseen] = -np.inf
        best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        return best, np.take_along_axis(scores, best, axis=1)


@dataclass(frozen=True)
class Peer:
    title: str  # its name in tables
    program: type
    settings: dict  # what is set; the rest are the program's defaults


PEERS = {
    "omikuji-parabel": Peer("omikuji Parabel", Omikuji, {"n_trees": 3, "beam_size": 10}),
    "omikuji-bonsai": Peer(
        "omikuji Bonsai",
        Omikuji,
        {
            "n_trees": 3,
            "beam_size": 10,
            "cluster_balanced": False,
            "cluster_k": 100,
            "max_depth": 3,
        },
    ),
    "napkinxc-plt": Peer("napkinXC PLT", NapkinXC, {}),
    "pecos-xlinear": Peer(
        "PECOS XLinear", Pecos, {"nr_splits": 16, "max_leaf_size": 100, "beam_size": 10}
    ),
    "sklearn-ovr": Peer("scikit-learn one-vs-rest LinearSVC", OneVsRest, {}),
}


def pairs(matrix, row):
    """The features of one row as a list of (index, value), Python numbers."""
    part = slice(*matrix.indptr[row : row + 2])
    return list(zip(matrix.indices[part].tolist(), matrix.data[part].tolist(), strict=True))


def top_arrays(answer, k):
    """Labels and scores as (rows, k) arrays, best first; equal scores stay as the peer had them."""
    if isinstance(answer, tuple):
        rows = [list(zip(*row, strict=True)) for row in zip(*answer, strict=True)]
    elif sp.issparse(answer):
        rows = [pairs(answer, row) for row in range(answer.shape[0])]
    else:
        rows = answer
    labels = np.full((len(rows), k), -1, dtype=np.int32)
    scores = np.zeros((len(rows), k), dtype=np.float32)
    for i, row in enumerate(rows):
        given = [pair for pair in row if pair[1] > -np.inf]
        given = sorted(given, key=lambda pair: -pair[1])[:k]
        labels[i, : len(given)] = [label for label, _ in given]
        scores[i, : len(given)] = [score for _, score in given]
    return labels, scores


def memory(name):
    """Bytes of memory, "VmRSS" now or "VmHWM" at the peak; None where there is no /proc."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    return 1024 * int(re.search(name + r":\s+(\d+) kB", status.read_text())[1])


def start_peak():
    """Let the peak start from now; returns the memory in use."""
    gc.collect()
    if (reset := Path("/proc/self/clear_refs")).exists():
        reset.write_text("5")
    return memory("VmRSS")


def bytes_on_disk(path):
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


def seconds_of(work):
    start = time.perf_counter()
    answer = work()
    return time.perf_counter() - start, answer


def run(name, folder, *, threads, seed, k):
    """Train and predict; returns labels, scores and the facts."""
    peer = PEERS[name]
    X, Y, X_test = (sp.load_npz(folder / f"{part}.npz") for part in ("X", "Y", "X_test"))
    kept = min(k, Y.shape[1])
    with tempfile.TemporaryDirectory() as scratch:
        program = peer.program(Task(X, Y, X_test, peer.settings, threads, seed, Path(scratch)))
        before = start_peak()
        cpu = time.process_time()
        train_seconds, _ = seconds_of(program.train)
        cpu = time.process_time() - cpu
        peak = memory("VmHWM")
        program.save()
        size = bytes_on_disk(Path(scratch) / "model")
        passes = [seconds_of(lambda: program.predict(min(TIMED_K, kept)))[0] for _ in range(PASSES)]
        at_k, answer = seconds_of(lambda: program.predict(kept))
    facts = {
        "peer": name,
        "title": peer.title,
        "package": peer.program.package,
        "version": version(peer.program.package),
        "settings": peer.settings,
        "data": json.loads((folder / "data.json").read_text()),
        "threads": threads,
        "seed": seed,
        "k": k,
        "train_seconds": train_seconds,
        "train_process_seconds": cpu,
        "predict_ms_per_row": 1e3 * min(passes) / X_test.shape[0],
        "predict_ms_per_row_at_k": 1e3 * at_k / X_test.shape[0],
        "model_bytes": size,
        "train_peak_bytes": None if peak is None else peak - before,
    }
    return *top_arrays(answer, kept), facts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--k", type=int, default=5)
    given = parser.parse_args()
    labels, scores, facts = run(
        given.peer, given.folder, threads=given.threads, seed=given.seed, k=given.k
    )
    # The JSON appears last and at once: where it is, the run is complete.
    np.savez_compressed(f"{given.output}.npz", labels=labels, scores=scores)
    Path(f"{given.output}.json.part").write_text(json.dumps(facts, indent=1) + "\n")
    os.replace(f"{given.output}.json.part", f"{given.output}.json")


if __name__ == "__main__":
    main()
