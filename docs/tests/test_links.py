"""Every relative link of every page leads to a file, and to a section where it names one."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "benchmarks/*.md")
    for path in ROOT.glob(pattern)
    if not path.name.startswith(".")
)
# The badges of the workflows are not files: GitHub has them beside the repository.
LINK = re.compile(r"\]\((?![a-z][a-z+.-]*:|\.\./\.\./actions/)([^)#\s]*)(?:#([^)\s]*))?\)")


def prose(path):
    """A page without its code, in which brackets mean something else."""
    text = re.sub(r"^(```+|~~~+).*?^\1", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"(?<!`)`[^`\n]+`(?!`)", "code", text)


@cache
def sections(path):
    """The names that GitHub, and the site, give the headings of a page."""
    text = re.sub(r"^(```+|~~~+).*?^\1", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    seen, names = Counter(), set()
    for heading in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", text, flags=re.M):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        names.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return names


def broken_links(page):
    for file, section in LINK.findall(prose(page)):
        target = (page.parent / file).resolve() if file else page
        if not target.exists():
            yield f"{file}: no such file"
        elif section and section not in sections(target):
            yield f"{file}#{section}: no such section"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links(page):
    assert list(broken_links(page)) == []


def test_broken_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A `name`, twice\n\n## Twice\n\n## Twice\n\n"
        "[a](#a-name-twice) [b](#twice-1) [c](page.md#twice) [d](https://ldsm.invalid/x#y)\n"
        "[e](gone.md) [f](#twice-2) [g](page.md#gone)\n\n```text\n[h](gone.md)\n```\n"
    )
    assert [fault.split(":")[0] for fault in broken_links(page)] == [
        "gone.md",
        "#twice-2",
        "page.md#gone",
    ]


def test_pages_are_in_toctree():
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    listed = set()
    for path in (ROOT / "docs").glob("*.md"):
        for entries in re.findall(r"^```\{toctree\}\n(.*?)^```", path.read_text(), re.M | re.S):
            listed.update(re.findall(r"^(?::.*|.*<)?([\w/]+)>?$", entries, re.M))
    assert pages - listed == set()
