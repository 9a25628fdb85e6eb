"""Move the labels of a fitted model to other columns: drop some, rename some, make room for more.

Every part of a model that refers to labels by number is changed here, and nothing else.

A dropped label is never predicted again, but other scores depend on it: it took places on
shortlists, its name may have been the best match of a text, and it was counted in leaves. To keep
these scores, bit for bit, matchers keep what they depend on, under a number above those of the
labels (`Forest.places`). The name, vectors, counts and threshold of the label are removed at once,
and the rest when the model next learns, which changes scores anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._ranking.stage import SecondStage
from .._storage.strings import is_unicode
from .._trees.columns import Moved, NewColumns, Numbers
from .._trees.forest import Forest
from .fitted import FittedModel
from .history import with_entry
from .names import LabelNames


def without_labels(model: FittedModel, labels: Iterable[Any]) -> FittedModel:
    """The model without some labels; the scores of all others stay as they are."""
    dropped = _columns_of(model, labels)
    kept = np.setdiff1d(np.arange(model.n_labels), dropped)
    if len(kept) == 0:
        raise ValueError("A model must keep at least one label. Got all of them to drop.")
    place = np.full(model.n_labels, -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    new = in_columns(model, NewColumns(place, len(kept)), model.classes[kept], exactly=True)
    return noted(_without_keys(new), {"dropped": len(dropped)})


def with_names(model: FittedModel, names: Mapping[Any, Any]) -> FittedModel:
    """The model with other names for some labels; nothing else changes.

    The columns stay where they are. Only those of labels that exclude each other are sorted again:
    metrics for them take the columns of scores to be in the order of the labels.
    """
    columns = _columns_of(model, names.keys())
    classes = model.classes.astype(object)
    classes[columns] = list(names.values())
    kinds = {type(label) for label in model.classes.tolist()}
    for label in names.values():
        if type(label) not in kinds:
            raise ValueError(
                f"A label must be renamed to one of its kind, {_listed(kinds)}. Got {label!r:.80}."
            )
        if isinstance(label, str) and not is_unicode(label):
            raise ValueError(f"A label must not hold a lone surrogate. Got {label!r:.80}.")
    if len(set(classes.tolist())) < len(classes):
        twice = next(label for label in names.values() if classes.tolist().count(label) > 1)
        raise ValueError(f"Labels must stay different. Got {twice!r:.80} for two of them.")
    stage = model.second_stage
    if stage is not None and stage.names is not None:
        spelled = stage.names.spelled_out(model.classes.tolist())
        model = replace(model, second_stage=stage.with_parts(names=spelled))
    dtype = model.classes.dtype
    typed = np.array(classes.tolist(), dtype="U" if dtype.kind == "U" else dtype)
    if model.label_form == "single" and ascend(model.classes.tolist()):
        new = in_order(model, np.argsort(typed, kind="stable"), typed)
    else:
        new = replace(model, labels=LabelNames.of(typed))
    return noted(_without_keys(new), {"renamed": len(names)})


def _without_keys(model: FittedModel) -> FittedModel:
    """The model without the hashes of rows, which have the labels that they were learned with."""
    stage = model.second_stage
    if stage is None:
        return model
    return replace(model, second_stage=replace(stage, learned_rows=None))


def in_order(model: FittedModel, order: Numbers, classes: NDArray[Any]) -> FittedModel:
    """The model with its columns in another order; `classes` are in the order before."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return in_columns(model, NewColumns(place, len(order)), classes[order], exactly=True)


def aligned(model: FittedModel, classes: NDArray[Any]) -> FittedModel:
    """The model without any data of dropped labels, its columns in the order of `classes`.

    If these are not its own labels, the order stays.
    """
    model = without_remainder(model)
    number = {label: i for i, label in enumerate(model.classes.tolist())}
    order = [number.get(label, -1) for label in classes.tolist()]
    if sorted(order) != list(range(model.n_labels)) or order == sorted(order):
        return model
    return in_order(model, np.array(order, dtype=np.int64), model.classes)


def without_remainder(model: FittedModel) -> FittedModel:
    """The model without any data of dropped labels; other scores may change a little."""
    if not model.forest.n_dropped:
        return model
    same = NewColumns(np.arange(model.n_labels), model.n_labels)
    return in_columns(model, same, model.classes)


def in_columns(
    model: FittedModel, columns: NewColumns, classes: NDArray[Any], *, exactly: bool = False
) -> FittedModel:
    """The same model with its labels in other columns; new labels are not learned yet.

    With `exactly`, the data of dropped labels that other scores depend on are kept; there must be
    no new labels then. Otherwise nothing is kept.
    """
    moved = _moved(model, columns) if exactly else Moved.without_dropped(model.forest, columns)
    counts = columns.taken(model.label_counts, 0)
    threshold: Any = model.threshold
    if isinstance(threshold, np.ndarray):
        # A new label was not tuned: the median of the others is the best guess.
        usual = np.median(threshold.astype(np.float64))  # a sum of two may overflow float32
        threshold = columns.taken(threshold, usual)
    stage = model.second_stage
    return replace(
        model,
        forest=_forest(model.forest, moved),
        second_stage=None if stage is None else _stage(stage, columns, moved),
        labels=LabelNames.of(classes),
        label_counts=counts,
        threshold=threshold,
    )


def _moved(model: FittedModel, columns: NewColumns) -> Moved:
    """Keeps the data of dropped labels that other scores depend on.

    These are their names, because one may be the best match of a text; their counts in leaves and
    their entries in indexes, if lists are too short for all labels, because they take places there;
    and their counts if leaves divide by the sum of all counts.
    """
    forest, stage = model.forest, model.second_stage
    cut = stage is not None and stage.length < forest.n_known
    place = np.append(columns.place, np.full(forest.n_dropped, -1))
    gone = np.append(np.arange(model.n_labels, forest.n_known), np.flatnonzero(columns.place < 0))
    bins = None
    if not cut and forest.by_rows:
        bins = _needed_bins(forest, place < 0)
        named = stage is not None and stage.names is not None
        if not named and not np.any(place[forest.histogram_labels[bins]] < 0):
            gone = gone[:0]
    place[gone] = columns.n_labels + np.arange(len(gone))
    known = NewColumns(place, columns.n_labels + len(gone))
    return Moved(columns, known, bins, in_indexes=cut)


def _needed_bins(forest: Forest, gone: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which histogram entries the scores of the remaining labels depend on.

    These are their own entries, and those of a leaf that would become empty, because then its
    parent would answer in its place.
    """
    own = ~gone[forest.histogram_labels]
    node = np.repeat(np.arange(forest.n_nodes), np.diff(forest.histogram_offsets))
    left = np.bincount(node, own, forest.n_nodes)
    answering = ~forest.is_leaf & (np.diff(forest.histogram_offsets) > 0)
    start = np.repeat(forest.tree_offsets[:-1], np.diff(forest.tree_offsets))
    first = (start + forest.first_child)[answering]
    alone = np.zeros(forest.n_nodes, dtype=bool)
    alone[(first[:, None] + np.arange(forest.arity)).ravel()] = True
    return np.asarray(own | (alone & (left == 0))[node])


def noted(model: FittedModel, what: Mapping[str, int]) -> FittedModel:
    """The model with an entry in its history."""
    history = with_entry(model.training, what)
    training = {**model.training, "labels": model.n_labels, "history": history}
    return replace(model, training=training)


def _forest(forest: Forest, moved: Moved) -> Forest:
    offsets, labels = forest.histogram_offsets, forest.histogram_labels
    counts = forest.histogram_counts
    if moved.bins is not None:
        offsets = np.append(0, np.cumsum(moved.bins))[offsets]
        labels, counts = labels[moved.bins], counts[moved.bins]
    offsets, labels, counts = moved.known.within(offsets, labels, counts)
    if not len(forest.weight_units):
        labels = labels.astype(np.int32)
    return replace(
        forest,
        n_labels=moved.n_labels,
        histogram_offsets=offsets,
        histogram_labels=labels,
        histogram_counts=counts,
        places=moved.places(forest),
    )


def _stage(stage: SecondStage, columns: NewColumns, moved: Moved) -> SecondStage:
    seen = None
    if moved.n_dropped and stage.names is not None:
        before = np.zeros(0, np.uint8) if stage.dropped_seen is None else stage.dropped_seen
        seen = np.append(before, stage.label_counts[columns.place < 0] > 0).astype(np.uint8)
    return replace(
        stage,
        label_counts=columns.taken(stage.label_counts, 0),
        parts={name: part.relabelled(moved) for name, part in stage.parts.items()},
        tested=None if stage.tested is None else _tested(stage.tested, columns),
        dropped_seen=seen,
    )


def _tested(tested: NDArray[np.uint16], columns: NewColumns) -> NDArray[np.uint16]:
    return np.stack([columns.taken(counts, 0) for counts in tested.T], axis=1)


def _columns_of(model: FittedModel, labels: Iterable[Any]) -> Numbers:
    if isinstance(labels, str | bytes):
        raise ValueError(
            f"labels must be a list of labels. Got {labels!r:.80}: put it into a list."
        )
    column = {label: i for i, label in enumerate(model.classes.tolist())}
    chosen = list(dict.fromkeys(labels))
    if not chosen:
        raise ValueError("There must be at least one label to change. Got none.")
    for label in chosen:
        if label not in column:
            raise ValueError(f"The model has no label {label!r:.80}.")
    return np.array([column[label] for label in chosen], dtype=np.int64)


def ascend(labels: list[Any]) -> bool:
    if len({type(label) for label in labels}) > 1:
        return False
    return all(a < b for a, b in pairwise(labels))


def _listed(kinds: Iterable[type]) -> str:
    return " or ".join(sorted(kind.__name__ for kind in kinds))
