"""Measure time, memory and depth on synthetic data shaped like the paper's larger sets.

    python benchmarks/paper.py --shapes

The data sets themselves are not available. `ldsm.datasets.make_xmc` makes data with the same number
of rows, features, labels, labels per row and non-zeros per row. Its accuracy says nothing about the
originals and is not reported. Only a few trees are grown. Trees have similar costs, so that of the
paper's 50 is extrapolated. The stores are in build/paper/shapes (about 3 GB; delete them when
done), and every fit runs in a separate process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import data
import pages
import records
from kept_runs import in_child
from ldsm import datasets
from paper_rows import ROWS, TREES

# Trees that are grown. Nodes and arity are the paper's.
GROWN = {"wiki10-31k": 10, "amazoncat-13k": 2, "delicious-200k": 2, "amazon-670k": 2}
COMMON: dict[str, Any] = {"rerank": None, "subsample": 1.0}
QUICK_SCALE = 0.002
TEST_ROWS = 20_000


def write_stores(name: str, folder: Path, scale: float) -> tuple[Path, Path]:
    """Make the data in a process of its own: its memory must not count as the fit's."""
    folder = folder / f"{scale:g}"
    parts = (folder / f"{name}_train", folder / f"{name}_test")
    folder.mkdir(parents=True, exist_ok=True)
    for part, path in zip(("train", "test"), parts, strict=True):
        if not (path / "meta.json").exists():
            make = [sys.executable, __file__, name, str(scale), part, str(path)]
            subprocess.run(make, check=True)
            print(f"shape_{name}: {part} rows written to {path}", flush=True)
    return parts


def run_shape(output: Path, name: str, *, trees: int, scale: float) -> dict[str, Any]:
    """One fit, or what is kept of it."""
    paper = ROWS[name]
    settings = {"arity": paper.arity, "max_nodes": paper.max_nodes, **COMMON}
    shape = datasets.PRESETS[name]
    about = {"shape": vars(shape), "scale": scale, "settings": settings, "trees": trees}

    def work(path: Path) -> dict[str, Any]:
        train, test = write_stores(name, output / "shapes", scale)
        [point] = in_child(path, train, test, settings=settings, trees=[trees], test_rows=TEST_ROWS)
        return {**point, "settings": settings, "data": data.identity(train, test)}

    return records.kept(output, f"shape_{name}", about, work)


def column(name: str, point: dict[str, Any]) -> list[str]:
    paper, shape, depth = ROWS[name], datasets.PRESETS[name], point["depth"]
    per_tree = point["train_seconds"] / point["trees"]
    ms_per_tree = point["predict_ms_per_row"] / point["trees"]
    peak = point["peak_bytes"]
    return [
        f"{shape.n_rows:,}",
        f"{shape.n_features:,}, {shape.nonzeros_per_row:g} per row",
        f"{shape.n_labels:,}, {shape.labels_per_row:g} per row",
        f"{paper.arity}, {paper.max_nodes:,}",
        f"{point['trees']}",
        f"{per_tree:.2f} s",
        f"{per_tree * TREES:,.0f} s",
        f"{paper.train_seconds:,g} s",
        f"{ms_per_tree:.4f} ms",
        f"{ms_per_tree * TREES:.2f} ms",
        f"{paper.predict_ms:g} ms",
        "" if peak is None else f"{peak / 1e9:.1f} GB",
        f"{point['model_bytes'] / point['trees'] / 1e6:.1f} MB",
        f"{depth['max_depth']}, mean {depth['mean_depth']:.1f}",
        f"{paper.depth}",
        f"{depth['log_labels']:.1f}, {depth['log_rows']:.1f}",
    ]


LINES = (
    "rows", "features, non-zeros", "labels", "M, nodes at most", "trees grown", "training per tree",
    f"training, {TREES} trees, extrapolated", "training in the paper, real data",
    "prediction per row and tree", f"prediction per row, {TREES} trees, extrapolated",
    "prediction per row in the paper, real data", "peak memory", "model file per tree",
    "depth of the deepest tree", "depth in the paper, real data", "log_M of labels, of rows",
)  # fmt: skip


def run(output: Path, *, quick: bool) -> None:
    """All shapes; writes shapes.json and the table of docs/reproduction.md."""
    scale = QUICK_SCALE if quick else 1.0
    wanted = {"wiki10-31k": 2} if quick else GROWN
    found = {n: run_shape(output, n, trees=t, scale=scale) for n, t in wanted.items()}
    command = "python benchmarks/paper.py --shapes"
    results = {"command": command, "machine": records.machine(), "scale": scale, "runs": found}
    records.write_json(output / "shapes.json", results)
    columns = [column(name, point) for name, point in found.items()]
    rows = [list(row) for row in zip(LINES, *columns, strict=True)]
    text = (
        f"`{command}`, one thread. {records.machine_sentence()}\n\n"
        f"{pages.table(['shape of', *(ROWS[name].title for name in found)], rows)}\n"
        "Peak memory is that of the whole process, including the mapped data. Other settings that "
        f"differ from the defaults: {pages.code(COMMON)}.\n"
    )
    (output / "shapes.md").write_text(text)
    print(text)
    if not quick:
        pages.publish(pages.REPRODUCTION, "shapes", text)


if __name__ == "__main__":
    name, scale, part, path = sys.argv[1:]
    datasets.make_xmc(name, scale=float(scale), part=part).save(path, overwrite=True)
