"""Load a data set of any format, by the suffix of the file."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .._storage.paths import PathLike, printable
from .._storage.text_files import format_suffix
from .._wording import argument
from .dataset import Dataset
from .documents.arrow import load_arrow
from .documents.jsonl import load_jsonl
from .documents.tables import load_table
from .store import open_store
from .svmlight import load_svmlight
from .xmlrepo import load_xmlrepo

FORMATS: dict[str, Callable[..., Dataset]] = {
    "xmlrepo": load_xmlrepo,
    "svmlight": load_svmlight,
    "jsonl": load_jsonl,
    "table": load_table,
    "arrow": load_arrow,
    "store": open_store,
}
_SUFFIXES = {
    ".txt": "xmlrepo",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "table",
    ".tsv": "table",
    ".tab": "table",
    ".parquet": "arrow",
    ".feather": "arrow",
    ".arrow": "arrow",
}
_FOREIGN = {
    ".xlsx": "a spreadsheet",
    ".xls": "a spreadsheet",
    ".ods": "a spreadsheet",
    ".pkl": "a pickle",
}
_READ_ONLY = {
    ".parquet": "a Parquet file",
    ".feather": "a Feather file",
    ".arrow": "an Arrow file",
}


def foreign_format(path: PathLike, *, to_write: bool = False) -> str | None:
    """The name of a well-known format that ldsm cannot read, or write; None for other files."""
    known = _FOREIGN | _READ_ONLY if to_write else _FOREIGN
    return known.get(format_suffix(path))


def guess_format(path: PathLike) -> str:
    """The format of a path by its suffix; a folder is a store.

    Parameters
    ----------
    path : path
        A file or a folder; only a folder needs to exist.

    Returns
    -------
    str
        A key of `FORMATS`.

    Examples
    --------
    >>> guess_format("train.txt.bz2"), guess_format("notes.csv")
    ('xmlrepo', 'table')
    """
    if os.path.isdir(path):
        return "store"
    suffix = format_suffix(path)
    if (kind := foreign_format(path)) is not None:
        raise ValueError(f"{printable(path)} is {kind}, which ldsm cannot read; save it as CSV.")
    if suffix not in _SUFFIXES:
        raise ValueError(
            f"The suffix of {printable(path)} is none of {', '.join(_SUFFIXES)}; use "
            f"{argument('format')} to name its format: {', '.join(FORMATS)}."
        )
    return _SUFFIXES[suffix]


def check_store_name(folder: PathLike) -> None:
    """Raise an error if a store, which is a folder, would look like a file of another format."""
    suffix = format_suffix(folder)
    if suffix in _SUFFIXES or suffix in _FOREIGN:
        raise ValueError(
            f"A store is a folder, but {printable(folder)} looks like a file; use save_table, "
            "save_jsonl, save_svmlight or save_xmlrepo to write files."
        )


def load_dataset(path: PathLike, format: str | None = None, **options: Any) -> Dataset:
    """Read a data set of any format.

    Parameters
    ----------
    path : path
        A file, or the folder of a store.
    format : {"xmlrepo", "svmlight", "jsonl", "table", "arrow", "store"}, optional
        By default taken from the suffix, ignoring ``.gz`` or ``.bz2``: ``.txt`` is the Extreme
        Classification Repository's format.
    **options
        Options of the format's reader.

    Examples
    --------
    >>> from ldsm import datasets
    >>> datasets.save_jsonl(datasets.Dataset.from_texts(["cod quota"], [["fish"]]), "notes.jsonl")
    >>> datasets.load_dataset("notes.jsonl").labels
    [['fish']]
    """
    name = guess_format(path) if format is None else format
    if name not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}. Got {name!r} instead.")
    return FORMATS[name](path, **options)
