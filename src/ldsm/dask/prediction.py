"""Prediction and evaluation on a cluster: one task per chunk of rows, one model per worker."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from operator import add
from typing import Any, Generic, NamedTuple, TypeVar
from zipfile import BadZipFile

import numpy as np
import scipy.sparse as sp
from distributed import Client
from numpy.typing import NDArray

from .._arrays.labels import known_labels
from .._execution.executor import Control, Progress, ProgressCallback, check_callback
from .._features.blocks import Blocks
from .._loading import load
from .._model.fitted import FittedModel, check_tail
from .._storage.container import checksum
from .._storage.manifest import (
    ManifestError,
    ManifestVersionError,
    differences,
    read_manifest,
    write_manifest,
)
from .._storage.paths import PathLike, folder_path
from .._storage.text_files import writing
from .._trees.params import Number
from .._wording import warn
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
from .executor import DaskExecutor
from .workers import Check, check_client, check_model, check_workers, opened, sees_folder

ROWS = 16384  # per task: a second of work, a megabyte of results
_FORMAT, _VERSION = "ldsm-predictions", 1
_MANIFEST = "predictions.json"
_opening = threading.Lock()

Answer = TypeVar("Answer")


def predict(
    client: Client,
    model: PathLike,
    store: PathLike | Dataset,
    k: int = 5,
    *,
    tail: float = 0.0,
    output_dir: PathLike | None = None,
    rows_per_task: int = ROWS,
    callback: ProgressCallback | None = None,
) -> tuple[NDArray[Any], NDArray[np.float32]] | list[str]:
    """The k best labels of every row of a store, as from `LdSMClassifier.predict_topk`.

    Parameters
    ----------
    client : distributed.Client
        Connected to the cluster.
    model : path
        A model file that every worker can read; each worker loads it once.
    store : path or Dataset
        The rows: a store that every worker sees, or the result of `open_store`. It must hold texts
        if the model is a TextTagger.
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
    callback : callable, optional
        Called with (rows done, total rows).

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
    job = _Job.of(model, store, k, tail, rows_per_task)
    if output_dir is None:
        parts = job.run(client, "prediction chunk", _top_columns, callback=callback)
        columns, scores = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        return classifier_of(load(job.path, verify=False)).classes_[columns], scores
    folder = _begin(output_dir, job)
    paths = {chunk: _path(folder, chunk) for chunk in job.chunks()}
    kept = f"Finished parts are kept in {folder!r}: repeat the call to resume."
    with sees_folder(folder) as shared:
        done = [chunk for chunk, path in paths.items() if _is_whole(path, job, chunk)]
        work = partial(_write, folder)
        job.run(client, "prediction chunk", work, [shared], callback, done, kept)
    return list(paths.values())


def evaluate(
    client: Client,
    model: PathLike,
    store: PathLike | Dataset,
    ks: Sequence[int] = (1, 3, 5),
    *,
    tail: float = 0.0,
    rows_per_task: int = ROWS,
    callback: ProgressCallback | None = None,
) -> dict[str, float]:
    """Metrics of a model on the labelled rows of a store, as in `ldsm.metrics.ranking_report`.

    Propensities are computed from the label counts stored in the model. Labels unknown to the model
    are left out. Workers return only a few sums and the label numbers that occur.

    Parameters
    ----------
    client : distributed.Client
        Connected to the cluster.
    model : path
        A model file that every worker can read.
    store : path or Dataset
        A store of labelled rows that every worker sees, or the result of `open_store`.
    ks : sequence of int, default=(1, 3, 5)
        Numbers of predictions to evaluate.
    tail : float >= 0, default=0
        See `LdSMClassifier.predict_topk`.
    rows_per_task : int, default=16384
        Number of rows per task.
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
    job = _Job.of(model, store, 1, tail, rows_per_task, labelled=True)
    work = partial(_sums, ks)
    # In the order of the rows, so that the same rows give exactly the same sums.
    total = reduce(add, job.run(client, "evaluation chunk", work, callback=callback))
    return total.report()


# -- the driver --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Job:
    """What to predict for which rows; holds only paths and numbers, so it is quick to send."""

    path: str
    checksum: str
    store: StoreLocation
    n_rows: int
    k: int
    tail: float
    rows_per_task: int

    @classmethod
    def of(
        cls,
        model: PathLike,
        store: PathLike | Dataset,
        k: Any,
        tail: float,
        rows_per_task: Any,
        *,
        labelled: bool = False,
    ) -> _Job:
        data, location = opened(store)
        if not isinstance(model, (str, os.PathLike)):
            fail("model", model, "the path of a model file")
        path = os.path.abspath(model)
        estimator = load(path, verify=False)
        fitted = classifier_of(estimator).model_
        if len(data) == 0:
            raise ValueError(f"The store {location.folder!r} has no rows to predict for.")
        check_kind(estimator, data, path)
        if labelled:
            has_label_names(fitted.classes, data)  # raises if they cannot be compared
        if data.X is not None and data.n_features != fitted.n_features:
            raise ValueError(
                f"The store {location.folder!r} must have the {fitted.n_features} features of the "
                f"model {path!r}. Got {data.n_features}."
            )
        sizes = {"k": (k, fitted.n_labels), "rows_per_task": (rows_per_task, 2**31)}
        for name, (value, most) in sizes.items():
            allowed = Number(1, most, integer=True)
            if not allowed.allows(value):
                fail(name, value, str(allowed))
        check_tail(tail)
        return cls(
            path, checksum(path), location, len(data), int(k), float(tail), int(rows_per_task)
        )

    def chunks(self) -> range:
        return range(-(-self.n_rows // self.rows_per_task))

    def rows(self, chunk: int) -> slice:
        """The rows of a chunk, by its number."""
        start = chunk * self.rows_per_task
        return slice(start, min(start + self.rows_per_task, self.n_rows))

    def opened(self) -> _Opened:
        """The model and the rows, opened once per process."""
        with _opening:
            return _opened(self.path, self.checksum, self.store)

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
        same_store = partial(check_same_store, self.store)
        same_model = partial(check_model, self.path, self.checksum)
        check_workers(client, [same_store, same_model, *checks])
        chunks = [chunk for chunk in self.chunks() if chunk not in set(done)]
        n_done = sum(_length(self.rows(chunk)) for chunk in done)
        progress = None if callback is None else Progress(callback, self.n_rows, n_done)
        task = _BlockTask(self, work)
        return DaskExecutor(client, kept=kept).map(task, chunks, name=name, progress=progress)


def _begin(output_dir: PathLike, job: _Job) -> str:
    """Start or check a folder for these predictions; returns its absolute path."""
    folder = folder_path("The 'output_dir' argument", output_dir)
    manifest = {
        "format": _FORMAT,
        "version": _VERSION,
        "model": job.checksum,
        "store": job.store.identity,
        "rows": job.n_rows,
        "k": job.k,
        "tail": job.tail,
        "rows_per_part": job.rows_per_task,
    }
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, _MANIFEST)
    if not os.path.exists(path):
        if os.listdir(folder):
            raise ValueError(
                "The 'output_dir' argument must be a new or empty folder, or one with the same "
                f"predictions. {folder!r} holds {min(os.listdir(folder))!r}."
            )
        write_manifest(path, manifest, replace=False)
    try:
        stored = read_manifest(path, _FORMAT, _VERSION)
    except (ManifestError, ManifestVersionError) as error:
        raise ValueError(
            f"The file {path!r} cannot be used: {error}. Delete the folder, or choose another."
        ) from error
    differ = differences(manifest, stored, {}, {})
    if differ:
        raise ValueError(
            f"The folder {folder!r} holds other predictions: {'; '.join(differ)}. Choose another "
            "one, or delete it."
        )
    return folder


def _is_whole(path: str, job: _Job, chunk: int) -> bool:
    """Whether a part exists and can be read; a damaged part is rewritten."""
    try:
        with open(path, "rb") as file, np.load(file) as part:
            shapes = {part[name].shape for name in ("columns", "scores")}
    except FileNotFoundError:
        return False
    except (OSError, EOFError, ValueError, TypeError, KeyError, BadZipFile) as error:
        warn(f"The part {path!r} is damaged ({error}); rewriting it.")
        return False
    return shapes == {(_length(job.rows(chunk)), job.k)}


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
def _opened(path: str, expected: str, store: StoreLocation) -> _Opened:
    check_model(path, expected)
    return _Opened(load(path), open_located(store))


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
    opened = job.opened()
    # One thread: each of a worker's threads has its own task.
    return opened.model.top_columns(opened.rows(job.rows(chunk)), job.k, tail=job.tail, n_jobs=1)


def _write(folder: str, job: _Job, chunk: int) -> None:
    columns, scores = _top_columns(job, chunk)
    with writing(_path(folder, chunk)) as file:
        np.savez(file, columns=columns, scores=scores)


def _sums(ks: Sequence[int], job: _Job, chunk: int) -> RankingSums:
    opened, rows = job.opened(), job.rows(chunk)
    truth = opened.data.select(rows).Y @ _alignment(job.path, job.checksum, job.store)
    evaluation = Evaluation.of_arrays(opened.model, opened.rows(rows), truth, n_jobs=1)
    return evaluation.sums(ks, tail=job.tail)


@lru_cache(maxsize=1)
def _alignment(path: str, expected: str, store: StoreLocation) -> sp.csr_array:
    """1 where a label of the store (row) is a label of the model (column)."""
    opened = _opened(path, expected, store)
    model, n_labels, names = opened.model, opened.data.n_labels, opened.data.label_names
    each = sp.eye_array(n_labels, format="csr", dtype=np.int32)
    # Always by name, even for numbers: model and store may have different numbers of labels.
    by_name: Sequence[Any] = range(n_labels) if names is None else names
    return known_labels(each, by_name, model.classes, model.label_form)


def _path(folder: str, chunk: int) -> str:
    return os.path.join(folder, f"part-{chunk:05}.npz")


def _length(rows: slice) -> int:
    return int(rows.stop - rows.start)
