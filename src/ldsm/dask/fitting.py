"""Fit a model on the workers of a cluster."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
import scipy.sparse as sp
from distributed import Client
from sklearn.base import clone

from .._execution.executor import ProgressCallback, check_callback
from .._storage.paths import PathLike, folder_path
from .._wording import parameter
from ..classifier import LdSMClassifier
from ..datasets.dataset import Dataset
from ..datasets.store import open_store, save_store
from ..text import TextTagger
from .partitions import documents, is_collection, partitions
from .rows import are_texts, check_label_array, opened
from .running import running_on_workers
from .workers import check_client


def fit(
    client: Client,
    data: Any,
    labels: Any = None,
    model: Any = None,
    checkpoint_dir: PathLike | None = None,
    *,
    callback: ProgressCallback | None = None,
    **options: Any,
) -> LdSMClassifier | TextTagger:
    """Fit a model on a cluster: bit for bit the one that its own `fit` gives on one machine.

    There is one task per tree, named ``ldsm-tree-00007-...``. A worker grows the tree and writes it
    to `checkpoint_dir`; if it dies, another worker starts that tree again. Before, workers count
    the words and features of texts, chunk by chunk. The second stage has tasks for ranges of
    features, which train the indexes, for chunks of rows, which make their shortlists, and for
    ranges of labels, which train their classifiers. Workers map what they need from the folder. The
    driver reads the texts, numbers their words and fits the blend.

    Parameters
    ----------
    client : distributed.Client
        Connected to the cluster.
    data : path, Dataset, collection of Dask, matrix or texts
        The training rows. Best is a store, by its path or as a result of `open_store`, that every
        worker sees under the same absolute path: then rows are never sent. Other files are read by
        the driver. A column of texts of a data frame, a bag of (text, tags) pairs and an array of
        features are read partition by partition. All else is as in the `fit` of the model.
    labels : labels of each row, optional
        A column of lists of tags for a column of texts; a 0/1 array for an array; otherwise as in
        the `fit` of the model. Omit it if `data` includes them.
    model : LdSMClassifier, TextTagger or mapping, optional
        An estimator, which is not changed, or parameters of the classifier. By default texts give
        a TextTagger and features an LdSMClassifier.
    checkpoint_dir : path, optional
        A folder shared by the driver and all workers: new, empty, or the checkpoint of the same
        fit, which may be resumed with or without Dask. By default a temporary folder, which serves
        workers on this machine. The rows of Dask arrays and matrices are written beside it, so its
        parent must be shared, too.
    callback : callable, optional
        Called about ten times a second with (nodes grown, maximum number of nodes).
    **options
        More arguments of the model's `fit`, such as `vocabulary`. The `embeddings` of a Dask array
        are a Dask array, too; those of a store lie in it.

    Returns
    -------
    LdSMClassifier or TextTagger
        Fitted.

    Raises
    ------
    ClusterError
        Before the start, if a worker does not see the store, cannot write to the folder or has
        another version of ldsm; later, if a task fails, the scheduler is lost or no worker is left.
        Finished trees and parts stay in the folder; workers still write those that they have begun.

    Examples
    --------
    ``ldsm.dask.fit(client, frame["text"], frame["tags"])`` reads a data frame of Dask.
    """
    check_client(client)
    check_callback(callback)
    if checkpoint_dir is not None:
        folder_path(parameter("checkpoint_dir"), checkpoint_dir)
    rows = opened(data)
    estimator = _estimator(model, rows, of_texts=are_texts(rows))
    store = rows.store if isinstance(rows, Dataset) else None
    with ExitStack() as until_end:
        folder = until_end.enter_context(running_on_workers(client, checkpoint_dir, store))
        if is_collection(rows):
            if isinstance(estimator, TextTagger):
                rows, labels = documents(client, rows, labels), None
            else:
                place = tempfile.TemporaryDirectory(
                    dir=os.path.dirname(folder), prefix="ldsm-rows-"
                )
                parts = (rows, labels, options.pop("embeddings", None))
                rows = _stored(client, *parts, until_end.enter_context(place))
                labels = None
        return estimator.fit(rows, labels, callback=callback, checkpoint_dir=folder, **options)


def _estimator(model: Any, rows: Any, *, of_texts: bool) -> LdSMClassifier | TextTagger:
    if isinstance(rows, Dataset) and len(rows) == 0:
        raise ValueError(f"{rows!r} has no rows to train on.")
    if isinstance(model, TextTagger):
        if not of_texts:
            raise ValueError(f"A TextTagger needs texts. Got {type(rows).__name__} of features.")
        return clone(model)  # type: ignore[no-any-return]
    if model is not None and not isinstance(model, (LdSMClassifier, Mapping)):
        raise ValueError(
            "The 'model' argument must be an LdSMClassifier, a TextTagger or a mapping of the "
            f"classifier's parameters. Got {model!r} instead."
        )
    classifier = clone(model) if isinstance(model, LdSMClassifier) else LdSMClassifier()
    if isinstance(model, Mapping):
        classifier.set_params(**model)  # the error for an unknown parameter lists all names
    return TextTagger(classifier) if of_texts else classifier


def _stored(client: Client, X: Any, Y: Any, embeddings: Any, folder: str) -> Dataset:
    """The rows of arrays of Dask as a store in a folder."""
    check_label_array(Y)
    if embeddings is not None and not is_collection(embeddings):
        raise ValueError(
            f"The embeddings of an array of Dask must be one, too. Got {type(embeddings).__name__}."
        )

    def chunks() -> Iterator[Dataset]:
        given = (X, Y) if embeddings is None else (X, Y, embeddings)
        for x, y, *dense in partitions(client, *given):
            own = sp.csr_array(x, dtype=np.float32), sp.csr_array(y, dtype=np.int32)
            yield Dataset(*own, embeddings=dense[0] if dense else None)

    save_store(chunks(), os.path.join(folder, "rows"))
    return open_store(os.path.join(folder, "rows"))
