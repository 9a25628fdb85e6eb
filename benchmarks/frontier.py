"""Measure accuracy against time on Delicious for 1 to 50 trees, and compare with other tools.

    LDSM_DATA=... python benchmarks/frontier.py [--seeds 3]

Trees alone (no second stage), one thread, several settings. The training time of a point is that of
all its trees. The result is the training and prediction time at which a setting reaches the paper's
P@1, P@3 and P@5, relative to other tools. Finished runs are stored in build/frontier. Writes
results.json there, and the table and picture of benchmarks/README.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import data
import pages
import peers_env
import records
from kept_runs import kept_run
from ldsm import datasets
from own_run import percent
from paper_rows import ROWS
from peer_run import PEERS

KS = (1, 3, 5)
TREES = [1, 2, 5, 10, 20, 30, 50]
ALONE: dict[str, Any] = {"rerank": None, "subsample": 1.0}
SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "large trees": {"max_nodes": 16_000, "integrity_weight": 4.0},
    "few epochs": {
        "max_nodes": 16_000,
        "integrity_weight": 4.0,
        "n_epochs": 5,
        "learning_rate": 0.2,
    },
}
QUICK = {"defaults": {}}
QUICK_TREES = [1, 3]
# One-vs-rest is left to peers.py: it is far from this frontier.
OTHERS = ("omikuji-parabel", "omikuji-bonsai", "napkinxc-plt", "pecos-xlinear")
# How far below the paper's figures counts as reaching them: within noise, and not at all.
MARGINS = (0.3, 0.0)


def own_points(name: str, title: str, settings: dict[str, Any], trees: list[int], seeds: int,
               output: Path) -> list[dict[str, Any]]:  # fmt: skip
    """The points of one setting, averaged over the seeds."""
    runs = [
        kept_run(output, name, title, {**ALONE, **settings}, trees=trees, seed=seed)["points"]
        for seed in range(seeds)
    ]
    return [
        {
            "trees": same[0]["trees"],
            "train_seconds": float(np.mean([point["train_seconds"] for point in same])),
            "predict_ms_per_row": float(np.mean([point["predict_ms_per_row"] for point in same])),
            "precision": [
                float(np.mean([point["metrics"][f"precision@{k}"] for point in same])) for k in KS
            ],
        }
        for same in zip(*runs, strict=True)
    ]


def peer_points(name: str, output: Path) -> dict[str, dict[str, Any]]:
    """Other programs, one point each."""
    train, test = (datasets.open_store(part) for part in data.stores(name, output / "data"))
    folder = output / "data" / f"{name}_peers"
    peers_env.write_data(folder, name, train.X, train.Y, test.X)
    out = {}
    for peer in OTHERS:
        run = peers_env.run_peer(peer, folder, results=output)
        if run is None:
            continue
        found = percent(test.Y, run.labels, train.Y)
        out[PEERS[peer].title] = {
            "train_seconds": run.facts["train_seconds"],
            "predict_ms_per_row": run.facts["predict_ms_per_row"],
            "precision": [found[f"precision@{k}"] for k in KS],
        }
        print(f"{PEERS[peer].title}: training {run.facts['train_seconds']:.1f} s", flush=True)
    return out


def arrivals(ours: dict[str, Any], goal: tuple[float, ...]) -> list[dict[str, Any]]:
    """For each setting and margin: the first point that has all three figures, if any."""
    out = []
    for title, points in ours.items():
        for margin in MARGINS:
            there = [
                point
                for point in points
                if all(p >= g - margin for p, g in zip(point["precision"], goal, strict=True))
            ]
            out.append({"setting": title, "margin": margin, "point": there[0] if there else None})
    return out


def arrival_lines(reached: list[dict[str, Any]], others: dict[str, Any]) -> str:
    """When the paper's accuracy is reached, and the cost relative to other tools."""
    lines = []
    for arrival in reached:
        what = f"within {arrival['margin']} of it" if arrival["margin"] else "all of it"
        point = arrival["point"]
        if point is None:
            lines.append(
                f"- {arrival['setting']}, {what}: not reached with up to {TREES[-1]} trees"
            )
            continue
        beside = [
            f"{point['train_seconds'] / m['train_seconds']:.2f} × the training and "
            f"{point['predict_ms_per_row'] / m['predict_ms_per_row']:.2f} × the prediction of "
            f"{title}"
            for title, m in others.items()
            if title in ("omikuji Parabel", "napkinXC PLT")
        ]
        lines.append(
            f"- {arrival['setting']}, {what}: {point['trees']} trees, "
            f"{point['train_seconds']:.1f} s, {point['predict_ms_per_row']:.3f} ms per row"
            + "".join(f"; {part}" for part in beside)
        )
    return "\n".join(lines)


def plot(ours: dict[str, Any], others: dict[str, Any], goal: tuple[float, ...], path: Path) -> None:
    """P@1 against training time, and against prediction time."""
    axis_of = {"train_seconds": "training time, s", "predict_ms_per_row": "prediction, ms per row"}
    with pages.picture(path, panels=2, width=5) as panels:
        for axes, (cost, label) in zip(panels, axis_of.items(), strict=True):
            axes.axhline(goal[0], color="0.6", linewidth=1, linestyle="--", label="the paper")
            for i, (title, points) in enumerate(ours.items()):
                x = [point[cost] for point in points]
                y = [point["precision"][0] for point in points]
                axes.plot(x, y, marker="o", markersize=4, linewidth=1.2, color=f"C{i}",
                          label=f"ldsm, {title}")  # fmt: skip
                # The last points lie close together: a label at each would be unreadable.
                for j in sorted({0, len(points) // 2, len(points) - 1}):
                    axes.annotate(f"{points[j]['trees']}", (x[j], y[j]), xytext=(0, -11),
                                  textcoords="offset points", fontsize=7, ha="center",
                                  color=f"C{i}")  # fmt: skip
            for (title, m), marker in zip(others.items(), "s^Dv", strict=False):
                axes.scatter(m[cost], m["precision"][0], marker=marker, s=30, color="0.3",
                             label=title, zorder=3)  # fmt: skip
            axes.margins(0.08, 0.12)
            pages.log_scale(axes)
            axes.set_xlabel(label, fontsize=9)
            axes.set_ylabel("P@1, %", fontsize=9)
        panels[0].set_title("Numbers at the points: trees", fontsize=9)
        panels[1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))


def main() -> None:
    parser = records.arguments(__doc__, "frontier", seeds=3)
    options = parser.parse_args()
    output: Path = options.output
    name, settings, trees = "delicious", SETTINGS, TREES
    if options.quick:
        name, settings, trees = "quick", QUICK, QUICK_TREES
    goal = ROWS["delicious"].precision
    others = peer_points(name, output)
    ours = {
        title: own_points(name, title, s, trees, options.seeds, output)
        for title, s in settings.items()
    }
    reached = arrivals(ours, goal)
    records.write_json(
        output / "results.json",
        {
            "machine": records.machine(),
            "settings": {title: {**ALONE, **s} for title, s in settings.items()},
            "paper": goal,
            "ours": ours,
            "peers": others,
            "reached": reached,
        },
    )
    plot(ours, others, goal, output / "frontier.png")
    rows = [
        [title, "", f"{m['train_seconds']:.2f}", f"{m['predict_ms_per_row']:.3f}",
         pages.slashed(m["precision"])]
        for title, m in others.items()
    ]  # fmt: skip
    rows += [
        [f"ldsm, {title}", f"{point['trees']}", f"{point['train_seconds']:.2f}",
         f"{point['predict_ms_per_row']:.3f}", pages.slashed(point["precision"])]
        for title, points in ours.items()
        for point in points
    ]  # fmt: skip
    named = "\n".join(f"- {t}: {pages.code({**ALONE, **s})}" for t, s in settings.items())
    text = (
        f"One thread, mean of {options.seeds} seeds for ldsm. {records.machine_sentence()}\n\n"
        "![accuracy against time on Delicious](frontier.png)\n\n"
        f"{pages.table(['', 'trees', 'train s', 'ms/row', 'P@1/3/5'], rows)}\n"
        f"Settings of ldsm:\n\n{named}\n\n"
        f"Cost of reaching the paper's P@1/3/5, {pages.slashed(goal)}:\n\n"
        f"{arrival_lines(reached, others)}\n"
    )
    (output / "tables.md").write_text(text)
    print(text)
    if not options.quick:
        pages.publish(pages.BENCHMARKS, "frontier", text, [output / "frontier.png"])


if __name__ == "__main__":
    main()
