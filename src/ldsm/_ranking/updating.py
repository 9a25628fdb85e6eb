"""Let a second stage learn from new rows, starting from what it is.

Sums are added to: the indexes and the centroids. Linear classifiers take a proximal step: they fit
the new rows and stay close to what they were, the closer the more rows have said so. A new label
of which there are examples only starts from a classifier that says no to every row. The blend is
refitted where there are enough new rows, which the stage as it was has never seen, and where labels
are distributed as usual; with it, the matches of names are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from .._arrays.features import FeatureArrays, feature_arrays
from .._arrays.matrices import label_csr
from .._execution.executor import Control, Executor
from .._features.blocks import BIGRAMS, MAIN, Blocks
from .._features.new_rows import NewRows
from .._matching.feature_index import mean_rows, unit_values
from .._matching.names import NameIndex
from .._matching.part import Update
from .._matching.shortlists import Shortlists
from .._trees.forest import Forest
from .blend import Blend, fit_blend
from .label_vectors import LabelVectors
from .ranker import COST, COST_BINARY, LabelPairs, RankerStart, train_ranker
from .stage import SecondStage
from .training import (
    CENTROID_PRUNE,
    FILL_TO,
    HELD_OUT_ROWS,
    HELD_OUT_SHARE,
    blend_weights,
    can_blend,
    held_out_rows,
    shared,
)

# How firmly the former rows resist the new ones: the curvature of their loss is twice the cost
# for each row within its margin, and all are taken to be.
FIRMNESS = 2.0
# The blend is fitted to so many new rows, as a share of those that it was first fitted to, and to
# no fewer than these.
BLEND_SHARE, FEWEST_BLEND_ROWS = 0.25, 200
_CHUNK = 512  # rows

Matcher = Callable[[SecondStage, Blocks], Shortlists]


def learned_stage(
    stage: SecondStage,
    former: Forest,
    forest: Forest,
    new: NewRows,
    *,
    by_rows: bool,
    min_rows: int,
    seed: int,
    executor: Executor,
) -> SecondStage:
    """The second stage with new rows learned; `forest` knows them, too, `former` does not.

    `min_rows` is the estimator's `tail_min_rows`. The result does not depend on the executor.
    """
    assert stage.masses is not None

    def match(trees: Forest, used: SecondStage, x: Blocks) -> Shortlists:
        def lists(rows: Blocks, control: Control) -> Shortlists:
            return used.shortlists(trees, rows, by_rows=by_rows, cancel=control.cancel)

        return Shortlists.joined(executor.map(lists, list(x.chunks(_CHUNK))))

    refitted = _refitted(stage, new, partial(match, former), seed)
    blend, names = refitted or (_kept(stage.blend, new), stage.names)
    masses, more = stage.masses, stage.masses_of(new.x)
    stage = replace(
        stage if names is None else stage.with_parts(names=names),
        blend=blend,
        label_counts=new.counts,
        masses={name: (masses[name] + more[name]).astype(np.float32) for name in masses},
    )
    update = Update(new, masses, seed)
    known = {name: part.learned(name, update) for name, part in stage.parts.items()}
    stage = replace(stage, parts=known)
    rankers: dict[str, LabelVectors] = {}
    if stage.ranker is not None:
        lists = match(forest, stage, new.x)
        rankers["ranker"] = _ranker(stage, lists, new.x.read_by("ranker"), new, seed, executor)
    if stage.centroids is not None:
        rankers["centroids"] = _centroids(
            stage.centroids, new.x.read_by("centroids"), new, min_rows
        )
    return stage.with_parts(**rankers)


# -- the blend --------------------------------------------------------------------------------


def _kept(blend: Blend, new: NewRows) -> Blend:
    """The same blend, which must not see how the counts of all labels grow."""
    return replace(blend, count_share=blend.count_share * new.n_before / new.n_rows)


def _refitted(
    stage: SecondStage, new: NewRows, match: Matcher, seed: int
) -> tuple[Blend, NameIndex | None] | None:
    """The blend, fitted to new rows, and the matches of names with theirs.

    None of what is blended has seen these rows. None if they are too few, or if scores that fit
    them would be wrong for others.
    """
    if not new.shows_frequencies:
        return None
    useful = np.flatnonzero(new.is_ordinary)
    least = BLEND_SHARE * min(HELD_OUT_SHARE * new.n_before, HELD_OUT_ROWS)
    if len(useful) < max(least, FEWEST_BLEND_ROWS):
        return None
    rows = useful[np.flatnonzero(held_out_rows(len(useful), seed, share=1.0))]
    x, y = new.x.take(rows), new.y.take(rows)
    # The counts are those that the blend will meet. Labels that are new have no part in it.
    counts = np.where(new.known, new.counts, 0)
    plain = replace(stage, label_counts=counts, blend=replace(stage.blend, count_share=1.0))
    lists = match(plain, x)
    truth = shared(lists, y)
    names, odds = stage.names, None
    if names is not None:
        assert lists.coverages is not None
        names = names.plus(names.counted(lists.labels, lists.coverages, truth))
        odds = names.odds_without(lists.labels, lists.coverages, truth)
    pairs = plain.pairs(x, lists, name_odds=odds)
    weights = blend_weights(truth, seed)
    used = (weights > 0) & (pairs.label_counts > 0)
    if not can_blend(truth[used]):
        return None
    fitted = fit_blend(
        stage.blend.kind, pairs[used], truth[used], weights[used], **stage.blend.formula
    )
    return replace(plain.blend, coefficients=fitted.coefficients), names


# -- the linear classifiers -------------------------------------------------------------------


def _ranker(
    stage: SecondStage,
    lists: Shortlists,
    x: FeatureArrays,
    new: NewRows,
    seed: int,
    executor: Executor,
) -> LabelVectors:
    """The classifiers of labels that new rows have or list, trained further from their weights."""
    ranker = stage.ranker
    assert ranker is not None and stage.masses is not None
    listed = _core.CheckedLabels(lists.indptr, lists.labels, new.y.n_labels)
    pairs = _core.label_pairs(listed, new.y.checked, fill_to=FILL_TO, seed=seed)
    pairs = _without_unknown(pairs, new)
    cost = COST_BINARY if x.is_binary else COST  # not of the averages that stand in for rows
    x, (offsets, rows, positive) = _with_stand_ins(stage, lists, x, new, pairs)
    labels = np.flatnonzero(np.diff(offsets))
    if not len(labels):
        return ranker
    examples = new.of_unknown_frequency
    masses = np.concatenate([stage.masses[MAIN], stage.masses[BIGRAMS]]).astype(np.float64)
    # The squares of a unit row's values add up to 1.
    squares = (masses * (new.n_before / max(masses.sum(), 1e-9))).astype(np.float32)
    n_pairs = _pairs_before(stage, new)
    # Had a new label been known, it would have been trained on a share of the rows before. A batch
    # that shows how often it occurs has its own rows without it.
    share = np.select([new.known, examples], [1.0, n_pairs / max(1, new.n_before)], 0.0)
    firmness = FIRMNESS * cost * share
    rows_before = FIRMNESS * cost * np.where(share > 0, n_pairs, 0.0)
    start = RankerStart(
        _started(ranker, np.flatnonzero(examples), x.n_features), squares, firmness, rows_before
    )
    trained, _ = train_ranker(
        executor,
        x,
        (offsets, rows, positive),
        cost=cost,
        compress=ranker.is_compressed,
        seed=seed,
        start=start,
    )
    return ranker.replaced(labels, trained.taken(labels))


def _without_unknown(pairs: LabelPairs, new: NewRows) -> LabelPairs:
    """Without rows that lack a label that the model knows, where that says nothing."""
    offsets, rows, positive = pairs
    owner = np.repeat(np.arange(new.y.n_labels), np.diff(offsets))
    kept = (positive > 0) | new.lacks[rows] | ~new.known[owner]
    offsets = np.concatenate([[0], np.cumsum(kept)])[offsets]
    return offsets.astype(np.int64), rows[kept], positive[kept]


def _started(ranker: LabelVectors, labels: NDArray[np.int64], n_features: int) -> LabelVectors:
    """With first classifiers of new labels: no row so far has had them, so they say no."""
    place = (np.arange(len(labels)), np.full(len(labels), n_features))
    no = sp.csr_array(
        (np.full(len(labels), -1, np.float32), place), shape=(len(labels), n_features + 1)
    )
    packed = LabelVectors.packed(no, n_features, prune=0, compress=ranker.is_compressed)
    return ranker.replaced(labels, packed)


def _pairs_before(stage: SecondStage, new: NewRows) -> NDArray[np.float64]:
    """About how many rows each label has been trained on: those that list it are the more.

    For new labels, how many it would have been, had they been known.
    """
    counts = np.where(new.known, new.counts_before, new.y.counts)
    per_row = new.counts_before.sum() / max(1, new.n_before)
    about = np.clip(counts * (stage.length / max(per_row, 1e-9)), FILL_TO, max(1, new.n_before))
    return np.where(counts > 0, about, 0.0)


def _with_stand_ins(
    stage: SecondStage, lists: Shortlists, x: FeatureArrays, new: NewRows, pairs: LabelPairs
) -> tuple[FeatureArrays, LabelPairs]:
    """With rows that stand in for the former ones, where a new label has too few without it.

    They are what the rows of its neighbours have on average: of the labels that are most often
    listed where it is given.
    """
    offsets, rows, positive = pairs
    owner = np.repeat(np.arange(new.y.n_labels), np.diff(offsets))
    without = np.bincount(owner[positive == 0], minlength=new.y.n_labels)
    known = new.known
    wanting = np.flatnonzero(~known & (new.y.counts > 0) & (without < FILL_TO))
    if not len(wanting) or not known.any():
        return x, pairs
    given = label_csr(new.y.indptr, new.y.indices, new.y.n_labels)[:, wanting].T
    near = sp.csr_array(given @ label_csr(lists.indptr, lists.labels, new.y.n_labels))
    chosen: list[NDArray[np.int64]] = []
    for i, label in enumerate(wanting.tolist()):
        part = slice(near.indptr[i], near.indptr[i + 1])
        others, times = near.indices[part], near.data[part]
        times = times * known[others]
        order = np.lexsort((others, -times))[: FILL_TO - int(without[label])]
        chosen.append(others[order[times[order] > 0]].astype(np.int64))
    neighbours = np.unique(np.concatenate(chosen))
    stand_ins = _means(stage, neighbours, new, x.n_features)
    extra = np.concatenate([np.searchsorted(neighbours, others) for others in chosen])
    of = np.repeat(wanting, [len(others) for others in chosen])
    owner = np.concatenate([owner, of])
    order = np.argsort(owner, kind="stable")
    rows = np.concatenate([rows, (x.n_rows + extra).astype(np.int32)])[order]
    positive = np.concatenate([positive, np.zeros(len(extra), np.uint8)])[order]
    offsets = offsets + np.concatenate([[0], np.cumsum(np.bincount(of, minlength=new.y.n_labels))])
    joined = feature_arrays(sp.vstack([x.matrix(), stand_ins], format="csr"))
    return joined, (offsets.astype(np.int64), rows, positive)


def _means(
    stage: SecondStage, labels: NDArray[np.int64], new: NewRows, n_features: int
) -> sp.csr_array:
    """What the rows of some labels have on average, one row each."""
    if stage.centroids is not None:
        return sp.csr_array(stage.centroids.taken(labels).matrix(n_features)[:, :n_features])
    if stage.index is None or stage.masses is None:
        # The trees alone find labels: only what speaks for a label is known of its rows.
        assert stage.ranker is not None
        means = stage.ranker.taken(labels).matrix(n_features)[:, :n_features]
        return sp.csr_array(means.maximum(0))
    means = mean_rows(stage.index, stage.masses[MAIN], labels, new.counts_before, new.n_before)
    shape = (len(labels), n_features)
    return sp.csr_array((means.data, means.indices, means.indptr), shape=shape)


# -- the centroids ----------------------------------------------------------------------------


def _centroids(
    centroids: LabelVectors, x: FeatureArrays, new: NewRows, min_rows: int
) -> LabelVectors:
    """The means of all rows of each label: those before, as they are rounded, and the new ones."""
    # A label of too few rows so far has no centroid: what its rows were is not known. A mean of
    # fewer than it takes would reveal them.
    known = np.where(np.diff(centroids.offsets) > 0, new.counts_before, 0)
    labels = np.flatnonzero((new.y.counts > 0) & (known + new.y.counts >= min_rows))
    before, counts = centroids.taken(labels), known[labels]
    sums = _scaled(before.matrix(x.n_features)[:, : x.n_features], counts)
    unit = sp.csr_array((unit_values(x), x.indices, x.indptr), shape=(x.n_rows, x.n_features))
    given = label_csr(new.y.indptr, new.y.indices, new.y.n_labels)[:, labels].T
    sums = sp.csr_array(sums + given @ unit)
    sums.sort_indices()
    means = _scaled(sums, 1 / np.maximum(counts + new.y.counts[labels], 1))
    packed = LabelVectors.packed(
        means, x.n_features, prune=CENTROID_PRUNE, compress=centroids.is_compressed
    )
    return centroids.replaced(labels, packed)


def _scaled(matrix: Any, factors: NDArray[Any]) -> sp.csr_array:
    """Each row times its factor."""
    data = matrix.data * np.repeat(factors, np.diff(matrix.indptr))
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
