"""Store finished parts of a benchmark on disk, so that an interrupted run resumes.

    facts = kept(folder, "delicious_alone_seed0", {"settings": {...}}, work)

calls `work`, unless `folder` has the facts of a part with this name, the same settings and the same
library. To measure everything again, delete the folder.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ldsm

# Only the files that a fit and a prediction import: changes to commands and figures do not
# invalidate a measured time.
_FIT_FILES = """
import sys, ldsm.classifier
print("\\n".join(m.__file__ for n, m in sys.modules.items() if n.partition(".")[0] == "ldsm"))
"""


def arguments(description: str, name: str, *, seeds: int | None = None) -> argparse.ArgumentParser:
    """The options that all programs share; results go to build/`name`."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("build") / name,
        metavar="FOLDER",
        help="folder for finished parts and results",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="tiny synthetic data, to try the program; no page is written",
    )
    if seeds is not None:
        parser.add_argument(
            "--seeds", type=int, default=seeds, help="seeds of ldsm to average over"
        )
    return parser


@cache
def library() -> dict[str, str]:
    """Version of ldsm and a hash of the files that a fit runs, the compiled core included."""
    listed = subprocess.run(
        [sys.executable, "-c", _FIT_FILES], check=True, capture_output=True, text=True
    )
    digest = hashlib.sha256()
    for file in sorted(listed.stdout.split("\n")):
        if file:
            digest.update(Path(file).read_bytes())
    return {"version": ldsm.__version__, "code": digest.hexdigest()[:16]}


def kept(
    folder: Path, name: str, about: dict[str, Any], work: Callable[[Path], dict[str, Any]]
) -> dict[str, Any]:
    """The facts of one part, from `folder` if they are there.

    `about` distinguishes parts with the same name. `work` gets the path without its suffix and may
    write further files beside it. A line is printed when a part is finished.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made_by = {"about": json.loads(json.dumps(about)), "library": library()}
    key = hashlib.sha256(json.dumps(made_by, sort_keys=True).encode()).hexdigest()[:12]
    path = folder / f"{name}_{key}.json"
    if path.exists():
        print(f"{name}: kept from an earlier run", flush=True)
        return json.loads(path.read_text())["facts"]
    started = time.perf_counter()
    facts = work(path.with_suffix(""))
    write_json(path, {**made_by, "facts": facts})
    print(f"{name}: {time.perf_counter() - started:.1f} s", flush=True)
    return facts


def write_json(path: Path, value: Any) -> None:
    """The file appears at once: where it is, it is complete."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(value, indent=1) + "\n")
    os.replace(part, path)


def machine() -> dict[str, Any]:
    """What the figures were measured on and with."""
    model = platform.processor() or platform.machine()
    if (cpu := Path("/proc/cpuinfo")).exists():
        names = [s.split(":")[1].strip() for s in cpu.read_text().split("\n") if "model name" in s]
        model = names[0] if names else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    packages = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        **packages,
        "ldsm": library(),
    }


def machine_sentence() -> str:
    """`machine()` for the reader of a page."""
    m = machine()
    return (
        f"{m['cpu']}, {m['cores']} cores, {m['memory_gib']:.0f} GiB, {m['system']}; "
        f"Python {m['python']}, NumPy {m['numpy']}, SciPy {m['scipy']}, "
        f"scikit-learn {m['scikit-learn']}; "
        f"ldsm {m['ldsm']['version']}, code {m['ldsm']['code'][:8]}."
    )
