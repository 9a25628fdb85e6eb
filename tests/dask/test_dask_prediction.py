"""Prediction and evaluation on clusters: the answers of one process, block by block."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import ldsm.dask
from dask_clusters import cluster, local_scores, small
from ldsm import TextTagger, datasets, load, metrics
from ldsm.metrics.ranking import ranking_sums

pytestmark = pytest.mark.not_under("address", "thread", reason="works against a clock")


@pytest.fixture(scope="module")
def client():
    with cluster(2) as client:
        yield client


def test_predictions_match_one_process(client, store, tmp_path):
    data = datasets.open_store(store)
    clf = small().fit(data)
    clf.save(tmp_path / "model.ldsm")
    for tail in (0.0, 1.0):
        labels, scores = clf.predict_topk(data.X, k=3, tail=tail)
        ask = (client, tmp_path / "model.ldsm", store, 3)
        options = {"tail": tail, "rows_per_task": 150}
        found = ldsm.dask.predict(*ask, **options)
        assert np.array_equal(found[0], labels) and np.array_equal(found[1], scores)
        folder = tmp_path / f"predictions {tail}"
        reports = []
        report = {"callback": lambda *report, reports=reports: reports.append(report)}
        paths = ldsm.dask.predict(*ask, **options, **report, output_dir=folder)
        assert len(paths) == 5 and sorted(reports)[-1] == (700, 700)
        parts = [np.load(path) for path in paths]
        columns = np.concatenate([part["columns"] for part in parts])
        assert np.array_equal(clf.classes_[columns], labels)
        assert np.array_equal(np.concatenate([part["scores"] for part in parts]), scores)
        # What is missing is made up for, the rest stays.
        os.unlink(paths[2])
        before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
        assert ldsm.dask.predict(*ask, **options, output_dir=folder) == paths
        after = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
        assert before.items() < after.items() and len(after) == 6
        with pytest.raises(ValueError, match="other predictions: k is 4 now but was 3"):
            ldsm.dask.predict(*ask[:3], 4, **options, output_dir=folder)


def test_evaluation_matches_one_process(client, store, tmp_path):
    small().fit(datasets.open_store(store)).save(tmp_path / "model.ldsm")
    datasets.make_xmc(300, 200, 30, seed=0, part="test").save(tmp_path / "test")
    model, data = load(tmp_path / "model.ldsm"), datasets.open_store(tmp_path / "test")
    for tail in (0.0, 1.0):
        local = local_scores(model, data, ks=(1, 3, 5), tail=tail)
        found = ldsm.dask.evaluate(
            client, tmp_path / "model.ldsm", data, tail=tail, rows_per_task=70
        )
        assert found.keys() == local.keys()
        # Sums of blocks of rows may differ in the last digit.
        assert found == pytest.approx(local, rel=1e-12)


@pytest.mark.parametrize("n_labels", [10, 50])
def test_unshared_labels_are_ignored(client, store, tmp_path, n_labels):
    """As `ldsm evaluate` has it, where labels are numbers."""
    small().fit(datasets.open_store(store)).save(tmp_path / "model.ldsm")
    datasets.make_xmc(300, 200, n_labels, seed=0, part="test").save(tmp_path / "test")
    model, data = load(tmp_path / "model.ldsm"), datasets.open_store(tmp_path / "test")
    local = local_scores(model, data, ks=(1, 3))
    found = ldsm.dask.evaluate(client, tmp_path / "model.ldsm", data, (1, 3))
    assert found.keys() <= local.keys()
    assert found == pytest.approx({name: local[name] for name in found}, rel=1e-12)


def test_integer_labels_that_are_no_columns(client, store, tmp_path):
    data = datasets.open_store(store)
    lists = [[7 * int(label) for label in data.Y[[i]].indices] for i in range(len(data))]
    small().fit(data.X, lists).save(tmp_path / "model.ldsm")
    wide = sp.csr_array((data.Y.data, data.Y.indices * 7, data.Y.indptr), shape=(len(data), 300))
    datasets.Dataset(data.X, wide).save(tmp_path / "wide")
    model, rows = load(tmp_path / "model.ldsm"), datasets.open_store(tmp_path / "wide")
    local = local_scores(model, rows, ks=(1, 3))
    found = ldsm.dask.evaluate(client, tmp_path / "model.ldsm", rows, (1, 3))
    assert found["precision@1"] > 0.5
    assert found == pytest.approx({name: local[name] for name in found}, rel=1e-12)


def test_damaged_predictions_are_redone(client, store, tmp_path):
    small().fit(datasets.open_store(store)).save(tmp_path / "model.ldsm")
    ask = (client, tmp_path / "model.ldsm", store)
    options = {"rows_per_task": 200, "output_dir": tmp_path / "parts"}
    paths = ldsm.dask.predict(*ask, **options)
    good = [Path(path).read_bytes() for path in paths]
    for damage in (b"", good[1][:500], b"no archive at all", good[1][:-9] + b"x" * 9):
        Path(paths[1]).write_bytes(damage)
        with pytest.warns(UserWarning, match=f"part '{paths[1]}' is damaged"):
            assert ldsm.dask.predict(*ask, **options) == paths
        assert [Path(path).read_bytes() for path in paths] == good
    (tmp_path / "parts" / "predictions.json").write_text("{")
    with pytest.raises(ValueError, match="predictions.json' cannot be used"):
        ldsm.dask.predict(*ask, **options)


def test_texts_and_names_of_labels(client, tmp_path):
    texts = ["the invoice was charged twice", "cannot log in", "refund for a double charge"] * 10
    tags = [["billing"], ["account"], ["billing", "refund"]] * 10
    tagger = TextTagger(small()).fit(texts, tags)
    tagger.save(tmp_path / "tagger.ldsm")
    datasets.Dataset.from_texts(texts, [[*row, "unseen"] for row in tags]).save(tmp_path / "texts")
    labels, _ = ldsm.dask.predict(client, tmp_path / "tagger.ldsm", tmp_path / "texts", 1)
    found = ldsm.dask.evaluate(client, tmp_path / "tagger.ldsm", tmp_path / "texts", [1])
    column = {name: i for i, name in enumerate(tagger.classifier_.classes_)}
    truth = [[column[tag] for tag in row] for row in tags]
    top = [[column[name] for name in row] for row in labels]
    assert found["precision@1"] == metrics.precision_at_k(truth, top, k=1)
    assert found["recall@1"] == pytest.approx(metrics.recall_at_k(truth, top, k=1))


def test_partial_sums_match_report():
    data = datasets.make_xmc(200, 50, 20, seed=0)
    top = np.argsort(np.random.default_rng(0).random((200, 20)), axis=1)[:, :5]
    for weights in (None, metrics.propensities(data.Y)):
        whole = metrics.ranking_report(data.Y, top, propensities=weights)
        parts = [
            ranking_sums(data.Y[rows], top[rows], (1, 3, 5), propensities=weights)
            for rows in (slice(0, 70), slice(70, 71), slice(71, 200))
        ]
        total = (parts[2] + parts[0] + parts[1]).report()
        assert list(total) == list(whole) and total == pytest.approx(whole, rel=1e-12)
