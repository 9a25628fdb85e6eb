"""`ldsm labels`: listing, renaming and dropping the labels of a model."""

import json
import shutil

import pytest

import ldsm
from cli_runs import make_documents
from ldsm import LdSMClassifier, TextTagger

TRADE = "http://example.org/trade"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    texts, tags = make_documents(600, seed=3)
    other = {"import": "a=b", "trade": TRADE}
    tags = [[other.get(tag, tag) for tag in row] for row in tags]
    path = tmp_path_factory.mktemp("labels") / "m.ldsm"
    names = {TRADE: "Trade in goods"}
    trees = LdSMClassifier(4, random_state=0)
    TextTagger(trees).fit(texts, tags, vocabulary=names).save(path)
    return path


@pytest.fixture
def copy(model, tmp_path):
    return shutil.copy(model, tmp_path / "copy.ldsm")


def test_rename_to_a_dropped_label(run, copy):
    done = run("labels", copy, "--in-place", "--drop", "meat", "--rename", "fish=meat")
    assert done.code == 0, done.err
    classes = list(ldsm.load(copy).classes_)
    assert "meat" in classes and "fish" not in classes and len(classes) == 4


def test_list_of_labels(run, model):
    lines = [line.split("\t") for line in run("labels", model).lines]
    assert lines[0] == ["label", "training rows", "found in the top 5", "name"]
    counts = [int(cells[1]) for cells in lines[1:]]
    assert counts == sorted(counts, reverse=True) and len(counts) == 5
    shown = {cells[0]: cells for cells in lines[1:]}
    assert shown[TRADE][3] == "Trade in goods" and shown["meat"][3] == ""
    records = [json.loads(line) for line in run("labels", model, "--json").lines]
    trade = next(record for record in records if record["label"] == TRADE)
    assert trade["name"] == "Trade in goods"
    assert trade["training_rows"] == int(shown[TRADE][1])
    assert 0 < trade["found"] <= trade["held_out_rows"] < trade["training_rows"]
    share = f"{100 * trade['found'] / trade['held_out_rows']:.0f} %"
    assert shown[TRADE][2] == f"{trade['found']} of {trade['held_out_rows']} ({share})"


def test_list_without_second_stage(run, tmp_path):
    LdSMClassifier(2, random_state=0).fit([[0, 1], [1, 0]] * 9, [0, 1] * 9).save(tmp_path / "m")
    assert run("labels", tmp_path / "m").lines == ["label\ttraining rows", "0\t9", "1\t9"]
    renamed = ("--rename", "1=7", "-o", tmp_path / "n")
    assert run("labels", tmp_path / "m", *renamed).code == 0
    assert ldsm.load(tmp_path / "n").classes_.tolist() == [0, 7]
    wrong = run("labels", tmp_path / "m", "--rename", "1=one", "-o", tmp_path / "n")
    assert wrong.code == 2 and "labels of this model are numbers, got 'one'" in wrong.err


def test_rename_and_drop(run, copy, tmp_path):
    changed = tmp_path / "new.ldsm"
    before = copy.read_bytes()
    options = ("--rename", "a=b=import", "--rename", "law=a=b", "--drop", "meat")
    done = run("labels", copy, *options, "-o", changed)
    assert done.code == 0 and "renamed 2 labels and dropped 1 label: 4 labels left" in done.err
    assert copy.read_bytes() == before
    expected = ldsm.load(copy).rename_labels({"a=b": "import", "law": "a=b"}).drop_labels(["meat"])
    assert ldsm.load(changed).fingerprint_ == expected.fingerprint_
    in_place = run("labels", copy, *options, "--in-place", "--json")
    assert in_place.json["fingerprint"] == expected.fingerprint_
    assert (in_place.json["renamed"], in_place.json["dropped"]) == (2, 1)
    assert ldsm.load(copy).fingerprint_ == expected.fingerprint_


WRONG = {
    ("--rename", "law=Law"): "use either --output or --in-place",
    ("--in-place",): "needs --rename or --drop",
    ("--rename", "law", "--in-place"): "must be OLD=NEW, got 'law'",
    ("--rename", "law=", "--in-place"): "must be OLD=NEW, got 'law='; --drop removes a label",
    ("--rename", "Lae=x", "--in-place"): "no label 'Lae'; did you mean 'law'?",
    ("--drop", "fsh", "--in-place"): "no label 'fsh'; did you mean 'fish'?",
    ("--rename", "law=x", "--rename", "law=y", "--in-place"): "'law' is renamed twice",
    ("--rename", "law=x", "--drop", "law", "--in-place"): "cannot be renamed and dropped",
    ("--rename", "law=fish", "--in-place"): "Labels must stay different. Got 'fish'",
    ("--drop", "law", "-o", "copy.ldsm"): "is the model itself; use --in-place",
    ("--drop", "law", "-o", "notes.txt"): "exists and does not hold a model",
}


@pytest.mark.parametrize("options", WRONG, ids=" ".join)
def test_wrong_changes_leave_the_model(run, copy, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    before = copy.read_bytes()
    done = run("labels", "copy.ldsm", *options)
    assert done.code in (1, 2) and WRONG[options] in " ".join(done.err.split())
    assert copy.read_bytes() == before and (tmp_path / "notes.txt").read_text() == "mine"
