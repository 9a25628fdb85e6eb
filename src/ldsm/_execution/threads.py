"""Work in threads: tasks that can be cancelled, short tasks, calls at intervals.

Calls into the core are told to stop, and waited for: a thread that is still in compiled code when
the interpreter exits would crash the process.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray

# The longest wait for the core, which checks the flag many times a second.
_PATIENCE_SECONDS = 5.0
POOL_THREADS = min(8, os.cpu_count() or 1)

CancelFlag = NDArray[np.int32]
Task = TypeVar("Task")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class CancelToken:
    """A flag that calls into the core check, and the tasks that are inside such a call.

    It consists of plain arrays: it can be pickled, but only threads share it.
    """

    flag: CancelFlag
    inside: NDArray[np.int8]

    @classmethod
    def for_tasks(cls, n_tasks: int) -> CancelToken:
        return cls(np.zeros(1, dtype=np.int32), np.zeros(n_tasks, dtype=np.int8))

    @property
    def cancelled(self) -> bool:
        return bool(self.flag[0])

    def cancel(self) -> None:
        self.flag[0] = 1

    @contextmanager
    def running(self, task: int) -> Iterator[CancelFlag]:
        """Wraps one call into the core, which gets the flag."""
        self.inside[task] = 1
        try:
            yield self.flag
        finally:
            self.inside[task] = 0

    @contextmanager
    def cancel_on_error(self) -> Iterator[None]:
        """Wraps all tasks: an error in one of them cancels the others."""
        try:
            yield
        except BaseException:
            self.cancel()
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while self.inside.any() and time.monotonic() < deadline:
                time.sleep(0.005)
            raise


def worker_count(n_jobs: int | None) -> int:
    """How many workers `n_jobs` stands for: as many as joblib says, but no more than there are.

    Those are the processors of this machine, or what a cluster has, if joblib uses one.
    """
    return int(min(joblib.effective_n_jobs(n_jobs), max(1, joblib.effective_n_jobs(-1))))


@contextmanager
def starting_threads(n_threads: int) -> Iterator[None]:
    """A system that cannot start a thread raises a RuntimeError; here it is what it means."""
    try:
        yield
    except RuntimeError as error:
        if "start new thread" not in str(error):
            raise
        raise MemoryError(
            f"The system cannot start {n_threads} threads: too little memory is left, or too many "
            "threads are running. A smaller n_jobs needs fewer."
        ) from error


def in_threads(
    work: Callable[[int, CancelFlag], Answer], n_tasks: int, n_jobs: int | None
) -> list[Answer]:
    """The results of `work(task, cancel)` for all tasks, in `n_jobs` threads."""
    n_jobs = min(worker_count(n_jobs), joblib.cpu_count(), max(1, n_tasks))
    token = CancelToken.for_tasks(n_tasks)

    def run(task: int) -> Answer:
        with token.running(task) as cancel:
            return work(task, cancel)

    with starting_threads(n_jobs), token.cancel_on_error():
        tasks = (joblib.delayed(run)(task) for task in range(n_tasks))
        return list(joblib.Parallel(n_jobs=n_jobs, require="sharedmem")(tasks))


@contextmanager
def at_intervals(seconds: float, call: Callable[[], None]) -> Iterator[None]:
    """Call a function that raises nothing every few seconds, in a thread of its own."""
    done = threading.Event()

    def repeat() -> None:
        while not done.wait(seconds):
            call()

    thread = threading.Thread(target=repeat, name="ldsm-progress", daemon=True)
    with starting_threads(1):
        thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def in_pool(work: Callable[[Task], Answer], tasks: Iterable[Task]) -> list[Answer]:
    """The results of short `work` that releases the interpreter lock; an error ends the rest."""
    pool = ThreadPoolExecutor(POOL_THREADS)
    try:
        with starting_threads(POOL_THREADS):
            answers = [pool.submit(work, task) for task in tasks]
        wait(answers, return_when=FIRST_EXCEPTION)  # instead of waking up for each
        return [answer.result() for answer in answers]
    finally:
        # The caller may close files that running threads use.
        pool.shutdown(wait=True, cancel_futures=True)


def state_of(thing: object, *without: str) -> dict[str, Any]:
    """A copy of an object's attributes, for pickle and deepcopy.

    They would read the attributes one by one, while another thread may add a cached property. A
    dict is copied in one step. Attributes `without` are left out.
    """
    state = dict(vars(thing))
    for name in without:
        state.pop(name, None)
    return state
