"""Write files completely or not at all."""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter
from typing import TYPE_CHECKING

from .._execution.scratch import SCRATCH_PREFIX
from .paths import PathLike

if TYPE_CHECKING:
    from .locks import FileLock

# Names of unfinished files begin and end like this.
_PREFIX, _SUFFIX = ".ldsm-", ".tmp"
_YOUNG_SECONDS = 60.0  # a newer unfinished file may be about to be locked
STALE_SECONDS = 3600.0  # after which the process of an unfinished file must have been killed
SCRATCH_MARK = SCRATCH_PREFIX.removeprefix(_PREFIX)  # of files that are locked while in use


@contextmanager
def atomic_file(
    path: PathLike, *, replace: bool = True, lock: FileLock | None = None
) -> Iterator[BufferedWriter]:
    """Open a file for writing that gets its name when the block ends without an error.

    Until then an existing file of that name stays as it is; the new one takes over its mode.
    Without `replace`, a file that exists by then stays, and the new one is dropped. With `lock`,
    the lock of the file, it is checked last that nobody else has replaced it. A symbolic link is
    followed: its target is replaced. Unfinished versions of the file that killed processes left
    are removed. If the system cannot write, no unfinished file is left, and the OSError names
    `path`.
    """
    target = os.path.realpath(path)
    _remove_leftovers(target)
    temporary = temporary_path(os.path.dirname(target), mark_of(target))
    try:
        with open(temporary, "xb") as file:
            with suppress(OSError):  # some file systems have no locks
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                os.fchmod(file.fileno(), stat.S_IMODE(os.stat(target).st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
            written = os.fstat(file.fileno())
        if lock is not None:
            lock.check()
        if replace:
            os.replace(temporary, target)
            if lock is not None:
                lock.replaced(written)
        else:
            _link(temporary, target)
    except OSError as error:
        if error.errno is None or error.filename not in (None, temporary):
            raise  # from something else within the block
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    sync_folder(os.path.dirname(target))


def temporary_path(folder: str, mark: str = "") -> str:
    """A unique path for an unfinished file; `mark` is part of its name."""
    return os.path.join(folder, f"{_PREFIX}{mark}{secrets.token_hex(8)}{_SUFFIX}")


def is_temporary(name: str) -> bool:
    """Whether a file's name is that of an unfinished file."""
    return name.startswith(_PREFIX) and name.endswith(_SUFFIX)


def remove_stale_files(folder: str) -> None:
    """Remove unfinished files of killed processes; recent ones may still be written to."""
    for name in filter(is_temporary, os.listdir(folder)):
        path = os.path.join(folder, name)
        with suppress(OSError):  # another process was faster, or this one may not remove it
            try:
                if name.startswith(SCRATCH_PREFIX):
                    _remove_if_abandoned(path)
                    continue
            except BlockingIOError:
                continue
            except OSError:  # a file system without locks
                pass
            if time.time() - os.path.getmtime(path) > STALE_SECONDS:
                os.unlink(path)


def check_writable(folder: str) -> None:
    """Raise an OSError unless a file can be created in the folder."""
    path = temporary_path(folder)
    try:
        with open(path, "xb"):
            pass
        os.unlink(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, folder) from error


def sync_folder(folder: str) -> None:
    """Make a new name durable; errors are ignored, as some file systems cannot do this."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _link(temporary: str, target: str) -> None:
    """Give the file its name unless that name is taken."""
    try:
        os.link(temporary, target)  # unlike a rename, this replaces nothing
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        if not os.path.exists(target):
            os.replace(temporary, target)


def mark_of(target: str) -> str:
    """The part that the names of all unfinished versions of a file share; always short."""
    return f"{zlib.crc32(os.fsencode(os.path.basename(target))):08x}-"


def _remove_leftovers(target: str) -> None:
    """Delete unfinished versions of this file that killed processes left.

    A process that writes a file holds a lock on it, which the system releases when the process ends
    in any way. Files that cannot be deleted are harmless.
    """
    folder, start = os.path.dirname(target), _PREFIX + mark_of(target)
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(start) and is_temporary(name):
                with suppress(OSError):
                    _remove_if_abandoned(os.path.join(folder, name))


def _remove_if_abandoned(path: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if time.time() - os.fstat(descriptor).st_mtime > _YOUNG_SECONDS:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an error if it is locked
            os.unlink(path)
    finally:
        os.close(descriptor)
