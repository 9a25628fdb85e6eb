"""``ldsm labels``: list, rename and drop the labels of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import typer

from .._ranking.training import FOUND_AT
from .._wording import counted, size
from ..text import TextTagger
from ..text.fitted import fitted_text
from .command import wrong_use
from .model import Model, no_label, open_model
from .options.changes import InPlaceOption, ModelOutput, changed_file
from .options.model import ModelArgument
from .options.output import OverwriteOption
from .screen import Screen


def labels(
    screen: Screen,
    model: ModelArgument,
    rename: Annotated[
        list[str] | None,
        typer.Option(metavar="OLD=NEW", help="Rename a label; may be repeated."),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL", help="Remove a label; may be repeated."),
    ] = None,
    output: ModelOutput = None,
    in_place: InPlaceOption = False,
    overwrite: OverwriteOption = False,
) -> None:
    """List the labels of a model, or rename and drop some.

    The list shows, for each label, the number of training rows, most frequent first; how often the
    label was among the five best of training rows that were held out to test it (only with a second
    stage); and its name, if it has one from a vocabulary. --json prints one object per label.

    --rename and --drop write a changed model with --output, or replace it with --in-place. The
    scores of all other labels stay the same.
    """
    if not rename and not drop:
        if output is not None or in_place:
            raise wrong_use("needs --rename or --drop.", "--output, --in-place")
        _list(screen, open_model(model))
        return
    target = changed_file(screen, model, output, in_place, inputs=[model], overwrite=overwrite)
    opened = open_model(model)
    known = {str(label): label for label in opened.fitted.classes.tolist()}
    names = _renamed(rename or (), known)
    gone = [_known(name, known, "--drop") for name in drop or ()]
    for label in gone:
        if label in names:
            raise wrong_use(f"{label!r} cannot be renamed and dropped.", "--rename, --drop")
    if gone:
        opened.estimator.drop_labels(gone)
    if names:  # perhaps to the name of a dropped label
        opened.estimator.rename_labels(names)
    opened.estimator.save(target)
    facts: dict[str, Any] = {
        "model": str(target),
        "renamed": len(names),
        "dropped": len(set(gone)),
        "labels": opened.fitted.n_labels,
        "bytes": target.stat().st_size,
        "fingerprint": opened.estimator.fingerprint_,
    }
    if screen.json:
        screen.data(facts)
        return
    screen.note(
        f"renamed {counted(facts['renamed'], 'label')} and dropped "
        f"{counted(facts['dropped'], 'label')}: {counted(facts['labels'], 'label')} left"
    )
    screen.note(f"{target}: {size(facts['bytes'])}")


def _list(screen: Screen, model: Model) -> None:
    fitted, stage = model.fitted, model.fitted.second_stage
    titles = {}
    if isinstance(model.estimator, TextTagger):
        titles = fitted_text(model.estimator).titles.as_dict()
    tested = None if stage is None else stage.tested
    rows: list[dict[str, Any]] = []
    for column in np.argsort(-fitted.label_counts, kind="stable").tolist():
        label = fitted.classes[column]
        n_tested, found = (None, None) if tested is None else tested[column].tolist()
        rows.append(
            {
                "label": label,
                "training_rows": fitted.label_counts[column],
                "held_out_rows": n_tested,
                "found": found,
                "name": titles.get(label),
            }
        )
    if screen.json:
        for row in rows:
            screen.data(row)
        return
    heads = ["label", "training rows"]
    heads += [f"found in the top {FOUND_AT}"] if tested is not None else []
    heads += ["name"] if titles else []
    cells: list[list[Any]] = []
    for row in rows:
        cells.append([str(row["label"]), row["training_rows"]])
        if tested is not None:
            cells[-1].append(_share(row["found"], row["held_out_rows"]))
        if titles:
            cells[-1].append(row["name"] or "")
    screen.table(heads, cells, text=["name"])


def _share(found: int, rows: int) -> str:
    return f"{found:,} of {rows:,} ({100 * found / rows:.0f} %)" if rows else "not tested"


def _renamed(given: Sequence[str], known: Mapping[str, Any]) -> dict[Any, Any]:
    """New names by old ones; either may contain a "="."""
    names: dict[Any, Any] = {}
    for item in given:
        cuts = [i for i, character in enumerate(item) if character == "="]
        if not cuts:
            raise wrong_use(f"must be OLD=NEW, got {item!r}.", "--rename")
        cut = next((i for i in cuts if item[:i] in known), cuts[0])
        old, new = _known(item[:cut], known, "--rename"), item[cut + 1 :]
        if not new:
            raise wrong_use(f"must be OLD=NEW, got {item!r}; --drop removes a label.", "--rename")
        if old in names:
            raise wrong_use(f"{old!r} is renamed twice.", "--rename")
        names[old] = _of_kind(new, old)
    return names


def _of_kind(name: str, label: Any) -> Any:
    """The new name as a label of the kind of the old one."""
    if isinstance(label, str):
        return name
    try:
        return int(name)
    except ValueError:
        raise wrong_use(f"labels of this model are numbers, got {name!r}.", "--rename") from None


def _known(name: str, known: Mapping[str, Any], option: str) -> Any:
    if name not in known:
        raise wrong_use(no_label(name, known), option)
    return known[name]
