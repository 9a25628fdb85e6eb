"""Grow trees on the workers of a cluster, into a checkpoint folder."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from distributed import Client, get_worker
from numpy.typing import NDArray
from sklearn.base import clone

from .._execution.threads import CancelToken, at_intervals
from .._storage.paths import PathLike
from .._trees.checkpoint import Tree, prepare_folder
from .._trees.growing import ProgressCallback, TreeWork, check_callback, grow_tree
from .._trees.training_data import StoredTrainingData
from ..classifier import LdSMClassifier, fit_classifier
from ..datasets.dataset import Dataset, StoreLocation
from ..datasets.store import check_same_store
from .tasks import on_worker, results
from .workers import check_client, check_workers, most_threads, opened, sees_folder

_REPORT_SECONDS = 2.0  # between two progress messages of a tree


def fit(
    client: Client,
    store: PathLike | Dataset,
    params: LdSMClassifier | Mapping[str, Any],
    checkpoint_dir: PathLike,
    *,
    callback: ProgressCallback | None = None,
) -> LdSMClassifier:
    """Fit a classifier on a cluster; the model is bit for bit that of `LdSMClassifier.fit`.

    There is one task per tree, named ``ldsm-tree-00007-...``. A worker opens the store, grows the
    tree and writes it to `checkpoint_dir`; if it dies, another worker starts that tree again. The
    out-of-bag scores and the second stage are computed by the driver, in `n_jobs` threads.

    Parameters
    ----------
    client : distributed.Client
        Connected to the cluster.
    store : path or Dataset
        A store that every worker sees under the same absolute path, or the result of `open_store`.
    params : LdSMClassifier or mapping
        An estimator, which is not changed, or the parameters of one.
    checkpoint_dir : path
        A folder shared by the driver and all workers: new, empty, or the checkpoint of the same
        fit. See `LdSMClassifier.fit`, which can continue it and be continued from it.
    callback : callable, optional
        Called about ten times a second with (nodes grown, maximum number of nodes).

    Returns
    -------
    LdSMClassifier
        Fitted.

    Raises
    ------
    ClusterError
        Before the start, if a worker does not see the store, cannot write to the folder or has
        another version of ldsm; later, if a tree fails, the scheduler is lost or no worker is left.
        Finished trees stay in the folder, and trees that workers have begun are still written
        there.
    """
    check_client(client)
    check_callback(callback)
    clf = _estimator(params)
    data, location = opened(store)
    if len(data) == 0 or data.X is None:
        has = "no rows" if len(data) == 0 else "texts instead of features"
        raise ValueError(f"The store {location.folder!r} has {has} to train on.")
    folder = prepare_folder(checkpoint_dir)
    with sees_folder(folder) as shared:
        check_workers(client, [partial(check_same_store, location), shared])
    return fit_classifier(
        clf,
        data,
        callback=callback,
        checkpoint_dir=folder,
        executor=partial(_on_cluster, client, location),
    )


def _estimator(params: Any) -> LdSMClassifier:
    if isinstance(params, LdSMClassifier):
        return clone(params)  # type: ignore[no-any-return]
    if not isinstance(params, Mapping):
        raise ValueError(
            "The 'params' argument must be an LdSMClassifier or a mapping of its parameters. "
            f"Got {params!r} instead."
        )
    clf = LdSMClassifier()
    clf.set_params(**params)  # an unknown one raises an error with all names
    return clf


def _on_cluster(
    client: Client,
    store: StoreLocation,
    work: TreeWork,
    trees: Sequence[int],
    progress: NDArray[np.int64],
    token: CancelToken,
) -> list[Tree]:
    """The `_trees.growing.TreeExecutor` of a cluster; finished trees are read while others grow."""
    checkpoint = work.checkpoint
    assert checkpoint is not None
    rows = StoredTrainingData(store, work.data.n_features)
    work = replace(work, data=rows, trees_at_once=most_threads(client))
    # Every call uses new names: Dask would not run a task again whose name it knows.
    run = secrets.token_hex(4)
    topic = f"ldsm-progress-{run}"
    place = {tree: i for i, tree in enumerate(trees)}
    grown: dict[int, Tree] = {}

    def note(event: tuple[float, tuple[int, int]]) -> None:
        tree, nodes = event[1]
        if tree not in grown:
            progress[place[tree]] = nodes

    def between() -> None:
        if token.cancelled:
            raise RuntimeError("The trees were cancelled.")

    client.subscribe_topic(topic, note)
    try:
        futures = client.map(
            partial(on_worker, _grow, work, topic),
            trees,
            key=[f"ldsm-tree-{tree:05}-{run}" for tree in trees],
        )
        kept = (
            f"Finished trees are kept in {checkpoint.folder!r}: the same fit continues from there, "
            "with or without Dask."
        )
        named = dict(zip(trees, futures, strict=True))
        del futures  # Dask keeps a task for as long as its future is held
        for tree, receipt in results(client, named, "tree", kept=kept, between=between):
            grown[tree] = checkpoint.get(receipt)
            progress[place[tree]] = work.params.max_nodes
    finally:
        with suppress(Exception):  # the scheduler may be gone
            client.unsubscribe_topic(topic)
    return [grown[tree] for tree in trees]


def _grow(work: TreeWork, topic: str, tree: int) -> Any:
    """Runs on a worker: grows one tree into the folder."""
    assert work.checkpoint is not None
    # A worker may have been lost after writing the tree, before its receipt was read.
    receipt = work.checkpoint.receipt(tree)
    if receipt is not None:
        return receipt
    progress, worker = np.zeros(1, dtype=np.int64), get_worker()
    with at_intervals(_REPORT_SECONDS, lambda: worker.log_event(topic, (tree, int(progress[0])))):
        return grow_tree(work, tree, progress=progress)
