"""The steps of a fit, from training data to a fitted model."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from .._arrays.labels import LabelArrays
from .._arrays.matrices import label_csr
from .._execution.chosen import stage_executor, tree_executor
from .._execution.executor import Executor, ProgressCallback, ThreadExecutor
from .._execution.memory import check_columns
from .._features.blocks import Layout
from .._features.training_rows import TrainingRows
from .._matching.matchers import OutOfBag
from .._matching.part import TrainedMatcher, Training
from .._matching.shortlists import Shortlists
from .._matching.training_lists import Matching, match_training_rows, n_found, trained_early
from .._ranking.training import Tested, train_second_stage
from .._storage.paths import PathLike
from .._storage.tasks.kept_results import KeepingExecutor
from .._trees.checkpoint import open_checkpoint
from .._trees.forest import Forest
from .._trees.forest_size import grow_enough
from .._trees.growing import TreeWork, grow_forest, report_on_stderr
from .._trees.params import (
    AUTO,
    TreeParams,
    check_warm_start,
    effort_of,
    given_limit,
    rerank_kind,
    resolve,
)
from .._trees.training_data import TrainingData
from .._wording import argument
from .fitted import MOST_FEATURES, FittedModel
from .names import LabelNames
from .relabel import aligned
from .sets.expected_f1 import ExpectedF1
from .sets.thresholds import DEFAULT_THRESHOLD, F1, TUNED_FOR, Threshold, best_threshold

_MOST_TUNING_ROWS = 10_000  # far more than one threshold needs
_FEATURE_BYTES = 24  # the minimum per feature for growing a tree


class Fit(NamedTuple):
    """The result of a fit: the model, and the scores of its training rows."""

    model: FittedModel
    # Each row's best labels by the trees that never saw it, if `subsample` was given.
    oob_scores: sp.csr_array | None


def fit_model(
    settings: Mapping[str, Any],
    data: TrainingRows,
    *,
    former: FittedModel | None = None,
    callback: ProgressCallback | None = None,
    checkpoint_dir: PathLike | None = None,
) -> Fit:
    """Grow the trees that are missing, then train the second stage on all of them.

    `settings` are the estimator's parameters, checked. The trees of a `former` model of the same
    data are kept, and more are added to them. Unless an executor is set, joblib grows the trees,
    and threads do the rest. All else is as in `LdSMClassifier.fit`.
    """
    started = time.perf_counter()
    run = _Run.of(settings, data, former, checkpoint_dir)
    grown = run.grow(callback or (report_on_stderr if settings["verbose"] else None))
    matching = run.match(grown)
    tested = None
    if run.rerank is not None and matching is not None:
        tested = train_second_stage(run.rerank, run.training, matching)
    y = data.y
    model = FittedModel(
        grown.forest,
        None if tested is None else tested.stage,
        LabelNames.of(y.classes),
        y.form,
        y.counts,
        run.work.params,
        run.work.seed,
        run.facts(grown, time.perf_counter() - started),
        data.feature_names,
        _threshold(run.training, matching, tested),
        layout=_layout(data.blocks.layout, tested),
    )
    oob_scores = None
    if matching is not None and settings["subsample"] != AUTO:
        oob_scores = Shortlists.joined(matching.lists).tree_matrix(y.n_labels)
    return Fit(model, oob_scores)


@dataclass(frozen=True, eq=False)
class _Grown:
    """The forest of a fit."""

    forest: Forest
    n_from_checkpoint: int
    # Matchers that the number of trees depended on.
    known: Mapping[str, TrainedMatcher[Any]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Run:
    """What the steps of one fit share."""

    training: Training
    former: FittedModel | None
    work: TreeWork
    tree_executor: Executor
    rerank: str | None  # the kind of second stage

    @classmethod
    def of(
        cls,
        settings: Mapping[str, Any],
        data: TrainingRows,
        former: FittedModel | None,
        checkpoint_dir: PathLike | None,
    ) -> _Run:
        """With the parameters resolved and checked, and the checkpoint opened."""
        _check_size(data)
        trees = TrainingData(data.blocks.read_by("trees"), data.y, data.store)
        if former is None:
            state = check_random_state(settings["random_state"])
            seed = int(state.randint(np.iinfo(np.int32).max, dtype=np.int64))
        else:
            former, seed = aligned(former, data.y.classes), former.seed  # it may be relabelled
            # Label names are used only if they were used before.
            stage = former.second_stage
            data = replace(data, with_names=stage is not None and stage.names is not None)
            trees = replace(trees, x=trees.x.leading(former.forest.n_features))
        params = resolve(settings, trees.x, len(data.y.indices))
        if former is not None:
            _check_goes_with(former, settings["n_estimators"], params, data.y)
        checkpoint = None
        if checkpoint_dir is not None:
            given = former is not None or isinstance(settings["random_state"], Integral)
            checkpoint = open_checkpoint(checkpoint_dir, trees, params, seed=seed, seed_given=given)
            seed = checkpoint.seed
        n_jobs = settings["n_jobs"]
        grower = tree_executor(n_jobs)
        work = TreeWork(
            trees,
            params,
            seed,
            checkpoint,
            given_limit(settings),
            grower.at_once,
            settings["leaf_scores"],
        )
        stages = stage_executor(n_jobs)
        if checkpoint is not None:
            stages = KeepingExecutor(stages, checkpoint.folder)
        elif work.scratch_folder is not None:
            stages = KeepingExecutor.temporary(stages, work.scratch_folder)
        training = Training(data, settings, seed, stages, params.compress)
        rerank = rerank_kind(settings, data.n_rows)
        return cls(training, former, work, grower, rerank)

    def grow(self, callback: ProgressCallback | None) -> _Grown:
        """Grow as many trees as asked for, or for as long as shortlists improve."""
        former = None if self.former is None else self.former.forest
        n_trees, first = self._n_trees, former.n_trees if former else 0
        if n_trees is None:
            known = trained_early(self.training)
            forest, n_taken = grow_enough(
                self.work,
                self.tree_executor,
                lambda some: n_found(self._out_of_bag(some), self.training, known),
                former=former,
                callback=callback,
            )
            return _Grown(forest, n_taken, known)
        n_missing = max(0, n_trees - first)
        if former is not None and n_missing == 0:
            return _Grown(former, 0)
        forest, n_taken = grow_forest(
            self.work, self.tree_executor, first_tree=first, n_trees=n_missing, callback=callback
        )
        return _Grown(forest if former is None else former.extended(forest), n_taken)

    def match(self, grown: _Grown) -> Matching | None:
        """Shortlists of all rows, by parts not trained on them; None if every tree saw all rows."""
        if self.work.params.subsample == 1:
            return None
        return match_training_rows(
            self._out_of_bag(grown.forest),
            self.training,
            with_others=self._has_matchers,
            known=grown.known,
        )

    @property
    def _n_trees(self) -> int | None:
        """How many trees to grow; None: as many as shortlists gain from."""
        given, effort = self.training.settings["n_estimators"], effort_of(self.training.settings)
        if given != AUTO:
            return int(given)
        return effort.matching_trees if self._has_matchers else effort.answering_trees

    @property
    def _has_matchers(self) -> bool:
        """Whether there may be matchers besides the trees."""
        return self.work.params.subsample < 1 and self.rerank in (AUTO, "linear")

    def _out_of_bag(self, forest: Forest) -> OutOfBag:
        training, counts = self.training, self.training.data.y.counts
        return OutOfBag(
            forest,
            training.data.blocks,
            training.seed,
            self.work.params.subsample,
            training.executor,
            ThreadExecutor(training.settings["n_jobs"]),
            training.folds,
            None if counts.all() else (counts > 0).astype(np.uint8),
        )

    def facts(self, grown: _Grown, seconds: float) -> dict[str, Any]:
        """What the model records about its training."""
        data = self.training.data
        before = 0 if self.former is None else self.former.training["seconds"]
        facts = {
            "seed": self.training.seed,
            "rows": data.n_rows,
            "features": data.n_features,
            "labels": data.n_labels,
            "data_fingerprint": data.fingerprint,
            "seconds": round(seconds + before, 3),
            "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }
        if self.work.checkpoint is not None:
            facts["trees_from_checkpoint"] = grown.n_from_checkpoint
        return facts


def _layout(layout: Layout, tested: Tested | None) -> Layout:
    """Without a dense block that was made of the features and is not read."""
    used = tested is not None and tested.stage.meaning is not None
    return layout if used or not layout.from_main else replace(layout, dense=0, from_main=False)


def _check_size(data: TrainingRows) -> None:
    if data.n_features > MOST_FEATURES:
        raise ValueError(
            f"X must have at most {MOST_FEATURES:,} columns. Got {data.n_features:,}: leave out "
            "those that no row uses, or hash them to fewer."
        )
    check_columns("X", data.n_features, _FEATURE_BYTES)


def _check_goes_with(
    former: FittedModel, n_estimators: int | str, params: TreeParams, y: LabelArrays
) -> None:
    """Raise a ValueError if a model cannot get more trees by these parameters and labels."""
    check_warm_start(n_estimators, former.forest.n_trees, params, former.tree_params)
    if y.form != former.label_form or not np.array_equal(y.classes, former.classes):
        raise ValueError(f"With {argument('warm_start', True)} the labels must stay the same.")


def _threshold(training: Training, matching: Matching | None, tested: Tested | None) -> Threshold:
    """The threshold given, or the one with the best F1 on scores of rows not trained on."""
    y, given = training.data.y, training.settings["threshold"]
    if given not in (AUTO, F1):
        return float(given)
    if y.form == "single":
        return DEFAULT_THRESHOLD
    if matching is None:
        unlabelled = float(np.diff(y.indptr).min() == 0)
        return ExpectedF1(unlabelled, DEFAULT_THRESHOLD) if given == F1 else DEFAULT_THRESHOLD
    if tested is None:
        rows = np.arange(0, y.n_rows, -(-y.n_rows // _MOST_TUNING_ROWS))
        chunks = [lists.tree_matrix(y.n_labels) for lists in matching.lists]
        scores = sp.vstack(chunks, format="csr")[rows]
    else:
        rows = training.held_rows
        scores = replace(matching.held, tree_scores=tested.held_scores).tree_matrix(y.n_labels)
    true = y.take(rows)
    truth = label_csr(true.indptr, true.indices, y.n_labels)
    common = best_threshold(scores, truth, TUNED_FOR)
    if given == AUTO:
        return common
    return ExpectedF1.of(scores, int(np.sum(np.diff(true.indptr) == 0)), common)
