"""Record `ldsm demo` as docs/demo.svg, a picture on the site. Run it after a visible change."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from ldsm.cli.demo import demo
from ldsm.cli.screen import Report, Screen, progress_bar

COLUMNS = 88
THEME = TerminalTheme(
    (24, 26, 31),
    (208, 212, 220),
    [(24, 26, 31), (224, 108, 117), (152, 195, 121), (229, 192, 123)]
    + [(97, 175, 239), (198, 120, 221), (86, 182, 194), (208, 212, 220)],
)


class StillScreen(Screen):
    """Draws a progress bar once, at its end: a recording would hold every frame."""

    @contextmanager
    def progress(self, what: str) -> Iterator[Report]:
        bar = progress_bar(self.err)
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)
        bar.update(task, completed=bar.tasks[task].total or 1, total=bar.tasks[task].total or 1)
        self.err.print(bar.get_renderable())


def main(path: Path) -> None:
    console = Console(
        record=True, force_terminal=True, width=COLUMNS, file=io.StringIO(), highlight=False
    )
    console.print(Text.assemble(("$ ", "bold green"), ("ldsm demo", "bold")))
    demo(StillScreen(out=console, err=console))
    svg = console.export_svg(title="ldsm demo", theme=THEME)
    # The picture loads no font: every system has one of fixed width.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    path.write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("demo.svg"))
