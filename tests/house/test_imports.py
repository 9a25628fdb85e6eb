"""The house rules that a machine can check: imports point one way, public names are guarded."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ldsm

PACKAGE = Path(ldsm.__file__).parent

# Each room may import those before it. Private names are checked by ruff (rule SLF).
ORDER = [
    *("_version", "_core", "_wording", "_execution", "_storage", "_arrays", "metrics"),
    *("objective", "datasets", "_features", "_trees", "_matching", "_ranking", "_model"),
    *("classifier", "text", "_loading", "_parts", "evaluation", "plotting", "report", "dask"),
    *("serve", "cli", "annif", "mlflow", "__main__"),
]


def imported_rooms(path: Path) -> set[str]:
    """The modules and packages at the top of ldsm that a file imports."""
    package = ("ldsm", *path.relative_to(PACKAGE).parts[:-1])
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            full = [*base, *(node.module.split(".") if node.module else [])]
            targets = [[*full, alias.name] for alias in node.names]
        elif isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        else:
            continue
        rooms |= {target[1] for target in targets if target[0] == "ldsm" and len(target) > 1}
    return rooms


@pytest.mark.lint
def test_imports_point_one_way():
    checked = 0
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        for other in imported_rooms(path) - {room}:
            assert ORDER.index(other) < ORDER.index(room), f"{path} must not import {other}"
            checked += 1
    assert checked > 100


@pytest.mark.lint
def test_rooms_are_small():
    """The top holds the rooms and little else, a package at most a dozen modules."""
    built = ("__pycache__", *(path.name for path in PACKAGE.glob("*.so")))
    entries = [entry for entry in PACKAGE.iterdir() if entry.name not in built]
    assert len(entries) <= 29
    for folder in {path.parent for path in PACKAGE.rglob("*.py")} - {PACKAGE, PACKAGE / "cli"}:
        assert len(list(folder.glob("*.py"))) <= 13, folder  # with __init__.py


def test_public_names():
    public = {
        "Forest",
        "LdSMClassifier",
        "TextTagger",
        "datasets",
        "load",
        "metrics",
        "objective",
        "parts",
    }
    assert set(ldsm.__all__) == public == set(dir(ldsm))
    assert all(hasattr(ldsm, name) for name in public)


def test_version_is_constant(tmp_path):
    """Neither missing nor stale metadata of some installation may change it."""
    stale = tmp_path / "ldsm-9.9.dist-info"
    stale.mkdir()
    (stale / "METADATA").write_text("Name: ldsm\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import ldsm; print(ldsm.__version__)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ldsm.__version__


def test_import_is_light():
    """None of the optional and interactive packages is loaded before it is needed."""
    # scikit-learn's own imports are not ours to judge: 1.9 loads rich where it is installed.
    code = (
        "import sys, sklearn.metrics; before = set(sys.modules); import ldsm; "
        "print(*({'matplotlib', 'dask', 'rich', 'typer'} & (sys.modules.keys() - before)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


@pytest.mark.lint
def test_test_files_have_unique_names():
    """Two of one name cannot be collected together, and some are only where a browser is."""
    names = [path.name for path in Path(__file__).parents[1].rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
