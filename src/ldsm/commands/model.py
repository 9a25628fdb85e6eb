"""A model file as the commands see it: the trees, and the words before them if it reads texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from ..classifier import LdSMClassifier
from ..datasets import Dataset
from ..loading import load
from ..text import TextTagger

ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", exists=True, dir_okay=False, help="A .ldsm file.")
]
JobsOption = Annotated[
    int | None, typer.Option(help="Threads; -1 for all cores, by default what the model says.")
]


@dataclass(frozen=True)
class Model:
    """A fitted classifier, alone or within a tagger of texts."""

    path: Path
    clf: LdSMClassifier
    tagger: TextTagger | None

    @property
    def fingerprint(self) -> str:
        return str((self.tagger or self.clf).fingerprint_)

    @property
    def n_rows(self) -> int:
        """Training rows; a tree saw its share of them."""
        return round(int(self.clf.forest_.node_rows[0]) / self.clf.tree_params_.subsample)

    def features(self, rows: Dataset | Sequence[str]) -> Any:
        """Rows as the trees read them."""
        if isinstance(rows, Dataset):
            if rows.X is not None:
                return rows.X
            rows = rows.texts or []
        assert self.tagger is not None
        return self.tagger.vectorizer_.transform(rows)

    def top_columns(self, X: Any, k: int) -> NDArray[Any]:
        """The columns of each row's k best labels."""
        names, _ = self.clf.predict_topk(X, k=k)
        column = {label: i for i, label in enumerate(self.clf.classes_.tolist())}
        return np.array([[column[name] for name in row] for row in names.tolist()], dtype=np.int32)

    def sets(
        self, X: Any, threshold: float | None, labels: Sequence[Any] | None
    ) -> Iterator[list[tuple[Any, float]]]:
        """For each row the labels that reach the threshold, best first."""
        scores = self.clf.predict_proba(X, labels=labels)
        limits = np.asarray(self.clf.threshold_ if threshold is None else threshold)
        classes = self.clf.classes_
        for row in range(scores.shape[0]):
            part = slice(*scores.indptr[row : row + 2])
            columns, values = scores.indices[part], scores.data[part]
            reached = values >= (limits[columns] if limits.ndim else limits)
            columns, values = columns[reached], values[reached]
            order = np.lexsort((columns, -values))
            yield list(zip(classes[columns[order]].tolist(), values[order].tolist(), strict=True))


def open_model(path: Path, n_jobs: int | None = None) -> Model:
    """Load a model file, whichever kind it holds."""
    model = as_model(path, load(path))
    if n_jobs is not None:
        model.clf.set_params(n_jobs=n_jobs)
    return model


def as_model(path: Path, fitted: LdSMClassifier | TextTagger) -> Model:
    """A fitted object with the path it has or will have."""
    if isinstance(fitted, TextTagger):
        return Model(path, fitted.classifier_, fitted)
    return Model(path, fitted, None)
