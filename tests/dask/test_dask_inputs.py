"""What a cluster is trained on, and asked about: the same models and answers as on one machine."""

import json
import os
from dataclasses import replace

import dask.array
import dask.bag
import dask.dataframe
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import dask
import ldsm.dask
from cli_runs import within
from dask_clusters import cluster, local_scores, small
from ldsm import TextTagger, datasets
from ldsm._execution.executor import watching
from text_corpus import make_corpus
from tiny_encoders import encode, texts_and_tags

pytestmark = pytest.mark.not_under("address", "thread", reason="works against a clock")

TEXTS, TAGS = make_corpus(600)
NEW, NEW_TAGS = make_corpus(150, seed=1)


@pytest.fixture(scope="module")
def client():
    with cluster(2) as client:
        yield client


@pytest.fixture(scope="module")
def tagger():
    return TextTagger(small()).fit(TEXTS, TAGS)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The corpus in files of each format."""
    folder = tmp_path_factory.mktemp("files")
    for name, corpus in (("train", (TEXTS, TAGS)), ("new", (NEW, NEW_TAGS))):
        data = datasets.Dataset.from_texts(*corpus)
        datasets.save_jsonl(data, folder / f"{name}.jsonl.gz")
        datasets.save_table(data, folder / f"{name}.csv")
        data.save(folder / name)
    return folder


def frame(texts=TEXTS, tags=TAGS):
    """A data frame of three partitions."""
    with dask.config.set({"dataframe.convert-string": False}):
        whole = pd.DataFrame({"text": texts, "tags": tags})
        return dask.dataframe.from_pandas(whole, npartitions=3)


@pytest.mark.parametrize("kind", ["lists", "frame", "bag", "train.jsonl.gz", "train.csv", "train"])
def test_same_tagger_for_texts_of_any_kind(kind, client, tagger, files):
    data, labels = {
        "lists": lambda: (TEXTS, TAGS),
        "frame": lambda: (frame()["text"], frame()["tags"]),
        "bag": lambda: (dask.bag.from_sequence(zip(TEXTS, TAGS, strict=True), npartitions=4), None),
    }.get(kind, lambda: (files / kind, None))()
    fitted = ldsm.dask.fit(client, data, labels, small())
    assert isinstance(fitted, TextTagger)
    assert fitted.fingerprint_ == tagger.fingerprint_


def test_same_tagger_within_a_memory_limit(client, tagger):
    limited = TextTagger(small(memory_limit=1 << 20))
    assert limited.fit(zip(TEXTS, TAGS, strict=True)).fingerprint_ == tagger.fingerprint_
    assert ldsm.dask.fit(client, TEXTS, TAGS, limited).fingerprint_ == tagger.fingerprint_


def test_vocabulary_and_checkpoint(client, tmp_path, monkeypatch):
    monkeypatch.setattr("ldsm._execution.executor._POLL_SECONDS", 0.001)
    kinds = set()
    names = {"fish": ["cod"], "meat": ["beef"]}
    expected = TextTagger(small()).fit(TEXTS, TAGS, vocabulary=names).fingerprint_
    for n_taken in (0, 5):
        with watching(lambda done, total, kind: kinds.add(kind)):
            fitted = ldsm.dask.fit(
                client, TEXTS, TAGS, TextTagger(small()), tmp_path / "kept", vocabulary=names
            )
        assert fitted.fingerprint_ == expected
        assert fitted.classifier_.training_["trees_from_checkpoint"] == n_taken
    assert kinds >= {"index range", "shortlist chunk", "label range"}


def test_arrays_in_blocks(client):
    data = datasets.make_xmc(700, 60, 12, seed=0)
    X, Y = data.X.toarray(), data.Y.toarray()
    rows = dask.array.from_array(X, chunks=(250, 60))
    labels = dask.array.from_array(Y, chunks=(250, 12))
    expected = small().fit(sp.csr_array(X), sp.csr_array(Y)).fingerprint_
    assert ldsm.dask.fit(client, rows, labels, small()).fingerprint_ == expected
    assert ldsm.dask.fit(client, data.X, data.Y, small()).fingerprint_ == expected
    for X, Y, message in (
        (rows.rechunk((250, 30)), labels, r"whole rows: X.rechunk\(\{1: -1\}\). Got 2 blocks"),
        (rows, labels.rechunk((350, 12)), "same partitions. Got 3 and 2"),
        (rows, labels.rechunk(((200, 300, 200), (12,))), "Partition 0 has .* 200 and 250"),
        (rows, data.Y, "must be a 0/1 array of Dask"),
    ):
        with pytest.raises(ValueError, match=message):
            ldsm.dask.fit(client, X, Y, small())


def test_embeddings_of_stores_and_arrays(client, tmp_path):
    data = datasets.make_xmc(700, 60, 12, seed=0)
    own = data.Y @ np.random.default_rng(0).normal(size=(12, 8))
    with_own = replace(data, embeddings=own)
    with_own.save(tmp_path / "rows")
    expected = small().fit(with_own)
    assert "meaning" in expected.second_stage_.blend.kind
    again = ldsm.dask.fit(client, tmp_path / "rows", model=small(memory_limit=1 << 20))
    assert again.fingerprint_ == expected.fingerprint_
    rows, labels, vectors = (
        dask.array.from_array(part, chunks=(250, part.shape[1]))
        for part in (data.X.toarray(), data.Y.toarray(), own)
    )
    found = ldsm.dask.fit(client, rows, labels, small(), embeddings=vectors)
    assert found.fingerprint_ == expected.fingerprint_
    with pytest.raises(ValueError, match="embeddings of an array of Dask must be one, too"):
        ldsm.dask.fit(client, rows, labels, small(), embeddings=own)
    again.save(tmp_path / "m.ldsm")
    answers = ldsm.dask.predict(client, tmp_path / "m.ldsm", tmp_path / "rows", 3)
    for part, whole in zip(answers, again.predict_topk(data.X, 3, embeddings=own), strict=True):
        assert np.array_equal(part, whole)
    measured = ldsm.dask.evaluate(client, tmp_path / "m.ldsm", with_own, (1,))
    assert measured["precision@1"] == pytest.approx(again.score(with_own))
    with pytest.raises(ValueError, match="embeddings must be given"):
        ldsm.dask.predict(client, tmp_path / "m.ldsm", data.X)


def test_answers_by_an_encoder(client, tmp_path):
    texts, tags = texts_and_tags(900)
    new, new_tags = texts_and_tags(100, seed=1)
    expected = TextTagger(small(), encoder=encode).fit(texts, tags)
    found = ldsm.dask.fit(client, texts, tags, TextTagger(small(), encoder=encode))
    assert found.fingerprint_ == expected.fingerprint_
    found.save(model := tmp_path / "m.ldsm")
    best = ldsm.dask.predict(client, model, new, 2, encoder=encode)
    for part, whole in zip(best, expected.predict_topk(new, 2), strict=True):
        assert np.array_equal(part, whole)
    measured = ldsm.dask.evaluate(client, model, new, (1,), labels=new_tags, encoder=encode)
    assert measured["precision@1"] == pytest.approx(expected.score(new, new_tags))
    with pytest.raises(ValueError, match="needs its encoder, 'encode' .* Use encoder="):
        ldsm.dask.predict(client, model, new)


@pytest.mark.parametrize(
    "kind", ["lists", "pairs", "frame", "bag", "new.jsonl.gz", "new.csv", "new"]
)
def test_answers_for_texts_of_any_kind(kind, client, tagger, files, tmp_path):
    """The same as on one machine."""
    model = tmp_path / "model.ldsm"
    tagger.save(model)
    labels, scores = tagger.predict_topk(NEW, 2)
    expected = local_scores(tagger, NEW, NEW_TAGS, ks=(1, 3))
    columns = frame(NEW, NEW_TAGS)
    pairs = list(zip(NEW, NEW_TAGS, strict=True))
    rows, labelled, tags = {
        "lists": (NEW, NEW, NEW_TAGS),
        "pairs": (iter(NEW), iter(pairs), None),
        "frame": (columns["text"], columns["text"], columns["tags"]),
        "bag": (*(dask.bag.from_sequence(its, npartitions=4) for its in (NEW, pairs)), None),
    }.get(kind, (files / kind, files / kind, None))
    found = ldsm.dask.predict(client, model, rows, 2, rows_per_task=70)
    assert np.array_equal(found[0], labels) and np.array_equal(found[1], scores)
    found = ldsm.dask.evaluate(client, model, labelled, (1, 3), labels=tags, rows_per_task=70)
    assert found == pytest.approx({name: expected[name] for name in found}, rel=1e-12)


def test_answers_for_features_of_any_kind(client, tmp_path):
    data = datasets.make_xmc(700, 60, 12, seed=0)
    clf = small().fit(data)
    clf.save(tmp_path / "model.ldsm")
    X, Y = data.X.toarray(), data.Y.toarray()
    expected = local_scores(clf, data, ks=(1, 3))
    blocks = [dask.array.from_array(own, chunks=(250, own.shape[1])) for own in (X, Y)]
    for rows, labels in ((X, Y), (data.X, data.Y), (pd.DataFrame(X), data.labels), blocks):
        found = ldsm.dask.predict(client, tmp_path / "model.ldsm", rows)
        for own, whole in zip(found, clf.predict_topk(X), strict=True):
            assert np.array_equal(own, whole)
        found = ldsm.dask.evaluate(client, tmp_path / "model.ldsm", rows, (1, 3), labels=labels)
        assert found == pytest.approx({name: expected[name] for name in found}, rel=1e-12)
    for rows, labels, message in (
        (X, None, "'labels' argument must hold the labels of the rows. Got None"),
        (data, data.Y, "A Dataset includes its labels"),
        (X[:, :50], Y, "X has 50 features"),
        (X, Y[:, :5], "one column for each of the 12 labels of training. Got 5"),
        (X, Y[:100], "same number of rows. Got 700 and 100"),
        (blocks[0], Y, "must be a 0/1 array of Dask"),
        (TEXTS, TAGS, "model reads a matrix of features. Got list"),
    ):
        with pytest.raises(ValueError, match=message):
            ldsm.dask.evaluate(client, tmp_path / "model.ldsm", rows, labels=labels)


def test_answers_in_a_folder_for_texts(client, tagger, tmp_path):
    """Rows that are read once more are the same rows: what is finished stays."""
    tagger.save(tmp_path / "model.ldsm")
    ask = {"rows_per_task": 70, "output_dir": tmp_path / "parts"}
    paths = ldsm.dask.predict(client, tmp_path / "model.ldsm", NEW, 2, **ask)
    assert len(paths) == 3 and sorted(p.name for p in tmp_path.iterdir()) == ["model.ldsm", "parts"]
    written = [os.stat(path).st_mtime_ns for path in paths]
    assert ldsm.dask.predict(client, tmp_path / "model.ldsm", iter(NEW), 2, **ask) == paths
    assert [os.stat(path).st_mtime_ns for path in paths] == written
    with pytest.raises(ValueError, match="other predictions: store"):
        ldsm.dask.predict(client, tmp_path / "model.ldsm", TEXTS, 2, **ask)


def test_tags_that_became_strings(client):
    columns = pd.DataFrame({"text": TEXTS, "tags": TAGS})
    turned = dask.dataframe.from_pandas(columns, npartitions=2)  # Dask makes strings of lists
    with pytest.raises(ValueError, match="tags of document 0 must be a list"):
        ldsm.dask.fit(client, turned["text"], turned["tags"], small())


def test_commands_on_a_cluster(client, capsys, files, tmp_path):
    """Every command that takes --dask gives the same with and without it."""
    run, model, onto = within(capsys), tmp_path / "model.ldsm", ("--dask", client.scheduler.address)
    train = ("train", files / "train.csv", "--n-estimators", 4, "--seed", 0, "--json")
    train += ("--validation", 0.2, "--tune-threshold", "-o")
    alone = run(*train, model)
    assert alone.code == 0, alone.err
    done = run(*train, tmp_path / "other.ldsm", *onto)
    assert done.code == 0, done.err
    assert done.json["fingerprint"] == alone.json["fingerprint"]
    assert done.json["validation"] == alone.json["validation"]
    for command in (
        ("predict", model, files / "new.csv"),
        ("predict", model, files / "new.jsonl.gz", "-k", 2, "--batch-size", 7),
        ("predict", model, files / "new.csv", "--sets", "--without", "fish"),
        ("evaluate", model, files / "new", "--json"),
    ):
        expected, found = run(*command), run(*command, *onto)
        assert found.code == 0, found.err
        assert found.out == expected.out
    learned = [
        run("learn", model, files / "new.csv", "-o", tmp_path / f"{i}.ldsm", "--json", *options)
        for i, options in enumerate(((), onto))
    ]
    assert learned[1].code == 0, learned[1].err
    assert learned[0].json["fingerprint"] == learned[1].json["fingerprint"]
    tune = ("tune", files / "train.csv", "--trials", 2, "--n-estimators", 2, "--json")
    searches = [json.loads(run(*tune, *options).out) for options in ((), onto)]
    for search in searches:
        for trial in search["trials"]:
            del trial["seconds"]
    assert searches[0] == searches[1]


def test_texts_reach_workers_unchanged(client, capsys, tagger, tmp_path):
    """Also texts that are no valid Unicode, as JSON can hold them."""
    tagger.save(tmp_path / "model.ldsm")
    texts = [*NEW[:20], "cod \ud800 beef", ""]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (tmp_path / "rows.jsonl").write_text(lines)
    command = ("predict", tmp_path / "model.ldsm", tmp_path / "rows.jsonl", "--json")
    run = within(capsys)
    expected, found = run(*command), run(*command, "--dask", client.scheduler.address)
    assert found.code == 0, found.err
    assert found.out == expected.out and len(found.lines) == len(texts)


def test_rows_of_features_on_workers(client, capsys, tmp_path):
    data = datasets.make_xmc(700, 60, 12, seed=0)
    small().fit(data).save(tmp_path / "model.ldsm")
    rows = datasets.make_xmc(9000, 60, 12, seed=0, part="test")
    datasets.save_svmlight(rows, tmp_path / "rows.svm")
    run = within(capsys)
    for command in ("predict", "evaluate"):
        asked = (command, tmp_path / "model.ldsm", tmp_path / "rows.svm", "--json")
        expected, found = run(*asked), run(*asked, "--dask", client.scheduler.address)
        assert found.code == 0, found.err
        assert found.out == expected.out
    assert np.isfinite(found.json["precision@1"])
