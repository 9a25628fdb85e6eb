"""Field tables: what each saved object consists of.

The table of an object makes its writer, its reader, their checks and its part of the fingerprint.
An `Entry` is a JSON value in the header of a file, an `Array` an array, and `Names` a pair of them
that hold strings. Files with anything else are refused.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .container import Arrays, take
from .strings import Strings

REQUIRED: Any = object()
Values = Mapping[str, Any]
Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Kind:
    """What an entry may hold, in words and as a check, and how it is restored from JSON."""

    words: str
    allows: Callable[[Any], bool]
    restored: Callable[[Any], Any] = lambda value: value


def whole(low: int, high: int) -> Kind:
    return Kind(
        f"an int from {low} to {high}", lambda value: type(value) is int and low <= value <= high
    )


def real(low: float = -sys.float_info.max, high: float = sys.float_info.max) -> Kind:
    """A finite number; JSON may write it as an int."""
    return Kind(
        f"a number from {low:g} to {high:g}", lambda value: _is_number(value, low, high), float
    )


def numbers(low: float, high: float) -> Kind:
    return Kind(
        f"a list of numbers from {low:g} to {high:g}",
        lambda value: (
            type(value) is list and all(_is_number(number, low, high) for number in value)
        ),
        lambda value: tuple(map(float, value)),
    )


def one_of(*values: str | None) -> Kind:
    return Kind(" or ".join(map(repr, values)), lambda value: _is_one(value, values))


def optional(kind: Kind) -> Kind:
    return Kind(
        f"{kind.words} or None",
        lambda value: value is None or kind.allows(value),
        lambda value: None if value is None else kind.restored(value),
    )


FLAG = Kind("true or false", lambda value: type(value) is bool)
TEXT = Kind("a text", lambda value: type(value) is str)
MAPPING = Kind("a set of entries", lambda value: type(value) is dict)


def _is_number(value: Any, low: float, high: float) -> bool:
    return type(value) in (int, float) and low <= value <= high  # false for NaN


def _is_one(value: Any, values: Sequence[Any]) -> bool:
    return any(type(value) is type(one) and value == one for one in values)


@dataclass(frozen=True)
class Entry:
    """A JSON value of the header.

    `default` is what files without it mean; where it depends on entries before, a function of
    these. A value that equals it is not `written`, unless it always is, and never hashed: so a new
    field changes neither the files nor the fingerprints of models that do not need it.
    """

    name: str
    kind: Kind
    default: Any = REQUIRED
    written: bool = False
    since: int = 1  # version of the format
    hashed: bool = True  # whether it decides predictions

    def default_for(self, values: Values) -> Any:
        return self.default(values) if callable(self.default) else self.default

    def is_default(self, values: Values) -> bool:
        return self.default is not REQUIRED and values[self.name] == self.default_for(values)


@dataclass(frozen=True)
class Array:
    """An array of one of some types.

    `shape` names sizes, such as "labels" or "labels+1". A size that is not given is that of the
    first array that has it. Numbers outside `bounds` are refused, also NaN. Without a `default`,
    files must have the array; a default of None stands for no array.
    """

    name: str
    types: tuple[type, ...]
    shape: tuple[int | str, ...]
    bounds: tuple[float, float] | None = None
    default: Any = REQUIRED
    since: int = 1
    hashed: bool = True
    halves: bool = False  # whether format version 1 could round floats to 16 bits

    def is_default(self, array: NDArray[Any] | None) -> bool:
        if self.default is REQUIRED:
            return False
        return array is None or (self.default is not None and np.array_equal(array, self.default))

    def taken(self, place: str, arrays: Arrays, sizes: dict[str, int], verify: bool) -> Any:
        name = f"{place}{self.name}"
        if self.default is not REQUIRED and name not in arrays:
            array = self.default
            if array is None:
                return None
        else:
            array = take(arrays, name)
        if array.dtype == np.float16 and self.halves:
            array = array.astype(np.float32)
            array.flags.writeable = False
        self.check(f"its array {name}", array, sizes)
        if verify and self.bounds is not None:
            low, high = self.bounds
            if not ((array >= low) & (array <= high)).all():
                raise ValueError(
                    f"its array {name} has an entry that is not a number from {low:g} to {high:g}"
                )
        return array

    def check(self, name: str, array: NDArray[Any], sizes: dict[str, int]) -> None:
        """Raise a ValueError for a wrong type or shape."""
        if array.dtype not in self.types:
            allowed = " or ".join(str(np.dtype(kind)) for kind in self.types)
            raise ValueError(f"{name} must be of type {allowed}, but is {array.dtype}")
        if array.shape != (shape := self._expected(array.shape, sizes)):
            raise ValueError(f"{name} must have the shape {shape}, but has {array.shape}")

    def _expected(self, shape: tuple[int, ...], sizes: dict[str, int]) -> tuple[int, ...]:
        """The shape that an array must have; a size that is not known yet is taken from `shape`."""
        if len(shape) != len(self.shape):
            return (-1,) * len(self.shape)
        expected = []
        for length, size in zip(shape, self.shape, strict=True):
            if isinstance(size, int):
                expected.append(size)
                continue
            name, _, more = size.partition("+")
            expected.append(sizes.setdefault(name, length - int(more or 0)) + int(more or 0))
        return tuple(expected)

    def saved(self, place: str, value: NDArray[Any]) -> Arrays:
        return {f"{place}{self.name}": value}


@dataclass(frozen=True)
class Names:
    """Strings, in the arrays ``<name>.text`` (UTF-8) and ``<name>.offsets``.

    Their number is the size of that name.
    """

    name: str
    unique: bool = True
    default: Any = REQUIRED
    since: int = 1

    def is_default(self, value: Sequence[str]) -> bool:
        return self.default not in (None, REQUIRED) and len(value) == 0

    def taken(self, place: str, arrays: Arrays, sizes: dict[str, int], verify: bool) -> Any:
        name = f"{place}{self.name}"
        if self.default is not REQUIRED and f"{name}.text" not in arrays:
            return self.default
        names = stored_names(name, arrays)
        if sizes.setdefault(self.name, len(names)) != len(names):
            raise ValueError(f"its array '{name}.offsets' has a wrong length")
        if verify:
            check_names(name, names, unique=self.unique)
        return names

    def saved(self, place: str, value: Sequence[str]) -> Arrays:
        packed = Strings.pack(value)
        name = f"{place}{self.name}"
        return {f"{name}.text": packed.data, f"{name}.offsets": packed.offsets}


Field = Entry | Array | Names


class Table:
    """The fields of an object; `name` is for messages: "blend"."""

    def __init__(self, name: str, *fields: Field, since: int = 1, is_open: bool = False) -> None:
        self.name, self.is_open = name, is_open  # open: users may add entries of their own
        self.entries = tuple(field for field in fields if isinstance(field, Entry))
        self.stored = tuple(field for field in fields if not isinstance(field, Entry))
        self.arrays = tuple(field for field in fields if isinstance(field, Array))
        for field in fields:
            if field.since > since and field.default is REQUIRED:
                raise TypeError(f"{field.name!r} needs a default: older files of {name} lack it.")

    def entry(self, name: str) -> Entry:
        return next(entry for entry in self.entries if entry.name == name)

    # -- the header ---------------------------------------------------------------------------

    def written(self, values: Values) -> dict[str, Any]:
        """The entries of a header."""
        return {
            entry.name: _as_json(values[entry.name])
            for entry in self.entries
            if entry.written or not entry.is_default(values)
        }

    def read(self, stored: Any) -> dict[str, Any]:
        """The values of all entries; a ValueError for others, and for those that are wrong."""
        if type(stored) is not dict:
            raise ValueError(f"its header has no proper entry {self.name!r}")
        unknown = stored.keys() - {entry.name for entry in self.entries}
        if unknown and not self.is_open:
            raise ValueError(
                f"its {self.name} has an entry that this version does not know, "
                f"{min(unknown)[:80]!r}"
            )
        values: dict[str, Any] = {}
        for entry in self.entries:
            if entry.name not in stored and entry.default is not REQUIRED:
                values[entry.name] = entry.default_for(values)
                continue
            value = stored.get(entry.name)
            if entry.name not in stored or not entry.kind.allows(value):
                found = f"not {value!r:.80}" if entry.name in stored else "but is missing"
                raise ValueError(
                    f"its {self.name} has no proper entry {entry.name!r}: it must be "
                    f"{entry.kind.words}, {found}"
                )
            values[entry.name] = entry.kind.restored(value)
        return values

    # -- arrays -------------------------------------------------------------------------------

    def saved(self, values: Values, place: str = "") -> Arrays:
        """The arrays of a file, whose names begin with `place`."""
        arrays: Arrays = {}
        for field in self.stored:
            value = values[field.name]
            if value is not None and not (isinstance(field, Names) and field.is_default(value)):
                arrays |= field.saved(place, value)
        return arrays

    def taken(
        self,
        arrays: Arrays,
        place: str = "",
        *,
        verify: bool,
        sizes: Sizes | None = None,
        without: Collection[str] = (),
    ) -> dict[str, Any]:
        """The values of all arrays but those in `without`, removed from `arrays`.

        Unless `verify`, only what can be checked without reading them is.
        """
        known = dict(sizes or {})
        return {
            field.name: None if field.name in without else field.taken(place, arrays, known, verify)
            for field in self.stored
        }

    # -- the fingerprint ----------------------------------------------------------------------

    def deciding(self, values: Values) -> dict[str, Any]:
        """The entries that enter the fingerprint."""
        return {
            entry.name: _as_json(values[entry.name])
            for entry in self.entries
            if entry.hashed and not entry.is_default(values)
        }

    def hashed(self, values: Values, place: str = "") -> Iterator[str | NDArray[Any]]:
        """The arrays that enter the fingerprint, each behind its name and shape."""
        for field in self.stored:
            value = values[field.name]
            if isinstance(field, Array) and field.hashed and not field.is_default(value):
                yield f"{place}{field.name}{value.shape}"
                yield value


def fingerprint(*parts: str | NDArray[Any]) -> str:
    """The hash of texts and arrays, one after the other."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            digest.update(part.encode())
        else:
            digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    return digest.hexdigest()


def _as_json(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    return list(value) if isinstance(value, tuple) else value


def stored_names(name: str, arrays: Arrays) -> Strings:
    """Take the texts of `Names` out of the arrays; none is decoded or checked yet."""
    text = Array(f"{name}.text", (np.uint8,), ("bytes",)).taken("", arrays, {}, False)
    offsets = Array(f"{name}.offsets", (np.int64,), ("offsets",)).taken("", arrays, {}, False)
    if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != len(text):
        raise ValueError(f"its array '{name}.offsets' does not go from 0 to {len(text)}")
    if np.any(offsets[1:] < offsets[:-1]):
        raise ValueError(f"its array '{name}.offsets' decreases")
    return Strings(text, offsets)


def check_names(name: str, names: Strings, **rules: Any) -> None:
    """Raise a ValueError unless texts are UTF-8 and obey the rules of `_core.check_names`."""
    wrong = _core.check_names(names.data, names.offsets, **rules)
    if wrong is not None:
        number, problem = wrong
        shown = names.data[slice(*names.offsets[number : number + 2])][:40].tobytes()
        text = shown.decode("utf-8", "backslashreplace")
        raise ValueError(f"its array '{name}.text' is damaged: entry {number}, {text!r}, {problem}")
