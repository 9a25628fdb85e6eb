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
    "leaves_per_row": "leaves/row",
    "weights": "weights",
    "balancedness": "balance β",
    "purity": "purity α",
    "leaf_entropy": "leaf entropy",
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
    shown["log M K"] = shown.pop("log M K")
    for name in ("file size", "memory"):
        shown[name] = size(shown[name])
    shown["fingerprint"] = shown["fingerprint"][:16] + "…"
    for name, value in params.items():
        params[name] = _word(value)
        if value == "auto" and name in used:
            params[name] = f"auto: {_word(used[name])}"
    screen.facts({"model": shown, "parameters": params})
    rows: list[list[Any]] = [
        [str(tree), *(_cell(statistics[name][tree]) for name in COLUMNS)]
        for tree in range(opened.clf.forest_.n_trees)
    ]
    rows.append(["mean", *(_cell(np.mean(statistics[name])) for name in COLUMNS)])
    screen.table(["tree", *COLUMNS.values()], rows, title="trees", bold_row=len(rows) - 1)


def describe(model: Model) -> dict[str, Any]:
    """All that is said of the whole model."""
    clf, forest = model.clf, model.clf.forest_
    depth = forest.node_depth()
    leaf_rows = np.where(forest.is_leaf, forest.node_rows, 0)
    roots = forest.node_rows[forest.tree_offsets[:-1]]
    return {
        "file": str(model.path),
        "kind": "texts to tags" if model.tagger is not None else "features to labels",
        "fingerprint": model.fingerprint,
        "file_size": model.path.stat().st_size,
        "memory": forest.nbytes,
        "training_rows": model.n_rows,
        "features": forest.n_features,
        "labels": len(clf.classes_),
        "labels_with_rows": int(np.count_nonzero(clf.label_counts_)),
        "trees": forest.n_trees,
        "nodes": forest.n_nodes,
        "depth": int(depth.max()),
        "mean_leaf_depth": float(np.sum(depth * leaf_rows) / max(1, leaf_rows.sum())),
        "log_M_K": math.log(max(len(clf.classes_), 1), forest.arity),
        "leaves_per_row": float(leaf_rows.sum() / max(1, roots.sum())),
        "params": clf.get_params(deep=False),
        "tree_params": clf.tree_params_.as_dict(),
    }


def _cell(value: Any) -> str:
    return number(round(value)) if value >= 100 else number(value)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else "none" if value is None else number(value)
