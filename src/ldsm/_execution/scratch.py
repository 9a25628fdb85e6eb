"""Arrays that grow at their end, in memory or in a file of their own."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .memory import bytes_of, write_all


class GrowingArray:
    """An array of one dimension, made piece by piece.

    With a `folder` it lies in an unnamed file there, which the system may page out.
    """

    def __init__(self, dtype: Any, folder: str | None = None) -> None:
        self.dtype = np.dtype(dtype)
        self._folder = folder
        self._pieces: list[NDArray[Any]] = []
        self._length = 0
        if folder is not None:
            options: Any = {"dir": folder, "prefix": ".ldsm-scratch-", "buffering": 0}
            self._file = tempfile.TemporaryFile(**options)  # noqa: SIM115 - open until `whole`

    def append(self, values: NDArray[Any]) -> None:
        """Add values at the end."""
        own = np.ascontiguousarray(values, dtype=self.dtype)
        if self._folder is None:
            self._pieces.append(own)
            return
        try:  # by writing, so that a full disk raises an error instead of a crash
            write_all(self._file.fileno(), bytes_of(own), self._length * self.dtype.itemsize)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._folder) from error
        self._length += len(own)

    def whole(self) -> NDArray[Any]:
        """The array, which may be changed in place; it must not grow any more."""
        if self._folder is None:
            pieces, self._pieces = self._pieces, []
            return np.concatenate([np.zeros(0, self.dtype), *pieces])
        with self._file:
            if self._length == 0:
                return np.zeros(0, self.dtype)
            mapped = np.memmap(self._file, self.dtype, "r+", shape=(self._length,))
        return np.asarray(mapped)
