"""The ranking metrics against the golden file, slow twins and scikit-learn."""

import json
import math
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score as sklearn_f1_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer, StandardScaler

from ldsm import LdSMClassifier, datasets, metrics
from ldsm.metrics import hits as ranked_hits

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "ranking_metrics.json").read_text())
AT_K = {
    "precision": metrics.precision_at_k,
    "ndcg": metrics.ndcg_at_k,
    "recall": metrics.recall_at_k,
    "coverage": metrics.coverage_at_k,
    "r_precision": metrics.r_precision_at_k,
    "psp": metrics.psp_at_k,
    "psndcg": metrics.psndcg_at_k,
}
WEIGHTED = ("psp", "psndcg")


def at_k(name, y_true, y_pred, k, propensities):
    extra = {"propensities": propensities} if name in WEIGHTED else {}
    return AT_K[name](y_true, y_pred, k, **extra)


def naive(name, truth, top, k, propensities):
    """One metric by the book: lists of true ids and of predicted ids, -1 for none."""
    total = best = 0.0
    found, distinct = set(), set()
    n_labelled = sum(1 for labels in truth if labels)
    for labels, predicted in zip(truth, top, strict=True):
        hits = [(r, y) for r, y in enumerate(predicted[:k], 1) if y in labels]
        ideal = sum(1 / math.log2(r + 1) for r in range(1, min(k, len(labels)) + 1))
        heaviest = sorted((1 / propensities[y] for y in labels), reverse=True)[:k]
        found |= {y for _, y in hits}
        distinct |= set(labels)
        if name == "precision":
            total += len(hits) / k
        elif name == "recall" and labels:
            total += len(hits) / len(labels)
        elif name == "r_precision" and labels:
            total += len(hits) / min(k, len(labels))
        elif name == "ndcg" and labels:
            total += sum(1 / math.log2(r + 1) for r, _ in hits) / ideal
        elif name == "psp":
            total += sum(1 / propensities[y] for _, y in hits)
            best += sum(heaviest)
        elif name == "psndcg" and labels:
            total += sum(1 / propensities[y] / math.log2(r + 1) for r, y in hits) / ideal
            best += sum(w / math.log2(r + 1) for r, w in enumerate(heaviest, 1)) / ideal
    if name == "coverage":
        return len(found) / len(distinct)
    if name in WEIGHTED:
        return total / best
    return total / (len(truth) if name == "precision" else n_labelled)


def naive_top(scores, width):
    """Stored scores of a row as a dict; equal scores by label id; -1 fills up."""
    ranked = sorted(scores, key=lambda label: (-scores[label], label))
    return (ranked + [-1] * width)[:width]


def random_case(seed, n_rows=40, n_labels=12):
    """Label-less rows, rows without predictions, ties, zero and negative scores."""
    rng = np.random.default_rng(seed)
    y_true = (rng.random((n_rows, n_labels)) < 0.2).astype(float)
    y_true[rng.random(n_rows) < 0.2] = 0
    stored = rng.random((n_rows, n_labels)) < rng.random((n_rows, 1))
    stored[0], y_true[1] = False, 0
    scores = rng.integers(-2, 4, size=(n_rows, n_labels)) / 2
    rows, columns = np.nonzero(stored)
    y_score = sp.csr_array((scores[stored], (rows, columns)), shape=stored.shape)
    truth = [np.flatnonzero(row).tolist() for row in y_true]
    top = [
        naive_top({c: s[c] for c in np.flatnonzero(m)}, n_labels)
        for s, m in zip(scores, stored, strict=True)
    ]
    return y_true, y_score, truth, top, rng.uniform(0.05, 1, n_labels)


# ---- golden values


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("precision", "precision"),
        ("ndcg", "ndcg"),
        ("recall", "recall"),
        ("psp", "ps_precision"),
        ("psndcg", "ps_ndcg"),
    ],
)
def test_golden_metrics(name, key, k):
    p = 1 / np.array(GOLDEN["inverse_propensity"])
    value = at_k(name, GOLDEN["true_labels"], GOLDEN["predicted_top5"], k, p)
    assert value == pytest.approx(GOLDEN[key][k - 1], abs=1e-9)


def test_golden_propensities_and_report():
    n_labels = GOLDEN["n_labels"]
    p = metrics.propensities(GOLDEN["train_labels"], n_labels=n_labels)
    np.testing.assert_allclose(1 / p, GOLDEN["inverse_propensity"], atol=1e-9, rtol=0)
    y_true = to_matrix(GOLDEN["true_labels"], n_labels)
    top = np.array(GOLDEN["predicted_top5"])
    for extra in ({"propensities": p}, {"y_train": GOLDEN["train_labels"]}):
        report = metrics.ranking_report(y_true, top, ks=range(1, 6), **extra)
        for name, key in [("psp", "ps_precision"), ("psndcg", "ps_ndcg"), ("ndcg", "ndcg")]:
            values = [report[f"{name}@{k}"] for k in range(1, 6)]
            np.testing.assert_allclose(values, GOLDEN[key], atol=1e-9, rtol=0)


def to_matrix(lists, n_labels):
    matrix = sp.lil_array((len(lists), n_labels))
    for row, labels in enumerate(lists):
        matrix[row, labels] = 1
    return matrix.tocsr()


# ---- slow twins and input forms


@pytest.mark.parametrize("name", AT_K)
@pytest.mark.parametrize("seed", range(8))
def test_equals_the_naive_twin(name, seed):
    y_true, y_score, truth, top, p = random_case(seed)
    for k in (1, 2, 3, 5, 12, 50):
        expected = naive(name, truth, top, k, p)
        assert 0 <= expected <= 1
        assert at_k(name, y_true, y_score, k, p) == pytest.approx(expected, abs=1e-12)
        assert at_k(name, truth, np.array(top), k, p) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", AT_K)
def test_input_forms_agree(name):
    y_true, y_score, truth, top, p = random_case(3)
    top = np.array(top)
    # What is not stored in the sparse scores is -inf in the dense ones.
    dense = np.full(y_true.shape, -np.inf)
    coo = y_score.tocoo()
    dense[coo.row, coo.col] = coo.data
    trues = [y_true, y_true.astype(bool), y_true.astype(int), truth, [set(t) for t in truth]]
    trues += [form(y_true) for form in (sp.csr_array, sp.csc_matrix, sp.lil_array, sp.coo_matrix)]
    preds = [top, top.astype(np.int16), (top, np.zeros(top.shape)), top.tolist(), dense]
    preds += [dense.astype(np.float32), np.asfortranarray(dense)]
    preds += [form(y_score) for form in (sp.csr_matrix, sp.csc_array, sp.coo_array)]
    expected = at_k(name, y_true, y_score, 3, p)
    for true in trues:
        assert at_k(name, true, y_score, 3, p) == expected
    for pred in preds:
        assert at_k(name, y_true, pred, 3, p) == pytest.approx(expected, abs=1e-15)


def test_block_size_does_not_matter(monkeypatch):
    y_true, y_score, *_, p = random_case(5, n_rows=200)
    dense = y_score.toarray()
    whole = [metrics.ranking_report(y_true, s, propensities=p) for s in (y_score, dense)]
    monkeypatch.setattr(ranked_hits, "_CELLS", 30)
    monkeypatch.setattr(ranked_hits, "_MARKS", 30)
    assert whole == [metrics.ranking_report(y_true, s, propensities=p) for s in (y_score, dense)]


def test_input_is_not_changed():
    def read_only(matrix):
        for part in (matrix.data, matrix.indices, matrix.indptr):
            part.flags.writeable = False
        return matrix

    # Unsorted, 64-bit indices, a stored zero; in the scores a duplicate (0.2 + 0.4 on label 1).
    indptr = np.array([0, 2, 4], dtype=np.int64)
    y_true = sp.csr_matrix((np.array([1, 0]), np.array([2, 0]), [0, 1, 2]), shape=(2, 3))
    y_pred = sp.csr_matrix(
        (np.array([0.2, 0.5, 0.2, 0.4]), np.array([2, 0, 1, 1], dtype=np.int64), indptr),
        shape=(2, 3),
    )
    before = [y_pred.indices.copy(), y_pred.data.copy(), y_true.data.copy()]
    read_only(y_true), read_only(y_pred)
    assert metrics.precision_at_k(y_true, y_pred, k=2) == 0.25
    assert metrics.f1_score(y_true, y_true) == 1.0
    for old, new in zip(before, [y_pred.indices, y_pred.data, y_true.data], strict=True):
        np.testing.assert_array_equal(old, new)


def test_ties_zeros_and_missing_predictions():
    assert metrics.precision_at_k([[0], [1]], np.full((2, 2), 0.5), k=1) == 0.5
    # A dense zero ranks, an unstored one does not, a stored one does.
    dense = np.array([[0.0, 1.0]])
    stored = sp.csr_array((np.array([0.0, 1.0]), ([0, 0], [0, 1])), shape=(1, 2))
    assert metrics.precision_at_k([[0]], dense, k=2) == 0.5
    assert metrics.precision_at_k([[0]], sp.csr_array(dense), k=2) == 0.0
    assert metrics.precision_at_k([[0]], stored, k=2) == 0.5
    # Fewer predictions than k; a gap keeps its rank.
    assert metrics.precision_at_k([[0]], [[0]], k=10) == 0.1
    assert metrics.ndcg_at_k([[0]], [[-1, 0]], k=2) == pytest.approx(1 / math.log2(3))
    assert metrics.precision_at_k([[0]], np.empty((1, 0), dtype=int), k=1) == 0.0
    assert metrics.precision_at_k([[0]], sp.csr_array((1, 3)), k=1) == 0.0


def test_without_labels():
    report = metrics.ranking_report(np.zeros((2, 3)), [[0], [1]], ks=[1], propensities=[1, 1, 1])
    assert report.pop("precision@1") == 0.0
    assert all(math.isnan(value) for value in report.values())


def test_report_equals_the_functions():
    y_true, y_score, *_, p = random_case(7)
    report = metrics.ranking_report(y_true, y_score, ks=(1, 4), propensities=p)
    assert list(report) == [f"{name}@{k}" for name in AT_K for k in (1, 4)]
    for key, value in report.items():
        name, k = key.split("@")
        assert type(value) is float
        assert value == at_k(name, y_true, y_score, int(k), p)
    assert "psp@1" not in metrics.ranking_report(y_true, y_score)


# ---- set predictions


@pytest.mark.parametrize("average", ["micro", "macro", "samples"])
def test_f1_on_every_form(average):
    rng = np.random.default_rng(0)
    y_true, y_pred = (rng.random((2, 50, 7)) < 0.3).astype(int)
    expected = sklearn_f1_score(y_true, y_pred, average=average, zero_division=0)
    lists = [np.flatnonzero(row).tolist() for row in y_pred]
    for pred in (y_pred, y_pred == 1, sp.csr_matrix(y_pred), sp.csc_array(y_pred), lists):
        assert metrics.f1_score(y_true, pred, average) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(("average", "expected"), [("micro", 0.8), ("macro", 0.8)])
def test_f1_of_one_label(average, expected):
    assert metrics.f1_score([[0], [0], [0]], [[0], [0], []], average) == pytest.approx(expected)


def test_f1_samples_by_hand():
    # Rows: 2·1/(2+1), 2·0/(1+1), nothing true and nothing predicted: 0.
    value = metrics.f1_score([[0, 1], [2], []], [[0], [1], []], average="samples")
    assert value == pytest.approx((2 / 3 + 0 + 0) / 3)


# ---- propensities


@pytest.mark.parametrize(
    ("name", "a", "b"),
    [
        ("amazon-670k", 0.6, 2.6),
        ("Amazon-3M", 0.6, 2.6),
        ("LF-AmazonTitles-1.3M", 0.6, 2.6),
        ("WikiLSHTC-325K", 0.5, 0.4),
        ("Wikipedia-500K", 0.5, 0.4),
        ("wiki-500k", 0.5, 0.4),
        ("AmazonCat-13K", 0.55, 1.5),
        ("EUR-Lex", 0.55, 1.5),
        ("eurlex57k", 0.55, 1.5),
        ("Wiki10_31K", 0.55, 1.5),
        ("Delicious-200K", 0.55, 1.5),
        ("mediamill", 0.55, 1.5),
        (None, 0.55, 1.5),
    ],
)
def test_propensities_by_name(name, a, b):
    labels = [[0], [0, 1], [0, 3], [0]]
    c = (math.log(4) - 1) * (b + 1) ** a
    expected = [1 / (1 + c * (n + b) ** -a) for n in (4, 1, 0, 1)]
    np.testing.assert_allclose(metrics.propensities(labels, dataset=name), expected)
    np.testing.assert_allclose(metrics.propensities(to_matrix(labels, 4), a=a, b=b), expected)


# ---- scorers


class Popular(ClassifierMixin, BaseEstimator):
    """Predicts the training labels by frequency; names where Y is lists, as LdSMClassifier."""

    def __init__(self, reverse=False):
        self.reverse = reverse

    def fit(self, X, y):
        zeros_and_ones = isinstance(y, list) and isinstance(y[0][0], int)
        self.names_ = not (zeros_and_ones or getattr(y, "ndim", 1) == 2)
        if self.names_:
            rows = [row if isinstance(row, list | tuple) else [row] for row in y]
            binarizer = MultiLabelBinarizer().fit(rows)
            self.classes_, matrix = binarizer.classes_, binarizer.transform(rows)
        else:
            matrix = sp.csr_array(y).toarray()
            self.classes_ = np.arange(matrix.shape[1])
        self.counts_ = matrix.sum(axis=0)
        return self

    def predict_topk(self, X, k=5):
        order = np.argsort(self.counts_ if self.reverse else -self.counts_, kind="stable")[:k]
        labels = np.tile(order, (len(X), 1))
        if self.names_:
            labels = self.classes_.astype(object)[labels]
        return labels, np.tile(self.counts_[order].astype(float), (len(X), 1))


@pytest.fixture(scope="module")
def tags():
    rng = np.random.default_rng(0)
    chances = np.array([0.6, 0.4, 0.3, 0.2, 0.1])
    Y = (rng.random((60, 5)) < chances).astype(int)
    Y[7, 4] = 1
    return rng.random((60, 3)), Y, [[f"tag{c}" for c in np.flatnonzero(row)] for row in Y]


@pytest.mark.parametrize("metric", ["precision", "ndcg", "recall", "coverage"])
def test_scorer_label_forms(tags, metric):
    X, Y, names = tags
    scorer = pickle.loads(pickle.dumps(metrics.topk_scorer(metric, k=2)))
    # KFold is named since scikit-learn looks for classes in y otherwise, and refuses lists.
    folds = KFold(4)
    scores = [
        cross_val_score(Popular(), X, y, cv=folds, scoring=scorer, error_score="raise")
        for y in (Y, Y.tolist(), names, to_objects(names))
    ]
    # cross_val_score takes no sparse y; GridSearchCV does.
    for y in (sp.csr_matrix(Y), sp.csr_array(Y)):
        search = GridSearchCV(Popular(), {}, scoring=scorer, cv=folds, error_score="raise")
        results = search.fit(X, y).cv_results_
        scores.append([results[f"split{fold}_test_score"][0] for fold in range(4)])
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0])
    train, test = next(folds.split(X))
    top = Popular().fit(X[train], Y[train]).predict_topk(X[test], k=2)
    assert scores[0][0] == at_k(metric, Y[test], top, 2, None)


def to_objects(names):
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


@pytest.mark.parametrize("metric", WEIGHTED)
def test_propensity_scorer(tags, metric):
    X, Y, names = tags
    p = metrics.propensities(Y)
    by_column = metrics.topk_scorer(metric, k=3, propensities=p)
    by_name = metrics.topk_scorer(
        metric, k=3, propensities={f"tag{c}": value for c, value in enumerate(p)}
    )
    expected = by_column(Popular().fit(X, Y), X, Y)
    assert expected == at_k(metric, Y, Popular().fit(X, Y).predict_topk(X, k=3), 3, p)
    assert by_name(Popular().fit(X, names), X, names) == pytest.approx(expected)
    with pytest.raises(ValueError, match="'propensities' argument must be a dict"):
        by_column(Popular().fit(X, names), X, names)


def test_scorer_in_grid_search(tags):
    X, Y, _ = tags
    scoring = {"p1": metrics.topk_scorer("precision", k=1), "n3": metrics.topk_scorer("ndcg", k=3)}
    search = GridSearchCV(Popular(), {"reverse": [True, False]}, scoring=scoring, refit="n3", cv=3)
    assert clone(search).fit(X, sp.csr_array(Y)).best_params_ == {"reverse": False}


def test_scorer_of_labels_unseen_in_training():
    X = np.zeros((2, 1))
    model = Popular().fit(X, [["a"], ["a", "b"]])
    y = [["a", "new"], ["other"]]
    assert metrics.topk_scorer("precision", k=1)(model, X, y) == 0.5
    assert metrics.topk_scorer("recall", k=1)(model, X, y) == 0.25
    assert metrics.topk_scorer("precision", k=1)(model, X, np.array(["a", "b"])) == 0.5


def test_scorer_without_predict_topk(tags):
    X, Y, _ = tags
    model = make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression())).fit(X, Y)
    expected = metrics.precision_at_k(Y, model.predict_proba(X), k=2)
    assert metrics.topk_scorer(k=2)(model, X, Y) == expected
    with pytest.raises(ValueError, match="'estimator' argument must be one with predict_topk"):
        metrics.topk_scorer(k=2)(StandardScaler(), X, Y)


@pytest.mark.parametrize(
    ("metric", "average"), [("f1", "samples"), ("f1_micro", "micro"), ("f1_macro", "macro")]
)
def test_f1_scorer_label_forms(metric, average):
    data = datasets.make_xmc(200, 40, 8, seed=0)
    columns = [f"tag {i}" for i in range(8)]
    frame = pd.DataFrame(data.Y.toarray(), columns=columns)
    names = [[columns[label] for label in row] for row in data.labels]
    scorer = pickle.loads(pickle.dumps(metrics.topk_scorer(metric)))
    model = LdSMClassifier(2, threshold=0.2)
    Y = data.Y.toarray()
    expected = metrics.f1_score(Y, clone(model).fit(data.X, Y).predict(data.X), average)
    assert 0.1 < expected < 1
    for y in (data.Y, Y, names, frame, data.labels):
        assert scorer(clone(model).fit(data.X, y), data.X, y) == pytest.approx(expected)
    one_each = np.array([row[0] if row else "none" for row in names], dtype=object)
    found = scorer(clone(model).fit(data.X, one_each), data.X, one_each)
    if average != "macro":
        assert found == np.mean(clone(model).fit(data.X, one_each).predict(data.X) == one_each)
    linear = OneVsRestClassifier(LogisticRegression()).fit(data.X, Y)
    assert scorer(linear, data.X, Y) == metrics.f1_score(Y, linear.predict(data.X), average)


def test_f1_scorer_of_unknown_labels_and_wrong_input():
    X = np.eye(4)
    model = LdSMClassifier(3, n_epochs=50).fit(X, [["a"], ["b"], ["a"], ["b"]])
    scorer = metrics.topk_scorer("f1")
    model.predict = lambda X: [["a"], ["b"], ["a"], []]
    assert scorer(model, X, [["a"], ["new", "b"], ["new"], ["b"]]) == pytest.approx((1 + 2 / 3) / 4)
    with pytest.raises(ValueError, match="'y' argument must be lists of labels, or a DataFrame"):
        scorer(model, X, np.eye(4))
    model.predict = lambda X: [["c"]] * 4
    with pytest.raises(ValueError, match=r"labels of its classes_\. Got 'c' instead"):
        scorer(model, X, [["a"]] * 4)
    with pytest.raises(ValueError, match="'estimator' argument must be one with predict_sets"):
        scorer(StandardScaler(), X, [["a"]] * 4)


def test_scorer_refuses_labels_outside_classes():
    model = Popular().fit(np.zeros((2, 1)), [["a"], ["b"]])
    model.predict_topk = lambda X, k: (np.array([["c"], ["a"]], dtype=object), None)
    with pytest.raises(ValueError, match=r"labels of its classes_\. Got 'c' instead"):
        metrics.topk_scorer()(model, np.zeros((2, 1)), [["a"], ["b"]])


# ---- errors

TRUE = [[0], [1]]
MATRIX = np.eye(2)


@pytest.mark.parametrize(
    ("y_true", "y_pred", "k", "message"),
    [
        (TRUE, [[0], [1]], 0, "'k' argument must be an integer >= 1. Got 0"),
        (TRUE, [[0], [1]], 1.0, "'k' argument must be an integer >= 1. Got 1.0"),
        (TRUE, [[0], [1]], True, "'k' argument must be an integer >= 1. Got True"),
        (TRUE, [[0]], 1, r"same number of rows, at least 1. Got \[2, 1\]"),
        ([], np.empty((0, 1), dtype=int), 1, r"at least 1. Got \[0, 0\]"),
        (MATRIX, np.zeros((2, 3)), 1, r"'y_true and y_pred' .* number of labels. Got \[2, 3\]"),
        (MATRIX, [[0], [2]], 1, "'y_pred' .* below the number of labels, 2. Got label id 2"),
        ([[0], [5]], MATRIX, 1, "'y_true' .* below the number of labels, 2. Got label id 5"),
        (TRUE, [[0], [-2]], 1, "'y_pred' .* from -1 .* Got label id -2"),
        ([[0], [-1]], [[0], [1]], 1, "'y_true' .* from 0 .* Got label id -1"),
        (TRUE, [[0], [2**40]], 1, f"'y_pred' .* Got label id {2**40}"),
        (TRUE, [[0, 0], [1, 0]], 1, "distinct label ids .* Got label 0 twice in row 0"),
        (TRUE, [[0], [1, 2]], 1, "'y_pred' .* -1 fills .* Got rows of unequal length"),
        (TRUE, [0, 1], 1, r"'y_pred' .* 2-D .* shape \(2,\)"),
        (TRUE, MATRIX == 1, 1, r"'y_pred' .* Got bool of shape \(2, 2\)"),
        (TRUE, [["a"], ["b"]], 1, "'y_pred' argument must be a 2-D array of integer"),
        (TRUE, np.array([[0.1, np.nan], [0, 1]]), 1, "'y_pred' .* free of nan"),
        (TRUE, sp.csr_array([[0.1, np.nan], [0, 1]]), 1, "'y_pred' .* free of nan"),
        (TRUE, sp.csr_array([[1j, 0], [0, 1]]), 1, "scores of dtype complex128"),
        (TRUE, sp.coo_array(np.ones(2)), 1, "'y_pred' argument must be a 2-D"),
        (TRUE, ([[0], [1]],), 1, r"a tuple \(labels, scores\). Got a tuple of 1"),
        (TRUE, ([[0], [1]], [[0.5, 0.5]] * 2), 1, r"Got scores of shape \(2, 2\)"),
        (TRUE, ([[0], [1]], [[0.5], [np.nan]]), 1, "'y_pred' .* free of nan"),
        (TRUE, ([[0.5], [0.5]], [[0], [1]]), 1, "'y_pred' .* Got float64"),
        (MATRIX * 2, [[0], [1]], 1, "'y_true' .* matrix of 0 and 1. Got 2.0"),
        (MATRIX * np.nan, [[0], [1]], 1, "'y_true' .* matrix of 0 and 1. Got nan"),
        (sp.csr_array(MATRIX * -1), [[0], [1]], 1, "'y_true' .* matrix of 0 and 1. Got -1.0"),
        (np.array([["a"], ["b"]]), [[0], [1]], 1, "'y_true' .* Got <U1 of shape"),
        ([["a"], ["b"]], [[0], [1]], 1, "'y_true' .* integer label ids. Got labels of dtype <U1"),
        ([0, 1], [[0], [1]], 1, "'y_true' .* list of lists .* Got 'list'"),
        ([[0, 0, 1], [1, 0, 0]], [[0], [1]], 1, "'y_true' .* Got label 0 twice in a row"),
        (None, [[0], [1]], 1, "'y_true' .* Got 'NoneType'"),
    ],
)
def test_errors(y_true, y_pred, k, message):
    with pytest.raises(ValueError, match=message):
        metrics.precision_at_k(y_true, y_pred, k)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.psp_at_k(TRUE, TRUE, propensities=[2.0, 1.0]), r"\(0, 1\].* Got 2.0"),
        (lambda: metrics.psp_at_k(TRUE, TRUE, propensities=[0.0, 1.0]), r"\(0, 1\].* Got 0.0"),
        (lambda: metrics.psp_at_k(TRUE, TRUE, propensities=[np.nan, 1]), "Got nan"),
        (lambda: metrics.psp_at_k(TRUE, TRUE, propensities=[[1.0, 1]]), r"Got shape \(1, 2\)"),
        (lambda: metrics.psp_at_k(TRUE, TRUE, propensities={"a": 1}), "Got 'dict'"),
        (lambda: metrics.psp_at_k(MATRIX, TRUE, propensities=[1, 1, 1]), r"Got \[2, 3\]"),
        (lambda: metrics.psp_at_k(TRUE, TRUE, propensities=[1.0]), "Got label id 1"),
        (lambda: metrics.propensities(TRUE), "at least 3 rows.* Got 2 rows"),
        (lambda: metrics.propensities(TRUE * 2, dataset="imagenet"), "Got 'imagenet'"),
        (lambda: metrics.propensities(TRUE * 2, dataset="bibtex", a=1, b=1), "None if a and b"),
        (lambda: metrics.propensities(TRUE * 2, a=1), r"'a, b' .* Got \(1, None\)"),
        (lambda: metrics.propensities(TRUE * 2, a=1, b=-1), r"'a, b' .* Got \(1, -1\)"),
        (lambda: metrics.propensities(TRUE * 2, n_labels=1), "below the number of labels, 1"),
        (lambda: metrics.propensities(np.eye(3), n_labels=5), r"Got \[5, 3\]"),
        (lambda: metrics.ranking_report(TRUE, TRUE, ks=[]), "'ks' argument must be a non-empty"),
        (lambda: metrics.ranking_report(TRUE, TRUE, ks=[0]), "'k' argument .* Got 0"),
        (lambda: metrics.ranking_report(TRUE, TRUE, dataset="bibtex"), "y_train is not given"),
        (
            lambda: metrics.ranking_report(TRUE, TRUE, propensities=[1, 1], y_train=TRUE),
            "None if propensities",
        ),
        (lambda: metrics.f1_score(TRUE, TRUE, average="weighted"), "Got 'weighted'"),
        (lambda: metrics.f1_score(MATRIX, np.zeros((2, 3))), r"Got \[2, 3\]"),
        (lambda: metrics.f1_score(MATRIX, MATRIX / 2), "'y_pred' .* Got 0.5"),
        (lambda: metrics.topk_scorer("map"), "'metric' argument must be one of .* Got 'map'"),
        (lambda: metrics.topk_scorer("precision", k=0), "'k' argument"),
        (lambda: metrics.topk_scorer("f1", k=3), "'k' argument must be None for F1.* Got 3"),
        (lambda: metrics.topk_scorer("psp"), "'propensities' argument must be given"),
        (lambda: metrics.topk_scorer("ndcg", propensities=[1]), "'propensities' argument must be"),
    ],
)
def test_other_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# -- names ----------------------------------------------------------------------------------------


def test_labels_may_be_names():
    names = ["ash", "beech", "cedar", "date"]
    true, top = [[0, 2], [1], [], [3]], np.array([[2, 1], [1, 0], [0, 3], [0, -1]])
    by_name = [[names[label] for label in row] for row in true]
    named = np.array([[names[i] if i >= 0 else None for i in row] for row in top], dtype=object)
    train = [[0, 1], [2, 3], [0], [1]]
    expected = metrics.ranking_report(true, top, [1, 2], y_train=train)
    for y_true in (by_name, pd.DataFrame(to_matrix(true, 4).toarray(), columns=names)):
        found = metrics.ranking_report(
            y_true, named, [1, 2], y_train=[[names[label] for label in row] for row in train]
        )
        assert found == pytest.approx(expected)
    scores = np.array([[0.9, 0.1]] * 4)
    assert metrics.precision_at_k(by_name, (named, scores), 2) == expected["precision@2"]
    unknown = np.array([["elm", "ash"]] * 4, dtype=object)  # a label that no row has is a miss
    assert metrics.precision_at_k(by_name, unknown, 1) == 0


def test_names_cannot_be_compared_with_columns():
    named = np.array([["a"], ["b"]], dtype=object)
    with pytest.raises(ValueError, match="a DataFrame with named columns.*a matrix without names"):
        metrics.precision_at_k(np.eye(2), named, 1)


def test_scorer_takes_dataframes_and_lists():
    data = datasets.make_xmc(150, 40, 8, seed=0)
    columns = [f"tag {i}" for i in range(8)]
    frame = pd.DataFrame(data.Y.toarray(), columns=columns)
    names = [[columns[label] for label in row] for row in data.labels]
    scorer = metrics.topk_scorer("ndcg", 3)
    expected = scorer(LdSMClassifier(2).fit(data.X, data.Y), data.X, data.Y)
    assert scorer(LdSMClassifier(2).fit(data.X, frame), data.X, frame) == pytest.approx(expected)
    assert scorer(LdSMClassifier(2).fit(data.X, names), data.X, frame) == pytest.approx(expected)
