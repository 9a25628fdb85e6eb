"""Send an object to other processes whose large arrays lie in files that all of them map.

Only a small message travels: the object pickled, with the place of each large array. An array that
is mapped from a file stays where it is; the others are written to one file of a shared folder. The
files hold numbers only, nothing that is unpickled.
"""

from __future__ import annotations

import io
import os
import pickle
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..._execution.memory import bytes_of, write_all
from ..._execution.scratch import lock_scratch
from ..atomic import SCRATCH_MARK, temporary_path

LARGE_BYTES = 1 << 14  # smaller arrays travel with the message
_ALIGNED = 64  # bytes
_END_BYTES = 1 << 12  # at either end of an array, to recognise it by
_opening = threading.Lock()

Object = TypeVar("Object")


class Place(NamedTuple):
    """Where the bytes of an array lie."""

    path: str
    offset: int
    dtype: str
    shape: tuple[int, ...]
    ends: int  # checksum of its first and last bytes

    def mapped(self) -> NDArray[Any]:
        """The array; an error if the file is missing or another one."""
        try:
            array = np.memmap(self.path, self.dtype, "r", self.offset, self.shape)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"The file {self.path!r} is missing on this machine: its folder must be shared."
            ) from None
        except ValueError:  # it is shorter
            raise self._differs() from None
        if _ends(array) != self.ends:
            raise self._differs()
        return array.view(np.ndarray)

    def _differs(self) -> ValueError:
        return ValueError(f"The file {self.path!r} is different on this machine.")


@dataclass(frozen=True)
class Sent(Generic[Object]):
    """An object as it travels."""

    message: bytes

    def opened(self, *, once: bool = False) -> Object:
        """The object, put together once per process; with `once`, nobody will ask for it again."""
        if once:
            its: Object = pickle.loads(self.message)
            return its
        with _opening:  # threads must not each do it
            opened: Object = _opened(self.message)
            return opened


@lru_cache(maxsize=1)  # a process works on one task at a time
def _opened(message: bytes) -> Any:
    return pickle.loads(message)


@contextmanager
def sent(thing: Object, folder: str) -> Iterator[Sent[Object]]:
    """The object as other processes can open it, while the block runs."""
    message = io.BytesIO()
    with _Shelf(temporary_path(folder, SCRATCH_MARK)) as shelf:
        _Pickler(message, shelf).dump(thing)
        yield Sent(message.getvalue())


class _Shelf:
    """The file for arrays that lie in no other; created with the first of them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = 0
        self.descriptor: int | None = None

    def __enter__(self) -> _Shelf:
        return self

    def __exit__(self, *error: object) -> None:
        if self.descriptor is not None:
            with suppress(FileNotFoundError):
                os.unlink(self.path)
            os.close(self.descriptor)

    def put(self, array: NDArray[Any]) -> Place:
        try:
            if self.descriptor is None:
                self.descriptor = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
                lock_scratch(self.descriptor)
            write_all(self.descriptor, bytes_of(array), self.size)
        except OSError as error:
            raise OSError(error.errno, error.strerror, os.path.dirname(self.path)) from error
        place = Place(self.path, self.size, array.dtype.str, array.shape, _ends(array))
        self.size += -(-array.nbytes // _ALIGNED) * _ALIGNED
        return place


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, shelf: _Shelf) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.shelf = shelf

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, np.ndarray) or obj.nbytes < LARGE_BYTES or obj.dtype.hasobject:
            return NotImplemented
        array = np.ascontiguousarray(obj)
        return Place.mapped, (_place(array) or self.shelf.put(array),)


def _place(array: NDArray[Any]) -> Place | None:
    """Where an array is mapped from; None if it is not, or from a file without a name."""
    base: Any = array
    while base is not None and not (
        isinstance(base, np.memmap) and not isinstance(base.base, np.ndarray)
    ):
        base = getattr(base, "base", None)
    if base is None or base.filename is None or base.mode not in ("r", "r+"):
        return None
    start = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    path = os.path.abspath(base.filename)
    return Place(path, base.offset + start, array.dtype.str, array.shape, _ends(array))


def _ends(array: NDArray[Any]) -> int:
    data = bytes_of(array)
    return zlib.crc32(data[-_END_BYTES:], zlib.crc32(data[:_END_BYTES]))
