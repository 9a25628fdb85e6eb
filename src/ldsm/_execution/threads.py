"""Threads: how many, short tasks, calls at intervals."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray

POOL_THREADS = min(8, os.cpu_count() or 1)

CancelFlag = NDArray[np.int32]
Task = TypeVar("Task")
Answer = TypeVar("Answer")


def worker_count(n_jobs: int | None) -> int:
    """How many workers `n_jobs` stands for: as many as joblib says, but no more than there are.

    Those are the processors of this machine, or what a cluster has, if joblib uses one.
    """
    workers = int(joblib.effective_n_jobs(n_jobs))
    return 1 if workers == 1 else min(workers, max(1, int(joblib.effective_n_jobs(-1))))


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
