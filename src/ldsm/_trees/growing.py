"""Grow a forest from training data and a seed: one compiled call per tree, in threads."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import joblib
import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._execution.memory import random_access, tree_memory
from .._execution.threads import (
    CancelFlag,
    CancelToken,
    at_intervals,
    starting_threads,
    worker_count,
)
from .._storage.atomic import check_writable
from .checkpoint import Checkpoint, Receipt, Tree
from .forest import Forest
from .params import TreeParams
from .training_data import StoredTrainingData, TrainingData

# Called with (nodes grown, maximum number of nodes); a finished tree counts in full.
ProgressCallback = Callable[[int, int], None]
NodesGrown = NDArray[np.int64]  # by each tree so far
_POLL_SECONDS = 0.1


def check_callback(callback: ProgressCallback | None) -> None:
    """Raise an error now rather than at the first progress report."""
    if callback is not None and not callable(callback):
        raise ValueError(f"The 'callback' argument must be callable. Got {callback!r} instead.")


@dataclass(frozen=True)
class TreeWork:
    """Everything needed to grow any tree of one fit.

    Small if the rows are in a store, so that it is quick to send to a process. The first three
    fields determine a tree; the others, such as where to put it, do not.
    """

    data: TrainingData | StoredTrainingData
    params: TreeParams
    seed: int
    checkpoint: Checkpoint | None = None
    memory_limit: int | None = None  # None: a share of the free memory on the machine
    trees_at_once: int = 1  # on one machine

    @property
    def scratch_folder(self) -> str | None:
        """The folder for what does not fit in memory; None without a memory limit."""
        return None if self.memory_limit is None else tempfile.gettempdir()


class TreeExecutor(Protocol):
    """Grows trees, here or elsewhere, and returns them in the order of their numbers.

    `progress` is to be kept up to date; the work ends early when `token` is cancelled.
    """

    def __call__(
        self, work: TreeWork, trees: Sequence[int], progress: NodesGrown, token: CancelToken
    ) -> list[Tree]: ...


def grow_forest(
    work: TreeWork,
    executor: TreeExecutor,
    *,
    first_tree: int,
    n_trees: int,
    callback: ProgressCallback | None = None,
) -> tuple[Forest, int]:
    """Grow trees `first_tree` to `first_tree + n_trees - 1` of the forest of a seed.

    A tree depends only on (seed, tree number): any executor and any division into calls give the
    same bits. Trees in the checkpoint are reused, the others are written there. The second result
    is the number of reused trees.
    """
    numbers = range(first_tree, first_tree + n_trees)
    checkpoint, max_nodes = work.checkpoint, work.params.max_nodes
    trees = {} if checkpoint is None else checkpoint.finished(numbers)
    n_taken = len(trees)
    missing = [number for number in numbers if number not in trees]
    if checkpoint is not None and missing:
        check_writable(checkpoint.folder)  # an error now rather than after the first tree
    token = CancelToken.for_tasks(len(missing))
    progress = np.zeros(len(missing), dtype=np.int64)

    def done() -> int:
        return n_taken * max_nodes + int(progress.sum())

    with _reporting(callback, done, max_nodes * n_trees, token), token.cancel_on_error():
        grown = executor(work, missing, progress, token) if missing else []
    trees.update(zip(missing, grown, strict=True))
    data = work.data.opened()
    forest = Forest.from_trees(
        [trees[number] for number in numbers],
        arity=work.params.arity,
        n_features=data.n_features,
        n_labels=data.n_labels,
        folder=work.scratch_folder,
    )
    return forest, n_taken


def joblib_executor(n_jobs: int | None) -> TreeExecutor:
    """Grows trees in threads, unless `joblib.parallel_config` sets another backend."""

    def execute(
        work: TreeWork, trees: Sequence[int], progress: NodesGrown, token: CancelToken
    ) -> list[Tree]:
        shared = _Shared(token, progress)
        tasks = (joblib.delayed(_grow_tree)(shared, i, work, tree) for i, tree in enumerate(trees))
        # "threads" is only a hint: `joblib.parallel_config` may set another backend.
        workers = worker_count(n_jobs)
        with starting_threads(workers):
            results = joblib.Parallel(n_jobs=workers, prefer="threads")(tasks)
        return [
            result if work.checkpoint is None else work.checkpoint.get(result) for result in results
        ]

    return execute


def grow_tree(
    work: TreeWork,
    tree: int,
    *,
    cancel: CancelFlag | None = None,
    progress: NodesGrown | None = None,
) -> Tree | Receipt:
    """Grow tree number `tree` of a fit.

    Every tree of every fit is grown here, in whichever process. With a checkpoint it is written
    there and a receipt is returned, because a tree may be large and can be read from the folder.
    """
    data = work.data.opened()
    with random_access((data.x.indices, data.x.values, data.y.indices)):
        grown: Tree = _core.grow_tree(
            data.x.checked,
            data.y.checked,
            work.params,
            seed=work.seed,
            tree=tree,
            memory_limit=tree_memory(work.memory_limit, work.trees_at_once),
            scratch_folder=work.scratch_folder or "",
            cancel=cancel,
            progress=progress,
        )
    result = grown if work.checkpoint is None else work.checkpoint.put(tree, grown)
    if progress is not None:
        progress[0] = work.params.max_nodes  # a finished tree counts in full
    return result


@dataclass(frozen=True)
class _Shared:
    """What the tasks of one process share; tasks in another process get unused copies.

    The copies are new arrays, because backends may send arrays that are read-only.
    """

    token: CancelToken
    progress: NodesGrown

    def __reduce__(self) -> tuple[Any, ...]:
        return _Shared.for_tasks, (len(self.progress),)

    @classmethod
    def for_tasks(cls, n_tasks: int) -> _Shared:
        return cls(CancelToken.for_tasks(n_tasks), np.zeros(n_tasks, dtype=np.int64))


def _grow_tree(shared: _Shared, task: int, work: TreeWork, tree: int) -> Tree | Receipt:
    """`grow_tree` as one of many tasks, which can be cancelled until the tree is written."""
    with shared.token.running(task) as cancel:
        return grow_tree(work, tree, cancel=cancel, progress=shared.progress[task : task + 1])


@contextmanager
def _reporting(
    callback: ProgressCallback | None,
    done_so_far: Callable[[], int],
    total: int,
    token: CancelToken,
) -> Iterator[None]:
    """Call `callback` from a separate thread while the core works.

    If it raises an error, the work ends and that error is raised.
    """
    if callback is None:
        yield
        return
    errors: list[BaseException] = []

    def report() -> None:
        try:
            if not errors:
                callback(min(done_so_far(), total), total)
        except BaseException as error:
            errors.append(error)
            token.cancel()

    try:
        with at_intervals(_POLL_SECONDS, report):
            yield
    except BaseException:
        if not errors:
            raise
    if errors:
        raise errors[0]
    callback(total, total)


def report_on_stderr(done: int, total: int) -> None:
    """A `ProgressCallback` that rewrites one line."""
    end = "\n" if done == total else ""
    sys.stderr.write(f"\rgrowing trees: {100 * done / total:3.0f} %{end}")
    sys.stderr.flush()
