"""Give the labels of a fitted model other columns: forget some, rename them, make room for more.

Every part of a model that knows labels by their numbers is changed here, and nothing else of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._second_stage.feature_index import FeatureIndex
from .._second_stage.names import NameIndex
from .._second_stage.stage import SecondStage
from .._second_stage.vectors import LabelVectors
from .._storage.strings import Strings, is_unicode
from .._trees.forest import Forest, narrowed
from .fitted import FittedModel
from .history import with_entry
from .names import LabelNames

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NewColumns:
    """Where each old column goes."""

    place: Numbers  # by old column: the new one, -1 for none
    n_labels: int

    @property
    def source(self) -> Numbers:
        """By new column: the old one, -1 for a new label."""
        source = np.full(self.n_labels, -1, dtype=np.int64)
        kept = np.flatnonzero(self.place >= 0)
        source[self.place[kept]] = kept
        return source

    @cached_property
    def keeps_order(self) -> bool:
        """Whether labels that stay follow each other as before."""
        return bool(np.all(np.diff(self.place[self.place >= 0]) > 0))

    @cached_property
    def only_adds(self) -> bool:
        """Whether all labels stay, in their order: then only their numbers change."""
        return self.keeps_order and bool(np.all(self.place >= 0))

    def taken(self, values: NDArray[Any], fill: Any) -> NDArray[Any]:
        """Values by new column; `fill` for new labels."""
        source = self.source
        return np.where(source >= 0, values[source], np.asarray(fill, dtype=values.dtype))

    def within(
        self, offsets: Numbers, labels: NDArray[Any], values: NDArray[Any]
    ) -> tuple[Numbers, NDArray[Any], NDArray[Any]]:
        """Lists of labels with their values; labels ascend within a list."""
        if self.only_adds:
            return offsets, narrowed(self.place.astype(np.int32), self.n_labels - 1)[labels], values
        columns = self.place[labels]
        kept = np.flatnonzero(columns >= 0)
        new_offsets = np.concatenate([[0], np.cumsum(columns >= 0)])[offsets]
        columns, values = columns[kept], values[kept]
        if not self.keeps_order:
            lists = np.repeat(np.arange(len(offsets) - 1), np.diff(new_offsets))
            order = np.lexsort((columns, lists))
            columns, values = columns[order], values[order]
        chosen = narrowed(columns.astype(np.int32), self.n_labels - 1)
        return new_offsets.astype(np.int64), chosen, values


def without_labels(model: FittedModel, labels: Iterable[Any]) -> FittedModel:
    """The model without some labels; all others score as they did on the same shortlists."""
    dropped = _columns_of(model, labels)
    kept = np.setdiff1d(np.arange(model.n_labels), dropped)
    if len(kept) == 0:
        raise ValueError("A model must keep at least one label. Got all of them to drop.")
    place = np.full(model.n_labels, -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    new = in_columns(model, NewColumns(place, len(kept)), model.classes[kept])
    return noted(new, {"dropped": len(dropped)})


def with_names(model: FittedModel, names: Mapping[Any, Any]) -> FittedModel:
    """The model with other names for some labels; nothing else changes, but their order."""
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
    order = np.arange(len(classes))
    if ascend(model.classes.tolist()):  # then they do so afterwards
        order = np.array(sorted(order.tolist(), key=lambda i: classes[i]), dtype=np.int64)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    if model.second_stage is not None and model.second_stage.names is not None:
        spelled = model.second_stage.names.spelled_out(model.classes.tolist())
        stage = replace(model.second_stage, names=spelled)
        model = replace(model, second_stage=stage)
    dtype = model.classes.dtype
    typed = np.array(classes[order].tolist(), dtype="U" if dtype.kind == "U" else dtype)
    new = in_columns(model, NewColumns(place, len(order)), typed)
    return noted(new, {"renamed": len(names)})


def in_columns(model: FittedModel, columns: NewColumns, classes: NDArray[Any]) -> FittedModel:
    """The same model with its labels in other columns; new labels know nothing yet."""
    counts = columns.taken(model.label_counts, 0)
    threshold: Any = model.threshold
    if isinstance(threshold, np.ndarray):
        threshold = columns.taken(threshold, 0.5)
    stage = model.second_stage
    return replace(
        model,
        forest=_forest(model.forest, columns),
        second_stage=None if stage is None else _stage(stage, columns, counts),
        labels=LabelNames.of(classes),
        label_counts=counts,
        threshold=threshold,
    )


def noted(model: FittedModel, what: Mapping[str, int]) -> FittedModel:
    """The model with an entry in its history."""
    history = with_entry(model.training, what)
    training = {**model.training, "labels": model.n_labels, "history": history}
    return replace(model, training=training)


def _forest(forest: Forest, columns: NewColumns) -> Forest:
    offsets, labels, counts = columns.within(
        forest.histogram_offsets, forest.histogram_labels, forest.histogram_counts
    )
    if not len(forest.weight_units):
        labels = labels.astype(np.int32)
    return replace(
        forest,
        n_labels=columns.n_labels,
        histogram_offsets=offsets,
        histogram_labels=labels,
        histogram_counts=counts,
    )


def _stage(stage: SecondStage, columns: NewColumns, counts: Numbers) -> SecondStage:
    return replace(
        stage,
        label_counts=counts,
        index=_index(stage.index, columns),
        sub_index=_index(stage.sub_index, columns),
        names=_names(stage.names, columns),
        ranker=_vectors(stage.ranker, columns),
        centroids=_vectors(stage.centroids, columns),
        tested=None if stage.tested is None else _tested(stage.tested, columns),
    )


def _tested(tested: NDArray[np.uint16], columns: NewColumns) -> NDArray[np.uint16]:
    return np.stack([columns.taken(counts, 0) for counts in tested.T], axis=1)


def _index(index: FeatureIndex | None, columns: NewColumns) -> FeatureIndex | None:
    if index is None:
        return None
    return FeatureIndex(*columns.within(index.offsets, index.labels, index.codes), index.units)


def _vectors(vectors: LabelVectors | None, columns: NewColumns) -> LabelVectors | None:
    if vectors is None:
        return None
    units = vectors.units
    if columns.only_adds:  # a new label's vector is empty
        lengths = columns.taken(np.diff(vectors.offsets), 0)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        units = columns.taken(units, 0) if len(units) else units
        return LabelVectors(offsets, vectors.features, vectors.weights, units)
    return vectors.taken(columns.source)


def _names(index: NameIndex | None, columns: NewColumns) -> NameIndex | None:
    if index is None:
        return None
    owners = columns.place[index.owners]
    order = np.argsort(owners, kind="stable")
    order = order[owners[order] >= 0]
    place = np.full(len(owners), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    renumbered = NewColumns(place, max(1, len(order)))
    offsets, names, _ = renumbered.within(index.offsets, index.names, index.names)
    spelled = Strings(index.text, index.text_offsets)
    text = Strings.pack([spelled[i] for i in order.tolist()]) if len(spelled) else spelled
    return NameIndex(
        offsets,
        names,
        index.idf,
        index.norms[order],
        owners[order].astype(np.int32),
        text.data,
        text.offsets,
        columns.taken(index.matched, 0),
        columns.taken(index.right, 0),
    )


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
