"""Extreme but finite numbers, and odd labels: always an answer, never NaN or infinity."""

import numpy as np
import pytest
import scipy.sparse as sp

from ldsm import LdSMClassifier
from problems import make_problem

LARGEST = float(np.finfo(np.float32).max)
SMALLEST = float(np.finfo(np.float32).smallest_subnormal)


# -- extreme numbers ---------------------------------------------------------------------------


def extreme_rows(rng):
    """40 rows of 6 columns; about half of them are extreme, each in a way of its own."""
    return np.stack([extreme_column(rng) for _ in range(6)], axis=1).astype(np.float32)


def extreme_column(rng):
    scale = 10.0 ** rng.integers(-45, 39)
    normal = rng.normal(size=40)
    column = [
        normal * scale,
        np.full(40, scale),  # constant
        scale * (1 + 1e-7 * rng.integers(0, 2, 40)),  # all but constant
        np.where(normal > 0, LARGEST, -LARGEST),
        np.where(normal > 0, SMALLEST, 0),
        10.0 ** rng.integers(-45, 39, 40) * np.sign(normal),  # all sizes at once
        np.zeros(40),
        (normal > 1) * LARGEST,
        normal,
        np.abs(normal),
        normal > 0,
        normal * (normal > 0),
        rng.normal(size=40),
        rng.random(40) < 0.5,
    ][rng.integers(14)]
    return np.clip(column, -LARGEST, LARGEST)


def check_extreme_case(case):
    rng = np.random.default_rng(case)
    X = extreme_rows(rng)
    Y = rng.random((40, 5)) < rng.choice([0.05, 0.3, 0.9])
    Y[0, 0] = True
    clf = LdSMClassifier(
        n_estimators=2,
        arity=int(rng.choice([2, 2, 3, 5])),
        optimizer=("nag", "sgd", "asgd")[case % 3],
        learning_rate=float(10.0 ** rng.choice([-300, -3, -1, -1, 0, 0, 3, 30, 300])),
        integrity_weight=float(rng.choice([0, 1e-300, 2, 2, 2, 1e30])),
        multiway_penalty=float(rng.choice([0, 1, 1, 1, 1e30])),
        n_epochs=int(rng.integers(1, 6)),
        standardize=bool(rng.integers(2)),
        leaf_scores=("probability", "histogram")[int(rng.integers(2))],
        random_state=case,
    ).fit(X, Y)
    other = extreme_rows(rng)
    for rows in (X, other, sp.csr_array(other)):
        proba = clf.predict_proba(rows)
        assert np.all(np.isfinite(proba)) and proba.min() >= 0 and proba.max() <= 1
        scores = clf.predict_topk(rows, k=5)[1]
        assert np.all(np.isfinite(scores)) and scores.min() >= 0 and scores.max() <= 1
        assert set(np.unique(clf.predict(rows))) <= {0, 1}
    forest, split = clf.forest_, ~clf.forest_.is_leaf
    for name in ("weights", "weight_means", "weight_scales", "node_entropy", "epoch_objective"):
        assert np.all(np.isfinite(getattr(forest, name))), name
    for name in ("objective", "balancedness", "purity", "integrity_weight"):
        assert np.all(np.isfinite(getattr(forest, name)[split])), name
    return int(split.sum())


def run_extreme_cases(count):
    """Not all forests may consist of leaves only, which could hardly go wrong."""
    split = sum(check_extreme_case(case) > 0 for case in range(count))
    assert split > 0.25 * count, split


# scikit-learn sums X up to see whether all of it is finite, and infinity less infinity is invalid.
sums_overflow = pytest.mark.filterwarnings("ignore:invalid value encountered in reduce")


@sums_overflow
def test_extreme_values_give_finite_answers():
    run_extreme_cases(120)


@pytest.mark.long
@sums_overflow
def test_1000_extreme_cases_give_finite_answers():
    run_extreme_cases(1000)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csc_array, sp.coo_array, list])
@pytest.mark.parametrize("value", [LARGEST * 2, -1e39, 1e300])
def test_float32_overflow_refused(form, value):
    X, Y = make_problem(0)
    clf = LdSMClassifier(n_estimators=1).fit(X, Y)
    X = X.astype(np.float64)
    X[3, 1] = value
    for use in (lambda: clf.predict_proba(form(X)), lambda: LdSMClassifier().fit(form(X), Y)):
        with pytest.raises(ValueError, match="Input X must hold finite values that float32"):
            use()
    X[3, 1] = LARGEST * np.sign(value)
    assert np.all(np.isfinite(clf.fit(form(X), Y).predict_proba(form(X))))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_overflowing_duplicates_refused(form):
    X = np.zeros((2, 3))
    X[0] = 3e38
    doubled = sp.coo_array(
        (np.repeat(X[0], 2), (np.zeros(6, int), np.repeat(np.arange(3), 2))), shape=(2, 3)
    )
    clf = LdSMClassifier(n_estimators=1)
    clf.fit(form(X), ["a", "b"])
    if form is not np.asarray:
        with pytest.raises(ValueError, match="Input X must hold finite values that float32"):
            clf.fit(form(doubled), ["a", "b"])


# -- odd labels --------------------------------------------------------------------------------

ROWS, _ = make_problem(4, "weights", n_rows=40, n_features=8)
SOME = (np.arange(40) % 3)[:, None] == np.arange(3)


def indicator(columns):
    return np.stack(columns, axis=1).astype(int)


NOTHING, EVERYTHING = np.zeros(40), np.ones(40)
ODD_LABELS = {
    "one label everywhere": indicator([EVERYTHING]),
    "one label everywhere and others": indicator([EVERYTHING, *SOME.T]),
    "all labels everywhere": indicator([EVERYTHING] * 4),
    "one label, on some rows": indicator([SOME[:, 0]]),
    "one label, on one row": indicator([np.arange(40) == 7]),
    "half of the rows without labels": indicator(SOME.T * (np.arange(40) < 20)),
    "one row with labels": indicator([np.arange(40) == 7] * 3),
    "labels never seen": indicator([NOTHING, SOME[:, 0], NOTHING, SOME[:, 1], NOTHING]),
    "gaps between label ids": sp.csr_array(
        (np.ones(40), (np.arange(40), np.arange(40) % 3 * 50_000)), shape=(40, 100_001)
    ),
    "a label for each row": np.eye(40, dtype=int),
    "more labels than rows": np.repeat(np.eye(40, dtype=int), 3, axis=1),
}
TREES = {
    "two ways": {},
    "three ways": {"arity": 3, "multiway_penalty": 0.1},
    "standardised": {"standardize": True},
    "bags": {"subsample": 0.5},
    "the paper's": {"leaf_scores": "histogram", "relax_integrity": False, "optimizer": "nag"},
}


def check_answers(clf, X, seen):
    """Finite scores, every label named once, and none for a label that was never seen."""
    n_labels = len(clf.classes_)
    labels, scores = clf.predict_topk(X, k=min(n_labels, 50))
    assert labels.shape == scores.shape == (X.shape[0], min(n_labels, 50))
    assert all(len(set(row)) == len(row) for row in labels.tolist())
    assert np.all(np.isfinite(scores)) and scores.min() >= 0 and scores.max() <= 1
    assert np.all(np.diff(scores, axis=1) <= 0)
    proba = sp.csr_array(clf.predict_proba(X))
    assert proba.shape == (X.shape[0], n_labels) and np.all(np.isfinite(proba.data))
    assert set(proba.indices.tolist()) <= seen
    assert sp.csr_array(clf.predict(X)).shape == (X.shape[0], n_labels)


@pytest.mark.parametrize("trees", TREES)
@pytest.mark.parametrize("labels", ODD_LABELS)
def test_odd_labels_have_answers(labels, trees):
    Y = ODD_LABELS[labels]
    seen = set(sp.csr_array(Y).indices.tolist())
    for X in (ROWS, sp.csr_array(ROWS), np.zeros((40, 8)), np.ones((40, 1))):
        clf = LdSMClassifier(n_estimators=2, random_state=0, **TREES[trees]).fit(X, Y)
        check_answers(clf, X, seen)
        check_answers(clf, X[:1] * 0, seen)
        assert 0 <= clf.score(X, Y) <= 1


def test_universal_label_is_certain():
    clf = LdSMClassifier(n_estimators=3, random_state=0).fit(ROWS, indicator([EVERYTHING]))
    assert np.all(clf.predict_proba(ROWS) == 1) and np.all(clf.predict(ROWS) == 1)
    assert clf.forest_.n_nodes == 3  # nothing to split
    clf.fit(ROWS, ["only"] * 40)
    assert set(clf.predict(ROWS)) == {"only"}


def test_empty_labels_refused():
    for Y in (np.zeros((40, 3)), sp.csr_array((40, 3)), [[]] * 40, np.zeros((40, 0))):
        with pytest.raises(ValueError, match=r"at least one (label|column)"):
            LdSMClassifier().fit(ROWS, Y)


def test_no_features():
    """Columns that are all empty leave the bias; a matrix without columns is refused."""
    clf = LdSMClassifier(n_estimators=2, random_state=0).fit(sp.csr_array((40, 9)), SOME)
    proba = clf.predict_proba(sp.csr_array((3, 9)))
    np.testing.assert_allclose(proba[0], SOME.mean(axis=0), atol=0.2)
    for X in (np.zeros((40, 0)), sp.csr_array((40, 0))):
        with pytest.raises(ValueError, match=r"0 feature\(s\)"):
            LdSMClassifier().fit(X, SOME)


@pytest.mark.parametrize("y", [["a"], [["a", "b"]], np.array([[1, 0, 1]]), [[7, 900]]])
def test_one_row(y):
    clf = LdSMClassifier(n_estimators=2, random_state=0).fit(ROWS[:1], y)
    scores = clf.predict_topk(ROWS, k=1)[1]
    assert np.all(scores == 1)


def test_labels_named_twice_count_once():
    once = [["b", "a"], ["a"], [], ["c"]] * 10
    twice = [[*row, *row] for row in once]
    a, b = (LdSMClassifier(n_estimators=2, random_state=0).fit(ROWS, y) for y in (once, twice))
    assert a.fingerprint_ == b.fingerprint_


def test_numbers_with_gaps_are_names():
    y = [[10**12], [-5], [7, 10**12], []] * 10
    clf = LdSMClassifier(n_estimators=2, random_state=0).fit(ROWS, y)
    assert clf.classes_.tolist() == [-5, 7, 10**12]
    assert set(clf.predict_topk(ROWS, k=3)[0].ravel().tolist()) == {-5, 7, 10**12}
    assert clf.score(ROWS, [[99]] * 40) == 0  # never seen: a miss
