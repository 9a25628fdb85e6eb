"""Sets with the highest expected F1, against a twin that goes through all outcomes."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

import ldsm
from ldsm import LdSMClassifier, datasets, metrics
from ldsm._model.sets.expected_f1 import ExpectedF1, expected_f1
from ldsm.evaluation import Evaluation

TRAIN = datasets.make_xmc("bibtex", scale=0.4, seed=0)
TEST = datasets.make_xmc("bibtex", scale=0.4, seed=0, part="test")


def naive_f1(probabilities):
    """The expected F1 of the first k labels, for each k, over all outcomes."""
    values = np.zeros(len(probabilities))
    for truth in product((0, 1), repeat=len(probabilities)):
        chance = np.prod(np.where(truth, probabilities, 1 - probabilities))
        for k in range(1, len(probabilities) + 1):
            values[k - 1] += chance * 2 * sum(truth[:k]) / (k + sum(truth))
    return values


def falling(seed, n_labels):
    rng = np.random.default_rng(seed)
    return np.sort(rng.random(n_labels) ** rng.integers(1, 5))[::-1].copy()


def rows_of(*rows):
    """Scores of rows as a CSR matrix, without those of 0."""
    width = max(map(len, rows))
    return sp.csr_array(
        np.array([[*row, *[0] * (width - len(row))] for row in rows], dtype=np.float32)
    )


def sets_of(rule, scores):
    chosen = rule.chosen(scores)
    return [
        scores.indices[a:b][chosen[a:b]].tolist()
        for a, b in zip(scores.indptr[:-1], scores.indptr[1:], strict=True)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_equals_the_sum_over_all_outcomes(seed):
    ranked = falling(seed, 1 + seed % 9)
    naive = naive_f1(ranked)
    values = expected_f1(ranked[None])[0]
    assert np.abs(values - naive[: len(values)]).max() < 1e-12
    assert naive.argmax() < len(values)  # what is cut off is never best
    scores = rows_of(ranked.astype(np.float32))
    assert sets_of(ExpectedF1(0.0, 0.5), scores) == [list(range(naive.argmax() + 1))]


def test_long_lists_equal_the_distribution_of_sums():
    ranked = falling(3, 150)
    # By the definition, label by label.
    k, value = 30, 0.0
    for t in range(k):
        others = np.ones(1)
        for p in np.delete(ranked, t):
            others = np.convolve(others, [1 - p, p])
        value += ranked[t] * np.sum(2 * others / (k + 1 + np.arange(len(others))))
    assert expected_f1(ranked[None])[0, k - 1] == pytest.approx(value, abs=1e-9)


def test_sure_labels_are_the_set():
    scores = rows_of([0.02, 1.0, 0.01, 1.0], [0.3, 0.3, 0.3, 0.3], [0.9])
    assert sets_of(ExpectedF1(0.0, 0.5), scores) == [[1, 3], [0, 1, 2, 3], [0]]


def test_equal_scores_are_taken_by_column_and_none_without_scores():
    scores = rows_of([0.0, 0.0], [0.5, 0.5])
    assert sets_of(ExpectedF1(0.0, 0.5), scores)[0] == []
    scores = rows_of([1.0, *[0.4] * 3])
    sizes = naive_f1(np.array([1.0, *[0.4] * 3])).argmax() + 1
    assert sets_of(ExpectedF1(0.0, 0.5), scores) == [list(range(sizes))]


def test_sets_are_empty_only_where_rows_are():
    scores = rows_of([0.04, 0.01], [0.9, 0.1])
    assert sets_of(ExpectedF1(1.0, 0.5), scores) == [[], [0]]
    assert sets_of(ExpectedF1(0.0, 0.5), scores) == [[0], [0]]
    labelled, mixed = ExpectedF1.of(scores, 0, 0.5), ExpectedF1.of(scores, 1, 0.5)
    assert labelled.empty == 0
    assert mixed.empty == pytest.approx(1 / (0.96 * 0.99 + 0.1 * 0.9), rel=1e-5)


def test_no_row_depends_on_the_others():
    rows = [falling(seed, 3 + 7 * (seed % 6)).astype(np.float32) for seed in range(30)]
    together, rule = rows_of(*rows), ExpectedF1(0.5, 0.5)
    alone = [sets_of(rule, rows_of(row))[0] for row in rows]
    assert sets_of(rule, together) == alone


@pytest.fixture(scope="module")
def clf():
    params = {"n_estimators": 6, "n_jobs": 2, "random_state": 0}
    return LdSMClassifier(**params, threshold="f1").fit(TRAIN.X, TRAIN.Y)


def test_better_than_the_best_threshold_of_training(clf, tmp_path):
    by_f1 = metrics.f1_score(TEST.Y, clf.predict(TEST.X), "samples")
    sets = Evaluation(clf, TEST).scores((1,)).sets["model"]
    assert sets.threshold == "f1"
    assert sets.f1["samples"] == pytest.approx(by_f1)
    clf.save(tmp_path / "m.ldsm")
    loaded = ldsm.load(tmp_path / "m.ldsm")
    assert loaded.threshold_ == clf.threshold_ and loaded.threshold == "f1"
    assert loaded.fingerprint_ == clf.fingerprint_
    assert (loaded.predict(TEST.X) != clf.predict(TEST.X)).nnz == 0
    clf_common = ldsm.load(tmp_path / "m.ldsm")
    clf_common.threshold_ = clf.threshold_.common
    assert clf_common.fingerprint_ != clf.fingerprint_
    common = metrics.f1_score(TEST.Y, clf_common.predict(TEST.X), "samples")
    assert by_f1 > common


def test_trees_alone_have_sets_too():
    few = LdSMClassifier(n_estimators=3, random_state=0, threshold="f1")
    few.fit(TRAIN.X[:100], TRAIN.Y[:100])
    assert isinstance(few.threshold_, ExpectedF1)
    assert few.predict(TEST.X).nnz > 0


def test_wrong_value_is_refused():
    with pytest.raises(ValueError, match=r"'threshold' .* 'auto' or 'f1' or a float in \[0, 1\]"):
        LdSMClassifier(threshold="f2").fit(TRAIN.X, TRAIN.Y)
