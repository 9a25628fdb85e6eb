"""The threshold that `fit` chooses: from scores by what has not seen the rows, of all rows."""

import numpy as np
import pytest
import scipy.sparse as sp

import ldsm
from ldsm import LdSMClassifier, datasets, metrics
from ldsm._model.sets.thresholds import DEFAULT_THRESHOLD, best_threshold

TRAIN = datasets.make_xmc("bibtex", scale=0.4, seed=0)
TEST = datasets.make_xmc("bibtex", scale=0.4, seed=0, part="test")


def fitted(**changes):
    params = {"n_estimators": 6, "n_jobs": 2, "random_state": 0, **changes}
    return LdSMClassifier(**params).fit(TRAIN.X, TRAIN.Y)


@pytest.fixture(scope="module")
def clf():
    return fitted()


def samples_f1(clf, threshold):
    predicted = clf.predict_proba(TEST.X)
    predicted.data = (predicted.data >= threshold).astype(float)
    predicted.eliminate_zeros()
    return metrics.f1_score(TEST.Y, predicted, "samples")


def test_nearly_the_best_f1_on_new_rows(clf):
    assert clf.second_stage_ is not None and clf.training_["rows"] == TRAIN.X.shape[0]
    best = best_threshold(clf.predict_proba(TEST.X), TEST.Y, "samples")
    chosen, half, best = (samples_f1(clf, t) for t in (clf.threshold_, 0.5, best))
    assert chosen > half
    assert chosen > best - 0.01
    assert metrics.f1_score(TEST.Y, clf.predict(TEST.X), "samples") == pytest.approx(chosen)


@pytest.mark.parametrize("rerank", [None, "tail", "linear"])
def test_every_second_stage_has_one(rerank):
    clf = fitted(rerank=rerank, subsample=0.7)
    assert 0 < clf.threshold_ < DEFAULT_THRESHOLD
    assert samples_f1(clf, clf.threshold_) > samples_f1(clf, DEFAULT_THRESHOLD)
    if rerank is None:
        assert clf.threshold_ == best_threshold(clf.oob_scores_, TRAIN.Y, "samples")


def test_number_is_kept_and_changes_no_score(clf, tmp_path):
    given = fitted(threshold=0.25)
    assert given.threshold_ == 0.25
    assert np.array_equal(given.predict_topk(TEST.X)[1], clf.predict_topk(TEST.X)[1])
    given.save(tmp_path / "m.ldsm")
    loaded = ldsm.load(tmp_path / "m.ldsm")
    assert loaded.threshold_ == loaded.threshold == 0.25
    with pytest.raises(
        ValueError, match=r"'threshold' .* 'auto' or 'f1' or a float in \[0, 1\]. Got 1.5"
    ):
        fitted(threshold=1.5)


def test_one_half_without_scores_of_unseen_rows():
    assert fitted(rerank=None).threshold_ == DEFAULT_THRESHOLD
    few = LdSMClassifier(2).fit(TRAIN.X[:100], TRAIN.Y[:100])
    assert few.threshold_ == DEFAULT_THRESHOLD
    best_label = np.asarray(TRAIN.Y.argmax(axis=1)).ravel()
    single = LdSMClassifier(3, random_state=0).fit(TRAIN.X, best_label)
    assert single.second_stage_ is not None and single.threshold_ == DEFAULT_THRESHOLD


def test_more_trees_give_the_threshold_of_a_new_fit(clf):
    more = fitted(n_estimators=3, warm_start=True)
    before = more.threshold_
    more.set_params(n_estimators=6).fit(TRAIN.X, TRAIN.Y)
    assert more.threshold_ == clf.threshold_ != before


def test_new_rows_keep_it(clf):
    grown = fitted()
    grown.partial_fit(TEST.X[:50], sp.csr_array(TEST.Y[:50]))
    assert grown.threshold_ == clf.threshold_
