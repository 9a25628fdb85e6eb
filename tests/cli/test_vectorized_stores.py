"""A vectorized store in place of its texts: every command gives the same answers."""

import numpy as np
import pytest

import ldsm
from cli_runs import make_documents
from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm._storage.manifest import read_manifest, write_manifest

pytestmark = pytest.mark.filterwarnings("default")
TREES = ["--n-estimators", 3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Texts of the fields `body` and `tags`, and texts to test on."""
    folder = tmp_path_factory.mktemp("stores")
    for name, n, seed in (("train", 700, 3), ("test", 300, 4)):
        data = datasets.Dataset.from_texts(*make_documents(n, seed=seed))
        datasets.save_jsonl(data, folder / f"{name}.jsonl", text="body", labels="tags")
    return folder


FIELDS = ["--text-field", "body", "--label-field", "tags"]


@pytest.fixture
def store(run, folder, tmp_path):
    assert (
        run("convert", folder / "train.jsonl", tmp_path / "store", "--vectorize", *FIELDS).code == 0
    )
    return tmp_path / "store"


@pytest.fixture
def model(run, store, tmp_path):
    assert run("train", store, "-o", tmp_path / "m.ldsm", *TREES).code == 0
    return tmp_path / "m.ldsm"


@pytest.fixture
def test_store(run, folder, model, tmp_path):
    like = ["--vectorize", "--like", model]
    assert run("convert", folder / "test.jsonl", tmp_path / "test", *like).code == 0
    return tmp_path / "test"


def test_train_with_validation_and_threshold(run, store, tmp_path):
    output, held_out = tmp_path / "v.ldsm", tmp_path / "held_out"
    options = ["--validation", 0.2, "--tune-threshold", "--held-out", held_out]
    done = run("train", store, "-o", output, *TREES, *options, "--json")
    assert done.code == 0, done.err
    tagger = ldsm.load(output)
    assert tagger.classifier_.threshold_ != 0.5
    again = run("evaluate", output, held_out, "--json").json
    assert again == done.json["validation"]
    rows = datasets.open_store(held_out)
    expected = TextTagger(LdSMClassifier(3)).fit(datasets.open_store(store).split(0.2)[0])
    assert tagger.classifier_.fingerprint_ != expected.classifier_.fingerprint_  # the threshold
    assert expected.tune_threshold(rows).fingerprint_ == tagger.fingerprint_
    assert expected.score(rows) == done.json["validation"]["precision@1"]


@pytest.mark.parametrize("options", [[], ["--min-tag-count", 200]])
def test_tune_matches_train(run, store, folder, tmp_path, options):
    more = [*TREES, *options, "--validation", 0.2, "--seed", 1, "--json"]
    for data, fields in ((store, []), (folder / "train.jsonl", FIELDS)):
        tuned = run("tune", data, *fields, *more, "--trials", 1, "-o", tmp_path / "p.json").json
        kept = {key: value for key, value in tuned["best"].items() if key != "random_state"}
        assert {"arity", "learning_rate", "n_epochs", "max_nodes"} <= kept.keys()
        best = ["--params", tmp_path / "p.json", "--overwrite"]
        trained = run("train", data, *fields, "-o", tmp_path / "t.ldsm", *more, *best).json
        assert tuned["precision@1"] == trained["validation"]["precision@1"]
        for k in (1, 3, 5):
            precision = trained["validation"][f"precision@{k}"]
            assert tuned["trials"][0][f"precision@{k}"] == precision


def test_evaluate_and_report(run, folder, model, test_store, tmp_path):
    texts = folder / "test.jsonl"
    assert (
        run("evaluate", model, test_store, "--json").json
        == run("evaluate", model, texts, "--json").json
    )
    pages = []
    for data in (test_store, texts):
        done = run("report", model, data, "-o", tmp_path / "r.html", "--json")
        pages.append({key: value for key, value in done.json.items() if key != "path"})
    assert pages[0] == pages[1] and pages[0]["rows"] == 300


def test_predict_and_explain(run, folder, model, test_store):
    texts = folder / "test.jsonl"
    assert run("predict", model, test_store).out == run("predict", model, texts).out
    asked = ["--row", 7, "--json"]
    assert run("explain", model, test_store, *asked).out == run("explain", model, texts, *asked).out
    done = run("predict", model, test_store, "--id-field", "id")
    assert done.code == 2 and "--id-field" in done.err


def test_learn(run, folder, model, test_store, tmp_path):
    learned = {}
    for name, data in (("store", test_store), ("texts", folder / "test.jsonl")):
        done = run("learn", model, data, "-o", tmp_path / f"{name}.ldsm", "--json")
        assert done.code == 0, done.err
        assert ("cannot add new words" in done.err) == (name == "store")
        learned[name] = ldsm.load(tmp_path / f"{name}.ldsm")
        assert done.json["learned"] == 300
    # The corpus has no new words, so both have learned the same.
    for attribute in ("words", "idf"):
        ours, theirs = (getattr(one.features_, attribute) for one in learned.values())
        assert list(ours) == list(theirs)
    rows = datasets.load_jsonl(folder / "test.jsonl", text="body", labels="tags")
    ours, theirs = (one.predict_proba(rows).toarray() for one in learned.values())
    # Weights are taken out of float32 features and put in again: the last bits differ.
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    # A store that was made before still serves: its features are weighted again.
    after = run("evaluate", tmp_path / "store.ldsm", test_store, "--json").json
    texts = run("evaluate", tmp_path / "store.ldsm", folder / "test.jsonl", "--json").json
    assert after["precision@1"] == texts["precision@1"]


def reading(path):
    return ldsm.load(path).classifier_.training_["reading"]


def test_model_remembers_store_fields(run, folder, store, model, tmp_path):
    assert reading(model) == {"text_field": ["body"], "label_field": "tags"}
    assert run("evaluate", model, folder / "test.jsonl").code == 0
    # So does a model from a store of texts, and from a store that was made of a store.
    assert run("convert", folder / "train.jsonl", tmp_path / "texts", *FIELDS).code == 0
    assert run("convert", tmp_path / "texts", tmp_path / "again", "--vectorize").code == 0
    for name in ("texts", "again"):
        output = tmp_path / f"{name}.ldsm"
        assert run("train", tmp_path / name, "-o", output, *TREES).code == 0
        assert ldsm.load(output).fingerprint_ == ldsm.load(model).fingerprint_
        assert run("evaluate", output, folder / "test.jsonl").code == 0


def test_crafted_reading_is_ignored(run, store, tmp_path):
    meta = read_manifest(store / "meta.json", "ldsm-store", 2)
    crafted = {"text_field": "body", "label_field": 3, "label_names": "x", "separator": ";"}
    write_manifest(store / "meta.json", {**meta, "reading": crafted}, replace=True)
    assert run("train", store, "-o", tmp_path / "m.ldsm", *TREES).code == 0
    assert reading(tmp_path / "m.ldsm") == {"separator": ";"}
    write_manifest(store / "meta.json", {**meta, "reading": ["body"]}, replace=True)
    with pytest.raises(ValueError, match="damaged"):
        datasets.open_store(store)


def test_foreign_words_refused_early(run, folder, model, tmp_path):
    other = tmp_path / "other"
    assert run("convert", folder / "test.jsonl", other, "--vectorize", *FIELDS).code == 0
    before = model.read_bytes()
    for command in (
        ["evaluate", model, other],
        ["report", model, other, "-o", tmp_path / "r.html"],
        ["learn", model, other, "--in-place"],
        ["predict", model, other],
        ["explain", model, other],
        ["train", other, "-o", model, "--warm-start", "--n-estimators", 4],
    ):
        done = run(*command)
        assert done.code == 1 and "other words than the model" in done.err, done
        assert "--vectorize --like" in done.err and "done in" not in done.err
        assert not done.out
    assert model.read_bytes() == before and not (tmp_path / "r.html").exists()


def test_invalid_like(run, folder, model, tmp_path):
    texts = folder / "test.jsonl"
    LdSMClassifier(1).fit([[0, 1], [1, 0]] * 5, [["a"], ["b"]] * 5).save(tmp_path / "f.ldsm")
    for options, problem in (
        (["--like", model], "without --vectorize"),
        (["--vectorize", "--like", model, "--min-df", 3], "the words are those of the model"),
        (["--vectorize", "--like", tmp_path / "f.ldsm"], "reads features, not texts"),
    ):
        done = run("convert", texts, tmp_path / "s", *options)
        assert done.code == 2 and problem in done.err, done
        assert not (tmp_path / "s").exists()


def test_warm_start_on_store(run, store, model, tmp_path):
    assert run("train", store, "-o", model, "--warm-start", "--n-estimators", 5).code == 0
    assert run("train", store, "-o", tmp_path / "five.ldsm", "--n-estimators", 5).code == 0
    assert ldsm.load(model).fingerprint_ == ldsm.load(tmp_path / "five.ldsm").fingerprint_


def test_labels_without_names(run, folder, tmp_path):
    """Their numbers are their names, in training and in what is measured after it."""
    data = datasets.load_jsonl(folder / "train.jsonl", text="body", labels="tags")
    unnamed = datasets.Dataset(None, data.Y, texts=data.texts)
    unnamed.save(tmp_path / "unnamed")
    options = ["--validation", 0.2, "--tune-threshold"]
    done = run("train", tmp_path / "unnamed", "-o", tmp_path / "m.ldsm", *TREES, *options)
    assert done.code == 0, done.err
    assert ldsm.load(tmp_path / "m.ldsm").classes_.tolist() == list("01234")


def test_threshold_needs_held_out_labels(run, tmp_path):
    texts, tags = make_documents(40, seed=0)
    few = [own if i < 3 else [] for i, own in enumerate(tags)]
    datasets.save_jsonl(datasets.Dataset.from_texts(texts, few), tmp_path / "few.jsonl")
    assert run("convert", tmp_path / "few.jsonl", tmp_path / "few", "--vectorize").code == 0
    for data in ("few", "few.jsonl"):
        train = ["train", tmp_path / data, "-o", tmp_path / "m.ldsm", *TREES]
        done = run(*train, "--tune-threshold")
        assert done.code == 2 and "none of the 4 held-out rows has a label" in done.err
        assert "done in" not in done.err and not (tmp_path / "m.ldsm").exists()


def test_validation_without_predicted_sets(run, tmp_path):
    """Figures that do not exist, such as the precision of no sets, must not cost the model."""
    texts, tags = make_documents(40, seed=0)
    few = [own if i < 3 else [] for i, own in enumerate(tags)]
    datasets.save_jsonl(datasets.Dataset.from_texts(texts, few), tmp_path / "few.jsonl")
    options = [*TREES, "--validation", 0.1, "--json"]
    done = run("train", tmp_path / "few.jsonl", "-o", tmp_path / "m.ldsm", *options)
    assert done.code == 0, done.err
    stored = ldsm.load(tmp_path / "m.ldsm").classifier_.training_["validation"]
    assert stored == done.json["validation"] and stored["set_precision"] is None


# -- words that a store remembers --------------------------------------------------------------


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    texts, tags = make_documents(600, seed=3)
    datasets.save_jsonl(datasets.Dataset.from_texts(texts, tags), folder / "d.jsonl")
    return folder / "d.jsonl"


def test_vectorized_store_same_model(run, corpus, tmp_path):
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
    with pytest.raises(ValueError, match="already vectorized: ngrams must have its default. Got 2"):
        ldsm.TextTagger(ngrams=2).fit(datasets.open_store(store))


def test_vectorized_store_rare_tags(run, corpus, tmp_path):
    assert run("convert", corpus, tmp_path / "store", "--vectorize").code == 0
    least = ["--min-tag-count", "200", "--n-estimators", 2]
    for data in (corpus, tmp_path / "store"):
        assert run("train", data, "-o", tmp_path / f"{data.stem}.ldsm", *least).code == 0
    a, b = ldsm.load(tmp_path / "d.ldsm"), ldsm.load(tmp_path / "store.ldsm")
    assert a.rare_tags_ == b.rare_tags_ != {}
    assert a.fingerprint_ == b.fingerprint_


def test_invalid_vectorize(run, corpus, tmp_path):
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
    assert run("convert", corpus, tmp_path / "store", "--vectorize").code == 0
    done = run("train", tmp_path / "store", "-o", tmp_path / "m.ldsm", "--min-df", "2")
    assert done.code == 2 and "already holds features" in done.err


def test_crafted_words_refused(run, corpus, tmp_path):
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


def test_own_vectorizer_needs_texts(corpus, tmp_path, run):
    assert run("convert", corpus, tmp_path / "store", "--vectorize").code == 0
    data = datasets.open_store(tmp_path / "store")
    tagger = ldsm.TextTagger(vectorizer=ldsm.text.default_vectorizer())
    with pytest.raises(ValueError, match="already vectorized"):
        tagger.fit(data)
    assert np.array_equal(data.text_form.idf.dtype, np.float32)
