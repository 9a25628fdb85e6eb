"""Memory limits for growing trees, and storage for large arrays."""

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
_LARGE_BYTES = 4 << 20  # NumPy requests huge pages from this size
# Files with the memory limit of a control group (versions 2 and 1).
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

# Number of trees that are reading a file, over all threads.
_readers: dict[mmap.mmap, int] = {}
_reading = threading.Lock()


def tree_memory(memory_limit: int | None, trees_at_once: int) -> int:
    """Bytes for each tree that grows at once on this machine. No result depends on it."""
    if memory_limit is not None:
        return max(1, memory_limit // trees_at_once)
    return max(_LEAST_TREE_BYTES, int(available_bytes() * _TREES_SHARE) // trees_at_once)


def available_bytes() -> int:
    """Memory that is free or that the system can free at once, if known."""
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
    """Memory left under this process's limit, if there is one."""
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
    """Raise a MemoryError if the memory needed per column of a matrix is not available.

    A sparse matrix can claim any number of columns, however few it uses.
    """
    needed, available = n_columns * bytes_each, available_bytes()
    if needed > available:
        raise MemoryError(
            f"{name} has {n_columns:,} columns: training needs at least {size(needed)} for them, "
            f"but only {size(available)} are available. Remove columns that no row uses."
        )


@contextmanager
def out_of_memory(what: str) -> Iterator[None]:
    """Name the failed step in a MemoryError: ``std::bad_alloc`` alone does not help."""
    try:
        yield
    except MemoryError as error:
        text = str(error).strip()
        if text[:1].isupper() and text.endswith("."):  # already a full sentence
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

    In a folder they are kept in an unnamed file, which the system may page out. Narrow numbers
    become as wide as the widest.
    """
    shape = (sum(len(part) for part in parts), *parts[0].shape[1:])
    dtype = np.result_type(*parts)
    n_bytes = dtype.itemsize * math.prod(shape)
    if folder is None or n_bytes == 0:
        return np.concatenate(parts, out=empty_array(shape, dtype))
    with tempfile.TemporaryFile(dir=folder, prefix=".ldsm-scratch-", buffering=0) as file:
        at = 0
        for part in parts:  # by writing, so that a full disk raises an error instead of a crash
            try:
                write_all(file.fileno(), bytes_of(part.astype(dtype, copy=False)), at)
            except OSError as error:
                raise OSError(error.errno, error.strerror, folder) from error
            at += dtype.itemsize * part.size
        return np.asarray(np.memmap(file, dtype=dtype, mode="r+", shape=shape))


def empty_beside(other: NDArray[Any], length: int, dtype: Any) -> NDArray[Any]:
    """Like ``np.empty``, but in an unnamed file if the other array lies in a file.

    What is made of rows that need not fit in memory need not fit, either.
    """
    kind = np.dtype(dtype)
    n_bytes = kind.itemsize * length
    if n_bytes < _LARGE_BYTES or not is_mapped(other):
        return empty_array((length,), kind)
    folder = tempfile.gettempdir()
    with tempfile.TemporaryFile(dir=folder, prefix=".ldsm-scratch-", buffering=0) as file:
        try:
            os.posix_fallocate(file.fileno(), 0, n_bytes)  # or a full disk would crash the process
        except OSError as error:
            raise OSError(error.errno, error.strerror, folder) from error
        return np.asarray(np.memmap(file, dtype=kind, mode="r+", shape=(length,)))


def is_mapped(array: Any) -> bool:
    """Whether an array lies in a file."""
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


def return_free_memory() -> None:
    """Return free memory between allocations to the system.

    The C library keeps it otherwise. Does nothing if the C library has no such function.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def bytes_of(array: NDArray[Any]) -> memoryview:
    """The array's memory, or that of a contiguous copy."""
    flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return memoryview(flat)


def write_all(descriptor: int, data: memoryview, at: int) -> None:
    """Write everything at an offset of a file; one system call may write less."""
    while len(data):
        done = os.pwrite(descriptor, data, at)
        data, at = data[done:], at + done


def empty_array(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Like ``np.empty``, but never in huge pages.

    A virtual machine may have to request huge pages from its host one by one, which can take five
    times as long as filling small ones. Prediction is no faster with huge pages.
    """
    n_bytes = dtype.itemsize * math.prod(shape)
    if n_bytes < _LARGE_BYTES:
        return np.empty(shape, dtype)
    memory = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(memory, dtype).reshape(shape)
