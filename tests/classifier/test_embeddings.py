"""Embeddings beside X: what they add, and that all that holds for X holds for them."""

import copy
from dataclasses import replace
from functools import cache
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse as sp

import ldsm
from ldsm import LdSMClassifier
from ldsm._arrays.dense_rows import DenseRows
from ldsm._execution.memory import is_mapped
from ldsm.datasets import Dataset, open_store
from ldsm.evaluation import Evaluation

N_LABELS, N_TRAIN = 25, 900
RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(N_LABELS, 12))
Y = (RNG.random((N_TRAIN + 200, N_LABELS)) < 0.08).astype(int)
EMBEDDINGS = Y @ CENTRES + 0.7 * RNG.normal(size=(len(Y), 12))
X = sp.csr_array(np.maximum(0, Y @ RNG.normal(size=(N_LABELS, 20)) + RNG.normal(size=(len(Y), 20))))
TRAIN, TEST = slice(0, N_TRAIN), slice(N_TRAIN, None)
ASKED = {"embeddings": EMBEDDINGS[TEST]}


def fitted(rows: slice = TRAIN, *, names: Any = None, **params: Any) -> LdSMClassifier:
    clf = LdSMClassifier(4, **params)
    return clf.fit(X[rows], Y[rows], embeddings=EMBEDDINGS[rows], label_embeddings=names)


@cache
def model() -> LdSMClassifier:
    return fitted(names=dict(enumerate(CENTRES)))


def answers(clf: LdSMClassifier, rows: Any = TEST) -> list[Any]:
    labels, scores = clf.predict_topk(X[rows], 5, embeddings=EMBEDDINGS[rows])
    return [labels.tolist(), scores.tolist()]


def test_embeddings_find_more() -> None:
    plain = LdSMClassifier(4).fit(X[TRAIN], Y[TRAIN])
    clf = model()
    assert "meaning" in clf.second_stage_.blend.kind
    assert clf.score(X[TEST], Y[TEST], **ASKED) > plain.score(X[TEST], Y[TEST]) + 0.05
    # All methods agree.
    scores = clf.predict_proba(X[TEST], **ASKED)
    labels, best = clf.predict_topk(X[TEST], 3, **ASKED)
    assert np.array_equal(np.take_along_axis(scores, labels, 1), best)
    assert np.array_equal(clf.predict(X[TEST], **ASKED), scores >= clf.threshold_)
    tuned = copy.copy(clf).tune_threshold(X[TEST], Y[TEST], **ASKED)
    assert 0 < tuned.threshold_ < 1
    only, _ = clf.predict_topk(X[TEST], 2, only=[3, 7, 9], **ASKED)
    assert set(only.ravel().tolist()) <= {3, 7, 9}


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_same_bits_for_any_number_of_threads(n_jobs: int) -> None:
    again = fitted(names=dict(enumerate(CENTRES)), n_jobs=n_jobs)
    assert again.fingerprint_ == model().fingerprint_
    assert answers(again) == answers(model())


@pytest.mark.parametrize("batch", [1, 7, 130])
def test_same_bits_for_any_batch(batch: int) -> None:
    whole, parts = answers(model()), []
    for start in range(N_TRAIN, N_TRAIN + 200, batch):
        parts.append(answers(model(), slice(start, min(start + batch, N_TRAIN + 200))))
    for i in (0, 1):
        assert [row for part in parts for row in part[i]] == whole[i]


def test_saved_and_loaded(tmp_path: Any) -> None:
    path = tmp_path / "m.ldsm"
    model().save(path)
    for verify in (True, False):
        again = ldsm.load(path, verify=verify)
        assert again.fingerprint_ == model().fingerprint_
        assert answers(again) == answers(model())


def test_file_grows_by_a_byte_per_label_and_dimension() -> None:
    meaning = model().second_stage_.meaning
    assert meaning.codes.nbytes == N_LABELS * 12
    assert meaning.units.nbytes == meaning.biases.nbytes == 4 * N_LABELS
    assert meaning.precision.nbytes == 4 * 12 * 13 // 2


def test_embeddings_that_bring_nothing_are_left_out() -> None:
    rng = np.random.default_rng(1)
    one = np.ones((N_TRAIN, 3))
    clf = LdSMClassifier(4).fit(X[TRAIN], Y[TRAIN], embeddings=one)
    noise = LdSMClassifier(4).fit(X[TRAIN], Y[TRAIN], embeddings=rng.normal(size=(N_TRAIN, 3)))
    plain = LdSMClassifier(4).fit(X[TRAIN], Y[TRAIN])
    expected = plain.score(X[TEST], Y[TEST])
    for weak in (clf, noise):
        own = {"embeddings": np.ones((200, 3))}
        assert weak.score(X[TEST], Y[TEST], **own) > expected - 0.03


def test_rows_without_a_meaning() -> None:
    """Rows of zeros are learned, and answered, by the rest of the model."""
    clf = LdSMClassifier(4)
    half = EMBEDDINGS[TRAIN] * (np.arange(N_TRAIN) % 2)[:, None]
    clf.fit(X[TRAIN], Y[TRAIN], embeddings=half)
    assert clf.score(X[TEST], Y[TEST], embeddings=np.zeros((200, 12))) > 0.3
    assert clf.score(X[TEST], Y[TEST], **ASKED) > 0.5


def test_explained() -> None:
    clf, row = model(), N_TRAIN + 3
    labels, scores = clf.predict_topk(X[[row]], 4, embeddings=EMBEDDINGS[[row]])
    found = clf.explain_scores(X[[row]], 4, embeddings=EMBEDDINGS[row])
    assert [one.label for one in found] == labels[0].tolist()
    for one, score in zip(found, scores[0].tolist(), strict=True):
        assert one.score == score and one.meaning is not None
        assert sum(one.shares.values()) == pytest.approx(np.log(score / (1 - score)), abs=1e-4)
    assert found[0].shares["meaning"] > found[-1].shares["meaning"]
    assert len(clf.explain(X[[row]])) == 4  # trees read X alone
    assert clf.decision_path(X[[row]])[0].shape[0] == 1


def test_same_model_from_a_store(tmp_path: Any) -> None:
    """With any number of threads or processes, with and without a limit and a checkpoint."""
    names = dict(enumerate(CENTRES))
    data = Dataset(X[TRAIN], Y[TRAIN], embeddings=EMBEDDINGS[TRAIN], label_embeddings=names)
    data.save(tmp_path / "rows")
    store = open_store(tmp_path / "rows")
    expected = fitted(names=names).fit(
        X[TRAIN], sp.csr_array(Y[TRAIN]), embeddings=EMBEDDINGS[TRAIN], label_embeddings=names
    )
    for params in ({}, {"n_jobs": 2}, {"n_jobs": 2, "memory_limit": 1 << 20}):
        clf = LdSMClassifier(4, **params).fit(store)
        assert clf.fingerprint_ == expected.fingerprint_, params
    folder = tmp_path / "parts"
    for _ in range(2):
        clf = LdSMClassifier(4).fit(store, checkpoint_dir=folder)
        assert clf.fingerprint_ == expected.fingerprint_
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert LdSMClassifier(4).fit(store).fingerprint_ == expected.fingerprint_
    test = Dataset(X[TEST], Y[TEST], embeddings=EMBEDDINGS[TEST])
    assert clf.score(test) == expected.score(X[TEST], Y[TEST], **ASKED)
    assert Evaluation(clf, test).scores((1,)).ranking["precision@1"] == clf.score(test)


def test_fit_reads_embeddings_in_pieces(tmp_path: Any, monkeypatch: Any) -> None:
    """Never are all of them copied."""
    many = np.tile(EMBEDDINGS[TRAIN], (20, 1))
    data = Dataset(sp.vstack([X[TRAIN]] * 20), np.tile(Y[TRAIN], (20, 1)), embeddings=many)
    data.save(tmp_path / "rows")
    store, taken = open_store(tmp_path / "rows"), []
    of = DenseRows.__post_init__

    def noted(rows: DenseRows) -> None:
        if not is_mapped(rows.values):
            taken.append(rows.n_rows)
        of(rows)

    monkeypatch.setattr(DenseRows, "__post_init__", noted)
    clf = LdSMClassifier(2, memory_limit=1 << 20).fit(store)
    assert "meaning" in clf.second_stage_.blend.kind
    assert 0 < max(taken) < 0.2 * len(store)


def test_learning_from_a_dataset() -> None:
    rows, names = slice(600, N_TRAIN), {0: CENTRES[0]}
    first = fitted(slice(0, 600))
    clf = copy.copy(first).partial_fit(
        X[rows], Y[rows], embeddings=EMBEDDINGS[rows], label_embeddings=names
    )
    data = Dataset(X[rows], Y[rows], embeddings=EMBEDDINGS[rows], label_embeddings=names)
    assert (
        copy.copy(first)
        .partial_fit(data.X, Y[rows], embeddings=data.embeddings, label_embeddings=names)
        .fingerprint_
        == clf.fingerprint_
    )
    plain = LdSMClassifier(2).fit(X[:50], Y[:50])
    assert plain.score(data) >= 0  # its embeddings are features that the model does not know
    for call in (first.score, first.partial_fit, first.fit):
        with pytest.raises(ValueError, match="The Dataset includes its embeddings"):
            call(data, embeddings=EMBEDDINGS[rows])


def test_more_trees_give_the_model_of_all_trees() -> None:
    names = dict(enumerate(CENTRES))
    rows = {"embeddings": EMBEDDINGS[TRAIN], "label_embeddings": names}
    clf = LdSMClassifier(2, warm_start=True).fit(X[TRAIN], Y[TRAIN], **rows)
    clf.set_params(n_estimators=4).fit(X[TRAIN], Y[TRAIN], **rows)
    assert answers(clf) == answers(model())
    assert (
        clf.second_stage_.meaning.arrays().keys() == model().second_stage_.meaning.arrays().keys()
    )


# -- changes ------------------------------------------------------------------------------------


def test_partial_fit_is_close_to_a_refit() -> None:
    clf = fitted(slice(0, 600), names=dict(enumerate(CENTRES)))
    rows = slice(600, N_TRAIN)
    clf.partial_fit(X[rows], Y[rows], embeddings=EMBEDDINGS[rows])
    assert clf.score(X[TEST], Y[TEST], **ASKED) > model().score(X[TEST], Y[TEST], **ASKED) - 0.04


def test_update_moves_only_labels_of_the_batch() -> None:
    clf = copy.copy(model())
    given = Y[TEST][:30].copy()
    given[:, 5:] = 0
    before = clf.second_stage_.meaning
    clf.partial_fit(X[TEST][:30], given, embeddings=EMBEDDINGS[TEST][:30])
    after = clf.second_stage_.meaning
    assert np.array_equal(after.codes[5:], before.codes[5:])
    assert np.array_equal(after.biases[5:], before.biases[5:])
    shown = np.flatnonzero(given.any(axis=0))
    assert len(shown) and (after.codes[shown] != before.codes[shown]).any(axis=1).all()


def test_new_labels_learn_their_meaning() -> None:
    seen = np.flatnonzero(Y[TRAIN, 4] == 0)
    names = np.array([f"label {i:02}" for i in range(N_LABELS)], dtype=object)
    tags = [names[np.flatnonzero(row)].tolist() for row in Y]
    vectors = {name: centre for i, (name, centre) in enumerate(zip(names, CENTRES, strict=True))}
    del vectors["label 04"]
    clf = LdSMClassifier(4).fit(
        X[seen], [tags[i] for i in seen], embeddings=EMBEDDINGS[seen], label_embeddings=vectors
    )
    new = np.flatnonzero(Y[TRAIN, 4])[:20]
    clf.partial_fit(
        X[new],
        [tags[i] for i in new],
        embeddings=EMBEDDINGS[new],
        label_embeddings={"label 04": CENTRES[4]},
    )
    assert clf.classes_[4] == "label 04" and clf.second_stage_.meaning.units[4] > 0
    own = np.flatnonzero(Y[TEST, 4])
    labels, _ = clf.predict_topk(X[TEST][own], 5, embeddings=EMBEDDINGS[TEST][own])
    assert (labels == "label 04").any(axis=1).mean() > 0.6


def test_dropped_and_renamed_labels_keep_other_scores(tmp_path: Any) -> None:
    clf = copy.copy(model())
    clf.model_ = model().model_
    short = copy.copy(clf)
    stage = clf.second_stage_
    short.model_ = replace(clf.model_, second_stage=replace(stage, length=6))
    for whole in (clf, short):
        before = whole.predict_proba(X[TEST], **ASKED)
        after = copy.copy(whole).rename_labels({3: 100}).drop_labels([1, 7, 11])
        kept = [int(label) if label != 100 else 3 for label in after.classes_]
        assert np.array_equal(after.predict_proba(X[TEST], **ASKED), before[:, kept])
        after.save(tmp_path / "m.ldsm")
        again = ldsm.load(tmp_path / "m.ldsm")
        assert again.fingerprint_ == after.fingerprint_
        assert np.array_equal(again.predict_proba(X[TEST], **ASKED), before[:, kept])


# -- mistakes -----------------------------------------------------------------------------------


def test_embeddings_of_another_form() -> None:
    clf, plain = model(), LdSMClassifier(2).fit(X[:50], Y[:50])
    with pytest.raises(ValueError, match="embeddings must be given: .* of 12 columns"):
        clf.predict(X[TEST])
    with pytest.raises(ValueError, match="embeddings must have the 12 columns .* Got 11"):
        clf.predict(X[TEST], embeddings=EMBEDDINGS[TEST, 1:])
    with pytest.raises(ValueError, match="embeddings must have as many rows as X, 200. Got 199"):
        clf.score(X[TEST], Y[TEST], embeddings=EMBEDDINGS[TEST][1:])
    with pytest.raises(ValueError, match="embeddings must be None: .* trained without"):
        plain.predict(X[TEST], **ASKED)
    with pytest.raises(ValueError, match="label_embeddings must be None: .* trained without"):
        plain.partial_fit(X[:9], Y[:9], label_embeddings={0: [1.0]})


def test_mistakes_in_a_fit_change_nothing() -> None:
    clf = copy.copy(model())
    with pytest.raises(ValueError, match="label_embeddings need embeddings of the rows"):
        clf.fit(X[TRAIN], Y[TRAIN], label_embeddings={0: CENTRES[0]})
    with pytest.raises(ValueError, match="has a vector for 99, which is not a label"):
        fitted(names={99: CENTRES[0]})
    with pytest.raises(ValueError, match="must be finite. Got NaN or infinity in row 2"):
        wrong = EMBEDDINGS[TEST].copy()
        wrong[2, 2] = np.nan
        clf.partial_fit(X[TEST], Y[TEST], embeddings=wrong)
    assert clf.fingerprint_ == model().fingerprint_
