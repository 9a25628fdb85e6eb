"""How well a model does on labelled rows: rows in its columns, all metrics in one report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import metrics
from .._runtime.wording import percent
from ..datasets import Dataset, Unseen
from ..evaluation.held_out import SHORT_NAMES, check_kind, has_label_names
from .model import Model
from .screen import Screen

# Rows of the report, as `metrics.ranking_report` names them, and what people call them.
NAMES = {
    **SHORT_NAMES,
    "recall": "recall",
    "recall_all": "recall, all labels",
    "coverage": "coverage",
}
AVERAGES = ("micro", "macro", "samples")


@dataclass(frozen=True)
class Scores:
    """The metrics of one evaluation, as shares."""

    ks: Sequence[int]
    ranking: dict[str, float]  # "precision@1" and so on
    f1: dict[str, float]  # by average; empty where the model predicts one label per row
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


def in_columns(model: Model, data: Dataset) -> tuple[Dataset, Unseen]:
    """The rows in the model's columns, and what it never saw."""
    check_kind(model.path, model.tagger, data)
    classes = model.clf.classes_
    named = has_label_names(classes, data)
    if not named and not np.array_equal(classes, np.arange(len(classes))):
        # Numbers that are no column numbers are compared as the names they are.
        named = True
        data = replace(data, label_names=[str(i) for i in range(data.n_labels)])
    # One row with all labels of training stands for the training set.
    seen = sp.csr_array((model.clf.label_counts_ > 0).astype(np.int32)[None, :])
    reference = Dataset(
        None if data.X is None else sp.csr_array((1, model.clf.n_features_in_), dtype=np.float32),
        seen,
        texts=None if data.texts is None else [""],
        label_names=[str(label) for label in classes] if named else None,
    )
    return replace(data, feature_names=None).align(reference)


def score(
    model: Model,
    data: Dataset,
    ks: Sequence[int] = (1, 3, 5),
    propensities: NDArray[np.float64] | None = None,
    tail: float = 0.0,
) -> Scores:
    """All metrics of the model on labelled rows; `tail` favours rare labels in the order."""
    aligned, unseen = in_columns(model, data)
    X = model.features(aligned)
    best = model.top_columns(X, min(max(ks), len(model.clf.classes_)), tail)
    found = metrics.ranking_report(aligned.Y, best, ks, propensities=propensities)
    if unseen.dropped_per_row.any():
        # Over all true labels: those without a column get one that is never predicted.
        everything = sp.hstack([aligned.Y, _ones(unseen.dropped_per_row)], format="csr")
        for k in ks:
            found[f"recall_all@{k}"] = metrics.recall_at_k(everything, best, k)
    f1 = {}
    predicted = model.clf.predict(X)
    if np.ndim(predicted) != 1:
        f1 = {a: metrics.f1_score(aligned.Y, predicted, average=a) for a in AVERAGES}
    return Scores(ks, found, f1, unseen, len(data))


def show(screen: Screen, scores: Scores, title: str) -> None:
    """The report as a table, in per cent."""
    rows = [
        [name, *(percent(scores.ranking[f"{key}@{k}"]) for k in scores.ks)]
        for key, name in NAMES.items()
        if f"{key}@{scores.ks[0]}" in scores.ranking
    ]
    screen.table(["%", *(f"@{k}" for k in scores.ks)], rows, title=title)
    if scores.f1:
        screen.table(["%, of sets", *AVERAGES], [["F1", *map(percent, scores.f1.values())]])
    if scores.unseen.labels or scores.unseen.features:
        screen.note(f"in the data: {scores.unseen}")


def propensities_of(
    model: Model, dataset: str | None = None, a: float | None = None, b: float | None = None
) -> NDArray[np.float64] | None:
    """Propensities from the label counts of training; None with fewer than 3 rows."""
    counts = np.asarray(model.clf.label_counts_, dtype=np.int64)
    n_rows = max(model.n_rows, int(counts.max(initial=0)))
    if n_rows < 3:
        return None
    # They depend on the counts alone: any matrix with these column sums will do.
    rows = np.concatenate([np.arange(count) for count in counts.tolist()])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    Y = sp.csc_array((np.ones(len(rows), np.int8), rows, offsets), shape=(n_rows, len(counts)))
    return metrics.propensities(Y, dataset=dataset, a=a, b=b)


def _ones(counts: NDArray[np.int64]) -> Any:
    """A 0/1 matrix whose rows begin with so many ones."""
    indptr = np.concatenate([[0], np.cumsum(counts)])
    columns = np.concatenate([np.arange(count) for count in counts.tolist()])
    shape = (len(counts), int(counts.max(initial=0)))
    return sp.csr_array((np.ones(len(columns), np.int32), columns, indptr), shape=shape)
