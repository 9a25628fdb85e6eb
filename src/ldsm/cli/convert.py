"""``ldsm convert``: from any format to a store or another format."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from .._storage.text_files import read_lines
from .._wording import duration
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
from ..text import TextTagger
from ..text.corpus import in_chunks, read_pairs
from ..text.features import TextFeatures
from ..text.training import vectorized, vectorized_by
from .command import wrong_use
from .model import open_model
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
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            exists=True,
            dir_okay=False,
            help="With --vectorize: use the words of this model, which can then read the store.",
        ),
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Turn a data file into a memory-mapped store, or into another format.

    A store of any size opens in milliseconds. Files are converted block by block and need not fit
    in memory. OUT is written completely or not at all.

    --vectorize writes the features of texts instead of the texts. The store keeps how they were
    made: a model that is trained on it reads texts. Other texts that this model is to read as a
    store, for `ldsm evaluate` or `ldsm learn`, need its words: --like MODEL.
    """
    started = time.perf_counter()
    format = _target_format(target, to)
    if target.is_dir() and not overwrite:
        raise wrong_use(f"{target} exists; --overwrite replaces it.", "OUT")
    inputs = reader.inputs(source, *filter(None, [like]))
    check_output(target, "data", inputs, overwrite, "OUT")
    options: dict[str, Any] = {}
    if to_separator is not None:
        if format != "table":
            raise wrong_use(f"is not used with format {format}.", "--to-separator")
        options["separator"] = to_separator
    if vectorize and format != "store":
        raise wrong_use(f"writes a store, not format {format}.", "--vectorize")
    if not vectorize:
        words.refuse("without --vectorize, texts are kept as they are.")
        if like is not None:
            raise wrong_use("without --vectorize, texts are kept as they are.", "--like")
    features = None
    if like is not None:
        words.refuse("cannot be combined with --like, which has words already.")
        model = open_model(like)
        if not isinstance(model.estimator, TextTagger):
            raise wrong_use(f"{like} reads features, not texts.", "--like")
        features = model.estimator.features_
        reader = reader.as_trained(model.fitted.training, source)
    reader = reader.for_training(source)
    with screen.progress(f"converting {source.name}") as report:
        if format == "store":
            pieces = _blocks(reader, source)
            if vectorize:
                pieces = _vectorized(reader, source, words, features)
            blocks = _reported(_remembering(pieces, reader), report)
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


def _remembering(
    blocks: Iterable[tuple[Dataset, int]], reader: Reader
) -> Iterator[tuple[Dataset, int]]:
    """The blocks with how they were read, for the models that are trained on the store."""
    for block, total in blocks:
        yield replace(block, reading=reader.remembered(block)), total


def _vectorized(
    reader: Reader, path: Path, words: WordOptions, features: TextFeatures | None
) -> Iterator[tuple[Dataset, int]]:
    """Features of texts: with given words block by block, with words of their own in memory."""
    documents = reader.documents(path)
    data = None if documents is not None else reader.load(path)
    if data is not None and data.texts is None:
        raise wrong_use(f"{path} holds features, not texts.", "--vectorize")
    if features is not None:
        vectorize = vectorized_by(features)
        for block, total in _blocks(reader, path):
            yield vectorize(block), total
        return
    pairs = ((document.text, document.labels) for document in documents or ())
    made = vectorized(
        pairs if data is None else read_pairs(data),
        words.vectorizer(),
        with_parts=words.parts({}),
    )
    yield replace(made, reading=None if data is None else data.reading), len(made)


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
