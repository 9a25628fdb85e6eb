"""``ldsm report``: write an HTML report on a model and labelled data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .._wording import size, warn
from ..plotting import import_matplotlib
from ..report import make_report
from .command import wrong_use
from .model import open_model
from .options.model import EncoderOption, JobsOption, ModelArgument
from .options.output import OverwriteOption, check_output
from .options.reader import Reader
from .screen import Screen


def report_command(
    screen: Screen,
    reader: Reader,
    model: ModelArgument,
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA", exists=True, show_default=False, help="Labelled data not trained on."
        ),
    ] = None,
    former: Annotated[
        Path | None, typer.Option("--data", hidden=True, exists=True, metavar="DATA")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write.")
    ] = Path("report.html"),
    overwrite: OverwriteOption = False,
    encoder: EncoderOption = None,
    n_jobs: JobsOption = None,
) -> None:
    """Write a report on a model: one HTML page with results, thresholds, labels and examples.

    The page is self-contained and needs no network access, so it can be sent, opened anywhere and
    printed. It shows labels, words and the beginnings of a few documents: check it before you
    share it. Needs matplotlib (pip install 'ldsm\\[plot]').
    """
    if former is not None:
        warn(
            "--data is deprecated and will be removed in 0.4: use `ldsm report MODEL DATA`.",
            FutureWarning,
        )
    if (data is None) == (former is None):
        raise wrong_use("name the labelled data once, after the model.", "DATA")
    data = data or former
    assert data is not None
    import_matplotlib()
    check_output(output, "a report", reader.inputs(model, data), overwrite)
    opened = open_model(model, n_jobs, encoder)
    reader = reader.as_trained(opened.fitted.training, data)
    with screen.progress(f"reporting on {data.name}"):
        rows = opened.checked(reader.load(data))
        report = make_report(opened.estimator, rows, model_name=model.name, data_name=data.name)
        report.save(output)
    if screen.json:
        screen.data({"path": str(output), "rows": len(rows), **report.metrics})
    else:
        screen.note(f"{output}: {size(output.stat().st_size)}")
