"""Cross-validation with ranking metrics, for every form of X and y that `fit` accepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

from .._arrays.labels import label_arrays
from .._arrays.matrices import label_csr
from .._wording import percent
from ..classifier import LdSMClassifier
from ..datasets.dataset import Dataset
from ..text import TextTagger
from ..text.corpus import read_pairs
from .alignment import Estimator
from .evaluation import Evaluation
from .results import KS, SHORT_NAMES, Scores

_NAMES = {**SHORT_NAMES, "recall": "recall", "r_precision": "RP"}


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """The metrics of each fold; ``print`` shows their means and standard deviations.

    Attributes
    ----------
    folds : list of Scores
    """

    folds: list[Scores]

    @cached_property
    def mean(self) -> dict[str, float]:
        """The mean over the folds by metric, with the names of `Scores.as_dict`."""
        return {name: float(np.mean(values)) for name, values in self._values.items()}

    @cached_property
    def std(self) -> dict[str, float]:
        """The standard deviation over the folds (with n - 1), by metric."""
        return {name: float(np.std(values, ddof=1)) for name, values in self._values.items()}

    @cached_property
    def _values(self) -> dict[str, list[float]]:
        every = [fold.as_dict() for fold in self.folds]
        shared = [name for name in every[0] if all(name in fold for fold in every)]
        return {name: [fold[name] for fold in every] for name in shared}

    def __str__(self) -> str:
        ks = self.folds[0].ks
        lines = ["%".ljust(8) + "".join(f"@{k}".rjust(15) for k in ks)]
        for key, name in _NAMES.items():
            if f"{key}@{ks[0]}" in self.mean:
                cells = [self._shown(f"{key}@{k}") for k in ks]
                lines.append(name.ljust(8) + "".join(cell.rjust(15) for cell in cells))
        sets = [name for name in self.mean if name.startswith("f1_")]
        lines += [f"F1, {name.removeprefix('f1_')}: {self._shown(name)}" for name in sets]
        return "\n".join(lines)

    def _shown(self, name: str) -> str:
        return f"{percent(self.mean[name])} ± {percent(self.std[name])}"


def cross_validate(
    model: Estimator,
    X: Any,
    y: Any = None,
    *,
    cv: Any = 5,
    ks: Sequence[int] = KS,
    random_state: Any = 0,
) -> CrossValidation:
    """Fit a clone of the model on each part of the rows and evaluate it on the rest.

    scikit-learn's ``cross_val_score`` takes dense y, and lists only with a splitter such as
    ``KFold(5)``; this function accepts every form that `fit` accepts, sparse matrices included.
    Labels that occur only in held-out rows count as misses.

    Parameters
    ----------
    model : LdSMClassifier or TextTagger
        Cloned for each fold; need not be fitted.
    X : matrix, texts or Dataset
        Rows or texts, as for `fit`; a Dataset includes its labels.
    y : labels, optional
        In any form that `fit` accepts.
    cv : int or splitter, default=5
        Number of folds of shuffled rows, or a scikit-learn splitter.
    ks : sequence of int, default=(1, 3, 5)
        Numbers of predictions to evaluate.
    random_state : int, RandomState or None, default=0
        Seed for shuffling the rows.

    Examples
    --------
    >>> from ldsm import LdSMClassifier, datasets
    >>> data = datasets.make_xmc(300, 60, 20, seed=0)
    >>> found = cross_validate(LdSMClassifier(4), data.X, data.Y, cv=3)
    >>> len(found.folds), 0 < found.mean["precision@1"] < 1
    (3, True)
    """
    if not isinstance(model, LdSMClassifier | TextTagger):
        raise ValueError(
            f"'model' must be an LdSMClassifier or TextTagger. Got {type(model).__name__}."
        )
    data = _dataset(model, X, y)
    if isinstance(cv, str) or not hasattr(cv, "split"):
        if isinstance(cv, bool) or not isinstance(cv, int) or not 2 <= cv <= len(data):
            raise ValueError(
                f"'cv' must be an int in [2, {len(data)}], the number of rows, or a splitter. "
                f"Got {cv!r}."
            )
        cv = KFold(cv, shuffle=True, random_state=check_random_state(random_state))
    folds = []
    for train, test in cv.split(np.empty((len(data), 0))):
        fitted = clone(model).fit(data.select(train))
        evaluation = Evaluation(fitted, data.select(test))
        propensities = evaluation.model.propensities()
        folds.append(evaluation.scores(ks, propensities=propensities))
    return CrossValidation(folds)


def _dataset(model: Estimator, X: Any, y: Any) -> Dataset:
    if isinstance(X, Dataset):
        if y is not None:
            raise ValueError("A Dataset includes its labels: y must be omitted.")
        return X
    if isinstance(model, TextTagger):
        documents = list(read_pairs(X, y))
        return Dataset.from_texts([text for text, _ in documents], [tags for _, tags in documents])
    labels = label_arrays(y)
    named = None if labels.form == "sparse" else [str(label) for label in labels.classes.tolist()]
    Y = label_csr(labels.indptr, labels.indices, labels.n_labels)
    return Dataset(X if sp.issparse(X) else np.asarray(X), Y, label_names=named)
