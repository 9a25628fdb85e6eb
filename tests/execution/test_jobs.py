"""Unreasonable values of `n_jobs`, and errors when the system runs out of threads."""

import sys

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

import ldsm
import patience
from ldsm import LdSMClassifier
from ldsm._execution.threads import starting_threads, worker_count
from problems import make_problem

X, Y = make_problem(0, "weights", n_rows=150, n_features=20, n_labels=8)
X = sp.csr_array(X)


@pytest.mark.parametrize("n_jobs", [100_000, 10**18, -(10**18)])
def test_worker_limit(n_jobs, tmp_path):
    assert 1 <= worker_count(n_jobs) <= joblib.cpu_count()
    clf = LdSMClassifier(n_estimators=3, random_state=0, n_jobs=n_jobs).fit(X, Y)
    alone = LdSMClassifier(n_estimators=3, random_state=0, n_jobs=1).fit(X, Y)
    assert clf.fingerprint_ == alone.fingerprint_
    clf.save(tmp_path / "m.ldsm")
    loaded = ldsm.load(tmp_path / "m.ldsm")
    assert loaded.n_jobs == n_jobs
    assert np.array_equal(loaded.predict_topk(X)[0], alone.predict_topk(X)[0])


def test_joblib_all_workers():
    assert worker_count(-1) == joblib.effective_n_jobs(-1)
    assert worker_count(None) == 1
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert worker_count(None) == min(2, joblib.cpu_count())


def test_threads_within_a_daemon():
    """Such as a worker of Dask, in which joblib cannot start processes, and warns."""
    code = (
        "import multiprocessing, warnings; warnings.simplefilter('error'); "
        "multiprocessing.current_process()._config['daemon'] = True; "
        "from ldsm import LdSMClassifier; "
        "from ldsm._execution.threads import worker_count; "
        "LdSMClassifier(2, n_jobs=2).fit([[0, 1], [1, 0]] * 9, [[0], [1]] * 9).predict([[0, 1]]); "
        "print(worker_count(2))"
    )
    done = patience.run([sys.executable, "-c", code])
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) == min(2, joblib.cpu_count())


def test_failed_thread_start():
    with pytest.raises(MemoryError, match="cannot start 3 threads"), starting_threads(3):
        raise RuntimeError("can't start new thread")
    with pytest.raises(RuntimeError, match="another reason"), starting_threads(3):
        raise RuntimeError("another reason")
