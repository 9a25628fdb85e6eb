"""Arguments and options of commands that use a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", exists=True, dir_okay=False, help="A model file.")
]
JobsOption = Annotated[
    int | None,
    typer.Option(help="Number of threads; -1 for all cores. Default: the model's setting."),
]
EncoderOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        exists=True,
        help="The encoder of the model, if it was trained with one: a folder or an .onnx file.",
    ),
]
TailOption = Annotated[
    float,
    typer.Option(
        min=0, metavar="W", help="Favour rare labels: order by score / propensity^W; 1 for PSP."
    ),
]
