"""A model and labelled rows it has not seen: what it says of them, as a whole and tree by tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._arrays.features import FeatureArrays, feature_arrays
from .._arrays.labels import known_labels
from .._model.inputs import new_rows
from .._model.prediction import Predictor
from ..classifier import LdSMClassifier
from ..datasets.dataset import Dataset
from ..metrics.calibration import Reliability, reliability
from ..metrics.ranking import jain_propensities, ranking_report
from ..text.corpus import read_pairs, read_texts
from ..text.tagger import TextTagger

KS = (1, 3, 5)
# What people call the metrics of `ldsm.metrics.ranking_report`.
SHORT_NAMES = {"precision": "P", "ndcg": "nDCG", "psp": "PSP", "psndcg": "PSnDCG"}


def check_kind(path: object, tagger: TextTagger | None, data: Dataset) -> None:
    """Raise unless the rows are what the model, loaded from the path, reads: texts or features."""
    if (data.texts is not None) != (tagger is not None):
        has, wants = ("texts", "features") if data.texts is not None else ("features", "texts")
        raise ValueError(f"The model {path} reads {wants}, and the data holds {has}.")


def has_label_names(classes: NDArray[Any], data: Dataset) -> bool:
    """Whether the labels of model and rows are names or numbers; raises unless both are alike."""
    named = any(isinstance(label, str) for label in classes[:1].tolist())
    if named != (data.label_names is not None):
        has, wants = ("numbers", "names") if named else ("names", "numbers")
        raise ValueError(
            f"The model's labels are {wants}, those of the data {has}: they cannot be compared."
        )
    return named


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
        The deepest tree's depth of each.
    whole : dict of str to float, optional
        The same metrics of the model with its second stage, where it has one.
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
        Of the trees with the second stage, where there is one.
    """

    single: dict[str, NDArray[np.float64]]
    together: dict[str, float]
    whole: dict[str, float] | None


class HeldOut:
    """A fitted model beside labelled rows, best such that training has not seen.

    Parameters
    ----------
    model : LdSMClassifier or TextTagger
    X : matrix, texts or Dataset
        What the model's `predict_topk` takes, or a Dataset, which brings its labels along.
    y : labels, optional
        In the forms that `fit` takes, or a 0/1 matrix in the columns of `classes_`. Labels that
        training never saw are left out.
    feature_names : sequence of str, optional
        For models that read features; else the Dataset's, the model's own, or x0, x1 ...

    Examples
    --------
    >>> from ldsm import LdSMClassifier, datasets
    >>> train = datasets.make_xmc(300, 60, 20, seed=0)
    >>> test = datasets.make_xmc(100, 60, 20, seed=0, part="test")
    >>> held_out = HeldOut(LdSMClassifier(4, random_state=0).fit(train), test)
    >>> held_out.tree_curve().sizes
    array([1, 2, 4])
    """

    def __init__(
        self,
        model: LdSMClassifier | TextTagger,
        X: Any,
        y: Any = None,
        *,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        clf = classifier_of(model)
        label_names = None
        if isinstance(X, Dataset):
            if y is not None:
                raise ValueError("A Dataset brings its own labels: y must be left out.")
            feature_names = X.feature_names if feature_names is None else feature_names
            X, y, label_names = X.texts if X.X is None else X.X, X.Y, X.label_names
        texts: list[str] | None = None
        if isinstance(model, TextTagger):
            if y is None:
                pairs = list(read_pairs(X))
                X, y = [text for text, _ in pairs], [tags for _, tags in pairs]
            texts = list(read_texts(X))
            X = model.vectorize(texts)
            feature_names = model.vectorizer_.get_feature_names_out()
        elif y is None:
            raise ValueError("y must hold the labels of the rows. Got None.")
        elif feature_names is None:
            feature_names = getattr(clf, "feature_names_in_", None)
        self.clf = clf
        self.x: FeatureArrays = new_rows(clf, X)
        self.truth = _truth(clf, y, label_names)
        self.texts = texts
        self.feature_names: list[str] = (
            [f"x{i}" for i in range(clf.n_features_in_)]
            if feature_names is None
            else [str(name) for name in feature_names]
        )
        if self.x.n_rows != self.truth.shape[0]:
            raise ValueError(
                "X and y must have the same number of rows. "
                f"Got {self.x.n_rows} and {self.truth.shape[0]}."
            )
        if len(self.feature_names) != clf.n_features_in_:
            raise ValueError(
                f"'feature_names' must have {clf.n_features_in_} entries. "
                f"Got {len(self.feature_names)}."
            )

    @property
    def n_rows(self) -> int:
        return self.x.n_rows

    @property
    def n_labelled(self) -> int:
        """Rows with a label that the model knows."""
        return int(np.count_nonzero(np.diff(self.truth.indptr)))

    def row(self, i: int) -> sp.csr_array:
        """The features of one row."""
        x = self.x.rows(i, i + 1)
        return sp.csr_array((x.values, x.indices, x.indptr), shape=(1, self.clf.n_features_in_))

    def sample(self, most: int) -> HeldOut:
        """At most so many rows, evenly spaced over all of them."""
        if self.n_rows <= most:
            return self
        rows = np.linspace(0, self.n_rows - 1, most).round().astype(np.int64)
        shape = (self.n_rows, self.clf.n_features_in_)
        X = sp.csr_array((self.x.values, self.x.indices, self.x.indptr), shape=shape)[rows]
        part = HeldOut.__new__(HeldOut)
        vars(part).update(
            clf=self.clf,
            x=feature_arrays(X),
            truth=self.truth[rows],
            texts=None if self.texts is None else [self.texts[i] for i in rows.tolist()],
            feature_names=self.feature_names,
        )
        return part

    # -- what the model says ------------------------------------------------------------------

    @cached_property
    def top(self) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Columns and scores of each row's best labels, as many as the largest of `KS`."""
        return self._predictor.top_columns(self.x, min(max(KS), len(self.clf.classes_)))

    def metrics(self) -> dict[str, float]:
        """All ranking metrics at 1, 3 and 5; the propensity-scored ones from training's counts."""
        n_rows = int(self.clf.training_["rows"])
        weighted = jain_propensities(self.clf.label_counts_, n_rows) if n_rows >= 3 else None
        return ranking_report(self.truth, self.top[0], KS, propensities=weighted)

    def reliability(self, n_bins: int = 10) -> Reliability:
        """Scores of each row's five best labels against how often they are true."""
        return reliability(self.truth, *self.top, n_bins=n_bins)

    def tree_curve(self, metric: str = "precision") -> MetricCurve:
        """A metric of the first 1, 2, 4 ... trees and of all, without a second stage.

        The first n trees are the forest that the same fit with ``n_estimators=n`` would have grown.
        """
        n_trees = self.clf.forest_.n_trees
        # A point next to the last one would tell nothing new, and their names would overlap.
        sizes = [2**i for i in range(n_trees.bit_length()) if 2**i <= 0.8 * n_trees] + [n_trees]
        found = [self._of_trees(0, n, metric) for n in sizes]
        return MetricCurve(np.array(sizes), _by_name(found), "trees", whole=self._whole(metric))

    def single_trees(self, metric: str = "precision") -> SingleTrees:
        """A metric of each tree alone, of all together, and with the second stage."""
        n_trees = self.clf.forest_.n_trees
        single = _by_name([self._of_trees(tree, tree + 1, metric) for tree in range(n_trees)])
        return SingleTrees(single, self._of_trees(0, n_trees, metric), self._whole(metric))

    # -- helpers ------------------------------------------------------------------------------

    @property
    def _predictor(self) -> Predictor:
        return self.clf._predictor

    def _of_trees(self, start: int, stop: int, metric: str) -> dict[str, float]:
        trees = replace(self._predictor, forest=self.clf.forest_.trees(start, stop), stage=None)
        k = min(max(KS), len(self.clf.classes_))
        return self._measured(trees.top_columns(self.x, k)[0], metric)

    def _whole(self, metric: str) -> dict[str, float] | None:
        if self.clf.second_stage_ is None:
            return None
        return self._measured(self.top[0], metric)

    def _measured(self, columns: NDArray[np.int32], metric: str) -> dict[str, float]:
        if metric not in ("precision", "ndcg"):
            raise ValueError(f"'metric' must be 'precision' or 'ndcg'. Got {metric!r}.")
        found = ranking_report(self.truth, columns, KS)
        return {f"{SHORT_NAMES[metric]}@{k}": found[f"{metric}@{k}"] for k in KS}


def classifier_of(model: LdSMClassifier | TextTagger) -> LdSMClassifier:
    """The fitted classifier, a tagger's own too."""
    if isinstance(model, TextTagger):
        check_is_fitted(model, "classifier_")
        return model.classifier_
    if not isinstance(model, LdSMClassifier):
        raise ValueError(
            f"'model' must be a fitted LdSMClassifier or TextTagger. Got {type(model).__name__}."
        )
    check_is_fitted(model, "forest_")
    return model


def _truth(clf: LdSMClassifier, y: Any, names: Sequence[str] | None) -> sp.csr_array:
    if sp.issparse(y) and y.nnz == 0:  # no label at all is wrong in training only
        return sp.csr_array((y.shape[0], len(clf.classes_)), dtype=np.int8)
    return known_labels(y, names, clf.classes_, clf._label_form)


def _by_name(found: Sequence[dict[str, float]]) -> dict[str, NDArray[np.float64]]:
    return {name: np.array([metrics[name] for metrics in found]) for name in found[0]}
