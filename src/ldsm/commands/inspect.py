"""``ldsm inspect``: what a model file holds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .model import Model, ModelArgument, open_model
from .screen import Screen, number, size

# Statistics by tree, as `Forest.tree_statistics` names them, with a head for the table.
COLUMNS = {
    "nodes": "nodes",
    "leaves": "leaves",
    "depth": "depth",
    "mean_leaf_depth": "mean depth",
    "leaves_per_row": "leaves per row",
    "weights": "weights",
    "balancedness": "balance",
    "purity": "purity",
    "leaf_entropy": "entropy",
}


def inspect_command(screen: Screen, model: ModelArgument) -> None:
    """Show a model: parameters, sizes, and the statistics of every tree.

    The depth is set against log_M K, the depth of a perfectly balanced tree of arity M with a leaf
    for each of the K labels. Leaves per row is how many leaves a training row reaches on average: 1
    means that no row was sent several ways.
    """
    opened = open_model(model)
    facts = describe(opened)
    statistics = opened.clf.forest_.tree_statistics()
    if screen.json:
        screen.data({**facts, "tree_statistics": statistics})
        return
    params, used = facts.pop("params"), facts.pop("tree_params")
    shown = {name.replace("_", " "): value for name, value in facts.items()}
    shown[f"log_{opened.clf.forest_.arity} of labels"] = shown.pop("log M K")
    for name in ("file size", "memory"):
        shown[name] = size(shown[name])
    shown["fingerprint"] = shown["fingerprint"][:16] + "…"
    for name, value in params.items():
        params[name] = _word(value)
        if value == "auto" and name in used:
            params[name] = f"auto: {_word(used[name])}"
    screen.facts({"model": shown, "parameters": params})
    rows: list[list[Any]] = [
        [str(tree), *(statistics[name][tree] for name in COLUMNS)]
        for tree in range(opened.clf.forest_.n_trees)
    ]
    rows.append(["mean", *(np.mean(statistics[name]) for name in COLUMNS)])
    screen.table(["tree", *COLUMNS.values()], rows, title="trees", bold_row=len(rows) - 1)


def describe(model: Model) -> dict[str, Any]:
    """All that is said of the whole model."""
    clf, forest = model.clf, model.clf.forest_
    depth = forest.node_depth()
    leaf_rows = np.where(forest.is_leaf, forest.node_rows, 0)
    roots = forest.node_rows[forest.tree_offsets[:-1]]
    return {
        "file": str(model.path),
        "kind": model.kind,
        "fingerprint": model.fingerprint,
        "file_size": model.path.stat().st_size,
        "memory": forest.nbytes,
        "training_rows": model.n_rows,
        "features": forest.n_features,
        "labels": len(clf.classes_),
        "labels_with_rows": int(np.count_nonzero(clf.label_counts_)),
        "trees": forest.n_trees,
        "nodes": forest.n_nodes,
        "leaves_per_row": float(leaf_rows.sum() / max(1, roots.sum())),
        "mean_leaf_depth": float(np.sum(depth * leaf_rows) / max(1, leaf_rows.sum())),
        "depth": int(depth.max()),
        "log_M_K": math.log(max(len(clf.classes_), 1), forest.arity),
        "params": clf.get_params(deep=False),
        "tree_params": clf.tree_params_.as_dict(),
    }


def _word(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else number(value)
