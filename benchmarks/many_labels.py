"""Measure time, memory, depth, size and precision with 670,091 labels on two cores.

    python benchmarks/many_labels.py

Two threads train two trees with `memory_limit` 1 GiB in a separate process. The data are synthetic,
with the shape of Amazon-670K (`shapes.py` writes the store to build/paper/shapes). P@5 on test rows
is compared with that of the five most frequent labels. Private memory is the peak of what the
system cannot take back without swap. Results are stored in build/many_labels. Writes results.json
there, and the table of docs/scaling.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import pages
import records
from ldsm import LdSMClassifier, datasets, metrics
from out_of_core import watched_memory
from shapes import TEST_ROWS, write_stores

SETTINGS = {"n_estimators": 2, "n_jobs": 2, "rerank": None, "memory_limit": 1 << 30}
K = 5


def main() -> None:
    if len(sys.argv) == 4 and sys.argv[1] == "--child":
        child(Path(sys.argv[2]), Path(sys.argv[3]))
        return
    options = records.arguments(__doc__ or "", "many_labels").parse_args()
    scale = 0.002 if options.quick else 1.0
    shapes = options.output if options.quick else Path("build/paper")
    train, test = write_stores("amazon-670k", shapes / "shapes", scale)

    def work(_: Path) -> dict[str, Any]:
        command = [sys.executable, __file__, "--child", train, test]
        ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(ended.stdout)

    found = records.kept(options.output, "fit", {"settings": SETTINGS, "scale": scale}, work)
    records.write_json(
        options.output / "results.json", {"machine": records.machine(), "scale": scale, **found}
    )
    text = report(found)
    print(text)
    if not options.quick:
        pages.publish(pages.ROOT / "docs" / "scaling.md", "many-labels", text)


def child(train_path: Path, test_path: Path) -> None:
    """Fit, answer, and print what it took."""
    train, test = datasets.open_store(train_path), datasets.open_store(test_path)
    test = test.select(range(min(TEST_ROWS, len(test))))
    clf = LdSMClassifier(random_state=0, **SETTINGS)
    with watched_memory() as peak:
        started = time.perf_counter()
        clf.fit(train)
        seconds = time.perf_counter() - started
    started = time.perf_counter()
    best, _ = clf.predict_topk(test.X, K)
    asked = time.perf_counter() - started
    frequent = np.argsort(-np.bincount(train.Y.indices, minlength=train.Y.shape[1]))[:K]
    with tempfile.TemporaryDirectory() as folder:
        clf.save(Path(folder) / "model.ldsm")
        saved = (Path(folder) / "model.ldsm").stat().st_size
    found = {
        "rows": len(train),
        "labels": train.Y.shape[1],
        "features": train.X.shape[1],
        "train_seconds": seconds,
        "private_bytes": peak[0],
        "model_bytes": saved,
        "nodes": int(clf.forest_.n_nodes),
        "depth": int(clf.forest_.node_depth().max()),
        "predict_ms_per_row": 1e3 * asked / len(test),
        "precision": 100 * metrics.precision_at_k(test.Y, best, K),
        "precision_of_the_frequent": 100
        * metrics.precision_at_k(test.Y, np.tile(frequent, (len(test), 1)), K),
    }
    print(json.dumps(found))


def report(found: dict[str, Any]) -> str:
    rows = [
        [
            "rows, features, labels",
            f"{found['rows']:,}, {found['features']:,}, {found['labels']:,}",
        ],
        ["training, two trees on two cores", f"{found['train_seconds']:.0f} s"],
        ["private memory", f"{found['private_bytes'] / 1e6:,.0f} MB"],
        ["nodes, depth", f"{found['nodes']:,}, {found['depth']}"],
        ["model file", f"{found['model_bytes'] / 1e6:,.0f} MB"],
        ["prediction", f"{found['predict_ms_per_row']:.3f} ms per row"],
        ["P@5", f"{found['precision']:.2f}"],
        ["P@5 of the most frequent labels", f"{found['precision_of_the_frequent']:.2f}"],
    ]
    command = f"`python benchmarks/many_labels.py`, {pages.code(SETTINGS)}"
    return f"{command}: {records.machine_sentence()}\n\n" + pages.table(["", "measured"], rows)


if __name__ == "__main__":
    main()
