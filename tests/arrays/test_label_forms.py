"""Y in its forms, and what comes back for each."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning
from sklearn.preprocessing import MultiLabelBinarizer

from ldsm import LdSMClassifier
from ldsm.datasets import Dataset, make_xmc
from small_classifier import XS, YS, X, Y, lists_of, small


def test_sparse_matrix_gives_columns_and_csr():
    clf = small().fit(XS, YS)
    labels, scores = clf.predict_topk(XS, k=3)
    assert labels.shape == scores.shape == (300, 3)
    assert labels.dtype.kind == "i" and scores.dtype == np.float32
    assert np.all(np.diff(scores, axis=1) <= 0)
    proba = clf.predict_proba(XS)
    assert sp.issparse(proba) and proba.format == "csr" and proba.shape == (300, 12)
    assert proba.max() <= 1
    np.testing.assert_array_equal(proba[[[0], [1]], labels[:2]].toarray(), scores[:2])
    predicted = clf.predict(XS)
    np.testing.assert_array_equal(predicted.toarray(), (proba.toarray() >= 0.5).astype(int))
    assert clf.classes_.tolist() == list(range(12))


def test_dense_labels_give_dense_answers():
    sparse, dense = small().fit(XS, YS), small().fit(X, Y)
    assert dense.forest_.fingerprint() == sparse.forest_.fingerprint()
    proba = dense.predict_proba(X)
    assert isinstance(proba, np.ndarray) and proba.shape == (300, 12)
    np.testing.assert_allclose(proba, sparse.predict_proba(XS).toarray(), rtol=1e-6)
    assert isinstance(dense.predict(X), np.ndarray)
    # Rectangular nested lists of 0 and 1 are an indicator too.
    assert small().fit(X, Y.tolist()).forest_.fingerprint() == sparse.forest_.fingerprint()
    assert small().fit(X, pd.DataFrame(Y)).forest_.fingerprint() == sparse.forest_.fingerprint()


@pytest.mark.parametrize(
    "names",
    [
        [f"tag {i:02}" for i in range(12)],
        [("a", i) for i in range(12)],
        [10 * i for i in range(12)],
        [frozenset([i]) for i in range(12)],  # hashable, but not ordered
    ],
)
def test_label_lists_round_trip(names):
    clf = small().fit(XS, lists_of(Y, names))
    labels, _ = clf.predict_topk(XS, k=2)
    assert all(label in names for label in labels.ravel().tolist())
    assert sp.issparse(clf.predict_proba(XS))
    columns, _ = small().fit(XS, YS).predict_topk(XS, k=2)
    if isinstance(names[0], (str, int)):  # their sorted order is the order of the columns
        assert labels.tolist() == [[names[k] for k in row] for row in columns]
    rows = pd.Series(lists_of(Y, names))
    assert small().fit(XS, rows).fingerprint_ == clf.fingerprint_


def test_duplicate_labels_count_once():
    twice = [[*labels, *labels] for labels in lists_of(Y, "abcdefghijkl")]
    assert (
        small().fit(XS, twice).fingerprint_
        == small().fit(XS, lists_of(Y, "abcdefghijkl")).fingerprint_
    )


def test_single_labels():
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    clf = small(n_estimators=20).fit(XS, y)
    predicted = clf.predict(XS)
    assert predicted.shape == (300,) and set(predicted) <= {"a", "b", "c"}
    assert clf.score(XS, y) == np.mean(predicted == y) > 0.8
    proba = clf.predict_proba(XS)
    assert proba.shape == (300, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-6)
    assert clf.predict_topk(XS[:1], k=1)[0][0, 0] == predicted[0]


def test_score_is_precision_at_one():
    clf = small().fit(XS, YS)
    best = clf.predict_topk(XS, k=1)[0][:, 0]
    expected = np.mean(Y[np.arange(300), best])
    assert clf.score(XS, YS) == pytest.approx(expected)
    names = [f"t{i:02}" for i in range(12)]
    by_name = small().fit(XS, lists_of(Y, names))
    assert by_name.score(XS, lists_of(Y, names)) == pytest.approx(expected)
    # A label that training never saw is a miss, not an error.
    assert by_name.score(XS[:2], [["unseen"], ["unseen"]]) == 0


def test_only_some_labels_compete():
    clf = small().fit(XS, lists_of(Y, "abcdefghijkl"))
    labels, scores = clf.predict_topk(XS, k=2, only=["b", "k"])
    assert {*labels.ravel().tolist()} == {"b", "k"}
    everything = clf.predict_proba(XS).toarray()
    columns = np.searchsorted(clf.classes_, labels)
    np.testing.assert_array_equal(np.take_along_axis(everything, columns, axis=1), scores)
    with pytest.raises(ValueError, match="'only' parameter.*'z'"):
        clf.predict_topk(XS, only=["z"])
    with pytest.raises(ValueError, match=r"'k' parameter must be an int in \[1, 2\]. Got 3"):
        clf.predict_topk(XS, k=3, only=["b", "k"])


def test_dataset_label_names():
    names = [f"tag {i:02}" for i in range(12)]
    data = Dataset(XS, YS, label_names=names)
    clf = small().fit(data)
    assert clf.forest_.fingerprint() == small().fit(XS, YS).forest_.fingerprint()
    assert set(clf.predict_topk(XS, k=2)[0].ravel()) <= set(names)
    with pytest.raises(ValueError, match="includes its labels"):
        small().fit(data, YS)
    with pytest.raises(ValueError, match="X must hold features. Got a Dataset of texts"):
        small().fit(Dataset.from_texts(["a", "b"], [["x"], ["y"]]))
    with pytest.raises(ValueError, match="'callback' argument must be callable. Got 3"):
        small().fit(data, callback=3)


def test_missing_labels_filled_by_frequency():
    clf = LdSMClassifier(n_estimators=1, random_state=0).fit(
        [[1, 0], [1, 0], [0, 1], [0, 1], [0, 1]], [["a"], ["a"], ["b"], ["b", "c"], ["b"]]
    )
    labels, scores = clf.predict_topk([[1, 0]], k=3)
    assert labels[0].tolist() == ["a", "b", "c"]
    assert scores[0].tolist() == [1, 0, 0]


def test_label_types_round_trip():
    for names in (["a\0", "a"], [2**63, -1], [1, "a"], [True, "b"]):
        y = [names[i % 2] for i in range(20)]
        clf = small(n_estimators=1).fit(X[:20], y)
        assert set(clf.classes_.tolist()) == set(names)
        assert {type(c) for c in clf.classes_.tolist()} == {type(n) for n in names}
        clf = small(n_estimators=1).fit(X[:20], [[label] for label in y])
        assert set(clf.classes_.tolist()) == set(names)


def test_single_label_probabilities_sum_to_1():
    """Also with a second stage, which judges each label by itself."""
    data = make_xmc(600, 80, 12, labels_per_row=2, seed=0)
    one_each = np.array([labels[0] if labels else 0 for labels in data.labels])
    for rerank in ("linear", None):
        clf = LdSMClassifier(5, rerank=rerank, random_state=0).fit(data.X, one_each)
        scores = clf.predict_proba(data.X)
        np.testing.assert_allclose(scores.sum(axis=1), 1, atol=1e-6)
        assert np.array_equal(clf.classes_[scores.argmax(axis=1)], clf.predict(data.X))


def test_single_label_score_shape():
    y = np.arange(300) % 3
    clf = small().fit(XS, y)
    for wrong in (y[:10], [1], None, YS):
        with pytest.raises(ValueError, match="y"):
            clf.score(XS, wrong)


# -- names ----------------------------------------------------------------------------------------


def test_lists_predict_lists():
    names = [f"tag {i:02}" for i in range(12)]
    clf, columns = small().fit(XS, lists_of(Y, names)), small().fit(XS, YS)
    predicted, matrix = clf.predict(XS), columns.predict(XS)
    assert isinstance(predicted, list) and len(predicted) == 300
    assert [sorted(row) for row in predicted] == lists_of(matrix.toarray(), names)
    scores = clf.predict_proba(XS).toarray()
    column = {name: i for i, name in enumerate(names)}
    for row, score in zip(predicted, scores, strict=True):  # best first
        values = [score[column[name]] for name in row]
        assert values == sorted(values, reverse=True)


def test_label_binarizer_round_trip():
    names = [f"tag {i:02}" for i in range(12)]
    binarizer = MultiLabelBinarizer(sparse_output=True)
    matrix = binarizer.fit_transform(lists_of(Y, names))
    by_matrix = small().fit(XS, matrix).predict(XS)
    by_names = small().fit(XS, lists_of(Y, names)).predict(XS)
    from_columns = [list(row) for row in binarizer.inverse_transform(by_matrix)]
    assert from_columns == [sorted(row) for row in by_names]


def test_label_dataframe_columns():
    names = [f"tag {i:02}" for i in range(12)]
    frame = pd.DataFrame(Y, columns=names)
    clf = small().fit(X, frame)
    assert clf.classes_.tolist() == names
    assert set(clf.predict_topk(X, k=2)[0].ravel()) <= set(names)
    assert isinstance(clf.predict(X), np.ndarray)
    plain = small().fit(X, Y)
    assert clf.forest_.fingerprint() == plain.forest_.fingerprint()
    # Columns are matched by name, whatever their order; unknown ones are left out.
    shuffled = frame[names[::-1]].assign(new=0)
    assert clf.score(X, shuffled) == clf.score(X, frame) == plain.score(X, frame) > 0.5
    assert clf.score(X, frame) == clf.score(X, Y)  # a plain matrix has columns only
    boolean = small().fit(X, frame.astype(bool))
    assert boolean.classes_.tolist() == names


def test_dataframes_with_odd_columns():
    assert small().fit(X, pd.DataFrame(Y)).classes_.tolist() == list(range(12))
    twice = pd.DataFrame(Y, columns=["a", "a", *map(str, range(10))])
    with pytest.raises(ValueError, match="different names. Got 'a' twice"):
        small().fit(X, twice)
    one = pd.DataFrame({"topic": ["a", "b", "c"] * 100})
    with pytest.warns(DataConversionWarning):
        assert small().fit(X, one).classes_.tolist() == ["a", "b", "c"]
