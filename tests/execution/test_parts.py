"""Fits whose parts other programs run: the same bits, and nothing lost."""

import gc
import pickle
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import joblib
import pytest

import ldsm
from ldsm import LdSMClassifier, TextTagger, datasets
from patience import PATIENCE
from text_corpus import make_corpus

DATA = datasets.make_xmc(700, 60, 12, seed=0)
TEXTS, TAGS = make_corpus(600)


def small():
    return LdSMClassifier(n_estimators=3, random_state=0)


@pytest.fixture(scope="module")
def expected():
    return small().fit(DATA).fingerprint_


def finished(plan, run=lambda plan: [plan.run(i) for i in range(len(plan))]):
    """The model of a plan, and the names of all plans."""
    names = []
    while len(plan):
        names.append(plan.name)
        run(plan)
        plan = plan.merge()
    return plan.model, names


def by_pool(plan):
    with ProcessPoolExecutor(2, get_context("forkserver")) as pool:
        list(pool.map(plan.run, range(len(plan))))


def by_joblib(plan):
    joblib.Parallel(2)(joblib.delayed(plan.run)(i) for i in range(len(plan)))


def backwards(plan):
    for i in reversed(range(len(plan))):
        pickle.loads(pickle.dumps(plan)).run(i)


@pytest.mark.parametrize("run", [by_pool, by_joblib, backwards, lambda plan: None])
def test_same_model_on_any_engine(run, expected, tmp_path):
    plan = ldsm.parts(small(), DATA, folder=tmp_path / "plans")
    assert plan.name == "tree" and len(plan) == 3 and plan.model is None
    model, names = finished(plan, run)
    assert model.fingerprint_ == expected
    assert {"tree", "shortlist chunk", "label range"} <= {*names}
    assert not list((tmp_path / "plans").glob("*.tmp"))


def test_texts_with_a_vocabulary(tmp_path):
    names = {"fish": ["cod"], "meat": ["beef"]}
    tagger = TextTagger(small())
    plan = ldsm.parts(tagger, TEXTS, TAGS, folder=tmp_path, vocabulary=names)
    expected = TextTagger(small()).fit(TEXTS, TAGS, vocabulary=names)
    model, names = finished(plan)
    assert model.fingerprint_ == expected.fingerprint_
    assert names[:3] == ["word chunk", "bigram range", "text chunk"]
    assert not hasattr(tagger, "fitted_")


def test_stopped_program_resumes(expected, tmp_path):
    plan = ldsm.parts(small(), DATA, folder=tmp_path)
    plan.run(1)
    before = threading.active_count()
    del plan
    gc.collect()
    deadline = time.monotonic() + PATIENCE
    while threading.active_count() >= before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() < before  # the fit has ended
    plan = ldsm.parts(small(), DATA, folder=tmp_path)
    assert len(plan) == 2  # trees
    assert finished(plan)[0].fingerprint_ == expected


def test_wrong_use(tmp_path):
    with pytest.raises(ValueError, match="'model' argument must be an LdSMClassifier"):
        ldsm.parts(3, DATA, folder=tmp_path)
    with pytest.raises(ValueError, match="'arity' parameter"):
        ldsm.parts(LdSMClassifier(arity=1), DATA, folder=tmp_path)
    plan = ldsm.parts(small(), DATA, folder=tmp_path)
    merged = plan.merge()
    for used in (plan, pickle.loads(pickle.dumps(merged))):
        with pytest.raises(RuntimeError, match="merged only once"):
            used.merge()
