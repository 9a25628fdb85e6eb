"""`ldsm learn`: new rows for an existing model."""

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack

import numpy as np
import pytest

import ldsm
from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm._storage.locks import FileLocked, locked
from ldsm.cli.screen import Screen
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


def test_new_file_or_in_place(run, here):
    before = ldsm.load(MODEL)
    expected = ldsm.load(MODEL)
    expected.partial_fit(datasets.load_jsonl(NEW))
    done = run("learn", MODEL, NEW, "-o", OUT)
    assert done.code == 0
    assert "P\t" in done.out  # before learning
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


def test_prior_accuracy_is_reported(run, here):
    scores = run("evaluate", MODEL, NEW, "--json").json
    report = run("learn", MODEL, NEW, "-o", OUT, "--json").json
    assert report["before"] == scores
    assert report["learned"] == 200 and report["new_labels"] == 1 and report["rows"] == 1100
    assert report["training_due"] is None
    after = run("evaluate", OUT, NEW, "--json").json
    assert scores["unseen_labels"] == 1 and not after.get("unseen_labels")


def test_retraining_is_advised(run, here):
    write_lines(here / NEW, TEXTS[:900], TAGS[:900])
    done = run("learn", MODEL, NEW, "--in-place")
    assert "retrain the model: 900 rows were learned since the training on 900" in done.err


def test_report_shows_updates(run, here):
    assert run("learn", MODEL, NEW, "-o", OUT, "--quiet").code == 0
    assert run("report", OUT, NEW, "-o", "r.html").code == 0
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
    "neither": ([MODEL, NEW], 2, "use either --output or --in-place"),
    "both": ([MODEL, NEW, "-o", OUT, "--in-place"], 2, "use either --output or"),
    "itself": ([MODEL, NEW, "-o", MODEL], 2, "use --in-place to replace it"),
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
def test_invalid_use_changes_nothing(case, run, here):
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


def test_concurrent_commands_both_count(here):
    """The second waits for the first."""
    write_lines(here / "more.jsonl", TEXTS[:50], TAGS[:50])
    command = [sys.executable, "-m", "ldsm", "learn", MODEL]
    with ExitStack() as stack:
        runs = []
        for data in (NEW, "more.jsonl"):
            run = subprocess.Popen(
                [*command, data, "--in-place"], cwd=here, stderr=subprocess.PIPE, text=True
            )
            stack.callback(run.wait)
            stack.callback(run.kill)
            runs.append(run)
        errors = [run.communicate()[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], errors
    assert ldsm.load(MODEL).classifier_.training_["rows"] == 900 + 200 + 50
    assert sorted(path.name for path in here.iterdir()) == [MODEL, "more.jsonl", NEW]


def test_command_waits_for_lock(run, here):
    released = threading.Event()

    def hold():
        with locked(MODEL):
            held.set()
            released.wait()

    held, holder = threading.Event(), threading.Thread(target=hold)
    holder.start()
    held.wait()
    note = Screen.note

    def noted(self, message, **style):
        note(self, message, **style)
        if "waiting" in message:
            released.set()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Screen, "note", noted)
        done = run("learn", MODEL, NEW, "--in-place")
    released.set()
    holder.join()
    assert done.code == 0
    assert f"waiting for another process that is changing {MODEL}" in done.err


def test_foreign_model_is_kept(run, here, monkeypatch):
    plain = TextTagger.partial_fit

    def interrupted(self, *arguments, **options):
        os.replace("moved.ldsm", MODEL)
        return plain(self, *arguments, **options)

    (here / "moved.ldsm").write_bytes(b"another program's")
    monkeypatch.setattr(TextTagger, "partial_fit", interrupted)
    done = run("learn", MODEL, NEW, "--in-place")
    assert done.code == 1 and "was replaced by another program" in done.err
    assert (here / MODEL).read_bytes() == b"another program's"


def test_warm_start_holds_lock(run, here, monkeypatch):
    """It reads the model first and replaces it last."""
    taken, plain = [], LdSMClassifier.fit

    def fit(self, *arguments, **options):
        thread = threading.Thread(target=lambda: taken.append(is_locked()))
        thread.start()
        thread.join()
        return plain(self, *arguments, **options)

    def is_locked():
        try:
            with locked(MODEL, timeout=0):
                return False
        except FileLocked:
            return True

    train = ("train", NEW, "-o", MODEL, "--quiet", "--n-estimators")
    assert run(*train, 1).code == 0
    monkeypatch.setattr(LdSMClassifier, "fit", fit)
    done = run(*train, 2, "--warm-start")
    assert done.code == 0, done.err
    assert taken == [True] and not is_locked()


def killed_runs(folder, n_kills, seed):
    """Kill this many runs at random moments; return the number of files of each kind found."""
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


def test_killed_run_leaves_whole_model(here):
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


def test_new_labels_and_misspellings(run, here):
    misspelt = TAGS[0][0][:-2] + TAGS[0][0][-1] + TAGS[0][0][-2]
    write_lines(here / NEW, TEXTS[900:910], [[misspelt]] * 5 + [["quite another"]] * 5)
    done = run("learn", MODEL, NEW, "-o", OUT)
    assert done.code == 0
    assert f"{misspelt!r} is a new label; did you mean {TAGS[0][0]!r}?" in done.err
    assert "'quite another' is a new label; did you mean" not in done.err
    [line] = [line for line in done.err.splitlines() if line.startswith("new labels: ")]
    assert misspelt in line and "quite another" in line
    facts = run("learn", MODEL, NEW, "-o", "again.ldsm", "--json").json
    assert facts["new_label_names"] == sorted([misspelt, "quite another"])


def test_skewed_batch_is_reported(run, here):
    rows = [i for i in range(900, 1100) if COMMON in TAGS[i]]
    write_lines(here / NEW, [TEXTS[i] for i in rows], [["a new one"]] * len(rows))
    done = run("learn", MODEL, NEW, "-o", OUT)
    assert "label distribution of these rows differs" in done.err
    assert "the best answer changed for" in done.err
    facts = run("learn", MODEL, NEW, "-o", "again.ldsm", "--json").json
    assert facts["skewed"] is True
    assert 0 <= facts["changed_answers"] <= facts["typical_rows"] <= 100


def test_absent_option(run, here):
    prints = set()
    for absent in ("negative", "unknown"):
        assert run("learn", MODEL, NEW, "-o", f"{absent}.ldsm", "--absent", absent).code == 0
        prints.add(ldsm.load(f"{absent}.ldsm").fingerprint_)
    assert len(prints) == 2
    assert run("learn", MODEL, NEW, "-o", OUT, "--absent", "maybe").code == 2
    assert not (here / OUT).exists()
