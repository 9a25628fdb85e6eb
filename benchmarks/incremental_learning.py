"""Incremental learning: compare updated models with models retrained on all rows.

    python benchmarks/incremental_learning.py [--seeds 3]
        [--sets eurlex57k,yso,reuters,bibtex,delicious]

There are six trials, each with the defaults on two threads. Precision is measured on test rows.

- half: train on a random half of the rows, then learn five batches of a tenth each;
- tenth: train on nine tenths, then learn the rest;
- labels: hide a tenth of the labels with ten rows or more in the first 80 % of the rows, then learn
  the last 20 % with all labels;
- one: learn 20 rows that have only one, unseen label; repeat for five labels;
- stream: train on all but 10,000 rows, then learn 200 batches of 50;
- document: learn one document at a time.

Writes its tables into benchmarks/README.md.
"""

from __future__ import annotations

import copy
import os
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import data
import learning_tables
import records
from ldsm import LdSMClassifier, TextTagger, datasets, metrics
from ldsm.metrics.calibration import reliability

KS = (1, 3, 5)
THREADS = 2
SETS = ("eurlex57k", "yso", "reuters", "bibtex", "delicious")
TEXTS = ("eurlex57k", "yso", "reuters", "debtags")
STREAMS = ("eurlex57k", "yso")
LEAST_ROWS, N_ALONE, ROWS_ALONE = 10, 5, 20
STREAM_BATCHES, STREAM_ROWS = 200, 50
Facts = dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """Rows of one kind: texts or features."""

    X: Any  # a list of texts, or a matrix
    Y: sp.csr_matrix
    names: list[str]  # of the columns of Y

    def __len__(self) -> int:
        return self.Y.shape[0]

    def take(self, rows: np.ndarray) -> Rows:
        rows = np.sort(rows)
        X = [self.X[i] for i in rows] if isinstance(self.X, list) else self.X[rows]
        return Rows(X, self.Y[rows], self.names)

    def without(self, labels: np.ndarray, *, only: bool = False) -> Rows:
        """The rows without some labels, or with no others."""
        kept = np.full(self.Y.shape[1], not only)
        kept[labels] = only
        Y = sp.csr_matrix(self.Y.multiply(kept[None, :].astype(int)))
        Y.eliminate_zeros()
        return Rows(self.X, Y, self.names)

    @property
    def labels(self) -> list[list[str]]:
        rows = np.split(self.Y.indices, self.Y.indptr[1:-1])
        return [[self.names[i] for i in row] for row in rows]


def load(name: str) -> tuple[Rows, Rows]:
    if name not in TEXTS:
        parts = data.load(name)
        names = [f"{i:06}" for i in range(parts[0].n_labels)]
        return tuple(Rows(part.X, sp.csr_matrix(part.Y), names) for part in parts)
    train, test = (
        datasets.load_jsonl(data.folder() / f"{name}_{part}.jsonl.gz") for part in ("train", "test")
    )
    test, _ = test.align(train)
    names = list(train.label_names)
    return tuple(Rows(list(part.texts), sp.csr_matrix(part.Y), names) for part in (train, test))


class Trials:
    """All trials on one set with one seed; each fit is made once."""

    def __init__(self, train: Rows, test: Rows, seed: int) -> None:
        self.train, self.test, self.seed = train, test, seed
        self.order = np.random.default_rng(seed).permutation(len(train))

    def fit(self, rows: Rows) -> Any:
        classifier = LdSMClassifier(n_jobs=THREADS, random_state=self.seed)
        model = TextTagger(classifier) if isinstance(rows.X, list) else classifier
        return model.fit(rows.X, rows.labels)

    def top(self, model: Any, k: int = max(KS)) -> tuple[np.ndarray, np.ndarray]:
        """Columns of Y and their scores."""
        labels, scores = model.predict_topk(self.test.X, min(k, len(model.classes_)))
        number = {name: i for i, name in enumerate(self.train.names)}
        columns = [[number[label] for label in row] for row in labels.tolist()]
        return np.array(columns), scores

    def precision(self, model: Any) -> list[float]:
        report = metrics.ranking_report(self.test.Y, self.top(model), KS)
        return [100 * report[f"precision@{k}"] for k in KS]

    def part(self, start: float, stop: float) -> Rows:
        n = len(self.train)
        return self.train.take(self.order[round(start * n) : round(stop * n)])

    # -- rows of what is known -----------------------------------------------------------------

    @cached_property
    def trained(self) -> tuple[Any, float]:
        """The model of all rows and labels, and the seconds that it took."""
        started = time.perf_counter()
        model = self.fit(self.train)
        return model, time.perf_counter() - started

    def whole(self) -> Facts:
        model, seconds = self.trained
        return {"precision": self.precision(model), "seconds": seconds, "bytes": size_of(model)}

    def batches(self, start: float, n_batches: int) -> Facts:
        model = self.fit(self.part(0, start))
        facts: Facts = {"base": self.precision(model), "seconds": []}
        for i in range(n_batches):
            rows = self.part(start + 0.1 * i, start + 0.1 * (i + 1))
            started = time.perf_counter()
            model.partial_fit(rows.X, rows.labels)
            facts["seconds"].append(time.perf_counter() - started)
        return facts | {"precision": self.precision(model), "bytes": size_of(model)}

    # -- new labels ----------------------------------------------------------------------------

    def new_labels(self) -> Facts:
        """A tenth of the labels are not given in the first 80 % of the rows."""
        counts = np.bincount(self.train.Y.indices, minlength=self.train.Y.shape[1])
        able = np.flatnonzero(counts >= LEAST_ROWS)
        rng = np.random.default_rng(self.seed)
        hidden = rng.choice(able, len(able) // 10, replace=False)
        first, last = self.part(0, 0.8).without(hidden), self.part(0.8, 1)
        model = self.fit(first)
        model.partial_fit(last.X, last.labels)
        again = self.fit(joined(first, last))
        return {
            "hidden": len(hidden),
            # The last has been given the labels on all rows.
            "recall": [self.recall(each, hidden) for each in (model, again, self.trained[0])],
            "others": [self.others(each, hidden) for each in (model, again)],
        }

    def recall(self, model: Any, labels: np.ndarray) -> float:
        """The share of some labels' occurrences that are among the best five."""
        top, _ = self.top(model)
        wanted = self.test.without(labels, only=True).Y
        hits = sum(np.isin(wanted[i].indices, top[i]).sum() for i in range(len(self.test)))
        return float(100 * hits / max(1, wanted.nnz))

    def others(self, model: Any, labels: np.ndarray) -> list[float]:
        """Precision on all other labels, with these left out of truth and predictions."""
        top, _ = self.top(model, 20)
        gone = np.isin(top, labels)
        order = np.argsort(gone, axis=1, kind="stable")[:, : max(KS)]
        best = np.take_along_axis(top, order, axis=1)
        report = metrics.ranking_report(self.test.without(labels).Y, best, KS)
        return [100 * report[f"precision@{k}"] for k in KS]

    def alone(self) -> Facts:
        """Each of some labels in a batch of rows that have nothing else."""
        counts = np.bincount(self.train.Y.indices, minlength=self.train.Y.shape[1])
        found = np.bincount(self.test.Y.indices, minlength=self.train.Y.shape[1])
        able = np.flatnonzero((counts >= 2 * ROWS_ALONE) & (found >= 5))
        rng = np.random.default_rng(self.seed)
        chosen = rng.choice(able, min(N_ALONE, len(able)), replace=False)
        batches = []
        for label in chosen:
            rows = rng.permutation(np.flatnonzero(self.train.Y[:, [label]].toarray()))
            batches.append(self.train.take(rows[:ROWS_ALONE]).without([label], only=True))
        rest = self.train.without(chosen)
        base = self.fit(rest)
        before = self.others(base, chosen)
        everything = rest
        for batch in batches:
            everything = joined(everything, batch)
        again = self.fit(everything)
        recall, others = [], []
        for label, batch in zip(chosen, batches, strict=True):
            model = copy.deepcopy(base)
            model.partial_fit(batch.X, batch.labels)
            recall.append(self.recall(model, np.array([label])))
            others.append(np.subtract(self.others(model, chosen), before).tolist())
        return {
            "recall": [
                float(np.mean(recall)),
                float(np.mean([self.recall(again, np.array([label])) for label in chosen])),
            ],
            "others": np.mean(others, axis=0).tolist(),
        }

    # -- many small batches ---------------------------------------------------------------------

    def stream(self) -> Facts:
        n_late = STREAM_BATCHES * STREAM_ROWS
        late, early = self.order[:n_late], self.order[n_late:]
        model = self.fit(self.train.take(early))
        facts: Facts = {"base": self.precision(model), "curve": []}
        for i, rows in enumerate(np.array_split(late, STREAM_BATCHES), 1):
            batch = self.train.take(rows)
            model.partial_fit(batch.X, batch.labels)
            if i % (STREAM_BATCHES // 4) == 0:
                facts["curve"].append(self.precision(model))
        top, scores = self.top(model)
        error = reliability(self.test.Y, top, np.clip(scores, 0, 1)).error
        return facts | {"calibration_error": 100 * error, "bytes": size_of(model)}

    def document(self) -> Facts:
        """Milliseconds to learn one row, of labels that are known and with one that is new."""
        model = self.fit(self.part(0, 0.9))
        rows = self.part(0.9, 1)
        known = set(model.classes_.tolist())
        times: dict[str, list[float]] = {"known": [], "new": []}
        labels = rows.labels
        for i in range(min(41, len(rows))):
            X = rows.X[i : i + 1]
            own = [label for label in labels[i] if label in known]
            for kind, given in (("known", own), ("new", [*own, f"new {i}"])):
                if not given or (kind == "new" and i % 4):
                    continue
                started = time.perf_counter()
                model.partial_fit(X, [given])
                times[kind].append(1000 * (time.perf_counter() - started))
        return {kind: float(np.median(values[1:])) for kind, values in times.items()}


def joined(first: Rows, second: Rows) -> Rows:
    both = isinstance(first.X, list)
    X = first.X + second.X if both else sp.vstack([first.X, second.X]).tocsr()
    return Rows(X, sp.vstack([first.Y, second.Y]).tocsr(), first.names)


def size_of(model: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ldsm"
        model.save(path)
        return os.path.getsize(path)


def main() -> None:
    parser = records.arguments(__doc__ or "", "incremental_learning", seeds=3)
    parser.add_argument("--sets", default=",".join(SETS))
    options = parser.parse_args()
    sets = ["quick"] if options.quick else options.sets.split(",")
    results: dict[str, list[dict[str, Facts]]] = {}
    for name in sets:
        train, test = load(name)
        for seed in range(options.seeds):
            trials = Trials(train, test, seed)
            wanted = {
                "whole": trials.whole,
                "half": lambda t=trials: t.batches(0.5, 5),
                "tenth": lambda t=trials: t.batches(0.9, 1),
                "labels": trials.new_labels,
                "one": trials.alone,
            }
            if name in STREAMS:
                wanted["stream"] = trials.stream
            if options.quick or (name == "eurlex57k" and seed == 0):
                wanted["document"] = trials.document
            run = {
                trial: records.kept(
                    options.output, f"{name}_{trial}_seed{seed}", {}, lambda path, w=work: w()
                )
                for trial, work in wanted.items()
            }
            results.setdefault(name, []).append(run)
    records.write_json(options.output / "results.json", results)
    text = learning_tables.tables(results)
    print(text)
    if not options.quick:
        learning_tables.publish(results, text, options.output)


if __name__ == "__main__":
    main()
