"""Files with a valid checksum and one field at its extremes: none crashes, hangs or swells."""

import json
import sys
from pathlib import Path

import pytest

import patience

HELPERS = Path(__file__).parents[1] / "helpers"
GOLDEN = Path(__file__).parents[1] / "golden"
MODELS = ["model_v1", "model_v2", "tagger_v1", "tagger_v2", "tagger_v2_parts"]
MODELS += ["model_v3_parts", "tagger_v3_parts"]


def run(program: str, *arguments: object) -> dict:
    command = [sys.executable, "-W", "error", str(HELPERS / program), *map(str, arguments)]
    done = patience.run(command, seconds=3600)
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:])
    report = json.loads(done.stdout)
    assert report["slowest"][0] < 5, report["slowest"]
    assert report["outcomes"]["refused"] > 0.5 * report["made"]
    assert report["outcomes"]["answered"] > 0.01 * report["made"]
    return report


def check_model(name: str, every: int) -> dict:
    path = GOLDEN / f"{name}.ldsm"
    report = run("crafted_model.py", path, every)
    assert report["outcomes"]["saved"] > 0.1 * report["made"]
    assert report["memory"] <= 1.2 * path.stat().st_size + (50 << 20), report
    return report


SOME = [("model_v2", 37), ("tagger_v2", 47), ("model_v3_parts", 43), ("tagger_v3_parts", 73)]


@pytest.mark.parametrize(("name", "every"), SOME)
def test_some_crafted_models(name: str, every: int) -> None:
    assert check_model(name, every)["made"] > 100


def test_some_crafted_stores() -> None:
    assert run("crafted_store.py", 17)["made"] > 100


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_all_crafted_models(name: str) -> None:
    assert check_model(name, 1)["made"] > 3000


@pytest.mark.long
def test_all_crafted_stores() -> None:
    assert run("crafted_store.py", 1)["made"] > 2000
