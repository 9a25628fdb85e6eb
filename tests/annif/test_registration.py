"""How Annif finds the backend `ldsm`: its configuration, and a patch for Annif."""

import json
import os
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from annif_runs import ENVIRONMENT, ROOT, SETTINGS
from patience import PATIENCE, started, wait_until

pytestmark = pytest.mark.annif
TEXT = "Keskiajan hautoja"
PYTHON = ENVIRONMENT / "bin" / "python"


def test_without_configuration(trained):
    said = trained.run("suggest", "ldsm-fi", stdin=TEXT, ANNIF_CONFIG=None).stderr
    assert "Could not create backend ldsm" in said


def test_own_configuration(trained, tmp_path):
    (tmp_path / "house.py").write_text(
        "import annif.default_config\nimport ldsm.annif\n\n\n"
        "class Config(annif.default_config.Config):\n    DEBUG = True\n"
    )
    own = {"ANNIF_CONFIG": "house.Config", "PYTHONPATH": str(tmp_path)}
    expected = trained("suggest", "ldsm-fi", stdin=TEXT)
    assert trained("suggest", "ldsm-fi", stdin=TEXT, **own) == expected != ""


def test_settings_file(trained, tmp_path):
    (tmp_path / "settings.py").write_text("import ldsm.annif\n")
    own = {"ANNIF_CONFIG": None, "ANNIF_SETTINGS": str(tmp_path / "settings.py")}
    expected = trained("suggest", "ldsm-fi", stdin=TEXT)
    assert trained("suggest", "ldsm-fi", stdin=TEXT, **own) == expected != ""


@pytest.mark.parametrize("server", ["annif run", "gunicorn"])
def test_servers(trained, server):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    commands = {
        "annif run": ["annif", "run", "--port", str(port)],
        "gunicorn": [
            *("gunicorn", "annif:create_app()", "--bind", f"127.0.0.1:{port}"),
            *("--worker-class", "uvicorn.workers.UvicornWorker"),
        ],
    }
    program, *options = commands[server]
    with started(
        [ENVIRONMENT / "bin" / program, *options],
        cwd=trained.folder,
        env={**os.environ, **SETTINGS, "ANNIF_PROJECTS_INIT": "ldsm-fi"},
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        answer = suggested(f"http://127.0.0.1:{port}/v1/projects/ldsm-fi/suggest", running)
    shown = trained("suggest", "ldsm-fi", stdin=TEXT)
    assert [f"<{one['uri']}>" for one in answer] == [
        line.split("\t")[0] for line in shown.splitlines()
    ]


def suggested(url, running):
    """The answer of a server, once it is there."""
    fields = urllib.parse.urlencode({"text": TEXT}).encode()

    def answer():
        try:
            with urllib.request.urlopen(url, fields, timeout=PATIENCE) as response:
                return json.load(response)["results"]
        except ConnectionError:
            pass
        except urllib.error.URLError as error:
            assert isinstance(error.reason, ConnectionError), error
        assert running.poll() is None, running.stderr.read()
        return None

    return wait_until(answer, "the server does not answer")


def test_annif_patch(trained, tmp_path):
    """It applies to Annif as it is, and then no configuration is needed."""
    where = "import annif, pathlib; print(pathlib.Path(annif.__file__).parent)"
    folder = subprocess.run([PYTHON, "-c", where], capture_output=True, text=True, check=True)
    shutil.copytree(Path(folder.stdout.strip()), tmp_path / "annif")
    patch = (ROOT / "docs" / "annif-upstream.patch").read_text()
    subprocess.run(["patch", "-p1"], cwd=tmp_path, input=patch, text=True, check=True)
    patched = {"ANNIF_CONFIG": None, "PYTHONPATH": str(tmp_path), "program": PYTHON}
    command = ("-m", "annif.cli", "suggest", "ldsm-fi")
    assert trained(*command, stdin=TEXT, **patched) == trained("suggest", "ldsm-fi", stdin=TEXT)


def test_examples_in_the_docstrings():
    code = (
        "import doctest, ldsm.annif; result = doctest.testmod(ldsm.annif); "
        "assert result.attempted == 3 and not result.failed, result"
    )
    subprocess.run([PYTHON, "-c", code], check=True)
