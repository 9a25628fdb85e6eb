"""The tables and the picture of `incremental_learning.py`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import pages
import records

KS = (1, 3, 5)
LEAST_GAP = 0.3  # points: a way that is shorter is lost in the noise
Facts = dict[str, Any]
Results = dict[str, list[dict[str, Facts]]]  # by set, one for each seed, by trial


def publish(results: Results, text: str, folder: Path) -> None:
    """Write the pages."""
    pages.publish(pages.BENCHMARKS, "incremental_learning", text)
    short, pictures = precision_table(results), []
    if any("stream" in runs[0] for runs in results.values()):
        pictures = [folder / "incremental_learning.png"]
        draw_streams(results, pictures[0])
        short += "\n![Precision after up to 200 batches of 50 rows](incremental_learning.png)\n"
    page = pages.ROOT / "docs" / "incremental_learning.md"
    pages.publish(page, "incremental_learning_short", short, pictures)


def draw_streams(results: Results, path: Path) -> None:
    """Precision after small batches, relative to training on all rows."""
    shown_sets = {name: runs for name, runs in results.items() if "stream" in runs[0]}
    with pages.picture(path, panels=len(shown_sets), width=4.6, height=3.2) as panels:
        for axes, (name, runs) in zip(panels, shown_sets.items(), strict=True):
            whole = means(runs, "whole", "precision")
            curve = [means(runs, "stream", "base"), *means(runs, "stream", "curve")]
            at = np.linspace(0, 10_000, len(curve))
            for i, (k, style) in enumerate(zip(KS, ("-", "--", ":"), strict=True)):
                axes.plot(
                    at, np.array(curve)[:, i] - whole[i], style, marker="o", ms=3, label=f"P@{k}"
                )
            axes.axhline(0, color="0.6", lw=1)
            axes.annotate(
                "retrained on all rows",
                (0, 0),
                xytext=(2, 3),
                fontsize=8,
                textcoords="offset points",
                color="0.35",
            )
            axes.set_title(name, fontsize=10)
            axes.set_xlabel("rows learned, 50 at a time", fontsize=9)
            axes.set_ylabel("points", fontsize=9)
            axes.legend(fontsize=8, frameon=False, loc="lower right")


def tables(results: Results) -> str:
    n_seeds = max(map(len, results.values()))
    parts = [
        f"Means of {n_seeds} seeds. {records.machine_sentence()}",
        precision_table(results),
        labels_table(results),
    ]
    if any("stream" in run for runs in results.values() for run in runs):
        parts.append(stream_table(results))
    for runs in results.values():
        if "document" in runs[0]:
            known, new = (runs[0]["document"][kind] for kind in ("known", "new"))
            parts.append(
                f"To learn one document, a model of 90 % of the rows takes {known:.0f} ms, or "
                f"{new:.0f} ms if the document has a new tag (medians)."
            )
    return "\n\n".join(part.strip() for part in parts)


def means(runs: Sequence[dict[str, Facts]], trial: str, name: str) -> np.ndarray:
    return np.mean([run[trial][name] for run in runs], axis=0)


def shown(values: Any, sign: str = "") -> str:
    return " / ".join(f"{value:{sign}.2f}" for value in np.atleast_1d(values))


def precision_table(results: Results) -> str:
    rows = []
    for name, runs in results.items():
        whole = means(runs, "whole", "precision")
        for trial, title in (("half", "50 % + 5 x 10 %"), ("tenth", "90 % + 10 %")):
            base, learned = (means(runs, trial, what) for what in ("base", "precision"))
            ratios = [np.mean(run[trial]["seconds"]) / run["whole"]["seconds"] for run in runs]
            gaps = np.where(whole - base >= LEAST_GAP, whole - base, np.nan)
            way = 100 * (learned - base) / gaps
            rows.append(
                [
                    name,
                    title,
                    shown(base),
                    shown(learned),
                    shown(whole),
                    shown(learned - whole, "+"),
                    " / ".join("–" if np.isnan(share) else f"{share:.0f}" for share in way),
                    f"{100 * np.mean(ratios):.1f}",
                ]
            )
    heads = [
        "",
        "rows",
        "before",
        "updated",
        "retrained",
        "difference",
        "% of the gap closed",
        "time per batch, % of training",
    ]
    return f"P@1 / 3 / 5 on the test rows:\n\n{pages.table(heads, rows)}"


def labels_table(results: Results) -> str:
    rows = []
    for name, runs in results.items():
        learned, again, given = means(runs, "labels", "recall")
        others = means(runs, "labels", "others")
        alone, alone_again = means(runs, "one", "recall")
        rows.append(
            [
                name,
                f"{learned:.1f} / {again:.1f} / {given:.1f}",
                shown(others[0] - others[1], "+"),
                f"{alone:.1f} / {alone_again:.1f}",
                shown(means(runs, "one", "others"), "+"),
            ]
        )
    heads = [
        "",
        "a tenth of the labels new in the last 20 %: recall@5, updated / retrained / retrained "
        "with the new labels on all rows",
        "P@k of other labels, relative to retraining",
        "one new label alone, 20 rows: recall@5, updated / retrained",
        "P@k of other labels, relative to before",
    ]
    return (
        "New labels. A model retrained on the rows as they came sees many rows without a label "
        "that they should have:\n\n" + pages.table(heads, rows)
    )


def stream_table(results: Results) -> str:
    rows = []
    for name, runs in results.items():
        if "stream" not in runs[0]:
            continue
        whole = means(runs, "whole", "precision")
        curve = means(runs, "stream", "curve")
        ratio = np.mean([run["stream"]["bytes"] / run["whole"]["bytes"] for run in runs])
        rows.append(
            [
                name,
                shown(means(runs, "stream", "base")),
                *map(shown, curve),
                shown(whole),
                shown(curve[-1] - whole, "+"),
                f"{means(runs, 'stream', 'calibration_error'):.2f}",
                f"{ratio:.2f}",
            ]
        )
    at = [f"after {50 * i}" for i in range(1, 5)]
    heads = ["", "before", *at, "retrained", "difference", "calibration error", "file size, ratio"]
    return f"200 batches of 50 rows, P@1 / 3 / 5:\n\n{pages.table(heads, rows)}"
