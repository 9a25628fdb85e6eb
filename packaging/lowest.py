"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

The tools of `test`, `lint` and `docs` are not part of what users install, and stay as they are.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOOLS = {"test", "lint", "docs", "browser"}

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))[
    "project"
]
extras = project["optional-dependencies"]
needed = project["dependencies"] + [
    one for name in sorted(extras.keys() - TOOLS) for one in extras[name]
]
for requirement in dict.fromkeys(needed):
    name, version = re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+)(?:[,;].*)?", requirement).groups()
    print(f"{name}=={version}")
