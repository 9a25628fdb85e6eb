"""Services for tests: small models, an application on a real socket, or a process of its own."""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
import urllib.parse
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import uvicorn

from ldsm import LdSMClassifier, TextTagger
from ldsm.serve.http.protocol import LimitedProtocol
from ldsm.serve.run import listening
from patience import PATIENCE

SCRIPT = "<script>alert(1)</script>"
TOPICS = {
    "fish": ["cod", "herring", "trawler", "catch", "quota", "net"],
    "meat": ["beef", "pork", "slaughter", "veal", "butcher", "steak"],
    "law": ["court", "statute", "appeal", "judge", "verdict", "clause"],
    "trade": ["import", "export", "tariff", "customs", "market", "freight"],
    "weather": ["storm", "rain", "cloud", "frost", "thunder", "wind"],
    SCRIPT: ["browser", "cookie", "pixel", "cursor", "widget", "banner"],
}
COMMON = ["the", "of", "and", "report", "new", "year"]


def documents(n_texts: int = 600, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Texts about one or two topics each, and these topics."""
    random = np.random.default_rng(seed)
    texts, tags = [], []
    for _ in range(n_texts):
        own = [str(one) for one in random.choice([*TOPICS], random.integers(1, 3), replace=False)]
        words = [word for topic in own for word in random.choice(TOPICS[topic], 4)]
        words += list(random.choice(COMMON, 4))
        random.shuffle(words)
        texts.append(" ".join(map(str, words)))
        tags.append(own)
    return texts, tags


def small_tagger(seed: int = 0) -> TextTagger:
    """A tagger with a second stage, in a fraction of a second."""
    return TextTagger(LdSMClassifier(n_estimators=5, random_state=seed)).fit(*documents())


@dataclass(frozen=True)
class Answer:
    """What a service has answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


class Client:
    """Asks a service on this machine."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **query: Any) -> Answer:
        return self.ask("GET", path + ("?" + urllib.parse.urlencode(query) if query else ""))

    def form(self, path: str, **fields: Any) -> Answer:
        kind = "application/x-www-form-urlencoded"
        return self.ask("POST", path, urllib.parse.urlencode(fields), content_type=kind)

    def post(self, path: str, value: Any) -> Answer:
        return self.ask("POST", path, json.dumps(value), content_type="application/json")


@contextmanager
def running(app: Any):
    """The application in a thread of this process."""
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, http=LimitedProtocol, ws="none"))
    with listening("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.005)
            yield Client(listener.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()


class Process(Client):
    """A service in processes of its own."""

    def __init__(self, *arguments: Any) -> None:
        command = [sys.executable, "-m", "ldsm", "serve", *map(str, arguments), "--json"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        if not line:
            _, errors = self.process.communicate()
            raise RuntimeError(errors)
        self.address = json.loads(line)["address"]
        super().__init__(urllib.parse.urlsplit(self.address).port)
        try:
            self.wait_until_ready()
        except BaseException:
            self.stop(kill=True)
            raise

    def wait_until_ready(self, seconds: float = PATIENCE) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if self.get("/v2/health/ready").status == 200:
                    return
            except OSError:
                time.sleep(0.02)
        raise TimeoutError("the service does not answer")

    def workers(self) -> list[int]:
        """Its child processes that answer requests."""
        pid = self.process.pid
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                children = [int(child) for child in file.read().split()]
        except OSError:  # it has ended, or this is not Linux
            return []
        return [child for child in children if not _tracks_resources(child)]

    def stop(self, kill: bool = False) -> tuple[int, str]:
        """End it; its exit code and what it has logged."""
        workers = self.workers()
        if kill:  # itself first, because it replaces workers that end
            self.process.kill()
            self._kill(workers)
        else:
            self.process.terminate()
        try:
            _, errors = self.process.communicate(timeout=PATIENCE)
        except BaseException:
            self.process.kill()
            self._kill(workers)
            self.process.wait()
            raise
        return self.process.returncode, errors

    def _kill(self, workers: list[int]) -> None:
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker, 9)


def _tracks_resources(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"resource_tracker" in file.read()
    except OSError:
        return True


@contextmanager
def service(*arguments: Any):
    """A service in processes of its own."""
    process = Process(*arguments)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.stop()
        process.process.stdout.close()
        process.process.stderr.close()
