"""How commands read data: the format and its options; all at once or in chunks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from ..._storage.text_files import MAX_LINE_LENGTH, format_suffix, read_lines
from ...datasets import (
    FORMATS,
    Dataset,
    guess_format,
    iter_svmlight,
    iter_xmlrepo,
)
from ...datasets.documents.arrow import read_arrow
from ...datasets.documents.corrections import are_corrections
from ...datasets.documents.document import Document
from ...datasets.documents.jsonl import read_jsonl
from ...datasets.documents.tables import guess_separator, read_table
from ..command import as_words, option, wrong_use

Piece = TypeVar("Piece")

STDIN = Path("-")
LINES = "lines"  # one document per line, for prediction
# Formats that can be read one chunk, or one document, at a time.
_CHUNKS: dict[str, Callable[..., Iterator[Dataset]]] = {
    "xmlrepo": iter_xmlrepo,
    "svmlight": iter_svmlight,
}
_DOCUMENTS: dict[str, Callable[..., Iterator[Document]]] = {
    "jsonl": read_jsonl,
    "table": read_table,
    "arrow": read_arrow,
}
# Option -> the reader's argument, its type and help. The readers have the defaults.
_OPTIONS: dict[str, tuple[str, Any, str]] = {
    "text_field": (
        "text",
        list[str],
        "Field or column of the text; default `text`, or 1 with --no-header. May be repeated: "
        "title and body.",
    ),
    "label_field": (
        "labels",
        str,
        "Field or column of the labels; default `labels`, or 2 with --no-header.",
    ),
    "separator": (
        "separator",
        str,
        "Separator between the labels in a cell; default: detected if obvious, else a comma.",
    ),
    "delimiter": ("delimiter", str, "Separator between the cells of a table."),
    "no_header": ("header", bool, "The table has no header line: columns are numbered from 1."),
    "no_quotes": (
        "quotes",
        bool,
        "Treat quotes in a table as ordinary characters: every line is a row.",
    ),
    "encoding": ("encoding", str, "Encoding of texts; default `utf-8`."),
    "max_line_length": (
        "max_line_length",
        int,
        "Maximum length of a line, table row or array item, in characters; default "
        f"{MAX_LINE_LENGTH}.",
    ),
    "zero_based": ("zero_based", bool, "svmlight: features are numbered from 0, not from 1."),
    "feature_names": ("feature_names", Path, "Text file with one feature name per line."),
    "label_names": (
        "label_names",
        Path,
        "Text file of label names, if labels are numbers or codes: one name per line, for numbers "
        "counted from 0, or a code, a tab and a name.",
    ),
    "split_file": ("split_file", Path, "xmlrepo: read only the rows numbered in this file."),
    "split": ("split", int, "xmlrepo: column of --split-file, counted from 0."),
}


_REMEMBERED = (
    "text_field",
    "label_field",
    "separator",
    "delimiter",
    "no_header",
    "no_quotes",
    "encoding",
    "zero_based",
)


def names_a_path(argument: str) -> bool:
    """Whether an argument that may be a text is the path of a file or folder."""
    try:
        return argument != "" and Path(argument).exists()
    except (OSError, ValueError):  # longer than a path can be, or with a NUL
        return False


@dataclass(frozen=True)
class Reader:
    """How to read data files; a bundle of options."""

    format: str | None
    arguments: dict[str, Any]  # of the reader, by option name

    @staticmethod
    def options() -> Sequence[inspect.Parameter]:
        panel = "Data files"
        names = ", ".join((*FORMATS, LINES))
        text = f"Format, if the suffix does not show it: {names} (one text per line)."
        parameters = [
            option("format", str | None, None, metavar="NAME", help=text, rich_help_panel=panel)
        ]
        for name, (_, kind, text) in _OPTIONS.items():
            settings: dict[str, Any] = {"help": text, "rich_help_panel": panel}
            if kind is Path:
                settings |= {"exists": True, "dir_okay": False, "metavar": "FILE"}
            if name == "max_line_length":
                settings["min"] = 1
            # Without an explicit name a switch would also get a "--no-" form.
            decl = (f"--{name.replace('_', '-')}",) if kind is bool else ()
            parameters.append(option(name, kind | None, None, *decl, **settings))
        return parameters

    @staticmethod
    def collect(values: dict[str, Any]) -> Reader:
        format = values.pop("format")
        if format is not None and format not in (*FORMATS, LINES):
            raise wrong_use(f"must be one of {', '.join(FORMATS)}, got {format!r}.", "--format")
        given = {name: value for name, value in values.items() if value not in (None, [])}
        for name in ("separator", "delimiter"):
            if given.get(name) == r"\t":  # a tab is hard to type in a shell
                given[name] = "\t"
        return Reader(format, given)

    def given(self) -> list[str]:
        """The given options as words of a command."""
        values = {"format": self.format, **self.arguments}
        return as_words({name: value for name, value in values.items() if value is not None})

    @property
    def of_lines(self) -> dict[str, Any]:
        """The given arguments that apply to any file of lines."""
        names = ("encoding", "max_line_length")
        return {name: value for name, value in self.arguments.items() if name in names}

    def for_training(self, path: Path) -> Reader:
        """This reader with the label separator of a table of documents."""
        if self.format_of(path) != "table" or "separator" in self.arguments:
            return self
        arguments = dict(self.arguments)
        column, delimiter = arguments.get("label_field", "labels"), arguments.get("delimiter")
        form = {name: not arguments.get(f"no_{name}", False) for name in ("header", "quotes")}
        arguments["separator"] = guess_separator(path, column, delimiter, **form, **self.of_lines)
        return replace(self, arguments=arguments)

    def remembered(self, data: Dataset | None = None) -> dict[str, Any]:
        """The reading options to save in a model; a store keeps those of its source file."""
        stored = {} if data is None else _well_formed(data.reading)
        given = {name: value for name, value in self.arguments.items() if name in _REMEMBERED}
        return {**stored, **given}

    def named_by(self) -> dict[str, str]:
        """The name of the file of label names, if there is one, to save in a model."""
        file = self.arguments.get("label_names")
        return {} if file is None else {"label_names": file.name}

    def as_trained(self, training: Mapping[str, Any], path: Path) -> Reader:
        """This reader with the options saved in a model, where none are given.

        Options that the file's format does not have, and malformed ones, are left out.
        """
        stored = _well_formed(training.get("reading"))
        if not stored or path == STDIN or self._reads_lines(path):
            return self
        if self.format_of(path) == "jsonl" and are_corrections(path):
            return self  # their fields are those of `ldsm serve`, whatever the training data had
        known = inspect.signature(FORMATS[self.format_of(path)]).parameters
        kept = {name: value for name, value in stored.items() if _OPTIONS[name][0] in known}
        return replace(self, arguments={**kept, **self.arguments})

    def _reads_lines(self, path: Path) -> bool:
        return self.format == LINES or (self.format is None and format_suffix(path) == ".txt")

    def inputs(self, *paths: Path) -> list[Path]:
        """All files that a command reads: the given ones and those named by options."""
        return [*paths, *(value for value in self.arguments.values() if isinstance(value, Path))]

    def format_of(self, path: Path) -> str:
        """The given format, or the format of the suffix."""
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
            raise wrong_use("plain lines have no labels; they can only be predicted.", "--format")
        return FORMATS[format](path, **self._arguments(format))

    def chunks(self, path: Path) -> Iterator[Dataset] | None:
        """The rows of a matrix file in chunks, if format and options allow it."""
        return self._pieces(_CHUNKS, path)

    def documents(self, path: Path) -> Iterator[Document] | None:
        """Documents with their labels, one at a time, if the format holds documents."""
        return self._pieces(_DOCUMENTS, path)

    def made_features(self, path: Path) -> Dataset | None:
        """The rows of a store whose features were made from texts; None for any other data."""
        if path == STDIN or self.format == LINES or not path.is_dir():
            return None
        data = self.load(path)
        return None if data.text_form is None else data

    def texts(self, path: Path, id_field: str | None = None) -> Iterator[Document]:
        """Documents without labels; plain lines unless format or suffix say otherwise."""
        format = self.format
        if format is None:
            format = LINES if path == STDIN or format_suffix(path) == ".txt" else guess_format(path)
        file = Path("/dev/stdin") if path == STDIN else path
        if format in _DOCUMENTS:
            arguments = {**self._arguments(format), "labels": None, "id_field": id_field}
            yield from _DOCUMENTS[format](file, **arguments)
            return
        if id_field is not None:
            raise wrong_use(f"is not used with format {format}.", "--id-field")
        if format == LINES:
            yield from (Document(line, []) for _, line in read_lines(file, **self.of_lines))
            return
        data = self.load(path)
        if data.texts is None:
            raise ValueError(f"The model reads texts, but {path} holds features.")
        yield from (Document(text, []) for text in data.texts)

    def _pieces(
        self, readers: dict[str, Callable[..., Iterator[Piece]]], path: Path
    ) -> Iterator[Piece] | None:
        format = self.format_of(path)
        if format not in readers:
            return None
        arguments = self._arguments(format)
        # Column names and splits need the whole file.
        if not arguments.keys() <= inspect.signature(readers[format]).parameters.keys():
            return None
        return readers[format](path, **arguments)

    def arguments_of(self, format: str) -> dict[str, Any]:
        """The options that the format's reader accepts, by its argument names."""
        known = inspect.signature(FORMATS[format]).parameters
        named = {
            _OPTIONS[name][0]: not value if name.startswith("no_") else value
            for name, value in self.arguments.items()
        }
        return {name: value for name, value in named.items() if name in known}

    def _arguments(self, format: str) -> dict[str, Any]:
        """The given options by the reader's argument names; unknown options are wrong usage."""
        known = inspect.signature(FORMATS[format]).parameters
        for name in self.arguments:
            if _OPTIONS[name][0] not in known:
                raise wrong_use(f"is not used with format {format}.", f"--{name.replace('_', '-')}")
        return self.arguments_of(format)


def _well_formed(stored: Any) -> dict[str, Any]:
    """The valid reading options in a file, which can hold anything."""
    return {
        name: value
        for name, value in (stored.items() if isinstance(stored, dict) else ())
        if name in _REMEMBERED and _is_a(_OPTIONS[name][1], value)
    }


def _is_a(kind: Any, value: Any) -> bool:
    if kind == list[str]:
        return isinstance(value, list) and len(value) > 0 and all(type(v) is str for v in value)
    return type(value) is kind
