"""LdSMClassifier: the scikit-learn interface of a fitted model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ._arrays.row_weights import refuse_weights
from ._execution.executor import ProgressCallback, check_callback
from ._execution.memory import out_of_memory
from ._execution.threads import state_of
from ._model.explain import LabelScore, RowExplainer, explain_paths
from ._model.fit import fit_model
from ._model.fitted import FittedModel
from ._model.inputs import (
    as_matrix,
    labelled_rows,
    new_rows,
    own_label_embeddings,
    rows_of_one_label,
    rows_to_learn,
    sparse_rows,
    training_rows,
)
from ._model.learn import check_can_learn, check_options, learned
from ._model.relabel import with_names, without_labels
from ._model.saved_form import model_from_state, model_to_state
from ._model.sets.thresholds import (
    Threshold,
    above_threshold,
    best_label_thresholds,
    best_threshold,
    checked_threshold,
)
from ._ranking.stage import SecondStage
from ._storage.container import save
from ._storage.paths import PathLike
from ._trees.forest import Forest
from ._trees.params import Number, TreeParams, check_params
from ._trees.row_paths import TreePath
from .metrics import precision_at_k


class LdSMClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logarithm-depth streaming multi-label decision trees (LdSM).

    Every node of a tree holds one linear regressor per child, trained while the rows stream by, so
    that children are balanced and rows of the same label stay together. A row may go in several
    directions at once. See Majzoubi and Choromanska, AISTATS 2020.

    Parameters
    ----------
    n_estimators : int or "auto", default="auto"
        Number of trees. More trees are more accurate; cost grows in proportion. "auto": with a
        linear second stage, four at a time, up to 20, while shortlists improve; else 20. Another
        `effort` has other numbers.
    effort : {"fast", "balanced", "best"}, default="balanced"
        How much time and memory to spend where "auto" or held-out rows decide. "fast": 2 trees, or
        5 without a linear second stage; shortlists of 50 labels; no comparison of blends. "best":
        20 trees, or 50 without a linear second stage; shortlists of 200 labels if they find 1 %
        more.
    arity : int in [2, 8], default=2
        Number of children per node (the paper's M).
    max_nodes : int or "auto", default="auto"
        Maximum size of a tree, leaves included (T_max). "auto": half the number of rows, within
        [63, 65535].
    min_split_labels : int or "auto", default="auto"
        A node is not split if its rows have fewer labels in total, counting repetitions. "auto":
        with a linear second stage, which only needs a shortlist, 512 or a 32nd of all labels,
        whichever is less; else 1.
    n_epochs : int or "auto", default="auto"
        Number of passes over a node's rows. "auto": 10 for "nag", 5 for "sgd", 3 for "asgd", or 2
        with a linear second stage.
    learning_rate : float or "auto", default="auto"
        Step size. "auto": 0.1 for "nag" and "sgd", 0.5 for "asgd".
    integrity_weight : float, default=2.0
        Weight of the class-integrity term (lambda 1): keeps rows of one label together.
    multiway_penalty : float or "auto", default="auto"
        Weight of the penalty for sending rows in several directions (lambda 2). "auto":
        ``integrity_weight * max(1/2, arity - 2)``.
    relax_integrity : bool, default=True
        Retry a split that leaves a child empty, or gives one child every row, with half the
        integrity weight, up to three times. Without retries the node stays a leaf, as in the paper.
    optimizer : {"auto", "nag", "sgd", "asgd"}, default="auto"
        Optimizer of the regressors: normalised adaptive gradient, plain SGD, or SGD averaged over
        the last epoch. "auto": "nag" for binary features, else "asgd", which is better on text.
    leaf_scores : {"probability", "histogram"}, default="probability"
        A leaf's score of a label: the label's count divided by the leaf's rows, an estimate of its
        probability; or, as in the paper, divided by the sum of the leaf's label counts.
    standardize : bool or "auto", default="auto"
        Standardise the features in every node with the mean and standard deviation of its rows.
        "auto": if at least half of X is non-zero; with a linear second stage only if most columns
        have a mean beyond their standard deviation.
    subsample : float in (0, 1] or "auto", default="auto"
        Share of the rows, drawn without replacement, that each tree is grown on. "auto": 0.7 with
        a second stage, which learns from out-of-bag rows (0.5 if `effort` is "fast"), else 1. If
        set below 1, the out-of-bag scores are stored in `oob_scores_`.
    rerank : {"auto", "linear", "tail"} or None, default="auto"
        The second stage, which rescores each row's shortlist: its 50 to 200 best labels by the
        trees and by an index from features to labels. "linear": a linear classifier per label,
        blended with both. "tail": the paper's score from the trees and the distance to each label's
        centroid, which favours rare labels. "auto": like "linear", also with the distances if they
        improve out-of-bag rows; the trees alone below 500 rows. None: the scores of the trees.
    tail_blend : float in [0, 1], default=0.8
        For "tail": the share of the trees' score (the paper's beta).
    tail_gamma : float or "auto", default="auto"
        For "tail": decay of the centroid score with distance; rows are scaled to unit length.
        "auto": the value with the best PSP@k on out-of-bag rows.
    tail_min_rows : int, default=1
        No centroid is kept for labels with fewer training rows. The centroid of a label with one
        row is that row: set this higher if the model must not reveal training rows.
    compress : bool or "auto", default="auto"
        Round the weights of trees, linear classifiers and centroids to one byte each. "auto": with
        a linear second stage.
    threshold : float in [0, 1], "auto" or "f1", default="auto"
        The least score at which `predict` assigns a label. "auto": the value with the best F1
        (mean over rows) on training rows, scored by trees and classifiers that have not seen them;
        0.5 if there are no such scores: without a second stage and `subsample`, and below 500 rows.
        "f1": no common threshold; each row gets the set with the highest expected F1, which is
        empty only if the row probably has no label. Unused with one label per row.
    warm_start : bool, default=False
        Keep the trees of the last fit and add more until there are `n_estimators`.
    memory_limit : int or "auto", default="auto"
        Memory in bytes for the trees that grow at the same time, besides the training rows; "auto"
        is a quarter of the free memory. Nodes whose rows do not fit are streamed, from disk if X is
        an opened store. If a number is given, weights that do not fit go to a file in the temporary
        folder, and so do the shortlists of the second stage. The result does not depend on it.
    n_jobs : int or None, default=None
        Number of threads; -1 for all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Seed. The same int gives the same model, bit for bit. None: a new seed for every fit, as in
        scikit-learn.
    verbose : int, default=0
        Positive: report progress on stderr.

    Attributes
    ----------
    classes_ : ndarray
        Labels in column order: the column numbers if Y was a matrix.
    forest_ : Forest
        The trees as arrays, with their statistics.
    tree_params_ : TreeParams
        The parameters used, "auto" resolved.
    label_counts_ : ndarray of int
        Training rows per label.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    second_stage_ : SecondStage or None
        The second stage; ``second_stage_.blend.kind`` is the choice of "auto".
    oob_scores_ : csr_array
        If `subsample` was set below 1: each row's best labels by the trees not grown on it.
    threshold_ : float, float32 ndarray of shape (n_labels,), or ExpectedF1
        The least score at which `predict` assigns a label, from `threshold` or `tune_threshold`;
        the last with ``threshold="f1"``.
    training_ : mapping
        Seed, size and hash of the data, duration and end time of the last fit; "history" lists what
        was learned, dropped or renamed since. To save further JSON values, such as metrics, assign
        ``{**clf.training_, "metrics": ...}``.
    fingerprint_ : str
        Hash of everything that determines a prediction; equal models have equal fingerprints.

    Examples
    --------
    >>> from ldsm import LdSMClassifier
    >>> X = [[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]] * 5
    >>> Y = [["red"], ["red", "blue"], ["blue"], []] * 5
    >>> clf = LdSMClassifier(n_estimators=5, random_state=0).fit(X, Y)
    >>> labels, scores = clf.predict_topk([[1, 0, 0]], k=1)
    >>> str(labels[0, 0])
    'red'
    """

    model_: FittedModel
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    oob_scores_: sp.csr_array

    def __init__(
        self,
        n_estimators: int | str = "auto",
        *,
        effort: str = "balanced",
        arity: int = 2,
        max_nodes: int | str = "auto",
        min_split_labels: int | str = "auto",
        n_epochs: int | str = "auto",
        learning_rate: float | str = "auto",
        integrity_weight: float = 2.0,
        multiway_penalty: float | str = "auto",
        relax_integrity: bool = True,
        optimizer: str = "auto",
        leaf_scores: str = "probability",
        standardize: bool | str = "auto",
        subsample: float | str = "auto",
        rerank: str | None = "auto",
        tail_blend: float = 0.8,
        tail_gamma: float | str = "auto",
        tail_min_rows: int = 1,
        compress: bool | str = "auto",
        threshold: float | str = "auto",
        warm_start: bool = False,
        memory_limit: int | str = "auto",
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.effort = effort
        self.arity = arity
        self.max_nodes = max_nodes
        self.min_split_labels = min_split_labels
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.integrity_weight = integrity_weight
        self.multiway_penalty = multiway_penalty
        self.relax_integrity = relax_integrity
        self.optimizer = optimizer
        self.leaf_scores = leaf_scores
        self.standardize = standardize
        self.subsample = subsample
        self.rerank = rerank
        self.tail_blend = tail_blend
        self.tail_gamma = tail_gamma
        self.tail_min_rows = tail_min_rows
        self.compress = compress
        self.threshold = threshold
        self.warm_start = warm_start
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags

    # -- fitting ------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        embeddings: Any = None,
        label_embeddings: Any = None,
        callback: ProgressCallback | None = None,
        checkpoint_dir: PathLike | None = None,
        **others: Any,
    ) -> LdSMClassifier:
        """Grow the forest.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features), or Dataset
            Sparse or dense; never modified. A Dataset includes its labels and their names.
        y : labels of each row
            A sparse or dense 0/1 matrix, lists of labels of any hashable kind, or one label per
            row.
        embeddings : matrix of shape (n_rows, n_dimensions), optional
            A dense vector for each row, such as an encoder makes of a text or an image, with at
            most 4,096 columns. Only their directions count; an all-zero row counts as missing.
            They find labels besides the trees and are a signal of the blend, if that improves
            held-out rows. So they need a linear second stage, and predictions then need embeddings.
        label_embeddings : mapping from labels to vectors, optional
            Vectors of label names by the same encoder. A name counts as a few rows of its label.
        callback : callable, optional
            Called about ten times a second with (nodes grown, maximum number of nodes).
        checkpoint_dir : path, optional
            A new or empty folder to which every finished tree, and every finished part of the
            second stage, is written. Repeating the fit with the same folder reuses them, so that
            an interrupted fit resumes and gives the same model as an uninterrupted one.
            `n_estimators` and `n_jobs` may change. If `random_state` is not an int, the seed stored
            in the folder is used. A folder with other data, parameters or seed raises an error.
            Delete the folder once the model is saved. `training_` has the number of reused trees.
        **others : Any
            Not supported. A `sample_weight` raises an error that says what to use instead.

        Returns
        -------
        LdSMClassifier
            Itself.
        """
        refuse_weights("LdSMClassifier.fit", others)
        return fit_classifier(
            self,
            X,
            y,
            embeddings=embeddings,
            label_embeddings=label_embeddings,
            callback=callback,
            checkpoint_dir=checkpoint_dir,
        )

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        *,
        absent: str = "auto",
        prior: str = "auto",
        embeddings: Any = None,
        label_embeddings: Any = None,
        **others: Any,
    ) -> LdSMClassifier:
        """Update the model with new rows; the first call is a `fit`.

        This takes a fraction of the time of a new fit. New labels are added to the model. The trees
        keep their splits, so retrain when the data have doubled; see
        ``docs/incremental_learning.md``. Splitting a batch in two may give another model. An error
        or Ctrl-C leaves the model unchanged; predictions in other threads use either the old or the
        new model.

        A batch teaches what labels look like, not how often they occur: a hundred rows of one new
        label teach the model that label without changing its answers for other rows.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features), or Dataset
            The same features as in the first fit.
        y : labels of each row
            In the form of the first fit. Additional columns of a matrix are new labels.
        classes : sequence of labels, optional
            All labels. In the first call, labels without rows are added, too. Later calls must
            give the same labels. Other labels raise an error.
        absent : {"auto", "negative", "unknown"}, default="auto"
            How to treat known labels that a row does not have. "negative": the label is wrong for
            the row. "unknown": it may be missing. "auto": unknown in rows that have only new
            labels, negative in all others.
        prior : {"auto", "batch"}, default="auto"
            Whether to refit the scores to large batches (see ``docs/incremental_learning.md``).
            "auto": unless the label distribution of the batch differs from earlier rows;
            ``training_["history"]`` counts the rows of such batches as "skewed". "batch": always;
            label frequencies then follow the batch.
        embeddings, label_embeddings : optional
            As in `fit`; of label vectors, only those of labels without rows so far are used.
        **others : Any
            Not supported, as in `fit`.

        Returns
        -------
        LdSMClassifier
            Itself.

        Examples
        --------
        >>> from ldsm import LdSMClassifier
        >>> X, y = [[0, 1], [1, 0]] * 5, [["a"], ["b"]] * 5
        >>> clf = LdSMClassifier(2).fit(X, y)
        >>> clf.partial_fit([[1, 1]] * 9, [["b", "new"]] * 9).classes_.tolist()
        ['a', 'b', 'new']
        """
        refuse_weights("LdSMClassifier.partial_fit", others)
        check_options(absent, prior, type(self).__name__)
        if "model_" not in vars(self):
            return fit_classifier(
                self,
                X,
                y,
                classes=classes,
                embeddings=embeddings,
                label_embeddings=label_embeddings,
            )
        model = self._fitted
        settings = self.get_params(deep=False)
        check_params(settings, type(self).__name__)
        check_can_learn(model)
        if label_embeddings is None:
            label_embeddings = own_label_embeddings(model, X)
        with out_of_memory("learn new rows"):
            x, labels = rows_to_learn(self, model, X, y, classes, embeddings)
            new = learned(
                model,
                x,
                labels,
                min_rows=self.tail_min_rows,
                n_jobs=self.n_jobs,
                absent=absent,
                prior=prior,
                label_embeddings=label_embeddings,
            )
        return self._changed(model, new)

    # -- fitted attributes --------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        """The optional attribute `feature_names_in_`, decoded on first access."""
        model = vars(self).get("model_")
        if name != "feature_names_in_" or model is None or model.feature_names is None:
            return object.__getattribute__(self, name)  # raises the usual error
        self.feature_names_in_ = np.array(list(model.feature_names), dtype=object)
        return self.feature_names_in_

    @property
    def classes_(self) -> NDArray[Any]:
        return self._fitted.classes

    @property
    def forest_(self) -> Forest:
        return self._fitted.forest

    @property
    def second_stage_(self) -> SecondStage | None:
        return self._fitted.second_stage

    @property
    def tree_params_(self) -> TreeParams:
        return self._fitted.tree_params

    @property
    def label_counts_(self) -> NDArray[np.int64]:
        return self._fitted.label_counts

    @property
    def threshold_(self) -> Threshold:
        return self._fitted.threshold

    @threshold_.setter
    def threshold_(self, threshold: Threshold) -> None:
        model = self._fitted
        checked = checked_threshold(threshold, model.n_labels)
        self._replaced(model, replace(model, threshold=checked))

    @property
    def training_(self) -> Mapping[str, Any]:
        return MappingProxyType(dict(self._fitted.training))

    @training_.setter
    def training_(self, training: Mapping[str, Any]) -> None:
        model = self._fitted
        for name in ("rows", "seconds"):  # used by the model itself
            if training.get(name) != model.training[name]:
                raise ValueError(
                    f"The 'training_' of LdSMClassifier must keep the entry {name!r}, "
                    f"{model.training[name]!r}. Got {training.get(name)!r} instead."
                )
        self._replaced(model, replace(model, training=dict(training)))

    @property
    def fingerprint_(self) -> str:
        return self._fitted.fingerprint()

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self)

    @property
    def _fitted(self) -> FittedModel:
        if "model_" not in vars(self):
            check_is_fitted(self, "model_")
        return self.model_

    # -- predicting ---------------------------------------------------------------------------

    def predict_topk(
        self,
        X: Any,
        k: int = 5,
        *,
        only: Any = None,
        without: Any = None,
        tail: float = 0.0,
        embeddings: Any = None,
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The k best labels of each row, best first, and their scores.

        Rows with fewer than k scored labels are padded with the most frequent labels, at score 0.
        Ties go to the lower column.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            Sparse or dense.
        k : int, default=5
            Number of labels per row.
        only, without : sequences of labels, optional
            Predict only these labels, or all but these. They are chosen before the shortlist is
            made, so none is lost to others. Scores do not change.
        tail : float >= 0, default=0
            Favour rare labels: order by score / propensity ** tail, with the propensities of
            `ldsm.metrics.propensities`. 1 gives the best order for PSP@k if the scores are
            calibrated.
            The returned scores do not change.
        embeddings : matrix of shape (n_rows, n_dimensions), optional
            As in `fit`; required if the model was trained with them.

        Returns
        -------
        labels : ndarray of shape (n_rows, k)
            Column numbers if Y was a matrix, else the labels themselves.
        scores : float32 ndarray of shape (n_rows, k)
            In [0, 1].
        """
        model, x = self._fitted, new_rows(self, X, embeddings)
        allowed = model.allowed(only, without)
        most = model.n_labels if allowed is None else int(allowed.sum())
        Number(1, most, integer=True).check("k", k)
        columns, scores = model.top_columns(
            x, int(k), allowed=allowed, tail=tail, n_jobs=self.n_jobs
        )
        return model.classes[columns], scores

    def predict_proba(
        self, X: Any, *, only: Any = None, without: Any = None, embeddings: Any = None
    ) -> Any:
        """Scores of all labels: CSR for sparse y or lists, else dense.

        With one label per row, the scores of a row sum to 1, unless labels are chosen; the scores
        of a second stage are rescaled for this. Columns of labels that are not chosen are empty.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            Sparse or dense.
        only, without : sequences of labels, optional
            Predict only these labels, or all but these; see `predict_topk`.
        embeddings : matrix of shape (n_rows, n_dimensions), optional
            As in `fit`; required if the model was trained with them.

        Returns
        -------
        csr_array or ndarray of shape (n_rows, n_labels)
            Scores in the columns of `classes_`.
        """
        model, x = self._fitted, new_rows(self, X, embeddings)
        return model.probabilities(x, allowed=model.allowed(only, without), n_jobs=self.n_jobs)

    def predict(
        self, X: Any, *, only: Any = None, without: Any = None, embeddings: Any = None
    ) -> Any:
        """The labels of each row, in the form of the y of `fit`.

        With one label per row, the best one. Otherwise the labels whose score reaches `threshold_`
        (or, with ``threshold="f1"``, the set with the highest expected F1):
        for lists of labels, a list per row, best first, possibly empty; for a matrix, a 0/1 matrix
        in the columns of `classes_`, CSR for sparse y and dense for dense y. scikit-learn's metrics
        need matrices: to use them, fit on
        ``MultiLabelBinarizer(sparse_output=True).fit_transform(y)``.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            Sparse or dense.
        only, without : sequences of labels, optional
            Predict only these labels, or all but these; see `predict_topk`.
        embeddings : matrix of shape (n_rows, n_dimensions), optional
            As in `fit`; required if the model was trained with them.

        Returns
        -------
        csr_array, ndarray or list of lists
            In the form of the y of `fit`.
        """
        model, x = self._fitted, new_rows(self, X, embeddings)
        options: dict[str, Any] = {
            "allowed": model.allowed(only, without),
            "n_jobs": self.n_jobs,
        }
        if model.label_form == "single":
            return model.classes[model.top_columns(x, 1, **options)[0][:, 0]]
        if model.label_form == "lists":
            return [[label for label, _ in row] for row in model.label_sets(x, **options)]
        decided = above_threshold(model.scores(x, **options), model.threshold)
        decided.data = np.ones(decided.nnz, dtype=np.int64)
        return decided if model.label_form == "sparse" else decided.toarray()

    def tune_threshold(
        self,
        X: Any,
        y: Any = None,
        *,
        average: str = "micro",
        per_label: bool = False,
        embeddings: Any = None,
    ) -> LdSMClassifier:
        """Set `threshold_` to the value with the highest F1 of `predict` on held-out rows.

        Do not use the training rows: their scores are far too high. A common threshold needs a few
        hundred rows. Thresholds per label need dozens of rows per label; with fewer, they overfit,
        and a common threshold is better.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features), or Dataset
            Held-out rows.
        y : labels of each row
            In any form that `fit` accepts. Labels unknown to the model are left out.
        average : {"micro", "macro", "samples"}, default="micro"
            The F1 to maximise: over all pairs of row and label, or its mean over labels or rows.
        per_label : bool, default=False
            Give every label its own threshold with the best F1. Labels without a held-out row, or
            without a scored one, get the common threshold.
        embeddings : matrix of shape (n_rows, n_dimensions), optional
            As in `fit`; required if the model was trained with them.

        Returns
        -------
        LdSMClassifier
            Itself.

        Examples
        --------
        >>> from ldsm import LdSMClassifier
        >>> X, Y = [[1, 0], [1, 1], [0, 1]] * 9, [["a"], ["a", "b"], ["b", "c"]] * 9
        >>> clf = LdSMClassifier(n_estimators=5, random_state=0).fit(X[:18], Y[:18])
        >>> clf.tune_threshold(X[18:], Y[18:]).predict([[0, 1]])
        [['b', 'c']]
        """
        model = self._fitted
        if model.label_form == "single":
            raise ValueError(
                "With one label per row, there is no threshold to tune: `predict` returns the best "
                "label."
            )
        x, truth = labelled_rows(self, model, X, y, embeddings)
        scores = model.scores(x, n_jobs=self.n_jobs)
        threshold = best_threshold(scores, truth, average)
        new: Threshold = threshold
        if per_label:
            new = best_label_thresholds(scores, truth, threshold)
        return self._replaced(model, replace(model, threshold=new))

    def score(
        self, X: Any, y: Any = None, sample_weight: None = None, *, embeddings: Any = None
    ) -> float:
        """Accuracy for one label per row, else precision at 1.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features), or Dataset
            Rows not used in training.
        y : labels of each row
            In any form that `fit` accepts.
        sample_weight : None
            Not supported; present for compatibility with scikit-learn.
        embeddings : matrix of shape (n_rows, n_dimensions), optional
            As in `fit`; required if the model was trained with them.
        """
        refuse_weights("LdSMClassifier.score", {"sample_weight": sample_weight})
        model = self._fitted
        if model.label_form == "single":
            x, truth = rows_of_one_label(self, X, y, embeddings)
            columns, _ = model.top_columns(x, 1, n_jobs=self.n_jobs)
            return float(np.mean(model.classes[columns[:, 0]] == truth))
        x, labels = labelled_rows(self, model, X, y, embeddings)
        return precision_at_k(labels, model.top_columns(x, 1, n_jobs=self.n_jobs)[0], k=1)

    def decision_path(self, X: Any) -> tuple[sp.csr_array, NDArray[np.int64]]:
        """The nodes that each row passes through.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            Sparse or dense.

        Returns
        -------
        indicator : csr_array of shape (n_rows, n_nodes)
            1 where a row passes through a node; the nodes of all trees side by side.
        tree_offsets : int64 ndarray of shape (n_trees + 1,)
            Columns ``tree_offsets[t]`` to ``tree_offsets[t + 1]`` are the nodes of tree t.
        """
        forest, x = self._fitted.forest, sparse_rows(self, X)
        indptr, nodes = forest.visited_nodes(x.read_by("trees"))
        ones = np.ones(len(nodes), dtype=np.int8)
        shape = (x.n_rows, forest.n_nodes)
        return sp.csr_array((ones, nodes, indptr), shape=shape), forest.tree_offsets

    def explain(self, x: Any, max_reasons: int = 10) -> list[TreePath]:
        """Explain the labels of one row: path, margins, deciding features and leaves in each tree.

        Features and labels are column numbers; `feature_names_in_` and `classes_` name them.

        Parameters
        ----------
        x : matrix of shape (1, n_features)
            The row.
        max_reasons : int, default=10
            Maximum number of features per split.

        Returns
        -------
        list of TreePath
            One per tree, with its number `tree` and two lists. `steps` are the splits on the
            path, parents first: `node` and `depth`, `margins` by direction, `directions` taken, and
            `reasons`, each a `feature`, its `value` and its `contributions` to the margins (feature
            number D is the bias). `leaves` are the leaves reached: `node`, `depth`, `rows` (of
            training), `labels`, most frequent first, and `shares`, their scores in the leaf.
        """
        return explain_paths(self._fitted, sparse_rows(self, as_matrix(x)), max_reasons)

    def explain_scores(
        self,
        x: Any,
        k: int = 5,
        max_reasons: int = 10,
        *,
        labels: Any = None,
        embeddings: Any = None,
    ) -> list[LabelScore]:
        """Explain the scores of one row's k best labels, or of the given `labels`, best first.

        For each label: its score, the contribution of each stage to its log-odds, and the strongest
        features for and against it in the label's linear classifier. Labels without a score are
        left out: no tree and no feature of the row suggests them.

        Parameters
        ----------
        x : matrix of shape (1, n_features)
            The row.
        k : int, default=5
            Number of labels, unless `labels` are given.
        max_reasons : int, default=10
            Maximum number of features per label.
        labels : sequence of labels, optional
            Explain these labels instead.
        embeddings : matrix of shape (n_rows, n_dimensions), optional
            As in `fit`; required if the model was trained with them.

        Returns
        -------
        list of LabelScore
            `label` and its `column`; `score`; `shares`, the contribution of each stage to the
            log-odds of the score; figures of the stages, None if a stage is missing: `tree_score`,
            `index_score` (association of the row's features with the label), `margin` of the linear
            classifier with its `bias` and `reasons` (features and their contributions, strongest
            first), `distance` to the label's centroid, `name` (the best matching name of the label,
            and the share of it that matches), `meaning` (the score of the embedding for the label).
        """
        model = self._fitted
        allowed = model.allowed(labels)
        row = new_rows(self, as_matrix(x), as_matrix(embeddings))
        explainer = RowExplainer(model, row)
        if allowed is None:
            return explainer.best(k, max_reasons)
        return explainer.among(np.flatnonzero(allowed).tolist(), max_reasons)

    # -- changing labels ----------------------------------------------------------------------

    def drop_labels(self, labels: Iterable[Any]) -> LdSMClassifier:
        """Remove labels: they are no longer predicted, and the file becomes smaller.

        The scores of all other labels stay the same, bit for bit; only with one label per row are
        they rescaled to sum to 1. ``docs/incremental_learning.md`` lists what is kept of a dropped
        label, without its name, until the next update.

        Parameters
        ----------
        labels : iterable of labels
            At least one label of the model must remain.

        Examples
        --------
        >>> from ldsm import LdSMClassifier
        >>> X, y = [[0, 1], [1, 0]] * 5, [["a", "c"], ["b"]] * 5
        >>> LdSMClassifier(2).fit(X, y).drop_labels(["a"]).predict([[0, 1]])
        [['c']]
        """
        model = self._fitted
        return self._changed(model, without_labels(model, labels))

    def rename_labels(self, names: Mapping[Any, Any]) -> LdSMClassifier:
        """Rename labels, ``{old: new}``; their scores do not change.

        The order of the columns stays the same, so `classes_` may no longer be sorted. With one
        label per row, columns are sorted again, as scikit-learn's metrics expect. Labels cannot be
        merged.

        Parameters
        ----------
        names : mapping
            New names by old names; other labels are unchanged.
        """
        model = self._fitted
        return self._changed(model, with_names(model, names))

    def _changed(self, old: FittedModel, new: FittedModel) -> LdSMClassifier:
        """Replace `old` with `new`, which was made from it and has other rows or labels."""
        self._replaced(old, new)
        self.__dict__.pop("oob_scores_", None)  # of the rows and labels of the fit
        return hold_model(self, new)

    def _replaced(self, old: FittedModel, new: FittedModel) -> LdSMClassifier:
        """Replace `old` with `new`, made from it; raises an error if `old` is not current."""
        if self.model_ is not old:
            raise changed_meanwhile()
        self.model_ = new
        return self

    # -- saving -------------------------------------------------------------------------------

    def save(self, path: PathLike) -> None:
        """Write the model to one file, which `ldsm.load` reads. See ``docs/model_format.md``.

        The file is written completely or not at all. It holds no code and no training rows;
        `oob_scores_`, which describe training rows, are left out. However, the centroid of a label
        with one training row is that row: see `tail_min_rows`.

        Parameters
        ----------
        path : path
            Usually with the suffix ``.ldsm``.

        Raises
        ------
        ValueError
            If a label is not a str, an int or a bool.
        """
        header, arrays = model_to_state(self._fitted, self.get_params(deep=False))
        save(path, {"kind": "LdSMClassifier", **header}, arrays)


def fit_classifier(
    clf: LdSMClassifier,
    X: Any,
    y: Any = None,
    *,
    callback: ProgressCallback | None = None,
    checkpoint_dir: PathLike | None = None,
    classes: Any = None,
    embeddings: Any = None,
    label_embeddings: Any = None,
) -> LdSMClassifier:
    """Like `LdSMClassifier.fit`; `classes` lists all labels, including labels without rows."""
    settings = clf.get_params(deep=False)
    check_params(settings, type(clf).__name__)
    check_callback(callback)
    former = clf.model_ if clf.warm_start and hasattr(clf, "model_") else None
    with out_of_memory("train the model"):
        fitted = fit_model(
            settings,
            training_rows(
                clf,
                X,
                y,
                former=former,
                classes=classes,
                embeddings=embeddings,
                label_embeddings=label_embeddings,
            ),
            former=former,
            callback=callback,
            checkpoint_dir=checkpoint_dir,
        )
    clf.__dict__.pop("oob_scores_", None)  # from an earlier fit
    if fitted.oob_scores is not None:
        clf.oob_scores_ = fitted.oob_scores
    return hold_model(clf, fitted.model)


def changed_meanwhile() -> RuntimeError:
    """The error for concurrent changes."""
    return RuntimeError(
        "The model was changed by another thread, so this change was not made. Change a model from "
        "one thread at a time."
    )


def hold_model(clf: LdSMClassifier, model: FittedModel) -> LdSMClassifier:
    """Make the classifier predict with `model`."""
    clf.model_ = model
    clf.n_features_in_ = model.n_features
    clf.__dict__.pop("feature_names_in_", None)  # of an earlier model
    return clf


def classifier_from_state(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, verify: bool = True
) -> LdSMClassifier:
    """The classifier of a model file; see `model_from_state`."""
    known = LdSMClassifier().get_params(deep=False)
    params, model = model_from_state(header, arrays, known, verify=verify)
    return hold_model(LdSMClassifier(**params), model)
