"""Options of commands that change a model: where the changed model goes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from ..command import wrong_use
from ..model import hold_lock
from ..screen import Screen
from .output import check_output, check_place

ModelOutput = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Model file to write.")
]
InPlaceOption = Annotated[bool, typer.Option("--in-place", help="Replace MODEL when done.")]


def changed_file(
    screen: Screen,
    model: Path,
    output: Path | None,
    in_place: bool,
    *,
    inputs: Iterable[Path],
    overwrite: bool,
) -> Path:
    """The file to write, checked; the model itself is locked until the command ends."""
    if in_place == (output is not None):
        raise wrong_use("use either --output or --in-place.", "--output, --in-place")
    if output is None:
        hold_lock(screen, model)
        return model
    check_place(output)
    if output.exists() and os.path.samefile(output, model):
        raise wrong_use(f"{output} is the model itself; use --in-place to replace it.", "--output")
    check_output(output, "a model", inputs, overwrite)
    return output
