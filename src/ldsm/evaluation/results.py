"""Results of an evaluation: metrics at k, and curves over the trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..datasets.alignment import Unseen
from .sets import SetScores

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
    sets : dict of str to SetScores
        Quality of the predicted sets: "model" at the threshold of the model, "0.5" at 0.5, and
        "best" at the common threshold with the best samples F1 on these rows. Empty if the model
        predicts one label per row.
    unseen : Unseen
        Labels and features of the data that were not seen in training.
    n_rows : int
    best_precision : dict of int to float
        The precision at each k of a perfect model; below 1 if rows have fewer than k labels.
    labels_per_row : float
        Mean number of true labels, unseen ones included.
    n_unlabelled : int
        Number of rows without a true label; they count as misses in precision.
    """

    ks: Sequence[int]
    ranking: dict[str, float]
    sets: dict[str, SetScores]
    unseen: Unseen
    n_rows: int
    best_precision: dict[int, float]
    labels_per_row: float
    n_unlabelled: int

    @property
    def f1(self) -> dict[str, float]:
        """F1 of the predicted sets by average; empty if the model predicts one label per row."""
        return self.sets["model"].f1 if self.sets else {}

    @property
    def n_predicted(self) -> int:
        """Number of labels in all predicted sets."""
        return self.sets["model"].n_predicted if self.sets else 0

    @property
    def set_precision(self) -> float:
        """The share of predicted (row, label) pairs that are true; nan without sets."""
        return self.sets["model"].precision if self.sets else float("nan")

    @property
    def set_recall(self) -> float:
        """The share of true (row, label) pairs that are predicted; nan without sets."""
        return self.sets["model"].recall if self.sets else float("nan")

    def as_dict(self) -> dict[str, Any]:
        """All figures by name, as ``ldsm evaluate --json`` prints them."""
        return {
            "rows": self.n_rows,
            "labels_per_row": self.labels_per_row,
            **self.ranking,
            **{f"best_precision@{k}": value for k, value in self.best_precision.items()},
            **self._f1_by_name(),
            "labels_predicted": self.n_predicted,
            "set_precision": self.set_precision,
            "set_recall": self.set_recall,
            "rows_without_labels": self.n_unlabelled,
            "unseen_labels": len(self.unseen.labels),
            "unseen_occurrences": sum(self.unseen.labels.values()),
        }

    def _f1_by_name(self) -> dict[str, float | str | None]:
        """For example "f1_micro" at the model's threshold, "f1_micro@0.5" and "threshold"."""
        found: dict[str, float | str | None] = {}
        for name, sets in self.sets.items():
            where = "" if name == "model" else f"@{name}"
            found |= {f"f1_{average}{where}": value for average, value in sets.f1.items()}
            if self.unseen.dropped_per_row.any():
                found |= {f"f1_all_{a}{where}": value for a, value in sets.f1_all.items()}
            if name != "0.5":
                found[f"threshold{where}"] = sets.threshold
        return found


@dataclass(frozen=True, eq=False)
class ThresholdCurve:
    """Quality of the predicted sets at every threshold.

    Attributes
    ----------
    thresholds : array (n,)
    metrics : dict of str to array (n,)
        Shares in [0, 1] by name: "F1", "precision" and "recall"; nan where nothing is predicted.
    current : float or None
        The threshold of the model; None if it has no common one.
    best : float
        The threshold with the best F1 on these rows.
    """

    thresholds: NDArray[np.float64]
    metrics: dict[str, NDArray[np.float64]]
    current: float | None
    best: float


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
