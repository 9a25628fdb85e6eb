"""``ldsm convert``: convert data files to a store or another format."""

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
from ..text.encoders.encoder import Encoder, FittedEncoder
from ..text.features import TextFeatures
from ..text.fitted import fitted_text
from ..text.training import vectorized, vectorized_by
from .command import wrong_use
from .model import Model, open_model
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
        typer.Option(metavar="NAME", help="Format of OUT, if its suffix does not show it."),
    ] = None,
    to_separator: Annotated[
        str | None, typer.Option(help="Separator to write between the labels in a table cell.")
    ] = None,
    vectorize: Annotated[
        bool,
        typer.Option(
            "--vectorize",
            help="Turn texts into features, once for many fits.",
        ),
    ] = False,
    like: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            exists=True,
            dir_okay=False,
            help="With --vectorize: use the words of this model, so that it can read the store.",
        ),
    ] = None,
    encoder: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            exists=True,
            help="With --vectorize: also store dense vectors of texts and labels by this encoder, "
            "a folder or an .onnx file.",
        ),
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Convert a data file to a memory-mapped store or another format.

    A store of any size opens in milliseconds. Files are converted in chunks and need not fit
    in memory. OUT is written completely or not at all.

    --vectorize writes features instead of texts. The store records how they were made, so a model
    trained on it reads texts. To convert more texts for that model, for `ldsm evaluate` or
    `ldsm learn`, use its words: --like MODEL. With --encoder, the store also holds the vectors of
    texts and labels, so each text is encoded once.
    """
    started = time.perf_counter()
    format = _target_format(target, to)
    if target.is_dir() and not overwrite:
        raise wrong_use(f"{target} exists; use --overwrite to replace it.", "OUT")
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
        for name, value in {"--like": like, "--encoder": encoder}.items():
            if value is not None:
                raise wrong_use("without --vectorize, texts are kept as they are.", name)
    features = None
    opened = None if encoder is None else Encoder.of(encoder).fitted()
    if like is not None:
        words.refuse("cannot be combined with --like: the words are those of the model.")
        model = open_model(like)
        if not isinstance(model.estimator, TextTagger):
            raise wrong_use(f"{like} reads features, not texts.", "--like")
        features = model.estimator.features_
        opened = _encoder_of(model, opened)
        reader = reader.as_trained(model.fitted.training, source)
    reader = reader.for_training(source)
    with screen.progress(f"converting {source.name}") as report:
        if format == "store":
            pieces = _chunks(reader, source)
            if vectorize:
                pieces = _vectorized(reader, source, words, features, opened)
            chunks = _reported(_remembering(pieces, reader), report)
            save_store(chunks, target, overwrite=overwrite)
            data = open_store(target)
        else:
            data = reader.load(source)
            if data.embeddings is not None:
                raise wrong_use(f"cannot hold the embeddings of {source}.", "OUT")
            WRITERS[format](data, target, **options)
    seconds = time.perf_counter() - started
    rows, labels = len(data), data.n_labels
    if screen.json:
        screen.data({"path": str(target), "format": format, "rows": rows, "labels": labels})
    else:
        screen.note(f"{target}: {rows:,} rows, {labels:,} labels, in {duration(seconds)}")


def write_as_read(data: Dataset, path: Path, reader: Reader) -> None:
    """Write rows in the format of the suffix, readable with the same options."""
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


def _encoder_of(model: Model, given: FittedEncoder | None) -> FittedEncoder | None:
    """The encoder for texts that a model will read; an error if it is missing or another one."""
    own = fitted_text(model.estimator).encoder if isinstance(model.estimator, TextTagger) else None
    if own is None:
        if given is not None:
            raise wrong_use(f"{model.path} was trained without an encoder.", "--encoder")
        return None
    if given is not None:
        own.check_same(given)
    elif model.fitted.reads_dense:
        raise own.missing("Use it with --encoder.")
    return given


def _reported(chunks: Iterable[tuple[Dataset, int]], report: Report) -> Iterator[Dataset]:
    """The chunks; progress is reported after each is written."""
    rows = 0
    for chunk, total in chunks:
        yield chunk
        rows += len(chunk)
        report(rows, total)


def _chunks(reader: Reader, path: Path) -> Iterator[tuple[Dataset, int]]:
    """Chunks of rows, each with the total number of rows, 0 if unknown."""
    chunks = reader.chunks(path)
    if chunks is not None:
        total = 0
        if reader.format_of(path) == "xmlrepo":
            first = next(read_lines(path), (1, ""))[1].split()
            total = int(first[0]) if first and first[0].isdigit() else 0
        yield from ((chunk, total) for chunk in chunks)
        return
    if reader.documents(path) is not None:
        yield from _document_chunks(reader, path)
        return
    data = reader.load(path)
    yield data, len(data)


def _remembering(
    chunks: Iterable[tuple[Dataset, int]], reader: Reader
) -> Iterator[tuple[Dataset, int]]:
    """The chunks with the options they were read with, for models trained on the store."""
    for chunk, total in chunks:
        yield replace(chunk, reading=reader.remembered(chunk)), total


def _vectorized(
    reader: Reader,
    path: Path,
    words: WordOptions,
    features: TextFeatures | None,
    encoder: FittedEncoder | None,
) -> Iterator[tuple[Dataset, int]]:
    """Features of texts: chunk by chunk if the words are given, else all in memory."""
    documents = reader.documents(path)
    data = None if documents is not None else reader.load(path)
    if data is not None and data.texts is None:
        raise wrong_use(f"{path} holds features, not texts.", "--vectorize")
    if features is not None:
        vectorize = vectorized_by(features, encoder)
        for chunk, total in _chunks(reader, path):
            yield vectorize(chunk), total
        return
    documents_read = ((document.text, document.labels) for document in documents or ())
    made = vectorized(
        documents_read if data is None else read_pairs(data),
        words.vectorizer(),
        with_parts=words.parts({}),
        encoder=encoder,
    )
    yield replace(made, reading=None if data is None else data.reading), len(made)


def _document_chunks(reader: Reader, path: Path) -> Iterator[tuple[Dataset, int]]:
    """Chunks of documents, read in two passes: the first collects all label names."""
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
