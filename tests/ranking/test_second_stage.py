"""The second stage in one fit: what is chosen, that it helps, and that it survives everything."""

import os
import pickle
from functools import cache
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import ldsm
from ldsm import LdSMClassifier, _core, metrics
from ldsm._matching.shortlists import SHORTLIST
from ldsm._ranking.blend import KINDS, Blend, Pairs, fit_blend, tail_scores, tree_log_odds
from ldsm.datasets import make_xmc

SMALL: dict[str, Any] = {"n_estimators": 6, "n_epochs": 2, "random_state": 0}


@cache
def text_like() -> tuple[Any, Any, Any, Any]:
    """Rows whose labels show in single features: linear classifiers tell them better than trees."""
    data = make_xmc(2000, 600, 150, labels_per_row=3, nonzeros_per_row=25, seed=0)
    return data.X[:1500], data.Y[:1500], data.X[1500:], data.Y[1500:]


@cache
def fitted(rerank: str | None = "auto", **changes: Any) -> LdSMClassifier:
    X, Y, _, _ = text_like()
    return LdSMClassifier(**(SMALL | {"rerank": rerank} | changes)).fit(X, Y)


def precision(clf: LdSMClassifier, k: int = 1, **options: Any) -> float:
    _, _, X, Y = text_like()
    return metrics.precision_at_k(Y, clf.predict_topk(X, k, **options)[0], k)


# -- what is chosen ---------------------------------------------------------------------------


def test_auto_chooses_ranker() -> None:
    stage = fitted().second_stage_
    assert stage.blend.kind.startswith("linear")
    assert list(stage.parts) == list(stage.blend.needs)
    assert precision(fitted()) > precision(fitted(None, subsample=1.0)) + 0.02


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_auto_follows_trees_on_xor(seed: int) -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(2, size=(2000, 2))
    noise = (rng.random((2000, 6)) < 0.5).astype(float)
    # Both values of a bit have a feature, so all rows are equally long; the label is their xor.
    X = np.hstack([bits, 1 - bits, 0.2 * noise])
    odd = bits[:, 0] ^ bits[:, 1] ^ (rng.random(2000) < 0.1)
    Y = np.stack([odd, 1 - odd], axis=1)
    # With so few rows, trees that stop at 512 labels need not find that the bits go together.
    params: dict[str, Any] = {"n_estimators": 8, "min_split_labels": 1, "random_state": seed}
    clf, alone = (
        LdSMClassifier(**params, rerank=rerank).fit(X[:1500], Y[:1500]) for rerank in ("auto", None)
    )
    assert clf.second_stage_.ranker is not None
    assert clf.score(X[1500:], Y[1500:]) >= alone.score(X[1500:], Y[1500:]) - 0.02


def test_few_rows_have_no_second_stage() -> None:
    X, Y, _, _ = text_like()
    clf = LdSMClassifier(**SMALL).fit(X[:400], Y[:400])
    assert clf.second_stage_ is None
    assert clf.tree_params_.subsample == 1.0


def test_second_stage_needs_out_of_bag_rows() -> None:
    X, Y, _, _ = text_like()
    assert LdSMClassifier(**SMALL, subsample=1.0).fit(X, Y).second_stage_ is None
    for rerank in ("linear", "tail"):
        with pytest.raises(ValueError, match=f"'subsample'.*rerank='{rerank}'.*Got 1.0 instead"):
            LdSMClassifier(**SMALL, subsample=1.0, rerank=rerank).fit(X, Y)


def test_too_few_pairs_for_blend() -> None:
    X, Y, _, _ = text_like()
    with pytest.raises(ValueError, match="rerank='linear' needs at least 20 true"):
        LdSMClassifier(**SMALL, rerank="linear").fit(X[:30], Y[:30])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rerank", "svm"),
        ("tail_blend", 1.5),
        ("tail_gamma", 0),
        ("tail_min_rows", 0),
        ("subsample", "half"),
    ],
)
def test_invalid_parameters(name: str, value: Any) -> None:
    X, Y, _, _ = text_like()
    with pytest.raises(ValueError, match=f"The '{name}' parameter of LdSMClassifier must be"):
        LdSMClassifier(**{name: value}).fit(X, Y)


# -- the tail ---------------------------------------------------------------------------------


def psp(clf: LdSMClassifier, k: int = 3, **options: Any) -> float:
    _, train, X, Y = text_like()
    propensities = metrics.propensities(train)
    top = clf.predict_topk(X, k, **options)[0]
    return metrics.psp_at_k(Y, top, k, propensities=propensities)


def test_tail_formula() -> None:
    X, _, new, _ = text_like()
    clf = fitted("tail", tail_gamma=4.0, tail_blend=0.6)
    stage = clf.second_stage_
    assert (stage.blend.kind, stage.blend.gamma, stage.blend.tree_share) == ("tail", 4.0, 0.6)
    trees = clone(clf).set_params(rerank=None, subsample=clf.tree_params_.subsample)
    trees.fit(*text_like()[:2])
    labels, tree_scores = trees.predict_topk(new, SHORTLIST)
    unit = new.toarray() / np.linalg.norm(new.toarray(), axis=1, keepdims=True)
    rows = X.toarray() / np.linalg.norm(X.toarray(), axis=1, keepdims=True)
    Y = text_like()[1].toarray()
    for row in range(5):
        known = tree_scores[row] > 0
        score = np.zeros(known.sum())
        for i, label in enumerate(labels[row][known]):
            mean = rows[Y[:, label] == 1].mean(axis=0)
            mean[mean < 0.01] = 0  # what pruning leaves of it
            distance = np.sum((unit[row] - mean) ** 2)
            score[i] = 0.6 * tree_scores[row][i] + 0.4 / (1 + np.exp(4.0 * distance / 2))
        got, probabilities = clf.predict_topk(new[[row]], int(known.sum()))
        assert np.array_equal(got[0], labels[row][known][np.argsort(-score, kind="stable")])
        b, a = stage.blend.coefficients
        expected = 1 / (1 + np.exp(-(b + a * tree_log_odds(np.sort(score)[::-1]))))
        np.testing.assert_allclose(probabilities[0], expected, atol=1e-4)


def test_learned_gamma_helps_rare_labels() -> None:
    clf = fitted("tail", n_estimators=12, tail_blend=0.2)
    assert clf.second_stage_.blend.gamma > 0
    assert psp(clf, 3) > psp(fitted(None, n_estimators=12, subsample=0.7), 3) + 0.005


def test_tail_min_rows() -> None:
    stage = fitted("tail", tail_min_rows=20).second_stage_
    lengths = np.diff(stage.centroids.offsets)
    assert np.all((lengths > 0) == (stage.label_counts >= 20))
    assert 0 < np.sum(lengths > 0) < len(lengths)


@pytest.mark.parametrize("rerank", [None, "auto"])
def test_tail_orders_by_score_over_propensity(rerank: str | None) -> None:
    _, train, X, _ = text_like()
    clf = fitted(rerank, n_estimators=12)
    assert psp(clf, tail=1.0) > psp(clf)
    labels, scores = clf.predict_topk(X, 20, tail=1.0)
    merit = scores / metrics.propensities(train)[labels]
    assert np.all(np.diff(merit, axis=1) <= 1e-6)
    plain = clf.predict_proba(X)
    assert np.array_equal(scores[0], plain[[0]].toarray()[0][labels[0]])


@pytest.mark.parametrize("tail", [-1, np.inf, 10**400, "much", True])
def test_invalid_tail(tail: Any) -> None:
    with pytest.raises(ValueError, match="The 'tail' parameter must be a float >= 0"):
        fitted().predict_topk(text_like()[2], tail=tail)


# -- scores -----------------------------------------------------------------------------------


def test_scores_are_probabilities() -> None:
    _, _, X, Y = text_like()
    scores = fitted().predict_proba(X)
    truth = Y[:, :].toarray()[scores.nonzero()]
    share = np.asarray(scores[scores.nonzero()]).ravel()
    bins = np.minimum((10 * share).astype(int), 9)
    error = sum(
        abs(truth[bins == b].mean() - share[bins == b].mean()) * np.mean(bins == b)
        for b in np.unique(bins)
    )
    assert error < 0.02
    for b in np.unique(bins):
        if np.sum(bins == b) >= 200:
            assert abs(truth[bins == b].mean() - share[bins == b].mean()) < 0.15


def test_topk_prefix() -> None:
    _, _, X, _ = text_like()
    short, long = fitted().predict_topk(X, 5), fitted().predict_topk(X, 140)
    assert np.array_equal(short[0], long[0][:, :5])
    assert np.array_equal(short[1], long[1][:, :5])
    assert all(len(set(row)) == 140 for row in long[0].tolist())


def test_predictions_agree() -> None:
    _, _, X, Y = text_like()
    clf = fitted()
    labels, scores = clf.predict_topk(X, 10)
    proba = clf.predict_proba(X)
    assert proba.has_sorted_indices
    assert np.array_equal(proba.toarray()[np.arange(X.shape[0])[:, None], labels], scores)
    assert np.array_equal(clf.predict(X).toarray() == 1, proba.toarray() >= clf.threshold_)
    some = np.unique(labels[:, :3])[::2]
    only, _ = clf.predict_topk(X, 3, only=some)
    assert np.isin(only, some).all()
    for batch in (1, 7, 100):
        parts = [clf.predict_topk(X[i : i + batch], 10) for i in range(0, 200, batch)]
        n = sum(len(p[0]) for p in parts)
        assert np.array_equal(np.concatenate([p[0] for p in parts]), labels[:n])
        assert np.array_equal(np.concatenate([p[1] for p in parts]), scores[:n])
    assert clf.score(X, Y) == precision(clf)


# -- the blend --------------------------------------------------------------------------------


def some_pairs(n: int = 4000) -> tuple[Pairs, Any]:
    rng = np.random.default_rng(0)
    pairs = Pairs(
        (rng.random(n) * (rng.random(n) < 0.9)).astype(np.float32),  # some are in no leaf
        rng.integers(1, 1000, n),
        rng.normal(size=n).astype(np.float32),
        rng.random(n),
        *(rng.random(n).astype(np.float32) for _ in range(2)),
        "okdrh",
        rng.random((5, n)),
    )
    odds = 2 * tree_log_odds(pairs.tree_scores) + 1.5 * pairs.margins - pairs.distances
    return pairs, rng.random(n) < 1 / (1 + np.exp(-odds))


@pytest.mark.parametrize("kind", ["linear", "linear+tail", "linear+index", "linear+index+tail"])
def test_blend_is_logistic_regression(kind: str) -> None:
    pairs, truth = some_pairs()
    blend = fit_blend(kind, pairs, truth)
    terms = _core.blend_terms(pairs, blend.terms)[:, 1:]
    scale = terms.std(axis=0)
    twin = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(terms / scale, truth)
    np.testing.assert_allclose(
        blend.probabilities(pairs), twin.predict_proba(terms / scale)[:, 1], atol=2e-3
    )


@pytest.mark.parametrize("kind", list(KINDS))
def test_shares_sum_to_log_odds(kind: str) -> None:
    pairs, truth = some_pairs(500)
    blend = fit_blend(kind, pairs, truth, tree_share=0.8, gamma=2.0)
    p = blend.probabilities(pairs).astype(np.float64)
    total = sum(blend.shares(pairs).values())
    np.testing.assert_allclose(1 / (1 + np.exp(-total)), p, atol=1e-6)


@pytest.mark.parametrize("kind", ["trees", "tail"])
def test_calibration_keeps_order(kind: str) -> None:
    pairs, truth = some_pairs(500)
    blend = fit_blend(kind, pairs, ~truth, tree_share=0.8, gamma=2.0)
    scores = pairs.tree_scores if kind == "trees" else tail_scores(pairs, 0.8, 2.0)
    order = np.argsort(scores)
    assert np.all(np.diff(blend.probabilities(pairs)[order]) >= 0)


def test_extreme_pairs_give_finite_probabilities() -> None:
    pairs = Pairs(
        np.array([0, 1, 0.5], np.float32),
        np.array([0, 2**40, 1]),
        np.array([-1e30, 1e30, 0], np.float32),
        np.array([0, 1e30, 4]),
        *[np.array([0, 3e38, 1e-45], np.float32)] * 2,
        "okdrh",
        np.tile([0, 3e38, 1e-45], (5, 1)),
    )
    for kind in KINDS:
        signs = np.resize([1.0, 2.0, -3.0], len(KINDS[kind].terms))
        for coefficients in (signs, -signs, 1e30 * signs):
            blend = Blend(kind, tuple(coefficients), 0.8, 2.0)
            assert np.isfinite(blend.probabilities(pairs)).all()


# -- it survives everything -------------------------------------------------------------------


@pytest.mark.parametrize("rerank", ["auto", "linear", "tail"])
@pytest.mark.parametrize("verify", [True, False])
def test_saved_and_loaded(tmp_path: Any, rerank: str, verify: bool) -> None:
    _, _, X, _ = text_like()
    clf = fitted(rerank)
    clf.save(tmp_path / "m.ldsm")
    again = ldsm.load(tmp_path / "m.ldsm", verify=verify)
    assert again.fingerprint_ == clf.fingerprint_
    for a, b in zip(clf.predict_topk(X, 5), again.predict_topk(X, 5), strict=True):
        assert np.array_equal(a, b)
    assert again.second_stage_.blend == clf.second_stage_.blend


def test_compressed_model_quality(tmp_path: Any) -> None:
    _, _, X, _ = text_like()
    small, exact = fitted(compress=True), fitted(compress=False)
    assert small.second_stage_.ranker.weights.dtype == np.int8
    assert exact.second_stage_.ranker.weights.dtype == np.float32
    for clf, name in ((small, "small"), (exact, "exact")):
        clf.save(tmp_path / name)
    assert os.path.getsize(tmp_path / "small") < 0.5 * os.path.getsize(tmp_path / "exact")
    # Each has trees of its own: they are grown with the weights that are stored.
    assert np.mean(small.predict_topk(X, 1)[0] == exact.predict_topk(X, 1)[0]) > 0.9
    assert abs(precision(small) - precision(exact)) < 0.02


def test_rankers_are_compressed_by_default() -> None:
    assert fitted().fingerprint_ == fitted(compress=True).fingerprint_
    assert fitted("tail").fingerprint_ == fitted("tail", compress=False).fingerprint_
    assert fitted("tail", compress=True).second_stage_.centroids.weights.dtype == np.int8


def test_pickled() -> None:
    _, _, X, _ = text_like()
    clf = fitted()
    again = pickle.loads(pickle.dumps(clf))
    assert again.fingerprint_ == clf.fingerprint_
    assert np.array_equal(again.predict_topk(X, 5)[1], clf.predict_topk(X, 5)[1])
    assert not again.second_stage_.ranker.weights.flags.writeable


def test_same_bits_for_threads_and_backends() -> None:
    X, Y, _, _ = text_like()
    one = fitted().fingerprint_
    for n_jobs in (2, 3):
        assert LdSMClassifier(**SMALL, n_jobs=n_jobs).fit(X, Y).fingerprint_ == one
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert LdSMClassifier(**SMALL).fit(X, Y).fingerprint_ == one


def test_fingerprint_covers_second_stage() -> None:
    prints = {
        fitted("linear").fingerprint_,
        fitted("tail").fingerprint_,
        fitted(None, subsample=0.7).fingerprint_,
    }
    assert len(prints) == 3


def test_warm_start_refits_blend() -> None:
    X, Y, _, _ = text_like()
    warm = LdSMClassifier(**(SMALL | {"n_estimators": 3}), warm_start=True).fit(X, Y)
    first = warm.second_stage_.blend
    warm.set_params(n_estimators=6).fit(X, Y)
    assert warm.fingerprint_ == fitted().fingerprint_
    assert warm.second_stage_.blend != first


def test_checkpointed_second_stage(tmp_path: Any) -> None:
    X, Y, _, _ = text_like()
    folder = tmp_path / "trees"
    for _ in range(2):
        clf = LdSMClassifier(**SMALL).fit(X, Y, checkpoint_dir=folder)
        assert clf.fingerprint_ == fitted().fingerprint_
    assert clf.training_["trees_from_checkpoint"] == SMALL["n_estimators"]


def test_label_lists_and_single_labels() -> None:
    X, Y, new, _ = text_like()
    names = [[f"tag{i}" for i in Y[[row]].indices] for row in range(Y.shape[0])]
    clf = LdSMClassifier(**SMALL).fit(X, names)
    assert clf.second_stage_ is not None
    got = clf.predict_topk(new, 3)[0]
    plain = fitted().predict_topk(new, 3)[0]
    # The columns are sorted names now; the labels are the same but for what the order breaks.
    same = np.mean([set(a) == {f"tag{i}" for i in b} for a, b in zip(got, plain, strict=True)])
    assert same > 0.6
    one = np.array([row[0] if row else "none" for row in names])
    single = LdSMClassifier(**SMALL).fit(X, one)
    assert single.second_stage_ is not None
    assert single.predict(new).shape == (new.shape[0],)


def test_dense_and_empty_rows() -> None:
    X, Y, _, _ = text_like()
    dense = LdSMClassifier(**SMALL).fit(X.toarray(), Y)
    assert dense.fingerprint_ == fitted().fingerprint_
    empty = sp.csr_array((3, X.shape[1]), dtype=np.float32)
    labels, scores = fitted().predict_topk(empty, 5)
    assert np.isfinite(scores).all() and len(set(labels[0])) == 5


# -- damaged files ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h.update(gamma=float("nan")), "'gamma': it must be a number from"),
        (lambda h, a: h.pop("gamma"), "no proper entry 'gamma'"),
        (lambda h, a: a.pop("second_stage.ranker.weights"), "lacks the array"),
        (lambda h, a: _set(a, "features", 5, -1), "ranker has a feature out of range"),
        (lambda h, a: _set(a, "features", 5, 10**6), "ranker has a feature out of range"),
        (lambda h, a: _set(a, "features", 1, 0), "do not rise within a label"),
        (lambda h, a: _set(a, "offsets", 3, 10**9), "do not rise from 0"),
        (lambda h, a: _set(a, "offsets", 0, 1), "do not rise from 0"),
        (lambda h, a: _set(a, "weights", 5, np.nan), "weight that is not finite"),
        (lambda h, a: _cut(a, "offsets"), "must have the shape|must have a unit for each label"),
        (lambda h, a: _retype(a, "weights"), "must be of type|wrong type for its weights"),
        (lambda h, a: _retype(a, "features"), "must be of type|wrong type for its weights"),
    ],
)
def test_damaged_second_stage(change: Any, message: str) -> None:
    """Of floats; tests/model has compressed ones, and the index."""
    from ldsm._model.saved_form import model_to_state
    from ldsm.classifier import classifier_from_state

    clf = fitted("linear", compress=False)
    header, arrays = model_to_state(clf.model_, clf.get_params())
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(header["model"]["second_stage"], arrays)
    with pytest.raises(ValueError, match=message):
        classifier_from_state(header, arrays)


def _set(arrays: Any, name: str, place: int, value: Any) -> None:
    arrays[f"second_stage.ranker.{name}"][place] = value


def _cut(arrays: Any, name: str) -> None:
    arrays[f"second_stage.ranker.{name}"] = arrays[f"second_stage.ranker.{name}"][:-1]


def _retype(arrays: Any, name: str) -> None:
    arrays[f"second_stage.ranker.{name}"] = arrays[f"second_stage.ranker.{name}"].astype(float)


@pytest.mark.parametrize("compress", [False, True])
def test_second_stage_holds_no_row(tmp_path: Any, compress: bool) -> None:
    X, Y, _, _ = text_like()
    canary = sp.lil_array(X)
    value = np.float32(0.71828175)
    canary[7, 3] = value
    canary = sp.csr_array(canary)
    clf = LdSMClassifier(**SMALL, rerank="linear", compress=compress).fit(canary, Y)
    clf.save(tmp_path / "m.ldsm")
    content = (tmp_path / "m.ldsm").read_bytes()
    scaled = value / np.linalg.norm(canary[[7]].toarray())
    for number in (value, scaled):
        for dtype in (np.float32, np.float64):
            assert dtype(number).tobytes() not in content
