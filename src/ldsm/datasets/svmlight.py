"""Multi-label svmlight (LIBSVM) files: the lines of xmlrepo without its header.

``#`` starts a comment. A line with only a comment is not a row; every other line is, even an empty
one. Labels are whole numbers: the columns of `Y`. Features are numbered from 1, as in the original
format, unless `zero_based` is set. This is never guessed, because a guess could differ between a
training and a test file and shift every feature by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._storage.paths import PathLike
from .._storage.text_files import MAX_LINE_LENGTH, read_blocks, reading
from .dataset import Dataset
from .lines import join_chunks, parse_chunks, write_rows


def load_svmlight(
    path: PathLike,
    *,
    zero_based: bool = False,
    n_features: int | None = None,
    n_labels: int | None = None,
    feature_names: Sequence[str] | PathLike | None = None,
    label_names: Sequence[str] | PathLike | None = None,
    duplicates: str = "error",
    max_line_length: int = MAX_LINE_LENGTH,
) -> Dataset:
    """Read a multi-label svmlight file, plain, ``.gz`` or ``.bz2``.

    Parameters
    ----------
    path : path
        The data file.
    zero_based : bool, default=False
        Whether features are numbered from 0. Otherwise a feature 0 is an error.
    n_features, n_labels : int, optional
        Number of columns; larger numbers are errors. By default from the largest numbers.
    feature_names, label_names : sequence of str or path, optional
        Names of the columns, or a text file with one name per line.
    duplicates : {"error", "sum"}, default="error"
        How to handle a feature that occurs twice in a row. A label given twice counts once.
    max_line_length : int, default=4194304
        Maximum length of a line, in bytes.

    Returns
    -------
    Dataset
        As from :func:`load_xmlrepo`.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("tiny.svm").write_text("# two rows\\n0,2 1:0.5 4:1\\n 2:0.25  # no label\\n")
    >>> data = load_svmlight("tiny.svm")
    >>> data.X.toarray()
    array([[0.5 , 0.  , 0.  , 1.  ],
           [0.  , 0.25, 0.  , 0.  ]], dtype=float32)
    >>> data.labels
    [[0, 2], []]
    """
    chunks = iter_svmlight(
        path,
        zero_based=zero_based,
        n_features=n_features,
        n_labels=n_labels,
        duplicates=duplicates,
        max_line_length=max_line_length,
    )
    return join_chunks(chunks, path, feature_names=feature_names, label_names=label_names)


def iter_svmlight(
    path: PathLike,
    *,
    zero_based: bool = False,
    n_features: int | None = None,
    n_labels: int | None = None,
    duplicates: str = "error",
    block_bytes: int = 8 << 20,
    max_line_length: int = MAX_LINE_LENGTH,
) -> Iterator[Dataset]:
    """Read a multi-label svmlight file in chunks, for files larger than memory.

    Unless `n_features` and `n_labels` are given, the width of a chunk is from its largest numbers.

    Parameters
    ----------
    path : path
        The file; ``.gz`` and ``.bz2`` are compressed.
    zero_based : bool, default=False
        Whether features are numbered from 0.
    n_features, n_labels : int, optional
        Number of columns; larger numbers are errors.
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
        yield from parse_chunks(
            read_blocks(path, file, block_bytes, max_line_length),
            path,
            first_line=1,
            n_features=n_features,
            n_labels=n_labels,
            zero_based=zero_based,
            comments=True,
            duplicates=duplicates,
        )


def save_svmlight(data: Dataset, path: PathLike, *, zero_based: bool = False) -> None:
    """Write a Dataset as multi-label svmlight; names and empty columns at the end are lost.

    Parameters
    ----------
    data : Dataset
        With features.
    path : path
        The file; ``.gz`` and ``.bz2`` are compressed.
    zero_based : bool, default=False
        Number features from 0.

    Examples
    --------
    >>> from pathlib import Path
    >>> save_svmlight(Dataset([[0.1, 0], [0, 2]], [[0, 1], [0, 0]]), "tiny.svm")
    >>> Path("tiny.svm").read_text()
    '1 1:0.1\\n 2:2\\n'
    """
    write_rows(data, path, "", zero_based=zero_based)
