"""Convert names and labels to arrays of a model file, and back.

Invalid content raises a ValueError; ``load`` adds the name of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._execution.threads import state_of
from .._storage.container import Arrays
from .._storage.fields import Array, Names, check_names, stored_names
from .._storage.strings import Strings

COLUMNS = "columns"  # labels that are column numbers need no names
# Kinds of labels by their number in the file; the text of a bool is 0 or 1.
LABEL_KINDS: tuple[type, ...] = (str, int, bool)
KINDS = Array("labels.kinds", (np.uint8,), ("labels",))
LABEL_DTYPES: dict[str, tuple[Any, type]] = {
    "str": (np.str_, str),
    "bool": (np.bool_, bool),
    **{f"{u}int{bits}": (f"{u}int{bits}", int) for u in ("", "u") for bits in (8, 16, 32, 64)},
}


def labels_to_arrays(classes: NDArray[Any]) -> tuple[str, Arrays]:
    """The labels for a file: the type of their array, and their kinds and texts."""
    if classes.dtype == np.int64 and np.array_equal(classes, np.arange(len(classes))):
        return COLUMNS, {}
    kind = classes.dtype.kind
    dtype = {"O": "object", "U": "str"}.get(kind, classes.dtype.name)
    labels = classes.tolist()
    kinds = np.zeros(len(labels), dtype=np.uint8)
    texts = []
    for i, label in enumerate(labels):
        value = plain(label)
        if type(value) not in LABEL_KINDS:
            raise ValueError(f"Labels must be str, int or bool to be saved. Got {label!r}.")
        kinds[i] = LABEL_KINDS.index(type(value))
        texts.append(value if isinstance(value, str) else str(int(value)))
    if len(set(labels)) != len(labels):
        raise ValueError("Labels must be unique to be saved. Some label occurs twice.")
    return dtype, {"labels.kinds": kinds, **Names("labels").saved("", texts)}


def plain(value: Any) -> Any:
    """A NumPy scalar as a Python value; anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True, eq=False)
class LabelNames:
    """The labels in column order. Those of a file are decoded when they are first asked for."""

    n_labels: int
    dtype: str = COLUMNS  # of their array, as in a file
    kinds: NDArray[np.uint8] | None = None
    texts: Strings | None = None

    @classmethod
    def of(cls, classes: NDArray[Any]) -> LabelNames:
        """Labels that are an array already."""
        names = cls(len(classes))
        vars(names)["array"] = classes
        return names

    def __len__(self) -> int:
        return self.n_labels

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self)

    @cached_property
    def array(self) -> NDArray[Any]:
        if self.texts is None or self.kinds is None:
            return np.arange(self.n_labels)
        labels: list[Any] = [
            text if kind == 0 else LABEL_KINDS[kind](int(text))
            for text, kind in zip(self.texts, self.kinds.tolist(), strict=True)
        ]
        classes = np.empty(self.n_labels, dtype=object)
        classes[:] = labels
        if self.dtype == "object":
            return classes
        return _typed(classes, labels, np.dtype(LABEL_DTYPES[self.dtype][0]))


def labels_from_arrays(dtype: str, n_labels: int, arrays: Arrays, verify: bool) -> LabelNames:
    if dtype == COLUMNS:
        return LabelNames(n_labels)
    kinds = KINDS.taken("", arrays, {"labels": n_labels}, verify)
    texts = stored_names("labels", arrays)
    if len(texts) != n_labels or kinds.max() >= len(LABEL_KINDS):
        raise ValueError("its labels do not fit their number or kinds")
    low = high = ""
    if dtype != "object":
        if dtype not in LABEL_DTYPES:
            raise ValueError(f"its header names an unknown type of labels, {dtype[:40]!r}")
        numpy_type, kind = LABEL_DTYPES[dtype]
        if not np.all(kinds == LABEL_KINDS.index(kind)):
            raise ValueError(f"its labels are not all of the type {dtype}")
        if kind is int:
            low, high = str(np.iinfo(numpy_type).min), str(np.iinfo(numpy_type).max)
    if verify:
        check_names("labels", texts, kinds=kinds, low=low, high=high)
    return LabelNames(n_labels, dtype, kinds, texts)


def _typed(classes: NDArray[Any], labels: Sequence[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind == "U":
        # One long label would widen all others: keep objects if the array would be far larger.
        longest = max(map(len, labels))
        if 4 * longest * len(labels) > (16 << 20) + 8 * sum(map(len, labels)):
            return classes
    return classes.astype(dtype)
