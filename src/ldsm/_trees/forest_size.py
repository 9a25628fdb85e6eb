"""How many trees to grow, if that is left to the data: as many as shortlists gain from.

The trees of a model with a linear second stage find labels for its shortlists. Trees are added in
small groups, until a group adds hardly any true labels to the shortlists of held-out rows.
"""

from __future__ import annotations

from collections.abc import Callable

from .._execution.executor import Executor, ProgressCallback
from .effort import MOST_TREES
from .forest import Forest
from .growing import TreeWork, grow_forest

FIRST, GROUP = 4, 4
# How many times as many true labels a group must help to find, for another one to follow.
WORTH = 1.01


def grow_enough(
    work: TreeWork,
    executor: Executor,
    found: Callable[[Forest], int],
    *,
    former: Forest | None = None,
    callback: ProgressCallback | None = None,
) -> tuple[Forest, int]:
    """The forest of a fit, and the number of trees reused from its checkpoint.

    `found` is the number of true labels on shortlists by the trees of a forest. All trees of a
    `former` forest are kept. Many workers grow several groups at once; what they grow too many is
    left out, so the result does not depend on them.
    """
    forest, kept = former, 0 if former is None else former.n_trees
    size, n_taken, so_far = 0, 0, 0
    whole = MOST_TREES * work.params.max_nodes
    while size < MOST_TREES:
        size = min(MOST_TREES, size + (GROUP if size else FIRST))
        grown = 0 if forest is None else forest.n_trees
        if size > grown:
            wanted = max(size, min(MOST_TREES, grown + executor.at_once))
            more, taken = grow_forest(
                work,
                executor,
                first_tree=grown,
                n_trees=wanted - grown,
                callback=_share_of(whole, grown * work.params.max_nodes, callback),
            )
            forest = more if forest is None else forest.extended(more, work.scratch_folder)
            n_taken += taken
        assert forest is not None
        now = found(forest.trees(0, size))
        if so_far and now < WORTH * so_far:
            break
        so_far = now
    assert forest is not None
    if callback is not None:
        callback(whole, whole)
    size = max(size, kept)
    return (forest if size == forest.n_trees else forest.trees(0, size)), n_taken


def _share_of(
    whole: int, before: int, callback: ProgressCallback | None
) -> ProgressCallback | None:
    """Reports progress as that of more work, of which some has been done before."""
    if callback is None:
        return None
    return lambda done, _: callback(before + done, whole)
