"""From texts to a cluster: stores of features that remember how they were made."""

from __future__ import annotations

import numpy as np
import pytest

import ldsm
from cli_runs import make_documents, within
from ldsm import datasets
from ldsm._storage.manifest import read_manifest, write_manifest

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def run(capsys):
    return within(capsys)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    texts, tags = make_documents(600, seed=3)
    datasets.save_jsonl(datasets.Dataset.from_texts(texts, tags), folder / "d.jsonl")
    return folder / "d.jsonl"


def test_a_model_of_a_vectorized_store_is_the_model_of_the_texts(run, corpus, tmp_path):
    store, words = tmp_path / "store", ["--ngrams", "2", "--min-df", "3"]
    assert run("convert", corpus, store, "--vectorize", *words).code == 0
    for data, more in ((corpus, words), (store, [])):
        model = tmp_path / f"{data.stem}.ldsm"
        assert run("train", data, "-o", model, "--n-estimators", 4, *more).code == 0
    from_texts, from_store = ldsm.load(tmp_path / "d.ldsm"), ldsm.load(tmp_path / "store.ldsm")
    assert from_store.fingerprint_ == from_texts.fingerprint_
    assert from_store.predict(["cod and beef"]) == from_texts.predict(["cod and beef"])
    assert from_store.vectorizer_.get_params()["ngram_range"] == (1, 2)
    in_python = ldsm.TextTagger(ldsm.LdSMClassifier(4)).fit(datasets.open_store(store, verify=True))
    assert in_python.fingerprint_ == from_texts.fingerprint_


def test_rare_tags_of_a_vectorized_store_are_left_out(run, corpus, tmp_path):
    assert run("convert", corpus, tmp_path / "store", "--vectorize").code == 0
    least = ["--min-tag-count", "200", "--n-estimators", 2]
    for data in (corpus, tmp_path / "store"):
        assert run("train", data, "-o", tmp_path / f"{data.stem}.ldsm", *least).code == 0
    a, b = ldsm.load(tmp_path / "d.ldsm"), ldsm.load(tmp_path / "store.ldsm")
    assert a.rare_tags_ == b.rare_tags_ != {}
    assert a.fingerprint_ == b.fingerprint_


def test_what_vectorize_refuses(run, corpus, tmp_path):
    features = tmp_path / "f.svm"
    features.write_text("0 1:1\n")
    for arguments, problem in (
        ([features, tmp_path / "s", "--vectorize"], "holds features, not texts"),
        ([corpus, tmp_path / "d.csv", "--vectorize"], "writes a store"),
        ([corpus, tmp_path / "s", "--min-df", "3"], "without --vectorize"),
    ):
        done = run("convert", *arguments)
        assert done.code == 2 and problem in done.err, done
        assert not (tmp_path / "s").exists()
    assert run("convert", corpus, tmp_path / "texts").code == 0
    done = run("train", tmp_path / "texts", "-o", tmp_path / "m.ldsm", "--dask", "local:1")
    assert done.code == 2 and "`ldsm convert --vectorize` makes one" in done.err
    assert run("convert", corpus, tmp_path / "store", "--vectorize").code == 0
    done = run("train", tmp_path / "store", "-o", tmp_path / "m.ldsm", "--min-df", "2")
    assert done.code == 2 and "made already" in done.err


def test_crafted_words_of_a_store_are_refused(run, corpus, tmp_path):
    store = tmp_path / "store"
    assert run("convert", corpus, store, "--vectorize").code == 0
    meta = read_manifest(store / "meta.json", "ldsm-store", 2)
    for changed in (
        {**meta["text"], "token_pattern": "(a+)+b"},
        {**meta["text"], "analyzer": "os.system"},
        {},
        {**meta["text"], "use_idf": False},
    ):
        write_manifest(store / "meta.json", {**meta, "text": changed}, replace=True)
        with pytest.raises(ValueError, match="The words of .* cannot be used"):
            ldsm.TextTagger().fit(datasets.open_store(store))
    write_manifest(store / "meta.json", {**meta, "text": [1]}, replace=True)
    with pytest.raises(ValueError, match="damaged"):
        datasets.open_store(store)


def test_a_tagger_that_brings_a_vectorizer_needs_texts(corpus, tmp_path, run):
    assert run("convert", corpus, tmp_path / "store", "--vectorize").code == 0
    data = datasets.open_store(tmp_path / "store")
    tagger = ldsm.TextTagger(vectorizer=ldsm.text.default_vectorizer())
    with pytest.raises(ValueError, match="vectorized already"):
        tagger.fit(data)
    assert np.array_equal(data.text_form.idf.dtype, np.float32)
