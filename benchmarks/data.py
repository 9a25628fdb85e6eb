"""Benchmark data as matrices, from the folder LDSM_DATA; never part of the project."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from ldsm import datasets
from ldsm.datasets import Dataset

# The sets of texts, and what differs between their vectorizers; EURLEX57K has 22,776 words.
VECTORIZERS: dict[str, dict[str, Any]] = {
    "eurlex57k": {
        "min_df": 3,
        "token_pattern": r"(?u)\b[a-zA-Z][a-zA-Z]+\b",
        "stop_words": "english",
    },
    "reuters": {"min_df": 2},
    "debtags": {"min_df": 2},
    "yso": {"min_df": 2},
}


def folder() -> Path:
    """The folder of the data; ends the program with a sentence where there is none."""
    path = os.environ.get("LDSM_DATA")
    if not path:
        sys.exit("Set LDSM_DATA to the folder that holds the benchmark data.")
    return Path(path)


def load(name: str) -> tuple[Dataset, Dataset]:
    """Train and test rows of "bibtex", "delicious", "mediamill-sample" or one of `VECTORIZERS`.

    "quick" is a small synthetic set, for trying a program.
    """
    if name in VECTORIZERS:
        return texts(name)
    if name == "quick":
        shape = {"labels_per_row": 3, "nonzeros_per_row": 8, "binary": True}
        return datasets.make_xmc(600, 60, 20, **shape), datasets.make_xmc(
            200, 60, 20, **shape, part="test"
        )
    train, test = (
        datasets.load_xmlrepo(folder() / f"{name}_{part}.txt") for part in ("train", "test")
    )
    return train, test


def texts(name: str, test_part: str = "test") -> tuple[Dataset, Dataset]:
    """TF-IDF of a set of texts as every comparison uses it, fitted on train."""
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32, **VECTORIZERS[name])
    train, test = (
        datasets.load_jsonl(folder() / f"{name}_{part}.jsonl.gz") for part in ("train", test_part)
    )
    train = train.vectorize(vectorizer)
    test, _ = test.vectorize(vectorizer, fit=False).align(train)
    return train, test


def stores(name: str, folder: Path) -> tuple[Path, Path]:
    """Both parts as memory-mapped stores in `folder`, written the first time.

    This is what a process of its own is given: nothing is parsed or sent twice.
    """
    parts = (folder / f"{name}_train", folder / f"{name}_test")
    if not all((part / "meta.json").exists() for part in parts):
        folder.mkdir(parents=True, exist_ok=True)
        for part, rows in zip(parts, load(name), strict=True):
            rows.save(part, overwrite=True)
    return parts


def identity(*parts: Path) -> list[int]:
    """Checksums of stores, to tell other data of the same name."""
    return [json.loads((part / "meta.json").read_text())["identity"] for part in parts]
