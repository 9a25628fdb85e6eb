"""Typical rows of the labels of a model: a stand-in for training rows, of which none is kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._arrays.features import feature_arrays
from .._features.blocks import MAIN, Blocks
from .._matching.feature_index import mean_rows
from .fitted import FittedModel
from .relabel import without_remainder


def typical_rows(model: FittedModel, labels: NDArray[np.int64]) -> Blocks | None:
    """The mean rows of some labels; None for a model without an index."""
    model = without_remainder(model)
    stage = model.second_stage
    if stage is None or stage.index is None or stage.masses is None:
        return None
    counts, n_rows = model.label_counts, model.n_training_rows
    means = mean_rows(stage.index, stage.masses[MAIN], labels, counts, n_rows)
    return model.layout.with_main(feature_arrays(means))


def changed_answers(before: FittedModel, after: FittedModel, most: int) -> tuple[int, int] | None:
    """The number of typical rows whose best label has changed, and the number of all compared.

    These are the rows of the most frequent labels. None without such rows. `after` has learned
    further rows, and perhaps features.
    """
    labels = before.fill_order[:most].astype(np.int64)
    labels = labels[before.label_counts[labels] > 0]
    rows = typical_rows(before, labels)
    if rows is None:
        return None
    best = (
        model.classes[model.top_columns(model.layout.with_main(rows.main), 1)[0][:, 0]]
        for model in (before, after)
    )
    old, new = (names.tolist() for names in best)
    return sum(a != b for a, b in zip(old, new, strict=True)), len(labels)
