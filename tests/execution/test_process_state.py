"""Threads leave the process as it was, and answer as one thread alone does."""

import csv
import locale
import os
import signal
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import ldsm
from ldsm import LdSMClassifier, TextTagger, datasets

TEXTS = ["cod and herring quota", "import of beef", "herring import"] * 40
TAGS = [["fish", "law"], ["meat", "trade"], ["fish", "trade"]] * 40
THREADS = 8


def state() -> tuple:
    """Settings that belong to the whole process."""
    return (
        list(warnings.filters),
        warnings.showwarning,
        csv.field_size_limit(),
        tuple(signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)),
        locale.setlocale(locale.LC_ALL),
        np.geterr(),
        os.getcwd(),
        os.umask(os.umask(0o022)),
        dict(os.environ),
        threading.active_count(),
    )


def work(folder, number: int) -> tuple:
    """Load, predict, read and save; the answers."""
    model = ldsm.load(folder / "m.ldsm", verify=number % 2 == 0)
    predicted = model.predict(TEXTS[:3], k=2)
    read = list(datasets.iter_table(folder / "t.csv", separator=";"))
    lengths = [(len(text), labels) for text, labels in read]
    own = folder / f"{number % 5}.ldsm"  # several threads write the same file
    model.save(own)
    again = ldsm.load(own).fingerprint_
    store = datasets.open_store(folder / "store")
    return predicted, lengths, again, store.labels[:3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    classifier = LdSMClassifier(n_estimators=2, random_state=0, n_jobs=2)
    TextTagger(classifier).fit(TEXTS, TAGS).save(folder / "m.ldsm")
    # Longer than Python's csv module reads.
    data = datasets.Dataset.from_texts(["long " * 30_000, "short"], [["a", "b"], []])
    datasets.save_table(data, folder / "t.csv", separator=";")
    datasets.save_store(datasets.Dataset.from_texts(TEXTS, TAGS), folder / "store")
    return folder


def check(folder, rounds: int) -> None:
    expected = work(folder, 0)
    before = state()
    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(lambda number: work(folder, number), range(rounds)))
    assert all(answer == expected for answer in answers)
    assert state() == before


def test_eight_threads_at_once(folder):
    check(folder, 48)


@pytest.mark.long
def test_eight_concurrent_threads(folder):
    check(folder, 1000)
