"""The file of corrections that ``ldsm serve`` writes: its fields, and how it is recognised."""

from __future__ import annotations

import os

from ..._storage.paths import PathLike
from ..._storage.text_files import MAX_LINE_LENGTH, UTF8
from .jsonl import json_records

# Other fields than those of the data that a model was trained on.
FIELDS = ("text", "labels", "when", "id")


def are_corrections(path: PathLike) -> bool:
    """Whether the first record of a JSON Lines file has exactly these fields.

    Never for a pipe, which can be read only once.
    """
    if not os.path.isfile(path):
        return False
    try:
        _, _, record = next(json_records(path, UTF8, MAX_LINE_LENGTH), (0, "", None))
    except (ValueError, OSError):  # the reader reports it
        return False
    return isinstance(record, dict) and record.keys() == set(FIELDS)
