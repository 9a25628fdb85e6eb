"""Labels that look like several in one."""

import json
import warnings

import numpy as np
import pytest

from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm._arrays.joined_labels import find_joined

WORDS = {"grain": "wheat", "oil": "crude", "trade": "export", "money": "bank"}
PAIRS = [(a, b) for a in WORDS for b in WORDS if a != b]
TEXTS = [f"{WORDS[a]} and {WORDS[b]}" for a, b in PAIRS] * 3


def joined(separator: str) -> list[str]:
    return [separator.join(pair) for pair in PAIRS] * 3


@pytest.mark.parametrize("separator", ["|", ";", ", ", "/", "\t"])
def test_joined_labels_warn(separator, tmp_path):
    labels = joined(separator)
    expected = rf"12 of 12 labels contain '{separator.strip(' ') or separator}'"
    expected = expected.replace("|", r"\|").replace("\t", r"\\t")
    features = np.arange(len(labels) * 2, dtype=np.float32).reshape(-1, 2)
    small = LdSMClassifier(n_estimators=1)
    with pytest.warns(UserWarning, match=expected + ", such as 'grain.* and 'grain"):
        small.fit(features, labels)
    with pytest.warns(UserWarning, match=expected):
        small.fit(features, [[label] for label in labels])
    with pytest.warns(UserWarning, match=expected):
        TextTagger(small).fit(TEXTS, [[label] for label in labels])
    path = tmp_path / "d.jsonl"
    lines = (json.dumps({"text": t, "labels": n}) for t, n in zip(TEXTS, labels, strict=True))
    path.write_text("\n".join(lines))
    with pytest.warns(UserWarning, match=expected):
        TextTagger(small).fit(datasets.iter_jsonl(path))


@pytest.mark.parametrize(
    "labels",
    [
        ["Paris, France", "Lyon, France", "Nice, France", "Rome, Italy"],
        ["a|b", "c"],
        ["input/output", "read/write", "client/server", "and/or"],
        ["x", "y", "z"],
        [1, 2, 3],
        ["1,000", "2,000", "3,500"],
    ],
)
def test_separators_within_names_are_kept(labels):
    assert find_joined(labels) is None


def write_table(path, separator: str, rows: int = 36) -> None:
    lines = (f'"{t}","{n}"' for t, n in zip(TEXTS, joined(separator), strict=True))
    path.write_text("\n".join(["text,labels", *list(lines)[:rows]]) + "\n")


@pytest.mark.parametrize("separator", ["|", ";", "/"])
def test_obvious_joined_cells_are_split(tmp_path, separator):
    path = tmp_path / "d.csv"
    write_table(path, separator)
    with pytest.warns(UserWarning, match=r"column 'labels' are split at"):
        data = datasets.load_table(path)
    assert data.label_names == sorted(WORDS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert datasets.load_table(path, separator=separator).labels == data.labels


def test_comma_is_the_default_separator(tmp_path):
    path = tmp_path / "d.csv"
    write_table(path, ", ")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert datasets.load_table(path).label_names == sorted(WORDS)
        write_table(path, "|", rows=2)  # too few to be sure
        assert len(datasets.load_table(path).label_names) == 2
