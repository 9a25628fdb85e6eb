"""Dropped and renamed labels: everything else stays the same."""

import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.metrics import log_loss

import ldsm
from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm._storage.container import write
from ldsm.classifier import hold_model
from saved_states import tagger_state
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
def test_remaining_scores_unchanged(rerank, tmp_path):
    before = fitted(rerank)
    gone = ["l03", "l17", "l29"]
    kept = [label for label in before.classes_.tolist() if label not in gone]
    expected = before.predict_proba(TEST.X, only=kept).toarray()
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
    old = {new: name for name, new in names.items()}
    classes = [names.get(label, label) for label in before.classes_.tolist()]
    assert after.classes_.tolist() == classes  # columns stay where they are
    assert np.array_equal(dense(after, TEST.X), dense(before, TEST.X))
    assert after.forest_.places.size == 0
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
    clf.partial_fit(TRAIN.X[:9], [["new"]] * 9)
    new = dict(zip(clf.classes_.tolist(), clf.threshold_.tolist(), strict=True))
    assert new.pop("new") == pytest.approx(np.median(list(now.values())))
    assert new == now


@pytest.mark.parametrize("sign", [1, -1])
def test_huge_thresholds_survive_changes(tmp_path, sign):
    clf = copy.deepcopy(fitted("auto"))
    clf.threshold_ = np.full(len(clf.classes_), sign * np.finfo(np.float32).max)
    clf.drop_labels(["l01"] if len(clf.classes_) % 2 else ["l01", "l02"])
    clf.partial_fit(TRAIN.X[:9], [["new"]] * 9)
    clf.save(tmp_path / "m.ldsm")
    found = ldsm.load(tmp_path / "m.ldsm").threshold_
    assert np.isfinite(found).all() and (found == clf.threshold_).all()


def test_single_labels_stay_sorted(tmp_path):
    y = np.array([f"c{row.indices[0] if row.nnz else 0:02}" for row in TRAIN.Y])
    before = LdSMClassifier(3).fit(TRAIN.X, y)
    names = {"c00": "zebra", "c07": "aardvark"}
    after = copy.deepcopy(before).rename_labels(names)
    classes = after.classes_.tolist()
    assert classes == sorted(classes)
    renamed = np.array([names.get(label, label) for label in y.tolist()])
    losses = [
        log_loss(own, clf.predict_proba(TRAIN.X), labels=clf.classes_)
        for own, clf in ((y, before), (renamed, after))
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-12)
    old = {new: name for name, new in names.items()}
    columns = [before.classes_.tolist().index(old.get(label, label)) for label in classes]
    # Among given labels, scores are not scaled to a sum of 1.
    scores = [clf.predict_proba(TEST.X, only=clf.classes_) for clf in (before, after)]
    assert np.array_equal(scores[1], scores[0][:, columns])
    left = copy.deepcopy(after).drop_labels(["zebra"])
    kept = [i for i, label in enumerate(classes) if label != "zebra"]
    given = left.predict_proba(TEST.X, only=left.classes_)
    assert np.array_equal(given, scores[1][:, kept])
    assert np.allclose(left.predict_proba(TEST.X).sum(axis=1), 1)
    left.save(tmp_path / "m.ldsm")
    assert ldsm.load(tmp_path / "m.ldsm").fingerprint_ == left.fingerprint_
    assert left.forest_.places.size == len(classes) - 1  # sorted again
    back = after.rename_labels(old)
    assert back.fingerprint_ == before.fingerprint_


# -- what is left of a dropped label ----------------------------------------------------------


@pytest.mark.parametrize("rerank", ["auto", "linear", "tail", None])
def test_dropping_all_candidates(rerank):
    model = copy.deepcopy(fitted(rerank)).drop_labels(["l03", "l17"]).model_
    assert model.forest.places.size == 0
    assert model.forest.histogram_labels.max() == 27
    if model.second_stage is not None and model.second_stage.index is not None:
        assert model.second_stage.index.labels.max() == 27


def test_emptied_leaf_ignores_parent(tmp_path):
    X, y = [[0, 1], [1, 0]] * 4, [["a"], ["b"]] * 4
    before = LdSMClassifier(1, rerank=None, subsample=1.0).fit(X, y)
    model = before.model_
    assert model.forest.histogram_offsets.tolist() == [0, 0, 1, 2]
    # The root has counts, too, as if a third leaf were empty.
    forest = replace(
        model.forest,
        histogram_offsets=np.array([0, 1, 2, 3]),
        histogram_labels=np.array([0, 0, 1], dtype=np.int32),
        histogram_counts=np.array([4, 4, 4], dtype=np.int32),
    )
    hold_model(before, replace(model, forest=forest))
    assert dense(before, X[:2]).tolist() == [[1, 0], [0, 1]]
    after = copy.copy(before).drop_labels(["b"])
    assert dense(after, X[:2]).tolist() == [[1], [0]]
    assert after.forest_.n_dropped == 1 and after.forest_.histogram_labels.tolist() == [0, 0, 1]
    after.save(tmp_path / "m.ldsm")
    assert ldsm.load(tmp_path / "m.ldsm").fingerprint_ == after.fingerprint_


def test_dropped_tag_leaves_no_data():
    before = tagger()
    name = before.classes_[5]
    renamed = copy.deepcopy(before).rename_labels({name: "zzz"})
    after = copy.deepcopy(renamed).drop_labels(["zzz"])
    stage, model = after.classifier_.second_stage_, after.classifier_.model_
    assert stage.length < len(before.classes_)  # so that places on lists count
    n_labels = len(after.classes_)
    assert model.forest.n_dropped == 1 and model.forest.histogram_labels.max() == n_labels
    assert len(model.label_counts) == len(stage.tested) == len(stage.ranker.offsets) - 1 == n_labels
    for each, is_there in ((before, True), (renamed, True), (after, False)):
        _, arrays = tagger_state(each)
        names = [arrays[f"{part}.text"].tobytes() for part in ("second_stage.names", "labels")]
        assert any(name.encode() in text or b"zzz" in text for text in names) == is_there
    shown = [leaf for text in NEW[:20] for leaf in str(after.explain(text, max_tags=9)).split()]
    assert name not in shown and "zzz" not in shown


def test_learning_forgets_the_rest():
    name = tagger().classes_[5]
    after = copy.deepcopy(tagger()).drop_labels([name])
    assert after.classifier_.forest_.n_dropped == 1
    again = copy.deepcopy(after)
    after.partial_fit(TEXTS[:1], [[tag for tag in TAGS[0] if tag != name]])
    stage, forest = after.classifier_.second_stage_, after.classifier_.forest_
    assert forest.places.size == 0 and stage.dropped_seen is None
    assert forest.histogram_labels.max() < forest.n_labels
    assert stage.index.labels.max() < forest.n_labels
    assert len(stage.names.owners) == len(stage.names.matched) == forest.n_labels
    # The same label can be learned again, and dropped again.
    own = [i for i, tags in enumerate(TAGS) if name in tags][:20]
    again.partial_fit([TEXTS[i] for i in own], [TAGS[i] for i in own])
    assert name in again.classes_ and again.classifier_.forest_.places.size == 0
    found = [name in dict(row) for row in again.predict([TEXTS[i] for i in own])]
    assert np.mean(found) > 0.8
    expected = again.predict_proba(NEW).toarray()
    kept = again.classes_ != name
    again.drop_labels([name])
    assert np.array_equal(again.predict_proba(NEW).toarray(), expected[:, kept])


def test_more_trees_after_labels_were_changed():
    X, Y = TRAIN.X, [[label for label in row if label != "l03"] for row in LABELS]
    clf = LdSMClassifier(3, warm_start=True, leaf_scores="histogram", min_split_labels=40)
    clf.fit(X, LABELS)
    clf.drop_labels(["l03"]).rename_labels({"l05": "zz"})
    assert clf.forest_.n_dropped == 1
    Y = [["zz" if label == "l05" else label for label in row] for row in Y]
    clf.set_params(n_estimators=5).fit(X, Y)
    assert clf.forest_.n_trees == 5 and clf.forest_.n_dropped == 0
    assert clf.classes_.tolist() == sorted(clf.classes_)
    found = clf.predict_topk(X, k=1)[0].ravel().tolist()
    assert np.mean([best in row for best, row in zip(found, Y, strict=True)]) > 0.5


def test_labels_renamed_after_others_were_dropped_survive_saving(tmp_path):
    names = tagger().classes_.tolist()
    changed = copy.deepcopy(tagger()).drop_labels(names[:3]).rename_labels({names[4]: "renamed"})
    assert changed.classifier_.second_stage_.names is not None
    changed.save(tmp_path / "changed.ldsm")
    for verify in (True, False):
        loaded = ldsm.load(tmp_path / "changed.ldsm", verify=verify)
        assert loaded.fingerprint_ == changed.fingerprint_
        assert loaded.predict(NEW) == changed.predict(NEW)
    again = loaded.drop_labels(names[5:7]).rename_labels({names[7]: "too"})
    again.save(tmp_path / "again.ldsm")
    assert ldsm.load(tmp_path / "again.ldsm").fingerprint_ == again.fingerprint_


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("forest.dropped_places", lambda a: a[:-1]),
        ("forest.dropped_places", lambda a: a.astype(np.int64)),
        ("forest.dropped_places", lambda a: np.full_like(a, 1)),
        ("forest.dropped_places", lambda a: a - 1),
        ("forest.dropped_places", lambda a: a + 10**6),
        ("forest.dropped_places", lambda a: a[None]),
        ("forest.dropped_places", None),
        ("forest.label_order", lambda a: np.zeros(len(tagger().classes_) - 3, np.int32)),
        ("forest.label_order", lambda a: np.arange(1, len(tagger().classes_) - 2, dtype=np.int32)),
        ("forest.label_order", lambda a: np.arange(5, dtype=np.int32)),
        ("second_stage.dropped_seen", lambda a: a[:-1]),
        ("second_stage.dropped_seen", lambda a: a.astype(np.int64)),
        ("second_stage.dropped_seen", None),
        ("second_stage.names.matched", lambda a: a[:-1]),
    ],
)
def test_damaged_dropped_labels_refused(tmp_path, name, change):
    dropped = copy.deepcopy(tagger()).drop_labels(tagger().classes_[:3])
    header, arrays = tagger_state(dropped)
    array = arrays.pop(name, np.zeros(0, np.int32))
    if change is not None:
        arrays[name] = change(np.array(array))
    write(tmp_path / "bad.ldsm", {"kind": "TextTagger", **header}, arrays)
    for verify in (True, False):
        with pytest.raises(ValueError, match="cannot be loaded"):
            ldsm.load(tmp_path / "bad.ldsm", verify=verify)


# -- errors -----------------------------------------------------------------------------------


def test_tags_with_names_and_sub_words(tmp_path):
    before = tagger()
    assert before.classifier_.second_stage_.names is not None
    first, second = before.classes_[:2].tolist()
    renamed = copy.deepcopy(before).rename_labels({first: "zzz"})
    old = [[("zzz" if tag == first else tag, s) for tag, s in row] for row in before.predict(NEW)]
    assert renamed.predict(NEW) == old
    asked = next(t for t, tags in zip(TEXTS, TAGS, strict=True) if first in tags)
    explained = {score.tag: score.name for score in renamed.explain(asked, max_tags=9).scores}
    assert explained["zzz"][0] == first  # what it was called is what is compared
    gone = copy.deepcopy(renamed).drop_labels([second])
    assert all(tag != second for row in gone.predict(NEW, k=9) for tag, _ in row)
    gone.save(tmp_path / "m.ldsm")
    again = ldsm.load(tmp_path / "m.ldsm")
    assert again.fingerprint_ == gone.fingerprint_ and again.predict(NEW) == gone.predict(NEW)
    assert again.explain(asked, max_tags=9).scores == gone.explain(asked, max_tags=9).scores


def test_matrix_columns_can_be_dropped():
    clf = LdSMClassifier(3).fit(TRAIN.X, TRAIN.Y)
    expected = clf.predict_proba(TEST.X, only=[i for i in range(30) if i != 4]).toarray()
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
def test_invalid_label_changes(change, message):
    clf = copy.deepcopy(fitted(None))
    before = clf.fingerprint_
    with pytest.raises(ValueError, match=message):
        change(clf)
    assert clf.fingerprint_ == before


def test_long_history_is_summarized(tmp_path):
    clf = copy.deepcopy(fitted(None))
    entry = {"when": "2026-01-02T03:04:05+00:00", "learned": 2, "times": 1, "new_labels": 1}
    odd = [None, {"when": 3, "learned": 10**19}, {"when": "x" * 99, "learned": -1, "dropped": "a"}]
    long = [entry] * 20_000 + odd + [entry | {"dropped": 7}] * 200
    clf.training_ = {**clf.training_, "history": long}
    clf.rename_labels({"l01": "x"}).drop_labels(["l02"])
    history = clf.training_["history"]
    assert len(history) == 100 and history[-1]["dropped"] == history[-2]["renamed"] == 1
    assert history[0]["when"] == entry["when"] and history[1] == entry | {"dropped": 7}
    for name, total in {"learned": 40_400, "times": 20_200, "dropped": 1401, "renamed": 1}.items():
        assert sum(each.get(name, 0) for each in history) == total
    path = tmp_path / "m.ldsm"
    clf.save(path)
    assert ldsm.load(path).training_["history"] == history
