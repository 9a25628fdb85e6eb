"""Convert names and labels to arrays of a model file, and back.

Invalid content raises a ValueError; ``load`` adds the name of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
LONGEST_INT = 4000  # digits; Python's limit is 4300


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


def names_from_arrays(name: str, arrays: Arrays) -> list[str]:
    """Take the texts that `names_to_arrays` stored out of the arrays."""
    text = take_array(arrays, f"{name}.text", np.uint8)
    offsets = take_array(arrays, f"{name}.offsets", np.int64)
    if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != len(text):
        raise ValueError(f"its array '{name}.offsets' does not go from 0 to {len(text)}")
    if np.any(offsets[1:] < offsets[:-1]):
        raise ValueError(f"its array '{name}.offsets' decreases")
    data, places = text.tobytes(), pairwise(offsets.tolist())
    if data.isascii():  # then decode once
        decoded = data.decode("ascii")
        return [decoded[start:stop] for start, stop in places]
    try:
        return [data[start:stop].decode("utf-8") for start, stop in places]
    except UnicodeDecodeError:
        raise ValueError(f"its array '{name}.text' is not UTF-8") from None


def labels_from_arrays(dtype: str, n_labels: int, arrays: Arrays, verify: bool) -> NDArray[Any]:
    if dtype == COLUMNS:
        return np.arange(n_labels)
    kinds = take_array(arrays, "labels.kinds", np.uint8, n_labels)
    texts = names_from_arrays("labels", arrays)
    if len(texts) != n_labels or kinds.max() >= len(LABEL_KINDS):
        raise ValueError("its labels do not fit their number or kinds")
    labels = [
        text if kind == 0 else _int_or_bool(text, LABEL_KINDS[kind])
        for text, kind in zip(texts, kinds.tolist(), strict=True)
    ]
    classes = np.empty(n_labels, dtype=object)
    classes[:] = labels
    if dtype != "object":
        if dtype not in LABEL_DTYPES:
            raise ValueError(f"its header names an unknown type of labels, {dtype[:40]!r}")
        numpy_type, kind = LABEL_DTYPES[dtype]
        if not np.all(kinds == LABEL_KINDS.index(kind)):
            raise ValueError(f"its labels are not all of the type {dtype}")
        classes = _typed(classes, labels, np.dtype(numpy_type))
    if verify and len(set(classes.tolist())) != n_labels:
        raise ValueError("some label occurs twice in it")
    return classes


def _typed(classes: NDArray[Any], labels: Sequence[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind == "U":
        # One long label would widen all others: keep objects if the array would be far larger.
        longest = max(map(len, labels))
        if 4 * longest * len(labels) > (16 << 20) + 8 * sum(map(len, labels)):
            return classes
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        if min(labels) < info.min or max(labels) > info.max:
            raise ValueError(f"its labels do not fit the type {dtype}")
    return classes.astype(dtype)


def _int_or_bool(text: str, kind: type) -> Any:
    digits = len(text) <= LONGEST_INT and text.isascii() and text.removeprefix("-").isdigit()
    number = int(text) if digits else None
    if number is None or str(number) != text or (kind is bool and number not in (0, 1)):
        raise ValueError(f"its label {text[:40]!r} is not a valid {kind.__name__}")
    return kind(number)
