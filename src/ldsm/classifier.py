"""LdSMClassifier: parameters, validation, fit and predict, as scikit-learn knows them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .datasets.dataset import Dataset
from .explain import TreePath
from .forest import Forest
from .inputs import (
    FeatureArrays,
    LabelForm,
    canonical_arrays,
    check_structure,
    feature_arrays,
    known_labels,
    label_arrays,
)
from .metrics import precision_at_k
from .model_file import PathLike, write
from .params import TreeParams, check_params, check_warm_start, resolve
from .persistence import classifier_fingerprint, classifier_from_state, classifier_state
from .prediction import all_scores, allowed_columns, top_columns
from .thresholds import DEFAULT_THRESHOLD, best_label_thresholds, best_threshold, reaching
from .training import (
    ProgressCallback,
    grow_forest,
    out_of_bag,
    report_on_stderr,
    training_summary,
)

# Labels per row that the out-of-bag scores keep: long enough for a second stage to choose from.
OOB_LABELS = 100
SPARSE_FORMATS = ["csr", "csc", "coo"]  # others are turned into the first


class LdSMClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logarithm-depth streaming multi-label decision trees (LdSM).

    Every node of a tree holds one linear regressor per child, trained while the rows stream by, so
    that children are balanced and rows of the same label stay together; a row may take several ways
    at once. See Majzoubi and Choromanska, AISTATS 2020.

    Parameters
    ----------
    n_estimators : int, default=20
        Number of trees. More trees are more accurate and cost in proportion.
    arity : int in [2, 8], default=2
        Children per node (the paper's M).
    max_nodes : int or "auto", default="auto"
        Largest size of a tree, leaves included (T_max). "auto": half the number of rows, within
        [63, 65535].
    n_epochs : int or "auto", default="auto"
        Passes over a node's rows. "auto": 10 for "nag", 5 for "sgd", 3 for "asgd".
    learning_rate : float or "auto", default="auto"
        Step size. "auto": 0.1 for "nag" and "sgd", 0.5 for "asgd".
    integrity_weight : float, default=2.0
        Weight of the class-integrity term (lambda 1): keeps rows of one label together.
    multiway_penalty : float or "auto", default="auto"
        Weight of the penalty for sending rows several ways (lambda 2). "auto":
        ``integrity_weight * max(1/2, arity - 2)``.
    relax_integrity : bool, default=True
        Try a split that leaves a child empty, or gives one child every row, again with half the
        integrity weight, up to three times. False: the paper's rule, the node stays a leaf.
    optimizer : {"auto", "nag", "sgd", "asgd"}, default="auto"
        How the regressors learn: normalised adaptive gradient, plain SGD, or SGD averaged over the
        last epoch. "auto": "nag" for binary features, else "asgd", which wins on text.
    leaf_scores : {"probability", "histogram"}, default="probability"
        A leaf's score of a label: its count over the leaf's rows, an estimate of the label's
        probability; or, as in the paper, over the sum of the leaf's counts.
    standardize : bool or "auto", default="auto"
        Standardise the features in every node, with the mean and deviation of its own rows. "auto":
        if at least half of X is non-zero.
    subsample : float in (0, 1], default=1.0
        Share of the rows, drawn without replacement, that each tree is grown on. Below 1 the
        out-of-bag scores are kept in `oob_scores_`.
    rerank : None, default=None
        The second stage. Only None is available yet: the trees' own scores.
    warm_start : bool, default=False
        Keep the trees of the last fit and add more until there are `n_estimators`.
    n_jobs : int or None, default=None
        Threads for growing and predicting; -1 for all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed. The same int gives the same model, bit for bit.
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
    oob_scores_ : csr_array
        With `subsample` below 1: each training row's best labels by the trees that never saw it.
    threshold_ : float, or float32 ndarray of shape (n_labels,)
        The score from which `predict` gives a label: 0.5 until `tune_threshold`.
    training_ : dict
        Seed, size and hash of the data, duration and end of the last fit. Further entries that JSON
        can hold, such as metrics, are saved along.
    fingerprint_ : str
        Hash of the trees and of what else decides a prediction: equal for equal models.

    Examples
    --------
    >>> from ldsm import LdSMClassifier
    >>> X = [[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]] * 5
    >>> Y = [["red"], ["red", "blue"], ["blue"], []] * 5
    >>> clf = LdSMClassifier(n_estimators=5, random_state=0).fit(X, Y)
    >>> labels, scores = clf.predict_topk([[1, 0, 0]], k=1)
    >>> labels[0, 0]
    np.str_('red')
    """

    classes_: NDArray[Any]
    tree_params_: TreeParams
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    _label_form: LabelForm
    _seed: int

    def __init__(
        self,
        n_estimators: int = 20,
        *,
        arity: int = 2,
        max_nodes: int | str = "auto",
        n_epochs: int | str = "auto",
        learning_rate: float | str = "auto",
        integrity_weight: float = 2.0,
        multiway_penalty: float | str = "auto",
        relax_integrity: bool = True,
        optimizer: str = "auto",
        leaf_scores: str = "probability",
        standardize: bool | str = "auto",
        subsample: float = 1.0,
        rerank: None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.arity = arity
        self.max_nodes = max_nodes
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
        self.warm_start = warm_start
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
        self, X: Any, y: Any = None, *, callback: ProgressCallback | None = None
    ) -> LdSMClassifier:
        """Grow the forest.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features), or Dataset
            Sparse or dense; never changed. A Dataset brings its labels, and their names, along.
        y : labels of each row
            A sparse or dense 0/1 matrix, lists of labels of any hashable kind, or one label per
            row.
        callback : callable, optional
            Called about ten times a second with (nodes grown, nodes at most).

        Returns
        -------
        self
        """
        started = time.perf_counter()
        check_params(self.get_params(deep=False), type(self).__name__)
        more = self.warm_start and hasattr(self, "forest_")
        X, y, names = _unpacked(X, y)
        labels = label_arrays(y, names)
        check_structure(X, "X")
        # What X says of its features is noted on a stand-in: a fit that fails changes nothing here.
        noted = self if more else type(self)()
        X = validate_data(noted, X, accept_sparse=SPARSE_FORMATS, dtype="numeric", reset=not more)
        n_features = noted.n_features_in_
        x = feature_arrays(X)
        if x.n_rows != labels.n_rows:
            raise ValueError(
                f"X and y must have the same number of rows. Got inconsistent numbers of samples: "
                f"{x.n_rows} and {labels.n_rows}."
            )
        params = resolve(self.get_params(deep=False), x, n_features)
        first_tree = 0
        if more:
            seed, first_tree = self._seed, self.forest_.n_trees
            check_warm_start(self.n_estimators, first_tree, params, self.tree_params_)
            if labels.form != self._label_form or not np.array_equal(labels.classes, self.classes_):
                raise ValueError("With warm_start=True the labels must stay the same.")
        else:
            state = check_random_state(self.random_state)
            seed = int(state.randint(np.iinfo(np.int32).max, dtype=np.int64))
        if first_tree < self.n_estimators:
            forest = grow_forest(
                x,
                labels,
                params,
                n_features=n_features,
                seed=seed,
                first_tree=first_tree,
                n_trees=self.n_estimators - first_tree,
                n_jobs=self.n_jobs,
                callback=callback or (report_on_stderr if self.verbose else None),
            )
            self.forest_: Forest = self.forest_.extended(forest) if more else forest
        self._seed = seed
        self.n_features_in_ = n_features
        if hasattr(noted, "feature_names_in_"):
            self.feature_names_in_ = noted.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.classes_ = labels.classes
        self.tree_params_ = params
        self._leaf_scores = self.leaf_scores
        self.label_counts_ = np.bincount(labels.indices, minlength=labels.n_labels)
        self.threshold_: float | NDArray[np.float32] = DEFAULT_THRESHOLD
        self._label_form = labels.form
        self._fill_order = np.argsort(-self.label_counts_, kind="stable").astype(np.int32)
        self._keep_oob_scores(x)
        seconds = time.perf_counter() - started + (self.training_["seconds"] if more else 0)
        self.training_: dict[str, Any] = training_summary(
            x, labels, n_features=n_features, seed=seed, seconds=seconds
        )
        return self

    def _keep_oob_scores(self, x: FeatureArrays) -> None:
        if self.tree_params_.subsample == 1.0:
            self.__dict__.pop("oob_scores_", None)  # of an earlier fit
            return
        n_labels = len(self.classes_)
        indptr, labels, scores = out_of_bag(
            self.forest_,
            x,
            self._seed,
            self.tree_params_.subsample,
            self._fill_order,
            by_rows=self._by_rows,
            k=min(OOB_LABELS, n_labels),
        )
        self.oob_scores_ = sp.csr_array((scores, labels, indptr), shape=(x.n_rows, n_labels))

    @property
    def fingerprint_(self) -> str:
        """Hash of everything that decides a prediction."""
        check_is_fitted(self)
        return classifier_fingerprint(self)

    # -- predicting ---------------------------------------------------------------------------

    def predict_topk(
        self, X: Any, k: int = 5, *, labels: Any = None
    ) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The k best labels of each row, best first, and their scores.

        Rows for which the trees know fewer than k labels are filled with the most frequent ones, at
        score 0. Equal scores: lower column first.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
        k : int, default=5
        labels : sequence of labels, optional
            Only these compete; the others are not predicted. Scores stay as they are.

        Returns
        -------
        labels : ndarray of shape (n_rows, k)
            Column numbers if Y was a matrix, else the labels themselves.
        scores : float32 ndarray of shape (n_rows, k)
        """
        x = self._validated(X)
        allowed = self._allowed(labels)
        most = len(self.classes_) if allowed is None else int(allowed.sum())
        if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= k <= most:
            raise ValueError(f"The 'k' parameter must be an int in [1, {most}]. Got {k!r} instead.")

        columns, scores = self._top_columns(x, int(k), allowed)
        return self.classes_[columns], scores

    def predict_proba(self, X: Any, *, labels: Any = None) -> Any:
        """Scores of all labels: CSR for sparse y or lists, else dense.

        With `labels`, as for `predict_topk`, the columns of all others are empty.
        """
        x = self._validated(X)
        scores = self._scores(x, self._allowed(labels))
        if self._label_form in ("sparse", "lists"):
            return scores
        return scores.astype(np.float64).toarray()

    def predict(self, X: Any, *, labels: Any = None) -> Any:
        """The labels of each row.

        With one label per row, the best one; otherwise a 0/1 matrix of the labels whose score
        reaches `threshold_`, CSR for sparse Y or lists, dense for dense Y. With `labels`, as for
        `predict_topk`, no others are predicted.
        """
        x = self._validated(X)
        allowed = self._allowed(labels)
        if self._label_form == "single":
            return self.classes_[self._top_columns(x, 1, allowed)[0][:, 0]]
        decided = reaching(self._scores(x, allowed), self.threshold_)
        decided.data = np.ones(decided.nnz, dtype=np.int64)
        return decided if self._label_form in ("sparse", "lists") else decided.toarray()

    def tune_threshold(
        self, X: Any, y: Any = None, *, average: str = "micro", per_label: bool = False
    ) -> LdSMClassifier:
        """Choose `threshold_`, by which `predict` decides, for the highest F1 on held-out rows.

        The rows must not be those of the fit, where scores are far too high. One threshold for all
        labels needs a few hundred rows. Thresholds per label are for labels with dozens of true
        rows each: with fewer they fit the noise of these rows, and one for all does better.

        Parameters
        ----------
        X, y
            Held-out rows and their labels, in the forms that `fit` takes. Labels that training
            never saw cannot be predicted and are left out.
        average : {"micro", "macro", "samples"}, default="micro"
            What the threshold for all labels maximises: F1 over all row-label pairs, or its mean
            over the labels or over the rows.
        per_label : bool, default=False
            Give every label the threshold with the best F1 of its own. Labels that no held-out row
            has, or that none with a score has, get the one for all.

        Returns
        -------
        self

        Examples
        --------
        >>> from ldsm import LdSMClassifier
        >>> X, Y = [[1, 0], [1, 1], [0, 1]] * 9, [["a"], ["a", "b"], ["b", "c"]] * 9
        >>> clf = LdSMClassifier(n_estimators=5, random_state=0).fit(X[:18], Y[:18])
        >>> clf.tune_threshold(X[18:], Y[18:]).predict([[0, 1]]).toarray()
        array([[0, 1, 1]])
        """
        check_is_fitted(self, "forest_")
        if self._label_form == "single":
            raise ValueError(
                "With one label per row there is no threshold to tune: the best label is predicted."
            )
        x, truth = self._with_truth(X, y)
        scores = self._scores(x)
        threshold: Any = best_threshold(scores, truth, average)
        if per_label:
            threshold = best_label_thresholds(scores, truth, threshold)
        self.threshold_ = threshold
        return self

    def score(self, X: Any, y: Any = None, sample_weight: None = None) -> float:
        """Accuracy for one label per row, else precision at 1."""
        if sample_weight is not None:
            raise ValueError("LdSMClassifier does not support sample_weight. Got an array.")
        check_is_fitted(self, "forest_")
        if self._label_form == "single":
            truth = label_arrays(y)
            right = self.predict(X)
            if truth.form != "single" or truth.n_rows != len(right):
                raise ValueError(f"y must hold one label for each of the {len(right)} rows of X.")
            return float(np.mean(right == truth.classes[truth.indices]))
        x, truth = self._with_truth(X, y)
        return precision_at_k(truth, self._top_columns(x, 1)[0], k=1)

    def decision_path(self, X: Any) -> tuple[sp.csr_array, NDArray[np.int64]]:
        """The nodes that each row passes.

        Returns
        -------
        indicator : csr_array of shape (n_rows, n_nodes)
            1 where a row passes a node; the nodes of all trees side by side.
        tree_offsets : int64 ndarray of shape (n_trees + 1,)
            Columns ``tree_offsets[t]`` to ``tree_offsets[t + 1]`` are the nodes of tree t.
        """
        x = self._validated(X)
        indptr, nodes = self.forest_.visited_nodes(x)
        ones = np.ones(len(nodes), dtype=np.int8)
        shape = (x.n_rows, self.forest_.n_nodes)
        return sp.csr_array((ones, nodes, indptr), shape=shape), self.forest_.tree_offsets

    def explain(self, x: Any, max_reasons: int = 10) -> list[TreePath]:
        """Why one row gets its labels: path, margins, deciding features and leaves in each tree.

        Features and labels are numbers of columns; `feature_names_in_` and `classes_` name them.
        """
        if not sp.issparse(x) and np.ndim(x) == 1:
            x = np.asarray(x)[None, :]
        row = self._validated(x)
        return self.forest_.explain(row, max_reasons, by_rows=self._by_rows)

    # -- saving -------------------------------------------------------------------------------

    def save(self, path: PathLike, *, compress: bool = False) -> None:
        """Write the model to one file, which `ldsm.load` reads. See ``docs/model_format.md``.

        The file appears complete or not at all; a former one stays until then. It holds no code and
        no training rows: `oob_scores_`, which are about them, are left out.

        Parameters
        ----------
        path : path
            By custom with the suffix ``.ldsm``.
        compress : bool, default=False
            Store the weights as float16, if none is too large for that: a file smaller by a fifth
            to a third. On Bibtex, Delicious and Mediamill P@1 stays the same, P@3 and P@5 change by
            at most 0.013 points. Opened with ``verify=False``, such a file is read nonetheless.

        Raises
        ------
        ValueError
            If a label is something other than a str, an int or a bool.
        """
        check_is_fitted(self, "forest_")
        header, arrays = classifier_state(self, compress=compress)
        write(path, {"kind": "LdSMClassifier", **header}, arrays)

    @classmethod
    def _from_state(
        cls, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, verify: bool = True
    ) -> LdSMClassifier:
        """The model that a file described; see `persistence.classifier_from_state`."""
        clf: LdSMClassifier = classifier_from_state(cls, header, arrays, verify=verify)
        return clf

    # -- helpers ------------------------------------------------------------------------------

    @property
    def _by_rows(self) -> bool:
        return self._leaf_scores == "probability"

    def _validated(self, X: Any) -> FeatureArrays:
        check_is_fitted(self, "forest_")
        if sp.issparse(X) and X.shape[1] == self.n_features_in_ and X.shape[0] > 0:
            # What scikit-learn's checks would pass unchanged need not wait for them.
            arrays = canonical_arrays(X)
            if arrays is not None and not hasattr(self, "feature_names_in_"):
                return arrays
        check_structure(X, "X")
        X = validate_data(self, X, accept_sparse=SPARSE_FORMATS, dtype="numeric", reset=False)
        return feature_arrays(X)

    def _with_truth(self, X: Any, y: Any) -> tuple[FeatureArrays, sp.csr_array]:
        """Rows with the labels of theirs that training saw."""
        X, y, names = _unpacked(X, y)
        truth = known_labels(y, names, self.classes_, self._label_form)
        x = self._validated(X)
        if x.n_rows != truth.shape[0]:
            raise ValueError(
                f"X and y must have the same number of rows. Got {x.n_rows} and {truth.shape[0]}."
            )
        return x, truth

    def _top_columns(
        self, x: FeatureArrays, k: int, allowed: NDArray[np.uint8] | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        return top_columns(
            self.forest_, x, k, self._fill_order, allowed, by_rows=self._by_rows, n_jobs=self.n_jobs
        )

    def _scores(self, x: FeatureArrays, allowed: NDArray[np.uint8] | None = None) -> sp.csr_array:
        return all_scores(self.forest_, x, allowed, by_rows=self._by_rows, n_jobs=self.n_jobs)

    def _allowed(self, labels: Any) -> NDArray[np.uint8] | None:
        return None if labels is None else allowed_columns(labels, self.classes_)


def _unpacked(X: Any, y: Any) -> tuple[Any, Any, Sequence[str] | None]:
    """Features, labels and the names of the labels, where a Dataset brings them."""
    if not isinstance(X, Dataset):
        return X, y, None
    if y is not None:
        raise ValueError("A Dataset brings its own labels: y must be left out.")
    return X.X, X.Y, X.label_names
