"""Data sets: readers and writers for common formats, the Dataset, and the store.

A :class:`Dataset` holds rows with labels. Readers ``load_*`` return one, writers ``save_*`` accept
one, and iterators ``iter_*`` yield one in chunks, for files larger than memory. Files ending in
``.gz`` or ``.bz2`` are compressed. A malformed line raises a ValueError with file, line and text.

.. data:: FORMATS

   The formats that `load_dataset` reads, by name, each with its reader.

.. data:: PRESETS

   The shapes of the paper's data sets, by name, for `make_xmc`: numbers of rows, test rows,
   features and labels, labels and non-zeros per row.
"""

from .._storage.strings import Strings
from .alignment import Unseen
from .dataset import Dataset
from .documents.arrow import iter_arrow, load_arrow
from .documents.frames import load_frame
from .documents.jsonl import iter_jsonl, load_jsonl, save_jsonl
from .documents.tables import iter_table, load_table, save_table
from .formats import FORMATS, guess_format, load_dataset
from .stdlib_docs import load_stdlib_docs
from .store import open_store, save_store
from .svmlight import iter_svmlight, load_svmlight, save_svmlight
from .synthetic import PRESETS, make_xmc
from .vocabulary import read_vocabulary
from .xmlrepo import iter_xmlrepo, load_xmlrepo, save_xmlrepo

__all__ = [
    "FORMATS",
    "PRESETS",
    "Dataset",
    "Strings",
    "Unseen",
    "guess_format",
    "iter_arrow",
    "iter_jsonl",
    "iter_svmlight",
    "iter_table",
    "iter_xmlrepo",
    "load_arrow",
    "load_dataset",
    "load_frame",
    "load_jsonl",
    "load_stdlib_docs",
    "load_svmlight",
    "load_table",
    "load_xmlrepo",
    "make_xmc",
    "open_store",
    "read_vocabulary",
    "save_jsonl",
    "save_store",
    "save_svmlight",
    "save_table",
    "save_xmlrepo",
]
