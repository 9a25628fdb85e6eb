"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import ldsm


def modules():
    """All modules but those that need Annif: `make test-annif` runs their examples."""
    found = pkgutil.walk_packages(ldsm.__path__, "ldsm.")
    return [m.name for m in found if "_core" not in m.name and "ldsm.annif" not in m.name]


# The fewest examples that must be found.
FEWEST = {"ldsm.objective": 5, "ldsm.metrics.ranking": 10, "ldsm.text.tagger": 10}


@pytest.mark.parametrize("name", [m for m in modules() if not m.endswith("__main__")])
def test_doctests(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0 and result.attempted >= FEWEST.get(name, 0)
