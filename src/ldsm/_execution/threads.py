"""Threads: their number, a pool for short tasks, periodic calls."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import NDArray

POOL_THREADS = min(8, os.cpu_count() or 1)

CancelFlag = NDArray[np.int32]
Task = TypeVar("Task")
Answer = TypeVar("Answer")


def worker_count(n_jobs: int | None) -> int:
    """The number of workers for `n_jobs`: joblib's number, limited to those available.

    Those are the processors of this machine, or of a cluster if joblib uses one.
    """
    if n_jobs == 1:
        return 1
    # Not `joblib.effective_n_jobs`, which asks for processes: within a daemon, such as a worker of
    # Dask, it warns and returns 1.
    backend, configured = get_active_backend(prefer="threads")
    workers = int(backend.effective_n_jobs(configured if n_jobs is None else n_jobs))
    return 1 if workers == 1 else min(workers, max(1, int(backend.effective_n_jobs(-1))))


@contextmanager
def starting_threads(n_threads: int) -> Iterator[None]:
    """Turn the RuntimeError "can't start new thread" into a MemoryError."""
    try:
        yield
    except RuntimeError as error:
        if "start new thread" not in str(error):
            raise
        raise MemoryError(
            f"The system cannot start {n_threads} threads: memory is low, or too many threads are "
            "running. Use a smaller n_jobs."
        ) from error


@contextmanager
def at_intervals(seconds: float, call: Callable[[], None]) -> Iterator[None]:
    """Call a function every few seconds in a separate thread; it must not raise."""
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
    """The results of short `work` that releases the GIL; an error cancels the rest."""
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

    pickle and deepcopy read attributes one by one, while another thread may add a cached property.
    A dict is copied in one step. Attributes in `without` are left out.
    """
    state = dict(vars(thing))
    for name in without:
        state.pop(name, None)
    return state
