"""Evaluate a model on labelled rows, as a whole and tree by tree."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._arrays.labels import known_labels
from .._arrays.matrices import canonical_csr
from .._features.blocks import Blocks
from .._model.fitted import FittedModel
from .._model.inputs import new_rows
from .._model.sets.thresholds import TUNED_FOR
from ..datasets.alignment import Unseen
from ..datasets.dataset import Dataset
from ..metrics import ranking_report, recall_at_k
from ..metrics.calibration import Reliability, reliability
from ..metrics.hits import RankingSums
from ..metrics.ranking import ranking_sums
from ..text import TextTagger
from ..text.corpus import read_pairs, read_texts
from ..text.fitted import fitted_text
from .alignment import Estimator, classifier_of, in_columns, model_rows
from .results import KS, SHORT_NAMES, MetricCurve, Scores, SingleTrees, ThresholdCurve
from .sets import ScoredPairs, evenly_spaced


class Evaluation:
    """Evaluates a fitted model on labelled rows, preferably rows not used in training.

    Parameters
    ----------
    model : LdSMClassifier or TextTagger
        Fitted.
    X : matrix, texts or Dataset
        Input of the model's `predict_topk`, or a Dataset, which includes its labels. Labels and
        features of a Dataset are aligned with the model's columns.
    y : labels, optional
        In any form that `fit` accepts, or a 0/1 matrix with the columns of `classes_`. Labels
        unknown to the model are left out.
    feature_names : sequence of str, optional
        For models that read features; by default the Dataset's, the model's own, or x0, x1 ...

    Attributes
    ----------
    model : FittedModel
    x : Blocks
        The rows.
    truth : csr_array of shape (n_rows, n_labels)
        Their labels, 0/1.
    texts : list of str or None
    unseen : Unseen
        Labels and features of the data that were not seen in training.

    Examples
    --------
    >>> from ldsm import LdSMClassifier, datasets
    >>> train = datasets.make_xmc(300, 60, 20, seed=0)
    >>> test = datasets.make_xmc(100, 60, 20, seed=0, part="test")
    >>> evaluation = Evaluation(LdSMClassifier(4, random_state=0).fit(train), test)
    >>> evaluation.tree_curve().sizes
    array([1, 2, 4])
    """

    def __init__(
        self,
        model: Estimator,
        X: Any,
        y: Any = None,
        *,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        clf = classifier_of(model)
        names: Sequence[str] | NDArray[Any] | None = feature_names
        texts: list[str] | None = None
        unseen = None
        if isinstance(X, Dataset):
            if y is not None:
                raise ValueError("A Dataset includes its labels: y must be omitted.")
            if names is None and X.feature_names is not None:
                # The data may have more or fewer features than the model.
                known = list(X.feature_names)[: clf.n_features_in_]
                names = known + _numbered(len(known), clf.model_)
            aligned, unseen = in_columns(model, X)
            texts = None if aligned.texts is None else list(aligned.texts)
            X, truth = model_rows(model, aligned), aligned.Y
        else:
            if isinstance(model, TextTagger):
                if y is None:
                    documents = list(read_pairs(X))
                    X, y = [text for text, _ in documents], [tags for _, tags in documents]
                texts = list(read_texts(X))
                X = fitted_text(model).rows(texts)
            elif y is None:
                raise ValueError("y must hold the labels of the rows. Got None.")
            if sp.issparse(y) and y.nnz == 0:  # an error only in training
                truth = sp.csr_array((y.shape[0], clf.model_.n_labels), dtype=np.int8)
            else:
                truth = known_labels(y, None, clf.model_.classes, clf.model_.label_form)
        if isinstance(model, TextTagger):
            names = model.features_.names
        elif names is None:
            names = clf.model_.feature_names
        self.model, self.n_jobs = clf.model_, clf.n_jobs
        self.x, self.truth, self.texts = new_rows(clf, X), truth, texts
        self.unseen = unseen or _nothing_unseen(truth)
        self.feature_names = _numbered(0, self.model) if names is None else list(map(str, names))
        if self.x.n_rows != self.truth.shape[0]:
            raise ValueError(
                "X and y must have the same number of rows. "
                f"Got {self.x.n_rows} and {self.truth.shape[0]}."
            )
        if len(self.feature_names) != self.model.n_features:
            raise ValueError(
                f"'feature_names' must have {self.model.n_features} entries. "
                f"Got {len(self.feature_names)}."
            )

    @classmethod
    def of_arrays(
        cls,
        model: FittedModel,
        x: Blocks,
        truth: sp.csr_array,
        *,
        texts: list[str] | None = None,
        feature_names: Sequence[str] = (),
        n_jobs: int | None = None,
    ) -> Evaluation:
        """An evaluation of rows that are already in the model's columns.

        Parameters
        ----------
        model : FittedModel
            The `model_` of a classifier.
        x : Blocks
            The rows.
        truth : csr_array of shape (n_rows, n_labels)
            Their labels, 0/1.
        texts : list of str, optional
            The texts of the rows.
        feature_names : sequence of str, default=()
            Names of the columns of `x`.
        n_jobs : int, optional
            Number of threads for prediction.
        """
        evaluation = cls.__new__(cls)
        vars(evaluation).update(
            model=model,
            x=x,
            truth=truth,
            texts=texts,
            feature_names=list(feature_names),
            unseen=_nothing_unseen(truth),
            n_jobs=n_jobs,
        )
        return evaluation

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.x.n_rows

    @property
    def n_labelled(self) -> int:
        """Number of rows with a label that the model knows."""
        return int(np.count_nonzero(np.diff(self.truth.indptr)))

    def sample(self, most: int) -> Evaluation:
        """The same evaluation on at most `most` rows, evenly spaced.

        Parameters
        ----------
        most : int
            Maximum number of rows to keep.
        """
        if self.n_rows <= most:
            return self
        rows = evenly_spaced(self.n_rows, most)
        return Evaluation.of_arrays(
            self.model,
            self.x.take(rows),
            self.truth[rows],
            texts=None if self.texts is None else [self.texts[i] for i in rows.tolist()],
            feature_names=self.feature_names,
            n_jobs=self.n_jobs,
        )

    # -- the metrics --------------------------------------------------------------------------

    @cached_property
    def top(self) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Columns and scores of each row's ``max(KS)`` best labels."""
        return self.best(max(KS))

    def best(self, k: int, tail: float = 0.0) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Columns and scores of each row's k best labels.

        Parameters
        ----------
        k : int
            Number of labels per row.
        tail : float >= 0, default=0
            See `LdSMClassifier.predict_topk`.
        """
        k = min(k, self.model.n_labels)
        return self.model.top_columns(self.x, k, tail=tail, n_jobs=self.n_jobs)

    def sums(self, ks: Sequence[int], *, tail: float = 0.0) -> RankingSums:
        """The sums behind all ranking metrics; sums over parts of the rows can be added.

        Propensity-scored metrics are included if there were at least three training rows.

        Parameters
        ----------
        ks : sequence of int
            Numbers of predictions to evaluate.
        tail : float >= 0, default=0
            See `LdSMClassifier.predict_topk`.
        """
        columns, _ = self.best(max(ks), tail)
        return ranking_sums(self.truth, columns, ks, propensities=self.model.propensities())

    def metrics(self) -> dict[str, float]:
        """All ranking metrics at 1, 3 and 5, with propensities from the model's label counts."""
        propensities = self.model.propensities()
        return ranking_report(self.truth, self.top[0], KS, propensities=propensities)

    def scores(
        self,
        ks: Sequence[int] = KS,
        *,
        propensities: NDArray[np.float64] | None = None,
        tail: float = 0.0,
    ) -> Scores:
        """All ranking metrics at `ks`, and F1 of the predicted sets.

        Parameters
        ----------
        ks : sequence of int, default=(1, 3, 5)
            Numbers of predictions to evaluate.
        propensities : ndarray of shape (n_labels,), optional
            For PSP and PSnDCG, which are left out without them.
        tail : float >= 0, default=0
            See `LdSMClassifier.predict_topk`.
        """
        columns, _ = self.best(max(ks), tail)
        ranking = ranking_report(self.truth, columns, ks, propensities=propensities)
        if self.unseen.dropped_per_row.any():
            # Give true labels without a column one that is never predicted.
            everything = sp.hstack([self.truth, _ones(self.unseen.dropped_per_row)], format="csr")
            for k in ks:
                ranking[f"recall_all@{k}"] = recall_at_k(everything, columns, k)
        sets = {}
        if self.model.label_form != "single":
            thresholds = {"model": self.model.threshold, "0.5": 0.5, "best": self.best_threshold()}
            sets = {name: self.pairs.at(threshold) for name, threshold in thresholds.items()}
        true = self.labels_per_row()
        best = {k: float(np.minimum(true, k).mean() / k) for k in ks}
        return Scores(
            ks,
            ranking,
            sets,
            self.unseen,
            self.n_rows,
            best,
            float(true.mean()),
            int(np.count_nonzero(true == 0)),
        )

    @cached_property
    def pairs(self) -> ScoredPairs:
        """The scores of all rows, with their true labels."""
        known = {str(label) for label in self.model.classes.tolist()}
        return ScoredPairs(
            canonical_csr(self.model.scores(self.x, n_jobs=self.n_jobs)),
            canonical_csr(self.truth),
            self.unseen.dropped_per_row,
            sum(str(label) not in known for label in self.unseen.labels),
        )

    def best_threshold(self, average: str = TUNED_FOR) -> float:
        """The common threshold with the best F1 on these rows; at most 50,000 of them are searched.

        Parameters
        ----------
        average : {"samples", "micro", "macro"}, default="samples"
            Average of F1, as in `ldsm.metrics.f1_score`.
        """
        return self.pairs.best_threshold(average)

    def threshold_curve(self, average: str = TUNED_FOR) -> ThresholdCurve:
        """Precision, recall and F1 of the predicted sets at thresholds from 0.01 to 0.99.

        Precision and recall are over all (row, label) pairs.

        Parameters
        ----------
        average : {"samples", "micro", "macro"}, default="samples"
            Average of F1.
        """
        if self.model.label_form == "single":
            raise ValueError("A model that predicts one label per row has no sets of labels.")
        thresholds = np.linspace(0.01, 0.99, 50)
        points = [self.pairs.at(threshold) for threshold in thresholds.tolist()]
        metrics = {
            "F1": [point.f1[average] for point in points],
            "precision": [point.precision for point in points],
            "recall": [point.recall for point in points],
        }
        current = self.model.threshold
        return ThresholdCurve(
            thresholds,
            {name: np.array(values) for name, values in metrics.items()},
            current if isinstance(current, float) else None,
            self.best_threshold(average),
        )

    def labels_per_row(self) -> NDArray[np.int64]:
        """Number of true labels per row, including labels not seen in training."""
        return np.asarray(np.diff(self.truth.indptr) + self.unseen.dropped_per_row)

    def reliability(self, n_bins: int = 10) -> Reliability:
        """Compare the scores of each row's five best labels with the share of true ones.

        Parameters
        ----------
        n_bins : int, default=10
            Number of bins of equal width.
        """
        return reliability(self.truth, *self.top, n_bins=n_bins)

    # -- tree by tree -------------------------------------------------------------------------

    def tree_curve(self, metric: str = "precision") -> MetricCurve:
        """A metric of the first 1, 2, 4 ... trees and of all trees, without a second stage.

        The first n trees are those that the same fit with ``n_estimators=n`` would grow.

        Parameters
        ----------
        metric : {"precision", "ndcg"}, default="precision"
            Metric to compute, at 1, 3 and 5.
        """
        n_trees = self.model.forest.n_trees
        # Leave out points close to the last one: their tick labels would overlap.
        sizes = [2**i for i in range(n_trees.bit_length()) if 2**i <= 0.8 * n_trees] + [n_trees]
        values = _by_name([self._of_trees(0, n, metric) for n in sizes])
        return MetricCurve(np.array(sizes), values, "trees", whole=self._whole(metric))

    def single_trees(self, metric: str = "precision") -> SingleTrees:
        """A metric of each tree alone, of all trees, and with the second stage.

        Parameters
        ----------
        metric : {"precision", "ndcg"}, default="precision"
            Metric to compute, at 1, 3 and 5.
        """
        n_trees = self.model.forest.n_trees
        single = _by_name([self._of_trees(tree, tree + 1, metric) for tree in range(n_trees)])
        return SingleTrees(single, self._of_trees(0, n_trees, metric), self._whole(metric))

    def _of_trees(self, start: int, stop: int, metric: str) -> dict[str, float]:
        trees = self.model.trees(start, stop)
        k = min(max(KS), trees.n_labels)
        return self._at_ks(trees.top_columns(self.x, k, n_jobs=self.n_jobs)[0], metric)

    def _whole(self, metric: str) -> dict[str, float] | None:
        return None if self.model.second_stage is None else self._at_ks(self.top[0], metric)

    def _at_ks(self, columns: NDArray[np.int32], metric: str) -> dict[str, float]:
        if metric not in ("precision", "ndcg"):
            raise ValueError(f"'metric' must be 'precision' or 'ndcg'. Got {metric!r}.")
        report = ranking_report(self.truth, columns, KS)
        return {f"{SHORT_NAMES[metric]}@{k}": report[f"{metric}@{k}"] for k in KS}


def _nothing_unseen(truth: sp.csr_array) -> Unseen:
    return Unseen({}, {}, np.zeros(truth.shape[0], dtype=np.int64))


def _numbered(first: int, model: FittedModel) -> list[str]:
    """Default names of features from number `first` on."""
    return [f"x{i}" for i in range(first, model.n_features)]


def _by_name(points: Sequence[dict[str, float]]) -> dict[str, NDArray[np.float64]]:
    return {name: np.array([metrics[name] for metrics in points]) for name in points[0]}


def _ones(counts: NDArray[np.int64]) -> sp.csr_array:
    """A 0/1 matrix in which row i starts with `counts[i]` ones."""
    indptr = np.concatenate([[0], np.cumsum(counts)])
    columns = np.concatenate([np.arange(count) for count in counts.tolist()])
    shape = (len(counts), int(counts.max(initial=0)))
    return sp.csr_array((np.ones(len(columns), np.int32), columns, indptr), shape=shape)
