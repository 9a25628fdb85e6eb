"""From arrays and a seed to a forest: one compiled call per tree, spread by joblib."""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Protocol

import joblib
import numpy as np
from numpy.typing import NDArray

from . import _core
from .checkpoint import Checkpoint, Receipt, Tree
from .forest import Forest
from .inputs import FeatureArrays, LabelArrays, data_fingerprint
from .interrupts import Recall
from .memory import read_here_and_there, tree_memory
from .params import TreeParams
from .ranking import Shortlists
from .rows import Rows, StoredRows

# Called with (nodes grown so far, nodes at most); a finished tree counts in full.
ProgressCallback = Callable[[int, int], None]
_POLL_SECONDS = 0.1


def check_callback(callback: ProgressCallback | None) -> None:
    """Raise now rather than when there is something to tell."""
    if callback is not None and not callable(callback):
        raise ValueError(f"The 'callback' argument must be callable. Got {callback!r} instead.")


@dataclass(frozen=True)
class TreeWork:
    """All that growing any tree of one fit takes.

    Small if the rows lie in a store, so that any process can be handed it. What decides a tree is
    in the first three; what does not, as where to put it, comes after them.
    """

    rows: Rows | StoredRows
    params: TreeParams
    seed: int
    checkpoint: Checkpoint | None = None
    memory_limit: int | None = None  # None: a share of what is free where the tree grows
    trees_at_once: int = 1  # on one machine

    @property
    def scratch_folder(self) -> str | None:
        """Where to put what does not fit the memory; None: it was not said how much may be used."""
        return None if self.memory_limit is None else tempfile.gettempdir()


class Spread(Protocol):
    """Has trees grown, here or elsewhere, and gives them back in the order of their numbers.

    `progress` has a count of nodes for each tree, to be kept up to date; whoever sets the flag of
    `recall` wants no more of it.
    """

    def __call__(
        self, work: TreeWork, trees: Sequence[int], progress: NDArray[np.int64], recall: Recall
    ) -> list[Tree]: ...


def grow_forest(
    work: TreeWork,
    spread: Spread,
    *,
    first_tree: int,
    n_trees: int,
    callback: ProgressCallback | None = None,
) -> tuple[Forest, int]:
    """Grow trees `first_tree` to `first_tree + n_trees - 1` of the forest that the seed stands for.

    A tree depends on (seed, tree number) alone: any `spread` and any division into calls give the
    same bits. Trees that lie in the checkpoint are taken from it, the others are put there. The
    second result is how many were taken.
    """
    numbers = range(first_tree, first_tree + n_trees)
    checkpoint, max_nodes = work.checkpoint, work.params.max_nodes
    trees = {} if checkpoint is None else checkpoint.finished(numbers)
    n_taken = len(trees)
    missing = [number for number in numbers if number not in trees]
    if checkpoint is not None and missing:
        checkpoint.check_writable()
    recall = Recall.for_tasks(len(missing))
    progress = np.zeros(len(missing), dtype=np.int64)

    def done() -> int:
        return n_taken * max_nodes + int(progress.sum())

    with _reporting(callback, done, max_nodes * n_trees, recall), recall.on_failure():
        grown = spread(work, missing, progress, recall) if missing else []
    trees.update(zip(missing, grown, strict=True))
    rows = work.rows.opened()
    forest = Forest.from_trees(
        [trees[number] for number in numbers],
        arity=work.params.arity,
        n_features=rows.n_features,
        n_labels=rows.y.n_labels,
        folder=work.scratch_folder,
    )
    return forest, n_taken


def by_joblib(n_jobs: int | None) -> Spread:
    """Trees in threads, unless `joblib.parallel_config` names another backend."""

    def spread(
        work: TreeWork, trees: Sequence[int], progress: NDArray[np.int64], recall: Recall
    ) -> list[Tree]:
        shared = _Shared(recall, progress)
        tasks = (joblib.delayed(_grow_tree)(shared, i, work, tree) for i, tree in enumerate(trees))
        # "threads" is a hint: inside `joblib.parallel_config` another backend may take over.
        results = joblib.Parallel(n_jobs=n_jobs, prefer="threads")(tasks)
        return [
            result if work.checkpoint is None else work.checkpoint.get(result) for result in results
        ]

    return spread


def grow_tree(
    work: TreeWork,
    tree: int,
    *,
    cancel: NDArray[np.int32] | None = None,
    progress: NDArray[np.int64] | None = None,
) -> Tree | Receipt:
    """Grow one tree, the number `tree` of a fit.

    Every tree of every fit comes from here, whichever process it is grown in. With a checkpoint it
    is written there and a receipt is returned: a tree may be large, and need not be sent to whoever
    can read it from the folder.
    """
    rows = work.rows.opened()
    with read_here_and_there((rows.x.indices, rows.x.values, rows.y.indices)):
        grown: Tree = _core.grow_tree(
            rows.x.checked,
            rows.y.checked,
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
        progress[0] = work.params.max_nodes  # a finished tree counts in full, however small
    return result


@dataclass(frozen=True)
class _Shared:
    """What the tasks of one process share; in another one they get their own, which nobody reads.

    Such a copy is made anew: backends may hand over arrays that cannot be written to.
    """

    recall: Recall
    progress: NDArray[np.int64]

    def __reduce__(self) -> tuple[Any, ...]:
        return _Shared._of, (len(self.progress),)

    @classmethod
    def _of(cls, n_tasks: int) -> _Shared:
        return cls(Recall.for_tasks(n_tasks), np.zeros(n_tasks, dtype=np.int64))


def _grow_tree(shared: _Shared, task: int, work: TreeWork, tree: int) -> Tree | Receipt:
    """`grow_tree` as one of many tasks, which can be called back but finishes what it writes."""
    with shared.recall.entered(task) as cancel:
        return grow_tree(work, tree, cancel=cancel, progress=shared.progress[task : task + 1])


@contextmanager
def _reporting(
    callback: ProgressCallback | None, done_so_far: Callable[[], int], total: int, recall: Recall
) -> Iterator[None]:
    """Call `callback` from a thread of its own while the core works.

    If it raises, the work ends and its error is the one that is seen.
    """
    if callback is None:
        yield
        return
    done = threading.Event()
    errors: list[BaseException] = []

    def watch() -> None:
        while not done.wait(_POLL_SECONDS):
            try:
                callback(min(done_so_far(), total), total)
            except BaseException as error:
                errors.append(error)
                recall.flag[0] = 1
                return

    watcher = threading.Thread(target=watch, name="ldsm-progress", daemon=True)
    watcher.start()
    try:
        yield
    except BaseException:
        if not errors:
            raise
    finally:
        done.set()
        watcher.join()
    if errors:
        raise errors[0]
    callback(total, total)


def out_of_bag(
    forest: Forest,
    x: FeatureArrays,
    seed: int,
    subsample: float,
    fill_order: NDArray[np.int32],
    *,
    by_rows: bool,
    k: int,
) -> Shortlists:
    """Each row scored by the trees that never saw it: its k best labels.

    A row that every tree saw has no scores.
    """
    n_rows, n_trees = x.n_rows, forest.n_trees
    # One bit per row and tree: the masks of a large forest must not outgrow the data.
    bags = np.stack(
        [np.packbits(_core.bag_mask(seed, t, n_rows, subsample)) for t in range(n_trees)]
    )
    counts, labels, scores = [], [], []
    chunk = 65536  # a multiple of 8, so that chunks start at whole bytes
    for start in range(0, n_rows, chunk):
        stop = min(start + chunk, n_rows)
        part = bags[:, start // 8 : (stop + 7) // 8]
        skip = np.ascontiguousarray(np.unpackbits(part, axis=1, count=stop - start).T)
        best, score = forest.top_labels(
            x.rows(start, stop), k, fill_order, by_rows=by_rows, skip=skip
        )
        found = score > 0
        counts.append(found.sum(axis=1))
        order = np.argsort(np.where(found, best, np.iinfo(np.int32).max), axis=1, kind="stable")
        found = np.take_along_axis(found, order, axis=1)
        labels.append(np.take_along_axis(best, order, axis=1)[found])
        scores.append(np.take_along_axis(score, order, axis=1)[found])
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))]).astype(np.int64)
    return Shortlists(indptr, np.concatenate(labels), np.concatenate(scores))


def training_summary(
    x: FeatureArrays, y: LabelArrays, *, n_features: int, seed: int, seconds: float
) -> dict[str, Any]:
    """What a model remembers of its training; no part of its fingerprint."""
    return {
        "seed": seed,
        "rows": x.n_rows,
        "features": n_features,
        "labels": y.n_labels,
        "data_fingerprint": data_fingerprint(x, y, n_features),
        "seconds": round(seconds, 3),
        "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def report_on_stderr(done: int, total: int) -> None:
    """A `ProgressCallback` that rewrites one line."""
    end = "\n" if done == total else ""
    sys.stderr.write(f"\rgrowing trees: {100 * done / total:3.0f} %{end}")
    sys.stderr.flush()
