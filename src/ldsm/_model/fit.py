"""The steps of a fit, from training data to a fitted model."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from .._arrays.labels import LabelArrays
from .._arrays.matrices import label_csr
from .._execution.executor import Executor, JoblibExecutor, ProgressCallback, ThreadExecutor
from .._execution.memory import check_columns
from .._features.training_rows import TrainingRows
from .._matching.feature_index import FeatureIndex
from .._matching.matchers import OutOfBag
from .._matching.part import Training
from .._matching.shortlists import Shortlists
from .._ranking.training import (
    Matching,
    Tested,
    match_training_rows,
    n_found,
    train_second_stage,
)
from .._storage.paths import PathLike
from .._storage.tasks.kept_results import KeepingExecutor
from .._trees.checkpoint import open_checkpoint
from .._trees.forest import Forest
from .._trees.forest_size import grow_enough
from .._trees.growing import TreeWork, grow_forest, report_on_stderr
from .._trees.params import (
    AUTO,
    MOST_TREES,
    check_warm_start,
    rerank_kind,
    resolve,
    scores_by_rows,
)
from .._trees.training_data import TrainingData
from .._wording import argument
from .fitted import MOST_FEATURES, FittedModel
from .names import LabelNames
from .relabel import aligned
from .thresholds import DEFAULT_THRESHOLD, TUNED_FOR, best_threshold

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
    executor: Executor | None = None,
    callback: ProgressCallback | None = None,
    checkpoint_dir: PathLike | None = None,
) -> Fit:
    """Grow the trees that are missing, then train the second stage on all of them.

    `settings` are the estimator's parameters, checked. The trees of a `former` model of the same
    data are kept, and more are added to them. The `executor` runs the parts of every stage; by
    default joblib grows the trees, and threads do the rest. All else is as in `LdSMClassifier.fit`.
    """
    started = time.perf_counter()
    if data.n_features > MOST_FEATURES:
        raise ValueError(
            f"X must have at most {MOST_FEATURES:,} columns. Got {data.n_features:,}: leave out "
            "those that no row uses, or hash them to fewer."
        )
    check_columns("X", data.n_features, _FEATURE_BYTES)
    trees = TrainingData(data.blocks.read_by("trees"), data.y, data.store)
    if former is not None:
        stage = former.second_stage
        # Label names are used only if they were used before.
        data = replace(data, with_names=stage is not None and stage.names is not None)
        trees = replace(trees, x=trees.x.leading(former.forest.n_features))
    params = resolve(settings, trees.x, len(data.y.indices))
    seed_given = former is not None or isinstance(settings["random_state"], Integral)
    if former is None:
        state = check_random_state(settings["random_state"])
        seed = int(state.randint(np.iinfo(np.int32).max, dtype=np.int64))
        first_tree = 0
    else:
        former = aligned(former, data.y.classes)  # it may have been relabelled since
        seed, first_tree = former.seed, former.forest.n_trees
        check_warm_start(settings["n_estimators"], first_tree, params, former.tree_params)
        same_names = np.array_equal(data.y.classes, former.classes)
        if data.y.form != former.label_form or not same_names:
            warm = argument("warm_start", True)
            raise ValueError(f"With {warm} the labels must stay the same.")
    checkpoint = None
    if checkpoint_dir is not None:
        checkpoint = open_checkpoint(
            checkpoint_dir, trees, params, seed=seed, seed_given=seed_given
        )
        seed = checkpoint.seed
    threads = ThreadExecutor(settings["n_jobs"])
    stages: Executor = executor or threads
    executor = executor or JoblibExecutor(settings["n_jobs"])
    work = TreeWork(
        trees,
        params,
        seed,
        checkpoint,
        None if settings["memory_limit"] == AUTO else int(settings["memory_limit"]),
        executor.at_once,
    )
    if checkpoint is not None:
        stages = KeepingExecutor(stages, checkpoint.folder)
    elif work.scratch_folder is not None:
        stages = KeepingExecutor.temporary(stages, work.scratch_folder)
    kind = rerank_kind(settings, data.n_rows)
    training = Training(data, settings, seed, stages, params.compress)
    index = None

    def out_of_bag(forest: Forest) -> OutOfBag:
        return OutOfBag(
            forest,
            data.blocks,
            seed,
            params.subsample,
            scores_by_rows(settings["leaf_scores"]),
            stages,
            threads,
            training.folds,
            None if data.y.counts.all() else (data.y.counts > 0).astype(np.uint8),
        )

    report = callback or (report_on_stderr if settings["verbose"] else None)
    n_trees = settings["n_estimators"]
    if n_trees == AUTO and params.subsample < 1 and kind in (AUTO, "linear"):
        index = FeatureIndex.train("index", training)
        forest, n_taken = grow_enough(
            work,
            executor,
            lambda some: n_found(out_of_bag(some), training, index),
            former=None if former is None else former.forest,
            callback=report,
        )
    else:
        n_missing = max(0, (MOST_TREES if n_trees == AUTO else n_trees) - first_tree)
        if former is not None and n_missing == 0:
            forest, n_taken = former.forest, 0
        else:
            forest, n_taken = grow_forest(
                work, executor, first_tree=first_tree, n_trees=n_missing, callback=report
            )
            if former is not None:
                forest = former.forest.extended(forest)
    matching, tested, threshold = None, None, DEFAULT_THRESHOLD
    if params.subsample < 1:
        matching = match_training_rows(
            out_of_bag(forest), training, with_others=kind in (AUTO, "linear"), index=index
        )
        if kind is not None:
            tested = train_second_stage(kind, training, matching)
        threshold = _tuned_threshold(data.y, matching, tested, training.held_rows)
    if settings["threshold"] != AUTO:
        threshold = float(settings["threshold"])
    seconds = time.perf_counter() - started
    facts = {
        "seed": seed,
        "rows": data.n_rows,
        "features": data.n_features,
        "labels": data.n_labels,
        "data_fingerprint": data.fingerprint,
        "seconds": round(seconds + (former.training["seconds"] if former else 0), 3),
        "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    if checkpoint is not None:
        facts["trees_from_checkpoint"] = n_taken
    model = FittedModel(
        forest,
        None if tested is None else tested.stage,
        LabelNames.of(data.y.classes),
        data.y.form,
        data.y.counts,
        settings["leaf_scores"],
        params,
        seed,
        facts,
        data.feature_names,
        threshold,
        layout=data.blocks.layout,
    )
    oob_scores = None
    if matching is not None and settings["subsample"] != AUTO:
        oob_scores = Shortlists.joined(matching.lists).tree_matrix(data.n_labels)
    return Fit(model, oob_scores)


def _tuned_threshold(
    y: LabelArrays, matching: Matching, tested: Tested | None, held_rows: NDArray[np.int64]
) -> float:
    """The threshold with the best F1 of training rows, scored by what has not seen them."""
    if y.form == "single":
        return DEFAULT_THRESHOLD
    if tested is None:
        every = -(-y.n_rows // _MOST_TUNING_ROWS)
        rows = np.arange(0, y.n_rows, every)
        chunks = [lists.tree_matrix(y.n_labels) for lists in matching.lists]
        scores = sp.vstack(chunks, format="csr")[rows]
    else:
        rows = held_rows
        scores = replace(matching.held, tree_scores=tested.held_scores).tree_matrix(y.n_labels)
    true = y.take(rows)
    truth = label_csr(true.indptr, true.indices, y.n_labels)
    return best_threshold(scores, truth, TUNED_FOR)
