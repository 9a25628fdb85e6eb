"""``ldsm report``: write an HTML report on a model and labelled data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .._wording import size
from ..plotting import import_matplotlib
from ..report import make_report
from .model import open_model
from .options.model import JobsOption, ModelArgument
from .options.output import OverwriteOption, check_output
from .options.reader import Reader
from .screen import Screen


def report_command(
    screen: Screen,
    reader: Reader,
    model: ModelArgument,
    data: Annotated[
        Path, typer.Option(metavar="TEST", exists=True, help="Labelled data not used in training.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write.")
    ] = Path("report.html"),
    overwrite: OverwriteOption = False,
    n_jobs: JobsOption = None,
) -> None:
    """Write a report on a model: one HTML page with metrics, figures, labels and examples.

    The page is self-contained and needs no network access, so it can be sent, opened anywhere and
    printed. It shows labels, words and the beginnings of a few documents: check it before you
    share it. Needs matplotlib (pip install 'ldsm\\[plot]').
    """
    import_matplotlib()
    check_output(output, "a report", reader.inputs(model, data), overwrite)
    opened = open_model(model, n_jobs)
    reader = reader.as_trained(opened.fitted.training, data)
    with screen.progress(f"reporting on {data.name}"):
        rows = opened.checked(reader.load(data))
        report = make_report(opened.estimator, rows, model_name=model.name, data_name=data.name)
        report.save(output)
    if screen.json:
        screen.data({"path": str(output), "rows": len(rows), **report.metrics})
    else:
        screen.note(f"{output}: {size(output.stat().st_size)}")
