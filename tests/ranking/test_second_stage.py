"""The second stage in one fit: what is chosen, that it helps, and that it survives everything."""

from __future__ import annotations

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
from ldsm._ranking.blend import KINDS, Blend, Pairs, fit_blend, tail_scores, tree_log_odds
from ldsm._ranking.stage import SHORTLIST
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


def test_auto_finds_the_ranker_where_it_helps() -> None:
    stage = fitted().second_stage_
    assert stage.blend.kind.startswith("linear")
    assert list(stage.parts) == list(stage.blend.needs)
    assert precision(fitted()) > precision(fitted(None, subsample=1.0)) + 0.02


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_auto_follows_the_trees_where_no_line_tells_the_labels(seed: int) -> None:
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


def test_few_rows_are_for_the_trees_alone() -> None:
    X, Y, _, _ = text_like()
    clf = LdSMClassifier(**SMALL).fit(X[:400], Y[:400])
    assert clf.second_stage_ is None
    assert clf.tree_params_.subsample == 1.0


def test_without_out_of_bag_rows_auto_is_the_trees_and_linear_an_error() -> None:
    X, Y, _, _ = text_like()
    assert LdSMClassifier(**SMALL, subsample=1.0).fit(X, Y).second_stage_ is None
    for rerank in ("linear", "tail"):
        with pytest.raises(ValueError, match=f"'subsample'.*rerank='{rerank}'.*Got 1.0 instead"):
            LdSMClassifier(**SMALL, subsample=1.0, rerank=rerank).fit(X, Y)


def test_too_few_pairs_for_a_blend_are_told() -> None:
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
def test_bad_parameters_are_named(name: str, value: Any) -> None:
    X, Y, _, _ = text_like()
    with pytest.raises(ValueError, match=f"The '{name}' parameter of LdSMClassifier must be"):
        LdSMClassifier(**{name: value}).fit(X, Y)


# -- the tail ---------------------------------------------------------------------------------


def psp(clf: LdSMClassifier, k: int = 3, **options: Any) -> float:
    _, train, X, Y = text_like()
    propensities = metrics.propensities(train)
    top = clf.predict_topk(X, k, **options)[0]
    return metrics.psp_at_k(Y, top, k, propensities=propensities)


def test_tail_reranking_is_the_papers_formula() -> None:
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


def test_gamma_is_learned_and_rare_labels_gain() -> None:
    clf = fitted("tail", n_estimators=12, tail_blend=0.2)
    assert clf.second_stage_.blend.gamma > 0
    assert psp(clf, 3) > psp(fitted(None, n_estimators=12, subsample=0.7), 3) + 0.005


def test_centroids_of_few_rows_can_be_refused() -> None:
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
def test_a_bad_tail_is_named(tail: Any) -> None:
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


def test_a_longer_list_keeps_the_head_of_a_shorter_one() -> None:
    _, _, X, _ = text_like()
    short, long = fitted().predict_topk(X, 5), fitted().predict_topk(X, 140)
    assert np.array_equal(short[0], long[0][:, :5])
    assert np.array_equal(short[1], long[1][:, :5])
    assert all(len(set(row)) == 140 for row in long[0].tolist())


def test_all_ways_to_ask_agree() -> None:
    _, _, X, Y = text_like()
    clf = fitted()
    labels, scores = clf.predict_topk(X, 10)
    proba = clf.predict_proba(X)
    assert proba.has_sorted_indices
    assert np.array_equal(proba.toarray()[np.arange(X.shape[0])[:, None], labels], scores)
    assert np.array_equal(clf.predict(X).toarray() == 1, proba.toarray() >= 0.5)
    some = np.unique(labels[:, :3])[::2]
    only, _ = clf.predict_topk(X, 3, labels=some)
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
        "okdr",
        rng.random((4, n)),
    )
    odds = 2 * tree_log_odds(pairs.tree_scores) + 1.5 * pairs.margins - pairs.distances
    return pairs, rng.random(n) < 1 / (1 + np.exp(-odds))


@pytest.mark.parametrize("kind", ["linear", "linear+tail", "linear+index", "linear+index+tail"])
def test_a_blend_is_logistic_regression(kind: str) -> None:
    pairs, truth = some_pairs()
    blend = fit_blend(kind, pairs, truth)
    terms = _core.blend_terms(pairs, blend.terms)[:, 1:]
    scale = terms.std(axis=0)
    twin = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(terms / scale, truth)
    np.testing.assert_allclose(
        blend.probabilities(pairs), twin.predict_proba(terms / scale)[:, 1], atol=2e-3
    )


@pytest.mark.parametrize("kind", list(KINDS))
def test_shares_add_up_to_the_log_odds(kind: str) -> None:
    pairs, truth = some_pairs(500)
    blend = fit_blend(kind, pairs, truth, tree_share=0.8, gamma=2.0)
    p = blend.probabilities(pairs).astype(np.float64)
    total = sum(blend.shares(pairs).values())
    np.testing.assert_allclose(1 / (1 + np.exp(-total)), p, atol=1e-6)


@pytest.mark.parametrize("kind", ["trees", "tail"])
def test_calibration_never_turns_the_order_round(kind: str) -> None:
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
        "okdr",
        np.tile([0, 3e38, 1e-45], (4, 1)),
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


def test_compressed_models_are_small_and_nearly_as_good(tmp_path: Any) -> None:
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


def test_models_with_a_ranker_are_compressed_unless_told_otherwise() -> None:
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


def test_the_same_bits_for_any_number_of_threads_and_any_backend() -> None:
    X, Y, _, _ = text_like()
    one = fitted().fingerprint_
    for n_jobs in (2, 3):
        assert LdSMClassifier(**SMALL, n_jobs=n_jobs).fit(X, Y).fingerprint_ == one
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert LdSMClassifier(**SMALL).fit(X, Y).fingerprint_ == one


def test_the_second_stage_is_part_of_the_fingerprint() -> None:
    prints = {
        fitted("linear").fingerprint_,
        fitted("tail").fingerprint_,
        fitted(None, subsample=0.7).fingerprint_,
    }
    assert len(prints) == 3


def test_warm_start_refits_it() -> None:
    X, Y, _, _ = text_like()
    warm = LdSMClassifier(**(SMALL | {"n_estimators": 3}), warm_start=True).fit(X, Y)
    first = warm.second_stage_.blend
    warm.set_params(n_estimators=6).fit(X, Y)
    assert warm.fingerprint_ == fitted().fingerprint_
    assert warm.second_stage_.blend != first


def test_a_checkpointed_fit_has_it_too(tmp_path: Any) -> None:
    X, Y, _, _ = text_like()
    folder = tmp_path / "trees"
    for _ in range(2):
        clf = LdSMClassifier(**SMALL).fit(X, Y, checkpoint_dir=folder)
        assert clf.fingerprint_ == fitted().fingerprint_
    assert clf.training_["trees_from_checkpoint"] == SMALL["n_estimators"]


def test_lists_of_labels_and_single_labels_work() -> None:
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


def test_dense_rows_and_rows_without_features_work() -> None:
    X, Y, _, _ = text_like()
    dense = LdSMClassifier(**SMALL).fit(X.toarray(), Y)
    assert dense.fingerprint_ == fitted().fingerprint_
    empty = sp.csr_array((3, X.shape[1]), dtype=np.float32)
    labels, scores = fitted().predict_topk(empty, 5)
    assert np.isfinite(scores).all() and len(set(labels[0])) == 5


# -- damaged files ----------------------------------------------------------------------------


EXACT, COMPRESSED = (False,), (True,)
BOTH = EXACT + COMPRESSED
SIZES = "must have the shape|must have a unit for each label"
TYPES = "must be of type|wrong type for its weights"


@pytest.mark.parametrize(
    ("forms", "change", "message"),
    [
        (BOTH, lambda h, a: h.update(kind="magic"), "no proper entry 'kind'.*not 'magic'"),
        (BOTH, lambda h, a: h.update(coefficients=[1.0]), "wrong number of coefficients"),
        (BOTH, lambda h, a: h.update(gamma=float("nan")), "'gamma': it must be a number from"),
        (BOTH, lambda h, a: h.pop("gamma"), "no proper entry 'gamma'"),
        (
            BOTH,
            lambda h, a: h.update(length=0),
            "'length': it must be an int from 1 to 1000000, not 0",
        ),
        (
            BOTH,
            lambda h, a: h.update(length=10**7),
            "'length': it must be an int from 1 to 1000000",
        ),
        (BOTH, lambda h, a: h.update(length=True), "'length': it must be an int from 1 to 1000000"),
        (BOTH, lambda h, a: a.pop("second_stage.ranker.weights"), "lacks the array"),
        (EXACT, lambda h, a: _set(a, "features", 5, -1), "ranker has a feature out of range"),
        (EXACT, lambda h, a: _set(a, "features", 5, 10**6), "ranker has a feature out of range"),
        (COMPRESSED, lambda h, a: _set(a, "features", 5, 255), "ranker has a feature out of range"),
        (BOTH, lambda h, a: _set(a, "features", 1, 0), "do not rise within a label"),
        (BOTH, lambda h, a: _set(a, "offsets", 3, 10**9), "do not rise from 0"),
        (BOTH, lambda h, a: _set(a, "offsets", 0, 1), "do not rise from 0"),
        (EXACT, lambda h, a: _set(a, "weights", 5, np.nan), "weight that is not finite"),
        (
            COMPRESSED,
            lambda h, a: _set(a, "units", 5, np.nan),
            "units has an entry that is not a number",
        ),
        (
            COMPRESSED,
            lambda h, a: _set(a, "units", 5, np.inf),
            "units has an entry that is not a number",
        ),
        (BOTH, lambda h, a: _cut(a, "offsets"), SIZES),
        (COMPRESSED, lambda h, a: _cut(a, "units"), SIZES),
        (COMPRESSED, lambda h, a: a.pop("second_stage.ranker.units"), SIZES),
        (BOTH, lambda h, a: _retype(a, "weights"), TYPES),
        (BOTH, lambda h, a: _retype(a, "features"), TYPES),
        # Codes come with gaps, never with numbers.
        (COMPRESSED, lambda h, a: _retype(a, "features", np.int32), TYPES),
        (BOTH, lambda h, a: a.pop("second_stage.index.codes"), "lacks the array"),
        (BOTH, lambda h, a: _set(a, "offsets", 3, 10**9, "index"), "do not rise from 0"),
        (BOTH, lambda h, a: _set(a, "labels", 5, 200, "index"), "index has a label out of range"),
        (BOTH, lambda h, a: _set(a, "labels", 1, 0, "index"), "do not rise within a feature"),
        (
            BOTH,
            lambda h, a: _set(a, "units", 5, -1, "index"),
            "units has an entry that is not a number",
        ),
        (
            BOTH,
            lambda h, a: _set(a, "units", 5, np.nan, "index"),
            "units has an entry that is not a number",
        ),
        (BOTH, lambda h, a: _cut(a, "codes", "index"), "index.codes must have the shape"),
        (BOTH, lambda h, a: _cut(a, "offsets", "index"), SIZES),
        (
            BOTH,
            lambda h, a: _retype(a, "units", part="index"),
            "index.units must be of type float32",
        ),
    ],
)
def test_a_damaged_second_stage_is_refused(forms: Any, change: Any, message: str) -> None:
    from ldsm._model.saved_form import model_to_state
    from ldsm.classifier import classifier_from_state

    for compress in forms:
        clf = fitted("linear", compress=compress)
        assert clf.second_stage_.blend.kind == "linear+index"
        header, arrays = model_to_state(clf.model_, clf.get_params())
        arrays = {name: array.copy() for name, array in arrays.items()}
        change(header["model"]["second_stage"], arrays)
        with pytest.raises(ValueError, match=message):
            classifier_from_state(header, arrays)


def _set(arrays: Any, name: str, place: int, value: Any, part: str = "ranker") -> None:
    arrays[f"second_stage.{part}.{name}"][place] = value


def _cut(arrays: Any, name: str, part: str = "ranker") -> None:
    arrays[f"second_stage.{part}.{name}"] = arrays[f"second_stage.{part}.{name}"][:-1]


def _retype(arrays: Any, name: str, dtype: Any = np.float64, part: str = "ranker") -> None:
    key = f"second_stage.{part}.{name}"
    arrays[key] = arrays[key].astype(dtype)


@pytest.mark.parametrize("compress", [False, True])
def test_the_second_stage_holds_no_training_row(tmp_path: Any, compress: bool) -> None:
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
