"""`ldsm serve` and `ldsm demo --serve`: as processes of their own."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import suppress

import pytest
from typer.main import get_command

from cli_runs import process, within
from ldsm.cli.main import app
from ldsm.serve import Settings
from patience import PATIENCE, started, wait_until
from services import service, small_tagger

TAGS = "/v1/projects/tags"


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tags.ldsm"
    small_tagger().save(path)
    return path


@pytest.mark.linux
def test_several_processes(model_file):
    options = ["--workers", 2, "--port", 0, "--allowed-host", "tags.example.org"]
    with service(model_file, *options) as served:
        assert len(served.workers()) == 2
        for _ in range(6):  # each has all limits
            hosts = {"localhost": 200, "tags.example.org": 200, "evil.example": 421}
            for host, status in hosts.items():
                assert served.ask("GET", "/v2/health/live", host=host).status == status
            assert served.ask("GET", "/v2/health/live", x="a" * 65_000).status == 200
            assert served.ask("GET", "/v2/health/live", x="a" * 66_000).status == 431
        for _ in range(20):
            assert served.form(f"{TAGS}/suggest", text="cod quota").status == 200
        # Their numbers are added up; a request is counted once its answer is on its way.
        name = (
            'ldsm_requests_total{method="POST",path="/v1/projects/{project}/suggest",status="200"}'
        )
        wait_until(lambda: f"{name} 20.0" in served.get("/metrics").text)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--max-body", "much"], 2, "must be a size up to 1GB, such as 200kB or 1MB, got 'much'"),
        (["--max-body", "0"], 2, "must be a size up to 1GB, such as 200kB or 1MB, got '0'"),
        (["--root-path", "tags"], 2, "must look like /tags, got 'tags'"),
        (["--root-path", "/v1"], 2, "must not start with /v1 or /v2, got '/v1'"),
        (["--max-body", "9" * 400], 2, "must be a size up to 1GB"),
        (["--timeout", "inf"], 2, "'--timeout'"),
        (["--allow-origin", "example.org/"], 2, "must look like https://example.org"),
        (["--allowed-host", "tags:8000"], 2, "must be a host without a port"),
        (["--workers", "0"], 2, "'--workers'"),
        (["--port", "70000"], 2, "'--port'"),
        (["--log", "everything"], 2, "'--log'"),
        (["--host", "999.0.0.1"], 1, "'999.0.0.1:8000'"),
        (["--api-key-file", "EMPTY"], 1, "must hold the key on one line"),
    ],
)
def test_wrong_options(model_file, tmp_path, capsys, options, code, message):
    empty = tmp_path / "EMPTY"
    empty.write_text("")
    options = [empty if option == "EMPTY" else option for option in options]
    run = within(capsys)("serve", model_file, *options)
    assert run.code == code and message in run.err.replace("\n", " "), run.err


def test_unusable_models_and_ports(model_file, tmp_path, capsys):
    ldsm = within(capsys)
    assert ldsm("serve").code == 2
    assert ldsm("serve", tmp_path / "none.ldsm").code == 2
    (tmp_path / "bad.ldsm").write_text("nothing")
    run = ldsm("serve", tmp_path / "bad.ldsm")
    assert run.code == 1 and "cannot be loaded" in run.err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = ldsm("serve", model_file, "--port", port)
        assert run.code == 1 and f"'127.0.0.1:{port}': Address already in use." in run.err


def test_options_and_interrupt(model_file, tmp_path):
    key = tmp_path / "key"
    key.write_text("s3cret")
    options = ["--max-body", "2kB", "--max-batch", "2", "--api-key-file", key, "--log", "requests"]
    with service(model_file, "--port", 0, *options) as served:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", served.address)
        assert served.get(TAGS).status == 401
        headers = {"x_api_key": "s3cret", "content_type": "application/json"}
        for n_texts, status in ((2, 200), (3, 400)):
            body = json.dumps({"documents": [{"text": "cod"}] * n_texts})
            answer = served.ask("POST", f"{TAGS}/suggest-batch", body, **headers)
            assert answer.status == status, answer.text
        large = json.dumps({"documents": [{"text": "cod " * 1000}]})
        assert served.ask("POST", f"{TAGS}/suggest-batch", large, **headers).status == 413
        served.process.send_signal(signal.SIGINT)
        _, errors = served.process.communicate(timeout=PATIENCE)
        assert served.process.returncode == 0
    assert f"POST {TAGS}/suggest-batch" in errors and "s3cret" not in errors


def test_missing_packages(model_file, tmp_path):
    package = "prometheus_client"
    (tmp_path / f"{package}.py").write_text(f"raise ModuleNotFoundError(name={package!r})")
    run = process("serve", model_file, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert run.code == 1
    assert run.err.strip() == (
        f'error: ldsm.serve needs {package}, which is not installed: pip install "ldsm[serve]".'
    )


@pytest.mark.long
def test_demo_can_be_served():
    options = ["--serve", "--port", "0", "--trees", "2", "--json"]
    command = [sys.executable, "-m", "ldsm", "demo", *options]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        lines = []
        while not lines or "address" not in lines[-1]:
            lines.append(run.stdout.readline())
            assert lines[-1], run.stderr.read()
        address = json.loads(lines[-1])["address"]

        def answer():
            with (
                suppress(OSError),
                urllib.request.urlopen(f"{address}v1/projects/demo", timeout=PATIENCE) as found,
            ):
                return json.load(found)

        assert wait_until(answer, "it does not answer")["n_labels"] > 100
        run.terminate()
        run.communicate(timeout=PATIENCE)


def test_limits_in_the_help_are_those_of_the_settings():
    options = {parameter.name: parameter for parameter in get_command(app).commands["serve"].params}
    assert options["max_body"].show_default == f"{Settings.max_body // 10**6}MB"
    assert options["max_batch"].show_default == str(Settings.max_batch)
    assert float(options["timeout"].show_default) == Settings.timeout
