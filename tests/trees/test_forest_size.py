"""The number of trees, if it is left to the data."""

import numpy as np
import pytest
from joblib import parallel_config

from ldsm import LdSMClassifier, datasets
from ldsm._trees import forest_size
from ldsm._trees.effort import MOST_TREES
from ldsm._trees.forest_size import FIRST, GROUP

ROWS = datasets.make_xmc(900, 60, 20, labels_per_row=3, nonzeros_per_row=8, binary=True)


def fitted(**settings):
    return LdSMClassifier(random_state=0, **settings).fit(ROWS.X, ROWS.Y)


@pytest.fixture(scope="module")
def auto():
    return fitted()


def test_auto_stops_after_the_first_group_that_gains_little(auto, monkeypatch):
    assert auto.forest_.n_trees == FIRST + GROUP
    numbers = iter([1000, 1010, 1021, 1031])  # 1.01, 1.011 and 1.0098 times as many
    monkeypatch.setattr("ldsm._model.fit.n_found", lambda *_: next(numbers))
    assert fitted().forest_.n_trees == FIRST + 3 * GROUP


def test_auto_is_the_model_of_that_number(auto):
    assert auto.fingerprint_ == fitted(n_estimators=FIRST + GROUP).fingerprint_


def test_number_of_trees_is_obeyed():
    assert fitted(n_estimators=3).forest_.n_trees == 3


@pytest.mark.parametrize("settings", [{"rerank": None}, {"rerank": "tail"}])
def test_trees_that_answer_alone_are_not_fewer(settings):
    assert fitted(max_nodes=63, **settings).forest_.n_trees == MOST_TREES


@pytest.mark.parametrize("workers", [3, 7, 30])
def test_workers_do_not_change_the_model(auto, workers):
    with parallel_config("threading"):
        assert fitted(n_jobs=workers).fingerprint_ == auto.fingerprint_


def test_memory_limit_does_not_change_the_model(auto):
    assert fitted(memory_limit=1 << 20).fingerprint_ == auto.fingerprint_


def test_warm_start_keeps_trees_and_adds_missing_ones(auto):
    clf = LdSMClassifier(3, warm_start=True, random_state=0).fit(ROWS.X, ROWS.Y)
    assert clf.set_params(n_estimators="auto").fit(ROWS.X, ROWS.Y).fingerprint_ == auto.fingerprint_
    clf.set_params(n_estimators=13).fit(ROWS.X, ROWS.Y)
    again = clf.set_params(n_estimators="auto").fit(ROWS.X, ROWS.Y)
    assert again.forest_.n_trees == 13


def test_interrupted_fit_resumes(auto, tmp_path):
    LdSMClassifier(FIRST + 1, random_state=0).fit(ROWS.X, ROWS.Y, checkpoint_dir=tmp_path)
    clf = LdSMClassifier(random_state=0).fit(ROWS.X, ROWS.Y, checkpoint_dir=tmp_path)
    assert clf.fingerprint_ == auto.fingerprint_
    assert clf.training_["trees_from_checkpoint"] == FIRST + 1


def test_progress_rises_to_the_total(auto):
    seen = []
    LdSMClassifier(random_state=0).fit(
        ROWS.X, ROWS.Y, callback=lambda done, total: seen.append((done, total))
    )
    done, total = np.array(seen).T
    assert np.all(np.diff(done) >= 0) and np.all(total == total[0]) and done[-1] == total[-1]


def test_no_more_trees_than_the_most(monkeypatch):
    monkeypatch.setattr(forest_size, "WORTH", 0.0)
    assert fitted().forest_.n_trees == MOST_TREES
