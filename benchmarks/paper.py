"""Reproduce the paper's results on Delicious and Bibtex: accuracy, time and depth.

    make paper                                   # both data sets, five seeds, then the shapes
    python benchmarks/paper.py [--data delicious,bibtex] [--seeds 5]
    python benchmarks/paper.py --shapes          # synthetic data of the larger sets' shapes

Finished fits are stored in build/paper, and an interrupted run resumes. Writes
build/paper/results.json and the tables of docs/reproduction.md. Settings were chosen on training
rows. One thread, each fit in a separate process.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

import pages
import records
import shapes
from kept_runs import kept_run
from ldsm.datasets.synthetic import PRESETS, Preset
from paper_rows import ROWS, PaperRow

# Trees alone, as in the paper; and the whole system, with the second stage.
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "delicious": {
        "trees alone": {
            "n_estimators": 50,
            "arity": 2,
            "max_nodes": 16_000,
            "integrity_weight": 4.0,
            "rerank": None,
            "subsample": 1.0,
        },
        "whole system": {"n_estimators": 30},
    },
    "bibtex": {
        "trees alone": {
            "n_estimators": 50,
            "arity": 2,
            "integrity_weight": 4.0,
            "rerank": None,
            "subsample": 1.0,
        },
        "whole system": {"n_estimators": 16, "max_nodes": 500, "n_epochs": 5},
    },
    "quick": {
        "trees alone": {"n_estimators": 3, "rerank": None, "subsample": 1.0},
        "whole system": {"n_estimators": 6},
    },
}
METRICS = (("P", "precision"), ("N", "ndcg"), ("PSP", "psp"), ("PSN", "psndcg"))
KS = (1, 3, 5)


def run_seed(output: Path, name: str, system: str, seed: int) -> dict[str, Any]:
    """One fit, in a separate process, or its stored results."""
    settings = dict(SETTINGS[name][system])
    trees = [settings.pop("n_estimators")]
    return kept_run(output, name, system, settings, trees=trees, seed=seed)["points"][0]


def in_the_paper(name: str) -> tuple[PaperRow, Preset]:
    """The paper's row and shape; any will do to try the program."""
    name = "bibtex" if name == "quick" else name
    return ROWS[name], PRESETS[name]


def accuracy_table(name: str, runs: dict[str, list[dict[str, Any]]]) -> str:
    """One line per metric: the paper, then each system and its difference from the paper."""
    printed = in_the_paper(name)[0].metrics()
    # For the order tail=1, only metrics of rare labels are meaningful.
    columns = [(system, "metrics") for system in runs]
    columns += [(system, "metrics_tail") for system in runs]
    titles = [s if m == "metrics" else f"{s}, `tail=1`" for s, m in columns]
    rows = []
    for short, metric in METRICS:
        for k in KS:
            cells = []
            for system, order in columns:
                if order == "metrics_tail" and not metric.startswith("ps"):
                    cells.append("")
                    continue
                values = [run[order][f"{metric}@{k}"] for run in runs[system]]
                ahead = np.mean(values) - printed[f"{metric}@{k}"]
                cells.append(f"{pages.mean_spread(values)} ({ahead:+.2f})")
            rows.append([f"{short}@{k}", f"{printed[f'{metric}@{k}']:.2f}", *cells])
    return pages.table(["%", "paper", *titles], rows)


def cost_table(name: str, runs: dict[str, list[dict[str, Any]]]) -> str:
    """Time, size and depth."""
    paper, shape = in_the_paper(name)

    def column(found: list[dict[str, Any]]) -> list[str]:
        depths = [run["depth"] for run in found]
        return [
            pages.mean_spread([run["train_seconds"] for run in found]),
            pages.mean_spread([run["predict_ms_per_row"] for run in found], 3),
            f"{np.mean([run['model_bytes'] for run in found]) / 1e6:.0f} MB",
            f"{max(depth['max_depth'] for depth in depths)}",
            f"{np.mean([depth['mean_depth'] for depth in depths]):.1f}",
            f"{depths[0]['log_labels']:.1f}",
            f"{depths[0]['log_rows']:.1f}",
            f"{np.mean([depth['nodes'] for depth in depths]):,.0f}",
            ", ".join(sorted({run["blend"] for run in found})),
        ]

    printed = [
        f"{paper.train_seconds}",
        f"{paper.predict_ms}",
        "",
        f"{paper.depth}",
        "",
        f"{math.log(shape.n_labels, paper.arity):.1f}",
        f"{math.log(shape.n_rows, paper.arity):.1f}",
        f"at most {paper.max_nodes:,}",
        "",
    ]
    names = [
        "training, s", "prediction, ms per row", "model file", "depth of the deepest tree",
        "mean depth, weighted by rows", "log_M K", "log_M of the rows", "nodes per tree",
        "second stage",
    ]  # fmt: skip
    columns = [column(found) for found in runs.values()]
    rows = [list(row) for row in zip(names, printed, *columns, strict=True)]
    return pages.table(["", f"paper, M = {paper.arity}", *runs], rows)


def section(name: str, runs: dict[str, list[dict[str, Any]]]) -> str:
    settings = "\n".join(
        f"- {system}: {pages.code(SETTINGS[name][system])}; seeds 0 to {len(found) - 1}; in effect "
        f"{pages.code(found[0]['in_effect'])}"
        for system, found in runs.items()
    )
    title = in_the_paper(name)[0].title
    return (
        f"### {title}\n\n{accuracy_table(name, runs)}\n{cost_table(name, runs)}\n"
        f"Settings, where they differ from the defaults:\n\n{settings}\n"
    )


def main() -> None:
    parser = records.arguments(__doc__, "paper", seeds=5)
    parser.add_argument("--data", default="delicious,bibtex", help="data sets, by commas")
    parser.add_argument("--shapes", action="store_true", help="the synthetic runs instead")
    options = parser.parse_args()
    if options.shapes:
        shapes.run(options.output, quick=options.quick)
        return
    names = ["quick"] if options.quick else options.data.split(",")
    found = {
        name: {
            system: [run_seed(options.output, name, system, i) for i in range(options.seeds)]
            for system in SETTINGS[name]
        }
        for name in names
    }
    command = f"python benchmarks/paper.py --data {','.join(names)} --seeds {options.seeds}"
    results = {
        "command": command,
        "machine": records.machine(),
        "settings": {name: SETTINGS[name] for name in names},
        "paper": {name: in_the_paper(name)[0].metrics() for name in names},
        "runs": found,
    }
    records.write_json(options.output / "results.json", results)
    text = f"`{command}`, one thread. {records.machine_sentence()}\n\n" + "\n".join(
        section(name, runs) for name, runs in found.items()
    )
    (options.output / "tables.md").write_text(text)
    print(text)
    if not options.quick:
        pages.publish(pages.REPRODUCTION, "paper", text)


if __name__ == "__main__":
    main()
