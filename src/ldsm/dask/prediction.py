"""Prediction and evaluation on a cluster: one task per chunk of rows, one model per worker."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial, reduce
from operator import add
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from distributed import Client
from numpy.typing import NDArray

from .._arrays.labels import known_labels
from .._arrays.texts import Packed, packed_texts, unpacked_texts
from .._execution.executor import Control, Progress, ProgressCallback, check_callback
from .._features.blocks import Blocks
from .._loading import load
from .._model.fitted import FittedModel, check_tail
from .._storage.container import checksum
from .._storage.paths import PathLike
from .._storage.text_files import writing
from .._trees.params import Number
from .._wording import argument
from ..datasets.dataset import Dataset, StoreLocation
from ..datasets.store import check_same_store, open_located
from ..evaluation import Evaluation
from ..evaluation.alignment import (
    Estimator,
    check_kind,
    classifier_of,
    has_label_names,
    model_rows,
)
from ..metrics.hits import RankingSums
from ..metrics.inputs import fail, positive
from ..text import TextTagger
from ..text.corpus import in_chunks
from ..text.fitted import fitted_text
from .executor import DaskExecutor
from .prediction_files import begin, is_whole, part_path, predictions_folder
from .rows import are_texts, exchange, opened, stored, texts_of
from .workers import Check, check_client, check_model, check_workers, sees_folder

ROWS = 16384  # per task: a second of work, a megabyte of results
_opening = threading.Lock()

Answer = TypeVar("Answer")


def predict(
    client: Client,
    model: PathLike,
    data: Any,
    k: int = 5,
    *,
    tail: float = 0.0,
    output_dir: PathLike | None = None,
    rows_per_task: int = ROWS,
    encoder: Any = None,
    callback: ProgressCallback | None = None,
) -> tuple[NDArray[Any], NDArray[np.float32]] | list[str]:
    """The k best labels of every row, as from the model's own `predict_topk`.

    Parameters
    ----------
    client : distributed.Client
        Connected to the cluster.
    model : path
        A model file that every worker can read; each worker loads it once.
    data : path, Dataset, collection of Dask, matrix or texts
        The rows. Best is a store, by its path or as a result of `open_store`, that every worker
        sees. Other texts, such as a list, a JSON Lines file, a column of a data frame or a bag, are
        passed to the workers through the temporary folder as they are read. With `output_dir`, they
        and all other rows are first written to a temporary store beside it, whose parent must then
        be shared; other rows without it, to one in the temporary folder.
    k : int, default=5
        Number of labels per row.
    tail : float >= 0, default=0
        See `LdSMClassifier.predict_topk`.
    output_dir : path, optional
        A new or empty folder shared by the driver and all workers. Workers write ``part-00000.npz``
        and so on there, one per chunk of rows, with the arrays ``columns`` (of ``classes_``, int32)
        and ``scores`` (float32); each is written completely or not at all. ``predictions.json``
        describes them. Repeating the call with the same folder skips the parts that exist.
    rows_per_task : int, default=16384
        Number of rows per task.
    encoder : path, object or function, optional
        The encoder of a tagger that was trained with one, as in `ldsm.load`: a path that every
        worker sees, or what can be sent to workers. A store with embeddings needs none.
    callback : callable, optional
        Called with (rows done, total rows), a total of 0 if it is unknown.

    Returns
    -------
    labels, scores : ndarray of shape (n_rows, k)
        Without `output_dir`, for results that fit in the driver's memory.
    list of str
        With `output_dir`: the paths of the parts, in row order.

    Raises
    ------
    ClusterError
        As raised by `fit`.
    """
    check_client(client)
    check_callback(callback)
    estimator = _loaded(model, k, tail, rows_per_task, encoder)
    folder = None if output_dir is None else predictions_folder(output_dir)
    rows = opened(data, labels=None)
    if folder is None and isinstance(estimator, TextTagger) and _are_loose_texts(rows):
        _require_encoder(estimator)
        task = _TextsTask(_ModelFile.of(model, encoder), int(k), float(tail))
        found = task.answers(client, rows, int(rows_per_task), callback)
        return classifier_of(estimator).classes_[found.columns], found.scores
    with stored(client, estimator, rows, labelled=False, output_dir=folder) as in_store:
        job = _Job.of(model, estimator, in_store, k, tail, rows_per_task, encoder)
        return _predicted(client, job, folder, callback)


def _are_loose_texts(rows: Any) -> bool:
    """Whether rows are texts that are in no store."""
    if isinstance(rows, Dataset):
        return rows.texts is not None and rows.store is None
    return are_texts(rows)


def _predicted(
    client: Client, job: _Job, folder: str | None, callback: ProgressCallback | None
) -> tuple[NDArray[Any], NDArray[np.float32]] | list[str]:
    if folder is None:
        parts = job.run(client, "prediction chunk", _top_columns, callback=callback)
        columns, scores = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        return classifier_of(load(job.sources.model.path, verify=False)).classes_[columns], scores
    begin(folder, job.described())
    paths = {chunk: part_path(folder, chunk) for chunk in job.chunks()}
    kept = f"Finished parts are kept in {folder!r}: repeat the call to resume."
    with sees_folder(folder) as shared:
        done = [
            chunk
            for chunk, path in paths.items()
            if is_whole(path, (_length(job.rows(chunk)), job.k))
        ]
        work = partial(_write, folder)
        job.run(client, "prediction chunk", work, [shared], callback, done, kept)
    return list(paths.values())


def evaluate(
    client: Client,
    model: PathLike,
    data: Any,
    ks: Sequence[int] = (1, 3, 5),
    *,
    labels: Any = None,
    tail: float = 0.0,
    rows_per_task: int = ROWS,
    encoder: Any = None,
    callback: ProgressCallback | None = None,
) -> dict[str, float]:
    """Metrics of a model on labelled rows, as in `ldsm.metrics.ranking_report`.

    Propensities are computed from the label counts stored in the model. Labels unknown to the model
    are left out. Workers return only a few sums and the label numbers that occur.

    Parameters
    ----------
    client : distributed.Client
        Connected to the cluster.
    model : path
        A model file that every worker can read.
    data : path, Dataset, collection of Dask, matrix or texts
        The rows, as in `predict`, with their labels: files and stores include them, texts may come
        as pairs with their tags.
    ks : sequence of int, default=(1, 3, 5)
        Numbers of predictions to evaluate.
    labels : labels of each row, optional
        If `data` does not include them, in any form that the `fit` function accepts.
    tail : float >= 0, default=0
        See `LdSMClassifier.predict_topk`.
    rows_per_task : int, default=16384
        Number of rows per task.
    encoder : path, object or function, optional
        The encoder of a tagger that was trained with one, as in `ldsm.load`: a path that every
        worker sees, or what can be sent to workers. A store with embeddings needs none.
    callback : callable, optional
        Called with (rows done, total rows).

    Returns
    -------
    dict of str to float
        Such as ``{"precision@1": 0.7, ...}``.
    """
    check_client(client)
    check_callback(callback)
    if isinstance(ks, str) or not isinstance(ks, Sequence) or not ks:
        fail("ks", ks, "a list of at least one integer >= 1")
    ks = [positive("ks", k) for k in ks]
    estimator, work = _loaded(model, 1, tail, rows_per_task, encoder), partial(_sums, ks)
    with stored(client, estimator, data, labels, labelled=True) as rows:
        job = _Job.of(model, estimator, rows, 1, tail, rows_per_task, encoder, labelled=True)
        # In the order of the rows, so that the same rows give exactly the same sums.
        total = reduce(add, job.run(client, "evaluation chunk", work, callback=callback))
    return total.report()


def _loaded(model: PathLike, k: Any, tail: float, rows_per_task: Any, encoder: Any) -> Estimator:
    """The model of a file, once all numbers are checked."""
    if not isinstance(model, (str, os.PathLike)):
        fail("model", model, "the path of a model file")
    estimator = load(model, verify=False, encoder=encoder)
    n_labels = classifier_of(estimator).model_.n_labels
    for name, value, most in (("k", k, n_labels), ("rows_per_task", rows_per_task, 2**31)):
        allowed = Number(1, most, integer=True)
        if not allowed.allows(value):
            fail(name, value, str(allowed))
    check_tail(tail)
    return estimator


def _require_encoder(estimator: TextTagger) -> None:
    fitted_text(estimator).require_encoder(f"Use {argument('encoder')}.")


# -- the driver --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ModelFile:
    """A model, which every process loads once."""

    path: str
    checksum: str
    # Of the model, if texts have to be encoded. A function is another one each time it arrives.
    encoder: Any = field(compare=False)

    @classmethod
    def of(cls, model: PathLike, encoder: Any) -> _ModelFile:
        if isinstance(encoder, (str, os.PathLike)):
            encoder = os.path.abspath(encoder)
        path = os.path.abspath(model)
        return cls(path, checksum(path), encoder)


@dataclass(frozen=True)
class _Sources:
    """A model and rows, which every process opens once."""

    model: _ModelFile
    store: StoreLocation

    def opened(self) -> _Opened:
        with _opening:
            return _opened(self)


@dataclass(frozen=True)
class _Job:
    """What to predict for which rows; holds only paths and numbers, so it is quick to send."""

    sources: _Sources
    n_rows: int
    k: int
    tail: float
    rows_per_task: int
    aligned: bool  # whether the labels are in the columns of the model

    @classmethod
    def of(
        cls,
        model: PathLike,
        estimator: Estimator,
        rows: tuple[Dataset, bool],
        k: Any,
        tail: float,
        rows_per_task: Any,
        encoder: Any,
        *,
        labelled: bool = False,
    ) -> _Job:
        data, aligned = rows
        path, fitted, location = os.path.abspath(model), classifier_of(estimator).model_, data.store
        assert location is not None
        if len(data) == 0:
            raise ValueError(f"The store {location.folder!r} has no rows to predict for.")
        check_kind(estimator, data, path)
        if isinstance(estimator, TextTagger) and data.texts is not None:
            _require_encoder(estimator)
        if labelled and not aligned:
            has_label_names(fitted.classes, data)  # raises if they cannot be compared
        if data.X is not None and data.n_features != fitted.n_features:
            raise ValueError(
                f"The store {location.folder!r} must have the {fitted.n_features} features of the "
                f"model {path!r}. Got {data.n_features}."
            )
        sources = _Sources(_ModelFile.of(path, encoder), location)
        return cls(sources, len(data), int(k), float(tail), int(rows_per_task), aligned)

    def described(self) -> dict[str, Any]:
        """What the predictions depend on, for the manifest of their folder."""
        return {
            "model": self.sources.model.checksum,
            "store": self.sources.store.identity,
            "rows": self.n_rows,
            "k": self.k,
            "tail": self.tail,
            "rows_per_part": self.rows_per_task,
        }

    def chunks(self) -> range:
        return range(-(-self.n_rows // self.rows_per_task))

    def rows(self, chunk: int) -> slice:
        """The rows of a chunk, by its number."""
        start = chunk * self.rows_per_task
        return slice(start, min(start + self.rows_per_task, self.n_rows))

    def run(
        self,
        client: Client,
        name: str,
        work: Callable[[_Job, int], Answer],
        checks: Sequence[Check] = (),
        callback: ProgressCallback | None = None,
        done: Sequence[int] = (),
        kept: str = "",
    ) -> list[Answer]:
        """The answers for all chunks that are not done, in order."""
        same_store = partial(check_same_store, self.sources.store)
        same_model = partial(check_model, self.sources.model.path, self.sources.model.checksum)
        check_workers(client, [same_store, same_model, *checks])
        chunks = [chunk for chunk in self.chunks() if chunk not in set(done)]
        n_done = sum(_length(self.rows(chunk)) for chunk in done)
        progress = None if callback is None else Progress(callback, self.n_rows, n_done)
        task = _BlockTask(self, work)
        return DaskExecutor(client, kept=kept).map(task, chunks, name=name, progress=progress)


# -- the workers -------------------------------------------------------------------------------


class _Opened(NamedTuple):
    """A model and the rows to predict, in one process."""

    estimator: Estimator
    data: Dataset

    @property
    def model(self) -> FittedModel:
        return classifier_of(self.estimator).model_

    def rows(self, rows: slice) -> Blocks:
        """A chunk of rows in the model's features."""
        return model_rows(self.estimator, self.data.select(rows))


@lru_cache(maxsize=1)  # a process works for one model at a time
def _opened(sources: _Sources) -> _Opened:
    return _Opened(_model(sources.model), open_located(sources.store))


@lru_cache(maxsize=1)
def _model(file: _ModelFile) -> Estimator:
    check_model(file.path, file.checksum)
    return load(file.path, encoder=file.encoder)


class _Found(NamedTuple):
    """The best labels of some rows."""

    columns: NDArray[np.int32]
    scores: NDArray[np.float32]


@dataclass(frozen=True)
class _TextsTask:
    """Predicts for a chunk of texts."""

    file: _ModelFile
    k: int
    tail: float

    def __call__(self, texts: Packed, control: Control) -> _Found:
        with _opening:
            estimator = _model(self.file)
        rows = fitted_text(estimator).rows(unpacked_texts(texts))
        model = classifier_of(estimator).model_
        return _Found(*model.top_columns(rows, self.k, tail=self.tail, n_jobs=1))

    def answers(
        self, client: Client, rows: Any, at_once: int, callback: ProgressCallback | None
    ) -> _Found:
        """Those for all texts, which are read while workers predict for earlier ones."""
        chunks = map(packed_texts, in_chunks(texts_of(client, rows), at_once))
        found, done = list[_Found](), 0
        with exchange(client, [partial(check_model, self.file.path, self.file.checksum)]) as folder:
            executor = DaskExecutor(client, folder)
            for some in executor.stream(self, chunks, name="prediction chunk"):
                found.append(some)
                done += len(some.columns)
                if callback is not None:
                    callback(done, 0)
        if not found:
            raise ValueError("There must be at least one text to predict for. Got none.")
        columns, scores = (np.concatenate([some[i] for some in found]) for i in (0, 1))
        return _Found(columns, scores)


@dataclass(frozen=True)
class _BlockTask(Generic[Answer]):
    """The work on one chunk of rows, by its number."""

    job: _Job
    work: Callable[[_Job, int], Answer]

    def __call__(self, chunk: int, control: Control) -> Answer:
        answer = self.work(self.job, chunk)
        control.progress[0] = _length(self.job.rows(chunk))
        return answer


def _top_columns(job: _Job, chunk: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    opened = job.sources.opened()
    # One thread: each of a worker's threads has its own task.
    return opened.model.top_columns(opened.rows(job.rows(chunk)), job.k, tail=job.tail, n_jobs=1)


def _write(folder: str, job: _Job, chunk: int) -> None:
    columns, scores = _top_columns(job, chunk)
    with writing(part_path(folder, chunk)) as file:
        np.savez(file, columns=columns, scores=scores)


def _sums(ks: Sequence[int], job: _Job, chunk: int) -> RankingSums:
    opened, rows = job.sources.opened(), job.rows(chunk)
    truth = opened.data.select(rows).Y
    if not job.aligned:
        truth = truth @ _alignment(job.sources)
    evaluation = Evaluation.of_arrays(opened.model, opened.rows(rows), truth, n_jobs=1)
    return evaluation.sums(ks, tail=job.tail)


@lru_cache(maxsize=1)
def _alignment(sources: _Sources) -> sp.csr_array:
    """1 where a label of the store (row) is a label of the model (column)."""
    opened = sources.opened()
    model, n_labels, names = opened.model, opened.data.n_labels, opened.data.label_names
    each = sp.eye_array(n_labels, format="csr", dtype=np.int32)
    # Always by name, even for numbers: model and store may have different numbers of labels.
    by_name: Sequence[Any] = range(n_labels) if names is None else names
    return known_labels(each, by_name, model.classes, model.label_form)


def _length(rows: slice) -> int:
    return int(rows.stop - rows.start)
