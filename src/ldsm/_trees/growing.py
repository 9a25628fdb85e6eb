"""Grow a forest from training data and a seed: one task, and one compiled call, per tree."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass

from .. import _core
from .._execution.executor import Control, Executor, Progress, ProgressCallback
from .._execution.memory import random_access, tree_memory
from .._storage.atomic import check_writable
from .checkpoint import Checkpoint, Receipt, Tree
from .forest import Forest
from .params import TreeParams
from .training_data import StoredTrainingData, TrainingData


@dataclass(frozen=True)
class TreeWork:
    """The task of growing any tree of one fit, by its number.

    Small if the rows are in a store, so that it is quick to send to a process. The first three
    fields determine a tree; the others, such as where to put it, do not.
    """

    data: TrainingData | StoredTrainingData
    params: TreeParams
    seed: int
    checkpoint: Checkpoint | None = None
    memory_limit: int | None = None  # None: a share of the free memory on the machine
    trees_at_once: int = 1  # on one machine
    leaf_scores: str = "probability"

    @property
    def scratch_folder(self) -> str | None:
        """The folder for what does not fit in memory; None without a memory limit."""
        return None if self.memory_limit is None else tempfile.gettempdir()

    def __call__(self, tree: int, control: Control) -> Tree | Receipt:
        """Grow a tree. Every tree of every fit is grown here, in whichever process.

        With a checkpoint it is written there and a receipt is returned, because a tree may be large
        and can be read from the folder.
        """
        # Another process may have been lost after writing the tree.
        receipt = None if self.checkpoint is None else self.checkpoint.receipt(tree)
        result = receipt or self._grown(tree, control)
        control.progress[0] = self.params.max_nodes  # a finished tree counts in full
        return result

    def _grown(self, tree: int, control: Control) -> Tree | Receipt:
        data = self.data.opened()
        with random_access((data.x.indices, data.x.values, data.y.indices)):
            grown: Tree = _core.grow_tree(
                data.x.checked,
                data.y.checked,
                self.params,
                seed=self.seed,
                tree=tree,
                memory_limit=tree_memory(self.memory_limit, self.trees_at_once),
                scratch_folder=self.scratch_folder or "",
                cancel=control.cancel,
                progress=control.progress,
            )
        return grown if self.checkpoint is None else self.checkpoint.put(tree, grown)


def grow_forest(
    work: TreeWork,
    executor: Executor,
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
    progress = callback and Progress(callback, max_nodes * n_trees, n_taken * max_nodes)
    grown = executor.map(work, missing, name="tree", progress=progress)
    for number, result in zip(missing, grown, strict=True):
        if isinstance(result, Receipt):
            assert checkpoint is not None
            result = checkpoint.get(result)
        trees[number] = result
    data = work.data.opened()
    forest = Forest.from_trees(
        [trees[number] for number in numbers],
        arity=work.params.arity,
        n_features=data.n_features,
        n_labels=data.n_labels,
        leaf_scores=work.leaf_scores,
        folder=work.scratch_folder,
    )
    return forest, n_taken


def report_on_stderr(done: int, total: int) -> None:
    """A `ProgressCallback` that rewrites one line."""
    end = "\n" if done == total else ""
    sys.stderr.write(f"\rgrowing trees: {100 * done / total:3.0f} %{end}")
    sys.stderr.flush()
