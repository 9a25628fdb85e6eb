"""Measure what hostile clients cost a service, and whether it still answers others.

    python benchmarks/serving_attacks.py [--key] [--workers 1] [--only slow-readers ...]

The attacks run in sequence against the same service, while another process checks its health ten
times a second. Afterwards, memory must be at most 1.3 times that of the idle service plus 50 MB.
Every health check must take at most 0.5 s. `charsets` sends a form of 800 kB in every charset that
Python knows; each must be refused or answered within 0.2 s.
With `--key` the service has a key, which the attackers do not have.
"""

from __future__ import annotations

import argparse
import asyncio
import encodings
import http.client
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from encodings.aliases import aliases
from pathlib import Path
from typing import Any

import numpy as np

from http_load import Served, post, serving
from ldsm import LdSMClassifier, TextTagger

TIMEOUT = 5  # seconds that the service gives a request
MOST_HEALTH, MOST_CHARSET = 0.5, 0.2  # seconds
N_LABELS, N_TEXTS = 1200, 256
MANY = 500  # connections
LIVE = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n"
PATH = "/v1/projects/tags"
# Prints how long each answer took, until its input ends.
PROBE = """
import http.client, select, sys, time
port = int(sys.argv[1])
while not select.select([sys.stdin], [], [], 0.1)[0]:
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/v2/health/live")
    assert connection.getresponse().status == 200
    connection.close()
    print(time.perf_counter() - began, flush=True)
"""

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Attack = Callable[[Served], Coroutine[Any, Any, str]]


def model(path: Path) -> None:
    """A tagger with enough labels for 1,000 per text."""
    random = np.random.default_rng(0)
    texts = [" ".join(f"word{i}" for i in random.integers(0, 3000, 12)) for _ in range(3000)]
    name = "a label with a name that is rather long, as subjects are,"
    tags = [[f"{name} {text.split()[0]} of {i % N_LABELS}"] for i, text in enumerate(texts)]
    TextTagger(LdSMClassifier(n_estimators=3, random_state=0)).fit(texts, tags).save(path)


async def opened(served: Served, n: int) -> list[Pair]:
    return [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(n)]


async def until_closed(pairs: list[Pair], send: bytes, every: float) -> int:
    """Send a byte at a time until the service has closed all connections; how many it has."""
    end, closed = time.perf_counter() + 4 * TIMEOUT + 20, set()
    while time.perf_counter() < end and len(closed) < len(pairs):
        for reader, writer in pairs:
            with suppress(OSError):
                if writer.transport.is_closing() or reader.at_eof():
                    closed.add(writer)
                elif send:
                    writer.write(send)
        await asyncio.sleep(every)
    return len(closed)


async def drained(reader: asyncio.StreamReader) -> None:
    """Read and drop what comes, so that the end of a connection is noticed."""
    with suppress(OSError):
        while await reader.read(1 << 16):
            pass


async def sent_to_many(served: Served, data: bytes, n: int, drip: bytes = b"") -> str:
    """Send something over many connections, and then a byte now and then."""
    pairs = await opened(served, n)
    reading = asyncio.gather(*(drained(reader) for reader, _ in pairs))
    writers = [writer for _, writer in pairs]
    for writer in writers:
        with suppress(OSError):
            writer.write(data)
            await asyncio.sleep(0)
    closed = await until_closed(pairs, drip, 1.0)
    for writer in writers:
        writer.transport.abort()
    await asyncio.wait_for(reading, 10)
    return f"{closed} of {n} closed by the service"


async def never_read(served: Served, data: bytes, n: int, pause: float) -> str:
    """Send something over several connections and read nothing, for a while."""
    loop, sent = asyncio.get_running_loop(), 0

    class Deaf(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            transport.pause_reading()
            transport.write(data)

    connections = [
        (await loop.create_connection(Deaf, "127.0.0.1", served.port))[0] for _ in range(n)
    ]
    peak = 0.0
    end = time.perf_counter() + pause
    while time.perf_counter() < end:
        peak = max(peak, served.memory())
        await asyncio.sleep(0.25)
    sent = sum(len(data) - one.get_write_buffer_size() for one in connections)
    after = served.memory()
    for one in connections:
        one.abort()
    return f"{sent / 1e6:.1f} MB sent; {peak:.0f} MB at most, {after:.0f} MB before we close"


async def idle(served: Served) -> str:
    return await sent_to_many(served, b"", MANY)


async def slow_heads(served: Served) -> str:
    return await sent_to_many(served, LIVE + b"X: ", MANY, b"a")


async def slow_bodies(served: Served) -> str:
    body = b"text=" + b"cod " * 200_000
    request = post(f"{PATH}/suggest", body + bytes(100_000), "application/x-www-form-urlencoded")
    return await sent_to_many(served, request[:-100_000], MANY, b"a")


async def slow_readers(served: Served) -> str:
    texts = [" ".join(f"word{(7 * i + j) % 3000}" for j in range(12)) for i in range(N_TEXTS)]
    body = json.dumps({"documents": [{"text": text} for text in texts]}).encode()
    request = post(f"{PATH}/suggest-batch?limit=1000", body, "application/json")
    return await never_read(served, request, 30, 6 * TIMEOUT)


async def pipelining(served: Served) -> str:
    return await never_read(served, (LIVE + b"\r\n") * 100_000, 10, 3 * TIMEOUT)


async def large_heads(served: Served) -> str:
    return await sent_to_many(served, LIVE + b"X: " + b"a" * 50_000_000, 5)


async def unfinished_heads(served: Served) -> str:
    return await sent_to_many(served, LIVE + b"X: " + b"a" * 60_000, MANY, b"a")


async def charsets(served: Served) -> str:
    names = {
        *aliases,
        *aliases.values(),
        *(m.name for m in pkgutil.iter_modules(encodings.__path__)),
    }
    head = b'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\n'
    body = head + b"cod-" * 200_000 + b"\r\n--x--\r\n"

    def ask(name: str) -> tuple[int, float]:
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=120)
        kind = f"multipart/form-data; boundary=x; charset={name}"
        connection.request("POST", f"{PATH}/suggest", body, {"Content-Type": kind})
        status = connection.getresponse().status
        connection.close()
        return status, time.perf_counter() - began

    found = {name: await asyncio.to_thread(ask, name) for name in sorted(names)}
    slowest = max(found, key=lambda name: found[name][1])
    statuses = sorted({status for status, _ in found.values()})
    seconds = found[slowest][1]
    return f"{len(found)} charsets: {statuses}, {seconds:.3f} s at most ({slowest})" + (
        "" if seconds <= MOST_CHARSET else " TOO SLOW"
    )


ATTACKS: dict[str, Attack] = {
    function.__name__.replace("_", "-"): function
    for function in (
        idle, slow_heads, unfinished_heads, large_heads, pipelining, slow_bodies, slow_readers,
        charsets,
    )
}  # fmt: skip


def attacked(served: Served, name: str, at_rest: float) -> bool:
    """Run one attack and print what it cost; whether that is within the limits."""
    command = [sys.executable, "-c", PROBE, str(served.port)]
    probe = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        outcome = asyncio.run(ATTACKS[name](served))
        time.sleep(TIMEOUT + 3)  # for what the service still holds
    finally:
        output, _ = probe.communicate("end\n")
    seconds = sorted(map(float, output.split()))
    memory, most = served.memory(), 1.3 * at_rest + 50
    fine = memory <= most and bool(seconds) and seconds[-1] <= MOST_HEALTH and "TOO" not in outcome
    print(
        f"| {name} | {outcome} | {memory:.0f} MB (at most {most:.0f}) | {len(seconds)} answers, "
        f"{1000 * seconds[len(seconds) // 2]:.0f} ms, {1000 * seconds[-1]:.0f} ms at most | "
        f"{'yes' if fine else 'NO'} |",
        flush=True,
    )
    return fine


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--key", action="store_true")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=[*ATTACKS], default=[*ATTACKS])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, key = Path(folder, "tags.ldsm"), Path(folder, "key")
        model(path)
        key.write_text("s3cret")
        given = ["--timeout", str(TIMEOUT), "--workers", str(options.workers)]
        with serving(
            [path], *given, *(["--api-key-file", str(key)] if options.key else [])
        ) as served:
            time.sleep(1)
            at_rest = served.memory()
            print(f"at rest: {at_rest:.0f} MB, load of the machine {os.getloadavg()[0]:.1f}")
            print("| attack | what happened | memory afterwards | health | within limits |")
            print("|---|---|---|---|---|")
            fine = [attacked(served, name, at_rest) for name in options.only]
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
