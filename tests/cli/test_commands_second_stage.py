"""The commands on models with a second stage, run within this process."""

import numpy as np
import pytest

import ldsm
from cli_runs import make_documents, write_data
from ldsm import LdSMClassifier, TextTagger, datasets, metrics
from text_corpus import titles

FEW = ("--n-estimators", "3", "--seed", "0", "-q")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli")
    write_data(path)
    train = datasets.load_xmlrepo(path / "train.txt")
    notes = make_documents(600, seed=0)
    for rerank in ("linear", "tail"):
        trees = LdSMClassifier(3, rerank=rerank, random_state=0)
        trees.fit(train).save(path / f"{rerank}.ldsm")
    TextTagger(LdSMClassifier(3, rerank="linear", random_state=0)).fit(*notes).save(
        path / "notes.ldsm"
    )
    LdSMClassifier(3, random_state=0).fit(train).save(path / "trees.ldsm")
    return path


def test_training_names_the_second_stage(run, folder, tmp_path):
    file, data = tmp_path / "m.ldsm", folder / "train.txt"
    options = ["--rerank", "linear", "--subsample", 0.6]
    done = run("train", data, "-o", file, *FEW, *options, "--json").json
    expected = LdSMClassifier(3, rerank="linear", subsample=0.6, random_state=0)
    expected.fit(datasets.load_xmlrepo(data))
    assert done["fingerprint"] == expected.fingerprint_
    assert done["second_stage"] == "linear+index"
    options = ["--rerank", "tail", "--tail-blend", 0.5, "--tail-gamma", 2, "--tail-min-rows", 3]
    assert run("train", data, "-o", file, *FEW, *options).code == 0
    clf = ldsm.load(file)
    assert clf.second_stage_.blend.gamma == 2 and clf.second_stage_.blend.tree_share == 0.5
    assert clf.get_params()["tail_min_rows"] == 3
    done = run("train", data, "-o", file, "--n-estimators", 3, "--rerank", "none")
    assert "second stage: none" in done.err
    assert ldsm.load(file).get_params()["rerank"] is None


def test_compression_is_a_parameter(run, folder, tmp_path):
    file, data = tmp_path / "m.ldsm", folder / "train.txt"
    for text, value in (("true", True), ("false", False), ("auto", "auto")):
        options = ["--rerank", "linear", "--compress", text, "--min-split-labels", 64]
        assert run("train", data, "-o", file, *FEW, *options).code == 0
        clf = ldsm.load(file)
        assert clf.compress is value or clf.compress == value == "auto"
        assert clf.min_split_labels == clf.tree_params_.min_split_labels == 64
        assert clf.forest_.is_compressed == (text != "false")
        assert clf.second_stage_.ranker.weights.dtype == (
            np.float32 if text == "false" else np.int8
        )


@pytest.mark.parametrize(
    ("option", "text", "allowed"),
    [
        ("--compress", "half", "'auto' or a bool"),
        ("--min-split-labels", "0", "'auto' or an int in [1, "),
        ("--rerank", "best", "'auto' or None or 'tail' or 'linear'"),
        ("--tail-blend", "2", "a float in [0, 1]"),
        ("--tail-gamma", "0", "'auto' or a float > 0"),
        ("--tail-min-rows", "0.5", "an int >= 1"),
    ],
)
def test_invalid_option_values(run, folder, tmp_path, option, text, allowed):
    done = run("train", folder / "train.txt", "-o", tmp_path / "m", option, text)
    assert done.code == 2 and f"Invalid value for {option}" in done.err and allowed in done.err


def test_tail_is_for_orders_alone(run, folder):
    model = folder / "linear.ldsm"
    for option in (["--sets"], ["--threshold", 0.2]):
        wrong = run("predict", model, folder / "test.txt", "--tail", 1, *option)
        assert wrong.code == 2 and "--tail" in wrong.err and "--sets or --threshold" in wrong.err


def test_evaluation_with_tail(run, folder):
    train, test = (datasets.load_xmlrepo(folder / f"{part}.txt") for part in ("train", "test"))
    clf = ldsm.load(folder / "linear.ldsm")
    done = run("evaluate", folder / "linear.ldsm", folder / "test.txt", "--tail", 1, "--json").json
    top, _ = clf.predict_topk(test.X, k=5, tail=1)
    expected = metrics.ranking_report(test.Y, top, y_train=train.Y)
    assert {name: done[name] for name in expected} == pytest.approx(expected)
    plain = run("evaluate", folder / "linear.ldsm", folder / "test.txt", "--json").json
    assert done["f1_micro"] == plain["f1_micro"] and done["psp@5"] != plain["psp@5"]


def test_inspection_of_the_second_stage(run, folder):
    clf = ldsm.load(folder / "linear.ldsm")
    whole = run("inspect", folder / "linear.ldsm", "--json").json
    found = whole["second_stage"]
    stage = clf.second_stage_
    assert found["kind"] == "linear+index" and found["shortlist"] == stage.length == 25
    assert found["ranker"]["bytes"] == stage.ranker.nbytes
    assert found["index"]["bytes"] == stage.index.nbytes
    assert list(found["coefficients"].values()) == list(clf.second_stage_.blend.coefficients)
    assert list(found["coefficients"])[:3] == ["constant", "tree log-odds", "margin"]
    per_label = len(clf.second_stage_.ranker.weights) / 25
    assert found["ranker"]["weights_per_label"] == pytest.approx(per_label)
    per_feature = len(stage.index.labels) / 120
    assert found["index"]["weights_per_feature"] == pytest.approx(per_feature)
    assert found["index"]["features"] == np.count_nonzero(np.diff(stage.index.offsets))
    assert "centroids" not in found and "gamma" not in found
    parts = stage.ranker.nbytes + stage.index.nbytes
    assert whole["memory"] == clf.forest_.nbytes + parts
    plain = run("inspect", folder / "linear.ldsm").lines
    assert "second stage\tlinear+index" in plain and "signal\tcoefficient" in plain
    assert f"ranker: weights per label\t{per_label:,.1f}" in plain
    assert f"index: weights per feature\t{per_feature:,.1f}" in plain
    assert "shortlist\t25 labels" in plain
    tail = run("inspect", folder / "tail.ldsm", "--json").json["second_stage"]
    assert tail["tree_share"] == 0.8 and tail["gamma"] > 0 and tail["centroids"]["labels"] <= 25
    assert "trees' share\t0.8" in run("inspect", folder / "tail.ldsm").lines
    assert run("inspect", folder / "trees.ldsm", "--json").json["second_stage"] is None
    lines = run("inspect", folder / "trees.ldsm").lines
    assert (
        "second stage\tnone (scores of the trees only)" in lines and "rerank\tauto: none" in lines
    )


def test_explanation_of_a_text_by_stages(run, folder):
    text = "cod and herring in court"
    done = run("explain", folder / "notes.ldsm", text, "-k", 3, "--json").json
    expected = ldsm.load(folder / "notes.ldsm").explain(text, max_tags=3, max_words=10)
    assert all(score["certainty"] == 1 for score in done["scores"])
    lines = run("explain", folder / "notes.ldsm", text, "-k", 3).lines
    heads = [line.split("\t")[0] for line in lines]
    assert lines[0] == "label\tscore\ttrees"
    assert lines[4] == "label\tlog-odds\tbase\ttrees\tlinear\tfeatures\tfrequency"
    assert lines[8] == "label\tmargin\tbias\tfor\tagainst" and heads[12] == "word"
    assert heads[1:4] == heads[5:8] == heads[9:12] == [score.tag for score in expected.scores]
    for line in lines[5:8]:
        odds, *shares = map(float, line.split("\t")[1:])
        assert odds == pytest.approx(sum(shares), abs=0.03)
    fish = lines[9 + heads[1:4].index("fish")].split("\t")
    assert "cod +" in fish[3] and "court" not in fish[3]


def test_explain_text_without_known_words(run, folder):
    shown = run("explain", folder / "notes.ldsm", "xyzzy qwrtz")
    assert "no known word" in shown.err
    done = run("explain", folder / "notes.ldsm", "xyzzy qwrtz", "--json").json
    assert all(score["certainty"] == 0 for score in done["scores"])


def test_explanation_of_a_row_by_stages(run, folder):
    test = datasets.load_xmlrepo(folder / "test.txt")
    linear = {"trees", "linear", "features", "frequency"}
    for kind, parts in (("linear", linear), ("tail", {"trees", "tail"})):
        model = folder / f"{kind}.ldsm"
        done = run("explain", model, folder / "test.txt", "--row", 4, "-k", 2, "--json").json
        best, scores = ldsm.load(model).predict_topk(test.X[[4]], k=2)
        assert [label for label, _ in done["tags"]] == best[0].tolist()
        np.testing.assert_allclose([score for _, score in done["tags"]], scores[0])
        assert all(score["shares"].keys() == {"base", *parts} for score in done["scores"])
        shown = run("explain", model, folder / "test.txt", "--row", 4)
        assert shown.code == 0 and ("margin" in shown.out) == (kind == "linear")
    # The trees alone are shown as ever.
    shown = run("explain", folder / "trees.ldsm", folder / "test.txt")
    assert shown.code == 0 and "log-odds" not in shown.out


def test_search_with_second_stage(run, folder):
    pytest.importorskip("optuna")
    options = ["--trials", 2, "--n-estimators", 2, "--rerank", "linear", "--json"]
    done = run("tune", folder / "train.txt", *options)
    assert done.code == 0 and done.json["best"]["rerank"] == "linear"


def test_vocabulary_adds_unseen_labels(run, tmp_path):
    texts, tags = titles(900)
    hidden = min(tag for some in tags for tag in some)
    known = [[tag for tag in some if tag != hidden] for some in tags]
    datasets.save_jsonl(datasets.Dataset.from_texts(texts, known), tmp_path / "a.jsonl")
    names = sorted({tag for some in tags for tag in some})
    (tmp_path / "v.tsv").write_text("".join(f"{name}\t{name}\n" for name in names))
    model = tmp_path / "m.ldsm"
    asked = next(text for text, some in zip(texts, tags, strict=True) if hidden in some)
    options = ("--n-estimators", 3, "--vocabulary", tmp_path / "v.tsv")
    assert run("train", tmp_path / "a.jsonl", "-o", model, *options).code == 0
    found = run("predict", model, asked, "-k", 5, "--json").json
    assert hidden in str(found)
    explained = run("explain", model, asked, "-k", 5).lines
    assert "label\tname\tshare found in the text" in explained
    shown = run("inspect", model).lines
    assert any(line.startswith("index of names: sub-words\t") for line in shown)
    # More trees later on: the names are still known.
    more = run("train", tmp_path / "a.jsonl", "-o", model, "--n-estimators", 4, "--warm-start")
    assert more.code == 0
    again = ldsm.load(model)
    assert hidden in again.classes_ and again.classifier_.second_stage_.blend.unseen


def test_vocabulary_needs_texts(run, folder, tmp_path):
    (tmp_path / "v.tsv").write_text("a\tb\n")
    vocabulary = ("--vocabulary", tmp_path / "v.tsv")
    done = run("train", folder / "train.txt", "-o", tmp_path / "m.ldsm", *vocabulary)
    assert done.code == 2 and "holds features, not texts" in done.err
    for more in (("--warm-start",), ("--ngrams", 3)):
        done = run("train", folder / "notes.jsonl", "-o", tmp_path / "m.ldsm", *vocabulary, *more)
        assert done.code == 2 and "cannot be combined with" in done.err
    texts, tags = titles(600)
    datasets.save_jsonl(datasets.Dataset.from_texts(texts, tags), tmp_path / "a.jsonl")
    (tmp_path / "v.tsv").write_bytes(f"{tags[0][0]}\tväline\n".encode("latin-1"))
    command = ("train", tmp_path / "a.jsonl", "-o", tmp_path / "m.ldsm", *vocabulary)
    done = run(*command)
    assert done.code == 1 and "v.tsv:1" in done.err and "--encoding latin-1" in done.err
    assert run(*command, "--encoding", "latin-1", "--n-estimators", 2).code == 0
