"""``ldsm convert``: from any format to a store or another format."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from .._runtime.wording import duration
from .._storage.text_files import read_lines
from .._trees.params import is_ranked
from ..datasets import (
    Dataset,
    Strings,
    guess_format,
    open_store,
    save_jsonl,
    save_store,
    save_svmlight,
    save_table,
    save_xmlrepo,
)
from ..datasets.dataset import named_labels
from ..datasets.documents import Document
from ..text.corpus import TagCollector, in_chunks
from ..text.features import kept_form, learn_features
from .command import wrong_use
from .options.estimator import defaults
from .options.output import OverwriteOption, check_output
from .options.reader import Reader
from .options.tagger import WordOptions
from .screen import Report, Screen

WRITERS: dict[str, Callable[..., None]] = {
    "xmlrepo": save_xmlrepo,
    "svmlight": save_svmlight,
    "jsonl": save_jsonl,
    "table": save_table,
    "store": save_store,
}
_DOCUMENTS_AT_ONCE = 4096

_Input = Annotated[
    Path, typer.Argument(metavar="IN", exists=True, help="Data file, or the folder of a store.")
]
_Output = Annotated[
    Path, typer.Argument(metavar="OUT", help="File to write; a store if it has no suffix.")
]


def convert(
    screen: Screen,
    reader: Reader,
    words: WordOptions,
    source: _Input,
    target: _Output,
    to: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Format of OUT, if its suffix does not tell."),
    ] = None,
    to_separator: Annotated[
        str | None, typer.Option(help="Separator to write between the labels in a table cell.")
    ] = None,
    vectorize: Annotated[
        bool,
        typer.Option(
            "--vectorize",
            help="Turn texts into features: a store that `ldsm train --dask` takes.",
        ),
    ] = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Turn a data file into a memory-mapped store, or into another format.

    A store of any size opens in milliseconds. Files are converted block by block and need not fit
    in memory. OUT is written completely or not at all.

    --vectorize writes the features of texts instead of the texts. The store keeps how they were
    made: a model that is trained on it reads texts.
    """
    started = time.perf_counter()
    format = _target_format(target, to)
    if target.is_dir() and not overwrite:
        raise wrong_use(f"{target} exists; --overwrite replaces it.", "OUT")
    check_output(target, "data", reader.inputs(source), overwrite, "OUT")
    options: dict[str, Any] = {}
    if to_separator is not None:
        if format != "table":
            raise wrong_use(f"is not used with format {format}.", "--to-separator")
        options["separator"] = to_separator
    if vectorize and format != "store":
        raise wrong_use(f"writes a store, not format {format}.", "--vectorize")
    if not vectorize:
        words.refuse("without --vectorize, texts are kept as they are.")
    reader = reader.for_training(source)
    with screen.progress(f"converting {source.name}") as report:
        if format == "store":
            pieces = _vectorized(reader, source, words) if vectorize else _blocks(reader, source)
            blocks = _reported(pieces, report)
            save_store(blocks, target, overwrite=overwrite)
            data = open_store(target)
        else:
            data = reader.load(source)
            WRITERS[format](data, target, **options)
    seconds = time.perf_counter() - started
    rows, labels = len(data), data.n_labels
    if screen.json:
        screen.data({"path": str(target), "format": format, "rows": rows, "labels": labels})
    else:
        screen.note(f"{target}: {rows:,} rows, {labels:,} labels, in {duration(seconds)}")


def write_as_read(data: Dataset, path: Path, reader: Reader) -> None:
    """Write rows in the format of the suffix, so that the same options read them again."""
    format = _target_format(path, None)
    write = WRITERS[format]
    known = inspect.signature(write).parameters
    options = reader.arguments_of(format)
    write(data, path, **{name: value for name, value in options.items() if name in known})


def _target_format(target: Path, to: str | None) -> str:
    if to is None and (not target.suffix or target.is_dir()):
        return "store"
    try:
        format = guess_format(target) if to is None else to
    except ValueError:
        raise wrong_use(f"must name the format of {target}: unknown suffix.", "--to") from None
    if format not in WRITERS:
        raise wrong_use(f"must be one of {', '.join(WRITERS)}, got {format!r}.", "--to")
    return format


def _reported(blocks: Iterable[tuple[Dataset, int]], report: Report) -> Iterator[Dataset]:
    """The blocks; progress is reported once each has been written."""
    rows = 0
    for block, total in blocks:
        yield block
        rows += len(block)
        report(rows, total)


def _blocks(reader: Reader, path: Path) -> Iterator[tuple[Dataset, int]]:
    """Blocks of rows, each with the number of rows in all blocks, 0 if unknown."""
    blocks = reader.blocks(path)
    if blocks is not None:
        total = 0
        if reader.format_of(path) == "xmlrepo":
            first = next(read_lines(path), (1, ""))[1].split()
            total = int(first[0]) if first and first[0].isdigit() else 0
        yield from ((block, total) for block in blocks)
        return
    if reader.documents(path) is not None:
        yield from _document_blocks(reader, path)
        return
    data = reader.load(path)
    yield data, len(data)


def _vectorized(reader: Reader, path: Path, words: WordOptions) -> Iterator[tuple[Dataset, int]]:
    """Features of texts, which must fit in memory, unlike the texts."""
    if reader.documents(path) is None and reader.load(path).texts is None:
        raise wrong_use(f"{path} holds features, not texts.", "--vectorize")
    collector = TagCollector((document.text, document.labels) for document in _texts(reader, path))
    X, features = learn_features(
        words.vectorizer(),
        collector.texts(),
        None,
        with_parts=lambda n_texts: not words.words and is_ranked(defaults(), n_texts),
        label_names=collector.names,
    )
    Y, names, _ = collector.matrix(1)
    form, columns = kept_form(features), Strings.pack(features.names)
    data = Dataset(X, Y, label_names=names, feature_names=columns, text_form=form)
    yield data, len(data)


def _texts(reader: Reader, path: Path) -> Iterator[Document]:
    """Documents with their labels, one by one where the format has them so."""
    documents = reader.documents(path)
    if documents is not None:
        return documents
    data = reader.load(path)
    return map(Document, data.texts or (), data.labels)


def _document_blocks(reader: Reader, path: Path) -> Iterator[tuple[Dataset, int]]:
    """Documents in two passes: all label names must be known before the first is written."""
    seen: set[str] = set()
    total = 0
    for document in reader.documents(path) or ():
        seen.update(document.labels)
        total += 1
    number = {name: i for i, name in enumerate(sorted(seen))}
    names = Strings.pack(number)
    chunks = in_chunks(reader.documents(path) or (), _DOCUMENTS_AT_ONCE)
    for part in chunks if total else [[]]:  # an empty file is an empty store
        Y = named_labels([document.labels for document in part], number)
        texts = [document.text for document in part]
        yield Dataset(None, Y, texts=texts, label_names=names), total
