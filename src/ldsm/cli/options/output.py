"""Which files a command may overwrite: never an input, and only files of the same kind."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from ..._storage.container import FormatVersionError, ModelFileError, read
from ...report.html import GENERATOR
from ..answers import FIRST_COLUMN, LAST_COLUMNS
from ..command import wrong_use
from .estimator import defaults

OverwriteOption = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace an existing file of any kind, but never an input."),
]

_START_BYTES = 1 << 16  # enough of a file to recognise its kind
_PREDICTION = re.compile(r".* \d\.\d{4}")


def _is_model(path: Path) -> bool:
    try:
        read(path, verify=False)
    except FormatVersionError:
        return True  # of another version
    except ModelFileError:
        return False
    return True


def _is_report(path: Path) -> bool:
    return f'content="{GENERATOR}"' in _start(path)


def _are_predictions(path: Path) -> bool:
    line = next(filter(None, _start(path).splitlines()), "")
    columns = re.split("[,;\t|]", line)
    if columns[0] == FIRST_COLUMN and tuple(columns[-2:]) == LAST_COLUMNS:
        return True
    try:
        record = json.loads(line)
    except ValueError:
        return all(_PREDICTION.fullmatch(cell) for cell in line.split("\t"))
    return isinstance(record, dict) and {"labels", "scores"} <= record.keys()


def _are_params(path: Path) -> bool:
    try:
        stored = json.loads(path.read_bytes()[:_START_BYTES])
    except ValueError:
        return False
    return isinstance(stored, dict) and stored.keys() <= defaults().keys()


def _are_trials(path: Path) -> bool:
    return _start(path).startswith("SQLite format 3")


def _start(path: Path) -> str:
    with open(path, "rb") as file:
        return file.read(_START_BYTES).decode("utf-8", "replace")


# Tests for each kind of file. Data may be irreplaceable: it is overwritten only on request.
KINDS: Mapping[str, Callable[[Path], bool]] = {
    "a model": _is_model,
    "a report": _is_report,
    "predictions": _are_predictions,
    "parameters": _are_params,
    "trials": _are_trials,
    "data": lambda path: False,
}


def check_place(path: Path) -> None:
    """Raise an error, before any work, if the file cannot be written."""
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK) or path.is_dir():
        raise wrong_use(f"{path} cannot be written.", "--output")


def check_output(
    path: Path, kind: str, inputs: Iterable[Path], overwrite: bool, where: str = "--output"
) -> None:
    """Raise an error, before any work, if the file must not be overwritten.

    `kind` is one of KINDS. Anything but a regular file, such as a pipe, may be written.
    """
    for read_from in inputs:
        if path.exists() and read_from.exists() and os.path.samefile(path, read_from):
            raise wrong_use(f"{path} is an input of this command; write to another file.", where)
    if overwrite or not path.is_file() or path.stat().st_size == 0 or KINDS[kind](path):
        return
    if kind == "data":
        raise wrong_use(f"{path} exists; use --overwrite to replace it.", where)
    remedy = "use another name" if kind == "trials" else "use --overwrite to replace it"
    raise wrong_use(f"{path} exists and does not hold {kind}; {remedy}.", where)
