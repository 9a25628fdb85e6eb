"""Shared code for xmlrepo and svmlight: rows as lines of text, read in chunks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from .. import _core
from .._arrays.matrices import MAX_COLUMNS, csr, label_csr, stack
from .._storage.paths import PathLike, printable
from .._storage.text_files import read_lines, writing
from .dataset import Dataset

_WRITTEN_AT_ONCE = 1 << 20  # non-zeros; bounds the text held in memory


def parse_chunks(
    chunks: Iterable[bytes],
    path: PathLike,
    *,
    first_line: int,
    n_rows: int = -1,
    n_features: int | None = None,
    n_labels: int | None = None,
    zero_based: bool = True,
    comments: bool = False,
    duplicates: str = "error",
) -> Iterator[Dataset]:
    """One Dataset per chunk of lines; its width is declared, or from its largest numbers."""
    if duplicates not in ("error", "sum"):
        raise ValueError(f"duplicates must be 'error' or 'sum'. Got {duplicates!r} instead.")
    name = printable(path)
    left = n_rows
    for chunk in chunks:
        indptr, indices, values, y_indptr, y_indices, n_lines = _core.parse_text(
            chunk,
            name=name,
            first_line=first_line,
            max_rows=left,
            n_features=MAX_COLUMNS if n_features is None else n_features,
            n_labels=MAX_COLUMNS if n_labels is None else n_labels,
            zero_based=zero_based,
            comments=comments,
            sum_duplicates=duplicates == "sum",
        )
        first_line += n_lines
        if left >= 0:
            left -= len(indptr) - 1
        width = int(indices.max(initial=-1)) + 1 if n_features is None else n_features
        y_width = int(y_indices.max(initial=-1)) + 1 if n_labels is None else n_labels
        X = csr(indptr, indices, values, width)
        yield Dataset(X, label_csr(y_indptr, y_indices, y_width), source=name)
    if left > 0:
        raise ValueError(f"{name}:1: the header declares {n_rows} rows. Got {n_rows - left}.")


def join_chunks(
    chunks: Iterable[Dataset],
    path: PathLike,
    feature_names: Sequence[str] | PathLike | None = None,
    label_names: Sequence[str] | PathLike | None = None,
) -> Dataset:
    """All chunks as one Dataset, with the width of the widest and the names."""
    parts = list(chunks)
    return Dataset(
        stack([part.X for part in parts], max(part.n_features for part in parts)),
        stack([part.Y for part in parts], max(part.n_labels for part in parts)),
        feature_names=read_names(feature_names),
        label_names=read_names(label_names),
        source=printable(path),
    )


def read_names(names: Sequence[str] | PathLike | None) -> Sequence[str] | None:
    """Names as given, or from a text file with one name per line."""
    if isinstance(names, (str, os.PathLike)):
        return [name for _, name in read_lines(names)]
    return names


def write_rows(data: Dataset, path: PathLike, header: str, *, zero_based: bool) -> None:
    """Write the header and one line per row."""
    if data.X is None:
        raise ValueError(
            "This format holds features, but the Dataset has texts; vectorize it first."
        )
    if not np.isfinite(data.X.data).all():
        raise ValueError("X must hold finite numbers to be written. Got NaN or inf.")
    indptr = np.asarray(data.X.indptr, dtype=np.int64)
    y_indptr = np.asarray(data.Y.indptr, dtype=np.int64)
    with writing(path) as file:
        file.write(header.encode("ascii"))
        first = 0
        while first < len(data):
            last = int(np.searchsorted(indptr, indptr[first] + _WRITTEN_AT_ONCE, "right")) - 1
            last = min(max(last, first + 1), first + _WRITTEN_AT_ONCE)
            file.write(
                _core.format_text(
                    indptr[first : last + 1],
                    data.X.indices,
                    data.X.data,
                    y_indptr[first : last + 1],
                    data.Y.indices,
                    zero_based=zero_based,
                )
            )
            first = last
