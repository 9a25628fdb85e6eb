"""Write tables and pictures into marked places of Markdown pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ldsm.plotting import import_matplotlib

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks" / "README.md"
ENCODER = ROOT / "docs" / "encoder.md"
REPRODUCTION = ROOT / "docs" / "reproduction.md"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def slashed(values: Any, digits: int = 2) -> str:
    """Numbers as 1.00 / 2.00 / 3.00."""
    return " / ".join(f"{value:.{digits}f}" for value in values)


def mean_spread(values: Sequence[float], digits: int = 2) -> str:
    """Mean ± standard deviation over the seeds."""
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values, ddof=1):.{digits}f}"


def code(settings: dict[str, Any]) -> str:
    """Settings as a reader would write them."""
    return "`" + (", ".join(f"{k}={v!r}" for k, v in settings.items()) or "defaults") + "`"


def publish(page: Path, name: str, text: str, pictures: Sequence[Path] = ()) -> None:
    """Put `text` between the page's marks of that name, and the pictures beside the page."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    old = page.read_text()
    if not (0 <= old.find(begin) < old.find(end)):
        raise ValueError(f"{page} must hold the lines {begin} and {end}, in this order.")
    before, rest = old.split(begin, 1)
    part = page.with_name(page.name + ".part")
    part.write_text(f"{before}{begin}\n{text.strip()}\n{end}{rest.split(end, 1)[1]}")
    os.replace(part, page)
    for picture_file in pictures:
        shutil.copyfile(picture_file, page.parent / picture_file.name)
    print(f"wrote {page}", flush=True)


@contextmanager
def picture(path: Path, panels: int = 1, width: float = 4.4, height: float = 3.6) -> Iterator[Any]:
    """An array of axes, one per panel; saved to `path` in the end."""
    columns = min(panels, 3)
    rows = -(-panels // columns)
    size = (width * columns, height * rows)
    figure = import_matplotlib().figure.Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[panels:]:
        axis.remove()
    axes = axes[:panels]
    yield axes
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    figure.savefig(path, dpi=110)


def log_scale(axes: Any, which: str = "x") -> None:
    """A logarithmic axis with plain numbers: 0.5, 1, 10, 1,000."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set(**{f"{which}scale": "log"})
    low, high = getattr(axes, f"get_{which}lim")()
    axis = getattr(axes, f"{which}axis")
    # Beyond three decades the numbers between would run into each other.
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 1e3 else (1,)))
    plain = FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    axis.set_major_formatter(plain)
    axis.set_minor_formatter(NullFormatter())
