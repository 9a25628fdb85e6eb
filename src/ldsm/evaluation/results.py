"""Results of an evaluation: metrics at k, and curves over the trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..datasets.dataset import Unseen

KS = (1, 3, 5)
# The usual names of the metrics in `ldsm.metrics.ranking_report`.
SHORT_NAMES = {"precision": "P", "ndcg": "nDCG", "psp": "PSP", "psndcg": "PSnDCG"}


@dataclass(frozen=True, eq=False)
class Scores:
    """The metrics of one evaluation, as shares.

    Attributes
    ----------
    ks : sequence of int
    ranking : dict of str to float
        "precision@1" and so on. If some labels have no training row, "recall_all@1" counts them as
        misses.
    f1 : dict of str to float
        F1 of predicted sets by average; empty if the model predicts one label per row.
    unseen : Unseen
        Labels and features of the data that were not seen in training.
    n_rows : int
    best_precision : dict of int to float
        The precision at each k of a perfect model; below 1 if rows have fewer than k labels.
    labels_per_row : float
        Mean number of true labels, unseen ones included.
    n_unlabelled : int
        Number of rows without a true label; they count as misses in precision.
    n_predicted : int
        Number of labels in all predicted sets.
    set_precision, set_recall : float
        Precision and recall of the predicted sets, over all (row, label) pairs; nan without sets.
    """

    ks: Sequence[int]
    ranking: dict[str, float]
    f1: dict[str, float]
    unseen: Unseen
    n_rows: int
    best_precision: dict[int, float]
    labels_per_row: float
    n_unlabelled: int
    n_predicted: int
    set_precision: float
    set_recall: float

    def as_dict(self) -> dict[str, Any]:
        """All figures by name, as ``ldsm evaluate --json`` prints them."""
        return {
            "rows": self.n_rows,
            "labels_per_row": self.labels_per_row,
            **self.ranking,
            **{f"best_precision@{k}": value for k, value in self.best_precision.items()},
            **{f"f1_{average}": value for average, value in self.f1.items()},
            "labels_predicted": self.n_predicted,
            "set_precision": self.set_precision,
            "set_recall": self.set_recall,
            "rows_without_labels": self.n_unlabelled,
            "unseen_labels": len(self.unseen.labels),
            "unseen_occurrences": sum(self.unseen.labels.values()),
        }


@dataclass(frozen=True, eq=False)
class MetricCurve:
    """Metrics of models of growing size.

    Attributes
    ----------
    sizes : array (n,)
    metrics : dict of str to array (n,)
        Shares in [0, 1] by name, such as "P@1".
    what : str
        What the sizes count, for example "trees" or "max_nodes".
    depths : array (n,), optional
        The depth of the deepest tree of each model.
    whole : dict of str to float, optional
        The same metrics with the model's second stage, if it has one.
    """

    sizes: NDArray[Any]
    metrics: dict[str, NDArray[np.float64]]
    what: str
    depths: NDArray[Any] | None = None
    whole: dict[str, float] | None = None

    def __post_init__(self) -> None:
        columns = {"depths": self.depths, **self.metrics}
        for name, column in columns.items():
            if column is not None and np.shape(column) != np.shape(self.sizes):
                raise ValueError(
                    f"{name!r} must have a number for each of the {np.size(self.sizes)} sizes. "
                    f"Got shape {np.shape(column)}."
                )


@dataclass(frozen=True, eq=False)
class SingleTrees:
    """Metrics of each tree alone and of all trees together.

    Attributes
    ----------
    single : dict of str to array (n_trees,)
        Metrics of each tree alone, by name such as "P@1".
    together : dict of str to float
        Metrics of the trees together.
    whole : dict of str to float or None
        Metrics with the second stage, if there is one.
    """

    single: dict[str, NDArray[np.float64]]
    together: dict[str, float]
    whole: dict[str, float] | None
