"""From arrays and a seed to a forest: one compiled call per tree, spread by joblib."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from . import _core
from .checkpoint import Checkpoint, Receipt, Tree
from .forest import Forest
from .inputs import FeatureArrays, LabelArrays, data_fingerprint
from .interrupts import Recall
from .params import TreeParams
from .ranking import Shortlists

# Called with (nodes grown so far, nodes at most); a finished tree counts in full.
ProgressCallback = Callable[[int, int], None]
_POLL_SECONDS = 0.1


def grow_forest(
    x: FeatureArrays,
    y: LabelArrays,
    params: TreeParams,
    *,
    n_features: int,
    seed: int,
    first_tree: int,
    n_trees: int,
    n_jobs: int | None,
    callback: ProgressCallback | None = None,
    checkpoint: Checkpoint | None = None,
) -> tuple[Forest, int]:
    """Grow trees `first_tree` to `first_tree + n_trees - 1` of the forest that `seed` stands for.

    A tree depends on (seed, tree number) alone: any `n_jobs`, any joblib backend and any division
    into calls give the same bits. Trees that lie in the checkpoint are taken from it, the others
    are put there. The second result is how many were taken.
    """
    numbers = range(first_tree, first_tree + n_trees)
    trees = {} if checkpoint is None else checkpoint.finished(numbers)
    n_taken = len(trees)
    missing = [number for number in numbers if number not in trees]
    if checkpoint is not None and missing:
        checkpoint.check_writable()
    recall = Recall.for_tasks(n_trees)
    progress = np.zeros(n_trees, dtype=np.int64)
    progress[[number - first_tree for number in trees]] = params.max_nodes

    def task(number: int) -> Any:
        i = number - first_tree
        return joblib.delayed(_grow_tree)(
            recall, i, progress[i : i + 1], x, y, params, n_features, seed, number, checkpoint
        )

    with _reporting(callback, progress, params.max_nodes * n_trees, recall), recall.on_failure():
        # "threads" is a hint: inside `joblib.parallel_config` another backend may take over.
        grown = joblib.Parallel(n_jobs=n_jobs, prefer="threads")(map(task, missing))
    for number, result in zip(missing, grown, strict=True):
        trees[number] = result if checkpoint is None else checkpoint.get(result)
    forest = Forest.from_trees(
        [trees[number] for number in numbers],
        arity=params.arity,
        n_features=n_features,
        n_labels=y.n_labels,
    )
    return forest, n_taken


def grow_tree(
    x: FeatureArrays,
    y: LabelArrays,
    params: TreeParams,
    n_features: int,
    seed: int,
    tree: int,
    checkpoint: Checkpoint | None = None,
    *,
    cancel: NDArray[np.int32] | None = None,
    progress: NDArray[np.int64] | None = None,
) -> Tree | Receipt:
    """Grow one tree, the number `tree` of the forest that `seed` stands for.

    Every tree of every fit comes from here, whichever process it is grown in. With a checkpoint it
    is written there and a receipt is returned: a tree may be large, and need not be sent to whoever
    can read it from the folder.
    """
    grown: Tree = _core.grow_tree(
        *x,
        n_features,
        y.indptr,
        y.indices,
        y.n_labels,
        seed=seed,
        tree=tree,
        **params.as_dict(),
        cancel=cancel,
        progress=progress,
    )
    result = grown if checkpoint is None else checkpoint.put(tree, grown)
    if progress is not None:
        progress[0] = params.max_nodes  # a finished tree counts in full, however small it stayed
    return result


def _grow_tree(
    recall: Recall, task: int, progress: NDArray[np.int64], *arguments: Any
) -> Tree | Receipt:
    """`grow_tree` as one of many tasks, which can be called back but finishes what it writes."""
    with recall.entered(task) as cancel:
        return grow_tree(*arguments, cancel=cancel, progress=progress)


@contextmanager
def _reporting(
    callback: ProgressCallback | None, progress: NDArray[np.int64], total: int, recall: Recall
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
                callback(min(int(progress.sum()), total), total)
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
