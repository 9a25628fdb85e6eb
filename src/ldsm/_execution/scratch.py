"""Arrays that grow at their end, in memory or in a file of their own."""

from __future__ import annotations

import fcntl
import os
import tempfile
import weakref
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .memory import bytes_of, write_all

SCRATCH_PREFIX = ".ldsm-scratch-"


@dataclass(frozen=True)
class Scratch:
    """Where large arrays lie that exist for a while; the system may page them out."""

    folder: str
    shared: bool = False  # whether other processes open their files, which then have names


def lock_scratch(descriptor: int) -> None:
    """Show others that a named scratch file is in use: until it is closed, or the process ends."""
    with suppress(OSError):  # some file systems have no locks
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class GrowingArray:
    """An array of one dimension, made piece by piece, in memory unless there is a place for it."""

    def __init__(self, dtype: Any, scratch: Scratch | None = None) -> None:
        self.dtype = np.dtype(dtype)
        self._scratch = scratch
        self._pieces: list[NDArray[Any]] = []
        self._length = 0
        if scratch is None:
            return
        options: Any = {"dir": scratch.folder, "prefix": SCRATCH_PREFIX, "buffering": 0}
        if scratch.shared:
            options |= {"suffix": ".tmp", "delete": False}
            self._file = tempfile.NamedTemporaryFile(**options)  # noqa: SIM115 - as below
            lock_scratch(self._file.fileno())
            self._remove = weakref.finalize(self, _remove, self._file)
        else:
            self._file = tempfile.TemporaryFile(**options)  # noqa: SIM115 - open until `whole`

    def append(self, values: NDArray[Any]) -> None:
        """Add values at the end."""
        own = np.ascontiguousarray(values, dtype=self.dtype)
        if self._scratch is None:
            self._pieces.append(own)
            return
        try:  # by writing, so that a full disk raises an error instead of a crash
            write_all(self._file.fileno(), bytes_of(own), self._length * self.dtype.itemsize)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._scratch.folder) from error
        self._length += len(own)

    def whole(self) -> NDArray[Any]:
        """The array, which may be changed in place; it must not grow any more."""
        if self._scratch is None:
            pieces, self._pieces = self._pieces, []
            return np.concatenate([np.zeros(0, self.dtype), *pieces])
        if self._length == 0:
            self._file.close()
            return np.zeros(0, self.dtype)
        mapped = np.memmap(self._file, self.dtype, "r+", shape=(self._length,))
        if self._scratch.shared:  # the file exists for as long as it is mapped
            self._remove.detach()
            weakref.finalize(mapped.base, _remove, self._file)
        else:
            self._file.close()
        return np.asarray(mapped)


def _remove(file: Any) -> None:
    with suppress(FileNotFoundError):
        os.unlink(file.name)
    file.close()
