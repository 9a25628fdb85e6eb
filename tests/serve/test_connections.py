"""Limits of a single connection: heads, queued requests, unread answers."""

import re
import select
import socket
import threading
from contextlib import suppress

import pytest
from fastapi import Response

from ldsm.serve import Settings, create_app
from ldsm.serve.http import protocol
from ldsm.serve.http.protocol import HttpToolsProtocol, LimitedProtocol, check_uvicorn
from services import Client, running

LIVE = "/v2/health/live"
LARGE = 32_000_000  # bytes; more than the system keeps for a connection
SECONDS = 60


def connect(client: Client) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", client.port), timeout=SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def until_closed(connection: socket.socket) -> bytes:
    answer = b""
    try:
        while part := connection.recv(1 << 20):
            answer += part
    except ConnectionResetError:
        pass
    return answer


def exchange(client: Client, data: bytes) -> bytes:
    """What comes back for these bytes until the connection is closed."""
    with connect(client) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before all was sent
            connection.sendall(data)
        return until_closed(connection)


def get(path: str = LIVE, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def statuses(answer: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", answer)]


def is_cut_off(connection: socket.socket) -> bool:
    """Whether the other side closes the connection, although nothing is read."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    return bool(poll.poll(SECONDS * 1000))


CLOSE = "Connection: close"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (get(LIVE, "X: " + "a" * 60_000, CLOSE), 200),
        (get(LIVE, "X: " + "a" * 66_000, CLOSE), 431),
        (get(LIVE, "X: " + "a" * 5_000_000, CLOSE), 431),
        (get(LIVE, *(f"X{i}: {'a' * 1000}" for i in range(60)), CLOSE), 200),
        (get(LIVE, *(f"X{i}: {'a' * 1000}" for i in range(70)), CLOSE), 431),
        (get(LIVE, *["X: a"] * 90, CLOSE), 200),
        (get(LIVE, *["X: a"] * 110, CLOSE), 431),
        (get(f"{LIVE}?{'a' * 60_000}", CLOSE), 200),
        (get(f"{LIVE}?{'a' * 66_000}", CLOSE), 431),
        (get()[:-4] + b"\r\nX: " + b"a" * 100_000, 431),  # it does not end
        (get()[:-4] + b"\r\n" + b"a" * 100_000, 431),
        (b"\r\n" * 100_000, 431),
        (b"GET " + b"a" * 100_000, 431),
        (b"nonsense\r\n\r\n", 400),
    ],
)
def test_size_of_heads(client, head, status):
    assert statuses(exchange(client, head)) == [status]


def test_head_limits_per_request(client):
    small, large = get(), get(LIVE, "X: " + "a" * 70_000)
    # In one go: the first is answered. If it is not yet when the second turns out to be too large,
    # the connection ends with that answer.
    assert statuses(exchange(client, small + large)) in ([200], [200, 431])
    with connect(client) as connection:
        connection.sendall(small)
        answer = b""
        while b'{"live":true}' not in answer:
            answer += connection.recv(4096)
        connection.sendall(large)
        assert statuses(until_closed(connection)) == [431]
    # Small heads do not add up.
    many = get(LIVE, "X: " + "a" * 30_000) * 4 + get(LIVE, CLOSE)
    assert statuses(exchange(client, many)) == [200] * 5


def chunked(path: str, *trailers: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    body = "2\r\n{}\r\n0\r\n" + "".join(f"{line}\r\n" for line in trailers)
    return f"{head}Transfer-Encoding: chunked\r\n{CLOSE}\r\n\r\n{body}\r\n".encode()


def test_trailers_are_not_headers(model_file, tmp_path):
    (tmp_path / "key").write_text("s3cret")
    with running(create_app([model_file], Settings(api_key_file=tmp_path / "key"))) as client:
        data = chunked("/v1/projects/tags/suggest-batch", "X-API-Key: s3cret")
        assert statuses(exchange(client, data)) == [401]


@pytest.mark.parametrize("data", [b"X: " + b"a" * 100_000, b"X: a\r\n" * 200])
def test_size_of_trailers(client, data):
    start = chunked("/v1/projects/tags/suggest-batch")[:-2]
    assert statuses(exchange(client, start + data))[0] in (422, 431)


def test_invalid_body_refused(client):
    data = chunked("/v1/projects/tags/suggest-batch").replace(b"2\r\n{}", b"no\r\n{}")
    assert statuses(exchange(client, data)) == [400]
    assert client.get(LIVE).status == 200


def test_pipelined_requests(client):
    paths = [LIVE, "/nowhere", "/v2", "/v1/projects", "/v2/health/ready"]
    answer = exchange(client, b"".join(map(get, paths)) + get(LIVE, CLOSE))
    assert statuses(answer) == [200, 404, 200, 200, 200, 200]


def test_long_queue_is_cut(client):
    """Those in the queue are answered, and no more."""
    answer = exchange(client, get() * 20_000)
    found = statuses(answer)
    assert 1 <= len(found) <= 2 + protocol.MAX_QUEUED and set(found) == {200}
    assert answer.endswith(b'{"live":true}')
    assert client.get(LIVE).status == 200


def test_queued_requests_end_with_their_connection(model_file, monkeypatch):
    lost = []

    class Watched(LimitedProtocol):
        def connection_lost(self, exc):
            queued = len(self.pipeline)
            super().connection_lost(exc)
            lost.append((queued, len(self.pipeline)))

    monkeypatch.setattr("services.LimitedProtocol", Watched)
    app, started, may_end = create_app([model_file]), threading.Event(), threading.Event()

    @app.get("/waits")
    def waits():
        started.set()
        assert may_end.wait(SECONDS)

    with running(app) as client:
        try:
            with connect(client) as connection:
                connection.sendall(get("/waits") + get() * 5)
                assert started.wait(SECONDS)
        finally:
            may_end.set()
    assert lost[0] == (5, 0)


def large_answers(model_file, timeout: float):
    app = create_app([model_file], Settings(timeout=timeout))
    app.get("/large")(lambda: Response(bytes(LARGE), media_type="text/plain"))
    return running(app)


def test_unread_answers_are_dropped(model_file):
    with large_answers(model_file, timeout=0.5) as client:
        for headers in ((), (CLOSE,)):
            with connect(client) as connection:
                connection.sendall(get("/large", *headers))
                assert is_cut_off(connection)
                assert len(until_closed(connection)) < LARGE
        with connect(client) as connection:  # nor do their requests wait for ever
            connection.sendall(get("/large") * 5)
            assert is_cut_off(connection)
        assert not protocol.slow_readers


def test_stuck_transport_is_dropped(model_file, monkeypatch):
    """A few bytes do not make it ask for a pause; closing it would wait for its reader."""

    class Patient(LimitedProtocol):
        def connection_made(self, transport):
            super().connection_made(transport)
            transport.set_write_buffer_limits(2 * LARGE)

    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr("services.LimitedProtocol", Patient)
    with large_answers(model_file, timeout=SECONDS) as client, connect(client) as connection:
        connection.sendall(get("/large"))
        assert is_cut_off(connection)
        assert len(until_closed(connection)) < LARGE


@pytest.mark.linux
def test_small_send_buffer(model_file):
    with large_answers(model_file, timeout=SECONDS) as client, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.settimeout(SECONDS)
        connection.connect(("127.0.0.1", client.port))
        connection.sendall(get("/large"))
        connection.recv(1)
        for _ in range(3):  # it has sent what it can by the time that others are answered
            assert client.get(LIVE).status == 200
        (slow,) = protocol.slow_readers
        assert LARGE - slow.transport.get_write_buffer_size() < 1_500_000


def test_unread_answers_have_a_limit_together(model_file, monkeypatch):
    monkeypatch.setattr(protocol, "MAX_UNREAD", 3 * LARGE)
    with large_answers(model_file, timeout=SECONDS) as client:
        connections = [connect(client) for _ in range(6)]
        try:
            for connection in connections:
                connection.sendall(get("/large"))
                assert connection.recv(1)
            # The oldest are cut off; the last can still be read.
            assert is_cut_off(connections[0]) and is_cut_off(connections[1])
            n_bytes = 0
            while n_bytes < LARGE:
                part = connections[-1].recv(1 << 20)
                assert part
                n_bytes += len(part)
        finally:
            for connection in connections:
                connection.close()


def test_incompatible_uvicorn():
    class Changed(HttpToolsProtocol):
        on_header = None

        def __init__(self):
            self.loop = self.transport = self.flow = self.cycle = self.app_state = None

    with pytest.raises(ImportError, match=r"HttpToolsProtocol has no on_header, pipeline\."):
        check_uvicorn(Changed)
