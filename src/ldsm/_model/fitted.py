"""The fitted model, which prediction, saving, explanation and evaluation use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from numbers import Real
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from .._arrays.chosen_labels import Allowed, chosen_columns
from .._arrays.dense_rows import MOST_DIMENSIONS
from .._arrays.labels import LABEL_FORMS, LabelForm
from .._execution.chosen import stage_executor
from .._execution.executor import Control, ThreadExecutor
from .._execution.memory import out_of_memory
from .._execution.threads import CancelFlag, state_of
from .._features.blocks import Blocks, Layout
from .._matching.matchers import match
from .._matching.shortlists import SHORTLIST, Shortlists
from .._ranking.saved_form import stage_hashed
from .._ranking.stage import SecondStage
from .._storage.fields import (
    FLAG,
    MAPPING,
    TEXT,
    Array,
    Entry,
    Names,
    Table,
    fingerprint,
    numbers,
    one_of,
    optional,
    real,
    whole,
)
from .._storage.strings import Strings
from .._trees.forest import Forest
from .._trees.params import TreeParams
from ..metrics.propensities import propensities_from_counts
from .names import LabelNames
from .sets.expected_f1 import ExpectedF1
from .sets.thresholds import DEFAULT_THRESHOLD, Threshold, above_threshold

# Prediction needs some bytes for each feature, used or not. A file or a matrix that claims more
# features is refused.
MOST_FEATURES = 2**28
MOST_ROWS = 2**48  # more than any training set has; sums of such counts stay in range
# Fewer rows are not worth using threads.
PARALLEL_ROWS = 64
_CHUNK = 8192  # rows scored together, so that a label's vector is unpacked once for all of them

_FEATURES = whole(0, MOST_FEATURES)
_FLOAT32 = float(np.finfo(np.float32).max)
MODEL = Table(
    "model",
    Entry("arity", whole(2, 8), hashed=False),
    # Blocks side by side: the words that trees know, later words, bigrams, sub-words.
    Entry("n_features", _FEATURES, hashed=False),
    Entry("n_matched", _FEATURES, default=lambda model: model["n_features"], since=2, hashed=False),
    Entry("n_indexed", _FEATURES, default=lambda model: model["n_matched"], since=2, hashed=False),
    Entry("n_ranked", _FEATURES, default=lambda model: model["n_features"], since=2, hashed=False),
    Entry("n_dense", whole(0, MOST_DIMENSIONS), default=0, since=3, hashed=False),
    Entry("dense_from_main", FLAG, default=False, since=3),
    Entry("n_labels", whole(1, 2**31), hashed=False),
    Entry("label_form", one_of(*LABEL_FORMS)),
    Entry("label_dtype", TEXT, hashed=False),
    Entry("threshold", optional(real(-_FLOAT32, _FLOAT32))),
    Entry("expected_f1", optional(numbers(0, 1)), default=None, since=3),
    Entry("seed", whole(0, 2**63 - 1), hashed=False),
    Entry("tree_params", MAPPING, hashed=False),
    Entry("second_stage", optional(MAPPING), default=None, written=True, hashed=False),
    Array("label_counts", (np.int64,), ("labels",), bounds=(0, MOST_ROWS)),
    Array("thresholds", (np.float32,), ("labels",), bounds=(-_FLOAT32, _FLOAT32), default=None),
    Names("feature_names", unique=False, default=None),
    # The places of dropped labels, and the first order of the others if it has changed.
    Array("forest.label_order", (np.int32,), ("labels",), default=None, since=2),
    Array("forest.dropped_places", (np.int32,), ("dropped",), default=None, since=2),
)

TopColumns = tuple[NDArray[np.int32], NDArray[np.float32]]
LabelScores = list[tuple[Any, float]]  # labels with their scores, best first
Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class FittedModel:
    """The result of a fit. Frozen: changes make a new one (`dataclasses.replace`)."""

    forest: Forest
    second_stage: SecondStage | None  # None: the trees' own scores are used
    labels: LabelNames
    label_form: LabelForm  # the form of Y, which predictions take too
    label_counts: NDArray[np.int64]  # training rows per label
    tree_params: TreeParams
    seed: int
    training: Mapping[str, Any]  # facts, as JSON values; not part of the fingerprint
    feature_names: Strings | None = None
    threshold: Threshold = DEFAULT_THRESHOLD  # decides which labels are predicted
    layout: Layout = field(kw_only=True)  # the feature blocks
    verified: bool = True  # False: read from a file whose numbers were not checked

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self, "columns")

    @property
    def n_features(self) -> int:
        return self.layout.n_features

    @property
    def n_labels(self) -> int:
        return len(self.labels)

    @property
    def reads_dense(self) -> bool:
        """Whether predictions need the dense block."""
        stage = self.second_stage
        return stage is not None and "meaning" in stage.parts

    @property
    def classes(self) -> NDArray[Any]:
        """The labels in column order."""
        return self.labels.array

    @property
    def n_training_rows(self) -> int:
        return int(self.training["rows"])

    @cached_property
    def fill_order(self) -> NDArray[np.int32]:
        """The columns by frequency, for rows with too few scored labels."""
        return fill_order(self.label_counts)

    def trees(self, start: int, stop: int) -> FittedModel:
        """A model of some of the trees, without a second stage."""
        return replace(self, forest=self.forest.trees(start, stop), second_stage=None)

    def with_facts(self, **facts: Any) -> FittedModel:
        """With further facts about the training, as JSON values."""
        return replace(self, training={**self.training, **facts})

    @property
    def threshold_state(self) -> dict[str, Any]:
        """The threshold as three values of the saved form, one of which is not None."""
        state = dict.fromkeys(("threshold", "expected_f1", "thresholds"))
        if isinstance(self.threshold, ExpectedF1):
            return {**state, "expected_f1": tuple(self.threshold)}
        name = "thresholds" if isinstance(self.threshold, np.ndarray) else "threshold"
        return {**state, name: self.threshold}

    def propensities(self, **constants: Any) -> NDArray[np.float64] | None:
        """Propensities of the labels from the label counts; see `propensities_from_counts`."""
        return propensities_from_counts(self.label_counts, self.n_training_rows, **constants)

    def fingerprint(self) -> str:
        """Hash of everything that determines a prediction."""
        values = {
            **vars(self),
            **self.threshold_state,
            "dense_from_main": self.layout.from_main,
        }
        if isinstance(self.threshold, np.ndarray):
            values["threshold"] = self.threshold.tolist()
        deciding = (
            self.forest.leaf_scores,
            *(
                values[entry.name]
                for entry in MODEL.entries
                if entry.hashed and not entry.is_default(values)
            ),
        )
        stage = self.second_stage
        own = () if stage is None else stage_hashed(stage, self.label_counts, self.n_training_rows)
        return fingerprint(
            self.forest.fingerprint(),
            repr(deciding),
            repr(self.classes.tolist()),
            self.label_counts.astype(np.int64),
            *own,
        )

    # -- predicting ---------------------------------------------------------------------------

    def top_columns(
        self,
        x: Blocks,
        k: int,
        *,
        allowed: Allowed | None = None,
        tail: float = 0.0,
        n_jobs: int | None = None,
    ) -> TopColumns:
        """The k best columns of each row, best first, and their scores.

        A positive `tail` favours rare labels in the order: score / propensity ** tail.
        """
        check_tail(tail)
        propensities = self.propensities() if tail else None
        weights = None if propensities is None else np.asarray(propensities**-tail)

        answer = partial(self._best_columns, k, allowed, weights)
        columns, scores = zip(*_by_chunk(answer, x, n_jobs), strict=True)
        return _stacked(columns), _stacked(scores)

    def _best_columns(
        self,
        k: int,
        allowed: Allowed | None,
        weights: NDArray[np.float64] | None,
        rows: Blocks,
        control: Control,
    ) -> TopColumns:
        if self.second_stage is None and weights is None:
            return self.tree_columns(rows, k, allowed, control.cancel)
        lists, values = self.scored_shortlists(rows, allowed, control.cancel, least=k)
        return _core.best_of_lists(
            lists.indptr, lists.labels, values, k, self.fill_order, allowed, weights
        )

    def shortlists(
        self,
        x: Blocks,
        allowed: Allowed | None = None,
        cancel: CancelFlag | None = None,
        *,
        least: int = 1,
    ) -> Shortlists:
        """The rows' candidates.

        Without a second stage they are the best labels of the trees, at least `least`.
        """
        stage = self.second_stage
        if allowed is not None:  # dropped labels are excluded, too
            allowed = np.append(allowed, np.zeros(self.forest.n_dropped, np.uint8))
        if stage is None:
            length = max(least, SHORTLIST)
            return match(self.forest, x, length, allowed=allowed, cancel=cancel)
        lists = stage.shortlists(self.forest, x, allowed=allowed, cancel=cancel)
        return stage.or_most_frequent(x, lists, allowed)

    def scored_shortlists(
        self,
        x: Blocks,
        allowed: Allowed | None,
        cancel: CancelFlag | None,
        *,
        least: int = 1,
    ) -> tuple[Shortlists, NDArray[np.float32]]:
        """The rows' candidates and their scores; see `shortlists`."""
        stage, lists = self.second_stage, self.shortlists(x, allowed, cancel, least=least)
        if stage is None:
            return lists, lists.tree_scores
        return lists, stage.scores(x, lists, cancel, n_training_rows=self.n_training_rows)

    def tree_columns(
        self, x: Blocks, k: int, allowed: Allowed | None, cancel: CancelFlag | None
    ) -> TopColumns:
        """The k best columns of each row by the trees alone, and the trees' scores."""
        return self.forest.top_labels(
            x.read_by("trees"),
            k,
            self.fill_order,
            allowed=allowed,
            cancel=cancel,
        )

    def scores(
        self, x: Blocks, *, allowed: Allowed | None = None, n_jobs: int | None = None
    ) -> sp.csr_array:
        """Every positive score; with a second stage, those of the shortlists."""
        scores = sp.vstack(_by_chunk(partial(self._scores, allowed), x, n_jobs), format="csr")
        if self.second_stage is None and allowed is not None:
            scores.data *= allowed[scores.indices]
        scores.eliminate_zeros()
        return scores

    def _scores(self, allowed: Allowed | None, rows: Blocks, control: Control) -> sp.csr_array:
        if self.second_stage is None:
            indptr, labels, values = self.forest.scores(
                rows.read_by("trees"), cancel=control.cancel
            )
        else:
            lists, values = self.scored_shortlists(rows, allowed, control.cancel)
            indptr, labels = lists.indptr, lists.labels
        return sp.csr_array((values, labels, indptr), shape=(rows.n_rows, self.n_labels))

    def probabilities(
        self, x: Blocks, *, allowed: Allowed | None = None, n_jobs: int | None = None
    ) -> sp.csr_array | NDArray[np.float64]:
        """The scores in the form of Y: sparse, or dense for dense Y and for one label per row.

        With one label per row, and without `allowed`, the scores of a row sum to 1.
        """
        scores = self.scores(x, allowed=allowed, n_jobs=n_jobs)
        if self.label_form in ("sparse", "lists"):
            return scores
        dense: NDArray[np.float64] = scores.astype(np.float64).toarray()
        if self.label_form == "single" and allowed is None and self.second_stage is not None:
            # A second stage scores each label by itself, but here labels exclude each other.
            dense /= np.maximum(dense.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return dense

    def best_labels(
        self, x: Blocks, k: int, *, fill: bool = False, **options: Any
    ) -> Iterator[LabelScores]:
        """Each row's k best labels with their scores; those without a score only to `fill` up.

        The other options are those of `top_columns`.
        """
        columns, scores = self.top_columns(x, k, **options)
        for names, values in zip(self.classes[columns].tolist(), scores.tolist(), strict=True):
            pairs = zip(names, values, strict=True)
            yield list(pairs) if fill else [(name, score) for name, score in pairs if score > 0]

    def label_sets(
        self, x: Blocks, threshold: Threshold | None = None, **options: Any
    ) -> Iterator[LabelScores]:
        """Each row's labels that reach the threshold, the model's own if None, best first.

        The options are those of `probabilities`.
        """
        scores = sp.csr_array(self.probabilities(x, **options))
        scores = above_threshold(scores, self.threshold if threshold is None else threshold)
        for row in range(scores.shape[0]):
            part = slice(*scores.indptr[row : row + 2])
            columns, values = scores.indices[part], scores.data[part]
            order = np.lexsort((columns, -values))
            names = self.classes[columns[order]].tolist()
            yield list(zip(names, values[order].tolist(), strict=True))

    @cached_property
    def columns(self) -> dict[Any, int]:
        """The column of each label."""
        return {label: i for i, label in enumerate(self.classes.tolist())}

    def allowed(self, only: Any = None, without: Any = None) -> Allowed | None:
        """The columns that a request may predict; None if all may."""
        return chosen_columns(self.columns, only, without)


def fill_order(label_counts: NDArray[np.int64]) -> NDArray[np.int32]:
    """The columns from the most to the least frequent, for rows with too few scored labels."""
    return np.argsort(-label_counts, kind="stable").astype(np.int32)


def check_tail(tail: float) -> None:
    """Raise an error unless `tail` is a valid exponent of the propensities."""
    if not isinstance(tail, Real) or isinstance(tail, bool) or not 0 <= tail <= sys.float_info.max:
        raise ValueError(f"The 'tail' parameter must be a float >= 0. Got {tail!r} instead.")


def _stacked(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class _RowsTask(Generic[Answer]):
    """Answers for consecutive rows, (first, one past the last)."""

    answer: Callable[[Blocks, Control], Answer]
    x: Blocks

    def __call__(self, rows: tuple[int, int], control: Control) -> Answer:
        return self.answer(self.x.rows(*rows), control)


def _by_chunk(
    answer: Callable[[Blocks, Control], Answer], x: Blocks, n_jobs: int | None
) -> list[Answer]:
    """The answers for consecutive rows. No row's answer depends on its chunk."""
    size, n_rows = _CHUNK, x.n_rows
    if PARALLEL_ROWS <= n_rows < _CHUNK:
        # Small batches cost more per row, so there are as many as threads, and with one thread one.
        size = -(-n_rows // ThreadExecutor(n_jobs).at_once)
    with out_of_memory(f"predict {n_rows:,} rows"):
        if n_rows <= size:
            return [answer(x, Control.unshared())]
        executor = ThreadExecutor(n_jobs) if n_rows <= _CHUNK else stage_executor(n_jobs)
        starts = range(0, n_rows, size)
        chunks = [(start, min(start + size, n_rows)) for start in starts]
        return executor.map(_RowsTask(answer, x), chunks, name="chunk")
