"""The second stage against other programs: accuracy, rare labels, calibration, time and size.

All in one run, one thread, the same features; ours is the mean of several seeds. Settings were
chosen on training rows (EURLEX57K: its dev rows). The peers' runs are kept in the results folder
and not repeated.

Run: python benchmarks/ranking.py [--data bibtex,delicious,eurlex57k] [--seeds 3] [--results FOLDER]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import data as benchmark_data
import peers_env
from ldsm import LdSMClassifier, metrics

SETTINGS: dict[str, dict[str, Any]] = {
    "bibtex": {"n_estimators": 16, "max_nodes": 500, "n_epochs": 5},
    "delicious": {"n_estimators": 30},
    "eurlex57k": {"n_estimators": 16, "arity": 4, "max_nodes": 6000, "n_epochs": 2},
}
PEERS = ("omikuji-parabel", "omikuji-bonsai", "napkinxc-plt", "pecos-xlinear")
KS = (1, 3, 5)
BINS = 10
RESAMPLES = 2000

Floats = npt.NDArray[np.float64]


def hits_at(Y: Any, labels: npt.NDArray[Any], gain: Floats) -> Floats:
    """For each row and k: the gain of the hits among the first k, over k."""
    found = np.zeros(labels.shape)
    for row in range(labels.shape[0]):
        true = Y.indices[Y.indptr[row] : Y.indptr[row + 1]]
        found[row] = np.isin(labels[row], true) * gain[labels[row]]
    return np.stack([found[:, :k].sum(axis=1) / k for k in KS], axis=1)


def best_at(Y: Any, gain: Floats) -> Floats:
    """For each row and k: the gain of the best possible list, over k."""
    out = np.zeros((Y.shape[0], len(KS)))
    for row in range(Y.shape[0]):
        true = np.sort(gain[Y.indices[Y.indptr[row] : Y.indptr[row + 1]]])[::-1]
        out[row] = [true[:k].sum() / k for k in KS]
    return out


class Judge:
    """Precision and propensity-scored precision by row, for comparisons in pairs."""

    def __init__(self, Y_train: Any, Y_test: Any) -> None:
        self.Y = Y_test
        self.gain = 1 / metrics.propensities(Y_train)
        self.attainable = best_at(Y_test, self.gain).mean(axis=0)

    def precision(self, labels: npt.NDArray[Any]) -> Floats:
        return 100 * hits_at(self.Y, labels, np.ones(self.Y.shape[1]))

    def psp(self, labels: npt.NDArray[Any]) -> Floats:
        return 100 * hits_at(self.Y, labels, self.gain) / self.attainable

    def calibration(self, labels: npt.NDArray[Any], scores: npt.NDArray[Any]) -> dict[str, Any]:
        """Mean score and share of hits in each tenth of the score, and their mean distance."""
        truth = np.concatenate(
            [
                np.isin(labels[row], self.Y.indices[self.Y.indptr[row] : self.Y.indptr[row + 1]])
                for row in range(len(labels))
            ]
        )
        score = scores.ravel().astype(float)
        bin_of = np.minimum((score * BINS).astype(int), BINS - 1)
        bins = [
            (float(score[bin_of == b].mean()), float(truth[bin_of == b].mean()), int(n))
            for b in range(BINS)
            if (n := np.sum(bin_of == b))
        ]
        error = sum(abs(s - t) * n for s, t, n in bins) / len(score)
        return {"ece": 100 * error, "bins": bins}


def our_run(
    settings: dict[str, Any], seed: int, train: Any, test: Any, judge: Judge
) -> dict[str, Any]:
    """One fit of ours with everything that is told of it."""
    started = time.perf_counter()
    clf = LdSMClassifier(**settings, random_state=seed, n_jobs=1).fit(train.X, train.Y)
    train_seconds = time.perf_counter() - started
    passes = []
    for _ in range(3):
        started = time.perf_counter()
        labels, scores = clf.predict_topk(test.X, 5)
        passes.append(time.perf_counter() - started)
    stage = clf.second_stage_
    by_tail, _ = clf.predict_topk(test.X, 5, tail=1.0)
    return {
        "precision": judge.precision(labels),
        "psp": judge.psp(labels),
        "psp_tail": judge.psp(by_tail),
        "train_seconds": train_seconds,
        "predict_ms_per_row": 1000 * min(passes) / test.X.shape[0],
        "trees_mb": clf.forest_.nbytes / 1e6,
        "stage_mb": sum(v.nbytes for _, v in stage.vectors()) / 1e6 if stage else 0.0,
        "blend": stage.blend.kind if stage else "none",
        "calibration": judge.calibration(labels, scores),
    }


def mean_runs(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Numbers averaged over the seeds, row by row where there are rows."""
    out: dict[str, Any] = {}
    for name, value in runs[0].items():
        if isinstance(value, str):
            out[name] = ", ".join(sorted({run[name] for run in runs}))
        elif isinstance(value, dict):
            out[name] = value | {"ece": float(np.mean([run[name]["ece"] for run in runs]))}
        else:
            out[name] = np.mean([run[name] for run in runs], axis=0)
    return out


def difference(ours: Floats, theirs: Floats) -> str:
    """Mean over the rows, with the 95 % interval of a paired bootstrap."""
    gap = ours - theirs
    rng = np.random.default_rng(0)
    means = [gap[rng.integers(len(gap), size=len(gap))].mean() for _ in range(RESAMPLES)]
    low, high = np.quantile(means, [0.025, 0.975])
    return f"{gap.mean():+.2f} [{low:+.2f}, {high:+.2f}]"


def measure(name: str, n_seeds: int, results: Path) -> dict[str, Any]:
    """All methods on one data set: a dict by method, with rows' precisions."""
    train, test = benchmark_data.load(name)
    judge = Judge(train.Y, test.Y)
    methods: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        peers_env.write_data(Path(folder), name, train.X, train.Y, test.X)
        for peer in PEERS:
            run = peers_env.run_peer(peer, Path(folder), results=results)
            if run is None:
                continue
            methods[peer] = {
                "precision": judge.precision(run.labels[:, :5]),
                "psp": judge.psp(run.labels[:, :5]),
                **{k: run.facts[k] for k in ("train_seconds", "predict_ms_per_row")},
                "model_mb": run.facts["model_bytes"] / 1e6,
            }
    alone = {"rerank": None, "subsample": 1.0}
    for title, extra in (("ldsm", {}), ("ldsm, trees alone", alone)):
        settings = SETTINGS[name] | extra
        runs = [our_run(settings, seed, train, test, judge) for seed in range(n_seeds)]
        methods[title] = mean_runs(runs)
    return methods


def table(name: str, methods: dict[str, Any]) -> list[str]:
    """One data set's table, and what follows from it."""

    def numbers(values: Any) -> str:
        return " / ".join(f"{v:.2f}" for v in np.mean(values, axis=0))

    lines = [
        f"## {name}",
        "",
        "| method | P@1/3/5 | PSP@1/3/5 | PSP@1/3/5, tail=1 | train s | ms/row | MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for title, m in methods.items():
        tail = numbers(m["psp_tail"]) if "psp_tail" in m else ""
        if "trees_mb" in m:
            size = f"{m['trees_mb']:.1f} trees + {m['stage_mb']:.1f}"
        else:
            size = f"{m['model_mb']:.1f}"
        lines.append(
            f"| {title} | {numbers(m['precision'])} | {numbers(m['psp'])} | {tail} "
            f"| {m['train_seconds']:.2f} | {m['predict_ms_per_row']:.3f} | {size} |"
        )
    ours, alone = methods["ldsm"], methods["ldsm, trees alone"]
    peers = {title: m for title, m in methods.items() if title in PEERS}
    error = ours["calibration"]["ece"]
    lines += [
        "",
        f"Blend: {ours['blend']}. Settings: `{SETTINGS[name]}`.",
        f"Expected calibration error of the five best scores: {error:.2f} points.",
        "",
    ]
    for what, own in (("precision", "precision"), ("psp", "psp_tail")):
        for i, k in enumerate(KS):
            if not peers:
                continue
            best = max(peers, key=lambda title: peers[title][what][:, i].mean())
            gap = difference(ours[own][:, i], peers[best][what][:, i])
            lines.append(f"- {what}@{k} against the best peer ({best}): {gap}")
    for i, k in enumerate(KS):
        gap = difference(ours["precision"][:, i], alone["precision"][:, i])
        lines.append(f"- precision@{k} against trees alone, subsample=1: {gap}")
    for peer in ("omikuji-parabel", "napkinxc-plt"):
        if peer in peers:
            ratios = [
                ours[own] / peers[peer][theirs]
                for own, theirs in (
                    ("train_seconds", "train_seconds"),
                    ("predict_ms_per_row", "predict_ms_per_row"),
                    ("stage_mb", "model_mb"),
                )
            ]
            lines.append(
                f"- times {peer}: training {ratios[0]:.2f}, prediction {ratios[1]:.2f}, "
                f"second stage's size {ratios[2]:.2f}"
            )
    return [*lines, ""]


def plot_reliability(found: dict[str, Any], path: Path) -> None:
    """Score against share of hits, one line per data set."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(4.2, 4.2), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1, label="perfect")
    for (name, methods), marker in zip(found.items(), "osD^", strict=False):
        calibration = methods["ldsm"]["calibration"]
        score, truth, _ = zip(*calibration["bins"], strict=True)
        axes.plot(score, truth, marker=marker, markersize=4, linewidth=1.2,
                  label=f"{name}, error {calibration['ece']:.1f} points")  # fmt: skip
    axes.set(xlabel="score", ylabel="share of true labels", xlim=(0, 1), ylim=(0, 1))
    axes.set_title("Scores of the five best labels, test rows", fontsize=10)
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="bibtex,delicious,eurlex57k")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--results", type=Path, default=Path("build/ranking"))
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    found = {}
    for name in options.data.split(","):
        found[name] = measure(name, options.seeds, options.results)
        print("\n".join(table(name, found[name])), flush=True)
    plot_reliability(found, options.results / "reliability.png")
    (options.results / "calibration.json").write_text(
        json.dumps({name: m["ldsm"]["calibration"] for name, m in found.items()}, indent=1)
    )


if __name__ == "__main__":
    main()
