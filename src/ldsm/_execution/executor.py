"""Map a task over the parts of the data, in threads, processes or on a cluster.

The parts depend on the data and the seed, never on the workers. A part is small, usually the number
of a tree or of a chunk of rows, or a range of labels. The task holds the data or their paths. A
task that may run in another process is a frozen dataclass, which can be pickled.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray

from .threads import CancelFlag, at_intervals, starting_threads, worker_count

_POLL_SECONDS = 0.1
# The longest wait for the core, which checks the flag many times a second.
_PATIENCE_SECONDS = 5.0

Part = TypeVar("Part")
Result = TypeVar("Result")
# Called with (done, total).
ProgressCallback = Callable[[int, int], None]


# Called with (parts done, parts, kind of part).
Watcher = Callable[[int, int, str], None]
_watcher: ContextVar[Watcher | None] = ContextVar("ldsm-watcher", default=None)


@contextmanager
def watching(watcher: Watcher | None) -> Iterator[None]:
    """Report the parts of all maps in this block, and in this thread, about ten times a second.

    Nobody watches with None.
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


class Control(NamedTuple):
    """What a running task shares with its caller, if they are in one process."""

    cancel: CancelFlag  # nonzero cancels the work; the core checks it many times a second
    progress: NDArray[np.int64]  # one number: the units of work done so far

    @classmethod
    def unshared(cls) -> Control:
        """For a task without a caller in this process."""
        return cls(np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int64))


Task = Callable[[Part, Control], Result]


class Numbered(NamedTuple, Generic[Part]):
    """A part with its number, where that is not its place in the map."""

    number: int
    part: Part


class Progress(NamedTuple):
    """Reports `callback(done, total)` about ten times a second."""

    callback: ProgressCallback
    total: int
    before: int = 0  # done before the map began


def check_callback(callback: ProgressCallback | None) -> None:
    """Raise an error now rather than at the first progress report."""
    if callback is not None and not callable(callback):
        raise ValueError(f"The 'callback' argument must be callable. Got {callback!r} instead.")


@dataclass(frozen=True)
class Run:
    """The state of one map: a cancel flag, and the progress of each part and whether it runs.

    Only threads share it. A task in another process gets new arrays, because backends may send
    read-only ones.
    """

    flag: CancelFlag
    inside: NDArray[np.int8]
    progress: NDArray[np.int64]
    finished: NDArray[np.bool_]

    @classmethod
    def of(cls, n_parts: int) -> Run:
        inside, progress = np.zeros(n_parts, np.int8), np.zeros(n_parts, np.int64)
        return cls(np.zeros(1, np.int32), inside, progress, np.zeros(n_parts, bool))

    def __reduce__(self) -> tuple[Any, ...]:
        return Run.of, (len(self.progress),)

    @property
    def cancelled(self) -> bool:
        return bool(self.flag[0])

    def call(self, task: Task[Part, Result], number: int, part: Part) -> Result:
        """Run the task on one part."""
        self.inside[number] = 1
        try:
            result = task(part, Control(self.flag, self.progress[number : number + 1]))
        finally:
            self.inside[number] = 0
        self.finished[number] = True
        return result

    @contextmanager
    def cancel_on_error(self) -> Iterator[None]:
        """An error in one part, or Ctrl-C, cancels the others and waits for them.

        A thread that is still in compiled code when the interpreter exits would crash the process.
        """
        try:
            yield
        except BaseException:
            self.flag[0] = 1
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while self.inside.any() and time.monotonic() < deadline:
                time.sleep(0.005)
            raise

    @contextmanager
    def watched(self, name: str) -> Iterator[None]:
        """Report how many parts are finished, from a separate thread, if somebody is watching."""
        if (watcher := _watcher.get()) is None:
            yield
            return
        total = len(self.finished)
        with at_intervals(_POLL_SECONDS, lambda: watcher(int(self.finished.sum()), total, name)):
            yield

    @contextmanager
    def reporting(self, progress: Progress | None) -> Iterator[None]:
        """Report from a separate thread; an error in the callback cancels the work."""
        if progress is None:
            yield
            return
        callback, total, before = progress
        errors: list[BaseException] = []

        def report() -> None:
            try:
                if not errors:
                    callback(min(before + int(self.progress.sum()), total), total)
            except BaseException as error:
                errors.append(error)
                self.flag[0] = 1

        try:
            with at_intervals(_POLL_SECONDS, report):
                yield
        except BaseException:
            if not errors:
                raise
        if errors:
            raise errors[0]
        callback(total, total)


class Executor(ABC):
    """Runs a task on parts; every executor gives the same bits."""

    DIRECT: ClassVar[bool] = False  # whether a single part, such as a row, is run without a `Run`
    IN_PROCESS: ClassVar[bool] = False  # whether tasks always run in this process

    @property
    @abstractmethod
    def at_once(self) -> int:
        """Maximum number of parts that run at once on one machine."""

    @property
    def in_all(self) -> int:
        """Maximum number of parts that run at once on all machines."""
        return self.at_once

    @property
    def in_memory(self) -> int:
        """Number of parts that `stream` holds in memory at once, by default."""
        return self.at_once

    def stream(
        self,
        task: Task[Part, Result],
        parts: Iterable[Part],
        *,
        name: str | None = None,
        in_memory: int | None = None,
    ) -> Iterator[Result]:
        """The same results as those of `map`, in order; few parts and results are in memory."""
        rest = iter(parts)
        while some := list(islice(rest, in_memory or self.in_memory)):
            with watching(None):  # how many parts there will be is unknown
                found = self.map(task, some, name=name)
            del some
            yield from found
            del found

    def map(
        self,
        task: Task[Part, Result],
        parts: Sequence[Part],
        *,
        name: str | None = None,
        progress: Progress | None = None,
    ) -> list[Result]:
        """The results of `task(part, control)`, in the order of the parts.

        `name` is the kind of part, such as "tree", for errors, lists of tasks and watchers. An
        error or Ctrl-C ends all tasks.
        """
        if self.DIRECT and len(parts) == 1 and progress is None:
            return [task(parts[0], Control.unshared())]
        run = Run.of(len(parts))
        watched = run.watched(name) if name and progress is None else nullcontext()
        with run.reporting(progress), watched, run.cancel_on_error():
            return self._map(task, parts, run, name or "part") if parts else []

    def _map(
        self, task: Task[Part, Result], parts: Sequence[Part], run: Run, name: str
    ) -> list[Result]:
        raise NotImplementedError


@dataclass(frozen=True)
class JoblibExecutor(Executor):
    """Runs tasks in threads, unless `joblib.parallel_config` sets another backend."""

    n_jobs: int | None = None

    @property
    def at_once(self) -> int:
        return worker_count(self.n_jobs)

    def _map(
        self, task: Task[Part, Result], parts: Sequence[Part], run: Run, name: str
    ) -> list[Result]:
        return _by_joblib(task, parts, run, self.at_once, prefer="threads")


@dataclass(frozen=True)
class ThreadExecutor(Executor):
    """Runs tasks in threads of this process with any backend, so they need not be picklable."""

    DIRECT: ClassVar[bool] = True
    IN_PROCESS: ClassVar[bool] = True
    n_jobs: int | None = None

    @property
    def at_once(self) -> int:
        workers = worker_count(self.n_jobs)
        return 1 if workers == 1 else min(workers, int(joblib.cpu_count()))

    def _map(
        self, task: Task[Part, Result], parts: Sequence[Part], run: Run, name: str
    ) -> list[Result]:
        workers = min(self.at_once, len(parts))
        if workers == 1:
            return [run.call(task, i, part) for i, part in enumerate(parts)]
        return _by_joblib(task, parts, run, workers, require="sharedmem")


def _by_joblib(
    task: Task[Part, Result], parts: Sequence[Part], run: Run, workers: int, **backend: str
) -> list[Result]:
    calls = (joblib.delayed(run.call)(task, i, part) for i, part in enumerate(parts))
    with starting_threads(workers):
        return list(joblib.Parallel(n_jobs=workers, **backend)(calls))
