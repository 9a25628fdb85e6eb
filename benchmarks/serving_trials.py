"""Test a service under load with faults: no wrong answer, and no lost correction.

    python benchmarks/serving_trials.py soak [--minutes 10]
    python benchmarks/serving_trials.py kill [--times 10]
    python benchmarks/serving_trials.py start

`soak`: two processes, 32 clients; of 100 requests one is broken: bad JSON, a body that is too
large, a client that sends slowly, a socket that is closed; every 10 seconds the model's file is
replaced by another one. Every answer must be that of one of the two models, to the last digit, and
of the new one if the request was sent after the file was replaced. `kill`: with --learn; one of two
processes is killed, again and again. `start`: a model of 1 GB, from the start of the process to its
first answer.

The models are taggers of EURLEX57K, trained first unless build/serving has them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import data
import ldsm
from http_load import Served, connect, learn_request, post, serving, suggest_request
from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm.text.fitted import fitted_text

CLIENTS = 32
N_TEXTS = 400
BROKEN = 0.01
RELOAD_EVERY = 10.0  # seconds
CORRECT_EVERY = 0.25
FOLDER = Path("build/serving")
NAME = "tags"


def models() -> tuple[list[Path], list[str]]:
    """Two models that answer differently, and texts to ask them."""
    train, test = (
        datasets.load_jsonl(data.folder() / f"eurlex57k_{part}.jsonl.gz")
        for part in ("train", "test")
    )
    FOLDER.mkdir(parents=True, exist_ok=True)
    paths = [FOLDER / f"{name}.ldsm" for name in ("all", "half")]
    for path, part in zip(paths, (train, train.select(range(0, len(train), 2))), strict=True):
        if not path.exists():
            TextTagger(LdSMClassifier(n_jobs=-1, random_state=0)).fit(part).save(path)
    return paths, list(test.texts[:N_TEXTS])


class Load:
    """Clients, the answers they got, and the errors in these."""

    def __init__(self, served: Served, expected: list[list[Any]], requests: list[bytes]) -> None:
        self.served, self.expected, self.requests = served, expected, requests
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.kept: list[str] = []  # corrections that were acknowledged
        self.current = 0  # the model that requests are answered by from now on
        self.replaced_at = 0.0
        self.last_answer = time.perf_counter()
        self.longest_gap = 0.0
        self.stop = False

    async def client(self, seed: int) -> None:
        choose = random.Random(seed)
        connection = None
        while not self.stop:
            try:
                connection = connection or await connect(self.served.port)
                if choose.random() < BROKEN:
                    await self.broken(choose)
                else:
                    await self.proper(connection, choose.randrange(len(self.requests)))
            except OSError:
                connection = None
                self.counts["connection lost"] += 1
                await asyncio.sleep(0.05)

    async def proper(self, connection: Any, number: int) -> None:
        sent, allowed = time.perf_counter(), [self.current]
        status, body = await connection.ask(self.requests[number])
        now = time.perf_counter()
        self.longest_gap = max(self.longest_gap, now - self.last_answer)
        self.last_answer = now
        self.counts[str(status)] += 1
        if status in (429, 503):
            return
        if self.replaced_at > sent:  # it was under way when the file was replaced
            allowed = [0, 1]
        found = [(one["uri"], one["score"]) for one in json.loads(body).get("results", [])]
        if found not in [self.expected[model][number] for model in allowed]:
            self.wrong.append(f"text {number}, status {status}: {body[:200]!r}")

    async def broken(self, choose: random.Random) -> None:
        kind = choose.choice(["bad JSON", "too large", "slow", "closed"])
        self.counts[kind] += 1
        path = f"/v1/projects/{NAME}"
        reader, writer = await asyncio.open_connection("127.0.0.1", self.served.port)
        try:
            if kind == "bad JSON":
                writer.write(post(f"{path}/suggest-batch", b'{"documents": [', "application/json"))
                self.expect(await reader.readline(), b" 422 ")
            elif kind == "too large":
                head = (
                    f"POST {path}/suggest HTTP/1.1\r\nHost: x\r\nContent-Length: 99000000\r\n\r\n"
                )
                writer.write(head.encode() + b"x" * 100_000)
                self.expect(await reader.readline(), b" 413 ")
            elif kind == "slow":
                request = self.requests[0]
                for start in range(0, 200, 20):
                    writer.write(request[start : start + 20])
                    await asyncio.sleep(0.3)
                writer.write(request[200:])
                self.expect(await reader.readline(), b" 200 ")
            else:
                writer.write(self.requests[0][: choose.randrange(1, 400)])
                await writer.drain()
        except OSError:
            self.counts["broken one was cut off"] += 1
        finally:
            writer.close()

    def expect(self, line: bytes, status: bytes) -> None:
        if not line:
            self.counts["broken one was cut off"] += 1  # its process was killed
        elif status not in line and b" 503 " not in line:
            self.wrong.append(f"expected{status.decode()}, got {line!r}")

    async def corrector(self) -> None:
        number = 0
        connection = None
        while not self.stop:
            text = f"correction number {number} of cod and herring"
            try:
                connection = connection or await connect(self.served.port)
                status, _ = await connection.ask(learn_request(NAME, text, ["sea fish"]))
                if status == 204:
                    self.kept.append(text)
                    number += 1
            except OSError:
                connection = None
                number += 1  # it may be on the disk or not
            await asyncio.sleep(CORRECT_EVERY)

    def lost(self, model: Path) -> int:
        """Corrections that were acknowledged, but are not in the file."""
        file = model.with_name(f"{NAME}.corrections.jsonl")
        there = {text for text, _ in datasets.iter_jsonl(file)}
        return len(set(self.kept) - there)


async def under_load(load: Load, trial: Callable[[], Any]) -> None:
    """Run a trial while the clients ask."""
    tasks = [asyncio.create_task(load.client(i)) for i in range(CLIENTS)]
    tasks.append(asyncio.create_task(load.corrector()))
    await trial()
    load.stop = True
    await asyncio.gather(*tasks)


def soak(minutes: float) -> None:
    (whole, half), texts = models()
    expected = [ldsm.load(path).predict(texts, 5) for path in (whole, half)]
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, f"{NAME}.ldsm")
        shutil.copy(whole, model)
        with serving([model], "--workers", "2") as served:
            load = Load(served, expected, [suggest_request(NAME, text) for text in texts])
            memory = []

            async def trial() -> None:
                end = time.perf_counter() + 60 * minutes
                while time.perf_counter() < end:
                    await asyncio.sleep(RELOAD_EVERY)
                    other = 1 - load.current
                    new = model.with_suffix(".new")
                    shutil.copy((whole, half)[other], new)
                    os.replace(new, model)
                    load.replaced_at, load.current = time.perf_counter(), other
                    memory.append(served.memory())
                    print(f"{memory[-1]:.0f} MB, {load.counts['200']:,} answers, "
                          f"{len(load.wrong)} wrong", flush=True)  # fmt: skip

            asyncio.run(under_load(load, trial))
        early, late = (np.mean(part) for part in (memory[len(memory) // 5 :][:6], memory[-6:]))
        report(load, model)
        print(f"memory: {early:.0f} MB after a fifth of the time, {late:.0f} MB at the end, "
              f"{100 * (late / early - 1):+.1f} %")  # fmt: skip


def kill(times: int) -> None:
    (whole, _), texts = models()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, f"{NAME}.ldsm")
        shutil.copy(whole, model)
        with serving([model], "--workers", "2", "--learn") as served:
            requests = [suggest_request(NAME, text) for text in texts]
            load = Load(served, [], requests)
            load.proper = lambda connection, number: answered(load, connection, number)
            longest = []

            async def trial() -> None:
                await asyncio.sleep(3)
                for _ in range(times):
                    workers = served.workers()
                    load.longest_gap = 0.0
                    os.kill(random.choice(workers), signal.SIGKILL)
                    await asyncio.sleep(4)
                    while len(served.workers()) < 2:
                        await asyncio.sleep(0.1)
                    longest.append(max(load.longest_gap, time.perf_counter() - load.last_answer))
                    print(f"no answer for {longest[-1]:.2f} s at most", flush=True)
                    await asyncio.sleep(2)

            asyncio.run(under_load(load, trial))
        report(load, model)
        training = ldsm.load(model).classifier_.training_
        learned = sum(entry["learned"] for entry in training["history"])
        print(
            f"longest time without an answer: {max(longest):.2f} s; {learned} corrections learned"
        )


async def answered(load: Load, connection: Any, number: int) -> None:
    """With --learn, answers change all the time: only that there is one counts."""
    status, _ = await connection.ask(load.requests[number])
    now = time.perf_counter()
    load.longest_gap = max(load.longest_gap, now - load.last_answer)
    load.last_answer = now
    load.counts[str(status)] += 1


def report(load: Load, model: Path) -> None:
    print(dict(load.counts))
    print(f"wrong: {len(load.wrong)} {load.wrong[:3]}")
    print(f"corrections: {len(load.kept)} acknowledged, {load.lost(model)} lost")


def start() -> None:
    (whole, _), _ = models()
    with tempfile.TemporaryDirectory() as folder:
        for path in (whole, padded(whole, Path(folder, "large.ldsm"))):
            ldsm.load(path, verify=False)  # from the disk into memory, as far as it is used
            for _ in range(3):
                began = time.perf_counter()
                with serving([path]):
                    ready = time.perf_counter() - began
                    print(f"{path.stat().st_size / 1e6:.0f} MB: ready after {ready:.2f} s")


def padded(path: Path, large: Path) -> Path:
    """A model of 1 GB: the same trees over and over."""
    tagger = ldsm.load(path)
    classifier = fitted_text(tagger).classifier
    forest = classifier.model_.forest
    while forest.nbytes < 1e9:
        forest = forest.extended(forest)
    classifier.model_ = replace(classifier.model_, forest=forest)
    tagger.save(large)
    return large


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("trial", choices=["soak", "kill", "start"])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--times", type=int, default=10)
    options = parser.parse_args()
    if options.trial == "soak":
        soak(options.minutes)
    elif options.trial == "kill":
        kill(options.times)
    else:
        start()


if __name__ == "__main__":
    main()
