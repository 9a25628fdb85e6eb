"""Why labels score as they do: parts that add up, for every kind of second stage."""

import dataclasses
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from ldsm import LdSMClassifier, datasets
from ldsm._arrays.features import feature_arrays
from ldsm._matching.shortlists import SHORTLIST
from ldsm._model.explain import LabelScore
from ldsm._model.inputs import new_rows
from ldsm._ranking.blend import KINDS, SOURCES, Blend, Pairs
from ldsm._ranking.stage import SecondStage
from ldsm.classifier import hold_model

TRAIN, TEST = (datasets.make_xmc(800, 150, 30, seed=0, part=part) for part in ("train", "test"))
# What the scores of each model are made of.
PARTS = {
    None: {"trees"},
    "calibrated": {"base", "trees"},
    "tail": {"base", "trees", "tail"},
    "linear": {"base", "trees", "linear", "features", "frequency"},
    "no index": {"base", "trees", "linear", "frequency"},
    "both": {"base", "trees", "linear", "features", "tail", "frequency"},
    "both, no index": {"base", "trees", "linear", "tail", "frequency"},
}
OF_LINEAR = len(KINDS["linear"].terms)


@cache
def model(rerank):
    if rerank in (None, "tail", "linear"):
        return LdSMClassifier(5, rerank=rerank, random_state=0).fit(TRAIN)
    # What "auto" may choose, and files of format version 1 have, put together by hand.
    clf = LdSMClassifier(5, rerank=None, random_state=0).fit(TRAIN)
    linear, tail = model("linear").second_stage_, model("tail").second_stage_
    known, nearness = linear.blend.coefficients, (-0.7, 0.1)
    assert linear.blend.kind == "linear+index"
    kind, coefficients = {
        "calibrated": ("trees", (0.3, 0.9)),
        "no index": ("linear", known[:OF_LINEAR]),
        "both": ("linear+index+tail", (*known, *nearness)),
        "both, no index": ("linear+tail", (*known[:OF_LINEAR], *nearness)),
    }[rerank]
    parts = {"ranker": linear.ranker, "index": linear.index, "centroids": tail.centroids}
    parts = {name: parts[name] for name in KINDS[kind].needs}
    stage = SecondStage(Blend(kind, coefficients), clf.label_counts_, SHORTLIST, parts)
    return hold_model(clf, dataclasses.replace(clf.model_, second_stage=stage))


def logit(score):
    return np.log(score) - np.log1p(-score)


@pytest.fixture(params=PARTS, ids=str)
def rerank(request):
    return request.param


def test_explained_scores_match_topk(rerank):
    clf = model(rerank)
    labels, scores = clf.predict_topk(TEST.X[:20], k=30)
    for row in range(20):
        found = clf.explain_scores(TEST.X[[row]], k=30)
        known = scores[row] > 0
        assert [label.label for label in found] == labels[row][known].tolist()
        assert [label.score for label in found] == scores[row][known].tolist()
        assert found[:2] == clf.explain_scores(TEST.X[[row]], k=2)


def test_shares_sum_to_log_odds(rerank):
    clf = model(rerank)
    checked = 0
    for row in range(20):
        for found in clf.explain_scores(TEST.X[[row]], k=30):
            assert found.shares.keys() == PARTS[rerank]
            total = sum(found.shares.values())
            assert 1 / (1 + np.exp(-total)) == pytest.approx(found.score, abs=1e-6)
            if 0.01 < found.score < 0.99:  # beyond, float32 scores tell the log-odds badly
                assert total == pytest.approx(logit(found.score), abs=1e-4)
                checked += 1
    assert checked > 20


def test_tree_scores_match_forest(rerank):
    clf = model(rerank)
    trees = clf.forest_.scores(feature_arrays(TEST.X[:5]))
    trees = sp.csr_array((trees[2], trees[1], trees[0]), shape=(5, 30)).toarray()
    for row in range(5):
        for found in clf.explain_scores(TEST.X[[row]]):
            assert found.tree_score == pytest.approx(trees[row, found.column], abs=1e-6)
            if rerank is None:
                assert found.score == found.tree_score


def test_reasons_sum_to_margin():
    clf = model("linear")
    ranker = clf.second_stage_.ranker
    for row in range(10):
        x = TEST.X[[row]]
        unit = x.toarray()[0] / np.linalg.norm(x.toarray())
        for found in clf.explain_scores(x, max_reasons=1000):
            dense = np.zeros(151)
            feature = 0
            for entry in range(*ranker.offsets[found.column : found.column + 2]):
                feature += int(ranker.features[entry])  # a gap: linear models are compressed
                dense[feature] = ranker.weights[entry] * ranker.units[found.column]
            assert found.bias == dense[150]
            total = found.bias + sum(part for _, part in found.reasons)
            assert total == pytest.approx(found.margin, abs=1e-5)
            for feature, part in found.reasons:
                assert part == pytest.approx(dense[feature] * unit[feature], abs=1e-6)
            sizes = [abs(part) for _, part in found.reasons]
            assert sizes == sorted(sizes, reverse=True) and min(sizes) > 0
            assert {feature for feature, _ in found.reasons} <= set(x.indices.tolist())
        best = clf.explain_scores(x, k=1, max_reasons=3)[0]
        assert best.reasons == clf.explain_scores(x, k=1, max_reasons=1000)[0].reasons[:3]
        assert clf.explain_scores(x, k=1, max_reasons=0)[0].reasons == []


def test_missing_stages_are_none(rerank):
    found = model(rerank).explain_scores(TEST.X[[0]], k=1)[0]
    linear, tail = "linear" in PARTS[rerank], "tail" in PARTS[rerank]
    assert (found.margin is not None) == (found.bias is not None) == bool(found.reasons) == linear
    assert (found.distance is not None) == tail
    assert (found.index_score is not None) == ("features" in PARTS[rerank])


def test_index_scores_match_loop():
    """A row of unit length times the index, whose weights are multiples of a feature's unit."""
    clf = model("linear")
    index = clf.second_stage_.index
    for row in range(5):
        x = TEST.X[[row]]
        scores = np.zeros(30)
        for feature, value in zip(x.indices, x.data / np.linalg.norm(x.data), strict=True):
            for entry in range(*index.offsets[feature : feature + 2]):
                weight = index.codes[entry] * index.units[feature]
                scores[index.labels[entry]] += value * weight
        for found in clf.explain_scores(x, k=30):
            assert found.index_score == pytest.approx(scores[found.column], rel=1e-4, abs=1e-5)


def test_base_is_shortlist_mean():
    """Of all labels on the shortlist the base is the same, and the other shares have mean 0."""
    for kind in ("linear", "tail", "both", "both, no index"):
        found = model(kind).explain_scores(TEST.X[[3]], k=30)
        assert len({label.shares["base"] for label in found}) == 1
        mean = np.mean([sum(label.shares.values()) for label in found])
        assert found[0].shares["base"] == pytest.approx(mean, abs=1e-9)
        for stage in PARTS[kind] - {"base"}:
            assert np.mean([label.shares[stage] for label in found]) == pytest.approx(0, abs=1e-9)


def test_shares_come_in_one_order():
    found = model("both").explain_scores(TEST.X[[0]], k=1)[0]
    assert list(found.shares) == ["base", *(name for name in SOURCES if name in PARTS["both"])]


def test_nearness_share_in_tail_formula():
    """Two labels alike but for the distance differ in the share of the tail alone."""
    blend = Blend("tail", (0.5, 0.8), tree_share=0.6, gamma=3.0)
    trees = np.array([0.3, 0.3], dtype=np.float32)
    pairs = Pairs(trees, np.array([9, 9]), distances=np.array([0.2, 1.4]))
    shares = blend.shares(pairs)
    assert shares["trees"][0] == shares["trees"][1]
    assert shares["tail"][0] > shares["tail"][1] > 0
    total = sum(shares.values())
    np.testing.assert_allclose(total, logit(blend.probabilities(pairs)), atol=1e-5)


def test_forms_of_row_and_labels():
    clf = model("linear")
    sparse = clf.explain_scores(TEST.X[[0]])
    dense = TEST.X[[0]].toarray()
    assert clf.explain_scores(dense) == clf.explain_scores(dense[0]) == sparse
    named = LdSMClassifier(5, rerank="linear", random_state=0)
    named.fit(TRAIN.X, [[f"tag {label}" for label in row] for row in TRAIN.labels])
    names = [found.label for found in named.explain_scores(TEST.X[[0]])]
    assert names == named.predict_topk(TEST.X[[0]], k=5)[0][0].tolist()
    assert all(isinstance(name, str) and name.startswith("tag ") for name in names)
    with pytest.raises(dataclasses.FrozenInstanceError):
        sparse[0].score = 1.0
    assert isinstance(sparse[0], LabelScore)


def test_rows_without_features(rerank):
    """There is only the bias."""
    found = model(rerank).explain_scores(sp.csr_array((1, 150), dtype=np.float32))
    labels, scores = model(rerank).predict_topk(sp.csr_array((1, 150), dtype=np.float32))
    assert [f.label for f in found] == labels[0][scores[0] > 0].tolist()
    for label in found:
        assert label.reasons == [] and label.margin == label.bias


def test_infinite_share_without_second_stage():
    clf = LdSMClassifier(2, random_state=0).fit([[1, 0], [0, 1]] * 10, [["a"], ["b"]] * 10)
    (found,) = clf.explain_scores([1, 0])
    assert (found.label, found.score, found.shares) == ("a", 1.0, {"trees": np.inf})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TEST.X[:2],), "explain_scores takes exactly one row. Got 2"),
        ((TEST.X[[0]], 0), "'k' parameter must be an int >= 1. Got 0"),
        ((TEST.X[[0]], True), "'k' parameter must be an int >= 1. Got True"),
        ((TEST.X[[0]], 5, -1), "'max_reasons' parameter must be an int >= 0. Got -1"),
        ((TEST.X[[0]], 5, 1.5), "'max_reasons' parameter must be an int >= 0. Got 1.5"),
        ((np.zeros(3),), "3 features"),
    ],
)
def test_invalid_explain_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        model("linear").explain_scores(*arguments)


@pytest.mark.parametrize("rerank", [kind for kind in PARTS if kind is not None], ids=str)
def test_single_candidate_baseline(rerank):
    """Relative to a list of one, every stage would add nothing."""
    clf = model(rerank)
    stage = dataclasses.replace(clf.second_stage_, length=1)
    lone = hold_model(LdSMClassifier(), dataclasses.replace(clf.model_, second_stage=stage))
    said = 0
    for row in range(30):
        lists, _ = lone.model_.scored_shortlists(new_rows(lone, TEST.X[[row]]), None, None)
        if len(lists.labels) != 1:
            continue
        (found,) = lone.explain_scores(TEST.X[[row]], k=1)
        assert sum(found.shares.values()) == pytest.approx(logit(found.score), abs=1e-4)
        assert any(abs(share) > 1e-6 for name, share in found.shares.items() if name != "base")
        said += 1
    assert said > 3
