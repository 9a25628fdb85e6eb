"""Rows with little or no evidence: their scores equal, or are close to, the base rates."""

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import ldsm
from ldsm import LdSMClassifier
from ldsm._matching.evidence import Evidence, long_runs
from ldsm._matching.shortlists import Shortlists
from ldsm._ranking.saved_form import stage_from_state
from ldsm._storage.strings import Strings
from ldsm.classifier import hold_model
from ldsm.datasets import make_xmc
from saved_states import stage_state

N_ROWS, N_FEATURES, N_LABELS = 1500, 300, 120
KINDS = ("linear", "tail", "auto")


@cache
def data() -> Any:
    return make_xmc(N_ROWS, N_FEATURES, N_LABELS, labels_per_row=2, nonzeros_per_row=12, seed=0)


def with_common(X: Any) -> sp.csr_array:
    """The rows with one more feature, which all of them have, so it means nothing."""
    return sp.csr_array(sp.hstack([X, np.full((X.shape[0], 1), 0.3, dtype=np.float32)]))


@cache
def fitted(rerank: str = "auto") -> LdSMClassifier:
    clf = LdSMClassifier(6, n_epochs=2, rerank=rerank, random_state=0)
    return clf.fit(with_common(data().X), data().Y)


def base_rates(clf: LdSMClassifier) -> Any:
    return (clf.label_counts_ / clf.training_["rows"]).astype(np.float32)


def rows(*features: list[int]) -> sp.csr_array:
    X = sp.lil_array((len(features), N_FEATURES + 1), dtype=np.float32)
    for row, its in enumerate(features):
        X[row, its] = 1
    return X.tocsr()


def evidence(clf: LdSMClassifier) -> Evidence:
    found = clf.second_stage_.evidence
    assert found is not None
    return found


def certainty(clf: LdSMClassifier, X: Any) -> list[float]:
    return [clf.explain_scores(X[[i]], k=1)[0].certainty for i in range(X.shape[0])]


@pytest.mark.parametrize("rerank", KINDS)
def test_empty_rows_get_base_rates(rerank: str) -> None:
    clf = fitted(rerank)
    rates = base_rates(clf)
    order = np.argsort(-clf.label_counts_, kind="stable")
    labels, scores = clf.predict_topk(rows([], [1, 2, 3], []), k=7)
    for row in (0, 2):
        assert labels[row].tolist() == order[:7].tolist()
        assert scores[row].tolist() == rates[order[:7]].tolist()
    listed = order[: clf.second_stage_.length]
    expected = np.zeros(N_LABELS, np.float32)
    expected[listed] = rates[listed]
    proba = clf.predict_proba(rows([])).toarray()[0]
    assert np.array_equal(proba, expected)
    sets = clf.predict(rows([]))
    assert sets.toarray()[0].tolist() == (expected >= clf.threshold_).tolist()
    allowed = order[[3, 40, 90]]
    only, scores = clf.predict_topk(rows([]), k=3, only=allowed.tolist())
    assert only[0].tolist() == allowed.tolist() and scores[0].tolist() == rates[allowed].tolist()


def test_empty_row_explained_by_frequency() -> None:
    clf = fitted()
    found = clf.explain_scores(rows([]), k=5)
    labels, scores = clf.predict_topk(rows([]), k=5)
    assert [one.label for one in found] == labels[0].tolist()
    for one, score in zip(found, scores[0].tolist(), strict=True):
        assert one.certainty == 0 and one.score == score
        odds = np.log(score) - np.log1p(-score)
        assert sum(one.shares.values()) == pytest.approx(odds, abs=1e-5)
        others = {name: share for name, share in one.shares.items() if share}
        assert others.keys() <= {"base", "frequency"}


def test_uninformative_feature_near_base_rates() -> None:
    clf = fitted()
    only_common = rows([N_FEATURES])
    assert 0 < certainty(clf, only_common)[0] < 0.4
    assert clf.predict_topk(only_common, k=1)[1][0, 0] <= 2 * base_rates(clf).max()
    # Without the rule, the blend extrapolates.
    stage = dataclasses.replace(clf.second_stage_, evidence=None)
    plain = hold_model(LdSMClassifier(), dataclasses.replace(clf.model_, second_stage=stage))
    assert plain.predict_topk(only_common, k=1)[1][0, 0] > 2 * base_rates(clf).max()


def test_usual_rows_follow_blend() -> None:
    clf = fitted()
    stage = dataclasses.replace(clf.second_stage_, evidence=None)
    plain = hold_model(LdSMClassifier(), dataclasses.replace(clf.model_, second_stage=stage))
    X = with_common(data().X)
    same = (clf.predict_proba(X) != plain.predict_proba(X)).sum(axis=1) == 0
    assert same.mean() > 0.98
    sure = np.array([value == 1 for value in certainty(clf, X[:200])])
    assert np.array_equal(sure, same[:200])


def test_shares_sum_for_sparse_rows() -> None:
    clf = fitted()
    X = rows([N_FEATURES], [0, N_FEATURES], [5], [1, 2, 3, 4, 5, 6, 7, 8])
    sure = certainty(clf, X)
    assert sure[0] < 1 == sure[-1]
    for i in range(4):
        for one in clf.explain_scores(X[[i]], k=50):
            odds = np.log(one.score) - np.log1p(-one.score)
            assert sum(one.shares.values()) == pytest.approx(odds, abs=1e-4)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_scores_independent_of_batching(n_jobs: int) -> None:
    clf = fitted()
    X = sp.csr_array(
        sp.vstack([rows([], [N_FEATURES], [3], [3, N_FEATURES]), with_common(data().X[:80])])
    )
    X = sp.csr_array(sp.vstack([X, X]))
    whole = clf.set_params(n_jobs=n_jobs).predict_proba(X)
    for i in (0, 1, 2, 3, 50, 84, 85):
        alone = clf.predict_proba(X[[i]])
        assert np.array_equal(alone.indices, whole[[i]].indices)
        assert alone.data.tobytes() == whole[[i]].data.tobytes()


def test_evidence_measured_on_held_out_rows() -> None:
    found = evidence(fitted())
    rates = fitted().label_counts_ / N_ROWS
    assert found.nothing == pytest.approx(rates.max() ** 0.75, rel=1e-5)
    assert 0 < found.nothing < found.telling < found.enough
    assert evidence(fitted("tail")) == (0, 0, 1)  # there is no index: any feature is enough


def test_certainty_follows_both_measures() -> None:
    def sure(most_telling: list[float], total: list[float], *measures: float) -> list[float]:
        lists = Shortlists(
            np.zeros(len(total) + 1, np.int64),
            np.zeros(0, np.int32),
            np.zeros(0, np.float32),
            most_telling=np.array(most_telling, np.float32),
            evidence=np.array(total, np.float32),
        )
        return Evidence(*measures).certainty(lists).tolist()

    got = sure([0, 1, 1.5, 2, 3, 1], [0, 1, 1.5, 2, 3, 9], 1.0, 2.0, 8.0)
    assert got == [0, 0.125, 0.5, 1, 1, 1]
    assert sure([0, 1, 5], [0, 1, 5], 0.0, 0.0, 4.0) == [0, 0.25, 1]


def test_five_character_runs() -> None:
    runs = [" äbc", "äbcde", " the ", " on ", "bcde ", " bcde", "abcd", "日本語学校", "abcdef"]
    assert long_runs(Strings.pack(runs)).tolist() == [0, 1, 0, 0, 1, 1, 0, 1, 0]
    assert long_runs(Strings.pack([])).tolist() == []


# -- it lasts ---------------------------------------------------------------------------------


def test_evidence_is_saved(tmp_path: Any) -> None:
    clf = fitted()
    path = tmp_path / "model.ldsm"
    clf.save(path)
    X = rows([], [N_FEATURES], [3])
    for verify in (True, False):
        loaded = ldsm.load(path, verify=verify)
        assert loaded.second_stage_.evidence == evidence(clf)
        assert loaded.fingerprint_ == clf.fingerprint_
        assert (loaded.predict_proba(X) != clf.predict_proba(X)).nnz == 0


def test_fingerprint_covers_base_rates() -> None:
    model = fitted().model_
    stage = model.second_stage
    assert stage is not None
    before = model.fingerprint()
    more = dataclasses.replace(model, training=model.training | {"rows": N_ROWS + 1})
    assert more.fingerprint() != before
    for other in (None, evidence(fitted())._replace(enough=99.0)):
        changed = dataclasses.replace(stage, evidence=other)
        assert dataclasses.replace(model, second_stage=changed).fingerprint() != before


def test_learning_and_relabelling_keep_it() -> None:
    clf = LdSMClassifier(4, n_epochs=2, rerank="linear", random_state=0)
    clf.fit(with_common(data().X), data().Y)
    kept = evidence(clf)
    clf.partial_fit(with_common(data().X[:50]), data().Y[:50])
    assert evidence(clf) == kept
    labels, scores = clf.predict_topk(rows([]), k=2)
    assert scores[0].tolist() == base_rates(clf)[labels[0]].tolist()
    top = int(labels[0, 0])
    others = clf.predict_proba(rows([N_FEATURES])).toarray()[0]
    clf.drop_labels([top])
    assert evidence(clf) == kept
    assert clf.predict_topk(rows([]), k=1)[0][0, 0] == labels[0, 1]
    scores = clf.predict_proba(rows([N_FEATURES])).toarray()[0].tolist()
    again = dict(zip(clf.classes_.tolist(), scores, strict=True))
    both = [label for label in again if label != top and again[label] and others[label]]
    assert len(both) > 20 and all(again[label] == others[label] for label in both)


@pytest.mark.parametrize(
    "stored",
    [[], [0, 1], [0, 1, 0], [0, 1, -1], ["0", 1, 2], [0, float("nan"), 1], 3, [0, 1, 1e31]],
)
def test_damaged_evidence_refused(stored: Any) -> None:
    stage = fitted().second_stage_
    header, arrays = stage_state(stage)
    layout = fitted().model_.layout
    counts = stage.label_counts
    assert stage_from_state(header, dict(arrays), layout, counts, 0, verify=True) is not None
    with pytest.raises(ValueError, match="evidence"):
        stage_from_state(
            header | {"evidence": stored}, dict(arrays), layout, counts, 0, verify=True
        )
