"""`--encoder`: models that read texts with an encoder from a file."""

import json
import re

import pytest

from cli_runs import within
from tiny_encoders import texts_and_tags, write_meanings, write_onnx


def write_texts(path, n, seed):
    with path.open("w") as file:
        for text, tags in zip(*texts_and_tags(n, seed), strict=True):
            file.write(json.dumps({"text": text, "labels": tags}) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    write_texts(folder / "train.jsonl", 900, 0)
    write_texts(folder / "test.jsonl", 100, 1)
    write_meanings(folder / "tiny")
    write_onnx(folder / "other")
    (folder / "features.txt").write_text("1 1 1\n0 0:1\n")
    return folder


@pytest.fixture
def ldsm(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    run = within(capsys)
    if not (folder / "m.ldsm").exists():
        options = ("--encoder", "tiny", "--validation", 0.1, "--n-estimators", 4)
        trained = run("train", "train.jsonl", "-o", "m.ldsm", *options)
        assert trained.code == 0, trained.err
        assert "meaning" in trained.err
    return run


def test_commands_with_an_encoder(ldsm):
    evaluated = ldsm("evaluate", "m.ldsm", "test.jsonl", "--encoder", "tiny", "--json")
    assert evaluated.json["precision@1"] > 0.6, evaluated.err
    predicted = ldsm("predict", "m.ldsm", "test.jsonl", "--encoder", "tiny/model.onnx")
    assert predicted.code == 0 and len(predicted.lines) == 100
    explained = ldsm("explain", "m.ldsm", "w1 w32", "--encoder", "tiny")
    assert explained.code == 0 and "meaning" in explained.out
    learned = ldsm("learn", "m.ldsm", "test.jsonl", "-o", "more.ldsm", "--encoder", "tiny")
    assert learned.code == 0, learned.err
    reported = ldsm("report", "m.ldsm", "test.jsonl", "--encoder", "tiny")
    assert reported.code == 0, reported.err


def test_texts_encoded_once(ldsm):
    """Stores with embeddings take the place of texts, and commands on them need no encoder."""
    made = ldsm("convert", "train.jsonl", "train", "--vectorize", "--encoder", "tiny")
    assert made.code == 0, made.err
    train = ("--validation", 0.1, "--n-estimators", 4, "--json")
    stored = ldsm("train", "train", "-o", "s.ldsm", *train)
    assert stored.code == 0, stored.err
    assert stored.json["validation"]["precision@1"] > 0.6
    whole = ldsm("train", "train", "-o", "w.ldsm", "--n-estimators", 4, "--json").json
    direct = ("train", "train.jsonl", "-o", "d.ldsm", "--encoder", "tiny", "--n-estimators", 4)
    assert ldsm(*direct, "--json").json["fingerprint"] == whole["fingerprint"]
    like = ("--vectorize", "--like", "w.ldsm")
    assert "with --encoder" in ldsm("convert", "test.jsonl", "test", *like).err
    assert ldsm("convert", "test.jsonl", "test", *like, "--encoder", "tiny").code == 0
    asked = ldsm("evaluate", "w.ldsm", "test.jsonl", "--encoder", "tiny", "--json")
    assert ldsm("evaluate", "w.ldsm", "test", "--json").out == asked.out
    assert ldsm("learn", "w.ldsm", "test", "-o", "l.ldsm").code == 0
    refused = ldsm("convert", "test", "test.svm")
    assert refused.code != 0 and "cannot hold the embeddings of test" in refused.err


@pytest.mark.long
def test_same_on_a_cluster(ldsm):
    asked = ("predict", "m.ldsm", "test.jsonl", "--encoder", "tiny")
    assert ldsm(*asked, "--dask", "local:2").out == ldsm(*asked).out
    options = ("--encoder", "tiny", "--n-estimators", 4, "--validation", 0.1, "--dask", "local:2")
    trained = ldsm("train", "train.jsonl", "-o", "again.ldsm", *options)
    assert trained.code == 0, trained.err
    same = [
        ldsm("inspect", model, "--json").json["fingerprint"] for model in ("m.ldsm", "again.ldsm")
    ]
    assert same[0] == same[1]


def test_inspect_needs_no_encoder(ldsm):
    facts = ldsm("inspect", "m.ldsm", "--json").json
    assert facts["encoder"] == {"name": "tiny", "dimensions": 16, "used": True}
    assert "encoder\ttiny, 16 dimensions" in ldsm("inspect", "m.ldsm").lines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "m.ldsm", "w1 w2"), "'tiny' with 16 dimensions, .* Load it with --encoder"),
        (("evaluate", "m.ldsm", "test.jsonl"), "needs its encoder, 'tiny'"),
        (("predict", "m.ldsm", "w1 w2", "--encoder", "other"), "Those of 'other' have 4"),
        (("predict", "m.ldsm", "w1 w2", "--encoder", "nowhere"), "nowhere.* does not exist"),
        (("predict", "m.ldsm", "w1 w2", "--encoder", "test.jsonl"), "folder or an .onnx file"),
        (("convert", "train.jsonl", "t", "--encoder", "tiny"), "without --vectorize, texts are"),
        (
            ("train", "features.txt", "-o", "n.ldsm", "--encoder", "tiny"),
            "features.txt holds features, not texts",
        ),
        (
            ("train", "train.jsonl", "-o", "m.ldsm", "--overwrite", "--warm-start"),
            "m.ldsm was trained with an encoder: train it again",
        ),
        (
            ("train", "train.jsonl", "-o", "m.ldsm", "--warm-start", "--encoder", "tiny"),
            "cannot be combined with --warm-start",
        ),
    ],
)
def test_mistakes_with_encoders(ldsm, arguments, message):
    run = ldsm(*arguments)
    assert run.code != 0
    assert re.search(message, " ".join(run.err.split())), run.err
