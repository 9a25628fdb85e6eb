"""Thresholds tuned for F1 against an exhaustive twin, and set prediction by them."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import ldsm
from ldsm import LdSMClassifier, metrics
from ldsm._model.sets.thresholds import (
    AVERAGES,
    DEFAULT_THRESHOLD,
    above_threshold,
    best_label_thresholds,
    best_threshold,
)
from ldsm.datasets import Dataset
from problems import make_problem

X, Y = make_problem(1, "weights", n_rows=400, n_features=40, n_labels=12)
NAMES = [f"tag {i:02}" for i in range(12)]
TRAIN, HELD_OUT = slice(0, 250), slice(250, 400)


def fitted(labels=Y[TRAIN], **changes):
    params = {"n_estimators": 5, "random_state": 0, **changes}
    return LdSMClassifier(**params).fit(X[TRAIN], labels)


def as_lists(Y):
    return [[NAMES[k] for k in np.flatnonzero(row)] for row in Y]


def random_scores(seed):
    """Many equal scores, rows and labels with nothing true, rows and labels without scores."""
    rng = np.random.default_rng(seed)
    n_rows, n_labels = rng.integers(1, 40), rng.integers(1, 10)
    truth = rng.random((n_rows, n_labels)) < 0.3
    grid = rng.integers(2, 60)
    scores = np.ceil(grid * np.clip(rng.random(truth.shape) - 0.4 + 0.4 * truth, 0, 1)) / grid
    truth[rng.random(n_rows) < 0.2] = False
    truth[:, rng.random(n_labels) < 0.2] = False
    scores[rng.random(n_rows) < 0.2] = 0
    scores[:, rng.random(n_labels) < 0.2] = 0
    return scores.astype(np.float32), truth.astype(int)


def f1_at(threshold, scores, truth, average):
    """F1 by its definition, of dense arrays."""
    predicted = (scores >= threshold) & (scores > 0)
    axis = {"micro": None, "macro": 0, "samples": 1}[average]
    hits = np.sum(predicted & (truth == 1), axis=axis)
    sizes = np.sum(predicted, axis=axis) + np.sum(truth, axis=axis)
    return np.mean(np.where(sizes > 0, 2 * hits / np.maximum(sizes, 1), 0))


def exhaustive(scores, truth, average):
    """The best F1 of all that any threshold can reach."""
    candidates = [*np.unique(scores[scores > 0]), DEFAULT_THRESHOLD]
    return max(f1_at(t, scores, truth, average) for t in candidates)


# -- one for all labels ------------------------------------------------------------------------


@pytest.mark.parametrize("average", AVERAGES)
def test_best_threshold_is_optimal(average):
    found = 0
    for seed in range(150):
        scores, truth = random_scores(seed)
        threshold = best_threshold(sp.csr_array(scores), sp.csr_array(truth), average)
        best = exhaustive(scores, truth, average)
        # The mean over labels or rows is a running sum: rounding may differ in the last digits.
        assert f1_at(threshold, scores, truth, average) == pytest.approx(best, abs=1e-12)
        assert isinstance(threshold, float) and threshold == np.float32(threshold)
        found += best > 0
    assert found > 100


def test_twin_agrees_with_metrics():
    scores, truth = random_scores(3)
    for average in AVERAGES:
        predicted = sp.csr_array((scores >= 0.3).astype(int))
        expected = metrics.f1_score(truth, predicted, average)
        assert f1_at(0.3, scores, truth, average) == pytest.approx(expected)


def test_threshold_ties():
    scores = sp.csr_array(np.array([[0.75, 0.5, 0.375, 0.125]], dtype=np.float32))
    # One hit of one, or two of four: both give F1 2/3.
    assert best_threshold(scores, sp.csr_array([[1, 0, 0, 1]])) == 0.625
    # The lowest score: halfway to nothing.
    assert best_threshold(scores, sp.csr_array([[1, 1, 1, 1]])) == 0.0625


def test_adjacent_floats():
    above = np.float32(0.3)
    below = np.nextafter(above, np.float32(0))
    scores = sp.csr_array(np.array([[above, below]], dtype=np.float32))
    truth = sp.csr_array([[1, 0]])
    threshold = best_threshold(scores, truth)
    assert above_threshold(scores.copy(), threshold).indices.tolist() == [0]
    assert best_label_thresholds(scores, truth, 0.5)[0] == np.float32(0.15)


@pytest.mark.parametrize("average", AVERAGES)
def test_no_true_labels_keep_the_default(average):
    scores = sp.csr_array(np.array([[0.8, 0], [0.2, 0]], dtype=np.float32))
    assert best_threshold(scores, sp.csr_array([[0, 1], [0, 1]]), average) == DEFAULT_THRESHOLD
    empty = sp.csr_array((2, 2), dtype=np.float32)
    assert best_threshold(empty, sp.csr_array([[0, 1], [0, 1]]), average) == DEFAULT_THRESHOLD


def test_unsorted_scores_are_not_changed():
    scores, truth = random_scores(5)
    ordered = sp.csr_array(scores)
    backwards = ordered.copy()
    for row in range(backwards.shape[0]):
        part = slice(*backwards.indptr[row : row + 2])
        backwards.indices[part] = backwards.indices[part][::-1].copy()
        backwards.data[part] = backwards.data[part][::-1].copy()
    backwards.has_sorted_indices = False
    before = backwards.indices.copy()
    for average in AVERAGES:
        expected = best_threshold(ordered, sp.csr_array(truth), average)
        assert best_threshold(backwards, sp.csr_array(truth), average) == expected
    assert np.array_equal(backwards.indices, before)


# -- one for each label ------------------------------------------------------------------------


def test_label_thresholds_are_optimal():
    fallbacks = 0
    for seed in range(150):
        scores, truth = random_scores(seed)
        found = best_label_thresholds(sp.csr_array(scores), sp.csr_array(truth), 0.25)
        assert found.dtype == np.float32 and found.shape == (truth.shape[1],)
        for k in range(truth.shape[1]):
            column, true = scores[:, [k]], truth[:, [k]]
            best = exhaustive(column, true, "micro")
            if best == 0:
                assert found[k] == 0.25
                fallbacks += 1
            else:
                assert f1_at(found[k], column, true, "micro") == best
    assert fallbacks > 50


# -- through the classifier --------------------------------------------------------------------


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("per_label", [False, True])
def test_tuned_threshold_beats_default(average, per_label):
    clf = fitted()
    before = metrics.f1_score(Y[HELD_OUT], clf.predict(X[HELD_OUT]), average)
    same = clf.tune_threshold(X[HELD_OUT], Y[HELD_OUT], average=average, per_label=per_label)
    assert same is clf
    after = metrics.f1_score(Y[HELD_OUT], clf.predict(X[HELD_OUT]), average)
    if not per_label or average == "macro":  # a label's own F1 says nothing of other means
        assert after >= before
    if per_label:
        assert clf.threshold_.shape == (12,) and clf.threshold_.dtype == np.float32
        assert len(set(clf.threshold_.tolist())) > 5
    scores = clf.predict_proba(X[HELD_OUT])
    np.testing.assert_array_equal(clf.predict(X[HELD_OUT]), (scores >= clf.threshold_).astype(int))


def test_same_thresholds_for_label_forms():
    expected = fitted().tune_threshold(X[HELD_OUT], Y[HELD_OUT], per_label=True).threshold_
    lists = fitted(as_lists(Y[TRAIN]))
    by_name = lists.tune_threshold(X[HELD_OUT], as_lists(Y[HELD_OUT]), per_label=True).threshold_
    assert np.array_equal(by_name, expected)
    # A matrix has its columns by number, whatever the labels are called.
    by_column = lists.tune_threshold(X[HELD_OUT], sp.csr_array(Y[HELD_OUT]), per_label=True)
    assert np.array_equal(by_column.threshold_, expected)
    train = Dataset(X[TRAIN], Y[TRAIN], label_names=NAMES)
    shuffled = Dataset(X[HELD_OUT], Y[HELD_OUT][:, ::-1], label_names=NAMES[::-1])
    clf = LdSMClassifier(n_estimators=5, random_state=0).fit(train)
    assert np.array_equal(clf.tune_threshold(shuffled, per_label=True).threshold_, expected)
    assert clf.score(shuffled) == clf.score(X[HELD_OUT], Y[HELD_OUT]) > 0.3


def test_unseen_labels_are_ignored():
    clf = fitted(as_lists(Y[TRAIN]))
    known = clf.tune_threshold(X[HELD_OUT], as_lists(Y[HELD_OUT])).threshold_
    more = [[*labels, "new"] for labels in as_lists(Y[HELD_OUT])]
    assert clf.tune_threshold(X[HELD_OUT], more).threshold_ == known


def test_integer_labels_are_not_a_matrix():
    clf = LdSMClassifier(n_estimators=3, random_state=0)
    clf.fit([[1, 0], [0, 1], [1, 1]] * 5, [[0], [1], [0, 1, 7]] * 5)
    clf.tune_threshold([[1, 0], [0, 1]], [[0], [1]])
    assert clf.predict([[1, 0], [0, 1]]) == [[0], [1]]
    assert clf.score([[1, 0], [0, 1]], [[0], [1]]) == 1


def test_refit_resets_threshold():
    clf = fitted().tune_threshold(X[HELD_OUT], Y[HELD_OUT])
    assert clf.threshold_ != DEFAULT_THRESHOLD
    assert clf.fit(X[TRAIN], Y[TRAIN]).threshold_ == DEFAULT_THRESHOLD


def test_thresholds_belong_to_the_model(tmp_path):
    clf = fitted()
    plain = clf.fingerprint_
    tuned = clf.tune_threshold(X[HELD_OUT], Y[HELD_OUT], per_label=True).fingerprint_
    assert tuned != plain
    assert pickle.loads(pickle.dumps(clf)).fingerprint_ == tuned
    clf.save(tmp_path / "model.ldsm")
    loaded = ldsm.load(tmp_path / "model.ldsm")
    assert loaded.fingerprint_ == tuned
    assert np.array_equal(loaded.predict(X[HELD_OUT]), clf.predict(X[HELD_OUT]))
    assert fitted().fingerprint_ == plain


def test_fingerprint_covers_thresholds():
    wide = sp.csr_array((Y[TRAIN].size // 12, 3000), dtype=int).tolil()
    wide[:, :12] = Y[TRAIN]
    clf = fitted(wide.tocsr())
    clf.threshold_ = np.full(3000, 0.5, dtype=np.float32)
    before = clf.fingerprint_
    clf.threshold_[1500] = 0.25  # the printed form of a long array leaves out its middle
    assert clf.fingerprint_ != before


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((X[HELD_OUT], Y[HELD_OUT]), {"average": "weighted"}, "'average'.*'micro'.*Got 'weighted'"),
        ((X[HELD_OUT], Y[TRAIN]), {}, "same number of rows. Got 150 and 250"),
        ((X[HELD_OUT], Y[HELD_OUT][:, :11]), {}, "each of the 12 labels of training. Got 11"),
        ((X[HELD_OUT], np.zeros((150, 12))), {}, "at least one label"),
        ((X[HELD_OUT],), {}, "requires y"),
        ((Dataset(X, Y), Y), {}, "includes its labels"),
    ],
)
def test_wrong_use(arguments, options, message):
    clf = fitted()
    with pytest.raises(ValueError, match=message):
        clf.tune_threshold(*arguments, **options)
    assert clf.threshold_ == DEFAULT_THRESHOLD


def test_single_label_has_no_threshold():
    y = np.argmax(X[:, :3], axis=1)
    clf = LdSMClassifier(n_estimators=3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="no threshold to tune"):
        clf.tune_threshold(X, y)


# -- some labels only --------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, as_lists])
def test_prediction_restricted_to_some_labels(form):
    clf = fitted(form(Y[TRAIN])).tune_threshold(X[HELD_OUT], form(Y[HELD_OUT]), per_label=True)
    some = clf.classes_[[7, 2]].tolist()
    others = np.setdiff1d(np.arange(12), [7, 2])
    if form is as_lists:
        kept = [[name for name in row if name in some] for row in clf.predict(X[HELD_OUT])]
        assert clf.predict(X[HELD_OUT], only=some) == kept and any(kept)
    for method in (clf.predict_proba, clf.predict)[: 1 if form is as_lists else 2]:
        everything, restricted = method(X[HELD_OUT]), method(X[HELD_OUT], only=some)
        assert type(restricted) is type(everything) and restricted.shape == (150, 12)
        if sp.issparse(restricted):
            assert restricted.nnz == np.count_nonzero(restricted.data)
            everything, restricted = everything.toarray(), restricted.toarray()
        np.testing.assert_array_equal(restricted[:, [2, 7]], everything[:, [2, 7]])
        assert np.any(everything[:, others]) and not np.any(restricted[:, others])


def test_restricted_single_label():
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    clf = LdSMClassifier(n_estimators=5, random_state=0).fit(X, y)
    assert set(clf.predict(X)) == {"a", "b", "c"}
    restricted = clf.predict(X, only=["a", "c"])
    assert set(restricted) == {"a", "c"}
    scores = clf.predict_proba(X)
    assert restricted.tolist() == np.where(scores[:, 0] >= scores[:, 2], "a", "c").tolist()


def test_unknown_restricting_labels():
    clf = fitted([[("a", k) for k in np.flatnonzero(row)] for row in Y[TRAIN]])
    found = clf.predict(X[:3], only=[("a", 2), ("a", 5)])
    assert len(found) == 3 and {name for row in found for name in row} <= {("a", 2), ("a", 5)}
    for labels, message in (
        ([("b", 2)], "labels of the model. Got .'b', 2."),
        ([], "at least one. Got none"),
        ("a", "a list of labels. Got 'a'"),
    ):
        with pytest.raises(ValueError, match=message):
            clf.predict(X, only=labels)


@pytest.mark.parametrize(
    "wrong",
    [
        np.full(11, 0.5),
        np.full((1, 12), 0.5),
        np.nan,
        [0.5, 0.5],
        np.full(12, np.inf),
        "high",
        None,
    ],
)
def test_threshold_that_a_file_cannot_hold(wrong):
    clf = fitted()
    with pytest.raises(ValueError, match="'threshold_' .* each of the 12 labels. Got "):
        clf.threshold_ = wrong
    assert clf.threshold_ == DEFAULT_THRESHOLD


def test_threshold_of_another_type_is_converted(tmp_path):
    clf = fitted()
    given = np.linspace(0, 1, 12)
    clf.threshold_ = given
    given[:] = 7
    assert clf.threshold_.dtype == np.float32 and clf.threshold_[-1] == 1
    clf.save(tmp_path / "m.ldsm")
    assert ldsm.load(tmp_path / "m.ldsm").fingerprint_ == clf.fingerprint_


def test_tuning_does_not_undo_a_change_of_the_model(monkeypatch):
    clf = fitted()

    def meanwhile(*arguments):
        clf.drop_labels(clf.classes_[:1].tolist())  # another thread
        return 0.25

    monkeypatch.setattr("ldsm.classifier.best_threshold", meanwhile)
    with pytest.raises(RuntimeError, match="changed by another thread"):
        clf.tune_threshold(X[HELD_OUT], Y[HELD_OUT])
    assert clf.threshold_ == DEFAULT_THRESHOLD and len(clf.classes_) == 11
