"""Wait for the tasks of a cluster; every wait has a time limit."""

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
)

# Give up after this time without a worker; nannies restart one within seconds.
NO_WORKER_SECONDS = 60.0
# A scheduler that does not answer for this long counts as lost.
ANSWER_SECONDS = 30.0
_POLL_SECONDS = 0.05
_ASK_TIMES = 3  # for a result that exists but does not arrive
_WORKERS_SECONDS = 2.0  # between two checks for workers

Name = TypeVar("Name")


class ClusterError(OSError):
    """The cluster cannot do the work; the message names the place, the cause and what is saved.

    The error of a failed task is its ``__cause__``.
    """


def results(
    client: Client,
    futures: Mapping[Name, Future[Any]],
    what: str,
    *,
    kept: str = "",
    between: Callable[[], None] = lambda: None,
) -> Iterator[tuple[Name, Any]]:
    """The results of tasks as they arrive; each is then released from the cluster.

    If a task fails, a ClusterError names it (a `what`, such as "tree", and its key in `futures`).
    If the scheduler is lost or does not answer, or no worker is left, it says how many tasks are
    unfinished. It ends with the sentence `kept`, which names the saved results. `between` is called
    many times a second and may raise.
    """
    waiting = dict(futures)

    def ends() -> str:
        return f"with {len(waiting):,} of {len(futures):,} {what}s unfinished. {kept}".rstrip()

    workers, unanswered = _Workers(client, ends), Counter[Name]()
    try:
        while waiting:
            between()
            for name in [name for name, future in waiting.items() if future.status != "pending"]:
                outcome, value = _outcome(waiting[name])
                if outcome == "finished":
                    waiting.pop(name).release()
                    yield name, value
                elif outcome == "lost":
                    raise _lost(client, ends())
                elif outcome == "no answer" and unanswered[name] < _ASK_TIMES - 1:
                    unanswered[name] += 1
                    time.sleep(1)
                elif outcome != "pending":
                    raise ClusterError(
                        f"{what.capitalize()} {name} failed {_why(value)} {kept}".rstrip()
                    ) from value
            if client.status in ("closing", "closed"):
                raise ClusterError(f"The connection to the scheduler was closed {ends()}")
            workers.check()
            time.sleep(_POLL_SECONDS)
    finally:
        # Tasks that have not begun are dropped once their futures are released.
        for future in waiting.values():
            future.release()


class _Workers:
    """Regularly checks whether the cluster has workers."""

    def __init__(self, client: Client, ends: Callable[[], str]) -> None:
        self.client, self.ends = client, ends
        self.looked = self.seen = time.monotonic()

    def check(self) -> None:
        if time.monotonic() - self.looked < _WORKERS_SECONDS:
            return
        try:
            present = self.client.nthreads(callback_timeout=ANSWER_SECONDS)
        except TimeoutError as error:
            raise ClusterError(
                f"The scheduler {address(self.client)} does not answer {self.ends()}"
            ) from error
        except (OSError, CancelledError, RuntimeError) as error:
            raise _lost(self.client, self.ends()) from error
        self.looked = time.monotonic()
        if present:
            self.seen = self.looked
        elif self.looked - self.seen > NO_WORKER_SECONDS:
            raise ClusterError(
                f"The scheduler {address(self.client)} has had no worker for "
                f"{NO_WORKER_SECONDS:.0f} s {self.ends()}"
            )


def _outcome(future: Future[Any]) -> tuple[str, Any]:
    """The state of a task: "finished" with its result; "failed" or "no answer" with an error."""
    status = future.status
    try:
        if status == "finished":
            return status, future.result(timeout=ANSWER_SECONDS)
        if status == "error" and (error := future.exception(timeout=ANSWER_SECONDS)) is not None:
            return "failed", error
    except (CancelledError, TimeoutError, OSError) as unreachable:
        # Most likely the worker with the result has just died, and the task runs again.
        if future.status == status:
            return "no answer", unreachable
    except Exception as unreadable:
        return "failed", unreadable
    return "lost" if future.status == "cancelled" else "pending", None


def _lost(client: Client, ends: str) -> ClusterError:
    return ClusterError(f"The scheduler {address(client)} was lost {ends}")


def _why(error: BaseException | None) -> str:
    if isinstance(error, KilledWorker):
        return (
            f"on {error.allowed_failures + 1} workers, which all died while working on it, most "
            f"recently {error.last_worker.address}: they may have run out of memory; see their "
            "logs."
        )
    where = getattr(error, "ldsm_worker", None)
    cause = f"{type(error).__name__}: {error}".rstrip(".")
    return f"on worker {where}: {cause}." if where else f"on its worker: {cause}."


def address(client: Client) -> str:
    """The address of the scheduler."""
    scheduler = client.scheduler
    return str(scheduler.address) if scheduler is not None else "of this client"
