"""Facts about the model, and about its trees: for those who tune or debug it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .._model.facts import counted_features, model_facts, shown_history, shown_params
from .._version import __version__
from .._wording import bare, duration, number, size
from ..evaluation import Evaluation
from ..evaluation.alignment import Estimator
from .figures import tree_figures
from .html import Markup, element, facts, joined, note, table
from .label_table import label_name
from .labels import LabelCounts, mean_by_label, prediction_work

_MAX_SLOW = 10


def model_section(evaluation: Evaluation, fingerprint: str, *, reads_texts: bool) -> Markup:
    """Size, training and identity of the model, and the labels of the rows."""
    model = evaluation.model
    known, stage = model_facts(model), model.second_stage
    finished = model.training.get("finished", "-")
    return facts(
        {
            "rows here": number(evaluation.n_rows),
            "labels here": number(int(np.count_nonzero(np.diff(evaluation.truth.tocsc().indptr)))),
            "training rows": number(known["training_rows"]),
            "features": counted_features(model, "word" if reads_texts else "feature"),
            "labels": number(known["labels"]),
            "labels with training rows": number(known["labels_with_rows"]),
            "trees": number(known["trees"]),
            "second stage": "none" if stage is None else stage.blend.kind,
            "memory": size(known["memory"]),
            "trained in": duration(model.training["seconds"]),
            "trained at": finished.replace("T", " ").replace("+00:00", " UTC"),
            **{f"{when} UTC": what for when, what in shown_history(model).items()},
            "fingerprint": fingerprint[:16] + "…",
            "ldsm": __version__,
        }
    )


def internals(
    evaluation: Evaluation, estimator: Estimator, counts: LabelCounts, params: Mapping[str, Any]
) -> Iterator[Markup]:
    """The trees, the labels that take the most time, and the parameters."""
    model = evaluation.model
    known = model_facts(model)
    yield facts(
        {
            "children per node": number(model.forest.arity),
            "nodes": number(known["nodes"]),
            "deepest leaf": number(known["depth"]),
            "mean depth of a row's leaf": f"{known['mean_leaf_depth']:.1f}",
            f"log{chr(ord('₀') + model.forest.arity)} of the labels": f"{known['log_M_K']:.1f}",
            "leaves per row and tree": f"{known['leaves_per_row']:.2f}",
        }
    )
    yield element("div", joined(tree_figures(evaluation, estimator), "\n"), class_="grid")
    yield element("h3", "Slowest labels")
    yield from _slow(evaluation, counts)
    yield element("h3", "Parameters")
    yield facts(shown_params(params, model, bare))


def _slow(evaluation: Evaluation, counts: LabelCounts) -> list[Markup]:
    work = prediction_work(evaluation.model.forest, evaluation.x.read_by("trees"))
    enough = counts.enough(_MAX_SLOW)
    n_trees = evaluation.model.forest.n_trees
    text = note(
        "The work of predicting a row, over all trees: splits evaluated, with one linear regressor "
        f"per child; leaves reached, {n_trees:,} if the row takes one path in every tree; and the "
        "mean depth of these leaves. The table shows means over the rows of a label, for the "
        f"labels with the most splits among those with at least {enough} rows. The mean over all "
        f"rows is {work.splits.mean():.1f} splits and {work.leaves.mean():.1f} leaves "
        f"at a mean depth of {work.depth.mean():.1f}."
    )
    able = np.flatnonzero(counts.rows >= enough)
    if not len(able):
        return [text, element("p", "No row has a label.")]
    splits, leaves, depth = (mean_by_label(values, evaluation) for values in work)
    slowest = able[np.lexsort((able, -splits[able]))[:_MAX_SLOW]]
    rows = [
        [
            label_name(evaluation, label),
            *(f"{values[label]:.1f}" for values in (splits, leaves, depth)),
            number(int(counts.rows[label])),
        ]
        for label in slowest.tolist()
    ]
    return [text, table(["label", "splits", "leaves", "mean depth", "rows"], rows, cards=True)]
