"""Update a second stage with new rows.

Its parts learn by themselves, matchers first. If there are enough new rows, which the stage has not
seen so far, and if their labels are distributed as usual, the blend is fitted to them, and its
coefficients move towards that fit. Then the matches of names are counted, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .._execution.executor import Control, Executor
from .._features.blocks import Blocks
from .._features.new_rows import NewRows
from .._matching.names import NameIndex
from .._matching.part import HELD_OUT_ROWS, HELD_OUT_SHARE, Scorer, Update, held_out_rows
from .._matching.shortlists import Shortlists
from .._matching.training_lists import shared
from .._trees.forest import Forest
from .blend import Blend, fit_blend, rounded
from .stage import SecondStage
from .training import blend_weights, can_blend

# The blend is refitted to at least this many new rows: a share of those that it was first fitted
# to, and a number.
BLEND_SHARE, FEWEST_BLEND_ROWS = 0.25, 200
_CHUNK = 512  # rows

Matcher = Callable[[SecondStage, Blocks], Shortlists]


@dataclass(frozen=True, eq=False)
class _MatchTask:
    """Matches consecutive rows, (first, one past the last)."""

    stage: SecondStage
    forest: Forest
    x: Blocks

    def __call__(self, rows: tuple[int, int], control: Control) -> Shortlists:
        x = self.x.rows(*rows)
        return self.stage.shortlists(self.forest, x, cancel=control.cancel)


def learned_stage(
    stage: SecondStage,
    former: Forest,
    forest: Forest,
    new: NewRows,
    *,
    min_rows: int,
    seed: int,
    executor: Executor,
) -> SecondStage:
    """The second stage with new rows learned; `forest` knows them, too, `former` does not.

    `min_rows` is the estimator's `tail_min_rows`. The result does not depend on the executor.
    """
    assert stage.masses is not None

    def match(trees: Forest, used: SecondStage, x: Blocks) -> Shortlists:
        task = _MatchTask(used, trees, x)
        chunks = [
            (start, min(start + _CHUNK, x.n_rows)) for start in range(0, max(1, x.n_rows), _CHUNK)
        ]
        return Shortlists.joined(executor.map(task, chunks, name="shortlist chunk"))

    refitted = _refitted(stage, new, partial(match, former), seed)
    blend, names = refitted or (_kept(stage.blend, new), stage.names)
    before, more = stage.masses, stage.masses_of(new.x)
    masses = {name: (before[name] + more[name]).astype(np.float32) for name in before}
    stage = replace(
        stage if names is None else stage.with_parts(names=names),
        blend=blend,
        label_counts=new.counts,
        masses=masses,
    )
    update = Update(new, seed, min_rows, executor, before, masses, stage.parts, stage.length)
    scorers = {name: part for name, part in stage.parts.items() if isinstance(part, Scorer)}
    matchers = [name for name in stage.parts if name not in scorers]
    stage = stage.with_parts(**{name: stage.parts[name].learned(name, update) for name in matchers})
    if "ranker" in scorers:
        update = replace(update, parts=stage.parts, lists=match(forest, stage, new.x))
    return stage.with_parts(**{name: part.learned(name, update) for name, part in scorers.items()})


# -- the blend --------------------------------------------------------------------------------


def _kept(blend: Blend, new: NewRows) -> Blend:
    """The same blend, which must not notice that the counts of all labels grow."""
    return replace(blend, count_share=blend.count_share * new.n_before / new.n_rows)


def _refitted(
    stage: SecondStage, new: NewRows, match: Matcher, seed: int
) -> tuple[Blend, NameIndex | None] | None:
    """The blend, fitted to new rows, and the matches of names with theirs.

    The parts have not seen these rows. None if they are too few, or if scores that fit them would
    be wrong for others.
    """
    if not new.shows_frequencies:
        return None
    useful = np.flatnonzero(new.is_ordinary)
    least = BLEND_SHARE * min(HELD_OUT_SHARE * new.n_before, HELD_OUT_ROWS)
    if len(useful) < max(least, FEWEST_BLEND_ROWS):
        return None
    rows = useful[np.flatnonzero(held_out_rows(len(useful), seed, share=1.0))]
    x, y = new.x.take(rows), new.y.take(rows)
    blend = replace(stage.blend, count_share=1.0)
    # Counts as the blend will see them. New labels take no part.
    counts = np.where(new.known, new.counts, 0)
    plain = replace(stage, label_counts=counts, blend=blend)
    lists = match(plain, x)
    truth = shared(lists, y)
    names, odds = stage.names, None
    if names is not None:
        assert lists.coverages is not None
        names = names.plus(names.counted([(lists.labels, lists.coverages, truth)]))
        odds = names.odds_without(lists.labels, lists.coverages, truth)
    known = {} if odds is None else {"names": odds}
    pairs = plain.pairs(x, lists, known=known)
    weights = blend_weights(truth, seed)
    used = (weights > 0) & (pairs.label_counts > 0)
    if not can_blend(truth[used]):
        return None
    fitted = fit_blend(
        stage.blend.kind, pairs[used], truth[used], weights[used], **stage.blend.formula
    )
    # The blend's many coefficients vary with the rows they are fitted to. The means of two fits,
    # each with the weight of its rows, are nearly those of a fit to all of these rows.
    n_before = min(HELD_OUT_SHARE * new.n_before, HELD_OUT_ROWS)
    share = 1.0 if new.prior == "batch" else len(rows) / (len(rows) + n_before)
    before, after = (np.array(fit.coefficients) for fit in (blend, fitted))
    return replace(blend, coefficients=rounded(before + share * (after - before))), names
