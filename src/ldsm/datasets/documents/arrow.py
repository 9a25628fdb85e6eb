"""Documents in Parquet, Feather and Arrow files, read one batch of rows at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._storage.paths import PathLike, printable
from ..._storage.text_files import MAX_LINE_LENGTH, MOST_TIMES, malformed
from ..._wording import argument
from ..dataset import Dataset
from .document import Document, field_names
from .label_names import LabelNames, names_by_label
from .records import column_number, read_records

_ROWS_AT_ONCE = 1024
_PARQUET, _FILE = b"PAR1", b"ARROW1"  # first bytes
# Columns repeat values: a file of this size in memory may be of any size on disk.
_UNCHECKED_BYTES = 64 << 20
_VALUE_BYTES = 16  # at least, of each value in memory


def iter_arrow(
    path: PathLike,
    *,
    text: str | Sequence[str] = "text",
    labels: str | None = "labels",
    separator: str | None = None,
    label_names: LabelNames | None = None,
    max_line_length: int = MAX_LINE_LENGTH,
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
    max_line_length : int, default=4194304
        The most UTF-8 bytes of a row's text, or of its labels.

    Yields
    ------
    text, labels : str and list of str

    Raises
    ------
    ValueError
        For a damaged file, a missing column or a value of another type, with file and row.
    """
    for document in read_arrow(
        path,
        text=text,
        labels=labels,
        separator=separator,
        label_names=label_names,
        max_line_length=max_line_length,
    ):
        yield document.text, document.labels


def load_arrow(
    path: PathLike,
    *,
    text: str | Sequence[str] = "text",
    labels: str = "labels",
    separator: str | None = None,
    label_names: LabelNames | None = None,
    max_line_length: int = MAX_LINE_LENGTH,
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
    max_line_length : int, default=4194304
        The most UTF-8 bytes of a row's text, or of its labels.

    Returns
    -------
    Dataset
        With `texts`; its `label_names` are those of the file, sorted.
    """
    documents = read_arrow(
        path,
        text=text,
        labels=labels,
        separator=separator,
        label_names=label_names,
        max_line_length=max_line_length,
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
    max_line_length: int = MAX_LINE_LENGTH,
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
            fields = [*texts, labels, id_field]
            sizes = _Sizes(path, max_line_length)
            for batch in batches(used):
                sizes.add(batch)
                values = {name: map(_as_python, batch.column(name)) for name in used}
                # One row at a time: equal values take memory once in Arrow, but not in Python.
                for _ in range(batch.num_rows):
                    row = {name: next(column) for name, column in values.items()}
                    yield [None if name is None else row[name] for name in fields]

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


def _as_python(value: Any) -> Any:
    return value.as_py()


class _Sizes:
    """Checks that rows have no odd size, and that a file is not small beside its rows."""

    def __init__(self, path: PathLike, max_line_length: int) -> None:
        self._source, self._most = printable(path), max_line_length
        self._n_rows, self._n_bytes, self._allowed = 0, 0, most_bytes(path)

    def add(self, batch: Any) -> None:
        for column in batch.columns:
            try:
                sizes = value_sizes(column)
            except ValueError as error:
                raise malformed(self._source, self._n_rows + 1, str(error)) from None
            if len(long := np.flatnonzero(sizes > self._most)):
                problem = (
                    f"a text, or labels, of more than {self._most:,} bytes; "
                    f"{argument('max_line_length')} allows more"
                )
                raise malformed(self._source, self._n_rows + int(long[0]) + 1, problem)
            self._n_bytes += int(sizes.sum())
        self._n_rows += batch.num_rows
        if self._n_bytes > self._allowed:
            raise _swollen(self._source)


def value_sizes(array: Any) -> NDArray[np.int64]:
    """The bytes of each value of an Arrow array; those of numbers do not count."""
    import pyarrow
    import pyarrow.compute

    kind = array.type
    if pyarrow.types.is_dictionary(kind):
        sizes = value_sizes(array.dictionary)
        own = array.indices.cast("int64").fill_null(len(sizes)).to_numpy(zero_copy_only=False)
        return np.asarray(np.append(sizes, 0)[own], dtype=np.int64)
    if pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind):
        lengths = pyarrow.compute.list_value_length(array).fill_null(0)
        ends = np.cumsum(np.append(0, lengths.to_numpy(zero_copy_only=False)))
        sums = np.cumsum(np.append(0, value_sizes(array.flatten()) + 1))
        return np.asarray(sums[ends[1:]] - sums[ends[:-1]], dtype=np.int64)
    if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
        sizes = pyarrow.compute.binary_length(array).fill_null(0)
        return np.asarray(sizes.to_numpy(zero_copy_only=False), dtype=np.int64)
    if str(kind) == "string_view":  # 16 bytes for each string, which begin with its length
        views = np.frombuffer(array.buffers()[1], np.int32).reshape(-1, 4)[array.offset :]
        present = array.is_valid().to_numpy(zero_copy_only=False)
        return np.where(present, views[: len(array), 0], 0).astype(np.int64)
    if pyarrow.types.is_nested(kind) or pyarrow.types.is_run_end_encoded(kind):
        raise ValueError(f"values of the Arrow type {kind} cannot be read; use strings or lists")
    return np.zeros(len(array), dtype=np.int64)


def most_bytes(path: PathLike) -> int:
    """The most bytes that the rows of a file may have in memory."""
    return max(_UNCHECKED_BYTES, MOST_TIMES * os.path.getsize(path))


def _swollen(source: str) -> ValueError:
    return ValueError(f"{source}: the file unpacks to more than {MOST_TIMES} times its size")


def _check_claims(metadata: Any, used: Sequence[str], path: PathLike) -> None:
    """Raise an error if columns of a Parquet file claim to be far larger than the file."""
    claimed = 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            place = column.path_in_schema
            if any(place == name or place.startswith(f"{name}.") for name in used):
                claimed += column.total_uncompressed_size + _VALUE_BYTES * column.num_values
    if claimed > most_bytes(path):
        raise _swollen(printable(path))


def _checked(batches: Iterable[Any], used: Sequence[str]) -> Iterator[Any]:
    """The used columns, whose offsets and encodings may be damaged."""
    for batch in batches:
        own = batch.select(used)
        own.validate(full=True)
        yield own


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
                whole = parquet.ParquetFile(file, pre_buffer=False)

                def batches(used: Sequence[str]) -> Iterator[Any]:
                    _check_claims(whole.metadata, used, path)
                    # Repeated strings stay one in memory; Arrow cannot do this for lists.
                    leaves = [whole.schema.column(i) for i in range(len(whole.schema))]
                    strings = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
                    strings = [path for path in strings if path in used]
                    table = parquet.ParquetFile(file, pre_buffer=False, read_dictionary=strings)
                    yield from _checked(table.iter_batches(_ROWS_AT_ONCE, columns=used), used)

                yield whole.schema_arrow, batches
            elif start == _FILE:
                reader = ipc.open_file(file)
                numbers = range(reader.num_record_batches)
                yield reader.schema, lambda used: _checked(map(reader.get_batch, numbers), used)
            else:
                stream = ipc.open_stream(file)
                yield stream.schema, lambda used: _checked(stream, used)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        problem = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise ValueError(
            f"{printable(path)} cannot be read as Parquet, Feather or Arrow: {problem}"
        ) from None
