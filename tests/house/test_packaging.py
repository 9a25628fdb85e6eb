"""What is said of a release in one place is what is said of it in the others."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ldsm import __version__

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
if not WORKFLOWS:
    pytest.skip("the workflows are not here", allow_module_level=True)
PROJECT = (ROOT / "pyproject.toml").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()


def test_the_version_is_in_the_changelog_and_the_citation():
    first = re.search(r"^## (\S+) \((.*)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert first[1] == __version__ and re.fullmatch(r"\d{4}-\d\d-\d\d|unreleased", first[2])
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {__version__}\n" in citation
    assert f"\ndate-released: {first[2]}\n" in citation or first[2] == "unreleased"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_targets_that_exist_and_pin_their_actions(path):
    text = path.read_text()
    targets = re.findall(r"run: make ([a-z][\w-]*)", text) + re.findall(r"\btest-[a-z]+", text)
    assert {*targets} <= {*re.findall(r"^([a-z][\w-]*):", MAKEFILE, re.M)}
    used = re.findall(r"uses: ([^$\s]\S+)", text)  # $/ is a workflow of this repository
    assert used and all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action) for action in used)


def test_every_supported_python_is_tested_and_gets_a_wheel():
    supported = re.findall(r'"Programming Language :: Python :: 3\.(\d+)"', PROJECT)
    built = re.findall(r'"cp3(\d+)-\*"', PROJECT)
    tested = re.search(r"python: \[(.*)\]", (ROOT / ".github/workflows/tests.yml").read_text())[1]
    assert built == re.findall(r'"3\.(\d+)"', tested)
    assert supported == built[: len(supported)]  # a Python is named once it was tried
    assert f'requires-python = ">=3.{supported[0]}"' in PROJECT
    assert 'wheel.py-api = "cp312"' in PROJECT


def test_the_lowest_versions_are_those_of_the_project():
    lowest = subprocess.run(
        [sys.executable, ROOT / "packaging" / "lowest.py"], capture_output=True, text=True
    )
    if sys.version_info < (3, 11) and "tomli" in lowest.stderr:
        pytest.skip("tomli is not installed")
    pins = dict(line.split("==") for line in lowest.stdout.split())
    assert {"numpy", "scipy", "scikit-learn", "joblib", "typer", "rich", "fastapi"} <= pins.keys()
    assert all(f'"{name}>={version}' in PROJECT for name, version in pins.items())
