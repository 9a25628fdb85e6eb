"""Compare ldsm with other tools: accuracy, rare labels, time, size, memory and calibration.

    LDSM_DATA=... python benchmarks/peers.py [--data bibtex,reuters] [--seeds 3]

All tools get the same features and threads, and each run is a separate process. ldsm has its
defaults and is the mean of several seeds. omikuji is trained without rows that have no features,
because it cannot read them. Finished runs are stored in build/peers; delete the folder to measure
everything in one run. Writes results.json there, and the tables and pictures of
benchmarks/README.md.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import data
import pages
import peers_env
import records
from judge import KS, Judge, difference
from kept_runs import answers_of, kept_run
from ldsm import LdSMClassifier, datasets
from ldsm.metrics.calibration import reliability
from ldsm.plotting import plot_reliability
from peer_run import PEERS

NAMES = ("bibtex", "delicious", "eurlex57k", "reuters", "debtags", "yso")
OURS = "ldsm"
COSTS = ("train_seconds", "predict_ms_per_row", "model_bytes", "train_peak_bytes")
OWN_COSTS = (*COSTS, "one_row_ms", "stage_bytes")


def own_runs(name: str, seeds: int, threads: int, judge: Judge, output: Path) -> dict[str, Any]:
    """The mean over several seeds of ldsm, row by row where there are rows."""
    n_trees = LdSMClassifier().n_estimators
    kept = [
        kept_run(output, name, OURS, {}, trees=[n_trees], seed=seed, threads=threads)
        for seed in range(seeds)
    ]
    runs = [run["points"][0] for run in kept]
    answers = [answers_of(output, run) for run in kept]
    found = [reliability(judge.Y, a["labels"], a["scores"]) for a in answers]
    means = {cost: mean_or_none([run[cost] for run in runs]) for cost in OWN_COSTS}
    return {
        "precision": np.mean([judge.precision(a["labels"]) for a in answers], axis=0),
        "psp": np.mean([judge.psp(a["labels"]) for a in answers], axis=0),
        "psp_tail": np.mean([judge.psp(a["labels_tail"]) for a in answers], axis=0),
        **means,
        "blend": ", ".join(sorted({run["blend"] for run in runs})),
        # The bins of one seed, the error of all.
        "reliability": replace(found[0], error=float(np.mean([one.error for one in found]))),
        "settings": {},
    }


def mean_or_none(values: list[Any]) -> float | None:
    return None if None in values else float(np.mean(values))


def measure(name: str, seeds: int, threads: int, output: Path) -> dict[str, Any]:
    """All methods on one data set, by title, with the precisions of every row."""
    train, test = (datasets.open_store(part) for part in data.stores(name, output / "data"))
    judge = Judge(train.Y, test.Y)
    methods: dict[str, Any] = {}
    folder = output / "data" / f"{name}_peers"
    peers_env.write_data(folder, name, train.X, train.Y, test.X)
    for peer, about in PEERS.items():
        run = peers_env.run_peer(peer, folder, results=output, threads=threads)
        if run is None:
            continue
        methods[about.title] = {
            "precision": judge.precision(run.labels),
            "psp": judge.psp(run.labels),
            **{cost: run.facts[cost] for cost in COSTS},
            "settings": run.facts["settings"],
            "version": run.facts["version"],
        }
        print(f"{name}, {about.title}: training {run.facts['train_seconds']:.1f} s", flush=True)
    methods[OURS] = own_runs(name, seeds, threads, judge, output)
    return methods


def comparisons(methods: dict[str, Any]) -> list[dict[str, Any]]:
    """ldsm minus the best peer, for every metric."""
    peers = [title for title in methods if title != OURS]
    out = []
    for metric, own in (("precision", "precision"), ("psp", "psp_tail")):
        for i, k in enumerate(KS if peers else ()):
            best = max(peers, key=lambda t: methods[t][metric][:, i].mean())
            ours, theirs = methods[OURS][own][:, i], methods[best][metric][:, i]
            mean, low, high = difference(ours, theirs)
            out.append(
                {"metric": f"{metric}@{k}", "other": best, "mean": mean, "low": low, "high": high}
            )
    return out


def section(name: str, methods: dict[str, Any], gaps: list[dict[str, Any]]) -> str:
    """The table of one data set, and the comparisons below it."""
    rows = []
    for title, m in methods.items():
        tail = pages.slashed(m["psp_tail"].mean(axis=0)) if "psp_tail" in m else ""
        size = f"{m['model_bytes'] / 1e6:.1f}"
        peak = m["train_peak_bytes"]
        rows.append(
            [
                title,
                pages.slashed(m["precision"].mean(axis=0)),
                pages.slashed(m["psp"].mean(axis=0)),
                tail,
                f"{m['train_seconds']:.2f}",
                f"{m['predict_ms_per_row']:.3f}",
                size,
                "" if peak is None else f"{peak / 1e6:.0f}",
            ]
        )
    header = (
        "method", "P@1/3/5", "PSP@1/3/5", "PSP@1/3/5, tail=1", "train s", "ms/row", "model MB",
        "peak MB",
    )  # fmt: skip
    ours = methods[OURS]
    lines = [
        f"Blend: {ours['blend']}. Predicting a single row takes {ours['one_row_ms']:.2f} ms.",
        "Expected calibration error of the five best scores: "
        f"{100 * ours['reliability'].error:.2f} points.",
        "",
    ]
    for gap in gaps:
        lines.append(
            f"- {gap['metric']} against the best peer ({gap['other']}): "
            f"{gap['mean']:+.2f} [{gap['low']:+.2f}, {gap['high']:+.2f}]"
        )
    for title, m in methods.items():
        if title in ("omikuji Parabel", "napkinXC PLT"):
            train, predict = (ours[c] / m[c] for c in ("train_seconds", "predict_ms_per_row"))
            lines.append(
                f"- relative to {title}: training {train:.2f}, prediction {predict:.2f}, "
                f"size {ours['model_bytes'] / m['model_bytes']:.2f}"
            )
    return f"#### {name}\n\n{pages.table(header, rows)}\n" + "\n".join(lines) + "\n"


def draw_times(found: dict[str, Any], path: Path) -> None:
    """Precision against training time, a panel per data set."""
    with pages.picture(path, panels=len(found)) as panels:
        for axes, (name, methods) in zip(panels, found.items(), strict=True):
            markers = iter("s^DvP")
            for title, m in methods.items():
                ours = title == OURS
                marker, color = ("o", "C3") if ours else (next(markers), "C0")
                axes.scatter(m["train_seconds"], m["precision"][:, 0].mean(), s=34, zorder=3,
                             marker=marker, color=color, label=title)  # fmt: skip
            axes.margins(0.12, 0.4)  # room for the legend
            pages.log_scale(axes)
            axes.legend(frameon=False, fontsize=7)
            axes.set_title(name, fontsize=10)
            axes.set_xlabel("training time, s", fontsize=9)
            axes.set_ylabel("P@1, %", fontsize=9)


def draw_reliability(found: dict[str, Any], path: Path) -> None:
    """Score against share of hits, one line per data set."""
    with pages.picture(path, width=4.4, height=5.4) as [axes]:
        plot_reliability({name: m[OURS]["reliability"] for name, m in found.items()}, ax=axes)
        axes.set_title("Scores of the five best labels, test rows", fontsize=10)


def summary(method: dict[str, Any]) -> dict[str, Any]:
    """Means in place of the rows, for the file of results."""
    out = dict(method)
    for key in ("precision", "psp", "psp_tail"):
        if key in out:
            out[key] = dict(zip(map(str, KS), out[key].mean(axis=0).tolist(), strict=True))
    if "reliability" in out:
        out["reliability"] = {
            key: np.asarray(value).tolist() for key, value in vars(out["reliability"]).items()
        }
    return out


def main() -> None:
    parser = records.arguments(__doc__, "peers", seeds=3)
    parser.add_argument("--data", default=",".join(NAMES), help="by commas")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    output: Path = options.output
    names = ["quick"] if options.quick else options.data.split(",")
    found = {n: measure(n, options.seeds, options.threads, output) for n in names}
    gaps = {name: comparisons(methods) for name, methods in found.items()}
    records.write_json(
        output / "results.json",
        {
            "machine": records.machine(),
            "threads": options.threads,
            "seeds": options.seeds,
            "methods": {
                name: {title: summary(m) for title, m in methods.items()}
                for name, methods in found.items()
            },
            "differences": gaps,
        },
    )
    pictures = [output / "peers.png", output / "reliability.png"]
    draw_times(found, pictures[0])
    draw_reliability(found, pictures[1])
    text = (
        f"{options.threads} thread{'s' * (options.threads > 1)}, "
        f"mean of {options.seeds} seeds for ldsm. {records.machine_sentence()}\n\n"
        "![precision against training time](peers.png)\n\n"
        "![score against share of true labels](reliability.png)\n\n"
        + "\n".join(section(name, methods, gaps[name]) for name, methods in found.items())
    )
    (output / "tables.md").write_text(text)
    print(text)
    if not options.quick:
        pages.publish(pages.BENCHMARKS, "peers", text, pictures)


if __name__ == "__main__":
    main()
