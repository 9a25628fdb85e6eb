"""What the parameter `effort` decides."""

import pytest

from ldsm import LdSMClassifier, datasets, load
from ldsm._trees.effort import EFFORTS

SHAPE = {"labels_per_row": 3, "nonzeros_per_row": 8, "binary": True}
ROWS, NEW = (
    datasets.make_xmc(n, 300, 240, part=part, **SHAPE)
    for n, part in ((900, "train"), (200, "test"))
)


def fitted(effort, **settings):
    return LdSMClassifier(effort=effort, random_state=0, **settings).fit(ROWS.X, ROWS.Y)


@pytest.fixture(scope="module")
def models():
    return {effort: fitted(effort) for effort in EFFORTS}


def test_more_effort_grows_more_trees(models):
    fast, balanced, best = (model.forest_.n_trees for model in models.values())
    assert fast == 2 < balanced < best == 20


@pytest.mark.parametrize(("effort", "n_trees"), [("fast", 5), ("balanced", 20), ("best", 50)])
def test_trees_that_answer_alone(effort, n_trees):
    assert fitted(effort, rerank=None, max_nodes=63).forest_.n_trees == n_trees


def test_more_effort_makes_longer_shortlists(models):
    fast, balanced, best = (model.second_stage_.length for model in models.values())
    assert fast == 50 <= balanced <= best <= 200


def test_more_effort_is_more_accurate(models):
    fast, balanced, best = (model.score(NEW.X, NEW.Y) for model in models.values())
    assert best > fast and balanced > fast - 0.01


def test_fast_compares_no_blends(monkeypatch):
    def gains(*_):
        pytest.fail("blends compared")

    monkeypatch.setattr("ldsm._ranking.training._StageTraining._gains", gains)
    assert "index" in fitted("fast").second_stage_.blend.kind


def test_rows_left_out_by_fast_trees(models):
    assert models["fast"].tree_params_.subsample == 0.5
    assert models["best"].tree_params_.subsample == models["balanced"].tree_params_.subsample == 0.7
    assert fitted("fast", subsample=0.8).tree_params_.subsample == 0.8


def test_given_number_of_trees_is_obeyed():
    assert fitted("fast", n_estimators=3).forest_.n_trees == 3


@pytest.mark.parametrize("effort", ["fast", "best"])
def test_threads_do_not_change_the_model(models, effort):
    assert fitted(effort, n_jobs=3).fingerprint_ == models[effort].fingerprint_


def test_effort_is_saved(models, tmp_path):
    models["fast"].save(tmp_path / "m.ldsm")
    assert load(tmp_path / "m.ldsm").effort == "fast"


def test_invalid_effort():
    with pytest.raises(ValueError, match="'fast' or 'balanced' or 'best'. Got 'quick' instead"):
        fitted("quick")
