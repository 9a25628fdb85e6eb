"""The first hour with the command: it reports what it has read, and likely mistakes."""

import json
import os
import random
import threading
from pathlib import Path

import pandas as pd
import pytest

import ldsm
from cli_runs import process
from ldsm.serve.corrections import CorrectionFile

WORDS = {
    "grain": ["wheat", "corn", "maize"],
    "oil": ["crude", "barrel", "opec"],
    "trade": ["export", "tariff", "import"],
    "money": ["bank", "rate", "dollar"],
}


pytestmark = pytest.mark.filterwarnings("default")  # warnings become notes of the command


def documents(n: int = 120) -> list[tuple[str, list[str]]]:
    draw = random.Random(0)
    out = []
    for _ in range(n):
        tags = draw.sample(list(WORDS), draw.choice([1, 2]))
        out.append((" ".join(draw.choice(WORDS[t]) for t in tags for _ in range(4)), tags))
    return out


def write_jsonl(path, pairs) -> None:
    path.write_text("".join(json.dumps({"text": t, "labels": n}) + "\n" for t, n in pairs))


def test_train_reports_input(run, tmp_path):
    write_jsonl(tmp_path / "d.jsonl", documents())
    done = run("train", tmp_path / "d.jsonl", "-o", tmp_path / "m.ldsm", "--n-estimators", 2)
    assert done.code == 0
    line = next(line for line in done.err.splitlines() if line.startswith("read "))
    assert line.startswith("read 120 rows of about 6 words with 4 labels, 1.4")
    assert all(label in line for label in WORDS)
    assert "note:" not in done.err
    quiet = run("train", tmp_path / "d.jsonl", "-o", tmp_path / "m.ldsm", "-q")
    assert quiet.code == 0 and quiet.err == ""


ODD = {
    "there are only 3 rows": [("cod", ["x"]), ("cod", ["x"]), ("cod ham", ["y"])],
    "every row has the label 'x'": [
        (f"{t} {i}", ["x", n]) for i, (t, [n, *_]) in enumerate(documents(30))
    ],
    "all texts are the same": [("same", ["x"]), ("same", ["y"])] * 20,
    "texts occur more than once, with differing labels": [
        ("a b", ["x"]),
        ("a b", ["y"]),
        *documents(30),
    ],
    "rows (50%) have no label": [(t, n if i % 2 else []) for i, (t, n) in enumerate(documents(40))],
    "labels occur in only one row": [
        (t, [*n, f"once{i}"]) for i, (t, n) in enumerate(documents(40))
    ],
}


@pytest.mark.parametrize("said", ODD)
@pytest.mark.parametrize("whole", [False, True])
def test_odd_data_is_reported(run, tmp_path, said, whole):
    write_jsonl(tmp_path / "d.jsonl", ODD[said])
    more = ["--validation", "0.4"] if whole and len(ODD[said]) > 30 else []
    done = run("train", tmp_path / "d.jsonl", "-o", tmp_path / "m.ldsm", "--n-estimators", 1, *more)
    if more and said.startswith("labels occur"):
        assert done.code == 2 and "no row can be held out" in done.err
        return
    assert done.code == 0, done
    assert said in done.err


def test_reading_options_are_remembered(run, tmp_path):
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


def test_crafted_reading_options_are_ignored(run, tmp_path):
    write_jsonl(tmp_path / "d.jsonl", documents())
    model = tmp_path / "m.ldsm"
    assert run("train", tmp_path / "d.jsonl", "-o", model, "--n-estimators", 1).code == 0
    loaded = ldsm.load(model)
    for odd in (5, {"text_field": 3, "split_file": "/etc/passwd", "what": "ever"}, [], {"": {}}):
        loaded.classifier_.training_ = {**loaded.classifier_.training_, "reading": odd}
        loaded.save(model)
        assert run("predict", model, tmp_path / "d.jsonl").code == 0


def test_training_is_deterministic(run, tmp_path):
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


def test_explain_row_of_text_file(run, model, tmp_path):
    data = model.parent / "d.csv"
    text = documents(600)[3][0]
    of_file = run("explain", model, data, "--row", 3, "--json")
    assert of_file.code == 0, of_file
    assert of_file.json == run("explain", model, text, "--json").json
    assert "row 3 of" not in run("explain", model, text).out
    last = run("explain", model, data, "--row", 600)
    assert last.code == 2 and "has rows 0 to 599, got 600" in last.err


def test_explain_given_labels(run, model):
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


def test_predict_quoted_text(run, model):
    done = run("predict", model, "wheat corn maize", "-k", 1)
    assert done.code == 0 and done.out.startswith("grain ")
    assert run("predict", model, "wheat " * 3000, "-k", 1).out.startswith("grain ")
    for missing in ("wheat", model.parent / "no.csv"):
        done = run("predict", model, missing)
        assert done.code == 2 and "does not exist (to tag a single word" in done.err


@pytest.mark.parametrize("text", ["", "  "])
def test_empty_text_is_named(run, model, text):
    for command in ("predict", "explain"):
        done = run(command, model, text)
        assert done.code == 2 and "the text is empty" in done.err, done


def test_corrections_file_of_the_service(run, tmp_path, monkeypatch):
    """Its fields are its own, whatever the training data had."""
    monkeypatch.chdir(tmp_path)
    rows = [{"comment": text, "emotions": tags} for text, tags in documents()]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "d.jsonl").write_text(lines, encoding="utf-16")
    read = ("--text-field", "comment", "--label-field", "emotions", "--encoding", "utf-16")
    assert run("train", "d.jsonl", "-o", "m.ldsm", "--n-estimators", 2, *read).code == 0
    corrected = [(f"été {text}", tags) for text, tags in documents(20)]
    file = CorrectionFile.of(tmp_path / "m.ldsm", None)
    file.append(corrected)
    done = run("learn", "m.ldsm", file.path.name, "-o", "new.ldsm")
    assert done.code == 0 and "learned 20 rows" in done.err
    expected = ldsm.load("m.ldsm").partial_fit(corrected)
    assert ldsm.load("new.ldsm").fingerprint_ == expected.fingerprint_
    assert run("evaluate", "m.ldsm", file.path.name).code == 0
    # A pipe is read once: its first rows are there.
    os.mkfifo("pipe")
    rows = Path("d.jsonl").read_bytes()
    writer = threading.Thread(target=Path("pipe").write_bytes, args=[rows], daemon=True)
    writer.start()
    piped = run("evaluate", "m.ldsm", "pipe", "--format", "jsonl", "--json")
    writer.join()
    assert piped.out == run("evaluate", "m.ldsm", "d.jsonl", "--json").out, piped.err
    # Files with other fields are read like the training data.
    other = run("learn", "m.ldsm", "d.jsonl", "-o", "other.ldsm")
    assert other.code == 0 and "learned 120 rows" in other.err
    file.path.write_text('{"text": "cod", "labels": []}\n', encoding="utf-16")
    done = run("learn", "m.ldsm", file.path.name, "-o", "new.ldsm")
    assert done.code == 1 and "has no field 'comment'" in done.err


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_encoding_is_remembered(run, tmp_path, encoding, suffix):
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


# -- what a newcomer stumbled over ----------------------------------------------------------------


def test_early_stop_is_silent(tmp_path):
    """A reader of another encoding used to complain when it was thrown away."""
    path = tmp_path / "d.csv"
    rows = [f"{text} pêche,{';'.join(tags)}" for text, tags in documents()]
    path.write_text("\n".join(["text,labels", *rows]), encoding="latin-1")
    latin = ["--encoding", "latin-1", "--n-estimators", 1]
    done = process("train", path, "-o", tmp_path / "m.ldsm", *latin)
    assert done.code == 0 and "are split at ';'" in done.err and "Traceback" not in done.err


def test_held_out_file(run, tmp_path):
    data, kept, model = (tmp_path / name for name in ("d.jsonl", "held.jsonl", "m.ldsm"))
    write_jsonl(data, documents(200))
    few = ["--n-estimators", 2]
    done = run("train", data, "-o", model, "--validation", 0.2, "--held-out", kept, *few)
    assert done.code == 0, done
    assert "read 200 rows" in done.err and "40 of the rows are held out" in done.err
    assert "has not seen the held-out rows" in done.err
    assert len(ldsm.datasets.load_jsonl(kept)) == 40
    assert run("evaluate", model, kept, "--json").json["rows"] == 40
    for arguments, problem in (
        (["--held-out", tmp_path / "x.jsonl"], "needs --validation"),
        (["--validation", 0.2, "--held-out", data], "is an input"),
        (["--validation", 0.2, "--held-out", model], "is the file of --output"),
        (["--validation", 0.2, "--held-out", kept], "exists; use --overwrite to replace it"),
    ):
        done = run("train", data, "-o", model, *few, *arguments)
        assert done.code == 2 and problem in done.err, done


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_held_out_file_keeps_format(run, tmp_path, suffix):
    path, model, kept = tmp_path / "d.csv", tmp_path / "m.ldsm", tmp_path / f"kept.{suffix}"
    rows = [f"{text};{i} more;{'|'.join(tags)}" for i, (text, tags) in enumerate(documents(100))]
    path.write_text("\n".join(["title;body;tags", *rows]) + "\n")
    fields = ["--text-field", "title", "--text-field", "body", "--label-field", "tags"]
    held = ["--delimiter", ";", "--separator", "|", "--validation", 0.2, "--held-out", kept]
    assert run("train", path, "-o", model, "--n-estimators", 2, *fields, *held).code == 0
    assert run("evaluate", model, kept, "--json").json["rows"] == 20


def test_evaluate_at_threshold(run, model, tmp_path):
    data = tmp_path / "d.jsonl"
    lines = ({"body": text, "tags": tags} for text, tags in [*documents(80), ("nothing", [])])
    data.write_text("\n".join(map(json.dumps, lines)))
    loose, strict = (
        run("evaluate", model, data, "--threshold", value, "--json").json for value in (0.1, 0.9999)
    )
    assert 0.5 < loose["set_precision"] <= 1
    assert strict["set_recall"] < loose["set_recall"]
    assert strict["rows_without_labels"] == 1
    evaluated = run("evaluate", model, data)
    for name in ("model's threshold", "0.5", "best samples F1"):
        assert f"\n{name}\t0." in evaluated.out
    assert loose["threshold"] == pytest.approx(0.1)
    assert "1 of 81 rows have no label and count as misses in P" in evaluated.err
    for command in ("predict", "evaluate"):
        assert run(command, model, data, "--threshold", 90).code == 2
    fields = ["--text-field", "body", "--label-field", "tags", "--n-estimators", 2]
    tuned = run("train", data, "-o", tmp_path / "t.ldsm", "--tune-threshold", *fields)
    assert tuned.code == 0 and "The threshold was tuned on these rows" in tuned.err
    given = run("train", data, "-o", tmp_path / "t.ldsm", "--threshold", 0.25, *fields)
    assert given.code == 0 and "threshold of predicted sets: 0.250" in given.err
    both = run(
        "train", data, "-o", tmp_path / "t.ldsm", "--threshold", 1, "--tune-threshold", *fields
    )
    assert both.code == 2 and "--tune-threshold" in both.err


def test_missing_words_are_named(run, model):
    explained = run("explain", model, "wheat corn bank", "--label", "oil").out
    line = next(
        line for line in explained.splitlines() if line.startswith("oil\t") and "barrel" in line
    )
    assert line.split("\t")[1] == "" and "crude" in line
    close = run("explain", model, "wheat", "--label", "Grain")
    assert close.code == 2 and "did you mean 'grain'?" in close.err
    close = run("predict", model, "some wheat", "--only", "monney")
    assert close.code == 2 and "did you mean 'money'?" in close.err


def test_inspect_labels_and_reading(run, model):
    done = run("inspect", model, "--labels")
    assert {line.split("\t")[0] for line in done.lines[1:]} == set(WORDS)
    assert "--labels is deprecated" in done.err and "use `ldsm labels MODEL`" in done.err
    facts = run("inspect", model, "--json").json
    assert 0 < facts["threshold"] < 1 and facts["reading"]["text_field"] == ["body"]
    assert "label field" in run("inspect", model).out


def test_predictions_keep_delimiter(run, tmp_path):
    path, model, output = tmp_path / "d.csv", tmp_path / "m.ldsm", tmp_path / "out.csv"
    rows = [f"N{i};{text};{'|'.join(tags)}" for i, (text, tags) in enumerate(documents())]
    path.write_text("\n".join(["nr;text;labels", *rows]) + "\n")
    assert run("train", path, "-o", model, "--delimiter", ";", "--n-estimators", 1).code == 0
    done = run("predict", model, path, "--id-field", "nr", "-o", output)
    assert done.code == 0 and "out.csv: 120 rows" in done.err
    lines = output.read_text().splitlines()
    assert lines[0] == "row;nr;labels;scores" and lines[1].startswith("0;N0;")
    assert run("predict", model, path, "-o", output).code == 0  # predictions may be replaced
    refused = run("predict", model, path, "-o", tmp_path / "out.xlsx")
    assert refused.code == 2 and "a spreadsheet; write a .csv" in refused.err
    several = run("train", path, "-o", model, "--delimiter", ";", "--text-field", "nr,text")
    assert several.code == 1 and "use --text-field once per column" in several.err


def test_store_name_like_file(tmp_path):
    data = ldsm.datasets.Dataset.from_texts(["a"], [["b"]])
    with pytest.raises(ValueError, match="looks like a file; use save_table"):
        data.save(tmp_path / "held.csv")


def test_dataframe_of_tags():
    texts, tags = zip(*documents(60), strict=True)
    frame = pd.DataFrame([[name in row for name in WORDS] for row in tags], columns=list(WORDS))
    small = ldsm.LdSMClassifier(1)
    expected = ldsm.TextTagger(small).fit(texts, tags).fingerprint_
    assert ldsm.TextTagger(small).fit(texts, frame.astype(int)).fingerprint_ == expected
    with pytest.raises(ValueError, match=r"Got 'grain;oil': split it first"):
        ldsm.TextTagger(small).fit(["a"], pd.Series(["grain;oil"]))
