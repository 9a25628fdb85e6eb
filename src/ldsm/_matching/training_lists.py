"""Shortlists of the training rows, and which matchers make them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.labels import LabelArrays
from .._arrays.lists import pair_keys
from .._trees.params import effort_of, is_dense
from .evidence import long_runs
from .matchers import MATCHERS, OutOfBag, TrainedMatchers
from .names import Matches, NameIndex
from .part import TrainedMatcher, Training
from .shortlists import SHORTLIST, Shortlists

SHORTEST = 50  # labels on a list that held-out rows find long enough


@dataclass(frozen=True)
class Matching:
    """How training rows are matched, and new rows will be."""

    lists: Sequence[Shortlists]  # of all training rows, chunk by chunk
    held: Shortlists  # of those that are held out, with all scores
    length: int
    matchers: TrainedMatchers
    # Held-out rows' best matches by name among labels that no other row has; None without such.
    unseen: Shortlists | None = None


# Matchers that are trained before the trees: the more labels they find, the fewer trees it takes.
EARLY = ("index", "meaning")


def trained_early(training: Training) -> dict[str, TrainedMatcher[Any]]:
    """The matchers that decide how many trees are grown, where there is something to read."""
    found = {name: MATCHERS[name].train(name, training) for name in EARLY}
    return {name: trained for name, trained in found.items() if trained is not None}


def n_found(oob: OutOfBag, training: Training, known: Mapping[str, TrainedMatcher[Any]]) -> int:
    """How many labels of some held-out rows are on shortlists by the trees and other matchers."""
    return _found(oob, training, SHORTLIST, TrainedMatchers(known))


def _found(oob: OutOfBag, training: Training, length: int, matchers: TrainedMatchers) -> int:
    y = training.data.y.take(training.tried_rows)
    return int(shared(oob.match(length, matchers, training.tried_rows), y).sum())


def match_training_rows(
    oob: OutOfBag,
    training: Training,
    *,
    with_others: bool,
    known: Mapping[str, TrainedMatcher[Any]],
) -> Matching:
    """Shortlists of the training rows.

    With `with_others`, held-out rows decide which matchers besides the trees find more of their
    labels, and whether longer lists find many more. Some are `known` already.
    """
    data = training.data
    worth_doubling = effort_of(training.settings).worth_doubling
    if is_dense(data.blocks.main):
        worth_doubling = ()  # linear classifiers of dense rows take long to learn from long lists
    longest = SHORTEST << len(worth_doubling)

    def found(length: int, matchers: TrainedMatchers) -> int:
        return _found(oob, training, length, matchers)

    form = data.sub_word_form
    matchers = TrainedMatchers(telling_sub_words=None if form is None else long_runs(form.words))
    if not with_others:
        return _matched(oob, training, SHORTLIST, matchers)
    most = found(longest, matchers)
    for name, kind in MATCHERS.items():
        if (trained := known.get(name) or kind.train(name, training)) is None:
            continue
        more = matchers.plus(name, trained)
        if (its := found(longest, more)) >= kind.WORTH * most:
            if kind.MUST_GAIN and its == most:
                more = replace(more, undecided=(*more.undecided, name))
            matchers, most = more, its
        elif name == "names":
            # They score the labels that others find.
            matchers = replace(more, match_names=False)
    length, so_far = SHORTEST, most if longest == SHORTEST else found(SHORTEST, matchers)
    for worth in worth_doubling:
        n_found = most if 2 * length == longest else found(2 * length, matchers)
        if length >= data.n_labels or n_found < worth * so_far:
            break
        length, so_far = 2 * length, n_found
    return _matched(oob, training, length, matchers)


def _matched(oob: OutOfBag, training: Training, length: int, matchers: TrainedMatchers) -> Matching:
    data = training.data
    length = min(length, data.n_labels)
    lists = oob.match_all(length, matchers)
    held = oob.match(length, matchers, training.held_rows)
    if matchers.of_all_rows is not matchers:
        lists = list(_with_held(lists, held.brief(), training.held_rows))
    if matchers.names is not None:
        names = matchers.names.counted(_matches(lists, data.y))
        matchers = matchers.plus("names", TrainedMatcher(names))
        lists = [replace(chunk, coverages=None) for chunk in lists]
    return Matching(lists, held, length, matchers, _unseen_matches(oob, training, matchers.names))


def _unseen_matches(
    oob: OutOfBag, training: Training, names: NameIndex | None
) -> Shortlists | None:
    y, rows = training.data.y, training.held_rows
    if names is None or y.counts.all():
        return None
    elsewhere = y.counts - np.bincount(y.take(rows).indices, minlength=y.n_labels)
    return oob.match_names(names, (elsewhere == 0).astype(np.uint8), rows)


def _with_held(
    lists: Sequence[Shortlists], held: Shortlists, held_rows: NDArray[np.int64]
) -> Iterator[Shortlists]:
    """The lists of all rows, chunk by chunk, with those of held-out rows as new rows have them."""
    start = 0
    for chunk in lists:
        stop = start + len(chunk.indptr) - 1
        own = np.arange(*np.searchsorted(held_rows, (start, stop)))
        yield chunk.with_rows(held_rows[own] - start, held.take(own)) if len(own) else chunk
        start = stop


def _matches(lists: Sequence[Shortlists], y: LabelArrays) -> Iterator[Matches]:
    """The labels on lists, by how much of their name the row has, and whether it has them."""
    start = 0
    for chunk in lists:
        assert chunk.coverages is not None
        stop = start + len(chunk.indptr) - 1
        yield chunk.labels, chunk.coverages, shared(chunk, y.rows(start, stop))
        start = stop


def shared(lists: Shortlists, y: LabelArrays) -> NDArray[np.bool_]:
    """Which listed labels are among the rows' own."""
    rows = np.arange(y.n_rows)
    listed = pair_keys(np.repeat(rows, np.diff(lists.indptr)), lists.labels, y.n_labels)
    own = pair_keys(np.repeat(rows, np.diff(y.indptr)), y.indices, y.n_labels)
    found = np.zeros(len(listed), dtype=np.bool_)
    places = np.searchsorted(listed, own)  # both ascend
    places = places[: np.count_nonzero(places < len(listed))]
    found[places[listed[places] == own[: len(places)]]] = True
    return found
