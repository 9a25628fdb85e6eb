"""The output of a command: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, Literal, Protocol

import numpy as np
from rich import box
from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from .._execution.executor import watching
from .._storage.paths import named_in_errors
from .._wording import bare, duration, escaped, number


class Report(Protocol):
    """Called with (done, total), like the callback of `LdSMClassifier.fit`; 0 is unknown.

    The kind of part is named if stages of the work are watched.
    """

    def __call__(self, done: int, total: int, kind: str = "") -> None: ...


# Minimum time between two lines of progress without a terminal.
_LINE_SECONDS = 10.0
_STDOUT = "standard output"


class Screen:
    """The two output streams of a command, with its options ``--json`` and ``--quiet``.

    `until_end` holds resources, such as locks, until the command ends.
    """

    def __init__(
        self,
        *,
        json: bool = False,
        quiet: bool = False,
        out: Console | None = None,
        err: Console | None = None,
    ) -> None:
        self.json = json
        self.quiet = quiet
        self.until_end = ExitStack()
        self.out = out or Console(highlight=False)
        self.err = err or Console(stderr=True, highlight=False)

    # -- results ------------------------------------------------------------------------------

    def data(self, value: Any) -> None:
        """Print one line of JSON."""
        self.line(json_line(value))

    def line(self, text: str) -> None:
        """Print one line of a result, never wrapped, cut or coloured."""
        with named_in_errors(_STDOUT):
            self.out.file.write(text + "\n")

    def show(self, renderable: RenderableType = "") -> None:
        """Print output for people, laid out to the width of the terminal."""
        with named_in_errors(_STDOUT):
            self.out.print(renderable)

    def flush(self) -> None:
        """Flush buffered output."""
        with named_in_errors(_STDOUT):
            self.out.file.flush()

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        *,
        title: str = "",
        bold_row: int | None = None,
        text: Sequence[str] = (),
    ) -> None:
        """Print a table on a terminal; in a pipe, lines of the same cells separated by tabs.

        The first column and those of `text` are left-aligned, the others hold numbers.
        """
        if not self.out.is_terminal:
            for row in (columns, *rows):
                self.line("\t".join(map(bare, row)))
            return
        if title:
            self.out.print(Text(escaped(title), style="bold"))
        table = Table(
            header_style="bold cyan",
            border_style="dim",
            box=box.SIMPLE_HEAD,
            collapse_padding=True,
            pad_edge=False,
            show_edge=False,
        )
        for i, column in enumerate(columns):
            justify: Literal["left", "right"] = "left" if i == 0 or column in text else "right"
            table.add_column(Text(column.replace("_", " ")), justify=justify, overflow="fold")
        for i, row in enumerate(rows):
            cells = [Text(number(cell)) for cell in row]
            table.add_row(*cells, style="bold green" if i == bold_row else "")
        self.out.print(Padding(table, (1, 2)) if title else Padding(table, (0, 2, 1, 2)))

    def facts(self, sections: Mapping[str, Mapping[str, Any]]) -> None:
        """Print names and values, in one box per section; in a pipe, one per line."""
        if not self.out.is_terminal:
            for facts in sections.values():
                for name, value in facts.items():
                    self.line(f"{name}\t{bare(value)}")
            return
        boxes = []
        for title, facts in sections.items():
            grid = Table.grid(padding=(0, 2))
            for name, value in facts.items():
                grid.add_row(Text(name, style="dim"), Text(number(value)))
            boxes.append(Panel(grid, title=title, title_align="left", border_style="dim"))
        self.out.print(Columns(boxes))

    # -- notes, errors and progress -----------------------------------------------------------

    def note(self, text: str, style: str = "") -> None:
        """Print a note to stderr unless quiet."""
        if not self.quiet:
            self.err.print(Text(escaped(text), style=style), soft_wrap=True)

    def error(self, text: str) -> None:
        """Print one sentence to stderr, even if quiet."""
        self.err.print(
            Text.assemble(("error: ", "bold red"), escaped(" ".join(text.split()))), soft_wrap=True
        )

    @contextmanager
    def progress(self, what: str, *, stages: bool = False) -> Iterator[Report]:
        """Show a bar on a terminal, lines in a pipe, nothing if quiet.

        With `stages`, it also follows the parts of each stage of a fit or a prediction.
        """
        shown = self._progress(what)
        with shown as report, watching(report) if stages else nullcontext():
            yield report

    @contextmanager
    def _progress(self, what: str) -> Iterator[Report]:
        if self.quiet:
            yield lambda done, total, kind="": None
            return
        if not self.err.is_terminal:
            yield from self._lines_of_progress(what)
            return
        with progress_bar(self.err) as bar:
            task = bar.add_task(what, total=None)

            def report(done: int, total: int, kind: str = "") -> None:
                shown = _with_stage(what, kind)
                bar.update(task, description=shown, completed=done, total=total or None)

            yield report
            report(1, 1)  # work of unknown length is complete when it ends, and so is each stage

    def _lines_of_progress(self, what: str) -> Iterator[Report]:
        started = last = time.monotonic()
        first: tuple[float, int, tuple[int, str]] | None = None

        def report(done: int, total: int, kind: str = "") -> None:
            nonlocal last, first
            now = time.monotonic()
            if first is None or (total, kind) != first[2]:
                first = now, done, (total, kind)  # trees from a checkpoint do not show the pace
            if now - last < _LINE_SECONDS or done >= total > 0:
                return
            last = now
            if total == 0:
                self.note(f"{what}: {done:,} so far")
                return
            line = f"{_with_stage(what, kind)}: {100 * done / total:.0f} %"
            if done > first[1]:
                left = (now - first[0]) * (total - done) / (done - first[1])
                line += f", {duration(left)} left"
            self.note(line)

        yield report
        self.note(f"{what}: done in {duration(time.monotonic() - started)}")


def _with_stage(what: str, kind: str) -> str:
    return f"{what}, {kind}s" if kind else what


def progress_bar(console: Console) -> Progress:
    """The progress bar of all commands."""
    return Progress(
        TextColumn("{task.description}", markup=False, table_column=Column(min_width=30)),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
    )


def json_line(value: Any) -> str:
    """JSON on one line; values that JSON cannot represent, such as NaN, become null."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """The value in plain Python types; None for numbers that JSON cannot represent."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
