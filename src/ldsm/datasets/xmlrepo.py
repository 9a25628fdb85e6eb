"""The text format of the Extreme Classification Repository.

A header ``rows features labels``, then one line per row, everything counted from 0::

    3 5 4
    0,2 1:0.5 4:1
     0:0.25
    3

The second row has no label, the third no feature. Both are rows; so is an empty line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from .._arrays.matrices import MAX_COLUMNS
from .._storage.paths import PathLike, printable
from .._storage.text_files import MAX_LINE_LENGTH, malformed, read_blocks, read_lines, reading
from .._wording import argument
from .dataset import Dataset
from .lines import join_chunks, parse_chunks, write_rows

_HEADER = re.compile(rb"[ \t]*([0-9]+)[ \t]+([0-9]+)[ \t]+([0-9]+)[ \t]*\r?\n?")


def load_xmlrepo(
    path: PathLike,
    *,
    split_file: PathLike | None = None,
    split: int = 0,
    feature_names: Sequence[str] | PathLike | None = None,
    label_names: Sequence[str] | PathLike | None = None,
    duplicates: str = "error",
    max_line_length: int = MAX_LINE_LENGTH,
) -> Dataset:
    """Read a file of the Extreme Classification Repository, plain, ``.gz`` or ``.bz2``.

    Parameters
    ----------
    path : path
        The data file.
    split_file : path, optional
        Read only the rows in this file, in its order: row numbers counted from 1, one column per
        split, as in the repository's small data sets (``..._trSplit.txt``, ``..._tstSplit.txt``).
    split : int, default=0
        Column of `split_file`, counted from 0.
    feature_names, label_names : sequence of str or path, optional
        Names of the columns, or a text file with one name per line.
    duplicates : {"error", "sum"}, default="error"
        How to handle a feature that occurs twice in a row. A label given twice counts once.
    max_line_length : int, default=4194304
        Maximum length of a line, in bytes.

    Returns
    -------
    Dataset
        Features sorted within each row, explicit zeros dropped.

    Raises
    ------
    ValueError
        For a malformed line, a number outside the header's range, a value that is not finite in
        float32 or a number of rows other than the header's: with file, line number and text.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("tiny.txt").write_text("3 5 4\\n0,2 1:0.5 4:1\\n 0:0.25\\n3\\n")
    >>> data = load_xmlrepo("tiny.txt")
    >>> data.X.shape, data.labels
    ((3, 5), [[0, 2], [], [3]])
    """
    chunks = iter_xmlrepo(path, duplicates=duplicates, max_line_length=max_line_length)
    data = join_chunks(chunks, path, feature_names=feature_names, label_names=label_names)
    if split_file is None:
        return data
    splits = read_split(split_file, len(data))
    if not 0 <= split < splits.shape[1]:
        raise ValueError(
            f"split must lie in [0, {splits.shape[1]}) for {printable(split_file)}. Got {split}."
        )
    return data.select(splits[:, split])


def iter_xmlrepo(
    path: PathLike,
    *,
    duplicates: str = "error",
    block_bytes: int = 8 << 20,
    max_line_length: int = MAX_LINE_LENGTH,
) -> Iterator[Dataset]:
    """Read a file of the repository in chunks, for files larger than memory.

    Each chunk is a Dataset with the width in the header; there is at least one.
    ``save_store(iter_xmlrepo(path), folder)`` converts a file of any size to a store.

    Parameters
    ----------
    path : path
        The file; ``.gz`` and ``.bz2`` are compressed.
    duplicates : {"error", "sum"}, default="error"
        How to handle a feature that occurs twice in a row.
    block_bytes : int, default=8388608
        Approximate size of a chunk of the file.
    max_line_length : int, default=4194304
        Maximum length of a line, in bytes.

    Yields
    ------
    Dataset
        One chunk of rows.
    """
    with reading(path) as file:
        chunks = read_blocks(path, file, block_bytes, max_line_length)
        first = next(chunks)
        end = first.find(b"\n") + 1 or len(first)
        rows, features, labels = _parse_header(path, first[:end])
        yield from parse_chunks(
            chain([first[end:]], chunks),
            path,
            first_line=2,
            n_rows=rows,
            n_features=features,
            n_labels=labels,
            duplicates=duplicates,
        )


def save_xmlrepo(data: Dataset, path: PathLike) -> None:
    """Write a Dataset in the repository's format, which cannot hold names.

    Values are written with the fewest digits that give the same float32 when read.

    Parameters
    ----------
    data : Dataset
        With features.
    path : path
        The file; ``.gz`` and ``.bz2`` are compressed.

    Examples
    --------
    >>> from pathlib import Path
    >>> save_xmlrepo(Dataset([[0.1, 0], [0, 2]], [[0, 1], [0, 0]]), "tiny.txt")
    >>> Path("tiny.txt").read_text()
    '2 2 2\\n1 0:0.1\\n 1:2\\n'
    """
    header = f"{len(data)} {data.n_features} {data.n_labels}\n"
    write_rows(data, path, header, zero_based=True)


def read_split(path: PathLike, n_rows: int) -> NDArray[np.int64]:
    """Row numbers, counted from 0, of a split file of the repository, one column per split."""
    table: list[list[int]] = []
    for number, line in read_lines(path):
        words = line.split()
        if not words:
            raise malformed(path, number, "expected row numbers, got an empty line")
        if not all(word.isascii() and word.isdigit() for word in words):
            raise malformed(path, number, "expected row numbers", line)
        row = [int(word) for word in words]
        if table and len(row) != len(table[0]):
            raise malformed(path, number, f"expected {len(table[0])} numbers as above", line)
        if min(row) < 1 or max(row) > n_rows:
            raise malformed(path, number, f"row numbers must lie in [1, {n_rows}]", line)
        table.append(row)
    if not table:
        raise ValueError(f"{printable(path)}: expected row numbers, got an empty file.")
    return np.array(table, dtype=np.int64) - 1


def _parse_header(path: PathLike, line: bytes) -> tuple[int, int, int]:
    match = _HEADER.fullmatch(line)
    if match is None or max(map(len, match.groups())) > 18:
        raise malformed(
            path,
            1,
            "expected the header 'rows features labels', three whole numbers; for texts with "
            "labels, use a CSV file or JSON Lines; for features without a header, use "
            + argument("format", "svmlight"),
            line.rstrip(b"\r\n"),
        )
    rows, features, labels = (int(group) for group in match.groups())
    if max(features, labels) > MAX_COLUMNS:
        raise malformed(path, 1, f"at most {MAX_COLUMNS} features and labels", line.rstrip())
    return rows, features, labels
