"""Ask a model about batches of rows, in this process or on the workers of a cluster."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.texts import Packed, packed_texts, unpacked_texts
from .._execution.chosen import stage_executor
from .._execution.executor import Control
from .._model.fitted import LabelScores
from .._storage.container import checksum
from ..datasets import Dataset
from .model import Model, open_model

Rows = Dataset | Sequence[str]  # features, or texts


class Answers(NamedTuple):
    """The labels and scores of some rows, and the number of values that the model ignored."""

    labels: list[LabelScores]
    ignored: int


@dataclass(frozen=True)
class Question:
    """What is asked about each row: sets of labels, or the `k` best."""

    k: int | None  # None: sets
    fill: bool
    threshold: float | None
    tail: float
    allowed: NDArray[np.uint8] | None

    def answers(self, model: Model, rows: Rows, n_jobs: int | None) -> Answers:
        """The answers for a batch of rows."""
        x = model.rows(rows)
        ignored = rows.X.nnz - x.n_values if isinstance(rows, Dataset) else 0
        if self.k is None:
            found = model.fitted.label_sets(x, self.threshold, allowed=self.allowed, n_jobs=n_jobs)
        else:
            found = model.fitted.best_labels(
                x, self.k, fill=self.fill, tail=self.tail, allowed=self.allowed, n_jobs=n_jobs
            )
        return Answers(list(found), ignored)


def answers_here(question: Question, model: Model, batches: Iterator[Rows]) -> Iterator[Answers]:
    """The answers for each batch, made in this process."""
    for rows in batches:
        yield question.answers(model, rows, model.classifier.n_jobs)


def answers_by_workers(
    question: Question, model: Model, batches: Iterator[Rows], *, in_memory: int | None = None
) -> Iterator[Answers]:
    """The answers for each batch, made by the workers of a cluster, which load the model once.

    Batches are read while workers answer earlier ones: at most `in_memory`.
    """
    task = _AskTask(question, model.path.absolute(), model.encoder, checksum(model.path))
    sent = (rows if isinstance(rows, Dataset) else packed_texts(rows) for rows in batches)
    executor = stage_executor(None)
    return executor.stream(task, sent, name="prediction chunk", in_memory=in_memory)


@dataclass(frozen=True, eq=False)
class _AskTask:
    """Answers for a batch of rows."""

    question: Question
    path: Path
    encoder: Path | None
    digest: str

    def __call__(self, rows: Dataset | Packed, control: Control) -> Answers:
        with _OPENING:
            model = _opened(self.path, self.digest, self.encoder)
        its = rows if isinstance(rows, Dataset) else unpacked_texts(rows)
        return self.question.answers(model, its, 1)


_OPENING = threading.Lock()  # the threads of a worker share one model


@lru_cache(maxsize=1)  # a process works for one model at a time
def _opened(path: Path, digest: str, encoder: Path | None) -> Model:
    if checksum(path) != digest:
        raise ValueError(f"The model file {str(path)!r} is different on this machine.")
    return open_model(path, encoder=encoder)
