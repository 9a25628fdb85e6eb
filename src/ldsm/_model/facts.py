"""What is said of a whole model: sizes, depth, parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._trees.levels import balanced_depth
from ..classifier import LdSMClassifier


def classifier_facts(clf: LdSMClassifier) -> dict[str, Any]:
    """Names and values of a fitted classifier, in the order they are shown."""
    forest = clf.forest_
    depth = forest.node_depth()
    leaf_rows = np.where(forest.is_leaf, forest.node_rows, 0)
    roots = forest.node_rows[forest.tree_offsets[:-1]]
    stage = clf.second_stage_
    vectors = () if stage is None else stage.vectors()
    return {
        "memory": forest.nbytes + sum(found.nbytes for _, found in vectors),
        "training_rows": int(clf.training_["rows"]),
        "features": forest.n_features,
        "labels": len(clf.classes_),
        "labels_with_rows": int(np.count_nonzero(clf.label_counts_)),
        "trees": forest.n_trees,
        "nodes": forest.n_nodes,
        "leaves_per_row": float(leaf_rows.sum() / max(1, roots.sum())),
        "mean_leaf_depth": float(np.sum(depth * leaf_rows) / max(1, leaf_rows.sum())),
        "depth": int(depth.max()),
        "log_M_K": balanced_depth(len(clf.classes_), forest.arity),
        "params": clf.get_params(deep=False),
        "tree_params": clf.tree_params_.as_dict(),
    }
