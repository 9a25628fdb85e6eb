"""Let one process at a time change a file.

The lock of a file is an empty file beside it. A lock on the file itself would be lost when the file
is replaced. The system releases the lock when its holder ends in any way: a lock file that a killed
process left locks nothing, and the next holder removes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from .atomic import mark_of
from .paths import PathLike, printable

Signature = tuple[int, int, int]

_POLL_SECONDS = 0.05
# Errors of file systems without locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


class FileLocked(OSError):
    """Another process, or another thread, is changing the file."""


class FileReplaced(OSError):
    """A program that takes no lock has replaced the file while it was being changed."""


def signature_of(path: PathLike) -> Signature:
    """What changes whenever a file is replaced or written to; links are followed."""
    return _signature(os.stat(path))


def _signature(status: os.stat_result) -> Signature:
    return status.st_mtime_ns, status.st_size, status.st_ino


class FileLock:
    """The lock of a file, held by one thread."""

    def __init__(self, target: str, *, changes: bool) -> None:
        self._target, self._changes = target, changes
        self.signature = _signature_or_none(target)

    def check(self) -> None:
        """Raise FileReplaced if a change began with another file than the one that is there."""
        if self._changes and _signature_or_none(self._target) != self.signature:
            raise FileReplaced(
                f"{printable(self._target)} was replaced by another program while it was being "
                "changed, so nothing was written. Try again."
            )

    def replaced(self, by: os.stat_result) -> None:
        """Continue with the file that was just put in place."""
        self.signature = _signature(by)


class _Held(threading.local):
    """The locks of a thread by the paths of their files."""

    def __init__(self) -> None:
        self.locks: dict[str, FileLock] = {}


_held = _Held()


@contextmanager
def locked(
    path: PathLike,
    *,
    changes: bool = False,
    timeout: float | None = None,
    waiting: Callable[[], None] = lambda: None,
) -> Iterator[FileLock]:
    """Hold the lock of a file; a thread that already holds it does not wait.

    The file need not exist. A symbolic link has the lock of its target. With `changes`, what is
    written depends on what was read: a file that somebody replaces meanwhile without the lock is
    not overwritten. If another holds the lock, `waiting` is called once; after `timeout` seconds, a
    FileLocked is raised.
    """
    target = os.path.realpath(path)
    if (outer := _held.locks.get(target)) is not None:
        yield outer
        return
    name = os.path.join(os.path.dirname(target), f".ldsm-{mark_of(target)[:-1]}.lock")
    descriptor = _acquired(path, name, timeout, waiting)
    try:
        _held.locks[target] = lock = FileLock(target, changes=changes)
        yield lock
    finally:
        del _held.locks[target]
        with suppress(OSError):
            os.unlink(name)
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # also for a child process that inherited it
        os.close(descriptor)


def _signature_or_none(path: str) -> Signature | None:
    try:
        return signature_of(path)
    except FileNotFoundError:
        return None


def _acquired(path: PathLike, name: str, timeout: float | None, waiting: Callable[[], None]) -> int:
    """A descriptor of the lock file, locked."""
    end = None if timeout is None else time.monotonic() + timeout
    has_waited = False
    while True:
        descriptor = _opened(path, name)
        try:
            while not _try_lock(descriptor):
                if not has_waited:
                    waiting()
                    has_waited = True
                if end is None:
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                    break
                if time.monotonic() >= end:
                    raise FileLocked(
                        f"{printable(path)} is being changed by another process. Try again later."
                    )
                time.sleep(_POLL_SECONDS)
            # The last holder has removed the file. Who came later has locked another one.
            if is_at(descriptor, name):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _opened(path: PathLike, name: str) -> int:
    flags = os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        try:
            descriptor = os.open(name, os.O_RDWR | flags, 0o666)
        except PermissionError:
            descriptor = os.open(name, os.O_RDONLY | flags, 0o666)  # another user's
    except OSError as error:
        problem = name if os.path.lexists(name) else os.fspath(path)
        raise OSError(error.errno, error.strerror, problem) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EEXIST, "The lock must be a regular file", name)
    return descriptor


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


def is_at(descriptor: int, path: PathLike) -> bool:
    """Whether an open file is still there by that name, which is not a link."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False
