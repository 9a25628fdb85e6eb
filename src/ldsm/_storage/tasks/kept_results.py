"""Keep the results of parts in files: a fit resumes from them, and memory need not hold them.

The file of a part, such as ``label-range-00007.ldsm``, is a container of arrays. It records a hash
of its task and its part, which include the data: results of any others are replaced.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

import joblib
from numpy.typing import NDArray

from ..._execution.executor import Control, Executor, Numbered, Part, Progress, Result, Task
from ..._version import __version__
from ..._wording import warn
from ..container import ModelFileError, read, write

# A network file system may hide a new file for this long.
LATE_SECONDS = 60.0
_KIND = "part"


class KeptTask(Protocol):
    """A task whose results are named arrays, and which holds nothing but what determines them."""

    def __call__(self, part: Any, control: Control) -> Any: ...
    def packed(self, result: Any) -> Mapping[str, NDArray[Any]]:
        """The arrays of a result."""

    def unpacked(self, arrays: Mapping[str, NDArray[Any]]) -> Any:
        """The result of arrays."""


@dataclass(frozen=True)
class KeepingExecutor(Executor):
    """Runs tasks by another executor; the results of a `KeptTask` are mapped from files."""

    inner: Executor
    folder: str
    lasting: bool = True  # whether another process may find the files

    @classmethod
    def temporary(cls, inner: Executor, parent: str) -> KeepingExecutor:
        """One whose files exist as long as it does."""
        folder = tempfile.mkdtemp(dir=parent, prefix=".ldsm-parts-")
        executor = cls(inner, folder, lasting=False)
        weakref.finalize(executor, shutil.rmtree, folder, ignore_errors=True)
        return executor

    @property
    def at_once(self) -> int:
        return self.inner.at_once

    @property
    def in_memory(self) -> int:
        return self.inner.in_memory

    def stream(
        self,
        task: Task[Part, Result],
        parts: Iterable[Part],
        *,
        name: str | None = None,
        in_memory: int | None = None,
    ) -> Iterator[Result]:
        if not _is_kept(task):
            yield from self.inner.stream(task, parts, name=name, in_memory=in_memory)
            return
        keeping = self._keeping(task, name)
        numbered = (Numbered(number, part) for number, part in enumerate(parts))
        for number, _ in enumerate(
            self.inner.stream(keeping, numbered, name=name, in_memory=in_memory)
        ):
            yield keeping.result(number)

    def map(
        self,
        task: Task[Part, Result],
        parts: Sequence[Part],
        *,
        name: str | None = None,
        progress: Progress | None = None,
    ) -> list[Result]:
        if not _is_kept(task):
            return self.inner.map(task, parts, name=name, progress=progress)
        keeping = self._keeping(task, name)
        numbered = [Numbered(number, part) for number, part in enumerate(parts)]
        self.inner.map(keeping, numbered, name=name, progress=progress)
        return [keeping.result(number) for number in range(len(parts))]

    def _keeping(self, task: KeptTask, name: str | None) -> _Keeping:
        key = joblib.hash((__version__, task), "sha1", coerce_mmap=True) if self.lasting else ""
        return _Keeping(task, self.folder, (name or "part").replace(" ", "-"), str(key))


def _is_kept(task: Any) -> TypeGuard[KeptTask]:
    return hasattr(task, "packed") and hasattr(task, "unpacked")


@dataclass(frozen=True)
class _Keeping:
    """Runs a task on a part unless its result is in the folder already."""

    task: KeptTask
    folder: str
    name: str
    key: str

    def __call__(self, part: Numbered[Any], control: Control) -> None:
        number, own = part
        key = f"{self.key}-{joblib.hash(own, 'sha1', coerce_mmap=True)}" if self.key else ""
        if not (key and self._is_there(number, key)):
            arrays = self.task.packed(self.task(own, control))
            header = {"kind": _KIND, "task": key, "part": number}
            write(self._path(number), header, arrays)

    def result(self, number: int) -> Any:
        path = self._path(number)
        wait_for(path)
        return self.task.unpacked(read(path, verify=False)[1])

    def _path(self, number: int) -> str:
        return os.path.join(self.folder, f"{self.name}-{number:05}.ldsm")

    def _is_there(self, number: int, key: str) -> bool:
        path = self._path(number)
        try:
            header, _ = read(path, verify=False)
            if header["kind"] != _KIND or header.get("task") != key:
                return False
            read(path, cached=False)  # with its checksum
        except FileNotFoundError:
            return False
        except ModelFileError as error:
            warn(f"{error} It will be written again.")
            return False
        return header.get("part") == number


def wait_for(path: str) -> None:
    """Wait for a file that another machine has written and that may appear here late."""
    folder, start = os.path.dirname(path), time.monotonic()
    while not os.path.exists(path) and time.monotonic() - start < LATE_SECONDS:
        with suppress(OSError):
            os.listdir(folder)  # makes network file systems refresh
        time.sleep(0.1)
