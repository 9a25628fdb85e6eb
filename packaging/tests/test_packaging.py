"""All files describe the same release."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ldsm import __version__

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
pytestmark = pytest.mark.lint
PROJECT = (ROOT / "pyproject.toml").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()


def test_version_in_changelog_and_citation():
    first = re.search(r"^## (\S+) \((.*)\)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert first[1] == __version__ and re.fullmatch(r"\d{4}-\d\d-\d\d|unreleased", first[2])
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {__version__}\n" in citation
    assert f"\ndate-released: {first[2]}\n" in citation or first[2] == "unreleased"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_targets_and_pins(path):
    text = path.read_text()
    targets = re.findall(r"run: make ([a-z][\w-]*)", text) + re.findall(r"\btest-[a-z]+", text)
    assert {*targets} <= {*re.findall(r"^([a-z][\w-]*):", MAKEFILE, re.M)}
    used = re.findall(r"uses: ([^$\s]\S+)", text)  # $/ is a workflow of this repository
    assert used and all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action) for action in used)


def test_supported_pythons():
    supported = re.findall(r'"Programming Language :: Python :: 3\.(\d+)"', PROJECT)
    built = re.findall(r'"cp3(\d+)-\*"', PROJECT)
    tested = re.search(r"python: \[(.*)\]", (ROOT / ".github/workflows/tests.yml").read_text())[1]
    assert built == re.findall(r'"3\.(\d+)"', tested)
    assert supported == built[: len(supported)]  # a Python is named once it was tried
    assert f'requires-python = ">=3.{supported[0]}"' in PROJECT
    assert 'wheel.py-api = "cp312"' in PROJECT


def test_lowest_versions():
    lowest = subprocess.run(
        [sys.executable, ROOT / "packaging" / "lowest.py"], capture_output=True, text=True
    )
    if sys.version_info < (3, 11) and "tomli" in lowest.stderr:
        pytest.skip("tomli is not installed")
    pins = dict(line.split("==") for line in lowest.stdout.split())
    assert {"numpy", "scipy", "scikit-learn", "joblib", "typer", "rich", "fastapi"} <= pins.keys()
    assert all(f'"{name}>={version}' in PROJECT for name, version in pins.items())


CALLED = re.compile(r"[.$]/\.github/workflows/(\S+)")


def groups(workflow, name):
    """The concurrency groups of a workflow; a called one runs under the name of its caller."""
    found = [workflow.get("concurrency"), *(job.get("concurrency") for job in jobs(workflow))]
    texts = [group["group"] if isinstance(group, dict) else group for group in found if group]
    return {re.sub(r"\$\{\{\s*github\.workflow\s*\}\}", name, text) for text in texts}


def jobs(workflow):
    return workflow["jobs"].values()


def shared_groups(workflows):
    """Groups that a called workflow has in common with its caller, which GitHub cancels."""
    for caller in workflows.values():
        for job in jobs(caller):
            if called := CALLED.fullmatch(job.get("uses", "")):
                callee = workflows[called[1]]
                yield from groups(callee, caller["name"]) & groups(caller, caller["name"])


def test_workflow_concurrency_groups():
    yaml = pytest.importorskip("yaml")
    workflows = {path.name: yaml.safe_load(path.read_text()) for path in WORKFLOWS}
    calls = [job["uses"] for flow in workflows.values() for job in jobs(flow) if "uses" in job]
    assert calls and all(CALLED.fullmatch(call) for call in calls)
    assert [*shared_groups(workflows)] == []
    by_name = {"group": "${{ github.workflow }}-${{ github.ref }}"}
    both = {name: {**flow, "concurrency": by_name} for name, flow in workflows.items()}
    assert [*shared_groups(both)] == ["wheels-${{ github.ref }}"]


def test_release_tools_are_pinned():
    wanted = re.findall(
        r"^([\w-]+==[\w.]+)", (ROOT / "packaging/requirements.in").read_text(), re.M
    )
    pinned = (ROOT / "packaging/requirements.txt").read_text().replace("\\\n", " ").splitlines()
    tools = [line for line in pinned if re.match(r"\w", line)]
    assert len(wanted) > 5 and {*wanted} <= {line.split()[0] for line in tools}
    for line in tools:
        assert re.match(r"[\w.-]+==[\w.]+ ", line) and re.search(
            r"--hash=sha256:[0-9a-f]{64}\b", line
        )
    for path in (ROOT / "Makefile", ROOT / ".github/workflows/wheels.yml"):
        installs = re.findall(r"pip install.* -r packaging/requirements.txt", path.read_text())
        assert installs and all("--require-hashes" in install for install in installs)


def test_image_base_digest():
    bases = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.M)
    assert len(bases) == 2 and len({*bases}) == 1
    assert re.fullmatch(r"python:3\.\d+-slim@sha256:[0-9a-f]{64}", bases[0])


# The first versions without a known advisory that concerns a service or a cluster.
FIXED = {"python-multipart": "0.0.30", "starlette": "1.3.1", "distributed": "2026.1.1"}


@pytest.mark.parametrize("name", FIXED)
def test_bounds_exclude_advisories(name):
    bound = re.search(rf'"{name}>=([\d.]+)', PROJECT)[1]
    assert [*map(int, bound.split("."))] >= [*map(int, FIXED[name].split("."))]


def test_workflows_look_for_advisories():
    assert "run: make audit\n" in (ROOT / ".github/workflows/tests.yml").read_text()
    assert re.search(r"^audit:.*\n(?:\t.*\n)*\t.*pip-audit --strict ", MAKEFILE, re.M)
