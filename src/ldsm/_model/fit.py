"""The steps of a fit, from checked arrays to trees and a second stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._arrays.inputs import FeatureArrays, LabelArrays
from .._second_stage.stage import SHORTLIST, SecondStage
from .._second_stage.training import Shortlists, TailParams, train_second_stage
from .._storage.container import PathLike
from .._trees.checkpoint import open_checkpoint
from .._trees.forest import Forest
from .._trees.growing import (
    ProgressCallback,
    Spread,
    TreeWork,
    by_joblib,
    grow_forest,
    out_of_bag,
    report_on_stderr,
)
from .._trees.params import AUTO, TreeParams, rerank_kind
from .._trees.training_data import Rows


@dataclass(frozen=True)
class FittedStages:
    """What a fit ends with.

    Attributes
    ----------
    forest, stage
        The trees, and what re-scores their shortlists.
    label_counts : ndarray
        Training rows per label.
    seed : int
        The one used, which may be a checkpoint's.
    oob_scores : csr_array or None
        Each row's best labels by trees that never saw it, if there are such trees.
    trees_taken : int or None
        Trees from the checkpoint; None without one.
    """

    forest: Forest
    stage: SecondStage | None
    label_counts: NDArray[np.int64]
    seed: int
    oob_scores: sp.csr_array | None
    trees_taken: int | None


def fit_stages(
    settings: Mapping[str, Any],
    params: TreeParams,
    rows: Rows,
    *,
    seed: int,
    seed_given: bool,
    grown: Forest | None,
    spread: Spread | None,
    callback: ProgressCallback | None,
    checkpoint_dir: PathLike | None,
) -> FittedStages:
    """Grow the trees that are missing, then train the second stage on all of them.

    Parameters
    ----------
    settings : mapping
        The estimator's parameters, checked.
    params : TreeParams
        What they mean for the trees.
    rows : Rows
    seed : int
    seed_given : bool
        False: the seed was drawn, and a checkpoint's own may take its place.
    grown : Forest, optional
        Trees of an earlier fit, which stay.
    spread : callable, optional
        Who has the trees grown; None: joblib, in `n_jobs` threads.
    callback, checkpoint_dir
        As `LdSMClassifier.fit` has them.
    """
    x, y, n_features = rows.x, rows.y, rows.n_features
    checkpoint, trees_taken = None, None
    if checkpoint_dir is not None:
        checkpoint = open_checkpoint(
            checkpoint_dir, x, y, params, n_features=n_features, seed=seed, seed_given=seed_given
        )
        seed, trees_taken = checkpoint.seed, 0
    first_tree = 0 if grown is None else grown.n_trees
    if grown is None or first_tree < settings["n_estimators"]:
        forest, n_taken = grow_forest(
            TreeWork(
                rows,
                params,
                seed,
                checkpoint,
                None if settings["memory_limit"] == AUTO else int(settings["memory_limit"]),
                joblib.effective_n_jobs(settings["n_jobs"]),
            ),
            spread or by_joblib(settings["n_jobs"]),
            first_tree=first_tree,
            n_trees=settings["n_estimators"] - first_tree,
            callback=callback or (report_on_stderr if settings["verbose"] else None),
        )
        forest = forest if grown is None else grown.extended(forest)
        trees_taken = None if trees_taken is None else n_taken
    else:
        forest = grown
    label_counts = np.bincount(y.indices, minlength=y.n_labels)
    lists = stage = oob_scores = None
    if params.subsample < 1:
        lists = out_of_bag(
            forest,
            x,
            seed,
            params.subsample,
            fill_order(label_counts),
            by_rows=settings["leaf_scores"] == "probability",
            k=min(SHORTLIST, y.n_labels),
        )
        shape = (x.n_rows, y.n_labels)
        oob_scores = sp.csr_array((lists.scores, lists.labels, lists.indptr), shape=shape)
    kind = rerank_kind(settings, x.n_rows)
    if kind is not None and lists is not None:
        stage = _second_stage(settings, kind, x, y, lists, n_features, seed)
    return FittedStages(forest, stage, label_counts, seed, oob_scores, trees_taken)


def fill_order(label_counts: NDArray[np.int64]) -> NDArray[np.int32]:
    """The columns from the most to the least frequent: what rows without enough scores get."""
    return np.argsort(-label_counts, kind="stable").astype(np.int32)


def _second_stage(
    settings: Mapping[str, Any],
    kind: str,
    x: FeatureArrays,
    y: LabelArrays,
    lists: Shortlists,
    n_features: int,
    seed: int,
) -> SecondStage | None:
    gamma = settings["tail_gamma"]
    tail = TailParams(
        settings["tail_blend"],
        None if gamma == AUTO else float(gamma),
        settings["tail_min_rows"],
    )
    return train_second_stage(
        kind, x, y, lists, tail, n_features=n_features, seed=seed, n_jobs=settings["n_jobs"]
    )
