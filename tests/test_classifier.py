"""LdSMClassifier as its users meet it."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from ldsm import LdSMClassifier
from ldsm.datasets import Dataset, make_xmc
from ldsm.inputs import feature_arrays
from naive import bag
from problems import make_problem

X, Y = make_problem(0, "weights", n_rows=300, n_features=40, n_labels=12)
XS, YS = sp.csr_array(X), sp.csr_array(Y)


def small(**changes):
    return LdSMClassifier(**{"n_estimators": 4, "random_state": 3, **changes})


def lists_of(Y, names):
    return [[names[k] for k in np.flatnonzero(row)] for row in Y]


# -- forms of Y and what comes back ------------------------------------------------------------


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


def test_dense_matrix_gives_dense_arrays_and_the_same_trees():
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
def test_lists_of_labels_come_back_by_name(names):
    clf = small().fit(XS, lists_of(Y, names))
    labels, _ = clf.predict_topk(XS, k=2)
    assert all(label in names for label in labels.ravel().tolist())
    assert sp.issparse(clf.predict_proba(XS))
    columns, _ = small().fit(XS, YS).predict_topk(XS, k=2)
    if isinstance(names[0], (str, int)):  # their sorted order is the order of the columns
        assert labels.tolist() == [[names[k] for k in row] for row in columns]
    rows = pd.Series(lists_of(Y, names))
    assert small().fit(XS, rows).fingerprint_ == clf.fingerprint_


def test_a_label_named_twice_counts_once():
    twice = [[*labels, *labels] for labels in lists_of(Y, "abcdefghijkl")]
    assert (
        small().fit(XS, twice).fingerprint_
        == small().fit(XS, lists_of(Y, "abcdefghijkl")).fingerprint_
    )


def test_one_label_per_row():
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
    labels, scores = clf.predict_topk(XS, k=2, labels=["b", "k"])
    assert {*labels.ravel().tolist()} == {"b", "k"}
    everything = clf.predict_proba(XS).toarray()
    columns = np.searchsorted(clf.classes_, labels)
    np.testing.assert_array_equal(np.take_along_axis(everything, columns, axis=1), scores)
    with pytest.raises(ValueError, match="'labels' parameter.*'z'"):
        clf.predict_topk(XS, labels=["z"])
    with pytest.raises(ValueError, match=r"'k' parameter must be an int in \[1, 2\]. Got 3"):
        clf.predict_topk(XS, k=3, labels=["b", "k"])


def test_a_dataset_brings_labels_and_their_names():
    names = [f"tag {i:02}" for i in range(12)]
    data = Dataset(XS, YS, label_names=names)
    clf = small().fit(data)
    assert clf.forest_.fingerprint() == small().fit(XS, YS).forest_.fingerprint()
    assert set(clf.predict_topk(XS, k=2)[0].ravel()) <= set(names)
    with pytest.raises(ValueError, match="brings its own labels"):
        small().fit(data, YS)
    with pytest.raises(ValueError, match="X must hold features. Got a Dataset of texts"):
        small().fit(Dataset.from_texts(["a", "b"], [["x"], ["y"]]))
    with pytest.raises(ValueError, match="'callback' argument must be callable. Got 3"):
        small().fit(data, callback=3)


def test_shortage_is_filled_by_frequency_at_score_zero():
    clf = LdSMClassifier(n_estimators=1, random_state=0).fit(
        [[1, 0], [1, 0], [0, 1], [0, 1], [0, 1]], [["a"], ["a"], ["b"], ["b", "c"], ["b"]]
    )
    labels, scores = clf.predict_topk([[1, 0]], k=3)
    assert labels[0].tolist() == ["a", "b", "c"]
    assert scores[0].tolist() == [1, 0, 0]


# -- forms of X --------------------------------------------------------------------------------


def forms_of(X):
    csr = sp.csr_matrix(X)
    unsorted = csr.copy()
    for i in range(X.shape[0]):
        part = slice(*unsorted.indptr[i : i + 2])
        unsorted.indices[part] = unsorted.indices[part][::-1].copy()
        unsorted.data[part] = unsorted.data[part][::-1].copy()
    unsorted.has_sorted_indices = False
    coo = sp.coo_matrix(X)
    duplicates = sp.coo_matrix(
        (np.tile(coo.data / 2, 2), (np.tile(coo.row, 2), np.tile(coo.col, 2))), shape=X.shape
    )
    doubled = sp.csr_matrix(
        (
            np.repeat(csr.data / 2, 2),
            np.repeat(csr.indices, 2),
            csr.indptr * 2,
        ),
        shape=X.shape,
    )
    zeros = sp.csr_matrix(np.where(X == 0, 7, X))
    zeros.data[zeros.data == 7] = 0
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield from (csr, sp.csr_array(X), csr.tocsc(), coo, sp.lil_matrix(X), X, np.asfortranarray(X))
    yield from (X.astype(np.float64), csr.astype(np.float64), unsorted, duplicates, doubled, zeros)
    yield from (wide, X.tolist())


def test_all_forms_of_the_same_input_agree_and_none_is_changed():
    reference = small().fit(XS, YS)
    answer = reference.predict_proba(XS).toarray()
    count = 0
    for form in forms_of(X):
        before = joblib.hash(form)
        if isinstance(form, np.ndarray):
            form.flags.writeable = False
        elif hasattr(form, "data") and isinstance(form.data, np.ndarray) and form.format != "lil":
            form.data.flags.writeable = False
        clf = small().fit(form, YS)
        assert clf.forest_.fingerprint() == reference.forest_.fingerprint()
        assert clf.predict_proba(form).toarray().tobytes() == answer.tobytes()
        assert joblib.hash(form) == before
        count += 1
    assert count == 15


def test_label_matrix_is_not_changed():
    unsorted = sp.csr_matrix(Y)
    unsorted.indices[: unsorted.indptr[1]] = unsorted.indices[: unsorted.indptr[1]][::-1].copy()
    before = joblib.hash(unsorted)
    small().fit(XS, unsorted)
    assert joblib.hash(unsorted) == before


def test_pandas_input_keeps_feature_names():
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(40)])
    clf = small().fit(frame, YS)
    assert clf.feature_names_in_.tolist() == list(frame.columns)
    assert clf.forest_.fingerprint() == small().fit(XS, YS).forest_.fingerprint()


def test_float32_rounding_to_zero_and_to_infinity():
    tiny = X.astype(np.float64)
    tiny[0, 0] = 1e-60
    clean = tiny.copy()
    clean[0, 0] = 0
    assert small().fit(tiny, YS).fingerprint_ == small().fit(clean, YS).fingerprint_
    tiny[0, 0] = 1e60
    with pytest.raises(ValueError, match=r"Input X must hold values that float32.*1e\+60"):
        small().fit(tiny, YS)


# -- odd data ----------------------------------------------------------------------------------


def test_rows_without_labels_or_features():
    empty_rows = X.copy()
    empty_rows[::7] = 0
    clf = small().fit(empty_rows, YS)
    proba = clf.predict_proba(np.zeros((2, 40)))
    assert np.all(np.isfinite(proba.toarray())) and proba.nnz > 0
    assert clf.forest_.node_rows[clf.forest_.tree_offsets[:-1]].tolist() == [300] * 4


def test_tiny_data():
    one = LdSMClassifier(n_estimators=2).fit([[1.0, 2.0]], [["a"]])
    assert one.predict_topk([[0, 0]], k=1)[0].tolist() == [["a"]]
    assert one.forest_.n_nodes == 2
    same = LdSMClassifier(n_estimators=2).fit([[1.0]] * 4, [["a", "b"], ["a"], ["b"], []])
    assert same.predict_proba([[1.0]]).toarray()[0].tolist() == [0.5, 0.5]


def test_labels_never_seen_have_no_score():
    wide = sp.csr_array((YS.data, YS.indices + 3, YS.indptr), shape=(300, 40))
    clf = small().fit(XS, wide)
    assert clf.predict_proba(XS).shape == (300, 40)
    assert clf.predict_proba(XS)[:, :3].nnz == 0
    labels, _ = clf.predict_topk(XS, k=40)
    assert np.all(np.sort(labels, axis=1) == np.arange(40))


def test_growth_does_not_collapse():
    """One label on 70 % of the rows: default parameters still grow at least 90 % of max_nodes."""
    rng = np.random.default_rng(5)
    X, Y = make_problem(5, "weights", n_rows=2000, n_features=120, n_labels=60)
    Y[:, 0] = rng.random(2000) < 0.7
    clf = LdSMClassifier(n_estimators=3, random_state=0, max_nodes=301).fit(sp.csr_array(X), Y)
    sizes = np.diff(clf.forest_.tree_offsets)
    assert np.all(sizes >= 0.9 * 301), sizes
    strict = clone(clf).set_params(relax_integrity=False, integrity_weight=8.0)
    relaxed = clone(clf).set_params(integrity_weight=8.0)
    assert (
        strict.fit(sp.csr_array(X), Y).forest_.n_nodes
        < relaxed.fit(sp.csr_array(X), Y).forest_.n_nodes
    )


def test_extreme_values_never_give_nan():
    rng = np.random.default_rng(1)
    for case in range(60):
        scale = 10.0 ** rng.integers(-38, 38)
        X = (rng.normal(size=(40, 6)) * scale).astype(np.float32)
        X[:, rng.integers(6)] = scale if rng.random() < 0.5 else 0
        X[~np.isfinite(X)] = 0
        Y = rng.random((40, 5)) < 0.3
        Y[0, 0] = True
        clf = LdSMClassifier(
            n_estimators=2,
            optimizer=("nag", "sgd", "asgd")[case % 3],
            learning_rate=float(10.0 ** rng.integers(-3, 12)),
            standardize=bool(rng.integers(2)),
            random_state=case,
        ).fit(X, Y)
        proba = clf.predict_proba(X)
        assert np.all(np.isfinite(proba)) and proba.min() >= 0 and proba.max() <= 1
        forest = clf.forest_
        assert np.all(np.isfinite(forest.weights))
        assert np.all(np.isfinite(forest.objective[~forest.is_leaf]))


# -- determinism -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_same_bits_for_any_parallelism_and_on_two_runs(seed):
    prints = {
        small(n_jobs=n_jobs, random_state=seed).fit(XS, YS).fingerprint_
        for n_jobs in (None, 1, 2, 4, -1)
    }
    for backend in ("loky", "multiprocessing"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            prints.add(small(random_state=seed).fit(XS, YS).fingerprint_)
    assert len(prints) == 1
    assert small(random_state=seed + 10).fit(XS, YS).fingerprint_ not in prints


@pytest.mark.parametrize("standardize", [False, True])
def test_same_bits_for_any_batch_size(standardize):
    clf = small(standardize=standardize).fit(XS, YS)
    whole = clf.predict_proba(XS).toarray()
    labels, scores = clf.predict_topk(XS, k=4)
    for size in (1, 7, 100):
        parts = [clf.predict_proba(XS[i : i + size]).toarray() for i in range(0, 300, size)]
        assert np.concatenate(parts).tobytes() == whole.tobytes()
        parts = [clf.predict_topk(XS[i : i + size], k=4) for i in range(0, 300, size)]
        assert np.array_equal(np.concatenate([p[0] for p in parts]), labels)
        assert np.concatenate([p[1] for p in parts]).tobytes() == scores.tobytes()
    clf.set_params(n_jobs=3)
    assert clf.predict_proba(XS).toarray().tobytes() == whole.tobytes()
    assert np.array_equal(clf.predict_topk(XS, k=4)[0], labels)


def test_warm_start_adds_the_trees_that_a_cold_fit_has():
    cold = small(n_estimators=8, subsample=0.7).fit(XS, YS)
    warm = small(n_estimators=3, subsample=0.7, warm_start=True).fit(XS, YS)
    warm.set_params(n_estimators=8).fit(XS, YS)
    assert warm.fingerprint_ == cold.fingerprint_
    assert np.array_equal(warm.oob_scores_.toarray(), cold.oob_scores_.toarray())
    warm.fit(XS, YS)  # nothing to add
    assert warm.fingerprint_ == cold.fingerprint_
    with pytest.raises(ValueError, match=r"'n_estimators'.*>= 8.*Got 5"):
        warm.set_params(n_estimators=5).fit(XS, YS)
    with pytest.raises(ValueError, match="must stay the same"):
        warm.set_params(n_estimators=9, arity=3).fit(XS, YS)


def test_random_state_forms():
    by_int = small(random_state=5).fit(XS, YS)
    assert (
        small(random_state=np.random.RandomState(5)).fit(XS, YS).fingerprint_ == by_int.fingerprint_
    )
    assert small(random_state=None).fit(XS, YS).fingerprint_ != by_int.fingerprint_


# -- out of bag --------------------------------------------------------------------------------


def test_out_of_bag_scores_come_from_trees_that_never_saw_the_row():
    clf = small(n_estimators=6, subsample=0.5).fit(XS, YS)
    bags = [set(bag(clf._seed, tree, 300, 0.5)) for tree in range(6)]
    assert all(len(b) == 150 for b in bags)
    oob = clf.oob_scores_
    assert oob.shape == (300, 12) and oob.has_canonical_format
    for row in range(0, 300, 17):
        outside = [t for t in range(6) if row not in bags[t]]
        if not outside:
            assert oob[[row]].nnz == 0
            continue
        alone = np.zeros(12)
        for tree in outside:
            single = clone(clf).set_params(n_estimators=1)
            single.fit(XS, YS)
            alone += one_tree_scores(clf, tree, row)
        np.testing.assert_allclose(oob[[row]].toarray()[0], alone / len(outside), atol=1e-6)


def one_tree_scores(clf, tree, row):
    """Scores of one tree for one row: all the other trees are skipped."""
    skip = np.ones((1, clf.forest_.n_trees), dtype=np.uint8)
    skip[0, tree] = 0
    indptr, labels, scores = clf.forest_.scores(feature_arrays(XS[[row]]), by_rows=True, skip=skip)
    return sp.csr_array((scores, labels, indptr), shape=(1, 12)).toarray()[0]


def test_no_out_of_bag_scores_without_subsampling():
    assert not hasattr(small().fit(XS, YS), "oob_scores_")


# -- looking inside ----------------------------------------------------------------------------


def test_decision_path_agrees_with_the_scores():
    clf = small().fit(XS, YS)
    indicator, offsets = clf.decision_path(XS)
    forest = clf.forest_
    assert indicator.shape == (300, forest.n_nodes)
    assert np.array_equal(indicator.sum(axis=0), forest.node_rows)  # routed as in training
    assert np.all(indicator[:, offsets[:-1]].toarray() == 1)  # every row passes every root
    parent = forest.node_parent()
    dense = indicator.toarray()
    inner = np.flatnonzero(parent >= 0)
    assert np.all(dense[:, inner] <= dense[:, parent[inner]])


def test_statistics():
    clf = small(arity=3).fit(XS, YS)
    forest = clf.forest_
    stats = pd.DataFrame(forest.tree_statistics())
    assert len(stats) == 4 and (stats["nodes"] == np.diff(forest.tree_offsets)).all()
    assert (stats["rows"] == 300).all() and (stats["leaves_per_row"] >= 1).all()
    deepest = np.maximum.reduceat(forest.node_depth(), forest.tree_offsets[:-1])
    assert (stats["depth"] == deepest).all()
    split = ~forest.is_leaf
    assert np.all(np.isfinite(forest.objective[split])) and np.all(
        np.isnan(forest.objective[~split])
    )
    assert np.all(
        (forest.balancedness[split] >= 0) & (forest.balancedness[split] <= 1 - 1 / 3 + 1e-9)
    )
    assert forest.epoch_objective.shape == (split.sum(), clf.tree_params_.n_epochs)


def test_node_statistics_equal_the_definitions():
    from ldsm import objective

    clf = small(n_estimators=1, arity=3, max_nodes=31).fit(XS, YS)
    forest = clf.forest_
    indicator, _ = clf.decision_path(XS)
    histograms = indicator.T @ YS  # node x label
    histograms = histograms.toarray()
    for node in np.flatnonzero(~forest.is_leaf):
        first = forest.first_child[node]
        share, child = objective.split_shares(histograms[node], histograms[first : first + 3])
        value = objective.split_objective(
            share, child, clf.tree_params_.integrity_weight, clf.tree_params_.multiway_penalty
        )
        assert forest.objective[node] == pytest.approx(value)
        assert forest.balancedness[node] == pytest.approx(
            objective.balancedness_factor(share, child)
        )
        assert forest.purity[node] == pytest.approx(objective.purity_factor(share, child))
    p = histograms / histograms.sum(axis=1, keepdims=True)
    entropy = -np.sum(np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0), axis=1)
    np.testing.assert_allclose(forest.node_entropy, entropy, atol=1e-12)


@pytest.mark.parametrize("standardize", [False, True])
def test_explain_names_path_margins_features_and_leaves(standardize):
    clf = small(standardize=standardize).fit(XS, YS)
    paths = clf.explain(X[4])
    assert [path.tree for path in paths] == [0, 1, 2, 3]
    indicator, offsets = clf.decision_path(XS[[4]])
    for path in paths:
        visited = indicator.indices[
            (indicator.indices >= offsets[path.tree]) & (indicator.indices < offsets[path.tree + 1])
        ]
        nodes = [step.node for step in path.steps] + [leaf.node for leaf in path.leaves]
        assert sorted(nodes) == sorted(visited - offsets[path.tree])
        for step in path.steps:
            above = tuple(np.flatnonzero(step.margins > 0.5))
            assert step.directions == (above or (int(np.argmax(step.margins)),))
            total = sum(reason.contributions for reason in step.reasons)
            if len(step.reasons) < 10:
                np.testing.assert_allclose(total, step.margins, atol=1e-4)
    score = np.zeros(12)
    for path in paths:
        for leaf in path.leaves:
            score[leaf.labels] += leaf.shares / len(path.leaves) / len(paths)
    np.testing.assert_allclose(score, clf.predict_proba(XS[[4]]).toarray()[0], atol=1e-6)


def test_known_decision_function_is_recovered():
    """Labels are the signs of two linear functions: the trees must find them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5)).astype(np.float32)
    Y = np.stack([X[:, 0] > 0, X[:, 0] <= 0, X[:, 1] > 0, X[:, 1] <= 0], axis=1)
    clf = LdSMClassifier(n_estimators=10, random_state=0).fit(X[:1000], Y[:1000])
    assert np.mean(clf.predict(X[1000:]) == Y[1000:]) > 0.93


# -- a good citizen of scikit-learn ------------------------------------------------------------


def test_clone_pickle_pipeline_and_grid_search():
    clf = small().fit(XS, YS)
    assert clone(clf).get_params() == clf.get_params()
    again = pickle.loads(pickle.dumps(clf))
    assert again.fingerprint_ == clf.fingerprint_
    assert np.array_equal(again.predict_proba(XS).toarray(), clf.predict_proba(XS).toarray())
    pipeline = make_pipeline(MaxAbsScaler(), small()).fit(XS, YS)
    assert pipeline.predict(XS).shape == (300, 12)
    search = GridSearchCV(small(), {"arity": [2, 3]}, cv=KFold(2)).fit(XS, Y)
    assert search.best_estimator_.predict(XS).shape == (300, 12)


def test_predict_before_fit():
    with pytest.raises(NotFittedError):
        small().predict_topk(XS)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("arity", 1, r"an int in \[2, 8\]"),
        ("arity", 2.5, r"an int in \[2, 8\]"),
        ("n_estimators", 0, r"an int in \[1, 1000000\]"),
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
        ([[1, 0], [0, 1]], np.array([[0, 2], [1, 0]]), "0 and 1. Got the value np.int64\\(2\\)"),
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


def test_negative_label_numbers_are_refused_in_a_matrix():
    broken = sp.csr_matrix(Y)
    broken.indices[0] = -1
    with pytest.raises(ValueError):
        small().fit(XS, broken)


MALFORMED = {
    "offset far outside": ("csr", [0, 10**9, 2, 3], [0, 1, 2]),
    "offsets fall": ("csr", [0, 2, 1, 3], [0, 1, 2]),
    "offsets do not start at 0": ("csr", [1, 1, 2, 3], [0, 1, 2]),
    "offsets end too early": ("csr", [0, 1, 2, 2], [0, 1, 2]),
    "too few offsets": ("csr", [0, 3], [0, 1, 2]),
    "index far outside": ("csr", [0, 1, 2, 3], [0, 1, 10**8]),
    "index just outside": ("csr", [0, 1, 2, 3], [0, 1, 3]),
    "index negative": ("csr", [0, 1, 2, 3], [0, -1, 2]),
    "too many indices": ("csr", [0, 1, 2, 3], [0, 1, 2, 0]),
    "column offset far outside": ("csc", [0, 10**9, 2, 3], [0, 1, 2]),
    "row index far outside": ("csc", [0, 1, 2, 3], [0, 1, 10**8]),
    "row index negative": ("csc", [0, 1, 2, 3], [0, -(10**8), 2]),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_sparse_matrices_are_refused(case):
    """scipy checks nothing when arrays are replaced, and would follow them out of bounds."""
    form, indptr, indices = MALFORMED[case]
    broken = getattr(sp, f"{form}_matrix")((3, 3), dtype=np.float32)
    broken.data = np.ones(3, dtype=np.float32)
    broken.indptr, broken.indices = np.array(indptr), np.array(indices)
    good = sp.csr_matrix(np.eye(3, dtype=np.float32))
    fitted = small().fit(good, good)
    for attempt in (
        lambda: small().fit(broken, good),
        lambda: small().fit(good, broken),
        lambda: fitted.predict_topk(broken, k=1),
        lambda: fitted.predict_proba(broken),
        lambda: fitted.score(good, broken),
    ):
        with pytest.raises(ValueError, match="sparse (X|y)"):
            attempt()


def test_labels_come_back_as_they_went_in():
    for names in (["a\0", "a"], [2**63, -1], [1, "a"], [True, "b"]):
        y = [names[i % 2] for i in range(20)]
        clf = small(n_estimators=1).fit(X[:20], y)
        assert set(clf.classes_.tolist()) == set(names)
        assert {type(c) for c in clf.classes_.tolist()} == {type(n) for n in names}
        clf = small(n_estimators=1).fit(X[:20], [[label] for label in y])
        assert set(clf.classes_.tolist()) == set(names)


def test_probabilities_of_labels_that_exclude_each_other_sum_up_to_1():
    """Also with a second stage, which judges each label by itself."""
    data = make_xmc(600, 80, 12, labels_per_row=2, seed=0)
    one_each = np.array([labels[0] if labels else 0 for labels in data.labels])
    for rerank in ("linear", None):
        clf = LdSMClassifier(5, rerank=rerank, random_state=0).fit(data.X, one_each)
        scores = clf.predict_proba(data.X)
        np.testing.assert_allclose(scores.sum(axis=1), 1, atol=1e-6)
        assert np.array_equal(clf.classes_[scores.argmax(axis=1)], clf.predict(data.X))


def test_score_of_single_labels_wants_one_for_each_row():
    y = np.arange(300) % 3
    clf = small().fit(XS, y)
    for wrong in (y[:10], [1], None, YS):
        with pytest.raises(ValueError, match="y"):
            clf.score(XS, wrong)


def test_a_refit_forgets_what_no_longer_holds():
    clf = small(subsample=0.5).fit(XS, YS)
    clf.set_params(subsample=1.0).fit(XS[:50], YS[:50])
    assert not hasattr(clf, "oob_scores_")
    before = clf.predict_proba(XS).toarray()
    clf.set_params(leaf_scores="histogram")  # takes effect with the next fit
    assert np.array_equal(clf.predict_proba(XS).toarray(), before)


def test_explained_leaves_show_the_scores_in_use():
    clf = small(leaf_scores="histogram").fit(XS, YS)
    score = np.zeros(12)
    for path in clf.explain(XS[[4]]):
        for leaf in path.leaves:
            score[leaf.labels] += leaf.shares / len(path.leaves) / 4
    np.testing.assert_allclose(score, clf.predict_proba(XS[[4]]).toarray()[0], atol=1e-6)
    assert len(clf.forest_.explain(feature_arrays(XS[[4]]))) == 4
    with pytest.raises(ValueError, match="'max_reasons'.*Got -1"):
        clf.explain(XS[[4]], max_reasons=-1)


def test_small_integers_do_not_overflow_when_duplicates_are_added():
    doubled = sp.csr_matrix((np.full(4, 100, dtype=np.int8), [0, 0, 1, 1], [0, 2, 4]), shape=(2, 2))
    assert feature_arrays(doubled).values.tolist() == [200, 200]


def test_every_sparse_form_of_labels():
    expected = small().fit(XS, YS).fingerprint_
    for form in ("csc", "coo", "lil", "dok", "bsr"):
        assert small().fit(XS, sp.csr_matrix(Y).asformat(form)).fingerprint_ == expected


def test_frozen_arrays_stay_frozen_through_pickle():
    again = pickle.loads(pickle.dumps(small().fit(XS, YS)))
    with pytest.raises(ValueError, match="read-only"):
        again.forest_.weights[:] = 0


def test_an_error_of_the_callback_ends_the_fit():
    def fail(done, total):
        raise RuntimeError("no more")

    clf = small(n_estimators=1000, n_epochs=200)
    with pytest.raises(RuntimeError, match="no more"):
        clf.fit(XS, YS, callback=fail)
    assert not hasattr(clf, "forest_")


def test_prediction_with_another_number_of_features():
    clf = small().fit(XS, YS)
    with pytest.raises(ValueError, match="X has 39 features, but LdSMClassifier is expecting 40"):
        clf.predict_topk(XS[:, :39])
    with pytest.raises(ValueError, match=r"'k' parameter must be an int in \[1, 12\]. Got 0"):
        clf.predict_topk(XS, k=0)
    with pytest.raises(ValueError, match="exactly one row"):
        clf.explain(XS[:2])


def test_failed_fit_leaves_a_fitted_model_alone():
    clf = small().fit(XS, YS)
    before = clf.fingerprint_
    with pytest.raises(ValueError):
        clf.fit(XS, np.zeros((300, 12)))
    with pytest.raises(ValueError):
        clf.fit(XS[:, :5], YS[:10])
    assert clf.fingerprint_ == before
    assert clf.predict_topk(XS, k=1)[0].shape == (300, 1)


# -- long runs ---------------------------------------------------------------------------------


def test_callback_counts_up_to_the_total():
    seen = []
    small(n_estimators=6).fit(XS, YS, callback=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] > 0
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_verbose_reports_on_stderr(capfd):
    small(verbose=1).fit(XS, YS)
    assert "100 %" in capfd.readouterr().err


@pytest.mark.not_under("thread", reason="ThreadSanitizer delivers signals late")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_ends_a_fit_within_a_second(n_jobs):
    code = textwrap.dedent(
        f"""
        import numpy as np, scipy.sparse as sp, time
        from ldsm import LdSMClassifier
        rng = np.random.default_rng(0)
        X = sp.random(20000, 500, 0.05, "csr", random_state=0)
        Y = sp.random(20000, 300, 0.05, "csr", random_state=1)
        Y.data[:] = 1
        clf = LdSMClassifier(n_estimators=500, n_epochs=50, n_jobs={n_jobs})
        print("start", flush=True)
        try:
            clf.fit(X, Y)
        except KeyboardInterrupt:
            print("interrupted", hasattr(clf, "forest_"), flush=True)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "start\n"
    time.sleep(1.0)
    os.kill(process.pid, signal.SIGINT)
    asked = time.monotonic()
    assert process.stdout.readline() == "interrupted False\n"
    waited = time.monotonic() - asked
    _, errors = process.communicate(timeout=30)
    assert waited < 1.0, waited
    # A thread left in the core would take the interpreter down on its way out.
    assert process.returncode == 0, errors
