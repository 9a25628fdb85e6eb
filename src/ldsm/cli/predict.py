"""``ldsm predict``: the best labels of each row, or all labels that reach the threshold."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import tee
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from .._storage.text_files import read_lines
from ..datasets import Dataset
from ..datasets.documents.document import Document
from ..text import TextTagger
from ..text.corpus import in_chunks
from ..text.fitted import fitted_text
from .answers import Answer, TableForm, answers_to, check_form
from .asking import Question, answers_by_workers, answers_here
from .command import wrong_use
from .model import Model, no_label, open_model
from .options.cluster import DaskOption, on_cluster
from .options.model import EncoderOption, JobsOption, ModelArgument, TailOption
from .options.output import OverwriteOption, check_output
from .options.reader import STDIN, Reader, names_a_path
from .screen import Screen

_BEST = 5  # labels per row
_ROWS_AT_ONCE = 4096


def predict(
    screen: Screen,
    reader: Reader,
    model: ModelArgument,
    what: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            show_default=False,
            help="Data file, a text in quotes, or - to read one text per line (the default).",
        ),
    ] = str(STDIN),
    k: Annotated[
        int | None,
        typer.Option(
            "-k",
            min=1,
            help="Number of labels per row, including labels without a score. Default: the best "
            f"{_BEST} with a score.",
        ),
    ] = None,
    sets: Annotated[
        bool, typer.Option("--sets", help="Predict all labels that reach the model's threshold.")
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Predict labels with at least this score; implies --sets."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL",
            help="Predict only this label, or the labels of this group of the vocabulary; may be "
            "repeated. @FILE: read one per line.",
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="LABEL", help="Never predict this label or group; like --only."),
    ] = None,
    id_field: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="Field or column of ids to copy into the output."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write to this file: a table (.csv, .tsv), JSON Lines (.jsonl) or plain lines.",
        ),
    ] = None,
    overwrite: OverwriteOption = False,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Number of rows per batch; 1 if stdin is a terminal.")
    ] = None,
    tail: TailOption = 0.0,
    encoder: EncoderOption = None,
    n_jobs: JobsOption = None,
    dask: DaskOption = None,
) -> None:
    """Predict the labels of texts or rows, with scores, best first.

    Prints one line per row: each label and its score separated by a space, with tabs between
    labels; control characters in a label are escaped. --json prints JSON Lines, one object with
    "row", "labels" and "scores" per row; rows are counted from 0. A table has the same columns,
    with the delimiter and the separator of the training data; ids keep the name of their field.
    An output file is written completely or not at all.

    With --dask, workers predict batches of rows. They load the model file themselves, so all of
    them must see it, and the temporary folder (TMPDIR), through which rows are sent.
    """
    data = Path(what)
    text = what if data != STDIN and not names_a_path(what) else None
    if text is not None and not text.strip():
        raise wrong_use("the text is empty.", "DATA")
    if text is not None and not any(map(str.isspace, text)):
        raise wrong_use(
            f"path {text!r} does not exist (to tag a single word, pipe it to stdin).",
            "DATA",
        )
    if k is not None and (sets or threshold is not None):
        raise wrong_use("cannot be combined with --sets or --threshold.", "-k")
    if tail > 0 and (sets or threshold is not None):
        raise wrong_use("cannot be combined with --sets or --threshold.", "--tail")
    check_form(output, screen.json)
    if output is not None:
        chosen = (*(only or ()), *(without or ()))
        lists = [Path(item[1:]) for item in chosen if item.startswith("@")]
        check_output(output, "predictions", reader.inputs(model, data, *lists), overwrite)
    opened = open_model(model, n_jobs, encoder)
    if text is None:
        reader = reader.as_trained(opened.fitted.training, data)
    elif not opened.reads_texts:
        raise wrong_use(f"the model reads features, and path {text!r} does not exist.", "DATA")
    if id_field is not None and (text is not None or not opened.reads_texts):
        raise wrong_use("can only be used with files of texts.", "--id-field")
    allowed = _allowed(opened, only, without)
    most = opened.fitted.n_labels if allowed is None else int(allowed.sum())
    n_best = None if sets or threshold is not None else min(k or _BEST, most)
    question = Question(n_best, k is not None, threshold, tail, allowed)
    interactive = data == STDIN and sys.stdin is not None and sys.stdin.isatty()
    if interactive:
        screen.note("Enter one text per line; press Ctrl-D to finish.")
    if batch_size is None:
        batch_size = 1 if interactive else _ROWS_AT_ONCE
    ignored = row = 0
    form = TableForm(
        opened.fitted.classes.tolist(),
        reader.arguments.get("separator"),
        reader.arguments.get("delimiter"),
        id_field,
    )
    whole = [Document(text, [])] if text is not None else None
    with on_cluster(dask), answers_to(screen, output, form) as write:
        asked, batches = tee(_batches(opened, reader, data, batch_size, id_field, whole))
        rows = (batch.rows for batch in asked)
        found = (
            answers_here(question, opened, rows)
            if dask is None
            else answers_by_workers(question, opened, rows, in_memory=1 if interactive else None)
        )
        for answers, batch in zip(found, batches, strict=True):
            ignored += answers.ignored
            for row_id, scored in zip(batch.ids, answers.labels, strict=True):
                write(Answer(row, row_id, scored))
                row += 1
            if output is None:
                screen.flush()
    if output is not None:
        screen.note(f"{output}: {row:,} rows")
    if ignored:
        screen.note(f"{ignored:,} values of features unknown to the model were ignored")


class _Batch(NamedTuple):
    rows: Dataset | list[str]  # features, or texts
    ids: Sequence[str | None]


def _batches(
    model: Model,
    reader: Reader,
    data: Path,
    size: int,
    id_field: str | None,
    documents: Iterable[Document] | None,
) -> Iterator[_Batch]:
    """Batches of rows: the given documents, or the documents or features of the file."""
    made = reader.made_features(data) if documents is None and model.reads_texts else None
    if made is not None and id_field is not None:
        raise wrong_use("is not used with a store.", "--id-field")
    if model.reads_texts and made is None:
        for part in in_chunks(documents or reader.texts(data, id_field), size):
            yield _Batch([document.text for document in part], [document.id for document in part])
        return
    file = Path("/dev/stdin") if data == STDIN else data
    chunks: Iterable[Dataset] | None = [made] if made is not None else reader.chunks(file)
    for chunk in chunks if chunks is not None else [reader.load(file)]:
        model.checked(chunk)
        for start in range(0, len(chunk), size):
            rows = chunk.select(slice(start, start + size))
            yield _Batch(rows, [None] * len(rows))


def _allowed(
    model: Model, only: Sequence[str] | None, without: Sequence[str] | None
) -> NDArray[np.uint8] | None:
    """The columns that may be predicted; None if all may."""
    try:
        return model.fitted.allowed(
            _labels(model, only, "--only"), _labels(model, without, "--without")
        )
    except ValueError as error:
        raise wrong_use(str(error), "--only, --without") from None


def _labels(model: Model, given: Sequence[str] | None, option: str) -> list[Any] | None:
    """The labels given by their names, by groups, or by files with one name per line."""
    if not given:
        return None
    names: list[str] = []
    for item in given:
        if item.startswith("@"):
            names += [line for _, line in read_lines(item[1:]) if line]
        else:
            names.append(item)
    known = {str(label): label for label in model.fitted.classes.tolist()}
    if isinstance(model.estimator, TextTagger):
        names = fitted_text(model.estimator).groups.expanded(names, known)
    for name in names:
        if name not in known:
            raise wrong_use(no_label(name, known), option)
    return [known[name] for name in names]
