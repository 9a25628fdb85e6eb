"""Run tasks on the workers of a cluster."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from distributed import Client, Future, get_worker

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

    def stream(
        self,
        task: Task[Part, Result],
        parts: Iterable[Part],
        *,
        name: str | None = None,
        in_memory: int | None = None,
    ) -> Iterator[Result]:
        """Parts, which may hold large arrays, are made while workers run earlier ones."""
        kind, token = name or "part", secrets.token_hex(4)
        numbered, waiting = enumerate(parts), deque[_Running]()
        most = in_memory or self.in_memory
        with self._sent(task, kind) as travelling:
            try:
                while True:
                    for place, part in islice(numbered, max(1, most - len(waiting))):
                        number, until_end = _number(part, place), ExitStack()
                        own = until_end.enter_context(self._sent(part, kind))
                        work = partial(_on_worker, __version__, travelling, None, number)
                        future = self.client.submit(work, own, key=_key(kind, number, token))
                        waiting.append(_Running(number, future, until_end))
                        del part, own, future
                        if waiting[0].future.done():
                            break
                    if not waiting:
                        return
                    number, future, until_end = waiting.popleft()
                    with until_end:
                        named = {number: future}
                        del future  # Dask keeps a task for as long as its future is held
                        ((_, answer),) = results(self.client, named, kind, kept=self.kept)
                    yield answer[0]
            finally:
                for running in waiting:
                    running.future.release()
                    running.until_end.close()

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
            with self._sent(task, name) as travelling:
                futures = self.client.map(
                    partial(_on_worker, __version__, travelling, topic),
                    numbers,
                    parts,
                    key=[_key(name, number, token) for number in numbers],
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
    def _sent(self, thing: Any, name: str) -> Iterator[Any]:
        """A task, or a part, as it travels to the workers."""
        with ExitStack() as until_end:
            if self.folder is not None:
                try:
                    thing = until_end.enter_context(sent(thing, self.folder))
                except OSError as error:
                    raise ClusterError(
                        f"The data of {name}s cannot be written for the workers: {error}. "
                        f"{self.kept}".rstrip()
                    ) from error
            yield thing


class _Running(NamedTuple):
    """A part of a stream on its way."""

    number: int
    future: Future[Any]
    until_end: ExitStack  # the files that it needs


def _number(part: Any, place: int) -> int:
    if isinstance(part, Numbered):
        return part.number
    return part if isinstance(part, int) else place


def _key(name: str, number: int, token: str) -> str:
    return f"ldsm-{name.replace(' ', '-')}-{number:05}-{token}"


def _on_worker(
    version: str,
    task: Task[Part, Result] | Sent[Task[Part, Result]],
    topic: str | None,
    number: int,
    part: Part | Sent[Part],
) -> tuple[Result, int]:
    """The result and the progress of a task; an error records its worker, unlike Dask's own."""
    worker, control = get_worker(), Control.unshared()
    done = control.progress

    def report() -> None:
        if topic is not None:
            worker.log_event(topic, (number, int(done[0])))

    try:
        if version != __version__:  # it came after the workers were checked
            raise RuntimeError(f"it has ldsm {__version__}, but the driver has {version}")
        task = task.opened() if isinstance(task, Sent) else task
        part = part.opened(once=True) if isinstance(part, Sent) else part
        with at_intervals(_REPORT_SECONDS, report):
            return task(part, control), int(done[0])
    except Exception as error:
        vars(error)["ldsm_worker"] = worker.address
        raise
