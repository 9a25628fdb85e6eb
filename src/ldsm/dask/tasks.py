"""Waiting for the tasks of a cluster, with a way out of every wait."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from distributed import (
    CancelledError,
    Client,
    Future,
    KilledWorker,
    TimeoutError,
    get_worker,
)

# Without a worker for so long the work is given up: nannies bring one back within seconds.
NO_WORKER_SECONDS = 60.0
# A scheduler that says nothing for so long is taken for lost.
ANSWER_SECONDS = 30.0
_POLL_SECONDS = 0.05
_ASK_TIMES = 3  # for a result that is there but does not come
_WORKERS_SECONDS = 2.0  # between two looks at who is there

Name = TypeVar("Name")


class ClusterError(OSError):
    """The cluster cannot do the work, or no longer: the message says where, why and what is kept.

    The error of a task that failed is its ``__cause__``.
    """


def on_worker(work: Callable[..., Any], *arguments: Any) -> Any:
    """Do the work of a task; an error remembers where it happened, which Dask does not tell."""
    try:
        return work(*arguments)
    except Exception as error:
        vars(error)["ldsm_worker"] = get_worker().address
        raise


def results(
    client: Client,
    futures: Mapping[Name, Future[Any]],
    what: str,
    *,
    kept: str = "",
    between: Callable[[], None] = lambda: None,
) -> Iterator[tuple[Name, Any]]:
    """The results of tasks as they come in; each is dropped from the cluster once it is here.

    Parameters
    ----------
    client : Client
    futures : mapping
        The tasks, by what an error calls them.
    what : str
        The kind of task: "tree".
    kept : str
        A sentence on what is not lost, for errors.
    between : callable
        Called many times a second; may raise.

    Raises
    ------
    ClusterError
        If a task fails, the scheduler is lost or does not answer, or no worker is left.
    """
    waiting = dict(futures)
    workers, unanswered = _Workers(client), Counter[Name]()
    try:
        while waiting:
            between()
            for name in [name for name, future in waiting.items() if future.status != "pending"]:
                try:
                    result = _result(waiting[name])
                except _NotYetError:
                    continue
                except (_TaskFailedError, _NoAnswerError) as failed:
                    unanswered[name] += 1
                    if isinstance(failed, _NoAnswerError) and unanswered[name] < _ASK_TIMES:
                        time.sleep(1)
                        continue
                    error = failed.__cause__
                    raise ClusterError(
                        f"{what.capitalize()} {name} failed {_why(error)} {kept}".rstrip()
                    ) from error
                except _LostError:
                    raise _lost(client, kept) from None
                waiting.pop(name).release()
                yield name, result
            if client.status in ("closing", "closed"):
                raise ClusterError(f"The connection to the scheduler was closed. {kept}".rstrip())
            workers.check(kept)
            time.sleep(_POLL_SECONDS)
    finally:
        # Without anybody who wants it, a task that has not begun never does.
        for future in waiting.values():
            future.release()


class _Workers:
    """Looks now and then whether anybody is there to work."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.looked = self.seen = time.monotonic()

    def check(self, kept: str) -> None:
        if time.monotonic() - self.looked < _WORKERS_SECONDS:
            return
        try:
            present = self.client.nthreads(callback_timeout=ANSWER_SECONDS)
        except TimeoutError as error:
            raise ClusterError(
                f"The scheduler {address(self.client)} does not answer. {kept}".rstrip()
            ) from error
        except (OSError, CancelledError, RuntimeError) as error:
            raise _lost(self.client, kept) from error
        self.looked = time.monotonic()
        if present:
            self.seen = self.looked
        elif self.looked - self.seen > NO_WORKER_SECONDS:
            raise ClusterError(
                f"The scheduler {address(self.client)} has had no worker for "
                f"{NO_WORKER_SECONDS:.0f} s. {kept}".rstrip()
            )


class _NotYetError(Exception):
    pass


class _NoAnswerError(Exception):
    pass


class _LostError(Exception):
    pass


class _TaskFailedError(Exception):
    pass


def _result(future: Future[Any]) -> Any:
    """What a future that is no longer pending has."""
    status, error = future.status, None
    try:
        if status == "finished":
            return future.result(timeout=ANSWER_SECONDS)
        if status == "error":
            error = future.exception(timeout=ANSWER_SECONDS)
    except (CancelledError, TimeoutError, OSError) as unreachable:
        # Most likely whoever had the answer died just now, and the task runs again.
        if future.status == status:
            raise _NoAnswerError from unreachable
    except Exception as unreadable:
        error = unreadable
    if error is not None:
        raise _TaskFailedError from error
    if future.status == "cancelled":
        raise _LostError
    raise _NotYetError


def _lost(client: Client, kept: str) -> ClusterError:
    return ClusterError(f"The scheduler {address(client)} was lost. {kept}".rstrip())


def _why(error: BaseException | None) -> str:
    if isinstance(error, KilledWorker):
        return (
            f"on {error.allowed_failures + 1} workers, which all died in the middle of it, the "
            f"last of them {error.last_worker.address}: memory may have run out, their logs may "
            "tell."
        )
    where = getattr(error, "ldsm_worker", None)
    cause = f"{type(error).__name__}: {error}".rstrip(".")
    return f"on worker {where}: {cause}." if where else f"on its worker: {cause}."


def address(client: Client) -> str:
    """Where the scheduler is."""
    scheduler = client.scheduler
    return str(scheduler.address) if scheduler is not None else "of this client"
