"""What each command does, run within this process."""

import gzip
import inspect
import io
import json
import re
import shlex
import shutil
import sys

import numpy as np
import pytest

import ldsm
from cli_runs import leftovers, make_documents, write_data
from ldsm import LdSMClassifier, TextTagger, datasets, metrics
from ldsm._trees.params import CONSTRAINTS
from ldsm.cli.options.estimator import EstimatorOptions, defaults, described, flag, parse
from ldsm.cli.tune import GRID

FEW = ("--n-estimators", "3", "--seed", "0", "-q")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli")
    write_data(path)
    LdSMClassifier(3, random_state=0).fit(datasets.load_xmlrepo(path / "train.txt")).save(
        path / "matrix.ldsm"
    )
    notes = datasets.load_jsonl(path / "notes.jsonl")
    ldsm.TextTagger(LdSMClassifier(3, random_state=0)).fit(notes).save(path / "notes.ldsm")
    return path


# -- the estimator's parameters -------------------------------------------------------------------


def test_parameters_are_options(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    text = " ".join(run("train", "--help").out.split())
    assert "--seed" in text  # instead of --random-state: one for everything
    for name, default in defaults().items():
        if name == "random_state":
            continue
        words = described()[name].split(". ")[0]
        if default is True:
            assert flag(name) == f"--no-{name.replace('_', '-')}"
            words = f"Do not {words[0].lower()}{words[1:]}"
        assert flag(name) in text and words in text
    names = set(inspect.signature(LdSMClassifier.__init__).parameters) - {"self"}
    assert names == defaults().keys() == LdSMClassifier().get_params().keys()


def test_omitted_options_keep_defaults():
    values = {item.name: item.default for item in EstimatorOptions.options()}
    assert EstimatorOptions.collect(values) == {}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_defaults_can_be_given_as_options(name):
    default = defaults()[name]
    if isinstance(default, bool):
        assert EstimatorOptions.collect({name: True, "params": None}) == {name: not default}
    else:
        assert parse(name, str(default)) == default


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("arity", "4", 4),
        ("max_nodes", "auto", "auto"),
        ("learning_rate", "1e-2", 0.01),
        ("integrity_weight", "2", 2),
        ("standardize", "true", True),
        ("optimizer", "sgd", "sgd"),
        ("n_jobs", "-1", -1),
        ("n_jobs", "none", None),
        ("random_state", "7", 7),
    ],
)
def test_values_of_options(name, text, value):
    assert parse(name, text) == value and type(parse(name, text)) is type(value)


@pytest.mark.parametrize(
    ("option", "text", "allowed"),
    [
        ("--arity", "1", "an int in [2, 8]"),
        ("--arity", "2.5", "an int in [2, 8]"),
        ("--learning-rate", "nan", "'auto' or a float > 0"),
        ("--subsample", "0", "a float in (0, 1]"),
        ("--optimizer", "adam", "'asgd'"),
    ],
)
def test_invalid_option_values(run, folder, tmp_path, option, text, allowed):
    done = run("train", folder / "train.txt", "-o", tmp_path / "m", option, text)
    assert done.code == 2
    assert f"Invalid value for {option}" in done.err and allowed in done.err
    assert not list(tmp_path.iterdir())


# -- train ----------------------------------------------------------------------------------------


def test_train_on_matrix_matches_library(run, folder, tmp_path):
    file = tmp_path / "m.ldsm"
    more = ["--arity", 4, "--no-relax-integrity", "--subsample", 0.8]
    done = run("train", folder / "train.txt", "-o", file, *FEW, *more, "--json")
    assert done.code == 0 and done.err == ""
    expected = LdSMClassifier(3, arity=4, relax_integrity=False, subsample=0.8, random_state=0)
    expected.fit(datasets.load_xmlrepo(folder / "train.txt"))
    assert done.json["fingerprint"] == ldsm.load(file).fingerprint_ == expected.fingerprint_
    assert done.json["rows"] == 300 and done.json["validation"] is None


@pytest.mark.parametrize("format", ["jsonl", "csv", "store"])
def test_train_on_texts_matches_library(run, folder, tmp_path, format):
    data, options = folder / f"notes.{format}", []
    if format == "csv":
        options = ["--text-field", "body", "--label-field", "tags", "--separator", ";"]
    if format == "store":
        data = tmp_path / "store"
        datasets.load_jsonl(folder / "notes.jsonl").save(data)
    file = tmp_path / "m.ldsm"
    assert run("train", data, "-o", file, *FEW, *options).code == 0
    expected = ldsm.load(folder / "notes.ldsm")
    assert ldsm.load(file).fingerprint_ == expected.fingerprint_


def test_validation_and_threshold(run, folder, tmp_path):
    file = tmp_path / "m.ldsm"
    for data in ("notes.jsonl", "train.txt"):
        done = run("train", folder / data, "-o", file, *FEW, "--tune-threshold", "--json")
        model = ldsm.load(file)
        clf = getattr(model, "classifier_", model)
        assert clf.threshold_ != 0.5
        found = done.json["validation"]
        assert found["rows"] == round(0.1 * (done.json["rows"] + found["rows"]))
        assert clf.training_["validation"]["precision@1"] == found["precision@1"] > 0.4
    done = run("train", folder / "train.txt", "-o", file, *FEW, "--validation", "1.5")
    assert done.code == 2 and "--validation" in done.err


def test_warm_start_extends_file(run, folder, tmp_path):
    for data in ("notes.jsonl", "train.txt"):
        once, twice = tmp_path / "once.ldsm", tmp_path / "twice.ldsm"
        run("train", folder / data, "-o", once, "--n-estimators", 4, "--seed", 0)
        run("train", folder / data, "-o", twice, "--n-estimators", 1, "--seed", 0)
        done = run("train", folder / data, "-o", twice, "--n-estimators", 4, "--warm-start")
        assert done.code == 0
        assert ldsm.load(once).fingerprint_ == ldsm.load(twice).fingerprint_
        twice.unlink()


def test_features_are_counted_by_kind(run, tmp_path):
    texts, tags = make_documents(600, seed=3)
    datasets.save_jsonl(datasets.Dataset.from_texts(texts, tags), tmp_path / "d.jsonl")
    for more, shown in (
        (["--n-estimators", 2], r"\d+ words, \d+ bigrams, \d+ sub-words"),
        (["--n-estimators", 2, "--ngrams", 2], r"\d+ features"),
    ):
        done = run("train", tmp_path / "d.jsonl", "-o", tmp_path / "m.ldsm", *more)
        found = re.search(rf"600 rows, ({shown}), 5 labels", done.err)
        assert found and f"features\t{found[1]}" in run("inspect", tmp_path / "m.ldsm").lines
        total = sum(map(int, re.findall(r"\d+", found[1])))
        assert run("inspect", tmp_path / "m.ldsm", "--json").json["features"] == total


def test_options_for_words(run, folder, tmp_path):
    file = tmp_path / "m.ldsm"
    words = ["--ngrams", 2, "--stop-words", "english", "--max-words", 30, "--min-tag-count", 2]
    assert run("train", folder / "notes.jsonl", "-o", file, *FEW, *words).code == 0
    features = ldsm.load(file).vectorizer_.get_feature_names_out()
    assert len(features) == 30 and "the" not in features and any(" " in f for f in features)
    in_python = TextTagger(
        LdSMClassifier(3, random_state=0),
        min_tag_count=2,
        max_words=30,
        ngrams=2,
        stop_words="english",
    )
    data = datasets.load_jsonl(folder / "notes.jsonl")
    assert in_python.fit(data).fingerprint_ == ldsm.load(file).fingerprint_
    done = run("train", folder / "train.txt", "-o", file, *FEW, "--min-df", 2)
    assert done.code == 2 and "--min-df" in done.err and "holds features" in done.err
    for option, value, allowed in (
        ("--min-df", 0, "an int in [1, 1000000000], got '0'"),
        ("--ngrams", 21, "'auto' or an int in [1, 20], got '21'"),
        ("--stop-words", "german", "None or 'english', got 'german'"),
    ):
        done = run("train", folder / "notes.jsonl", "-o", file, option, value)
        assert done.code == 2 and f"{option}: must be {allowed}" in " ".join(done.err.split())


# -- predict --------------------------------------------------------------------------------------


def test_predictions_of_rows(run, folder, tmp_path):
    model, data = folder / "matrix.ldsm", datasets.load_xmlrepo(folder / "test.txt")
    done = run("predict", model, folder / "test.txt", "-k", 3, "--json")
    rows = [json.loads(line) for line in done.lines]
    labels, scores = ldsm.load(model).predict_topk(data.X, k=3)
    assert [row["labels"] for row in rows] == labels.tolist()
    np.testing.assert_allclose([row["scores"] for row in rows], scores, atol=1e-6)
    plain = run("predict", model, folder / "test.txt", "-k", 3)
    first = [pair.split(" ") for pair in plain.lines[0].split("\t")]
    assert [label for label, _ in first] == [str(label) for label in labels[0]]
    # An output file holds the same, and svmlight counts features from 1.
    file = tmp_path / "out.jsonl.gz"
    assert run("predict", model, folder / "test.svm", "-k", 3, "--json", "-o", file).out == ""
    assert gzip.decompress(file.read_bytes()).decode() == done.out
    assert not leftovers(tmp_path)


def test_prediction_batch_sizes(run, folder):
    model = folder / "matrix.ldsm"
    whole = run("predict", model, folder / "test.txt").out
    assert run("predict", model, folder / "test.txt", "--batch-size", 7).out == whole
    assert run("predict", model, folder / "test.txt", "--n-jobs", 2).out == whole


def test_chosen_labels_from_a_file(run, folder, tmp_path):
    model = folder / "matrix.ldsm"
    chosen = tmp_path / "labels"
    chosen.write_text("3\n5\n")
    only = run("predict", model, folder / "test.txt", "--only", f"@{chosen}", "--only", "7")
    assert only.code == 0
    labels = {int(pair.split()[0]) for line in only.lines for pair in line.split("\t") if pair}
    assert labels and labels <= {3, 5, 7}


def test_unlabelled_texts_are_tagged(run, folder, tmp_path):
    model = folder / "notes.ldsm"
    lines, records, table = (tmp_path / name for name in ("a.txt", "a.jsonl", "a.tsv"))
    lines.write_text("cod and herring\nbeef, pork\n")
    records.write_text('{"text": "cod and herring"}\n{"text": "beef, pork"}\n')
    table.write_text("id\ttext\n1\tcod and herring\n2\tbeef, pork\n")
    found = [run("predict", model, file, "-k", 1).out for file in (lines, records, table)]
    assert found[0] == found[1] == found[2]
    assert [line.split()[0] for line in found[0].splitlines()] == ["fish", "meat"]


# -- evaluate, inspect, explain -------------------------------------------------------------------


def test_evaluation_matches_library(run, folder):
    train, test = (datasets.load_xmlrepo(folder / f"{part}.txt") for part in ("train", "test"))
    top, _ = ldsm.load(folder / "matrix.ldsm").predict_topk(test.X, k=5)
    done = run("evaluate", folder / "matrix.ldsm", folder / "test.txt", "--json").json
    expected = metrics.ranking_report(test.Y, top, y_train=train.Y)
    assert {name: done[name] for name in expected} == pytest.approx(expected)
    assert done["f1_micro"] > 0 and done["rows"] == 100
    amazon = ["--propensity-dataset", "amazon-670k", "-k", 2, "--json"]
    done = run("evaluate", folder / "matrix.ldsm", folder / "test.txt", *amazon).json
    expected = metrics.ranking_report(test.Y, top, [2], y_train=train.Y, dataset="amazon-670k")
    assert done["psp@2"] == pytest.approx(expected["psp@2"]) and "psp@1" not in done
    table = run("evaluate", folder / "matrix.ldsm", folder / "test.txt", "-q")
    heads = [line.split("\t")[0] for line in table.lines]
    assert heads[:7] == ["%", "P", "best possible P", "nDCG", "PSP", "PSnDCG", "recall"]


@pytest.mark.parametrize("options", [["--a", 1], ["--propensity-dataset", "nowhere"]])
def test_invalid_propensities(run, folder, options):
    done = run("evaluate", folder / "matrix.ldsm", folder / "test.txt", *options)
    assert done.code == 2 and "--a" in done.err


def test_unseen_labels_are_reported(run, folder, tmp_path):
    file = tmp_path / "new.jsonl"
    file.write_text('{"text": "cod herring catch", "labels": ["fish", "sea"]}\n')
    done = run("evaluate", folder / "notes.ldsm", file, "-k", 4)
    assert "1 label without a training row (1 occurrence)" in done.err
    assert any(line.startswith("recall, all labels\t50.00") for line in done.lines)
    assert any(line.startswith("recall\t100.00") for line in done.lines)


def test_wrong_kind_of_rows_refused(run, folder, tmp_path):
    datasets.load_jsonl(folder / "notes.jsonl").save(tmp_path / "texts")
    for command in ("evaluate", "predict"):
        wrong = run(command, folder / "matrix.ldsm", tmp_path / "texts")
        assert wrong.code == 1 and "reads features, but the data holds texts" in wrong.err
    wrong = run("evaluate", folder / "notes.ldsm", folder / "test.txt")
    assert wrong.code == 1 and "reads texts, but the data holds features" in wrong.err


def test_integer_labels_that_are_no_columns(run, folder, tmp_path):
    train, test = (datasets.load_xmlrepo(folder / f"{part}.txt") for part in ("train", "test"))
    numbers = [[2 * label for label in row] for row in train.labels]
    clf = LdSMClassifier(3, random_state=0).fit(train.X, numbers)
    clf.save(tmp_path / "m.ldsm")
    wide = datasets.Dataset(test.X, np.kron(test.Y.toarray(), [1, 0]))
    datasets.save_xmlrepo(wide, tmp_path / "wide.txt")
    done = run("evaluate", tmp_path / "m.ldsm", tmp_path / "wide.txt", "--json").json
    expected = run("evaluate", folder / "matrix.ldsm", folder / "test.txt", "--json").json
    assert done["precision@1"] == expected["precision@1"]


def test_inspection(run, folder):
    done = run("inspect", folder / "matrix.ldsm", "--json").json
    forest = ldsm.load(folder / "matrix.ldsm").forest_
    assert done["nodes"] == forest.n_nodes and done["trees"] == 3
    assert done["log_M_K"] == pytest.approx(np.log2(25))
    assert done["depth"] == forest.node_depth().max()
    assert done["tree_statistics"]["leaves"] == forest.tree_statistics()["leaves"].tolist()
    assert done["params"]["random_state"] == 0 and done["tree_params"]["optimizer"] == "asgd"
    plain = dict(line.split("\t", 1) for line in run("inspect", folder / "notes.ldsm").lines)
    assert plain["kind"] == "texts to tags" and plain["training rows"] == "150"


def test_explanation_of_a_text(run, folder, monkeypatch):
    done = run("explain", folder / "notes.ldsm", "cod and herring", "--json").json
    expected = ldsm.load(folder / "notes.ldsm").explain("cod and herring")
    assert done["tags"][0][0] == "fish" == expected.tags[0][0]
    assert {word for word, _ in done["words"]} <= {"cod", "herring"}
    assert len(done["paths"]) == 3 and done["paths"][0]["leaves"]
    plain = run("explain", folder / "notes.ldsm", "cod and herring", "--tree", 1)
    assert plain.lines[0] == "label\tscore\ttrees" and "\tleaf\t" in plain.out
    monkeypatch.setattr(sys, "stdin", io.StringIO("cod and herring"))
    assert run("explain", folder / "notes.ldsm", "-", "--json").json == done
    wrong = run("explain", folder / "notes.ldsm", "cod", "--tree", 3)
    assert wrong.code == 2 and "a tree from 0 to 2" in wrong.err


def test_explanation_of_a_row(run, folder):
    done = run("explain", folder / "matrix.ldsm", folder / "test.txt", "--row", 4, "--json")
    data = datasets.load_xmlrepo(folder / "test.txt")
    best, _ = ldsm.load(folder / "matrix.ldsm").predict_topk(data.X[[4]], k=5)
    assert [label for label, _ in done.json["tags"]] == best[0].tolist()
    features = {int(word) for word, _ in done.json["words"]}
    assert features <= set(data.X[[4]].indices.tolist())
    wrong = run("explain", folder / "matrix.ldsm", folder / "test.txt", "--row", 100)
    assert wrong.code == 2 and "rows 0 to 99" in wrong.err


# -- convert --------------------------------------------------------------------------------------


def test_matrices_through_every_format(run, folder, tmp_path):
    store, svm, text = tmp_path / "store", tmp_path / "a.svm.gz", tmp_path / "b.txt"
    assert run("convert", folder / "train.txt", store).code == 0
    assert run("convert", store, svm).code == 0
    done = run("convert", svm, text, "--json").json
    assert done == {"path": str(text), "format": "xmlrepo", "rows": 300, "labels": 25}
    assert text.read_bytes() == (folder / "train.txt").read_bytes()


def test_texts_through_every_format(run, folder, tmp_path):
    store, table, back = tmp_path / "store", tmp_path / "a.tsv", tmp_path / "b.jsonl"
    assert run("convert", folder / "notes.jsonl", store).code == 0
    assert run("convert", store, table, "--to-separator", "|").code == 0
    assert run("convert", table, back, "--separator", "|").code == 0
    assert back.read_bytes() == (folder / "notes.jsonl").read_bytes()


def test_conversion_overwrites_on_request(run, folder, tmp_path):
    file = tmp_path / "a.svm"
    file.write_text("mine")
    refused = run("convert", folder / "train.txt", file)
    assert refused.code == 2 and file.read_text() == "mine"
    assert run("convert", folder / "train.txt", file, "--overwrite").code == 0
    assert datasets.load_svmlight(file).n_labels == 25
    unknown = run("convert", folder / "train.txt", tmp_path / "a.xyz")
    assert unknown.code == 2 and "--to" in unknown.err
    texts = run("convert", folder / "notes.jsonl", tmp_path / "b.svm")
    assert texts.code == 1 and "vectorize" in texts.err and not (tmp_path / "b.svm").exists()


# -- tune -----------------------------------------------------------------------------------------


def test_search_resumes(run, folder, tmp_path):
    pytest.importorskip("optuna")
    data = [folder / "train.txt", "--n-estimators", 1, "--json"]
    storage, best = tmp_path / "tune.db", tmp_path / "best.json"
    first = run("tune", *data, "--trials", 3, "--storage", storage).json
    second = run("tune", *data, "--trials", 6, "--storage", storage, "-o", best)
    assert "3 trials from earlier runs" in second.err
    second = second.json
    whole = run("tune", *data, "--trials", 6).json
    for trial in (*second["trials"], *whole["trials"]):
        del trial["seconds"]
    assert second == whole and len(whole["trials"]) == 6
    assert {t["trial"] for t in first["trials"]} < {t["trial"] for t in whole["trials"]}
    assert whole["best"] == json.loads(best.read_text())
    assert all(whole["best"][name] in values for name, values in GRID.items())
    other = run("tune", *data, "--seed", 1, "--storage", storage)
    assert other.code == 1 and "other data, parameters, metric or seed" in other.err
    # The file is what `train` takes; options go before it.
    done = run("train", folder / "train.txt", "-o", tmp_path / "m", "--params", best, "--arity", 3)
    assert done.code == 0
    params = ldsm.load(tmp_path / "m").get_params()
    assert {**whole["best"], "arity": 3}.items() <= params.items()


def test_search_keeps_given_options(run, folder):
    pytest.importorskip("optuna")
    options = ["--trials", 2, "--n-estimators", 1, "--arity", 4, "--metric", "ndcg", "-k", 3]
    done = run("tune", folder / "notes.jsonl", *options, "-q")
    assert done.code == 0 and done.lines[0].startswith("trial\tnDCG@3") and len(done.lines) == 3
    assert "arity" not in done.lines[0]


def test_next_command_can_be_pasted(run, folder, tmp_path, monkeypatch):
    """With the options that were given, and names quoted."""
    pytest.importorskip("optuna")
    monkeypatch.chdir(tmp_path)
    data = shutil.copy(folder / "notes.csv", tmp_path / "my notes.csv")
    read = ["--text-field", "body", "--label-field", "tags", "--separator", ";"]
    words = ["--min-df", 3, "--min-tag-count", 2]
    few = ["--n-estimators", 1, "--trials", 1, "-o", "best one.json"]
    done = run("tune", data, *read, *words, *few)
    hint = done.err.splitlines()[-1].removeprefix("next: ")
    command, *arguments = shlex.split(hint)
    assert command == "ldsm" and run(*arguments).code == 0
    tagger = ldsm.load(tmp_path / "model.ldsm")
    assert (tagger.min_df, tagger.min_tag_count, tagger.classifier.n_estimators) == (3, 2, 1)


@pytest.mark.parametrize(("metric", "average"), [("f1", "samples"), ("f1_macro", "macro")])
def test_search_by_f1(run, folder, tmp_path, metric, average):
    pytest.importorskip("optuna")
    data = folder / "notes.jsonl"
    fixed = ["--n-estimators", 2, "--threshold", 0.4, "--seed", 3]
    found = run("tune", data, "--trials", 3, "--metric", metric, *fixed, "--json").json
    assert found["metric"] == metric and "precision@1" in found["trials"][0]
    params = tmp_path / "best.json"
    params.write_text(json.dumps(found["best"]))
    again = ["--params", params, "--validation", 0.2, "--seed", 3, "--json"]
    trained = run("train", data, "-o", tmp_path / "m.ldsm", *again).json
    assert trained["validation"][f"f1_{average}"] == found[metric]
    done = run("tune", data, "--metric", metric, "-k", 3)
    assert done.code == 2 and f"-k: is not used with --metric {metric}" in done.err


def test_missing_optuna(run, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    done = run("tune", folder / "train.txt")
    assert (done.code, done.out) == (1, "")
    sentence = "error: ldsm tune needs Optuna, which is not installed: pip install 'ldsm[tune]'."
    assert " ".join(done.err.split()) == sentence


# -- errors ---------------------------------------------------------------------------------------


def test_wrong_use(run, folder, tmp_path):
    cases = {
        ("bogus",): "No such command",
        ("train",): "Missing argument 'DATA'",
        ("train", folder / "train.txt"): "Missing option '--output'",
        ("train", tmp_path / "no.txt", "-o", "m"): "does not exist",
        ("predict", tmp_path / "no.ldsm", "-"): "does not exist",
        ("predict", folder / "matrix.ldsm", tmp_path / "no.txt"): "does not exist",
        ("inspect", folder / "matrix.ldsm", "--depht"): "No such option",
        ("train", folder / "train.txt", "-o", tmp_path / "no" / "m"): "cannot be written",
        ("train", folder / "train.txt", "-o", tmp_path / "m", "--zero-based"): "--zero-based",
        ("train", folder / "train.txt", "-o", tmp_path / "m", "--format", "xml"): "one of xmlrepo",
        ("predict", folder / "matrix.ldsm", folder / "test.txt", "-k", "2", "--sets"): "combined",
    }
    for arguments, message in cases.items():
        done = run(*arguments)
        assert (done.code, done.out) == (2, ""), arguments
        assert done.err.startswith("error: ") and message in done.err
        assert done.err.count("\n") == 1 and "--help'." in done.err
    assert not list(tmp_path.iterdir())


def test_failures_are_one_line(run, folder, tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_text("2 3 4\n0 1:1\n9 1:1\n")
    done = run("train", bad, "-o", tmp_path / "m", "-q")
    assert done.code == 1 and done.err.startswith(f"error: {bad}:3: ")
    assert done.err.count("\n") == 1 and "Traceback" not in done.err
    no_model = run("inspect", bad)
    assert no_model.code == 1 and "cannot be loaded" in no_model.err
    wrong_model = run("predict", folder / "notes.ldsm", folder / "train.svm")
    assert wrong_model.code == 1 and "reads texts" in wrong_model.err
    with pytest.raises(ValueError, match="bad.txt:3"):
        run("train", bad, "-o", tmp_path / "m", "--debug")
    assert {path.name for path in tmp_path.iterdir()} == {"bad.txt"}


# -- benchmark data, from files to metrics --------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("bibtex", 0.56),
        pytest.param("delicious", 0.60, marks=pytest.mark.long),
    ],
)
def test_matrices_from_files_to_metrics(run, benchmark_data, tmp_path, name, least):
    """The floors are loose: they catch a broken path from file to metric, not a lost point."""
    store, model = tmp_path / "store", tmp_path / "m.ldsm"
    assert run("convert", benchmark_data / f"{name}_train.txt", store).code == 0
    size = ["--n-estimators", 5, "--max-nodes", 1000, "--seed", 0, "--n-jobs", -1]
    assert run("train", store, "-o", model, *size).code == 0
    test = benchmark_data / f"{name}_test.txt"
    found = run("evaluate", model, test, "--propensity-dataset", name, "--json").json
    assert found["precision@1"] > least and found["psp@1"] > 0.2


@pytest.mark.long
def test_texts_from_files_to_metrics(run, benchmark_data, tmp_path):
    """EURLEX57K as it comes; the floor is loose here too."""
    model = tmp_path / "m.ldsm"
    options = ["--n-estimators", 10, "--seed", 0, "--n-jobs", -1, "--min-tag-count", 2]
    train = benchmark_data / "eurlex57k_train.jsonl.gz"
    assert run("train", train, "-o", model, *options).code == 0
    found = run("evaluate", model, benchmark_data / "eurlex57k_test.jsonl.gz", "--json").json
    assert found["precision@1"] > 0.8 and found["unseen_labels"] > 0
    assert found["recall_all@5"] < found["recall@5"]
