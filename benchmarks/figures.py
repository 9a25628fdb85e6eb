"""Draw the paper's figures for one data set, and print the points of the max_nodes curve.

Nodes are added in order of priority, so a smaller `max_nodes` gives the beginning of the same tree.
But only leaves keep histograms, so each size needs new trees.

Run: python benchmarks/figures.py [--data delicious] [--trees 20] [--output build/figures.png]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import data as benchmark_data
import pages
from ldsm import LdSMClassifier, plotting
from ldsm.evaluation import Evaluation, MetricCurve
from ldsm.plotting import DepthPoint

SIZES = (31, 63, 125, 251, 501, 1001)
# The paper's supplement: labels, arity and depth of the deepest tree.
PAPER = {
    "Mediamill": DepthPoint(101, 4, 9),
    "Bibtex": DepthPoint(159, 4, 9),
    "Delicious": DepthPoint(983, 4, 10),
    "AmazonCat-13k": DepthPoint(13330, 2, 18),
    "Wiki10-31k": DepthPoint(30938, 4, 10),
    "Delicious-200k": DepthPoint(205443, 2, 46),
    "Amazon-670k": DepthPoint(670091, 2, 25),
}


def grown(train: Any, n_trees: int, max_nodes: int) -> LdSMClassifier:
    """The paper's trees: without a second stage, on all rows."""
    clf = LdSMClassifier(n_trees, max_nodes=max_nodes, rerank=None, random_state=0, n_jobs=-1)
    return clf.fit(train)


def size_curve(train: Any, test: Any, n_trees: int) -> tuple[MetricCurve, LdSMClassifier]:
    """Precision and the depth of the deepest tree at every size, and the largest model."""
    names, values, depths = [f"P@{k}" for k in (1, 3, 5)], [], []
    for max_nodes in SIZES:
        clf = grown(train, n_trees, max_nodes)
        found = Evaluation(clf, test).metrics()
        values.append([found[f"precision@{k}"] for k in (1, 3, 5)])
        depths.append(int(clf.forest_.node_depth().max()))
    columns = dict(zip(names, np.array(values).T, strict=True))
    return MetricCurve(np.array(SIZES), columns, "max_nodes", np.array(depths)), clf


def draw(clf: LdSMClassifier, test: Any, curve: MetricCurve, name: str, path: Path) -> None:
    """All figures side by side."""
    held_out = Evaluation(clf, test)
    figure = Figure(figsize=(19, 7.6), layout="constrained")
    axes = figure.subplots(2, 4).ravel()
    plotting.plot_objective(clf, ax=axes[0]).set_title("J during training")
    plotting.plot_metrics(held_out.tree_curve(), ax=axes[1]).set_title("number of trees")
    plotting.plot_metrics(curve, ax=axes[2]).set_title("size of the trees")
    plotting.plot_single_trees(held_out.single_trees(), ax=axes[3]).set_title("single trees")
    points = {f"{title} (paper)": point for title, point in PAPER.items()}
    plotting.plot_depth({name: clf, **points}, ax=axes[4]).set_title("depth")
    plotting.plot_leaf_depths(clf, ax=axes[5]).set_title("depth of the leaves")
    plotting.plot_splits(clf, ax=axes[6]).set_title("balance and purity")
    plotting.plot_reliability(held_out.reliability(), ax=axes[7]).set_title("calibration")
    figure.savefig(path, dpi=75)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="delicious")
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--output", type=Path, default=Path("build/figures.png"))
    options = parser.parse_args()
    train, test = benchmark_data.load(options.data)
    curve, clf = size_curve(train, test, options.trees)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    draw(clf, test, curve, f"{options.data}, arity {clf.arity}", options.output)
    rows = [
        [
            str(size),
            str(curve.depths[i]),
            *(f"{100 * curve.metrics[n][i]:.2f}" for n in curve.metrics),
        ]
        for i, size in enumerate(SIZES)
    ]
    print(pages.table(["max_nodes", "depth", *curve.metrics], rows))


if __name__ == "__main__":
    main()
