"""What every worker must see before work is handed out: this ldsm, the store, the folder."""

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
from .._storage.paths import PathLike
from .._version import __version__
from ..datasets.dataset import Dataset, StoreLocation
from ..datasets.store import check_located, open_store
from .tasks import ANSWER_SECONDS, ClusterError, address

_SHOWN = 3  # complaints of workers in one message
# Raises on a worker that cannot do the work.
Check = Callable[[], None]


def check_client(client: Client) -> None:
    """Raise unless the client can be waited for."""
    if not isinstance(client, Client) or client.asynchronous:
        raise ValueError(
            f"The 'client' argument must be a distributed.Client that is not asynchronous. "
            f"Got {client!r} instead."
        )
    if client.status != "running":
        raise ValueError(
            f"The 'client' argument must be connected. Got one that is {client.status}."
        )


def opened(store: PathLike | Dataset) -> tuple[Dataset, StoreLocation]:
    """The store that was named, as the driver sees it."""
    if not isinstance(store, (Dataset, str, os.PathLike)):
        raise ValueError(
            "The 'store' argument must be the folder of a store, or what open_store gives. "
            f"Got {type(store).__name__} instead."
        )
    data = store if isinstance(store, Dataset) else open_store(store)
    if data.store is None:
        raise ValueError(
            "The 'store' argument must be the folder of a store, or what open_store gives. "
            f"Got {data!r}, whose rows lie in no store: save them first."
        )
    return data, data.store


def check_workers(client: Client, checks: Sequence[Check]) -> None:
    """Raise, by name of worker and path, if some worker is not fit for the work."""
    deadline = time.monotonic() + ANSWER_SECONDS
    try:
        # Not `wait_for_workers`, whose own questions to the scheduler have no time limit.
        while not client.nthreads(callback_timeout=ANSWER_SECONDS):
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"The scheduler {address(client)} has had no worker for {ANSWER_SECONDS:.0f} s."
                )
            time.sleep(0.1)
        answers = client.run(
            _complaint,
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
    complaints = {}
    for worker, answer in answers.items():
        if isinstance(answer, OSError):
            continue  # it was lost just now, which is no reason to stop the others
        if isinstance(answer, Exception):
            answer = f"it cannot run this ldsm: {type(answer).__name__}: {answer}"
        if answer is not None:
            complaints[worker] = answer
    if complaints:
        shown = [f"{worker}: {text}" for worker, text in list(complaints.items())[:_SHOWN]]
        raise ClusterError(
            f"{len(complaints)} of {len(answers)} workers cannot do this work. {' '.join(shown)}"
        )


def most_threads(client: Client) -> int:
    """Threads of all workers of one machine; of the machine that has the most."""
    threads: Counter[str] = Counter()
    for worker, n in client.nthreads(callback_timeout=ANSWER_SECONDS).items():
        threads[urlsplit(worker).hostname or worker] += n
    return max(threads.values(), default=1)


def sees_store(store: StoreLocation) -> Check:
    """A check for the store."""
    return partial(check_located, store)


def sees_model(path: str) -> Check:
    """A check for the very model file that the driver sees."""
    return partial(check_model, path, checksum(path))


@contextmanager
def sees_folder(folder: str) -> Iterator[Check]:
    """A check for a folder of results: the same one for all, and not one of each machine."""
    mark = temporary_path(folder)
    with open(mark, "xb"):
        pass
    try:
        yield partial(_check_folder, folder, os.path.basename(mark))
    finally:
        with suppress(FileNotFoundError):
            os.unlink(mark)


def check_model(path: str, expected: str) -> None:
    """Raise unless this process, too, finds that model there."""
    if checksum(path) != expected:
        raise ValueError(f"The model file {path!r} is another one here: its checksum differs.")


def _check_folder(folder: str, mark: str) -> None:
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"There is no folder {folder!r}.")
    if not os.path.exists(os.path.join(folder, mark)):
        raise ValueError(
            f"The folder {folder!r} is another one here: what the driver wrote is not in it. "
            "It must be shared."
        )
    check_writable(folder)


def _complaint(version: str, checks: Sequence[Check]) -> str | None:
    """Runs on a worker: why it cannot do the work, None if it can."""
    if __version__ != version:
        return f"it has ldsm {__version__}, and the driver {version}."
    for check in checks:
        try:
            check()
        except Exception as error:
            return str(error)
    return None
