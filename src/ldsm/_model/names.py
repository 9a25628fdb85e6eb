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

from .. import _core
from .._execution.threads import state_of
from .._storage.container import Arrays, take
from .._storage.strings import Strings

COLUMNS = "columns"  # labels that are column numbers need no names
# Kinds of labels by their number in the file; the text of a bool is 0 or 1.
LABEL_KINDS: tuple[type, ...] = (str, int, bool)
LABEL_DTYPES: dict[str, tuple[Any, type]] = {
    "str": (np.str_, str),
    "bool": (np.bool_, bool),
    **{f"{u}int{bits}": (f"{u}int{bits}", int) for u in ("", "u") for bits in (8, 16, 32, 64)},
}


def names_to_arrays(name: str, names: Sequence[str]) -> Arrays:
    """Texts as two arrays, ``<name>.text`` of UTF-8 bytes and ``<name>.offsets``."""
    packed = Strings.pack(names)
    return {f"{name}.text": packed.data, f"{name}.offsets": packed.offsets}


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
    return dtype, {"labels.kinds": kinds, **names_to_arrays("labels", texts)}


def plain(value: Any) -> Any:
    """A NumPy scalar as a Python value; anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def take_array(arrays: Arrays, name: str, dtype: type, length: int | None = None) -> NDArray[Any]:
    """Take a one-dimensional array out of the others."""
    array = take(arrays, name)
    if array.dtype != dtype or array.ndim != 1 or length not in (None, len(array)):
        raise ValueError(f"its array {name!r} has a wrong type or length")
    return array


def names_from_arrays(name: str, arrays: Arrays, *, verify: bool, unique: bool = True) -> Strings:
    """Take the texts that `names_to_arrays` stored out of the arrays; none is decoded yet.

    With `verify`, they are checked: UTF-8 and, if `unique`, no two of them alike.
    """
    names = _stored_names(name, arrays)
    if verify:
        _check(name, names, unique=unique)
    return names


def _stored_names(name: str, arrays: Arrays) -> Strings:
    text = take_array(arrays, f"{name}.text", np.uint8)
    offsets = take_array(arrays, f"{name}.offsets", np.int64)
    if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != len(text):
        raise ValueError(f"its array '{name}.offsets' does not go from 0 to {len(text)}")
    if np.any(offsets[1:] < offsets[:-1]):
        raise ValueError(f"its array '{name}.offsets' decreases")
    return Strings(text, offsets)


def _check(name: str, names: Strings, **rules: Any) -> None:
    wrong = _core.check_names(names.data, names.offsets, **rules)
    if wrong is not None:
        number, problem = wrong
        shown = names.data[slice(*names.offsets[number : number + 2])][:40].tobytes()
        text = shown.decode("utf-8", "backslashreplace")
        raise ValueError(f"its array '{name}.text' is damaged: entry {number}, {text!r}, {problem}")


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
    kinds = take_array(arrays, "labels.kinds", np.uint8, n_labels)
    texts = _stored_names("labels", arrays)
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
        _check("labels", texts, kinds=kinds, low=low, high=high)
    return LabelNames(n_labels, dtype, kinds, texts)


def _typed(classes: NDArray[Any], labels: Sequence[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind == "U":
        # One long label would widen all others: keep objects if the array would be far larger.
        longest = max(map(len, labels))
        if 4 * longest * len(labels) > (16 << 20) + 8 * sum(map(len, labels)):
            return classes
    return classes.astype(dtype)
