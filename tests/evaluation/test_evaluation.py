"""The evaluator: rows in every form, in the columns of the model, against the metrics."""

from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from ldsm import LdSMClassifier, TextTagger, datasets, metrics
from ldsm.datasets import Dataset
from ldsm.evaluation import Evaluation
from text_corpus import NEW, NEW_TAGS, TAGS, TEXTS
from text_corpus import small as small_tagger


@pytest.fixture(scope="module")
def train():
    return datasets.make_xmc(400, 60, 24, seed=0)


@pytest.fixture(scope="module")
def test():
    return datasets.make_xmc(120, 60, 24, seed=0, part="test")


@pytest.fixture(scope="module")
def clf(train):
    return LdSMClassifier(5, n_epochs=4, random_state=0).fit(train)


def test_forms_of_rows(train, test, clf):
    lists = [test.Y.indices[a:b].tolist() for a, b in pairwise(test.Y.indptr)]
    expected = Evaluation(clf, test).metrics()
    assert Evaluation(clf, test.X, test.Y).metrics() == expected
    assert Evaluation(clf, test.X.toarray(), test.Y.toarray()).metrics() == expected
    best = clf.predict_topk(test.X, 5)
    assert expected == pytest.approx(metrics.ranking_report(lists, best, y_train=train.Y))
    texts = ["cod quota", "beef import"] * 5
    tagger = TextTagger(LdSMClassifier(2, random_state=0)).fit(texts, [["fish"], ["meat"]] * 5)
    assert Evaluation(tagger, texts, [["fish"], ["meat"]] * 5).metrics()["precision@1"] == 1
    assert Evaluation(tagger, zip(texts, [["fish"], ["meat"]] * 5, strict=True)).texts == texts


def test_scores_are_those_of_the_metrics(train, test, clf):
    scores = Evaluation(clf, test).scores((1, 3), propensities=metrics.propensities(train.Y))
    top = clf.predict_topk(test.X, k=3)
    assert scores.ranking == metrics.ranking_report(test.Y, top, (1, 3), y_train=train.Y)
    for average, value in scores.f1.items():
        assert value == metrics.f1_score(test.Y, clf.predict(test.X), average)
    predicted = clf.predict(test.X)
    right = predicted.multiply(test.Y).nnz
    assert scores.n_predicted == predicted.nnz
    assert scores.set_precision == right / predicted.nnz
    assert scores.set_recall == right / test.Y.nnz
    assert scores.n_rows == scores.as_dict()["rows"] == 120
    assert "recall_all@1" not in scores.ranking and scores.unseen.labels == {}


@pytest.mark.parametrize("per_label", [False, True])
def test_sets_at_every_threshold(test, clf, per_label):
    """As scikit-learn computes F1 of the predicted sets."""
    clf = clone(clf).fit(test)  # not the shared one, whose threshold would change
    if per_label:
        clf.threshold_ = np.linspace(0.05, 0.4, 24, dtype=np.float32)
    sets = Evaluation(clf, test).scores().sets
    assert [sets[name].threshold for name in sets][:2] == [None if per_label else 0.5, 0.5]
    found = {}
    for name, one in sets.items():
        if one.threshold is not None:
            clf.threshold_ = one.threshold
        predicted = clf.predict(test.X)
        assert one.n_predicted == predicted.nnz
        expected = {a: metrics.f1_score(test.Y, predicted, a) for a in one.f1}
        assert one.f1 == pytest.approx(expected, abs=1e-12) and one.f1_all == one.f1
        found[name] = expected["samples"]
    for threshold in np.linspace(0.02, 0.98, 49).tolist():
        clf.threshold_ = threshold
        assert metrics.f1_score(test.Y, clf.predict(test.X), "samples") <= found["best"] + 1e-12


def test_f1_over_unknown_labels(test, clf):
    """A label without a column is true in some rows, and never predicted."""
    more = sp.hstack([test.Y, sp.csr_array(np.arange(120)[:, None] < 7)], format="csr")
    scores = Evaluation(clf, Dataset(test.X, more)).scores()
    predicted = sp.hstack([clf.predict(test.X), sp.csr_array((120, 1), dtype=np.int32)]).tocsr()
    found = scores.sets["model"]
    for average, value in found.f1_all.items():
        assert value == pytest.approx(metrics.f1_score(more, predicted, average), abs=1e-12)
        assert value < found.f1[average]
    assert scores.as_dict()["f1_all_micro"] == found.f1_all["micro"]
    assert scores.as_dict()["threshold@best"] == scores.sets["best"].threshold


def test_single_labels_have_no_sets():
    X, y = np.repeat(np.eye(3), 5, axis=0), np.repeat(["a", "b", "c"], 5)
    scores = Evaluation(LdSMClassifier(2, random_state=0).fit(X, y), X, y).scores()
    assert scores.sets == scores.f1 == {} and scores.n_predicted == 0
    assert np.isnan(scores.set_precision) and "f1_micro" not in scores.as_dict()


def test_sums_of_parts_match_whole(test, clf):
    whole = Evaluation(clf, test)
    parts = [Evaluation(clf, test.select(slice(i, i + 50))).sums((1, 5)) for i in (0, 50, 100)]
    expected = whole.scores((1, 5), propensities=whole.model.propensities()).ranking
    assert reduce(add, parts).report() == pytest.approx(expected, rel=1e-12)
    favoured = whole.sums((5,), tail=1.0).report()
    assert favoured["precision@5"] != expected["precision@5"]  # another order


def test_columns_are_aligned(test, clf):
    """More columns of either kind change nothing but what is reported as unseen."""
    known = Evaluation(clf, test)
    wide = Dataset(
        sp.hstack([test.X, sp.csr_array(np.ones((120, 2), np.float32))], format="csr"),
        sp.hstack([test.Y, sp.csr_array(np.arange(120)[:, None] < 7)], format="csr"),
    )
    found = Evaluation(clf, wide)
    assert found.metrics() == known.metrics()
    assert found.unseen.labels == {24: 7} and found.unseen.features == {60: 120, 61: 120}
    recall = found.scores().ranking
    assert recall["recall_all@5"] < recall["recall@5"]
    narrow = replace(test, X=test.X[:, :50])
    assert Evaluation(clf, narrow).x.n_features == 60


def test_texts_aligned_by_tag_names():
    tagger = small_tagger().fit(TEXTS, TAGS)
    data = Dataset.from_texts(NEW, [[*tags, "never seen"] for tags in NEW_TAGS])
    evaluation = Evaluation(tagger, data)
    assert evaluation.texts == list(NEW)
    assert evaluation.unseen.labels == {"never seen": len(NEW)}
    assert evaluation.metrics()["precision@1"] == tagger.score(NEW, NEW_TAGS)


def test_sample_is_evenly_spaced(test, clf):
    held_out = Evaluation(clf, test)
    sample = held_out.sample(10)
    rows = np.linspace(0, 119, 10).round().astype(int)
    assert sample.n_rows == 10
    assert np.array_equal(sample.x.main.matrix().toarray(), test.X[rows].toarray())
    assert np.array_equal(sample.truth.toarray(), test.Y[rows].toarray())
    assert np.array_equal(sample.top[0], held_out.top[0][rows])
    assert held_out.sample(120) is held_out


def test_bad_arguments(test, clf):
    with pytest.raises(ValueError, match="'model' must be a fitted LdSMClassifier or TextTagger"):
        Evaluation("model.ldsm", test)
    with pytest.raises(ValueError, match="y must hold the labels of the rows. Got None"):
        Evaluation(clf, test.X)
    with pytest.raises(ValueError, match="y must be omitted"):
        Evaluation(clf, test, test.Y)
    with pytest.raises(ValueError, match="same number of rows. Got 120 and 119"):
        Evaluation(clf, test.X, test.Y[:119])
    with pytest.raises(ValueError, match="'feature_names' must have 60 entries. Got 2"):
        Evaluation(clf, test, feature_names=["a", "b"])
    with pytest.raises(ValueError, match="'metric' must be 'precision' or 'ndcg'. Got 'psp'"):
        Evaluation(clf, test).tree_curve("psp")
    with pytest.raises(ValueError, match="reads features, but the data holds texts"):
        Evaluation(clf, Dataset.from_texts(["a text"], [["fish"]]))
