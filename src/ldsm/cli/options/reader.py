"""Data for commands: which format, which options of its reader, whole or block by block."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ..._storage.text_files import format_suffix, read_lines
from ...datasets import (
    FORMATS,
    Dataset,
    guess_format,
    iter_jsonl,
    iter_svmlight,
    iter_table,
    iter_xmlrepo,
)
from ..command import option, wrong_use

Piece = TypeVar("Piece")

STDIN = Path("-")
LINES = "lines"  # a document a line, for prediction
# Formats whose rows come one block, or one document, at a time.
_BLOCKS: dict[str, Callable[..., Iterator[Dataset]]] = {
    "xmlrepo": iter_xmlrepo,
    "svmlight": iter_svmlight,
}
_DOCUMENTS: dict[str, Callable[..., Iterator[tuple[str, list[str]]]]] = {
    "jsonl": iter_jsonl,
    "table": iter_table,
}
# Option -> the reader's argument, its type and help. Defaults are the readers' own.
_OPTIONS: dict[str, tuple[str, Any, str]] = {
    "text_field": ("text", str, "Field or column of the document; default `text`."),
    "label_field": ("labels", str, "Field or column of the labels; default `labels`."),
    "separator": ("separator", str, "What stands between two labels of a table's cell."),
    "delimiter": ("delimiter", str, "What stands between two cells of a table."),
    "zero_based": ("zero_based", bool, "svmlight: the first feature is called 0, not 1."),
    "feature_names": ("feature_names", Path, "Text file with a feature's name a line."),
    "label_names": ("label_names", Path, "Text file with a label's name a line."),
    "split_file": ("split_file", Path, "xmlrepo: file of row numbers, only these rows."),
    "split": ("split", int, "xmlrepo: which column of --split-file, from 0."),
}


@dataclass(frozen=True)
class Reader:
    """How files are to be read; a bundle of options."""

    format: str | None
    arguments: dict[str, Any]  # of the reader, by option

    @staticmethod
    def options() -> Sequence[inspect.Parameter]:
        panel = "Data files"
        names = ", ".join((*FORMATS, LINES))
        text = f"Format, if not what the suffix says: {names} (of texts to predict)."
        parameters = [
            option("format", str | None, None, metavar="NAME", help=text, rich_help_panel=panel)
        ]
        for name, (_, kind, text) in _OPTIONS.items():
            settings: dict[str, Any] = {"help": text, "rich_help_panel": panel}
            if kind is Path:
                settings |= {"exists": True, "dir_okay": False, "metavar": "FILE"}
            # Without a name of its own a switch would get a "--no-" twin.
            decl = (f"--{name.replace('_', '-')}",) if kind is bool else ()
            parameters.append(option(name, kind | None, None, *decl, **settings))
        return parameters

    @staticmethod
    def collect(values: dict[str, Any]) -> Reader:
        format = values.pop("format")
        if format is not None and format not in (*FORMATS, LINES):
            raise wrong_use(f"must be one of {', '.join(FORMATS)}, got {format!r}.", "--format")
        return Reader(format, {name: v for name, v in values.items() if v is not None})

    def format_of(self, path: Path) -> str:
        """The format that was named, or that the suffix stands for."""
        if self.format is not None:
            return self.format
        try:
            return guess_format(path)
        except ValueError as error:
            raise wrong_use(str(error), "--format") from None

    def load(self, path: Path) -> Dataset:
        """All rows; a store stays memory-mapped."""
        format = self.format_of(path)
        if format == LINES:
            raise wrong_use("lines of text have no labels: they are for prediction.", "--format")
        return FORMATS[format](path, **self._arguments(format))

    def blocks(self, path: Path) -> Iterator[Dataset] | None:
        """The rows of a matrix file block by block, where format and options allow it."""
        return self._pieces(_BLOCKS, path)

    def documents(self, path: Path) -> Iterator[tuple[str, list[str]]] | None:
        """Documents one at a time with their labels, where the format holds documents."""
        return self._pieces(_DOCUMENTS, path)

    def texts(self, path: Path) -> Iterator[str]:
        """Documents alone, whether they have labels or not: lines of text, unless it is known
        that they are something else."""
        format = self.format
        if format is None:
            format = LINES if path == STDIN or format_suffix(path) == ".txt" else guess_format(path)
        file = Path("/dev/stdin") if path == STDIN else path
        if format == LINES:
            yield from (line for _, line in read_lines(file))
        elif format in _DOCUMENTS:
            arguments = {**self._arguments(format), "labels": None}
            yield from (text for text, _ in _DOCUMENTS[format](file, **arguments))
        else:
            data = self.load(path)
            if data.texts is None:
                raise ValueError(f"The model reads texts, and {path} holds features.")
            yield from data.texts

    def _pieces(
        self, readers: dict[str, Callable[..., Iterator[Piece]]], path: Path
    ) -> Iterator[Piece] | None:
        format = self.format_of(path)
        if format not in readers:
            return None
        arguments = self._arguments(format)
        # Names of columns and splits need the whole file.
        if not arguments.keys() <= inspect.signature(readers[format]).parameters.keys():
            return None
        return readers[format](path, **arguments)

    def _arguments(self, format: str) -> dict[str, Any]:
        """What was given, by the reader's names; an option that it does not know is wrong use."""
        known = inspect.signature(FORMATS[format]).parameters
        for name in self.arguments:
            if _OPTIONS[name][0] not in known:
                raise wrong_use(f"is not for the format {format}.", f"--{name.replace('_', '-')}")
        return {_OPTIONS[name][0]: value for name, value in self.arguments.items()}
