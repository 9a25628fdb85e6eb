"""The model file: a small header and named arrays.

The container is safetensors; its last array is a checksum over every byte before it. Nothing in the
file is code, and nothing in it is trusted: sizes are compared with the size of the file before
anything is allocated. ``docs/model_format.md`` has the reasons.

This module only knows arrays and headers; ``ldsm._model.saved_form`` knows what they mean.
"""

from __future__ import annotations

import bisect
import hashlib
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._execution.memory import bytes_of, empty_array, write_all
from .._execution.threads import in_pool
from .atomic import atomic_file
from .container_header import (
    CHECKSUM,
    CHECKSUM_BYTES,
    MAX_HEADER_BYTES,
    Tensor,
    UnknownVersion,
    file_order,
    make_prefix,
    parse_prefix,
)
from .locks import FileLock, locked
from .paths import PathLike

Arrays = dict[str, NDArray[Any]]

# Each chunk has its own checksum, so that several threads can share a file.
CHUNK_BYTES = 4 << 20
UNCACHED_BYTES = 4 * CHUNK_BYTES  # written between two syncs of an uncached file
_ALTERED = "its checksum does not match: it was damaged or altered"
CAN_FORGET = hasattr(os, "posix_fadvise")  # not every system can drop cached pages


class ModelFileError(ValueError):
    """A model file that cannot be loaded; the message names the file and the reason."""


class FormatVersionError(ModelFileError):
    """A model file of a format version that this library does not read."""


def refused(path: PathLike, reason: object) -> ModelFileError:
    """The error for a file, with its name and one sentence."""
    text = str(reason)[:500].rstrip(".")  # it may quote the file, and so be long
    kind = FormatVersionError if isinstance(reason, UnknownVersion) else ModelFileError
    return kind(f"The model file {os.fspath(path)!r} cannot be loaded: {text}.")


# -- writing ----------------------------------------------------------------------------------


def save(path: PathLike, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a model file while nobody else changes it: waits for its lock. See :func:`write`."""
    with locked(path) as lock:
        write(path, header, arrays, lock=lock)


def write(
    path: PathLike,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    cached: bool = True,
    lock: FileLock | None = None,
) -> str:
    """Write a model file as `atomic_file` does; returns its checksum, as :func:`checksum` does.

    The header's entry ``kind``, a str, names the kind of model; the others are anything that JSON
    can represent. The format, its version and the library's version are added. Arrays have one or
    two dimensions and the numeric types of safetensors; no bool. Unless `cached`, the system need
    not keep the file in its cache. A header or array that cannot be stored is a ValueError.
    """
    contents = {
        name: np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        for name, array in arrays.items()
    }
    prefix = make_prefix(header, contents)
    spans = [_Span(0, memoryview(prefix))]
    end = len(prefix)
    for name in file_order(contents):
        if contents[name].nbytes:
            spans.append(_Span(end, bytes_of(contents[name])))
        end += contents[name].nbytes
    with atomic_file(path, lock=lock) as file:
        # In one thread: more would only wait for the file and keep processors busy.
        digest = _digest(spans, end, _writer(file.fileno(), cached), threaded=False)
        write_all(file.fileno(), memoryview(digest), end)
    return digest.hex()


def _writer(descriptor: int, cached: bool) -> Callable[[int, memoryview], None]:
    """Writes one part after the other; unless cached, drops what is on disk from memory."""
    dropped = 0

    def move(at: int, data: memoryview) -> None:
        nonlocal dropped
        write_all(descriptor, data, at)
        end = at + len(data)
        if CAN_FORGET and not cached and end - dropped >= UNCACHED_BYTES:
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, end, os.POSIX_FADV_DONTNEED)
            dropped = end

    return move


# -- the checksum -----------------------------------------------------------------------------


class _Span(NamedTuple):
    """Memory that belongs to consecutive bytes of the file."""

    start: int
    data: memoryview


def _digest(
    spans: list[_Span], end: int, move: Callable[[int, memoryview], None], *, threaded: bool
) -> bytes:
    """The checksum of the file's first `end` bytes, which `move` reads or writes.

    It is the SHA-256 of the CRC-32 of each chunk.
    """
    starts = [span.start for span in spans]

    def parts(first: int, last: int) -> Iterator[tuple[int, memoryview]]:
        for i in range(bisect.bisect_right(starts, first) - 1, len(spans)):
            start, data = spans[i]
            if start >= last:
                return
            yield max(first, start), data[max(0, first - start) : last - start]

    def one(first: int) -> bytes:
        crc = 0
        for at, data in parts(first, min(first + CHUNK_BYTES, end)):
            move(at, data)
            crc = zlib.crc32(data, crc)
        return crc.to_bytes(4, "little")

    chunks = range(0, end, CHUNK_BYTES)
    crcs = in_pool(one, chunks) if threaded and len(chunks) > 1 else map(one, chunks)
    return hashlib.sha256(b"".join(crcs)).digest()


# -- reading ----------------------------------------------------------------------------------


def read(
    path: PathLike, verify: bool = True, *, cached: bool = True
) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a model file.

    The header is what :func:`write` got, with ``format_version`` (int) and ``library_version``; the
    arrays are read-only. With `verify`, everything is read into memory and the checksum compared.
    Otherwise the arrays are mapped, which opens a file of any size at once and reads only what is
    used; the file must not be changed in place meanwhile. A file that is damaged, newer than this
    library or not a model file raises a ModelFileError.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise refused(path, "it is not a regular file")
    with open(path, "rb", buffering=0) as file:
        try:
            size = os.fstat(file.fileno()).st_size
            prefix = _read_prefix(file.fileno(), size)
            header, tensors = parse_prefix(prefix, size)
            if verify:
                arrays = _load(file.fileno(), prefix, tensors, cached)
            else:
                arrays = _map(file, tensors)
        except ValueError as error:
            raise refused(path, error) from None
    return header, arrays


def take(arrays: Arrays, name: str) -> NDArray[Any]:
    """Take an array that a model must have out of the others; raises for `refused`."""
    if name not in arrays:
        raise ValueError(f"it lacks the array {name!r}")
    return arrays.pop(name)


def checksum(path: PathLike) -> str:
    """The checksum at the end of a file, in hexadecimal digits; it is not verified."""
    with open(path, "rb", buffering=0) as file:
        file.seek(-CHECKSUM_BYTES, os.SEEK_END)
        return file.read().hex()


def _read_prefix(descriptor: int, size: int) -> bytes:
    if size < 16:
        raise ValueError(f"it is not a model file, or was cut off: it has {size} bytes")
    start = os.pread(descriptor, 9, 0)
    length = int.from_bytes(start[:8], "little")
    if length > MAX_HEADER_BYTES or start[8:] != b"{":
        raise ValueError("it is not a model file: it does not begin like a safetensors file")
    if length > size - 8:
        raise ValueError(f"it was cut off within its header, after {size} bytes")
    return os.pread(descriptor, 8 + length, 0)


def _load(descriptor: int, prefix: bytes, tensors: list[Tensor], cached: bool) -> Arrays:
    """Read all arrays into memory, with the checksum computed on the way."""
    arrays = {tensor.name: empty_array(tensor.shape, tensor.dtype) for tensor in tensors}
    spans = [_Span(0, memoryview(prefix))]
    for tensor in tensors:
        if tensor.stop > tensor.start:
            spans.append(_Span(tensor.start, bytes_of(arrays[tensor.name])))
    stored = spans.pop()
    _read_all(descriptor, stored.data, stored.start)

    def fill(at: int, data: memoryview) -> None:
        if at >= len(prefix):  # the prefix has been read and parsed
            _read_all(descriptor, data, at)
            if CAN_FORGET and not cached:
                os.posix_fadvise(descriptor, at, len(data), os.POSIX_FADV_DONTNEED)

    if _digest(spans, stored.start, fill, threaded=True) != stored.data:
        raise ValueError(_ALTERED)
    del arrays[CHECKSUM]
    for array in arrays.values():
        array.flags.writeable = False
    return arrays


def _read_all(descriptor: int, data: memoryview, at: int) -> None:
    while len(data):
        done = os.preadv(descriptor, [data], at)
        if done == 0:
            raise ValueError("it was cut off while it was read")
        data, at = data[done:], at + done


def _map(file: BinaryIO, tensors: list[Tensor]) -> Arrays:
    whole = np.memmap(file, dtype=np.uint8, mode="r")
    return {
        tensor.name: whole[tensor.start : tensor.stop].view(tensor.dtype).reshape(tensor.shape)
        for tensor in tensors[:-1]
    }
