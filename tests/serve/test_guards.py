"""Checks of every request: size, key, time, number; and what browsers may do."""

import logging
import select
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from fastapi import FastAPI

from ldsm.serve import Settings, create_app
from ldsm.serve import service as service_module
from ldsm.serve.http import guards, protocol
from patience import PATIENCE, wait_until
from services import Client, documents, running

TAGS = "/v1/projects/tags"


def raw(client: Client, data: bytes, seconds: float = PATIENCE) -> bytes:
    """What comes back for these bytes, until the other side closes or is silent."""
    with socket.create_connection(("127.0.0.1", client.port), timeout=seconds) as connection:
        connection.sendall(data)
        answer = b""
        try:
            while part := connection.recv(65536):
                answer += part
                if b"\r\n\r\n" in answer and b"}" in answer:
                    break
        except (TimeoutError, ConnectionResetError):
            pass
        return answer


def test_large_bodies_are_refused(model_file):
    with running(create_app([model_file], Settings(max_body=1000))) as client:
        answer = client.form(f"{TAGS}/suggest", text="cod " * 1000)
        assert answer.status == 413
        assert answer.json["title"] == "A request may have at most 1,000 bytes."
        assert client.form(f"{TAGS}/suggest", text="cod " * 100).status == 200
        # Without a length, before it is all read.
        head = f"POST {TAGS}/suggest HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
        kind = "Content-Type: application/x-www-form-urlencoded\r\n\r\n"
        chunk = b"200\r\n" + b"x" * 512 + b"\r\n"
        assert b" 413 " in raw(client, (head + kind).encode() + 4 * chunk)
        # One that has sent much before it looks at the answer can still read it.
        assert client.form(f"{TAGS}/suggest", text="cod " * 2000).status == 413
        head = f"POST {TAGS}/suggest HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n"
        assert b"200 OK" not in raw(client, head.encode())


def test_bodies_have_a_limit_together(model_file, monkeypatch):
    """The slowest make room; the others are answered."""
    monkeypatch.setattr(guards, "MAX_BODIES", 4000)
    head = f"POST {TAGS}/suggest HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
    kind = "Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\n\r\n"
    with running(create_app([model_file], Settings(max_body=1000))) as client, ExitStack() as stack:
        connections = []
        for _ in range(6):
            address = ("127.0.0.1", client.port)
            connections.append(
                stack.enter_context(socket.create_connection(address, timeout=PATIENCE))
            )
            connections[-1].sendall((head + kind).encode() + b"text=" + b"x" * 895)
        refused = set()
        while len(refused) < 2:
            refused |= set(select.select(connections, [], [], PATIENCE)[0])
        for connection in connections:
            if connection not in refused:
                connection.sendall(b"x" * 100)
        for connection in connections:
            answer = connection.makefile("rb").read()
            assert (b" 503 " if connection in refused else b" 200 ") in answer[:20]
            assert connection not in refused or b"Too many large requests" in answer
        assert client.form(f"{TAGS}/suggest", text="cod").status == 200


def test_api_key(model_file, tmp_path):
    key_file = tmp_path / "key"
    key_file.write_text("s3cret\n")
    with running(create_app([model_file], Settings(api_key_file=key_file))) as client:
        for path in ("/", "/docs", "/openapi.json", "/v2/health/live", "/v2/health/ready"):
            assert client.get(path).status == 200
        for path in ("/v1/projects", "/metrics", "/v2/models/tags"):
            assert client.get(path).status == 401
            assert client.get(path).headers["www-authenticate"] == "Bearer"
            assert client.ask("GET", path, x_api_key="s3cret").status == 200
            assert client.ask("GET", path, authorization="bearer s3cret").status == 200
            assert client.ask("GET", path, authorization="Basic s3cret").status == 401
            assert client.ask("GET", path, x_api_key="s3cr\xe9t").status == 401
            assert client.ask("GET", path, x_api_key="s3cre").status == 401
            assert client.ask("GET", path, x_api_key="s3cret2").status == 401
        assert client.get("/v1/projects").json["title"].startswith("The key is missing or wrong")
    key_file.write_text("\n")
    with pytest.raises(ValueError, match="is empty"):
        create_app([model_file], Settings(api_key_file=key_file))
    assert "s3cret" not in repr(Settings(api_key_file=key_file))


def test_slow_request_times_out(model_file):
    with running(create_app([model_file], Settings(timeout=0.5))) as client:
        head = f"POST {TAGS}/suggest HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
        kind = "Content-Type: application/x-www-form-urlencoded\r\n\r\ntext="
        answer = raw(client, (head + kind).encode())
        assert b" 503 " in answer and b"Retry-After: 5".lower() in answer.lower()
        assert b"took longer than 0.5 s" in answer
        assert client.form(f"{TAGS}/suggest", text="cod").status == 200


def test_closed_connection(model_file):
    with running(create_app([model_file])) as client:
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", client.port)) as connection:
                connection.sendall(f"POST {TAGS}/suggest HTTP/1.1\r\nContent-Le".encode())
        assert b"400" in raw(client, b"nonsense\r\n\r\n")
        assert client.form(f"{TAGS}/suggest", text="cod").status == 200


def test_concurrency_limit(model_file, monkeypatch):
    app = create_app([model_file], Settings(max_waiting=3, max_batch=1))
    with running(app) as client, ThreadPoolExecutor(16) as pool:
        text = " ".join(documents(200)[0])
        answers = list(pool.map(lambda _: client.form(f"{TAGS}/suggest", text=text), range(64)))
        assert {answer.status for answer in answers} == {200, 429}
        busy = next(answer for answer in answers if answer.status == 429)
        assert busy.headers["retry-after"] == "1"
        assert client.form(f"{TAGS}/suggest", text="cod").status == 200
    monkeypatch.setattr(guards, "MAX_REQUESTS", 0)
    with running(create_app([model_file])) as client:
        answer = client.get("/v1/projects")
        assert answer.status == 503 and answer.headers["retry-after"] == "1"


def test_large_request_does_not_block(model_file):
    """Many texts are answered in a thread of their own, a few at a time."""
    texts = [" ".join(documents(300, seed=i)[0]) for i in range(4)] * 64
    size = 10 * sum(map(len, texts))
    with running(create_app([model_file], Settings(max_body=size))) as client:
        body = {"documents": [{"text": text} for text in texts]}
        answers = []
        large = threading.Thread(
            target=lambda: answers.append(client.post(f"{TAGS}/suggest-batch", body))
        )
        large.start()
        n_small = 0
        while large.is_alive():
            assert client.form(f"{TAGS}/suggest", text="cod quota").status == 200
            n_small += 1
        assert answers[0].status == 200
    assert n_small > 5


def test_headers_for_browsers(client):
    answer = client.get("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "*" not in policy
    nonce = policy.split("'nonce-")[1].split("'")[0]
    assert answer.text.count(f'nonce="{nonce}"') == 2 and "NONCE" not in answer.text
    assert client.get("/").headers["content-security-policy"] != policy
    for path in ("/", "/docs", "/v1/projects", "/nowhere"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers
    answer = client.ask("GET", "/v1/projects", origin="https://example.org")
    assert "access-control-allow-origin" not in answer.headers


def test_pages_of_other_sites(model_file):
    site = "https://example.org"
    asked = {"origin": site, "sec_fetch_site": "cross-site"}
    form = {"content_type": "application/x-www-form-urlencoded"}
    with running(create_app([model_file])) as client:
        answer = client.ask("POST", f"{TAGS}/suggest", "text=cod", **asked, **form)
        assert answer.status == 403
    with running(create_app([model_file], Settings(allow_origins=(site,)))) as client:
        answer = client.ask("POST", f"{TAGS}/suggest", "text=cod", **asked, **form)
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == site
        wanted = {"access_control_request_method": "POST", "origin": site}
        assert client.ask("OPTIONS", f"{TAGS}/suggest", **wanted).status == 200
        asked["origin"] = wanted["origin"] = "https://other.org"
        assert client.ask("POST", f"{TAGS}/suggest", "text=cod", **asked, **form).status == 403
        assert client.ask("OPTIONS", f"{TAGS}/suggest", **wanted).status == 400
    with running(create_app([model_file], Settings(allow_origins=("*",)))) as client:
        assert client.ask("POST", f"{TAGS}/suggest", "text=cod", **asked, **form).status == 200


def test_cross_site_by_host(model_file):
    """On plain HTTP browsers do not say where a page comes from, except by its origin."""
    form = {"content_type": "application/x-www-form-urlencoded", "host": "tags.local:8000"}
    with running(create_app([model_file])) as client:
        for origin, status in (("http://tags.local:8000", 200), ("http://evil.example", 403)):
            answer = client.ask("POST", f"{TAGS}/suggest", "text=cod", origin=origin, **form)
            assert answer.status == status


def test_internal_errors_are_counted(model_file, monkeypatch, caplog):
    app = create_app([model_file])
    monkeypatch.setattr("ldsm.serve.api.annif.json_of", lambda value: 1 / 0)
    with running(app) as client:
        answer = client.form(f"{TAGS}/suggest", text="a private matter")
        assert answer.status == 500
        assert answer.json["title"] == "Internal error."
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert 'status="500"' in client.get("/metrics").text
    assert "ZeroDivisionError" in caplog.text and "private" not in caplog.text


def test_idle_connections_are_closed(model_file, monkeypatch):
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.3)
    with running(create_app([model_file])) as client:
        for data in (b"", b"GET / HTTP/1.1\r\nHos"):
            address = ("127.0.0.1", client.port)
            with socket.create_connection(address, timeout=PATIENCE) as connection:
                connection.sendall(data)
                assert connection.recv(100) == b""
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 1.5)
    with (
        running(create_app([model_file])) as client,
        socket.create_connection(("127.0.0.1", client.port), timeout=PATIENCE) as connection,
    ):
        for _ in range(8):  # one that is in use is not
            connection.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):  # it may come in two parts
                answer += connection.recv(4096)
            assert b"200 OK" in answer
            time.sleep(0.25)


def test_explanation_queue_is_bounded(model_file, monkeypatch):
    monkeypatch.setattr(service_module, "MAX_PENDING", 0)
    with running(create_app([model_file])) as client:
        assert client.get(f"{TAGS}/labels").status == 429
        assert client.form(f"{TAGS}/suggest", text="cod").status == 200
        answer = client.form(f"{TAGS}/explain", text="cod " * 30_000, label="fish")
        assert answer.status == 400 and "at most 100,000 characters" in answer.json["title"]


def test_large_batches_find_room(model_file):
    with running(create_app([model_file], Settings(max_batch=2000))) as client:
        body = {"documents": [{"text": "cod"}] * 1500}
        assert client.post(f"{TAGS}/suggest-batch", body).status == 200


def test_mounted_application(own_model):
    """It gets no events at start and shutdown, so it learns and saves on its own."""
    outer, before = FastAPI(), own_model.stat().st_ino
    outer.mount("/tags", create_app([own_model], Settings(learn=True, save_every=0.1)))
    with running(outer) as client:
        assert client.form(f"/tags{TAGS}/suggest", text="cod").status == 200
        body = [{"text": "cod quota", "subjects": [{"label": "fish"}]}]
        assert client.post(f"/tags{TAGS}/learn", body).status == 204
        assert client.get(f"/tags{TAGS}").json["n_training_rows"] == 601
        wait_until(lambda: own_model.stat().st_ino != before)


def test_texts_logged_on_request(model_file, caplog):
    for settings, logged in ((Settings(), False), (Settings(log_texts=True), True)):
        caplog.clear()
        with caplog.at_level(logging.DEBUG), running(create_app([model_file], settings)) as client:
            client.form(f"{TAGS}/suggest", text="a private matter")
            client.form(f"{TAGS}/suggest", text="a private matter", limit=0)
            client.post(f"{TAGS}/suggest-batch", {"documents": [{"text": ["private"]}]})
        assert ("a private matter" in caplog.text) == logged


def test_behind_a_proxy(model_file):
    with running(create_app([model_file], Settings(root_path="/tags"))) as client:
        # A proxy may take the path away or leave it.
        for path in ("/v1/projects", "/tags/v1/projects", "/", "/tags/"):
            assert client.get(path).status == 200
        assert client.get("/openapi.json").json["servers"] == [{"url": "/tags"}]
