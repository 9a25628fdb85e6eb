"""LdSM's rows of the paper's tables, digit for digit, and the shapes it ran on.

M. Majzoubi and A. Choromanska, "LdSM: Logarithm-depth Streaming Multi-label Decision Trees",
AISTATS 2020. Tables are named by what their captions begin with:

- precision, ndcg: "Precisions: P@1, P@3, and P@5 (%) and nDCG scores", main paper, panels (a)-(g)
- psp, psndcg: "Propensity Score Precisions ... and Propensity Score nDCG scores", supplement
- predict_ms: "Prediction time [ms] per example", main paper
- train_seconds: "Training time [s]", supplement
- depth, arity: "Experimental setup", supplement; the deepest tree of the ensemble

Ensembles are of "~50" trees, with "up to 20 passes", up to 64K nodes for Mediamill and Bibtex, 32K
for Delicious and 2K for the rest, lambda 1 and 2 from {0.5, 1, 1.5, 2, 4} (supplement, experimental
setup). The machine and the number of threads are not named. `ldsm.datasets.PRESETS` holds the
numbers of rows, features and labels, under the same names.
"""

from __future__ import annotations

from dataclasses import dataclass

TREES = 50
Three = tuple[float, float, float]


@dataclass(frozen=True)
class PaperRow:
    title: str
    precision: Three
    ndcg: Three
    psp: Three
    psndcg: Three
    train_seconds: float
    predict_ms: float
    depth: int
    arity: int
    max_nodes: int

    def metrics(self) -> dict[str, float]:
        """By the names that `ldsm.metrics.ranking_report` uses."""
        return {
            f"{name}@{k}": value
            for name in ("precision", "ndcg", "psp", "psndcg")
            for k, value in zip((1, 3, 5), getattr(self, name), strict=True)
        }


ROWS = {
    "mediamill": PaperRow(
        "Mediamill",
        (90.64, 73.60, 58.62), (90.64, 82.14, 79.23), (70.27, 69.66, 68.86), (70.27, 69.99, 70.30),
        train_seconds=52.7, predict_ms=0.05, depth=9, arity=4, max_nodes=64_000,
    ),
    "bibtex": PaperRow(
        "Bibtex",
        (64.69, 39.70, 29.25), (64.69, 60.37, 62.73), (52.01, 54.38, 60.34), (52.01, 53.67, 57.08),
        train_seconds=9.48, predict_ms=0.013, depth=9, arity=4, max_nodes=64_000,
    ),
    "delicious": PaperRow(
        "Delicious",
        (71.91, 65.34, 60.24), (71.91, 66.90, 63.09), (37.27, 38.32, 38.46), (37.27, 38.09, 38.28),
        train_seconds=21.74, predict_ms=0.014, depth=10, arity=4, max_nodes=32_000,
    ),
    "amazoncat-13k": PaperRow(
        "AmazonCat-13K",
        (93.87, 75.41, 57.86), (93.87, 85.06, 80.63), (51.06, 58.67, 60.47), (51.06, 57.78, 60.52),
        train_seconds=607, predict_ms=0.04, depth=18, arity=2, max_nodes=2_000,
    ),
    "wiki10-31k": PaperRow(
        "Wiki10-31K",
        (83.74, 71.74, 61.51), (83.74, 74.60, 66.77), (11.87, 12.35, 12.89), (11.87, 12.42, 12.58),
        train_seconds=179, predict_ms=0.15, depth=10, arity=4, max_nodes=2_000,
    ),
    "delicious-200k": PaperRow(
        "Delicious-200K",
        (45.26, 40.53, 38.23), (45.26, 41.66, 39.79), (7.16, 8.26, 9.11), (7.16, 7.92, 8.45),
        train_seconds=5125, predict_ms=1.21, depth=46, arity=2, max_nodes=2_000,
    ),
    "amazon-670k": PaperRow(
        "Amazon-670K",
        (42.63, 38.09, 34.70), (42.63, 40.37, 38.89), (28.14, 30.82, 33.16), (28.14, 29.80, 30.71),
        train_seconds=957, predict_ms=0.12, depth=25, arity=2, max_nodes=2_000,
    ),
}  # fmt: skip
