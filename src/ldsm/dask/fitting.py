"""Fit a model on the workers of a cluster, through a checkpoint folder."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from distributed import Client
from sklearn.base import clone

from .._execution.executor import ProgressCallback, check_callback
from .._storage.paths import PathLike
from .._trees.checkpoint import prepare_folder
from ..classifier import LdSMClassifier, fit_classifier
from ..datasets.dataset import Dataset
from ..datasets.store import check_same_store
from .executor import DaskExecutor
from .workers import check_client, check_workers, opened, sees_folder


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
    second stage has one task per chunk of rows, which makes their shortlists, and one per range of
    labels, which trains their classifiers. Workers map what they need for it from the folder. The
    driver trains the indexes and fits the blend, in `n_jobs` threads.

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
        fit. `LdSMClassifier.fit` can resume it, and the other way round.
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
        Finished trees stay in the folder; workers still write the trees that they have begun.
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
        executor=DaskExecutor(
            client,
            folder,
            f"Finished trees are kept in {folder!r}: the same fit continues from there, with or "
            "without Dask.",
        ),
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
    clf.set_params(**params)  # the error for an unknown parameter lists all names
    return clf
