"""Run tasks on the workers of a cluster."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple

from distributed import Client, get_worker

from .._execution.executor import Control, Executor, Numbered, Part, Result, Run, Task
from .._execution.threads import at_intervals
from .._storage.tasks.sharing import Sent, sent
from .._version import __version__
from .tasks import ANSWER_SECONDS, ClusterError, results
from .workers import most_threads

_REPORT_SECONDS = 2.0  # between two progress messages of a task
# Parts of a stream that are in memory at once. More would not be faster: one thread makes them.
_LEAST_AT_ONCE, _MOST_AT_ONCE = 16, 64


@dataclass(frozen=True)
class DaskExecutor(Executor):
    """Runs tasks on a cluster; if a worker dies, another worker repeats its task.

    Task names contain the kind of part and its number, such as ``ldsm-tree-00007-...``. The large
    arrays of a task go through the shared `folder`; without one, they are sent. `kept` is a
    sentence for errors, on the results that are saved.
    """

    client: Client
    folder: str | None = None
    kept: str = ""

    @property
    def at_once(self) -> int:
        return most_threads(self.client)

    @property
    def in_all(self) -> int:
        threads: dict[str, int] = self.client.nthreads(callback_timeout=ANSWER_SECONDS)
        return max(1, sum(threads.values()))

    @property
    def in_memory(self) -> int:
        return min(max(_LEAST_AT_ONCE, 2 * self.in_all), _MOST_AT_ONCE)

    def _map(
        self, task: Task[Part, Result], parts: Sequence[Part], run: Run, name: str
    ) -> list[Result]:
        # Every call uses new names: Dask does not repeat a task whose name it knows.
        token = secrets.token_hex(4)
        topic = f"ldsm-progress-{token}"
        numbers = [_number(part, i) for i, part in enumerate(parts)]
        place = {number: i for i, number in enumerate(numbers)}
        found: dict[int, Result] = {}

        def note(event: tuple[float, tuple[int, int]]) -> None:
            number, done = event[1]
            if number not in found:
                run.progress[place[number]] = done

        def between() -> None:
            if run.cancelled:
                raise RuntimeError("The work was cancelled.")

        self.client.subscribe_topic(topic, note)
        try:
            with self._sent(_Work(task, parts), name) as travelling:
                futures = self.client.map(
                    partial(_on_worker, __version__, travelling, topic),
                    numbers,
                    range(len(parts)),
                    key=[f"ldsm-{name.replace(' ', '-')}-{i:05}-{token}" for i in numbers],
                )
                named = dict(zip(numbers, futures, strict=True))
                del futures  # Dask keeps a task for as long as its future is held
                tasks = results(self.client, named, name, kept=self.kept, between=between)
                for number, answer in tasks:
                    named.pop(number)
                    found[number], run.progress[place[number]] = answer
                    run.finished[place[number]] = True
        finally:
            with suppress(Exception):  # the scheduler may have exited
                self.client.unsubscribe_topic(topic)
        return [found[number] for number in numbers]

    @contextmanager
    def _sent(self, work: _Work[Part, Result], name: str) -> Iterator[Any]:
        """The work as it travels to the workers."""
        with ExitStack() as until_end:
            travelling: Any = work
            if self.folder is not None:
                try:
                    travelling = until_end.enter_context(sent(work, self.folder))
                except OSError as error:
                    raise ClusterError(
                        f"The data of {name}s cannot be written for the workers: {error}. "
                        f"{self.kept}".rstrip()
                    ) from error
            yield travelling


class _Work(NamedTuple, Generic[Part, Result]):
    """What the tasks of one map have in common: parts may hold arrays, too."""

    task: Task[Part, Result]
    parts: Sequence[Part]


def _number(part: Any, place: int) -> int:
    if isinstance(part, Numbered):
        return part.number
    return part if isinstance(part, int) else place


def _on_worker(
    version: str,
    work: _Work[Part, Result] | Sent[_Work[Part, Result]],
    topic: str,
    number: int,
    place: int,
) -> tuple[Result, int]:
    """The result and the progress of a task; an error records its worker, unlike Dask's own."""
    worker, control = get_worker(), Control.unshared()
    done = control.progress
    try:
        if version != __version__:  # it came after the workers were checked
            raise RuntimeError(f"it has ldsm {__version__}, but the driver has {version}")
        task, parts = work.opened() if isinstance(work, Sent) else work
        with at_intervals(_REPORT_SECONDS, lambda: worker.log_event(topic, (number, int(done[0])))):
            return task(parts[place], control), int(done[0])
    except Exception as error:
        vars(error)["ldsm_worker"] = worker.address
        raise
