"""``ldsm evaluate``: the field's metrics on labelled data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .command import wrong_use
from .model import JobsOption, ModelArgument, TailOption, open_model
from .reader import Reader
from .scoring import propensities_of, score, show
from .screen import Screen


def evaluate(
    screen: Screen,
    reader: Reader,
    model: ModelArgument,
    data: Annotated[Path, typer.Argument(metavar="DATA", exists=True, help="Labelled data.")],
    k: Annotated[
        list[int] | None, typer.Option("-k", min=1, help="Predictions that count; may be repeated.")
    ] = None,
    propensity_dataset: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Data set whose A and B to use, as `amazon-670k`."),
    ] = None,
    a: Annotated[float | None, typer.Option("--a", help="A of the propensities.")] = None,
    b: Annotated[float | None, typer.Option("--b", help="B of the propensities.")] = None,
    tail: TailOption = 0.0,
    n_jobs: JobsOption = None,
) -> None:
    """Measure a model on labelled data: P, nDCG, PSP, PSnDCG, recall and coverage at k, and F1.

    The propensities come from the label counts of training, which the model keeps, with the general
    A = 0.55 and B = 1.5 unless a data set or both numbers are named. Labels that training never saw
    are reported; "recall, all labels" counts them as misses.
    """
    if (a is None) != (b is None):
        raise wrong_use("A and B must be given together.", "--a, --b")
    if a is not None and propensity_dataset is not None:
        raise wrong_use("either a data set or A and B, not both.", "--propensity-dataset")
    opened = open_model(model, n_jobs)
    try:
        propensities = propensities_of(opened, propensity_dataset, a, b)
    except ValueError as error:
        raise wrong_use(str(error), "--propensity-dataset, --a, --b") from None
    with screen.progress(f"evaluating {data.name}"):
        ks = sorted(set(k or (1, 3, 5)))
        scores = score(opened, reader.load(data), ks, propensities, tail)
    if screen.json:
        screen.data(scores.as_dict())
    else:
        show(screen, scores, f"{data.name}: {scores.n_rows:,} rows")
