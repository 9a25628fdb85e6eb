"""The house rules that a machine can check: imports point one way, public names are guarded."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import ldsm

PACKAGE = Path(ldsm.__file__).parent

# Each module may import the modules of lower levels only.
LEVELS = [
    {"_core", "ranked_hits", "model_header", "sparse_checks", "wording", "memory"},
    {"metric_inputs", "model_file"},
    {"inputs", "interrupts", "metrics", "calibration", "objective", "datasets"},
    {"blend", "explain", "rows"},
    {"params", "forest", "thresholds", "second_stage", "validation"},
    {"prediction", "checks", "ranking", "stage_state", "levels"},
    {"persistence", "checkpoint", "score_explain"},
    {"training"},
    {"fitting"},
    {"classifier", "text_inputs", "text_explain"},
    {"text_state", "model_facts"},
    {"text"},
    {"loading", "held_out"},
    {"plotting"},
    {"report"},
    {"dask"},
    {"commands"},
    {"cli"},
    {"__main__"},
]
# These stand alone: of the package they may import the core, their own helpers and nothing else.
ALONE = {"metrics", "calibration", "metric_inputs", "ranked_hits", "objective", "datasets"}
ALONE |= {"model_file", "model_header", "sparse_checks", "memory"}
HELPERS = {"metric_inputs", "ranked_hits", "model_header", "sparse_checks", "memory"}


def imported_modules(path):
    """Names of the package's own top-level modules that a file imports."""
    package = ("ldsm", *path.relative_to(PACKAGE).with_suffix("").parts[:-1])
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            full = [*base, *(node.module.split(".") if node.module else [])]
            targets = [[*full, alias.name] for alias in node.names]
        elif isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        else:
            continue
        found |= {target[1] for target in targets if target[0] == "ldsm" and len(target) > 1}
    return found


def test_imports_point_one_way():
    level = {name: i for i, names in enumerate(LEVELS) for name in names}
    checked = 0
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if module == "__init__":
            continue
        assert module in level, f"{module} has no level: say where it stands"
        for other in imported_modules(path) & level.keys() - {module}:
            assert level[other] < level[module], f"{path.name} must not import {other}"
            alone = module in ALONE and other not in {"_core"} | HELPERS
            assert not alone, f"{path.name} must not import {other}"
            checked += 1
    assert checked > 5


def test_public_names():
    assert set(ldsm.__all__) == {
        "Forest",
        "LdSMClassifier",
        "TextTagger",
        "datasets",
        "load",
        "metrics",
        "objective",
    }
    assert all(hasattr(ldsm, name) for name in ldsm.__all__)


def test_import_is_light():
    """None of the optional and interactive packages is loaded before it is needed."""
    # scikit-learn's own imports are not ours to judge: 1.9 loads rich where it is installed.
    code = (
        "import sys, sklearn.metrics; before = set(sys.modules); import ldsm; "
        "print(*({'matplotlib', 'dask', 'rich', 'typer'} & (sys.modules.keys() - before)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
