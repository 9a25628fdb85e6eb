"""`ldsm learn`: new rows for an existing model."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest

import ldsm
from cli_runs import within
from ldsm import LdSMClassifier, TextTagger, datasets
from patience import started
from text_corpus import titles

TEXTS, TAGS = titles(1100)
# Rows with the most frequent of the tags get a new one instead.
[(COMMON, _)] = Counter(tag for tags in TAGS[900:] for tag in tags).most_common(1)
RENAMED = {COMMON: "a new one"}
MODEL, NEW, OUT = "m.ldsm", "new.jsonl", "out.ldsm"


def write_lines(path, texts, tags):
    lines = [json.dumps({"text": a, "labels": b}) for a, b in zip(texts, tags, strict=True)]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learn")
    TextTagger(LdSMClassifier(3)).fit(TEXTS[:900], TAGS[:900]).save(folder / MODEL)
    tags = [sorted({RENAMED.get(tag, tag) for tag in own}) for own in TAGS[900:]]
    write_lines(folder / NEW, TEXTS[900:], tags)
    return folder


@pytest.fixture
def here(files, tmp_path, monkeypatch):
    """A folder with the files, which may be changed."""
    for name in (MODEL, NEW):
        (tmp_path / name).write_bytes((files / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    return within(capsys)


def test_a_new_file_or_the_same(run, here):
    before = ldsm.load(MODEL)
    expected = ldsm.load(MODEL)
    expected.partial_fit(datasets.load_jsonl(NEW))
    done = run("learn", MODEL, NEW, "-o", OUT)
    assert done.code == 0
    assert "P\t" in done.out  # what the model knew of them
    assert "learned 200 rows and 1 new label " in done.err
    assert ldsm.load(MODEL).fingerprint_ == before.fingerprint_
    learned = ldsm.load(OUT)
    assert learned.fingerprint_ == expected.fingerprint_
    assert "a new one" in learned.classes_
    assert run("learn", MODEL, NEW, "--in-place", "--quiet").code == 0
    assert ldsm.load(MODEL).fingerprint_ == expected.fingerprint_
    shown = run("inspect", OUT)
    assert "200 rows learned with 1 new label" in shown.out
    assert run("inspect", OUT, "--json").json["history"][0]["learned"] == 200


def test_what_the_model_knew_is_measured_before(run, here):
    scores = run("evaluate", MODEL, NEW, "--json").json
    told = run("learn", MODEL, NEW, "-o", OUT, "--json").json
    assert told["before"] == scores
    assert told["learned"] == 200 and told["new_labels"] == 1 and told["rows"] == 1100
    assert told["training_due"] is None
    after = run("evaluate", OUT, NEW, "--json").json
    assert scores["unseen_labels"] == 1 and not after.get("unseen_labels")


def test_a_new_training_is_advised(run, here):
    write_lines(here / NEW, TEXTS[:900], TAGS[:900])
    done = run("learn", MODEL, NEW, "--in-place")
    assert "train anew: 900 rows were learned since the training on 900" in done.err


def test_the_report_tells_what_was_learned(run, here):
    assert run("learn", MODEL, NEW, "-o", OUT, "--quiet").code == 0
    assert run("report", OUT, "--data", NEW, "-o", "r.html").code == 0
    assert "200 rows learned with 1 new label" in (here / "r.html").read_text()


def test_rows_of_features(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = datasets.make_xmc(900, 80, 20, seed=1)
    datasets.save_xmlrepo(data.select(slice(0, 600)), "a.txt")
    late = data.select(slice(600, 900))
    datasets.save_xmlrepo(late, "b.txt")
    assert run("train", "a.txt", "--format", "xmlrepo", "-o", MODEL, "--quiet").code == 0
    done = run("learn", MODEL, "b.txt", "--format", "xmlrepo", "-o", OUT, "--json")
    assert done.code == 0 and done.json["rows"] == 900 and done.json["new_labels"] == 0
    wide = datasets.make_xmc(50, 90, 20, seed=2)
    datasets.save_xmlrepo(wide, "c.txt")
    done = run("learn", MODEL, "c.txt", "--format", "xmlrepo", "-o", OUT)
    assert done.code == 1 and "features of the model, 80. Got 90" in done.err


MISTAKES = {
    "neither": ([MODEL, NEW], 2, "give either a file to write or --in-place"),
    "both": ([MODEL, NEW, "-o", OUT, "--in-place"], 2, "give either a file to write or"),
    "itself": ([MODEL, NEW, "-o", MODEL], 2, "--in-place replaces it"),
    "the data": ([MODEL, NEW, "-o", NEW], 2, "is an input of this command"),
    "no folder": ([MODEL, NEW, "-o", "no/such.ldsm"], 2, "cannot be written"),
    "no data": ([MODEL, "none.jsonl", "-o", OUT], 2, "does not exist"),
    "no model": ([NEW, NEW, "-o", OUT], 1, "not a model file"),
    "no rows": ([MODEL, "empty.jsonl", "-o", OUT], 1, "no rows"),
    "no labels": ([MODEL, "bare.jsonl", "-o", OUT], 1, "at least one label"),
    "features": ([MODEL, "x.txt", "--format", "xmlrepo", "-o", OUT], 1, "reads texts"),
    "another kind of file": ([MODEL, NEW, "-o", "notes.txt"], 2, "does not hold a model"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_change_nothing(case, run, here):
    arguments, code, message = MISTAKES[case]
    (here / "empty.jsonl").write_text("")
    write_lines(here / "bare.jsonl", TEXTS[:5], [[]] * 5)
    (here / "notes.txt").write_text("dear diary")
    datasets.save_xmlrepo(datasets.make_xmc(20, 9, 5), here / "x.txt")
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    done = run("learn", *arguments)
    assert done.code == code and message in done.err, done.err
    assert done.err.count("\n") == done.err.rstrip("\n").count("\n") + 1
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


def killed_runs(folder, n_kills, seed):
    """Kill so many runs at random moments; the number of files of each kind that were found."""
    old = ldsm.load(folder / MODEL).fingerprint_
    command = [sys.executable, "-m", "ldsm", "learn", MODEL, NEW, "--in-place", "--quiet"]
    saved = (folder / MODEL).read_bytes()
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    whole = time.perf_counter() - began
    new = ldsm.load(folder / MODEL).fingerprint_
    draw, found = random.Random(seed), {old: 0, new: 0}
    for _ in range(n_kills):
        (folder / MODEL).write_bytes(saved)
        with started(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            time.sleep(draw.uniform(0.5, 1.02) * whole)  # where it writes, mostly
        found[ldsm.load(folder / MODEL).fingerprint_] += 1  # a KeyError for any other
    return list(found.values())


def test_a_killed_run_leaves_the_old_model_or_the_new(here):
    assert sum(killed_runs(here, 1, seed=0)) == 1


@pytest.mark.long
def test_thirty_killed_runs(here):
    assert sum(killed_runs(here, 30, seed=1)) == 30


def test_ctrl_c_leaves_the_model(run, here, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    before = (here / MODEL).read_bytes()
    monkeypatch.setattr(TextTagger, "partial_fit", interrupted)
    assert run("learn", MODEL, NEW, "--in-place").code == 130
    assert (here / MODEL).read_bytes() == before
    assert np.all([path.name in (MODEL, NEW) for path in here.iterdir()])
