"""What an evaluation ends with: metrics at some k, curves over the trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..datasets.dataset import Unseen

KS = (1, 3, 5)
# What people call the metrics of `ldsm.metrics.ranking_report`.
SHORT_NAMES = {"precision": "P", "ndcg": "nDCG", "psp": "PSP", "psndcg": "PSnDCG"}


@dataclass(frozen=True, eq=False)
class Scores:
    """The metrics of one evaluation, as shares.

    Attributes
    ----------
    ks : sequence of int
    ranking : dict of str to float
        "precision@1" and so on; "recall_all@1", where labels were unseen in training, counts these
        as misses.
    f1 : dict of str to float
        Of predicted sets, by average; empty where the model predicts one label per row.
    unseen : Unseen
        What of the data training never saw.
    n_rows : int
    """

    ks: Sequence[int]
    ranking: dict[str, float]
    f1: dict[str, float]
    unseen: Unseen
    n_rows: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "rows": self.n_rows,
            **self.ranking,
            **{f"f1_{average}": value for average, value in self.f1.items()},
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
        What the sizes are, "trees" or "max_nodes" for instance.
    depths : array (n,), optional
        The depth of the deepest tree of each.
    whole : dict of str to float, optional
        The same metrics of the model with its second stage, if it has one.
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
    """Each tree by itself, and all together.

    Attributes
    ----------
    single : dict of str to array (n_trees,)
        Metrics, such as "P@1", of each tree alone.
    together : dict of str to float
        Of the trees together.
    whole : dict of str to float or None
        Of the trees with the second stage, if there is one.
    """

    single: dict[str, NDArray[np.float64]]
    together: dict[str, float]
    whole: dict[str, float] | None
