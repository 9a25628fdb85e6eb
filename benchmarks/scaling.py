"""Measure how cost and depth grow with rows, labels, features, arity, trees and threads.

    python benchmarks/scaling.py

Synthetic data (`ldsm.datasets.make_xmc`); one thing is varied at a time, the others stay at BASE.
An exponent is the slope of a straight line through the logarithms, with its 95 % interval: 1 means
in proportion, 0 not at all. The paper's cost of a node is O(M(D + K) + e M N (d + 2^M k)): in
proportion to a node's rows N and their non-zeros d, and with D features and K labels in all only
through what a node sets up. The depth is compared with the bound of `depth.py`. About ten minutes
on one core. Finished measurements are kept under build/scaling. Writes results.json there, and the
table and picture of benchmarks/README.md.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import pages
import records
from kept_runs import in_child
from ldsm import datasets

BASE = {"rows": 20_000, "labels": 1_000, "features": 10_000, "arity": 2, "trees": 2, "threads": 1}
SWEEPS: dict[str, list[int]] = {
    "rows": [5_000, 10_000, 20_000, 40_000, 80_000, 160_000],
    "labels": [1_000, 3_162, 10_000, 31_623, 100_000, 316_228, 1_000_000],
    "features": [1_000, 10_000, 100_000, 1_000_000],
    "arity": [2, 3, 4, 5, 6, 7, 8],
    "trees": [1, 2, 4, 8, 16],
    "threads": [n for n in (1, 2, 4, 8, 16, 32) if n <= (os.cpu_count() or 1)],
}
QUICK_BASE = BASE | {"rows": 400, "labels": 30, "features": 100}
QUICK_SWEEPS = {"rows": [200, 400, 800], "labels": [10, 30, 100], "threads": [1]}
# Every thread must have trees to grow.
WITH = {"threads": {"trees": 8}}
LABELS_PER_ROW, NONZEROS_PER_ROW = 3, 50
TEST_ROWS = 5_000
REPEATS = 2
COSTS = {
    "train_seconds": "training",
    "predict_ms_per_row": "prediction per row",
    "train_peak_bytes": "memory of training",
    "model_bytes": "model file",
}


def measure_at(values: dict[str, int], path: Path) -> dict[str, Any]:
    """A fit at these values: its least costs of several runs, and its depths."""
    shape = {
        "labels_per_row": min(LABELS_PER_ROW, values["labels"]),
        "nonzeros_per_row": min(NONZEROS_PER_ROW, values["features"]),
    }
    train = datasets.make_xmc(values["rows"], values["features"], values["labels"], **shape)
    test = datasets.make_xmc(
        min(TEST_ROWS, values["rows"]), values["features"], values["labels"], **shape, part="test"
    )
    spec = {
        "settings": {"arity": values["arity"], "rerank": None},
        "trees": [values["trees"]],
        "threads": values["threads"],
    }
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        stores = Path(folder) / "train", Path(folder) / "test"
        for rows, store in zip((train, test), stores, strict=True):
            rows.save(store)
        runs = [in_child(Path(folder) / "run", *stores, **spec)[0] for _ in range(REPEATS)]
    costs = {cost: min(run[cost] for run in runs) for cost in COSTS if runs[0][cost] is not None}
    return {**costs, "depth": runs[0]["depth"]}


def exponent(sizes: list[int], costs: list[float]) -> dict[str, float | None]:
    """Slope of the logarithms and half its 95 % interval; None if there are too few points."""
    if len(sizes) < 2 or min(costs) <= 0:
        return {"slope": None, "interval": None}
    fit = stats.linregress(np.log(sizes), np.log(costs))
    free = len(sizes) - 2
    interval = float(fit.stderr * stats.t.ppf(0.975, free)) if free else None
    return {"slope": float(fit.slope), "interval": interval}


def exponent_text(found: dict[str, float | None] | None) -> str:
    if found is None or found["slope"] is None:
        return ""
    width = "" if found["interval"] is None else f" ± {found['interval']:.2f}"
    return f"{found['slope']:+.2f}{width}"


def plot(sweeps: dict[str, Any], path: Path) -> None:
    """Two costs relative to each sweep's first point, and the depth against rows and labels."""
    with pages.picture(path, panels=4, width=3.4, height=3.5) as panels:
        for axes, cost in zip(panels[:2], ("train_seconds", "predict_ms_per_row"), strict=True):
            for what, points in sweeps.items():
                sizes = np.array([point["values"][what] for point in points])
                costs = np.array([point[cost] for point in points])
                axes.plot(sizes / sizes[0], costs / costs[0], marker="o", markersize=3,
                          linewidth=1.2, label=what)  # fmt: skip
            for which in "xy":
                pages.log_scale(axes, which)
            axes.autoscale(False)
            axes.plot([1, 1e4], [1, 1e4], color="0.7", linestyle="--", linewidth=1,
                      label="in proportion")  # fmt: skip
            axes.set_title(f"Cost of {COSTS[cost]}", fontsize=9)
            axes.set_xlabel("times the first value", fontsize=9)
            axes.set_ylabel("times the first cost", fontsize=9)
        panels[0].legend(frameon=False, fontsize=7)
        for axes, what in zip(panels[2:], ("rows", "labels"), strict=True):
            plot_depth(axes, what, sweeps[what])
        panels[3].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))


def plot_depth(axes: Any, what: str, points: list[dict[str, Any]]) -> None:
    sizes = [point["values"][what] for point in points]
    for key, label, style in (
        ("bound", "bound", "--"),
        ("max_depth", "deepest tree", "o-"),
        ("mean_depth", "mean, by rows", "s-"),
        ("log_rows", "log_M of the rows", ":"),
        ("log_labels", "log_M of the labels", "-."),
    ):
        depths = [
            np.nan if point["depth"][key] is None else point["depth"][key] for point in points
        ]
        axes.plot(sizes, depths, style, markersize=3, linewidth=1.2, label=label)
    pages.log_scale(axes)
    axes.set_ylim(bottom=0)
    axes.set_title(f"Depth against {what}", fontsize=9)
    axes.set_xlabel(what, fontsize=9)


def point_row(what: str, point: dict[str, Any]) -> list[str]:
    depth = point["depth"]
    bound = "" if depth["bound"] is None else f"{depth['bound']:.1f}"
    peak = point.get("train_peak_bytes")
    return [
        what,
        f"{point['values'][what]:,}",
        f"{point['train_seconds']:.3f}",
        f"{point['predict_ms_per_row']:.4f}",
        "" if peak is None else f"{peak / 1e6:.0f}",
        f"{point['model_bytes'] / 1e6:.1f}",
        f"{depth['max_depth']}",
        f"{depth['mean_depth']:.1f}",
        f"{depth['log_labels']:.1f}",
        f"{depth['log_rows']:.1f}",
        bound,
    ]


def main() -> None:
    options = records.arguments(__doc__, "scaling").parse_args()
    output: Path = options.output
    base, wanted = (QUICK_BASE, QUICK_SWEEPS) if options.quick else (BASE, SWEEPS)
    sweeps: dict[str, list[dict[str, Any]]] = {}
    for what, sizes in wanted.items():
        for size in sizes:
            values = {**base, **WITH.get(what, {}), what: size}
            facts = records.kept(
                output, f"{what}_{size}", values, lambda path, v=values: measure_at(v, path)
            )
            sweeps.setdefault(what, []).append({"values": values, **facts})
    exponents = {
        what: {
            cost: exponent([p["values"][what] for p in points], [p[cost] for p in points])
            for cost in COSTS
            if all(cost in p for p in points)
        }
        for what, points in sweeps.items()
    }
    depths = [point["depth"] for points in sweeps.values() for point in points]
    within = sum(d["log_labels"] <= d["max_depth"] <= 3 * d["log_labels"] for d in depths)
    holds = all(d["bound_holds"] for d in depths)
    records.write_json(
        output / "results.json",
        {
            "machine": records.machine(),
            "base": base,
            "sweeps": sweeps,
            "exponents": exponents,
            "depth_bound_holds": holds,
            "within_the_papers_interval": [within, len(depths)],
        },
    )
    plot(sweeps, output / "scaling.png")
    also = "".join(f"; for {what}: {pages.code(w)}" for what, w in WITH.items() if what in wanted)
    slopes = [
        [what, f"{wanted[what][0]:,} to {wanted[what][-1]:,}"]
        + [exponent_text(exponents[what].get(cost)) for cost in COSTS]
        for what in wanted
    ]
    header = (
        "varied", "value", "train s", "ms/row", "peak MB", "model MB", "deepest", "mean depth",
        "log_M K", "log_M rows", "bound",
    )  # fmt: skip
    verdict = "holds for every tree" if holds else "DOES NOT HOLD for every tree"
    text = (
        f"{records.machine_sentence()}\n\n"
        f"One value is varied at a time; the others are {pages.code(base)}, with about "
        f"{LABELS_PER_ROW} labels and {NONZEROS_PER_ROW} non-zeros per row{also}. Trees alone with "
        f"default settings, so `max_nodes` grows with the rows. The best of {REPEATS} runs, each "
        "in a separate process.\n\n"
        "![cost and depth](scaling.png)\n\n"
        "Exponents with 95 % intervals; 1 means proportional:\n\n"
        f"{pages.table(['varied', 'from, to', *COSTS.values()], slopes)}\n"
        f"{pages.table(header, [point_row(w, p) for w, ps in sweeps.items() for p in ps])}\n"
        "The paper's Definition 1 implies a bound on the depth: 1 + log(pairs / 2) / log(1 / s). "
        "Here, pairs are the (row, label) pairs of the root. A split's balancedness limits the "
        "share of its pairs in one child; s is the geometric mean of these limits over the splits "
        f"above the deepest leaf. The bound {verdict}. The paper observed depths between log_M K "
        f"and 3 log_M K on its data. So did {within} of {len(depths)} measurements here.\n"
    )
    (output / "tables.md").write_text(text)
    print(text)
    if not options.quick:
        pages.publish(pages.BENCHMARKS, "scaling", text, [output / "scaling.png"])


if __name__ == "__main__":
    main()
