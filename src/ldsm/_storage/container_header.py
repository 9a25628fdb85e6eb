"""The header of a model file: entries that describe the model, and where its arrays are.

A safetensors file is eight bytes with the length of a JSON header, the header, and the arrays side
by side. This module makes and reads the header. Reading trusts nothing: invalid content raises a
ValueError whose text can follow the name of the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from .strings import is_unicode

FORMAT = "ldsm"
FORMAT_VERSION = 3  # of the files that are written; all versions up to it are read
# Names and vocabularies are arrays, so a header is a few kB. The limit keeps a forged length from
# using up memory; parsed JSON takes up to 25 times its text.
MAX_HEADER_BYTES = 1 << 20
CHECKSUM = "checksum"
CHECKSUM_BYTES = 32

METADATA = "__metadata__"  # where safetensors keeps a file's own entries: text by name
# Entries that are plain text; all others are JSON.
PLAIN = ("format", "format_version", "library_version", "kind")
# Types by safetensors' codes. Not BOOL: a byte of 2 would be neither true nor false.
DTYPES: dict[str, np.dtype[Any]] = {
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I8": np.dtype("i1"),
    "I16": np.dtype("<i2"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "U8": np.dtype("u1"),
    "U16": np.dtype("<u2"),
    "U32": np.dtype("<u4"),
    "U64": np.dtype("<u8"),
}
CODES = {dtype: code for code, dtype in DTYPES.items()}
LARGEST = 1 << 62  # no size or offset may reach it
MOST_DIGITS = 20  # of a JSON integer: longer ones take quadratic time to read


class UnknownVersion(ValueError):
    """The format version is not one that this library reads."""


class Tensor(NamedTuple):
    """The place of an array in the file; offsets count from the file's first byte."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    stop: int


# -- making -----------------------------------------------------------------------------------


def file_order(arrays: Mapping[str, NDArray[Any]]) -> list[str]:
    """Names in the order of the file: wide types first, so that every array is aligned."""
    return sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))


def make_prefix(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes before the arrays, which follow in `file_order`, and the checksum."""
    described: dict[str, Any] = {METADATA: _metadata(header)}
    at = 0
    for name in file_order(arrays):
        array = arrays[name]
        if array.dtype not in CODES or name in described or name == CHECKSUM:
            raise ValueError(f"The array {name!r} of type {array.dtype} cannot be stored.")
        described[name] = _described(array.dtype, array.shape, at)
        at += array.nbytes
    described[CHECKSUM] = _described(np.dtype("u1"), (CHECKSUM_BYTES,), at)
    text = json.dumps(described, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER_BYTES:
        raise ValueError(
            f"The header of a model file may have {MAX_HEADER_BYTES} bytes. Got {len(text)}."
        )
    return len(text).to_bytes(8, "little") + text


def _metadata(header: Mapping[str, Any]) -> dict[str, str]:
    out = {"format": FORMAT, "format_version": str(FORMAT_VERSION)}
    out |= {"library_version": __version__, "kind": header["kind"]}
    for name, value in header.items():
        if name in PLAIN:
            continue
        try:
            out[name] = json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"The header entry {name!r} cannot be stored: {error}.") from None
        if not is_unicode(out[name]):
            raise ValueError(
                f"The header entry {name!r} cannot be stored: it has a lone surrogate."
            )
    return out


def _described(dtype: np.dtype[Any], shape: tuple[int, ...], at: int) -> dict[str, Any]:
    size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    return {"dtype": CODES[dtype], "shape": list(shape), "data_offsets": [at, at + size]}


# -- reading ----------------------------------------------------------------------------------


def parse_prefix(prefix: bytes, size: int) -> tuple[dict[str, Any], list[Tensor]]:
    """The header's entries, and the arrays in file order, of a file of `size` bytes."""
    described = _parse_json(prefix[8:])
    return _read_metadata(described), _read_tensors(described, len(prefix), size)


def _parse_json(text: bytes | str) -> Any:
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=_unique, parse_int=_short, parse_constant=_constant
        )
        if "\\u" in text and not is_unicode(json.dumps(value, ensure_ascii=False)):
            raise ValueError("a text holds a lone surrogate")
        return value
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header is not valid JSON ({error})") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a name occurs twice")
    return out


def _short(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError("a number is too long")
    return int(digits)


def _constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _read_metadata(described: Any) -> dict[str, Any]:
    entries = described.pop(METADATA, None) if isinstance(described, dict) else None
    if not isinstance(entries, dict) or entries.get("format") != FORMAT:
        raise ValueError("it is not a model file of ldsm: its header does not say so")
    if not all(isinstance(value, str) for value in entries.values()):
        raise ValueError("its header holds something other than text")
    version, library = entries.get("format_version", ""), entries.get("library_version", "")
    if not (version.isascii() and version.isdigit() and len(version) < 10):
        raise ValueError(f"its header has no format version, but {version[:40]!r}")
    if int(version) > FORMAT_VERSION:
        raise UnknownVersion(
            f"it was written by a newer version of ldsm ({library[:40]!r}), in format {version}, "
            f"but this one reads formats up to {FORMAT_VERSION}; upgrade ldsm"
        )
    if int(version) < 1:
        raise UnknownVersion(f"its format version {version} does not exist")
    if "kind" not in entries:
        raise ValueError("its header does not say what kind of model it is")
    header = {
        name: value if name in PLAIN else _parse_json(value)
        for name, value in entries.items()
        if name != "format"
    }
    return header | {"format_version": int(version)}


def _read_tensors(described: dict[str, Any], start: int, size: int) -> list[Tensor]:
    """The arrays in file order: side by side, from the header's end to the file's."""
    tensors = sorted(
        (_read_tensor(name, entry, start) for name, entry in described.items()),
        key=lambda tensor: (tensor.start, tensor.stop),
    )
    at = start
    for tensor in tensors:
        if tensor.start != at:
            fault = "overlaps another" if tensor.start < at else "leaves a gap before it"
            raise ValueError(f"its array {tensor.name[:80]!r} {fault}")
        at = tensor.stop
    if at > size:
        raise ValueError(f"it was cut off: {size} bytes are left of {at}")
    if at < size:
        raise ValueError(f"it has {size - at} bytes more than its header says")
    last = tensors[-1] if tensors else None
    if last is None or last[:3] != (CHECKSUM, np.dtype("u1"), (CHECKSUM_BYTES,)):
        raise ValueError("it does not end with a checksum")
    return tensors


def _read_tensor(name: str, entry: Any, start: int) -> Tensor:
    what = f"its array {name[:80]!r}"
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{what} is not described as in a safetensors file")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or code not in DTYPES:
        raise ValueError(f"{what} has an unknown type")
    for numbers in (shape, offsets):
        if not isinstance(numbers, list) or not all(
            type(number) is int and 0 <= number < LARGEST for number in numbers
        ):
            raise ValueError(f"{what} has a size that is not a number")
    if len(offsets) != 2 or not 1 <= len(shape) <= 2:
        raise ValueError(f"{what} has a wrong number of dimensions")
    dtype = DTYPES[code]
    n_bytes = dtype.itemsize
    for length in shape:
        n_bytes *= length
    if offsets[1] - offsets[0] != n_bytes:
        taken = offsets[1] - offsets[0]
        raise ValueError(f"{what} takes {taken} bytes, but its shape needs {n_bytes}")
    first = start + offsets[0]
    if first % dtype.itemsize:
        raise ValueError(f"{what} does not begin at a multiple of its width")
    return Tensor(name, dtype, tuple(shape), first, first + n_bytes)
