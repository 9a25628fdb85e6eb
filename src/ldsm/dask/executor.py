"""Run tasks on the workers of a cluster."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial

from distributed import Client, get_worker

from .._execution.executor import Control, Executor, Part, Result, Run, Task
from .._execution.threads import at_intervals
from .._storage.tasks.sharing import Sent, sent
from .tasks import ANSWER_SECONDS, results
from .workers import most_threads

_REPORT_SECONDS = 2.0  # between two progress messages of a task


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

    def _map(
        self, task: Task[Part, Result], parts: Sequence[Part], run: Run, name: str
    ) -> list[Result]:
        # Every call uses new names: Dask does not repeat a task whose name it knows.
        token = secrets.token_hex(4)
        topic = f"ldsm-progress-{token}"
        numbers = [part if isinstance(part, int) else i for i, part in enumerate(parts)]
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
        sending = nullcontext(task) if self.folder is None else sent(task, self.folder)
        try:
            with sending as travelling:
                futures = self.client.map(
                    partial(_on_worker, travelling, topic),
                    numbers,
                    parts,
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


def _on_worker(
    sent_task: Task[Part, Result] | Sent[Task[Part, Result]], topic: str, number: int, part: Part
) -> tuple[Result, int]:
    """The result and the progress of a task; an error records its worker, unlike Dask's own."""
    worker, control = get_worker(), Control.unshared()
    done = control.progress
    try:
        task = sent_task.opened() if isinstance(sent_task, Sent) else sent_task
        with at_intervals(_REPORT_SECONDS, lambda: worker.log_event(topic, (number, int(done[0])))):
            return task(part, control), int(done[0])
    except Exception as error:
        vars(error)["ldsm_worker"] = worker.address
        raise
