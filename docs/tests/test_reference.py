"""The reference describes every public name; `make docs` looks them up in the pages it built."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1]
sys.path.insert(0, str(DOCS / "site"))

from public_names import public_members, public_modules, public_objects  # noqa: E402

OBJECTS = dict(public_objects())


def test_public_names_are_listed():
    listed = set(re.findall(r"^   ([\w.]+)$", (DOCS / "api.md").read_text(), re.M))
    names = {name.removeprefix("ldsm.") for name in OBJECTS if name.count(".") == 1}
    modules = {module.removeprefix("ldsm.") for module in public_modules()} - {"ldsm"}
    assert listed == names | modules


def test_public_modules():
    assert set(public_modules()) == {
        "ldsm",
        *(f"ldsm.{name}" for name in ("annif", "dask", "datasets", "evaluation", "metrics")),
        *(
            f"ldsm.{name}"
            for name in (
                *("metrics.calibration", "mlflow", "objective", "plotting", "report", "serve"),
                "text",
            )
        ),
    }


def attributes(doc):
    """The names that the section Attributes of a docstring describes."""
    section = re.search(r"^Attributes\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", doc, re.M | re.S)
    lines = re.findall(r"^(\w[\w, ]*?)(?: : .*)?$", section[1], re.M) if section else []
    return {name for line in lines for name in line.split(", ")}


@pytest.mark.parametrize("name", OBJECTS)
def test_public_members_have_docstrings(name):
    value = OBJECTS[name]
    if not callable(value):  # a constant: described where its module is
        module, _, constant = name.rpartition(".")
        assert f".. data:: {constant}" in sys.modules[module].__doc__
        return
    doc = inspect.getdoc(value)
    assert doc
    if isinstance(value, type):
        bare = {
            member.rpartition(".")[2]
            for member, of in public_members(name, value)
            if not inspect.getdoc(of)
        }
        assert bare <= attributes(doc)
