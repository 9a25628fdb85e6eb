"""Questions that wait together are answered together."""

import asyncio
import threading

import pytest

from ldsm.serve.batching import Batcher, Busy
from patience import PATIENCE


class Work:
    """Answers questions by doubling them; stops at a gate until it is opened."""

    def __init__(self, open_gate=True):
        self.batches = []
        self.begun = threading.Event()
        self.gate = threading.Event()
        if open_gate:
            self.gate.set()

    def __call__(self, kind, questions):
        self.begun.set()
        assert self.gate.wait(PATIENCE)
        self.batches.append((kind, list(questions)))
        if "bad" in questions:
            raise ValueError("a bad question")
        return [2 * question for question in questions]


async def begun(work, batcher):
    """A batch under way, behind which others wait."""
    first = asyncio.create_task(batcher.ask_all("k", ["first"]))
    await asyncio.to_thread(work.begun.wait)
    return first


def run(scenario, *, most=10, longest=100, open_gate=False):
    work = Work(open_gate)
    batcher = Batcher(work, max_batch=most, max_waiting=longest)
    try:
        asyncio.run(scenario(work, batcher))
    finally:
        work.gate.set()
        batcher.close()
    return work


def test_single_question():
    async def scenario(work, batcher):
        assert await batcher.ask_all("k", ["a"]) == ["aa"]
        assert await batcher.ask_all("k", []) == []

    run(scenario, open_gate=True)


def test_waiting_questions_are_batched():
    async def scenario(work, batcher):
        first = await begun(work, batcher)
        others = [asyncio.create_task(batcher.ask_all("k", [str(i)])) for i in range(7)]
        await asyncio.sleep(0)
        work.gate.set()
        assert [await one for one in others] == [[f"{i}{i}"] for i in range(7)]
        await first

    work = run(scenario, most=5)
    assert [len(questions) for _, questions in work.batches] == [1, 5, 2]


def test_kinds_take_turns():
    async def scenario(work, batcher):
        first = await begun(work, batcher)
        many = asyncio.create_task(batcher.ask_all("many", [str(i) for i in range(9)]))
        await asyncio.sleep(0)
        few = asyncio.create_task(batcher.ask_all("few", ["x"]))
        await asyncio.sleep(0)
        work.gate.set()
        await asyncio.gather(first, many, few)

    work = run(scenario, most=3)
    assert [kind for kind, _ in work.batches] == ["k", "many", "few", "many", "many"]


def test_full_queue_refuses():
    async def scenario(work, batcher):
        first = await begun(work, batcher)
        waiting = asyncio.create_task(batcher.ask_all("k", ["a", "b"]))
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await batcher.ask_all("k", ["c", "d"])
        work.gate.set()
        await asyncio.gather(first, waiting)
        assert batcher.n_waiting == 0
        assert await batcher.ask_all("k", ["c", "d", "e"]) == ["cc", "dd", "ee"]

    run(scenario, longest=3)


def test_cancelled_question_is_dropped():
    async def scenario(work, batcher):
        first = await begun(work, batcher)
        given_up = asyncio.create_task(batcher.ask_all("k", ["gone"]))
        kept = asyncio.create_task(batcher.ask_all("k", ["kept"]))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.sleep(0)
        work.gate.set()
        assert await kept == ["keptkept"]
        await first

    work = run(scenario)
    assert work.batches[-1] == ("k", ["kept"])


def test_errors_reach_their_batch():
    async def scenario(work, batcher):
        for questions in (["bad"], ["bad", "b"]):
            with pytest.raises(ValueError, match="a bad question"):
                await batcher.ask_all("k", questions)
        assert await batcher.ask_all("k", ["a"]) == ["aa"]

    run(scenario, open_gate=True)
