"""A model file as the commands see it: the trees, and the words before them if it reads texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
import typer
from numpy.typing import NDArray

from .._loading import load
from .._model.thresholds import reaching
from ..classifier import LdSMClassifier
from ..datasets import Dataset
from ..evaluation.held_out import check_kind
from ..text.tagger import TextTagger

ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", exists=True, dir_okay=False, help="A model file.")
]
JobsOption = Annotated[
    int | None, typer.Option(help="Threads; -1 for all cores. By default what the model says.")
]
TailOption = Annotated[
    float,
    typer.Option(
        min=0, metavar="W", help="Favour rare labels: order by score / propensity^W; 1 suits PSP."
    ),
]


@dataclass(frozen=True)
class Model:
    """A fitted classifier, alone or within a tagger of texts."""

    path: Path
    clf: LdSMClassifier
    tagger: TextTagger | None

    @property
    def estimator(self) -> Any:
        """What was trained and is saved."""
        return self.tagger if self.tagger is not None else self.clf

    @property
    def kind(self) -> str:
        return "texts to tags" if self.tagger is not None else "features to labels"

    @property
    def fingerprint(self) -> str:
        return str(self.estimator.fingerprint_)

    @property
    def n_rows(self) -> int:
        """Training rows."""
        return int(self.clf.training_["rows"])

    def words(self) -> list[str]:
        """The words of a model that reads texts, in the order of features."""
        assert self.tagger is not None
        found: list[str] = self.tagger.vectorizer_.get_feature_names_out().tolist()
        return found

    def features(self, rows: Dataset | Sequence[str]) -> Any:
        """Rows as the trees read them; features that training never saw are cut off."""
        if isinstance(rows, Dataset):
            check_kind(self.path, self.tagger, rows)
        if not isinstance(rows, Dataset) or rows.X is None:
            assert self.tagger is not None
            return self.tagger.vectorize(rows)
        X, width = rows.X, self.clf.n_features_in_
        if X.shape[1] > width:
            return X[:, :width]
        if X.shape[1] < width:
            return sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
        return X

    def top_columns(self, X: Any, k: int, tail: float = 0.0) -> NDArray[Any]:
        """The columns of each row's k best labels."""
        names, _ = self.clf.predict_topk(X, k=k, tail=tail)
        column = {label: i for i, label in enumerate(self.clf.classes_.tolist())}
        return np.array([[column[name] for name in row] for row in names.tolist()], dtype=np.int32)

    def best(
        self, X: Any, k: int, labels: Sequence[Any] | None = None, tail: float = 0.0
    ) -> Iterator[list[tuple[Any, float]]]:
        """For each row its k best labels with their scores; labels without a score are left out."""
        names, scores = self.clf.predict_topk(X, k=k, labels=labels, tail=tail)
        for row, values in zip(names.tolist(), scores.tolist(), strict=True):
            yield [(name, score) for name, score in zip(row, values, strict=True) if score > 0]

    def sets(
        self, X: Any, threshold: float | None, labels: Sequence[Any] | None = None
    ) -> Iterator[list[tuple[Any, float]]]:
        """For each row the labels that reach the threshold, the model's own if None, best first."""
        scores = sp.csr_array(self.clf.predict_proba(X, labels=labels))
        scores = reaching(scores, self.clf.threshold_ if threshold is None else threshold)
        for row in range(scores.shape[0]):
            part = slice(*scores.indptr[row : row + 2])
            columns, values = scores.indices[part], scores.data[part]
            order = np.lexsort((columns, -values))
            names = self.clf.classes_[columns[order]].tolist()
            yield list(zip(names, values[order].tolist(), strict=True))


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
