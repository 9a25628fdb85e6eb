"""Accuracy of models with one label per row."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from ldsm import LdSMClassifier
from ldsm._model.fitted import FittedModel
from ldsm.datasets import Dataset

X = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
CLASSES = np.array(["a", "b", "c"])
Y = CLASSES[np.argmax(X[:, :3], axis=1)]


def dataset(x, y):
    matrix = sp.csr_array((y[:, None] == CLASSES).astype(np.int8))
    return Dataset(sp.csr_array(x), matrix, label_names=CLASSES.tolist())


def test_threads(monkeypatch):
    clf = LdSMClassifier(3, n_jobs=2).fit(X[:200], Y[:200])
    used, original = [], FittedModel.top_columns

    def top_columns(*arguments, **options):
        used.append(options.get("n_jobs"))
        return original(*arguments, **options)

    monkeypatch.setattr(FittedModel, "top_columns", top_columns)
    clf.score(X[200:], Y[200:])
    assert used == [2]


def test_dataset():
    clf = LdSMClassifier(3).fit(X[:200], Y[:200])
    accuracy = np.mean(clf.predict(X[200:]) == Y[200:])
    assert clf.score(dataset(X[200:], Y[200:])) == clf.score(X[200:], Y[200:]) == accuracy > 0.5


def test_dataset_of_several_labels_per_row():
    clf = LdSMClassifier(3).fit(X[:200], Y[:200])
    rows = Dataset(sp.csr_array(X), sp.csr_array(np.ones((300, 3))), label_names=list("abc"))
    with pytest.raises(ValueError, match="one label for each of the 300 rows"):
        clf.score(rows)
