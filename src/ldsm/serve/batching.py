"""Requests that wait together are answered together.

One thread answers; while it works, requests gather, and the next batch takes all that fit. So a
single request waits for nobody, and many together cost little more than one.
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
    """Too many requests wait already."""


@dataclass
class _Waiting(Generic[Question]):
    question: Question
    answer: asyncio.Future[Any] = field(repr=False)


class Batcher(Generic[Question, Answer]):
    """Answers questions of the same kind in batches, in the order in which they came.

    `work(kind, questions)` is called in a thread, with at most `most` questions. A question that
    nobody waits for any more is left out. More than `longest` waiting ones are refused.
    """

    def __init__(
        self,
        work: Callable[[Hashable, Sequence[Question]], Sequence[Answer]],
        *,
        most: int,
        longest: int,
        told: Callable[[int], None] = lambda size: None,
    ) -> None:
        self._work, self._most, self._longest, self._told = work, most, longest, told
        self._queues: dict[Hashable, deque[_Waiting[Question]]] = {}
        self.n_waiting = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ldsm-answers")
        self._answering: asyncio.Task[None] | None = None

    async def ask_all(self, kind: Hashable, questions: Sequence[Question]) -> list[Answer]:
        """The answers; `Busy` if too many wait. Cancelled, the questions leave the queue."""
        if self.n_waiting + len(questions) > self._longest:
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
                    one.answer.exception()  # nobody will ask for it
            raise

    async def _answer_all(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._queues:
                # The kind that has waited longest.
                kind = next(iter(self._queues))
                queue = self._queues.pop(kind)
                batch = [queue.popleft() for _ in range(min(len(queue), self._most))]
                self.n_waiting -= len(batch)
                if queue:
                    self._queues[kind] = queue  # behind the others: they take turns
                batch = [waiting for waiting in batch if not waiting.answer.done()]
                if not batch:
                    continue
                self._told(len(batch))
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
        """Let the thread end once it has answered what it works on."""
        self._thread.shutdown(wait=True, cancel_futures=True)
