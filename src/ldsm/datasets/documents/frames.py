"""Documents in data frames of any library: columns by name, and nothing else, are needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..dataset import Dataset
from .document import field_names
from .label_names import LabelNames, names_by_label
from .records import column_number, read_records


def load_frame(
    frame: Any,
    *,
    text: str | Sequence[str] = "text",
    labels: str = "labels",
    separator: str | None = None,
    label_names: LabelNames | None = None,
) -> Dataset:
    """Read documents and their labels from a data frame.

    Parameters
    ----------
    frame : data frame
        Of pandas, Polars, PyArrow or Hugging Face's datasets, or a dict of columns.
    text : str or list of str, default="text"
        The column that holds the document, or several, such as ``["title", "body"]``, which are
        joined by newlines. Missing texts are empty.
    labels : str, default="labels"
        The column that holds the labels: lists of strings or whole numbers, or one label per row.
        Missing values mean no labels.
    separator : str, optional
        Separator between labels, if the column holds them as one string.
    label_names : sequence of str, mapping or path, optional
        Names of the labels, if the column has numbers, counted from 0, or codes. By default those
        that a data set of Hugging Face has.

    Returns
    -------
    Dataset
        With `texts`; its `label_names` are sorted.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"text": ["cod quota", "beef"], "labels": [["fish", "law"], []]})
    >>> load_frame(frame).labels
    [['fish', 'law'], []]
    """
    source, names = type(frame).__name__, _column_names(frame)
    texts = field_names(text)
    for name in texts:
        column_number(names, name, "text", source)
    column_number(names, labels, "labels", source)
    by_label = names_by_label(_class_names(frame, labels) if label_names is None else label_names)
    columns = [_values(frame[name]) for name in (*texts, labels)]
    records: Iterator[Sequence[Any]] = ((*row, None) for row in zip(*columns, strict=True))
    return Dataset.from_documents(
        read_records(records, source, n_texts=len(texts), separator=separator, names=by_label),
        source,
    )


def _column_names(frame: Any) -> list[str]:
    for attribute in ("column_names", "columns"):  # `columns` of PyArrow are the values
        if (names := getattr(frame, attribute, None)) is not None:
            return list(names)
    if isinstance(frame, dict):
        return list(frame)
    raise ValueError(
        f"'frame' must have named columns, as a DataFrame has. Got {type(frame).__name__}."
    )


def _class_names(frame: Any, labels: str) -> list[str] | None:
    """The names of label numbers in a data set of Hugging Face."""
    features = getattr(frame, "features", None)
    feature = features.get(labels) if isinstance(features, dict) else None
    names = getattr(getattr(feature, "feature", feature), "names", None)
    return names if isinstance(names, list) else None


def _values(column: Any) -> Iterable[Any]:
    """The values of a column as Python's."""
    values: Iterable[Any] = column
    for method in ("to_pylist", "to_list"):
        if hasattr(column, method):
            values = getattr(column, method)()
            break
    return values
