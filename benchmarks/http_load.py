"""HTTP clients that send requests as fast as a service answers, or at a steady rate."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode


def suggest_request(model: str, text: str, limit: int = 5) -> bytes:
    """A request for the tags of a text, as Annif's clients send it."""
    body = urlencode({"text": text, "limit": limit}).encode()
    return post(f"/v1/projects/{model}/suggest", body, "application/x-www-form-urlencoded")


def learn_request(model: str, text: str, tags: Sequence[str]) -> bytes:
    """A correction."""
    subjects = [{"label": tag} for tag in tags]
    body = json.dumps([{"text": text, "subjects": subjects}]).encode()
    return post(f"/v1/projects/{model}/learn", body, "application/json")


def post(path: str, body: bytes, kind: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Connection(asyncio.Protocol):
    """One connection, kept open; answers one request after the other."""

    def __init__(self) -> None:
        self._data = b""
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self._data += data
        head = self._data.find(b"\r\n\r\n")
        if head < 0 or self._answer is None:
            return
        found = re.search(rb"content-length: (\d+)", self._data[:head], re.IGNORECASE)
        end = head + 4 + (int(found[1]) if found else 0)
        if len(self._data) >= end:
            body, status = self._data[head + 4 : end], int(self._data[9:12])
            self._data = self._data[end:]
            self._answer.set_result((status, body))

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("closed"))

    @property
    def is_closed(self) -> bool:
        return bool(self._transport.is_closing())

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        if self.is_closed:
            raise ConnectionResetError("closed")
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        self._transport.close()


async def connect(port: int) -> Connection:
    _, connection = await asyncio.get_running_loop().create_connection(
        Connection, "127.0.0.1", port
    )
    return connection


Seen = Callable[[int, int, bytes, float], None]  # number of the request, status, body, seconds


async def hammer(
    port: int, requests: Sequence[bytes], clients: int, seconds: float, seen: Seen
) -> float:
    """Ask by many clients at once, each as soon as it has its answer; answers per second."""
    numbers, done = iter(range(10**9)), 0
    end = time.perf_counter() + seconds

    async def client() -> None:
        nonlocal done
        connection = await connect(port)
        while (now := time.perf_counter()) < end:
            number = next(numbers) % len(requests)
            status, body = await connection.ask(requests[number])
            seen(number, status, body, time.perf_counter() - now)
            done += 1
        connection.close()

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return done / (time.perf_counter() - started)


async def steady(
    port: int, requests: Sequence[bytes], rate: float, seconds: float, seen: Seen
) -> None:
    """Ask at a rate, whether or not there are answers; times count from when it was due."""
    free: list[Connection] = []
    started = time.perf_counter()

    async def one(number: int, due: float) -> None:
        while free and free[-1].is_closed:
            free.pop()  # the service closes those that are idle
        connection = free.pop() if free else await connect(port)
        status, body = await connection.ask(requests[number])
        seen(number, status, body, time.perf_counter() - due)
        free.append(connection)

    tasks = set()
    for number in range(int(rate * seconds)):
        due = started + number / rate
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        task = asyncio.create_task(one(number % len(requests), due))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    for connection in free:
        connection.close()


# -- the service ------------------------------------------------------------------------------


class Served:
    """A service that runs in processes of its own."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self.port = process, port

    def get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return answer.read()

    def workers(self) -> list[int]:
        """The processes that answer: children, or the process itself if it has none."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        pids = [int(pid) for pid in children.split()]
        return [pid for pid in pids if b"resource_tracker" not in _command(pid)] or [
            self.process.pid
        ]

    def cpu_seconds(self) -> float:
        """Processor time of all workers."""
        ticks = 0
        for pid in self.workers():
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Memory of all workers in MB, where what they share counts once."""
        total = 0
        for pid in self.workers():
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1])
        return total / 1000


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@contextmanager
def serving(models: Sequence[Path], *options: str) -> Iterator[Served]:
    """A service with these models, ready to answer."""
    command = [sys.executable, "-m", "ldsm", "serve", *map(str, models), "--port", "0", "--json"]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        served = Served(process, int(json.loads(line)["address"].rsplit(":", 1)[1].rstrip("/")))
        for _ in range(600):
            try:
                served.get("/v2/health/ready")
                break
            except OSError:
                time.sleep(0.02)
        yield served
    finally:
        process.terminate()
        process.wait(60)
