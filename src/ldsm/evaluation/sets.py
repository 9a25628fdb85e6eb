"""Predicted sets of labels, judged at any threshold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._model.sets.thresholds import (
    TUNED_FOR,
    Threshold,
    best_threshold,
    is_true,
    plain_threshold,
    reaches,
    row_numbers,
)

_MOST_ROWS = 50_000  # to search for the best threshold; the figures are of all rows


@dataclass(frozen=True, eq=False)
class SetScores:
    """Quality of the predicted sets at one threshold, as shares.

    Attributes
    ----------
    threshold : float, "f1" or None
        "f1": none, but the highest expected F1 of each row; None: one for each label.
    n_predicted : int
        Number of labels in all sets.
    precision, recall : float
        Over all (row, label) pairs; nan without predicted or true ones.
    f1 : dict of str to float
        By average: "micro", "macro", "samples".
    f1_all : dict of str to float
        Over all true labels: those unknown to the model count as misses.
    """

    threshold: float | str | None
    n_predicted: int
    precision: float
    recall: float
    f1: dict[str, float]
    f1_all: dict[str, float]


@dataclass(frozen=True)
class Counts:
    """Numbers of true, predicted and correctly predicted pairs by row or label."""

    true: NDArray[np.int64]
    predicted: NDArray[np.int64]
    right: NDArray[np.int64]

    def f1(self) -> float:
        """The mean F1; 0 where nothing is true and nothing predicted."""
        both = self.true + self.predicted
        return float(np.mean(2 * self.right / np.maximum(both, 1))) if len(both) else 0.0

    def summed(self) -> Counts:
        """The same for all pairs together."""
        return Counts(*(np.array([one.sum()]) for one in (self.true, self.predicted, self.right)))


class ScoredPairs:
    """The scores of (row, label) pairs and which of them are true.

    Parameters
    ----------
    scores : csr_array
        A pair without a stored score is never predicted.
    truth : csr_array
        True labels, 0/1.
    unknown_per_row : ndarray of int64
        Number of true labels per row that are unknown to the model.
    n_unknown : int
        Number of these labels.
    """

    def __init__(
        self,
        scores: sp.csr_array,
        truth: sp.csr_array,
        unknown_per_row: NDArray[np.int64],
        n_unknown: int,
    ) -> None:
        self.scores, self.truth = scores, truth
        self.unknown_per_row, self.n_unknown = unknown_per_row, n_unknown

    @cached_property
    def is_true(self) -> NDArray[np.bool_]:
        """Whether each stored pair is true."""
        return is_true(self.scores, self.truth)

    def at(self, threshold: Threshold) -> SetScores:
        """The quality of the sets of labels that reach the threshold."""
        by_label, by_row = self.counts(threshold)
        every = by_label.summed()
        n_true, n_predicted = int(every.true[0]), int(every.predicted[0])
        n_right = int(every.right[0])
        f1 = {"micro": every.f1(), "macro": by_label.f1(), "samples": by_row.f1()}
        all_rows = replace(by_row, true=by_row.true + self.unknown_per_row)
        n_labels = len(by_label.true)
        f1_all = {
            "micro": all_rows.summed().f1(),
            "macro": f1["macro"] * n_labels / (n_labels + self.n_unknown),
            "samples": all_rows.f1(),
        }
        return SetScores(
            plain_threshold(threshold),
            n_predicted,
            n_right / n_predicted if n_predicted else float("nan"),
            n_right / n_true if n_true else float("nan"),
            f1,
            f1_all,
        )

    def counts(self, threshold: Threshold) -> tuple[Counts, Counts]:
        """Counts by label and by row at a threshold."""
        n_rows, n_labels = self.truth.shape
        rows, labels = row_numbers(self.scores), self.scores.indices
        chosen = reaches(self.scores, threshold)
        right = chosen & self.is_true
        return (
            Counts(
                *(
                    np.bincount(of, minlength=n_labels)
                    for of in (self.truth.indices, labels[chosen], labels[right])
                )
            ),
            Counts(
                np.diff(self.truth.indptr),
                *(np.bincount(rows[which], minlength=n_rows) for which in (chosen, right)),
            ),
        )

    def best_threshold(self, average: str = TUNED_FOR) -> float:
        """The common threshold with the highest F1 of these very rows."""
        rows = evenly_spaced(self.truth.shape[0], _MOST_ROWS)
        return best_threshold(self.scores[rows], self.truth[rows], average)


def evenly_spaced(n_rows: int, most: int) -> NDArray[np.int64]:
    """The numbers of at most `most` of the rows."""
    rows = np.linspace(0, n_rows - 1, min(n_rows, most)).round()
    return np.asarray(rows, dtype=np.int64)
