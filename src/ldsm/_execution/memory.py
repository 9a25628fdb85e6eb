"""How much memory growing trees may use, and where large arrays are kept."""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import resource
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._wording import size

# Default share of the free memory for growing trees; the rest is for finished trees, the second
# stage and other programs.
_TREES_SHARE = 0.25
_LEAST_TREE_BYTES = 64 << 20
_LARGE_BYTES = 4 << 20  # from this size on, NumPy asks for huge pages
# Files with the memory limit of a control group (versions 2 and 1).
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

# How many trees read a file at the moment, over all threads.
_readers: dict[mmap.mmap, int] = {}
_reading = threading.Lock()


def tree_memory(memory_limit: int | None, trees_at_once: int) -> int:
    """Bytes for each of the trees that grow at once on this machine. No result depends on it."""
    if memory_limit is not None:
        return max(1, memory_limit // trees_at_once)
    return max(_LEAST_TREE_BYTES, int(available_bytes() * _TREES_SHARE) // trees_at_once)


def available_bytes() -> int:
    """Memory that is free or that the system can free at once, as far as it is known."""
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        available = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):  # another system
        pass
    for path in _LIMITS:
        try:
            with open(path, encoding="ascii") as file:
                available = min(available, int(file.read()))
        except (OSError, ValueError):  # no limit
            continue
    return min(available, _addressable_bytes())


def _addressable_bytes() -> int:
    """What a limit on this process leaves, if there is one."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):  # another system
        used = 0
    return max(0, limit - used)


def check_columns(name: str, n_columns: int, bytes_each: int) -> None:
    """Raise a MemoryError if what is kept for each column of a matrix cannot be held.

    A sparse matrix can claim any number of columns, whatever it holds.
    """
    needed, available = n_columns * bytes_each, available_bytes()
    if needed > available:
        raise MemoryError(
            f"{name} has {n_columns:,} columns: training needs at least {size(needed)} for them, "
            f"and {size(available)} are available. Leave out the columns that no row uses."
        )


@contextmanager
def out_of_memory(what: str) -> Iterator[None]:
    """A MemoryError within says what could not be done: ``std::bad_alloc`` helps nobody."""
    try:
        yield
    except MemoryError as error:
        text = str(error).strip()
        if text[:1].isupper() and text.endswith("."):  # a sentence, so it has been said already
            raise
        raise MemoryError(f"Too little memory to {what}{text and f' ({text})'}.") from error


@contextmanager
def random_access(arrays: Iterable[NDArray[Any]]) -> Iterator[None]:
    """Turn off read-ahead for the files of memory-mapped arrays.

    Otherwise the system reads megabytes around each row that training picks, and evicts what other
    rows will need. The core itself requests the parts of X that it is about to read.
    """
    maps = [mapping for array in arrays if (mapping := _mapping(array)) is not None]
    with _reading:
        for file in maps:
            _readers[file] = _readers.get(file, 0) + 1
            file.madvise(mmap.MADV_RANDOM)
    try:
        yield
    finally:
        with _reading:
            for file in maps:
                _readers[file] -= 1
                if _readers[file] == 0:  # no other tree is reading
                    del _readers[file]
                    file.madvise(mmap.MADV_NORMAL)


def _mapping(array: Any) -> mmap.mmap | None:
    while array is not None and not isinstance(array, mmap.mmap):
        array = getattr(array, "base", None)
    return array if hasattr(mmap, "MADV_RANDOM") else None


def concatenated(parts: Sequence[NDArray[Any]], folder: str | None = None) -> NDArray[Any]:
    """Concatenated arrays, in memory or in a folder.

    In a folder they are kept in an unnamed file, which the system may page out.
    """
    shape = (sum(len(part) for part in parts), *parts[0].shape[1:])
    dtype = parts[0].dtype
    n_bytes = dtype.itemsize * math.prod(shape)
    if folder is None or n_bytes == 0:
        return np.concatenate(parts, out=empty_array(shape, dtype))
    with tempfile.TemporaryFile(dir=folder, prefix=".ldsm-scratch-", buffering=0) as file:
        at = 0
        for part in parts:  # by writing, so that a full disk raises an error instead of a crash
            try:
                write_all(file.fileno(), bytes_of(part), at)
            except OSError as error:
                raise OSError(error.errno, error.strerror, folder) from error
            at += part.nbytes
        return np.asarray(np.memmap(file, dtype=dtype, mode="r+", shape=shape))


def return_free_memory() -> None:
    """Give memory that is free, but lies between parts in use, back to the system.

    The C library keeps it otherwise. Where it has no such function, nothing happens.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def bytes_of(array: NDArray[Any]) -> memoryview:
    """The array's memory, or that of a contiguous copy."""
    flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memoryview(flat)


def write_all(descriptor: int, data: memoryview, at: int) -> None:
    """Write everything at a place of a file; the system may write less at once."""
    while len(data):
        done = os.pwrite(descriptor, data, at)
        data, at = data[done:], at + done


def empty_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Like ``np.empty``, but always in pages of the ordinary size.

    A virtual machine may have to request huge pages from its host one by one, which can take five
    times as long as filling small ones. Prediction is no faster with huge pages.
    """
    n_bytes = dtype.itemsize * math.prod(shape)
    if n_bytes < _LARGE_BYTES:
        return np.empty(shape, dtype)
    memory = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(memory, dtype).reshape(shape)
