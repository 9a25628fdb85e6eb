"""The same bits however the work is spread: over threads, processes, SIMD paths, batches, forks."""

import multiprocessing
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from joblib.externals.loky import get_reusable_executor

from ldsm import LdSMClassifier, _core
from patience import PATIENCE
from problems import make_problem

PATHS = _core.simd_paths()
KINDS = ["binary", "weights", "dense"]  # by seed: each picks another optimizer or standardises


def problem(kind, n_rows=200, n_features=30, seed=1):
    """30 features count; any others are empty."""
    X, Y = make_problem(seed, kind, n_rows=n_rows, n_features=30, n_labels=12)
    X = sp.csr_array(X)
    X.resize(n_rows, n_features)
    return X, sp.csr_array(Y)


def bits(answer):
    """What a prediction holds, byte for byte."""
    if isinstance(answer, tuple):
        return b"|".join(map(bits, answer))
    if sp.issparse(answer):
        return bits((answer.indptr.astype(np.int64), answer.indices, answer.data))
    return np.ascontiguousarray(answer).tobytes()


# -- parallelism and SIMD paths ----------------------------------------------------------------


def fingerprint(seed, backend, n_jobs):
    rerank = (None, "linear", "tail")[seed]
    clf = LdSMClassifier(n_estimators=5, arity=2 + seed, rerank=rerank, random_state=seed)
    with joblib.parallel_config(backend=backend, n_jobs=n_jobs):
        return clf.fit(*problem(KINDS[seed])).fingerprint_


def simd_path_of_workers(n_jobs):
    with joblib.parallel_config(backend="loky", n_jobs=n_jobs):
        return set(joblib.Parallel()(joblib.delayed(os.getenv)("LDSM_SIMD") for _ in range(8)))


def check_fingerprints(monkeypatch, combinations):
    """One fingerprint per seed over all of (backend, n_jobs) and every SIMD path."""
    found = {}
    for path in PATHS:
        monkeypatch.setenv("LDSM_SIMD", path)
        get_reusable_executor().shutdown()  # workers keep the environment they were started with
        for (backend, n_jobs), seed in combinations:
            if backend == "loky":
                assert simd_path_of_workers(n_jobs) == {path}
            found.setdefault(seed, set()).add(fingerprint(seed, backend, n_jobs))
    get_reusable_executor().shutdown()
    assert [len(prints) for prints in found.values()] == [1] * len(found)
    assert len(set.union(*found.values())) == len(found)  # and another one for another seed


def test_same_bits_for_threads_and_simd(monkeypatch):
    threads = [("threading", n_jobs) for n_jobs in (1, 2, 4)]
    check_fingerprints(monkeypatch, list(product(threads, range(3))))


@pytest.mark.long
def test_same_bits_for_processes(monkeypatch):
    places = product(("threading", "loky"), (1, 2, 4))
    check_fingerprints(monkeypatch, list(product(places, range(3))))


# -- batches -----------------------------------------------------------------------------------

FOREST_KINDS = {
    "maps": {"n_features": 30},
    "searched": {"n_features": 2100},  # too many features for maps
    "standardised": {"n_features": 30, "standardize": True},
    "four ways": {"n_features": 30, "arity": 4, "multiway_penalty": 0.5},
    "second stage": {"n_features": 30, "rerank": "linear"},
}
METHODS = {
    "predict_topk": lambda clf, X: clf.predict_topk(X, k=4),
    "predict_proba": lambda clf, X: clf.predict_proba(X),
    "predict": lambda clf, X: clf.predict(X),
}


def fitted(kind, y="sparse"):
    options = {**FOREST_KINDS[kind]}
    n_rows = 600 if "rerank" in options else 200  # the second stage learns from rows left out
    X, Y = problem("weights", n_rows, options.pop("n_features"))
    labels = {"sparse": Y, "dense": Y.toarray(), "single": np.argmax(Y.toarray(), axis=1)}
    return LdSMClassifier(n_estimators=4, random_state=0, **options).fit(X, labels[y])


def joined(answers):
    if isinstance(answers[0], tuple):
        return tuple(map(np.concatenate, zip(*answers, strict=True)))
    return sp.vstack(answers, format="csr") if sp.issparse(answers[0]) else np.concatenate(answers)


def check_batches(kind, y, n_rows, sizes):
    clf = fitted(kind, y)
    X, _ = problem("weights", n_rows, clf.n_features_in_, seed=2)
    for method in METHODS.values():
        whole = method(clf, X)
        for size in sizes:
            parts = [method(clf, X[at : at + size]) for at in range(0, n_rows, size)]
            assert bits(joined(parts)) == bits(whole)


@pytest.mark.parametrize("kind", FOREST_KINDS)
@pytest.mark.parametrize("y", ["sparse", "single"])
def test_batches_of_any_size(kind, y):
    check_batches(kind, y, 1100, (7, 1000))
    check_batches(kind, y, 60, (1,))


@pytest.mark.long
@pytest.mark.parametrize("kind", FOREST_KINDS)
@pytest.mark.parametrize("y", ["sparse", "dense", "single"])
def test_batches_larger_than_the_cores(kind, y):
    """5,000 rows: the core itself works in batches of 4,096."""
    check_batches(kind, y, 5000, (1, 7, 1000))


# -- threads -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("kind", FOREST_KINDS)
def test_eight_threads_answer_as_one(kind, n_jobs):
    """8 threads x 200 calls of one model. All begin at once: what is made late, is made then."""
    n_threads, n_calls = 8, 200
    clf = fitted(kind).set_params(n_jobs=n_jobs)
    X, _ = problem("weights", 100, clf.n_features_in_, seed=2)
    batches = [X[:1], X[3:10], X[20:40], X]
    serial = {
        (name, i): bits(method(clf, batch))
        for name, method in METHODS.items()
        for i, batch in enumerate(batches)
    }
    fresh = pickle.loads(pickle.dumps(clf))
    assert "feature_maps" not in vars(fresh.forest_)
    start = threading.Barrier(n_threads)

    def ask(thread):
        start.wait()
        names = list(METHODS)
        for call in range(n_calls):
            name = names[(thread + call) % len(names)]
            # Large batches now and then: they take threads of their own if n_jobs is 2.
            i = 3 if call % 20 == thread else call % 3
            assert bits(METHODS[name](fresh, batches[i])) == serial[name, i]
        return n_calls

    with ThreadPoolExecutor(n_threads) as pool:
        assert sum(pool.map(ask, range(n_threads))) == n_threads * n_calls


# -- forks -------------------------------------------------------------------------------------


def predict_in_child(clf, X, Y, answers):
    fit_here = LdSMClassifier(n_estimators=3, random_state=1, n_jobs=2).fit(X, Y)
    answers.put((bits(clf.predict_topk(X, k=3)), bits(clf.predict_proba(X)), fit_here.fingerprint_))


def check_children(method, n_jobs, times):
    """Fit, then start children that predict and fit: all of them answer, and as the parent does."""
    context = multiprocessing.get_context(method)
    X, Y = problem("weights")
    clf = LdSMClassifier(n_estimators=4, rerank="linear", random_state=0, n_jobs=n_jobs).fit(X, Y)
    clf.predict_topk(X, k=3)
    again = LdSMClassifier(n_estimators=3, random_state=1, n_jobs=2).fit(X, Y).fingerprint_
    expected = (bits(clf.predict_topk(X, k=3)), bits(clf.predict_proba(X)), again)
    right = 0
    for _ in range(times):
        answers = context.Queue()
        child = context.Process(target=predict_in_child, args=(clf, X, Y, answers))
        child.start()
        try:
            right += answers.get(timeout=PATIENCE) == expected
            child.join(PATIENCE)
            assert child.exitcode == 0
        finally:
            child.kill()
            child.join()
    assert right == times


# Python warns of forks in a process with threads, which scikit-learn's libraries start.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ten_forks_same_answers(n_jobs):
    check_children("fork", n_jobs, times=10)


def test_spawned_process_same_answers():
    check_children("spawn", 2, times=1)


@pytest.mark.long
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ten_spawned_processes_same_answers(n_jobs):
    check_children("spawn", n_jobs, times=10)
