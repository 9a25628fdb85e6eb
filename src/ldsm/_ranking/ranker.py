"""The ranker: a linear classifier for each label, trained range by range of labels.

What a label's classifier becomes does not depend on its range. To learn from new rows, classifiers
take a proximal step: they fit these rows and stay close to their old weights, the closer the more
rows they have learned. A new label that has only examples starts from a classifier that rejects
every row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .. import _core
from .._arrays.features import FeatureArrays, feature_arrays
from .._arrays.lists import pair_keys
from .._arrays.matrices import label_csr
from .._execution.executor import Control, Executor
from .._execution.threads import state_of
from .._features.blocks import BIGRAMS, MAIN
from .._features.new_rows import NewRows
from .._matching.feature_index import FeatureIndex, mean_rows
from .._matching.part import Cancel, Scores, Trained, Training, Update
from .._matching.shortlists import Shortlists
from .label_pairs import (
    FILL_TO,
    GivenPairs,
    LabelPairs,
    ListedPairs,
    PairSource,
    label_pairs,
)
from .label_vectors import LabelVectors

# Chosen on held-out training rows (docs/experiments.md).
# C: binary features carry less information and need more regularisation.
COST, COST_BINARY = 1.0, 0.5
TOLERANCE = 1.0
MAX_EPOCHS = 30
PRUNE = 0.1
# How firmly the former rows resist the new ones: the curvature of their loss is twice the cost for
# each row within its margin, and all are assumed to be.
FIRMNESS = 2.0


class Ranker(LabelVectors):
    """The weights of the classifiers; the last feature's is the bias."""

    @classmethod
    def train(cls, name: str, training: Training) -> Trained:
        """On all rows; the margins of held-out pairs are those before it has seen their rows."""
        data, lists, held = training.data, training.lists, training.held
        assert held is not None
        x = data.blocks.read_by(name)
        ranker, margins, keys = train_ranker(
            training.executor,
            x,
            ListedPairs.from_lists(lists, data.y, training.seed),
            n_labels=data.n_labels,
            held_out=training.held_out,
            cost=_cost(x),
            compress=training.compress,
            seed=training.seed,
        )
        # The core returns the held-out pairs by label, but shortlists are by row.
        order = np.argsort(keys)
        held_rows = np.repeat(training.held_rows, np.diff(held.indptr))
        wanted = pair_keys(held_rows, held.labels, data.n_labels)
        return Trained(margins[order[np.searchsorted(keys, wanted, sorter=order)]], lambda: ranker)

    def scores(self, x: FeatureArrays, lists: Shortlists, cancel: Cancel = None) -> Scores:
        """The margins."""
        return self.products(x, lists.indptr, lists.labels, cancel)

    def learned(self, name: str, update: Update) -> Ranker:
        """The classifiers of labels that new rows have or list, trained further."""
        new, lists, seed = update.new, update.lists, update.seed
        assert lists is not None
        x = new.x.read_by(name)
        pairs = _without_unknown(label_pairs(lists.indptr, lists.labels, new.y, seed), new)
        cost = _cost(x)  # not of the averages that stand in for rows
        x, (offsets, rows, positive) = self._with_stand_ins(x, update, pairs)
        labels = np.flatnonzero(np.diff(offsets))
        if not len(labels):
            return self
        trained, *_ = train_ranker(
            update.executor,
            x,
            GivenPairs(offsets, rows, positive),
            n_labels=new.y.n_labels,
            cost=cost,
            compress=self.is_compressed,
            seed=seed,
            start=self._start(update, cost, x.n_features),
        )
        return self.replaced(labels, trained.taken(labels))

    def reasons(
        self, row: FeatureArrays, label: int, most: int | None
    ) -> tuple[float, list[tuple[int, float]]]:
        """The bias of a label's classifier, and its strongest contributions in one row."""
        features, stored = self.vector(label)
        weights = np.zeros(row.n_features + 1)
        weights[features] = stored
        values = row.values.astype(np.float64)
        length = np.sqrt(np.sum(values**2))
        products = weights[row.indices] * values / (length if length > 0 else 1.0)
        strongest = np.lexsort((row.indices, -np.abs(products)))[:most]
        reasons = [(int(row.indices[i]), float(products[i])) for i in strongest if products[i]]
        return float(weights[row.n_features]), reasons

    # -- incremental learning -----------------------------------------------------------------

    def _start(self, update: Update, cost: float, n_features: int) -> RankerStart:
        new, examples = update.new, update.new.of_unknown_frequency
        masses = [update.masses[MAIN], update.masses[BIGRAMS]]
        mass = np.concatenate(masses).astype(np.float64)
        # The squares of a unit row's values add up to 1.
        squares = (mass * (new.n_before / max(mass.sum(), 1e-9))).astype(np.float32)
        n_pairs = _pairs_before(update.length, new)
        # A known label would have been trained on a share of the earlier rows. A batch that shows
        # how often the label occurs has its own rows without it.
        share = np.select([new.known, examples], [1.0, n_pairs / max(1, new.n_before)], 0.0)
        return RankerStart(
            self._started(np.flatnonzero(examples), n_features),
            squares,
            FIRMNESS * cost * share,
            FIRMNESS * cost * np.where(share > 0, n_pairs, 0.0),
        )

    def _started(self, labels: NDArray[np.int64], n_features: int) -> Ranker:
        """With first classifiers of new labels: no earlier row had them, so they reject all."""
        place = (np.arange(len(labels)), np.full(len(labels), n_features))
        no = sp.csr_array(
            (np.full(len(labels), -1, np.float32), place), shape=(len(labels), n_features + 1)
        )
        packed = self.packed(no, n_features, prune=0, compress=self.is_compressed)
        return self.replaced(labels, packed)

    def _with_stand_ins(
        self, x: FeatureArrays, update: Update, pairs: LabelPairs
    ) -> tuple[FeatureArrays, LabelPairs]:
        """With stand-ins for earlier rows, where a new label has too few rows without it.

        A stand-in is the mean row of a neighbour, one of the labels most often listed with the new
        one.
        """
        new, lists = update.new, update.lists
        assert lists is not None
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
        stand_ins = self._means(neighbours, update, x.n_features)
        extra = np.concatenate([np.searchsorted(neighbours, others) for others in chosen])
        of = np.repeat(wanting, [len(others) for others in chosen])
        owner = np.concatenate([owner, of])
        order = np.argsort(owner, kind="stable")
        rows = np.concatenate([rows, (x.n_rows + extra).astype(np.int32)])[order]
        positive = np.concatenate([positive, np.zeros(len(extra), np.uint8)])[order]
        offsets = offsets + np.concatenate(
            [[0], np.cumsum(np.bincount(of, minlength=new.y.n_labels))]
        )
        joined = feature_arrays(sp.vstack([x.matrix(), stand_ins], format="csr"))
        return joined, (offsets.astype(np.int64), rows, positive)

    def _means(self, labels: NDArray[np.int64], update: Update, n_features: int) -> sp.csr_array:
        """The mean rows of some labels, one row each."""
        centroids, index = update.parts.get("centroids"), update.parts.get("index")
        if isinstance(centroids, LabelVectors):
            return sp.csr_array(centroids.taken(labels).matrix(n_features)[:, :n_features])
        if not isinstance(index, FeatureIndex):
            # Only the trees find labels: no more is known of a label's rows than its classifier.
            means = self.taken(labels).matrix(n_features)[:, :n_features]
            return sp.csr_array(means.maximum(0))
        new = update.new
        means = mean_rows(index, update.masses[MAIN], labels, new.counts_before, new.n_before)
        shape = (len(labels), n_features)
        return sp.csr_array((means.data, means.indices, means.indptr), shape=shape)


def _cost(x: FeatureArrays) -> float:
    return COST_BINARY if x.is_binary else COST


class RankerStart(NamedTuple):
    """The weights that training starts from, and how firmly they stay."""

    vectors: LabelVectors
    squares: NDArray[np.float32]  # by feature
    firmness: NDArray[np.float64]  # by label
    rows: NDArray[np.float64]  # by label


class Range(NamedTuple):
    """The classifiers of a range of labels."""

    vectors: Sequence[NDArray[Any]]
    margins: NDArray[np.float32]  # of held-out pairs, by label
    keys: NDArray[np.int64]  # of the same pairs


@dataclass(frozen=True, eq=False)
class RankerTask:
    """Trains the classifiers of a range of labels, (first, one past the last)."""

    x: FeatureArrays
    pairs: PairSource
    params: Mapping[str, Any]  # those of `_core.RankerParams`
    seed: int
    n_labels: int
    held_out: NDArray[np.uint8] | None
    start: RankerStart | None

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self, "_checked_start")

    @cached_property
    def _checked_start(self) -> _core.RankerStart | None:
        """The start for the core, checked once for all ranges."""
        return None if self.start is None else _core.RankerStart(*self.start)

    @staticmethod
    def packed(trained: Range) -> dict[str, NDArray[Any]]:
        names = (*Ranker.array_names(), "margins", "keys")
        return dict(zip(names, (*trained.vectors, trained.margins, trained.keys), strict=True))

    @staticmethod
    def unpacked(arrays: Mapping[str, NDArray[Any]]) -> Range:
        vectors = [arrays[name] for name in Ranker.array_names()]
        return Range(vectors, arrays["margins"], arrays["keys"])

    def __call__(self, part: tuple[int, int], control: Control) -> Range:
        first, last = part
        pairs = offsets, rows, _ = self.pairs.of(first, last, control.cancel)
        vectors, margins = _core.train_ranker(
            self.x.checked,
            _core.CheckedPairs(*pairs, self.x.n_rows, first),
            _core.RankerParams(**self.params),
            seed=self.seed,
            held_out=self.held_out,
            start=self._checked_start,
            cancel=control.cancel,
        )
        if self.held_out is None:
            return Range(vectors, margins, np.zeros(0, np.int64))
        held_out = np.flatnonzero(self.held_out[rows])
        labels = first + np.searchsorted(offsets, held_out, side="right") - 1
        return Range(vectors, margins, pair_keys(rows[held_out], labels, self.n_labels))


def train_ranker(
    executor: Executor,
    x: FeatureArrays,
    pairs: PairSource,
    *,
    n_labels: int,
    cost: float,
    compress: bool,
    seed: int,
    held_out: NDArray[np.uint8] | None = None,
    start: RankerStart | None = None,
) -> tuple[Ranker, NDArray[np.float32], NDArray[np.int64]]:
    """The classifiers of all labels, and margins and keys of held-out pairs, by label."""
    params = {
        "cost": cost,
        "tolerance": TOLERANCE,
        "max_epochs": MAX_EPOCHS,
        "prune": PRUNE,
        "compress": compress,
    }
    task = RankerTask(x, pairs, params, seed, n_labels, held_out, start)
    trained = executor.map(task, pairs.ranges(), name="label range")
    vectors = Ranker.concatenated([one.vectors for one in trained])
    margins, keys = (np.concatenate([one[i] for one in trained]) for i in (1, 2))
    return vectors, margins, keys


def _without_unknown(pairs: LabelPairs, new: NewRows) -> LabelPairs:
    """Without pairs of a row and a known label that it lacks, where the lack means nothing."""
    offsets, rows, positive = pairs
    owner = np.repeat(np.arange(new.y.n_labels), np.diff(offsets))
    kept = (positive > 0) | new.lacks[rows] | ~new.known[owner]
    offsets = np.concatenate([[0], np.cumsum(kept)])[offsets]
    return offsets.astype(np.int64), rows[kept], positive[kept]


def _pairs_before(length: int, new: NewRows) -> NDArray[np.float64]:
    """The approximate number of rows that each label was trained on, most of which only list it.

    For new labels, the number if they had been known.
    """
    counts = np.where(new.known, new.counts_before, new.y.counts)
    per_row = new.counts_before.sum() / max(1, new.n_before)
    about = np.clip(counts * (length / max(per_row, 1e-9)), FILL_TO, max(1, new.n_before))
    return np.where(counts > 0, about, 0.0)
