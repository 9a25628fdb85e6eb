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

from .._arrays.texts import Packed, encoded, packed, unpacked
from .._execution.chosen import stage_executor
from .._execution.executor import Control
from .._model.fitted import LabelScores
from .._storage.container import checksum
from ..datasets import Dataset
from .model import Model, open_model

Rows = Dataset | Sequence[str]  # features, or texts
_PARTS_EACH = 4  # per worker and batch, so that none waits for the slowest


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
    question: Question, model: Model, batches: Iterator[Rows], size: int
) -> Iterator[Answers]:
    """The answers for each batch, made by the workers of a cluster.

    Each worker loads the model once. `size` is that of a part of a batch.
    """
    executor, digest = stage_executor(None), checksum(model.path)
    for rows in batches:
        sent = rows if isinstance(rows, Dataset) else _packed(rows)
        task = _AskTask(question, model.path.absolute(), model.encoder, digest, sent)
        parts = [(start, min(start + size, len(rows))) for start in range(0, len(rows), size)]
        found = executor.map(task, parts, name="prediction chunk")
        labels = [row for answers in found for row in answers.labels]
        yield Answers(labels, sum(answers.ignored for answers in found))


def rows_at_once(size: int) -> int:
    """The size of a batch that keeps all workers of a cluster busy."""
    return size * _PARTS_EACH * stage_executor(None).in_all


@dataclass(frozen=True, eq=False)
class _AskTask:
    """Answers for consecutive rows of a batch, (first, one past the last)."""

    question: Question
    path: Path
    encoder: Path | None
    digest: str
    rows: Dataset | Packed

    def __call__(self, part: tuple[int, int], control: Control) -> Answers:
        with _OPENING:
            model = _opened(self.path, self.digest, self.encoder)
        if isinstance(self.rows, Dataset):
            return self.question.answers(model, self.rows.select(slice(*part)), 1)
        data, offsets = self.rows
        first, last = part
        texts = unpacked(
            data[offsets[first] : offsets[last]], offsets[first : last + 1] - offsets[first]
        )
        decoded = [text.decode("utf-8", "surrogatepass") for text in texts]
        return self.question.answers(model, decoded, 1)


_OPENING = threading.Lock()  # the threads of a worker share one model


@lru_cache(maxsize=1)  # a process works for one model at a time
def _opened(path: Path, digest: str, encoder: Path | None) -> Model:
    if checksum(path) != digest:
        raise ValueError(f"The model file {str(path)!r} is different on this machine.")
    return open_model(path, encoder=encoder)


def _packed(texts: Sequence[str]) -> Packed:
    return packed([encoded(text, lowercase=False) for text in texts])
