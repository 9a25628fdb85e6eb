"""Facts about a model: sizes and depths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._features.blocks import BIGRAMS, DENSE, MAIN, SUB_WORDS
from .._trees.levels import balanced_depth
from .._wording import counted
from .fitted import FittedModel


def model_facts(model: FittedModel) -> dict[str, Any]:
    """Names and values, in the order they are shown."""
    forest = model.forest
    depth = forest.node_depth()
    leaf_rows = np.where(forest.is_leaf, forest.node_rows, 0)
    roots = forest.node_rows[forest.tree_offsets[:-1]]
    parts = () if model.second_stage is None else model.second_stage.parts.values()
    all_rows = max(1, int(leaf_rows.sum()))
    return {
        "memory": forest.nbytes + sum(part.nbytes for part in parts),
        "training_rows": model.n_training_rows,
        "features": model.n_features,
        "labels": model.n_labels,
        "labels_with_rows": int(np.count_nonzero(model.label_counts)),
        "trees": forest.n_trees,
        "nodes": forest.n_nodes,
        "leaves_per_row": float(leaf_rows.sum() / max(1, roots.sum())),
        "mean_leaf_depth": float(np.sum(depth.astype(np.float64) * leaf_rows) / all_rows),
        "depth": int(depth.max()),
        "log_M_K": balanced_depth(model.n_labels, forest.arity),
        "tree_params": model.tree_params.as_dict(),
    }


def counted_features(model: FittedModel, main: str = "feature") -> str:
    """The number of features of each kind; `main` is the noun for those of the first block."""
    layout = model.layout
    nouns = {MAIN: main, BIGRAMS: "bigram", SUB_WORDS: "sub-word", DENSE: "dimension of vectors"}
    present = [block for block in nouns if layout[block] or block == MAIN]
    return ", ".join(counted(layout[block], nouns[block]) for block in present)


def shown_params(
    given: Mapping[str, Any], model: FittedModel, shown: Callable[[Any], str]
) -> dict[str, str]:
    """The parameters as given, in words, with what "auto" stood for."""
    stage = model.second_stage
    used = {**model.tree_params.as_dict(), "rerank": None if stage is None else stage.blend.kind}

    def word(value: Any) -> str:
        if isinstance(value, float):
            return f"{value:g}"
        return "none" if value is None else shown(value)

    return {
        name: f"auto: {word(used[name])}" if value == "auto" and name in used else word(value)
        for name, value in given.items()
    }


_SHOWN_CHANGES = 10  # the last ones


def shown_history(model: FittedModel) -> dict[str, str]:
    """The changes since the training in words, by time.

    A file can hold anything, so entries of another form are skipped.
    """
    history = model.training.get("history")
    shown: dict[str, str] = {}
    for entry in history[-_SHOWN_CHANGES:] if type(history) is list else []:
        if type(entry) is not dict or type(entry.get("when")) is not str:
            continue
        n = {name: value for name, value in entry.items() if type(value) is int}
        changes = ("dropped", "renamed")
        words = [f"{counted(n[name], 'label')} {name}" for name in changes if name in n]
        if "learned" in n:
            words.append(f"{counted(n['learned'], 'row')} learned")
        if n.get("times", 1) > 1:
            words.append(f"in {n['times']:,} batches")
        if n.get("new_labels"):
            words.append(f"with {counted(n['new_labels'], 'new label')}")
        if n.get("skewed"):
            words.append(f"({counted(n['skewed'], 'row')} in skewed batches)")
        if words:
            when = entry["when"][:19].replace("T", " ")
            before = f"{shown[when]}; " if when in shown else ""
            shown[when] = before + " ".join(words)
    return shown
