"""Check that every worker has this version of ldsm and sees the store and the folder."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from urllib.parse import urlsplit

from distributed import CancelledError, Client, TimeoutError

from .._storage.atomic import check_writable, temporary_path
from .._storage.container import checksum
from .._version import __version__
from .tasks import ANSWER_SECONDS, ClusterError, address

_SHOWN = 3  # worker problems per message
# Raises on a worker that cannot do the work.
Check = Callable[[], None]


def check_client(client: Client) -> None:
    """Raise an error unless the client is connected and synchronous."""
    if not isinstance(client, Client) or client.asynchronous:
        raise ValueError(
            f"The 'client' argument must be a distributed.Client that is not asynchronous. "
            f"Got {client!r} instead."
        )
    if client.status != "running":
        raise ValueError(
            f"The 'client' argument must be connected. Got one that is {client.status}."
        )


def check_workers(client: Client, checks: Sequence[Check]) -> None:
    """Raise an error that names worker and path if any worker cannot do the work."""
    deadline = time.monotonic() + ANSWER_SECONDS
    try:
        # Not `wait_for_workers`, whose calls to the scheduler have no time limit.
        while not client.nthreads(callback_timeout=ANSWER_SECONDS):
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"The scheduler {address(client)} has had no worker for {ANSWER_SECONDS:.0f} s."
                )
            time.sleep(0.1)
        answers = client.run(
            _problem,
            __version__,
            list(checks),
            on_error="return",
            callback_timeout=ANSWER_SECONDS,
        )
    except TimeoutError as error:
        raise ClusterError(
            f"The scheduler {address(client)}, or one of its workers, did not answer within "
            f"{ANSWER_SECONDS:.0f} s."
        ) from error
    except ClusterError:
        raise
    except (OSError, RuntimeError, CancelledError) as error:
        raise ClusterError(f"The scheduler {address(client)} was lost.") from error
    problems = {}
    for worker, answer in answers.items():
        if isinstance(answer, OSError):
            continue  # this worker was just lost; the others can do the work
        if isinstance(answer, Exception):
            answer = f"it cannot run this ldsm: {type(answer).__name__}: {answer}"
        if answer is not None:
            problems[worker] = answer
    if problems:
        shown = [f"{worker}: {text}" for worker, text in list(problems.items())[:_SHOWN]]
        raise ClusterError(
            f"{len(problems)} of {len(answers)} workers cannot do this work. {' '.join(shown)}"
        )


def most_threads(client: Client) -> int:
    """Threads of all workers on one machine, for the machine with the most."""
    threads: Counter[str] = Counter()
    for worker, n in client.nthreads(callback_timeout=ANSWER_SECONDS).items():
        threads[urlsplit(worker).hostname or worker] += n
    return max(threads.values(), default=1)


@contextmanager
def sees_folder(folder: str) -> Iterator[Check]:
    """A check that a worker sees the driver's folder, not a local one with the same path."""
    mark = temporary_path(folder)
    with open(mark, "xb"):
        pass
    try:
        yield partial(_check_folder, folder, os.path.basename(mark))
    finally:
        with suppress(FileNotFoundError):
            os.unlink(mark)


def share_hint(files: str) -> str:
    """What to do if a worker does not see a folder, which could hold these files."""
    return (
        "Workers exchange data through a folder: name one that all machines share for the "
        f"{files}, or set TMPDIR to one."
    )


def check_model(path: str, expected: str) -> None:
    """Raise an error unless the file holds the expected model."""
    if checksum(path) != expected:
        raise ValueError(
            f"The model file {path!r} is different on this machine: its checksum differs."
        )


def _check_folder(folder: str, mark: str) -> None:
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"There is no folder {folder!r}.")
    if not os.path.exists(os.path.join(folder, mark)):
        raise ValueError(
            f"The folder {folder!r} is not shared: a file written by the driver is missing on this "
            "machine."
        )
    check_writable(folder)


def _problem(version: str, checks: Sequence[Check]) -> str | None:
    """The reason why this worker cannot do the work, or None; runs on the worker."""
    if __version__ != version:
        return f"it has ldsm {__version__}, but the driver has {version}."
    for check in checks:
        try:
            check()
        except Exception as error:
            return str(error)
    return None
