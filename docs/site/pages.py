"""Pages that are made when the site is built: those written elsewhere, and the commands.

What stands in CHANGELOG, CONTRIBUTING and the like is not written twice. Each becomes a page in
docs/generated, and links to the file lead to that page.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from ldsm.cli.main import app as commands

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
GENERATED = DOCS / "generated"
# A file of the repository and the page that shows it.
PAGES = {
    ROOT / "CHANGELOG.md": GENERATED / "changelog.md",
    ROOT / "CONTRIBUTING.md": GENERATED / "contributing.md",
    ROOT / "SECURITY.md": GENERATED / "security.md",
    ROOT / "benchmarks" / "README.md": GENERATED / "benchmarks.md",
    ROOT / "examples" / "README.rst": GENERATED / "gallery" / "index.rst",
    ROOT / "src" / "ldsm" / "cli" / "main.py": GENERATED / "command_line.md",
}
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")


def write() -> None:
    """Write the pages that differ. Sphinx would read every written file again."""
    shutil.rmtree(GENERATED / "api", ignore_errors=True)  # may have pages of removed names
    made = {
        page: relink(source.read_text(encoding="utf-8"), source.parent, page.parent)
        for source, page in PAGES.items()
        if source.suffix == ".md"  # the gallery's page is sphinx-gallery's
    }
    made[GENERATED / "command_line.md"] = command_line_page()
    for page, text in made.items():
        page.parent.mkdir(parents=True, exist_ok=True)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def relink(text: str, source: Path, page: Path) -> str:
    """The text of a file in the folder `source`, with links as they are in the folder `page`."""

    def moved(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(source / match[1]))
        target = PAGES.get(target, target)
        return Path(os.path.relpath(target, page)).as_posix() + (match[2] or "")

    return _LINK.sub(moved, text)


def relink_page(app: Any, name: str, content: list[str]) -> None:
    """For Sphinx: links of a page in docs/ that lead to a file which has a page of its own."""
    path = Path(app.env.doc2path(name))
    if path.suffix == ".md" and path.parent == DOCS:
        content[0] = relink(content[0], DOCS, DOCS)


def skip_member(app: Any, what: str, name: str, member: Any, *_: Any) -> bool | None:
    """For autodoc: leaves out what the section Attributes of a class describes, fields of tuples
    and what is learned by fitting, and what scikit-learn adds to every estimator."""
    is_field = (member.__doc__ or "").startswith("Alias for field number")
    is_learned = isinstance(member, property) and name.endswith("_")
    return True if is_field or is_learned or re.fullmatch(r"set_\w+_request", name) else None


def command_line_page() -> str:
    """The reference of the commands, from the texts of their ``--help``."""
    group: Any = typer.main.get_command(commands)
    context = typer.Context(group, info_name="ldsm")
    parts = ["# Command line", _prose(group.help), _prose(group.epilog), "## Every command"]
    for number, (name, command) in enumerate(group.commands.items()):
        panels = _panels(command, typer.Context(command, info_name=name, parent=context))
        shared = panels.pop("Every command")
        if number == 0:
            parts += [_table("option", shared)]
        usage = command.get_usage(typer.Context(command, info_name=name, parent=context))
        parts += [f"## ldsm {name}", _prose(command.help)]
        parts += [f"```text\n{usage.removeprefix('Usage: ')}\n```"]
        for panel, entries in panels.items():
            kind = "argument" if panel == "Arguments" else "option"
            parts += [f"**{panel}**", _table(kind, entries)]
    return "\n\n".join(parts) + "\n"


def _panels(command: Any, context: Any) -> dict[str, list[tuple[str, str]]]:
    """Arguments and options with their texts, in the groups in which ``--help`` shows them."""
    panels: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)  # None if it is hidden
        if record is not None and parameter.name != "help":
            kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
            panels[getattr(parameter, "rich_help_panel", None) or kind].append(record)
    return panels


def _table(kind: str, entries: list[tuple[str, str]]) -> str:
    rows = [f"| `{_cell(names)}` | {_cell(_prose(text))} |" for names, text in entries]
    return "\n".join([f"| {kind} | meaning |", "|---|---|", *rows])


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _prose(text: str) -> str:
    """A text for the terminal as Markdown: options, unless they are, become code."""
    plain = Text.from_markup(text).plain.replace("<", "&lt;").strip()
    return re.sub(r"(?<![\w`-])--[a-z][a-z-]*", r"`\g<0>`", plain)
