"""Labels that are forgotten or renamed: everything else stays as it was."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pytest

import ldsm
from ldsm import LdSMClassifier, TextTagger, datasets
from text_corpus import titles

TRAIN, TEST = (datasets.make_xmc(800, 150, 30, seed=0, part=part) for part in ("train", "test"))
LABELS = [[f"l{i:02}" for i in row] for row in (r.indices.tolist() for r in TRAIN.Y)]
TEXTS, TAGS = titles(1200)
NEW, _ = titles(100, seed=3)


@cache
def fitted(rerank):
    return LdSMClassifier(5, rerank=rerank).fit(TRAIN.X, LABELS)


@cache
def tagger():
    return TextTagger(LdSMClassifier(5)).fit(TEXTS, TAGS)


def dense(clf, X):
    return clf.predict_proba(X).toarray()


@pytest.mark.parametrize("rerank", ["auto", "linear", "tail", None])
def test_what_is_left_scores_as_before(rerank, tmp_path):
    before = fitted(rerank)
    gone = ["l03", "l17", "l29"]
    kept = [label for label in before.classes_.tolist() if label not in gone]
    expected = before.predict_proba(TEST.X, labels=kept).toarray()
    columns = [before.classes_.tolist().index(label) for label in kept]
    after = copy.deepcopy(before).drop_labels(gone)
    assert after.classes_.tolist() == kept
    assert np.array_equal(dense(after, TEST.X), expected[:, columns])
    assert after.label_counts_.tolist() == before.label_counts_[columns].tolist()
    for each in (before, after):
        each.save(tmp_path / f"{len(each.classes_)}.ldsm")
    sizes = [(tmp_path / f"{n}.ldsm").stat().st_size for n in (27, 30)]
    assert sizes[0] < sizes[1]
    again = ldsm.load(tmp_path / "27.ldsm")
    assert again.fingerprint_ == after.fingerprint_ != before.fingerprint_
    assert np.array_equal(dense(again, TEST.X), dense(after, TEST.X))
    assert after.training_["history"][-1]["dropped"] == 3
    assert "history" not in before.training_


@pytest.mark.parametrize("rerank", ["auto", "tail", None])
def test_renamed_labels_keep_their_scores(rerank, tmp_path):
    before = fitted(rerank)
    names = {"l00": "zebra", "l29": "aardvark", "l05": "l05a"}
    after = copy.deepcopy(before).rename_labels(names)
    classes = after.classes_.tolist()
    assert classes == sorted(classes) and classes[0] == "aardvark" and classes[-1] == "zebra"
    old = {new: name for name, new in names.items()}
    columns = [before.classes_.tolist().index(old.get(label, label)) for label in classes]
    assert np.array_equal(dense(after, TEST.X), dense(before, TEST.X)[:, columns])
    after.save(tmp_path / "m.ldsm")
    assert np.array_equal(dense(ldsm.load(tmp_path / "m.ldsm"), TEST.X), dense(after, TEST.X))
    back = after.rename_labels(old)
    assert back.fingerprint_ == before.fingerprint_
    assert [entry["renamed"] for entry in back.training_["history"]] == [3, 3]


def test_thresholds_of_labels_move_with_them():
    true = [[f"l{i:02}" for i in row.indices.tolist()] for row in TEST.Y]
    clf = copy.deepcopy(fitted("auto")).tune_threshold(TEST.X, true, per_label=True)
    limits = dict(zip(clf.classes_.tolist(), clf.threshold_.tolist(), strict=True))
    clf.drop_labels(["l01"]).rename_labels({"l02": "x"})
    now = dict(zip(clf.classes_.tolist(), clf.threshold_.tolist(), strict=True))
    assert "l01" not in now and now["x"] == limits["l02"] and now["l03"] == limits["l03"]


def test_tags_with_names_and_sub_words(tmp_path):
    before = tagger()
    assert before.classifier_.second_stage_.names is not None
    first, second = before.classes_[:2].tolist()
    renamed = copy.deepcopy(before).rename_labels({first: "zzz"})
    old = [[("zzz" if tag == first else tag, s) for tag, s in row] for row in before.predict(NEW)]
    assert renamed.predict(NEW) == old
    asked = next(t for t, tags in zip(TEXTS, TAGS, strict=True) if first in tags)
    told = {score.tag: score.name for score in renamed.explain(asked, max_tags=9).scores}
    assert told["zzz"][0] == first  # what it was called is what is compared
    gone = copy.deepcopy(renamed).drop_labels([second])
    assert all(tag != second for row in gone.predict(NEW, k=9) for tag, _ in row)
    gone.save(tmp_path / "m.ldsm")
    again = ldsm.load(tmp_path / "m.ldsm")
    assert again.fingerprint_ == gone.fingerprint_ and again.predict(NEW) == gone.predict(NEW)
    assert again.explain(asked, max_tags=9).scores == gone.explain(asked, max_tags=9).scores


def test_columns_of_matrices_can_go():
    clf = LdSMClassifier(3).fit(TRAIN.X, TRAIN.Y)
    expected = clf.predict_proba(TEST.X, labels=[i for i in range(30) if i != 4]).toarray()
    clf.drop_labels([4])
    assert clf.classes_.tolist() == [i for i in range(30) if i != 4]
    assert np.array_equal(dense(clf, TEST.X), np.delete(expected, 4, axis=1))
    assert clf.predict_topk(TEST.X, k=29)[0].max() == 29


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda clf: clf.drop_labels([]), "at least one label to change"),
        (lambda clf: clf.drop_labels("l01"), "put it into a list"),
        (lambda clf: clf.drop_labels(["no"]), "has no label 'no'"),
        (lambda clf: clf.drop_labels(clf.classes_.tolist()), "keep at least one label"),
        (lambda clf: clf.rename_labels({"no": "x"}), "has no label 'no'"),
        (lambda clf: clf.rename_labels({"l01": "l02"}), "Got 'l02' for two of them"),
        (lambda clf: clf.rename_labels({"l01": "x", "l02": "x"}), "Got 'x' for two of them"),
        (lambda clf: clf.rename_labels({"l01": 3}), "one of its kind, str. Got 3"),
        (lambda clf: clf.rename_labels({"l01": "a\ud800"}), r"lone surrogate. Got 'a\\ud800'"),
    ],
)
def test_what_cannot_be_changed(change, message):
    clf = copy.deepcopy(fitted(None))
    before = clf.fingerprint_
    with pytest.raises(ValueError, match=message):
        change(clf)
    assert clf.fingerprint_ == before


def test_a_long_history_is_summed_up(tmp_path):
    clf = copy.deepcopy(fitted(None))
    entry = {"when": "2026-01-02T03:04:05+00:00", "learned": 2, "times": 1, "new_labels": 1}
    odd = [None, {"when": 3, "learned": 10**19}, {"when": "x" * 99, "learned": -1, "dropped": "a"}]
    clf.training_["history"] = [entry] * 20_000 + odd + [entry | {"dropped": 7}] * 200
    clf.rename_labels({"l01": "x"}).drop_labels(["l02"])
    history = clf.training_["history"]
    assert len(history) == 100 and history[-1]["dropped"] == history[-2]["renamed"] == 1
    assert history[0]["when"] == entry["when"] and history[1] == entry | {"dropped": 7}
    for name, total in {"learned": 40_400, "times": 20_200, "dropped": 1401, "renamed": 1}.items():
        assert sum(each.get(name, 0) for each in history) == total
    path = tmp_path / "m.ldsm"
    clf.save(path)
    assert ldsm.load(path).training_["history"] == history
