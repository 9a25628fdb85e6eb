"""Arrays on disk: plain ``.npy`` files, written piece by piece, mapped and checked."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .paths import named_in_errors

_HEADER_BYTES = 128
_END_BYTES = 1 << 16  # checked at either end of a large array
_SMALL_BYTES = 1 << 20  # arrays up to this size are always checked whole


class ArrayFile:
    """A ``.npy`` file that grows; its header is written last, when the length is known.

    `mode` is that of the file it replaces, if there is one.
    """

    def __init__(self, path: str, dtype: np.dtype[Any], mode: int | None = None) -> None:
        self.path = path
        self.dtype = dtype
        self.length = 0
        self.checksum = 0
        self.first = b""
        self.last = b""
        self.file = open(path, "xb")  # noqa: SIM115 - open until `finish`
        if mode is not None:
            os.fchmod(self.file.fileno(), mode)
        with named_in_errors(path):
            self.file.write(bytes(_HEADER_BYTES))

    def append(self, values: NDArray[Any]) -> None:
        """Write more values at the end."""
        data = np.ascontiguousarray(values, dtype=self.dtype).view(np.uint8).data
        with named_in_errors(self.path):
            self.file.write(data)
        self.length += len(values)
        self.checksum = zlib.crc32(data, self.checksum)
        self.first += bytes(data[: _END_BYTES - len(self.first)])
        self.last = (self.last + bytes(data[-_END_BYTES:]))[-_END_BYTES:]

    def finish(self) -> dict[str, Any]:
        """Close the file; returns the description that `map_array` checks."""
        with named_in_errors(self.path), self.file:
            self.file.seek(0)
            self.file.write(_npy_header(self.dtype, self.length))
            self.file.flush()
            os.fsync(self.file.fileno())
        return {
            "file": os.path.basename(self.path),
            "length": self.length,
            "crc32": self.checksum,
            "crc32_ends": zlib.crc32(self.last, zlib.crc32(self.first)),
        }

    def discard(self) -> None:
        """Delete the file; its last bytes may not fit on the disk."""
        with suppress(OSError):
            self.file.close()
        os.unlink(self.path)


def map_array(
    folder: str, dtype: np.dtype[Any], described: dict[str, Any], *, whole: bool
) -> NDArray[Any]:
    """Map the array that `ArrayFile.finish` described; raises a ValueError if the file differs."""
    name, length = described["file"], described["length"]
    path = os.path.join(folder, name)
    expected = _HEADER_BYTES + length * dtype.itemsize
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        raise ValueError(f"{name} is missing") from None
    if size != expected:
        raise ValueError(f"{name} has {size} bytes instead of {expected}")
    if header != _npy_header(dtype, length):
        raise ValueError(f"{name} is not an array of {length} {dtype.name}")
    if length == 0:
        return np.empty(0, dtype=dtype)
    # As the base class, so that results computed from it are not memmaps.
    array = np.memmap(path, dtype, "r", _HEADER_BYTES, (length,)).view(np.ndarray)
    data = array.view(np.uint8).data
    whole = whole or len(data) <= _SMALL_BYTES
    ends = zlib.crc32(data[-_END_BYTES:], zlib.crc32(data[:_END_BYTES]))
    if ends != described["crc32_ends"] or (whole and zlib.crc32(data) != described["crc32"]):
        raise ValueError(f"the content of {name} does not match its checksum")
    return array


def _npy_header(dtype: np.dtype[Any], length: int) -> bytes:
    """NumPy's format 1.0, padded to a fixed size."""
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({length},), }}"
    body = text.ljust(_HEADER_BYTES - 11).encode("ascii") + b"\n"
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body
