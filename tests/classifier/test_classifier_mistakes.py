"""What LdSMClassifier refuses, and its error messages."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from small_classifier import XS, YS, X, small


def test_predict_before_fit():
    with pytest.raises(NotFittedError):
        small().predict_topk(XS)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("arity", 1, r"an int in \[2, 8\]"),
        ("arity", 2.5, r"an int in \[2, 8\]"),
        ("n_estimators", 0, r"'auto' or an int in \[1, 1000000\]"),
        ("max_nodes", "many", r"'auto' or an int in \[1, 2147483632\]"),
        ("n_epochs", 10**400, r"'auto' or an int in \[1, 1000000\]"),
        ("learning_rate", 0.0, "'auto' or a float > 0"),
        ("learning_rate", float("nan"), "'auto' or a float > 0"),
        ("integrity_weight", -1, r"a float in \[0, 1e\+30\]"),
        ("integrity_weight", 1e31, r"a float in \[0, 1e\+30\]"),
        ("multiway_penalty", "big", r"'auto' or a float in \[0, 1e\+30\]"),
        ("relax_integrity", "yes", "a bool"),
        ("optimizer", "adam", "'auto' or 'nag' or 'sgd' or 'asgd'"),
        ("leaf_scores", "counts", "'probability' or 'histogram'"),
        ("standardize", 3, "'auto' or a bool"),
        ("subsample", 0, r"'auto' or a float in \(0, 1\]"),
        ("rerank", "best", "'auto' or None or 'tail' or 'linear'"),
        ("rerank", False, "'auto' or None or 'tail' or 'linear'"),
        ("tail_blend", 1.5, r"a float in \[0, 1\]"),
        ("tail_gamma", 0, "'auto' or a float > 0"),
        ("tail_min_rows", 0, "an int >= 1"),
        ("n_jobs", 0, "None or an int other than 0"),
        ("optimizer", np.array(["nag", "sgd"]), "'auto' or 'nag'"),
    ],
)
def test_bad_parameters(name, value, allowed):
    message = rf"The '{name}' parameter of LdSMClassifier must be {allowed}.*Got .* instead"
    with pytest.raises(ValueError, match=message):
        small(**{name: value}).fit(XS, YS)


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([[np.nan, 1], [0, 1]], [["a"], ["b"]], "Input X contains NaN"),
        ([[np.inf, 1], [0, 1]], [["a"], ["b"]], "Input X contains infinity"),
        (sp.csr_matrix([[np.nan, 1], [0, 1]]), [["a"], ["b"]], "Input X contains NaN"),
        ([1, 2], [["a"], ["b"]], "Expected 2D array"),
        (np.zeros((0, 3)), [], "at least one|0 sample|empty"),
        ([[1, 0], [0, 1]], [[], []], "at least one label"),
        ([[1, 0], [0, 1]], np.zeros((2, 3)), "at least one label"),
        ([[1, 0], [0, 1]], sp.csr_matrix((2, 3)), "at least one label"),
        ([[1, 0], [0, 1]], [["a"]], "same number of rows.*2 and 1"),
        ([[1, 0], [0, 1]], [[0, 2], [1, 0]], None),
        (
            [[1, 0], [0, 1]],
            np.array([[0, 2], [1, 0]]),
            "'y' argument must be a matrix of 0 and 1. Got 2",
        ),
        ([[1, 0], [0, 1]], sp.csr_matrix([[0, -1], [1, 0]]), "0 and 1"),
        ([[1, 0], [0, 1]], [["a"], "b"], "mixes lists.*'b' at row 1"),
        ([[1, 0], [0, 1]], [["a"], [["nested"]]], "hashable.*nested.*row 1"),
        ([[1, 0], [0, 1]], [["a"], [None]], "must not be missing. Got None"),
        ([[1, 0], [0, 1]], [0.5, 1.5], "Unknown label type"),
        ([[1, 0], [0, 1]], None, "requires y"),
        ([[1, 0], [0, 1]], np.zeros((2, 2, 2)), "one or two dimensions"),
    ],
)
def test_bad_data(X, Y, message):
    if message is None:
        small().fit(X, Y)  # nested lists that are not 0/1 are labels: 0, 1 and 2
        return
    with pytest.raises(ValueError, match=message):
        small().fit(X, Y)


def test_explain_takes_one_row():
    with pytest.raises(ValueError, match="exactly one row"):
        small().fit(XS, YS).explain(XS[:2])


def test_failed_fit_keeps_model():
    clf = small().fit(XS, YS)
    before = clf.fingerprint_
    with pytest.raises(ValueError):
        clf.fit(XS, np.zeros((300, 12)))
    with pytest.raises(ValueError):
        clf.fit(XS[:, :5], YS[:10])
    assert clf.fingerprint_ == before
    assert clf.predict_topk(XS, k=1)[0].shape == (300, 1)


def test_callback_error_ends_fit():
    def fail(done, total):
        raise RuntimeError("no more")

    clf = small(n_estimators=1000, n_epochs=200)
    with pytest.raises(RuntimeError, match="no more"):
        clf.fit(XS, YS, callback=fail)
    assert not hasattr(clf, "forest_")


def test_float32_rounding_to_zero_and_to_infinity():
    tiny = X.astype(np.float64)
    tiny[0, 0] = 1e-60
    clean = tiny.copy()
    clean[0, 0] = 0
    assert small().fit(tiny, YS).fingerprint_ == small().fit(clean, YS).fingerprint_
    tiny[0, 0] = 1e60
    with pytest.raises(ValueError, match=r"Input X must hold finite values that float32.*1e\+60"):
        small().fit(tiny, YS)
