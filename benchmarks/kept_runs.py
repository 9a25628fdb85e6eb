"""Runs of ldsm in separate processes, whose results are stored.

    run = kept_run(output, "delicious", "trees-alone", {"rerank": None}, trees=[50], seed=0)
    run["points"][0]["train_seconds"], answers_of(output, run)["labels"]

`own_run.py` runs there and documents the content of a point.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import data
import records

OWN_RUN = Path(__file__).parent / "own_run.py"


def kept_run(
    output: Path,
    name: str,
    title: str,
    settings: dict[str, Any],
    *,
    trees: list[int],
    seed: int,
    threads: int = 1,
) -> dict[str, Any]:
    """Train on the data set `name` and predict, unless the folder `output` has the results.

    A point for each number of trees; `answers_of` gives what the last one predicted.
    """
    train, test = data.stores(name, output / "data")
    spec = {"settings": settings, "trees": trees, "seed": seed, "threads": threads}

    def work(path: Path) -> dict[str, Any]:
        return {"points": in_child(path, train, test, **spec), "answers": f"{path.name}.npz"}

    about = {"data": data.identity(train, test), **spec}
    return records.kept(output, f"{name}_{title.replace(' ', '-')}_seed{seed}", about, work)


def answers_of(output: Path, run: dict[str, Any]) -> dict[str, Any]:
    """The best labels of every test row, their scores, and the labels in the order of `tail=1`."""
    with np.load(output / run["answers"]) as arrays:
        return dict(arrays)


def in_child(output: Path, train: Path, test: Path, **spec: Any) -> list[dict[str, Any]]:
    """`own_run.measure` on two stores, in a process of its own; leaves OUTPUT.npz.

    `test_rows` in the spec limits the number of test rows.
    """
    given, result = (output.with_name(output.name + end) for end in (".spec", ".points"))
    given.write_text(json.dumps({"train": str(train), "test": str(test), **spec}))
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(spec.get("threads", 1)))
    command = [sys.executable, OWN_RUN, given, output]
    ended = subprocess.run(command, env={**os.environ, **limits})
    if ended.returncode:
        raise RuntimeError(f"ldsm with {spec} ended with code {ended.returncode}.")
    points: list[dict[str, Any]] = json.loads(result.read_text())
    for file in (given, result):
        file.unlink()
    return points
