"""Train ldsm on one data set, predict, and record time, memory and predictions.

    python own_run.py SPEC.json OUTPUT

is the process that `kept_runs.py` starts, so that the peak of memory is this fit's alone, as
`peer_run.py` is for other programs; the times are taken in the same way. Where a spec asks for
several numbers of trees, the trees of the smaller forests are kept (`warm_start`), and the training
time is that of all calls so far. OUTPUT.npz holds the best labels of every test row and their
scores, and the labels ordered for rare ones (`tail=1`); OUTPUT.points the facts, as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from depth import depth_facts
from ldsm import LdSMClassifier, datasets, metrics
from peer_run import PASSES, TIMED_K, bytes_on_disk, memory, seconds_of, start_peak

KS = (1, 3, 5)


def measure(
    train: Any,
    test: Any,
    settings: dict[str, Any],
    *,
    trees: list[Any],
    threads: int = 1,
    seed: int = 0,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Fit and predict: the facts for each number of trees, and the answers of the last."""
    # Rows of a mapped store are read now: neither their reading nor their memory is the fit's.
    for array in (train.X.data, train.X.indices, train.Y.indices, test.X.data, test.X.indices):
        array.max(initial=0)
    clf = LdSMClassifier(
        **settings, n_jobs=threads, random_state=seed, warm_start=len(trees) > 1
    )  # fmt: skip
    points, answers, seconds = [], {}, 0.0
    k = min(TIMED_K, train.Y.shape[1])
    for number in trees:
        clf.set_params(n_estimators=number)
        before = start_peak()
        spent, _ = seconds_of(lambda: clf.fit(train.X, train.Y))
        seconds += spent
        peak = memory("VmHWM")
        passes = [seconds_of(lambda: clf.predict_topk(test.X, k))[0] for _ in range(PASSES)]
        labels, scores = clf.predict_topk(test.X, k)
        rare, _ = clf.predict_topk(test.X, k, tail=1.0)
        answers = {"labels": labels, "scores": scores, "labels_tail": rare}
        stage = clf.second_stage_
        points.append(
            {
                "trees": clf.forest_.n_trees,
                "in_effect": clf.tree_params_.as_dict(),
                "train_seconds": seconds,
                "predict_ms_per_row": 1e3 * min(passes) / test.X.shape[0],
                "one_row_ms": one_row_ms(clf, test.X, k),
                "metrics": percent(test.Y, labels, train.Y),
                "metrics_tail": percent(test.Y, rare, train.Y),
                "depth": depth_facts(clf.forest_, train.X.shape[0]),
                "model_bytes": saved_bytes(clf),
                "trees_bytes": clf.forest_.nbytes,
                "stage_bytes": sum(part.nbytes for part in stage.parts.values()) if stage else 0,
                "blend": stage.blend.kind if stage else "none",
                "train_peak_bytes": None if peak is None else peak - before,
                "peak_bytes": peak,
            }
        )
    return points, answers


def one_row_ms(clf: LdSMClassifier, X: Any, k: int, n_rows: int = 300) -> float:
    """The median time of a call for a single row."""
    rows = [X[i : i + 1] for i in range(min(n_rows, X.shape[0]))]
    clf.predict_topk(rows[0], k)  # what is computed once is not part of it
    times = [seconds_of(partial(clf.predict_topk, row, k))[0] for row in rows]
    return 1e3 * float(np.median(times))


def percent(Y: Any, labels: Any, Y_train: Any) -> dict[str, float]:
    """Every ranking metric in percent."""
    found = metrics.ranking_report(Y, labels, KS, y_train=Y_train)
    return {name: 100 * value for name, value in found.items()}


def saved_bytes(clf: LdSMClassifier) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ldsm"
        clf.save(path)
        return bytes_on_disk(path)


def main() -> None:
    given, output = Path(sys.argv[1]), Path(sys.argv[2])
    spec = json.loads(given.read_text())
    train, test = (datasets.open_store(spec.pop(part)) for part in ("train", "test"))
    if rows := spec.pop("test_rows", None):
        test = test.select(range(min(rows, len(test))))
    points, answers = measure(train, test, **spec)
    np.savez_compressed(output.with_name(output.name + ".npz"), **answers)
    output.with_name(output.name + ".points").write_text(json.dumps(points))


if __name__ == "__main__":
    main()
