"""The first hour with the command: what was read is said, and mistakes are seen."""

from __future__ import annotations

import json
import random

import pytest

import ldsm
from cli_runs import within

WORDS = {
    "grain": ["wheat", "corn", "maize"],
    "oil": ["crude", "barrel", "opec"],
    "trade": ["export", "tariff", "import"],
    "money": ["bank", "rate", "dollar"],
}


pytestmark = pytest.mark.filterwarnings("default")  # warnings become notes of the command


@pytest.fixture
def run(capsys):
    return within(capsys)


def documents(n: int = 120) -> list[tuple[str, list[str]]]:
    draw = random.Random(0)
    out = []
    for _ in range(n):
        tags = draw.sample(list(WORDS), draw.choice([1, 2]))
        out.append((" ".join(draw.choice(WORDS[t]) for t in tags for _ in range(4)), tags))
    return out


def write_jsonl(path, pairs) -> None:
    path.write_text("".join(json.dumps({"text": t, "labels": n}) + "\n" for t, n in pairs))


def test_train_says_what_it_read(run, tmp_path):
    write_jsonl(tmp_path / "d.jsonl", documents())
    done = run("train", tmp_path / "d.jsonl", "-o", tmp_path / "m.ldsm", "--n-estimators", 2)
    assert done.code == 0
    line = next(line for line in done.err.splitlines() if line.startswith("read "))
    assert line.startswith("read 120 rows with 4 labels, 1.4")
    assert all(label in line for label in WORDS)
    assert "note:" not in done.err
    quiet = run("train", tmp_path / "d.jsonl", "-o", tmp_path / "m.ldsm", "-q")
    assert quiet.code == 0 and quiet.err == ""


ODD = {
    "there are only 3 rows": [("cod", ["x"]), ("cod", ["x"]), ("cod ham", ["y"])],
    "every row has the label 'x'": [
        (f"{t} {i}", ["x", n]) for i, (t, [n, *_]) in enumerate(documents(30))
    ],
    "all texts are alike": [("same", ["x"]), ("same", ["y"])] * 20,
    "texts occur more than once, with different labels": [
        ("a b", ["x"]),
        ("a b", ["y"]),
        *documents(30),
    ],
    "% of the rows have no label": [
        (t, n if i % 2 else []) for i, (t, n) in enumerate(documents(40))
    ],
    "labels occur on one row only": [
        (t, [*n, f"once{i}"]) for i, (t, n) in enumerate(documents(40))
    ],
}


@pytest.mark.parametrize("said", ODD)
@pytest.mark.parametrize("whole", [False, True])
def test_odd_data_gets_a_line(run, tmp_path, said, whole):
    write_jsonl(tmp_path / "d.jsonl", ODD[said])
    more = ["--validation", "0.4"] if whole and len(ODD[said]) > 30 else []
    done = run("train", tmp_path / "d.jsonl", "-o", tmp_path / "m.ldsm", "--n-estimators", 1, *more)
    if more and said.startswith("labels occur"):
        assert done.code == 2 and "no row can be held out" in done.err
        return
    assert done.code == 0, done
    assert said in done.err


def test_what_the_model_was_trained_with_is_remembered(run, tmp_path):
    path, model = tmp_path / "d.csv", tmp_path / "m.ldsm"
    rows = [f"{text};{'|'.join(tags)}" for text, tags in documents()]
    path.write_text("\n".join(["body;tags", *rows]) + "\n")
    fields = ["--text-field", "body", "--label-field", "tags", "--delimiter", ";"]
    done = run("train", path, "-o", model, "--n-estimators", 3, *fields)
    assert done.code == 0 and "are split at '|'" in done.err
    assert ldsm.load(model).classes_.tolist() == sorted(WORDS)
    few = tmp_path / "few.csv"
    few.write_text("\n".join(["body;tags", *rows[:4]]) + "\n")
    for command in (["evaluate", model, few], ["predict", model, few]):
        assert run(*command).code == 0, run(*command)
    explicit = run("predict", model, few, "--text-field", "tags")
    assert explicit.code == 0 and explicit.out != run("predict", model, few).out
    # A file of another format uses what it has of these.
    lines = tmp_path / "other.jsonl"
    lines.write_text("".join(json.dumps({"body": t, "tags": n}) + "\n" for t, n in documents(5)))
    assert run("evaluate", model, lines, "--json").json["rows"] == 5


def test_what_a_file_claims_to_remember_is_not_believed(run, tmp_path):
    write_jsonl(tmp_path / "d.jsonl", documents())
    model = tmp_path / "m.ldsm"
    assert run("train", tmp_path / "d.jsonl", "-o", model, "--n-estimators", 1).code == 0
    loaded = ldsm.load(model)
    for odd in (5, {"text_field": 3, "split_file": "/etc/passwd", "what": "ever"}, [], {"": {}}):
        loaded.classifier_.model_.training["reading"] = odd
        loaded.save(model)
        assert run("predict", model, tmp_path / "d.jsonl").code == 0


def test_two_runs_give_one_model(run, tmp_path):
    write_jsonl(tmp_path / "d.jsonl", documents())
    prints = []
    for number, more in enumerate([[], [], ["--seed", "0"], ["--seed", "1"]]):
        path = tmp_path / f"{number}.ldsm"
        assert run("train", tmp_path / "d.jsonl", "-o", path, "--n-estimators", 2, *more).code == 0
        prints.append(ldsm.load(path).fingerprint_)
    assert prints[0] == prints[1] == prints[2] != prints[3]
    texts, tags = zip(*documents(), strict=True)
    small = [
        ldsm.LdSMClassifier(n_estimators=2, **more) for more in ({}, {}, {"random_state": None})
    ]
    fits = [ldsm.TextTagger(clf).fit(texts, tags).fingerprint_ for clf in small]
    assert fits[0] == fits[1] != fits[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    from ldsm.cli.main import _run

    folder = tmp_path_factory.mktemp("asked")
    rows = [f"{text};{'|'.join(tags)}" for text, tags in documents(600)]
    (folder / "d.csv").write_text("\n".join(["body;tags", *rows]) + "\n")
    fields = ["--text-field", "body", "--label-field", "tags", "--delimiter", ";"]
    made = [str(folder / "d.csv"), "-o", str(folder / "m.ldsm"), *fields, "--separator", "|"]
    assert _run(["train", *made, "--n-estimators", "3", "-q"]) == 0
    return folder / "m.ldsm"


def test_a_row_of_a_text_file_is_explained(run, model, tmp_path):
    data = model.parent / "d.csv"
    text = documents(600)[3][0]
    of_file = run("explain", model, data, "--row", 3, "--json")
    assert of_file.code == 0, of_file
    assert of_file.json == run("explain", model, text, "--json").json
    assert "row 3 of" not in run("explain", model, text).out
    last = run("explain", model, data, "--row", 600)
    assert last.code == 2 and "has rows 0 to 599, got 600" in last.err


def test_why_and_why_not_a_label(run, model):
    answer = run("explain", model, "wheat corn bank", "--label", "oil", "--label", "grain")
    assert answer.code == 0, answer
    assert "grain" in answer.out
    shown = run("explain", model, "wheat corn bank", "--label", "oil", "--json")
    scores = {score["tag"]: score["score"] for score in shown.json["scores"]}
    assert set(scores) <= {"oil"} and all(score < 0.5 for score in scores.values())
    if not scores:
        assert "oil: no tree and no feature of this row suggests it" in shown.err
    wrong = run("explain", model, "wheat", "--label", "nonsense")
    assert wrong.code == 2 and "the model has no label 'nonsense'" in wrong.err


def test_a_text_is_predicted(run, model):
    done = run("predict", model, "wheat corn maize", "-k", 1)
    assert done.code == 0 and done.out.startswith("grain ")
    assert run("predict", model, "wheat " * 3000, "-k", 1).out.startswith("grain ")
    for missing in ("wheat", model.parent / "no.csv"):
        done = run("predict", model, missing)
        assert done.code == 2 and "does not exist (for a text of one word" in done.err


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_another_encoding_is_named_and_remembered(run, tmp_path, encoding, suffix):
    path, model = tmp_path / f"d.{suffix}", tmp_path / "m.ldsm"
    pairs = [(f"{text} pêche", [*tags, "été"]) for text, tags in documents(60)]
    if suffix == "csv":
        lines = ["text,labels", *(f'{text},"{",".join(tags)}"' for text, tags in pairs)]
    else:
        lines = [json.dumps({"text": t, "labels": n}, ensure_ascii=False) for t, n in pairs]
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode(encoding))
    wrong = run("train", path, "-o", model, "--n-estimators", 1)
    assert wrong.code == 1 and "is not UTF-8" in wrong.err and "--encoding" in wrong.err
    assert ("utf-16" if encoding == "utf-16" else "latin-1") in wrong.err
    done = run("train", path, "-o", model, "--n-estimators", 1, "--encoding", encoding)
    assert done.code == 0, done
    assert "été" in ldsm.load(model).classes_.tolist()
    assert run("evaluate", model, path).code == 0  # as it was trained
    nonsense = run("train", path, "-o", model, "--encoding", "klingon")
    assert nonsense.code == 1 and "encoding must be one that Python knows" in nonsense.err
