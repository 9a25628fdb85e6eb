"""LdSMClassifier as users see it."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from ldsm import LdSMClassifier
from ldsm._arrays.features import feature_arrays
from naive import bag
from patience import PATIENCE, started
from problems import make_problem
from small_classifier import XS, YS, X, Y, small

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
    settings = {"n_estimators": 3, "random_state": 0, "max_nodes": 301, "min_split_labels": 1}
    clf = LdSMClassifier(**settings).fit(sp.csr_array(X), Y)
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


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_same_bits_for_any_parallelism(seed):
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


def test_warm_start_matches_cold_fit():
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


def test_out_of_bag_scores():
    clf = small(n_estimators=6, subsample=0.5).fit(XS, YS)
    bags = [set(bag(clf.model_.seed, tree, 300, 0.5)) for tree in range(6)]
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
    """Scores of one tree for one row."""
    alone = clf.forest_.trees(tree, tree + 1)
    indptr, labels, scores = alone.scores(feature_arrays(XS[[row]]))
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
    dense = indicator.toarray()
    tree_start = np.repeat(offsets[:-1], np.diff(offsets))
    for node in np.flatnonzero(forest.first_child):  # a child is passed by way of its parent
        first = tree_start[node] + forest.first_child[node]
        assert np.all(dense[:, first : first + forest.arity] <= dense[:, [node]])


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
def test_explain_paths(standardize):
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


def test_pandas_input_keeps_feature_names():
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(40)])
    clf = small().fit(frame, YS)
    assert clf.feature_names_in_.tolist() == list(frame.columns)
    assert clf.forest_.fingerprint() == small().fit(XS, YS).forest_.fingerprint()


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


def test_refit_resets_attributes():
    clf = small(subsample=0.5).fit(XS, YS)
    clf.set_params(subsample=1.0).fit(XS[:50], YS[:50])
    assert not hasattr(clf, "oob_scores_")
    before = clf.predict_proba(XS).toarray()
    clf.set_params(leaf_scores="histogram")  # takes effect with the next fit
    assert np.array_equal(clf.predict_proba(XS).toarray(), before)


def test_explained_leaves_match_scores():
    clf = small(leaf_scores="histogram").fit(XS, YS)
    score = np.zeros(12)
    for path in clf.explain(XS[[4]]):
        for leaf in path.leaves:
            score[leaf.labels] += leaf.shares / len(path.leaves) / 4
    np.testing.assert_allclose(score, clf.predict_proba(XS[[4]]).toarray()[0], atol=1e-6)
    assert len(clf.explain(XS[[4]])) == 4
    with pytest.raises(ValueError, match="'max_reasons'.*Got -1"):
        clf.explain(XS[[4]], max_reasons=-1)


def test_int8_duplicates_do_not_overflow():
    doubled = sp.csr_matrix((np.full(4, 100, dtype=np.int8), [0, 0, 1, 1], [0, 2, 4]), shape=(2, 2))
    assert feature_arrays(doubled).values.tolist() == [200, 200]


def test_frozen_arrays_stay_frozen_through_pickle():
    again = pickle.loads(pickle.dumps(small().fit(XS, YS)))
    with pytest.raises(ValueError, match="read-only"):
        again.forest_.weights[:] = 0


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
@pytest.mark.parametrize("n_jobs", [pytest.param(1, marks=pytest.mark.long), 2])
def test_ctrl_c_ends_a_fit(n_jobs):
    code = textwrap.dedent(
        f"""
        import numpy as np, scipy.sparse as sp
        from ldsm import LdSMClassifier
        rng = np.random.default_rng(0)
        X = sp.random(20000, 500, 0.05, "csr", random_state=0)
        Y = sp.random(20000, 300, 0.05, "csr", random_state=1)
        Y.data[:] = 1
        clf = LdSMClassifier(n_estimators=500, n_epochs=50, n_jobs={n_jobs})
        seen = []

        def note(done, total):
            if done > 0 and not any(seen):
                print("growing", flush=True)
            seen.append(done / total)

        try:
            clf.fit(X, Y, callback=note)
        except KeyboardInterrupt:
            # Far from its end, which is minutes away.
            print("interrupted", hasattr(clf, "forest_"), seen[-1] < 0.5, flush=True)
        """
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started([sys.executable, "-c", code], text=True, **pipes) as process:
        assert process.stdout.readline() == "growing\n"
        os.kill(process.pid, signal.SIGINT)
        assert process.stdout.readline() == "interrupted False True\n"
        _, errors = process.communicate(timeout=PATIENCE)
    # A thread left in the core would take the interpreter down on its way out.
    assert process.returncode == 0, errors
