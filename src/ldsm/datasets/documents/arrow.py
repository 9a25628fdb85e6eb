"""Documents in Parquet, Feather and Arrow files, read one batch of rows at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..._storage.paths import PathLike, printable
from ..dataset import Dataset
from .document import Document, field_names
from .label_names import LabelNames, names_by_label
from .records import column_number, read_records

_ROWS_AT_ONCE = 1024
_PARQUET, _FILE = b"PAR1", b"ARROW1"  # first bytes


def iter_arrow(
    path: PathLike,
    *,
    text: str | Sequence[str] = "text",
    labels: str | None = "labels",
    separator: str | None = None,
    label_names: LabelNames | None = None,
) -> Iterator[tuple[str, list[str]]]:
    """Documents one at a time, for files larger than memory.

    Parameters
    ----------
    path : path
        A Parquet, Feather or Arrow file. Reading needs ``pip install "ldsm[arrow]"``.
    text : str or list of str
        The column that holds the document, or several, such as ``["title", "body"]``, which are
        joined by newlines. Missing texts are empty.
    labels : str
        The column that holds the labels: lists of strings or whole numbers, or one label per row.
        Missing values mean no labels. None: documents without labels.
    separator : str, optional
        Separator between labels, if the column holds them as one string.
    label_names : sequence of str, mapping or path, optional
        Names of the labels, if the file has numbers, counted from 0, or codes. A text file has a
        name per line, or a code, a tab and a name. By default those in the file, as written by
        Hugging Face's datasets.

    Yields
    ------
    text, labels : str and list of str

    Raises
    ------
    ValueError
        For a damaged file, a missing column or a value of another type, with file and row.
    """
    for document in read_arrow(
        path, text=text, labels=labels, separator=separator, label_names=label_names
    ):
        yield document.text, document.labels


def load_arrow(
    path: PathLike,
    *,
    text: str | Sequence[str] = "text",
    labels: str = "labels",
    separator: str | None = None,
    label_names: LabelNames | None = None,
) -> Dataset:
    """Read documents and their label names; see :func:`iter_arrow` for the formats.

    Parameters
    ----------
    path : path
        A Parquet, Feather or Arrow file.
    text : str or list of str, default="text"
        The column of the document, or several, which are joined.
    labels : str, default="labels"
        The column of the labels.
    separator : str, optional
        Separator between labels, if the column holds them as one string.
    label_names : sequence of str, mapping or path, optional
        Names of the labels, if the file has numbers or codes; see :func:`iter_arrow`.

    Returns
    -------
    Dataset
        With `texts`; its `label_names` are those of the file, sorted.
    """
    documents = read_arrow(
        path, text=text, labels=labels, separator=separator, label_names=label_names
    )
    return Dataset.from_documents(documents, printable(path))


def read_arrow(
    path: PathLike,
    *,
    text: str | Sequence[str] = "text",
    labels: str | None = "labels",
    separator: str | None = None,
    label_names: LabelNames | None = None,
    id_field: str | None = None,
) -> Iterator[Document]:
    """Like :func:`iter_arrow`, with the ids in a column."""
    texts, source = field_names(text), printable(path)
    with _opened(path) as (schema, batches):
        chosen = [(name, "text") for name in texts]
        chosen += [] if labels is None else [(labels, "labels")]
        chosen += [] if id_field is None else [(id_field, "id_field")]
        for name, used_as in chosen:
            column_number(schema.names, name, used_as, source)
        names = names_by_label(label_names)
        if names is None and labels is not None:
            names = names_by_label(_names_in(schema, labels))

        def records() -> Iterator[Sequence[Any]]:
            used = list(dict.fromkeys(name for name, _ in chosen))
            for batch in batches(used):
                values = {name: batch.column(name).to_pylist() for name in used}
                nothing = [None] * batch.num_rows
                columns = [values[name] for name in texts]
                columns.append(nothing if labels is None else values[labels])
                columns.append(nothing if id_field is None else values[id_field])
                yield from zip(*columns, strict=True)

        yield from read_records(
            records(), source, n_texts=len(texts), separator=separator, names=names
        )


def _names_in(schema: Any, labels: str) -> list[str] | None:
    """The names of label numbers that Hugging Face's datasets keep beside the rows."""
    try:
        stored = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"][labels]
        names = stored.get("feature", stored)["names"]
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return names if isinstance(names, list) and all(type(n) is str for n in names) else None


@contextmanager
def _opened(path: PathLike) -> Iterator[tuple[Any, Any]]:
    """The schema of a file, and a function that yields its batches of some columns."""
    try:
        import pyarrow
        from pyarrow import ipc, parquet
    except ImportError:
        raise ValueError(
            "Parquet and Feather files need pyarrow: pip install 'ldsm[arrow]'. "
            f"Got {printable(path)}."
        ) from None
    with open(path, "rb") as file:
        start = file.read(len(_FILE))
    try:
        with pyarrow.OSFile(str(path)) as file:
            if start.startswith(_PARQUET):
                table = parquet.ParquetFile(file, pre_buffer=False)
                yield (
                    table.schema_arrow,
                    lambda used: table.iter_batches(_ROWS_AT_ONCE, columns=used),
                )
            elif start == _FILE:
                reader = ipc.open_file(file)
                count = reader.num_record_batches
                yield reader.schema, lambda _: map(reader.get_batch, range(count))
            else:
                stream = ipc.open_stream(file)
                yield stream.schema, lambda _: stream
    except (pyarrow.ArrowException, OSError) as error:
        problem = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise ValueError(
            f"{printable(path)} cannot be read as Parquet, Feather or Arrow: {problem}"
        ) from None
