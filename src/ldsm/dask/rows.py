"""Rows of any kind for the workers of a cluster: as a store, which they open by its path."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from distributed import Client

from .._arrays.labels import known_labels
from .._model.inputs import new_rows
from ..datasets.dataset import Dataset, named_labels
from ..datasets.documents.jsonl import iter_jsonl
from ..datasets.formats import guess_format, load_dataset
from ..datasets.store import open_store, save_store
from ..evaluation.alignment import Estimator, classifier_of
from ..text import TextTagger
from ..text.corpus import Pair, in_chunks, read_pairs, read_texts
from .partitions import documents, is_collection, partitions
from .tasks import ClusterError
from .workers import Check, check_workers, sees_folder, share_hint

_TEXTS_AT_ONCE = 4096


def opened(data: Any, *, labels: str | None = "labels") -> Any:
    """The rows of a path; JSON Lines are read document by document, with their labels, if any."""
    if not isinstance(data, (str, os.PathLike)):
        return data
    if os.path.exists(data) and guess_format(data) == "jsonl":
        pairs = iter_jsonl(data, labels=labels)
        return pairs if labels is not None else (text for text, _ in pairs)
    return open_store(data) if not os.path.isfile(data) else load_dataset(data)


def are_texts(rows: Any) -> bool:
    """Whether rows are texts, or features made from texts, rather than features."""
    if isinstance(rows, Dataset):
        return rows.texts is not None or rows.text_form is not None
    return not (hasattr(rows, "shape") and len(rows.shape) == 2)


@contextmanager
def stored(
    client: Client,
    model: Estimator,
    data: Any,
    labels: Any = None,
    *,
    labelled: bool,
    output_dir: str | None = None,
) -> Iterator[tuple[Dataset, bool]]:
    """The rows in a store, and whether its labels are already in the columns of the model.

    Rows that are in no store are written to a temporary one, beside `output_dir` if there is one.
    """
    rows = opened(data, labels="labels" if labelled else None)
    if isinstance(rows, Dataset) and labels is not None:
        raise ValueError("A Dataset includes its labels: labels must be omitted.")
    if isinstance(rows, Dataset) and rows.store is not None:
        yield rows, False
        return
    of_texts = isinstance(model, TextTagger)
    if are_texts(rows) != of_texts:
        wanted = "texts" if of_texts else "a matrix of features"
        raise ValueError(f"The model reads {wanted}. Got {type(rows).__name__}.")
    beside = None if output_dir is None else os.path.dirname(output_dir)
    with tempfile.TemporaryDirectory(dir=beside, prefix="ldsm-rows-") as place:
        folder = os.path.join(place, "rows")
        if isinstance(rows, Dataset):
            save_store(rows, folder)
        else:
            save_store(_chunks(client, model, rows, labels, labelled), folder)
        try:
            yield open_store(folder), not isinstance(rows, Dataset)
        except ClusterError as error:
            if beside is None and repr(folder) in str(error):
                raise ClusterError(f"{error} {share_hint('predictions')}") from error
            raise


@contextmanager
def exchange(client: Client, checks: Sequence[Check]) -> Iterator[str]:
    """A temporary folder that all workers see; a ClusterError if not, or if another check fails."""
    with tempfile.TemporaryDirectory(prefix="ldsm-rows-") as folder, sees_folder(folder) as shared:
        try:
            check_workers(client, [*checks, shared])
        except ClusterError as error:
            if repr(folder) in str(error):
                raise ClusterError(f"{error} {share_hint('predictions')}") from error
            raise
        yield folder


def _chunks(
    client: Client, model: Estimator, rows: Any, labels: Any, labelled: bool
) -> Iterator[Dataset]:
    """Rows with their labels, if these are wanted, in the columns of the model."""
    fitted = classifier_of(model).model_
    names = fitted.classes.tolist()
    named = names if isinstance(names[0], str) else None
    if isinstance(model, TextTagger):
        column = {name: i for i, name in enumerate(names)}
        for part in in_chunks(_documents(client, rows, labels, labelled), _TEXTS_AT_ONCE):
            known = [[tag for tag in tags if tag in column] for _, tags in part]
            texts = [text for text, _ in part]
            yield Dataset(None, named_labels(known, column), texts=texts, label_names=named)
        return
    if labelled and labels is None:
        raise ValueError("The 'labels' argument must hold the labels of the rows. Got None.")
    for X, Y in _matrices(client, rows, labels if labelled else None):
        X = new_rows(classifier_of(model), X).main.matrix()
        if Y is None or (sp.issparse(Y) and Y.nnz == 0):
            Y = sp.csr_array((X.shape[0], len(names)), dtype=np.int8)
        else:
            Y = known_labels(Y, None, fitted.classes, fitted.label_form)
        yield Dataset(X, Y, label_names=named)


def _documents(client: Client, rows: Any, labels: Any, labelled: bool) -> Iterator[Pair]:
    """Texts with their tags, or without, if these are not wanted."""
    if labelled:
        return (
            read_pairs(documents(client, rows, labels))
            if is_collection(rows)
            else read_pairs(rows, labels)
        )
    return ((text, []) for text in texts_of(client, rows))


def texts_of(client: Client, rows: Any) -> Iterator[str]:
    """Texts one after the other."""
    texts = (text for (some,) in partitions(client, rows) for text in some)
    return read_texts(texts if is_collection(rows) else rows)


def _matrices(client: Client, X: Any, Y: Any) -> Iterator[tuple[Any, Any]]:
    """Features and labels: partition by partition, or as they are."""
    if not is_collection(X):
        yield X, Y
    elif Y is None:
        yield from ((x, None) for (x,) in partitions(client, X))
    else:
        check_label_array(Y)
        yield from ((x, sp.csr_array(y)) for x, y in partitions(client, X, Y))


def check_label_array(Y: Any) -> None:
    """Raise an error unless the labels of an array of Dask are one, too."""
    if not is_collection(Y) or len(getattr(Y, "shape", ())) != 2:
        raise ValueError(
            "The labels of an array of Dask must be a 0/1 array of Dask with two dimensions. "
            f"Got {type(Y).__name__}."
        )
