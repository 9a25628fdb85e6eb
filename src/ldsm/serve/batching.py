"""Answer waiting requests in batches.

One thread answers. While it works, requests queue up, and the next batch takes all that fit. A
lone request is answered immediately, and many requests cost little more than one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Busy(Exception):
    """Too many requests are waiting."""


@dataclass
class _Waiting(Generic[Question]):
    question: Question
    answer: asyncio.Future[Any] = field(repr=False)


class Batcher(Generic[Question, Answer]):
    """Answers questions of the same kind in batches, in order of arrival.

    `work(kind, questions)` is called in a thread, with at most `max_batch` questions. Cancelled
    questions are dropped. Questions beyond `max_waiting` are refused. `on_batch` is called with the
    size of each batch.
    """

    def __init__(
        self,
        work: Callable[[Hashable, Sequence[Question]], Sequence[Answer]],
        *,
        max_batch: int,
        max_waiting: int,
        on_batch: Callable[[int], None] = lambda size: None,
    ) -> None:
        self._work, self._on_batch = work, on_batch
        self._max_batch, self._max_waiting = max_batch, max_waiting
        self._queues: dict[Hashable, deque[_Waiting[Question]]] = {}
        self.n_waiting = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ldsm-answers")
        self._answering: asyncio.Task[None] | None = None

    async def ask_all(self, kind: Hashable, questions: Sequence[Question]) -> list[Answer]:
        """The answers; raises `Busy` if too many wait. If cancelled, the questions are dropped."""
        if self.n_waiting + len(questions) > self._max_waiting:
            raise Busy
        loop = asyncio.get_running_loop()
        waiting = [_Waiting(question, loop.create_future()) for question in questions]
        self._queues.setdefault(kind, deque()).extend(waiting)
        self.n_waiting += len(waiting)
        if self._answering is None:
            self._answering = asyncio.create_task(self._answer_all())
        try:
            return [await one.answer for one in waiting]
        except BaseException:
            for one in waiting:
                if not one.answer.cancel() and not one.answer.cancelled():
                    one.answer.exception()  # mark it as retrieved
            raise

    async def _answer_all(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._queues:
                # The kind that has waited longest.
                kind = next(iter(self._queues))
                queue = self._queues.pop(kind)
                batch = [queue.popleft() for _ in range(min(len(queue), self._max_batch))]
                self.n_waiting -= len(batch)
                if queue:
                    self._queues[kind] = queue  # behind the others, so that kinds take turns
                batch = [waiting for waiting in batch if not waiting.answer.done()]
                if not batch:
                    continue
                self._on_batch(len(batch))
                questions = [waiting.question for waiting in batch]
                try:
                    answers = await loop.run_in_executor(self._thread, self._work, kind, questions)
                except Exception as error:
                    for waiting in batch:
                        if not waiting.answer.done():
                            waiting.answer.set_exception(error)
                    continue
                for waiting, answer in zip(batch, answers, strict=True):
                    if not waiting.answer.done():
                        waiting.answer.set_result(answer)
        finally:
            self._answering = None

    def close(self) -> None:
        """Stop the thread after its current batch."""
        self._thread.shutdown(wait=True, cancel_futures=True)
