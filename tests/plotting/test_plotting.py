"""Figures: what is drawn against numbers that are calculated here in another way."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from ldsm import LdSMClassifier, TextTagger, datasets, metrics, plotting
from ldsm.evaluation import Evaluation, MetricCurve
from ldsm.metrics.calibration import reliability
from ldsm.plotting import DepthPoint

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def train():
    return datasets.make_xmc(400, 60, 24, seed=0)


@pytest.fixture(scope="module")
def test():
    return datasets.make_xmc(120, 60, 24, seed=0, part="test")


@pytest.fixture(scope="module")
def clf(train):
    params = {"n_estimators": 5, "n_epochs": 4, "random_state": 0}
    return LdSMClassifier(**params).fit(train)


@pytest.fixture(scope="module")
def staged(train):
    """A model with a second stage."""
    return LdSMClassifier(6, rerank="linear", random_state=0).fit(train)


def lines(ax):
    return {line.get_label(): line.get_xydata() for line in ax.get_lines()}


def level_of(forest, tree, node):
    """Depth by walking up from the node, one parent at a time."""
    first = forest.first_child[slice(*forest.tree_offsets[tree : tree + 2])]
    depth = 0
    while node:
        node = next(
            p for p, child in enumerate(first) if child and child <= node < child + forest.arity
        )
        depth += 1
    return depth


def splits_of(forest):
    """(level, rows, number over the forest, number among the splits) of every split."""
    found = []
    for tree in range(forest.n_trees):
        start, stop = forest.tree_offsets[tree : tree + 2]
        for node in range(start, stop):
            if forest.first_child[node]:
                level = level_of(forest, tree, node - start)
                found.append((level, int(forest.node_rows[node]), node, len(found)))
    return found


# -- parts of a forest ----------------------------------------------------------------------------


@pytest.mark.parametrize("dense", [False, True])
def test_forest_slices(train, test, dense):
    """Standardised nodes too, which have arrays of their own."""
    params = {"random_state": 0, "rerank": None, "standardize": dense, "n_jobs": 1}
    whole, few = (LdSMClassifier(n, **params).fit(train.X, train.Y) for n in (5, 2))
    forest = whole.forest_
    assert forest.trees(0, 2).fingerprint() == few.forest_.fingerprint()
    assert forest.trees(0, 5).fingerprint() == forest.fingerprint()
    again = forest.trees(0, 1).extended(forest.trees(1, 4)).extended(forest.trees(4, 5))
    assert again.fingerprint() == forest.fingerprint()
    np.testing.assert_array_equal(again.epoch_objective, forest.epoch_objective)
    one = forest.trees(3, 4)
    for name, values in one.tree_statistics().items():
        assert values[0] == forest.tree_statistics()[name][3]
    assert np.shares_memory(one.weights, forest.weights)


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (-1, 2), (2, 1), (0, 6)])
def test_parts_must_lie_within_the_forest(clf, start, stop):
    with pytest.raises(ValueError, match=r"0 <= start < stop <= 5. Got -?\d and \d"):
        clf.forest_.trees(start, stop)


# -- figures of a forest --------------------------------------------------------------------------


def test_objective_by_level_and_epoch(clf):
    drawn = lines(plotting.plot_objective(clf, levels=[0, 2]))
    assert list(drawn) == ["0", "2"]
    for level in (0, 2):
        splits = [s for s in splits_of(clf.forest_) if s[0] == level]
        rows = sum(s[1] for s in splits)
        for epoch in range(4):
            mean = sum(s[1] * float(clf.forest_.epoch_objective[s[3], epoch]) for s in splits)
            np.testing.assert_allclose(drawn[str(level)][epoch], [epoch + 1, mean / rows])


def test_default_levels(clf):
    deepest = max(s[0] for s in splits_of(clf.forest_))
    names = [int(name) for name in lines(plotting.plot_objective(clf))]
    assert (names[0], names[-1]) == (0, deepest) and len(names) <= 7
    with pytest.raises(ValueError, match=rf"'levels' must be ints in \[0, {deepest}\]. Got 99"):
        plotting.plot_objective(clf, levels=[0, 99])


def test_balance_and_purity_by_level(clf):
    ax = plotting.plot_splits(clf)
    drawn = lines(ax)
    bands = [band.get_paths()[0].vertices for band in ax.collections]
    for (name, statistic), band in zip(
        {"balance β": "balancedness", "purity α": "purity"}.items(), bands, strict=True
    ):
        values = getattr(clf.forest_, statistic)
        for level, mean in drawn[name]:
            splits = [s for s in splits_of(clf.forest_) if s[0] == level]
            weights = np.repeat([values[s[2]] for s in splits], [s[1] for s in splits])
            assert mean == pytest.approx(weights.mean())
            low, high = np.quantile(weights, [0.25, 0.75], method="inverted_cdf")
            at = band[band[:, 0] == level, 1]
            assert at.min() == pytest.approx(low) and at.max() == pytest.approx(high)


def test_depth_against_log_labels(clf):
    paper = {"Delicious, $ and _": DepthPoint(983, 4, 10), "AmazonCat": DepthPoint(13330, 2, 18)}
    ax = plotting.plot_depth({"ours": clf, **paper})
    drawn = lines(ax)
    deepest = max(s[0] for s in splits_of(clf.forest_)) + 1
    np.testing.assert_allclose(drawn["ours"], [[np.log2(24), deepest]])
    np.testing.assert_allclose(drawn["Delicious, $ and _"], [[np.log(983) / np.log(4), 10]])
    guides = [xy for name, xy in drawn.items() if name.startswith("$")]
    assert [xy[1, 1] / xy[1, 0] for xy in guides] == pytest.approx([1, 2, 3])
    ax.figure.draw_without_rendering()  # a name with a $ is no formula
    with pytest.raises(ValueError, match="'models' must name at least one"):
        plotting.plot_depth({})


def test_depths_of_the_leaves(clf):
    ax = plotting.plot_leaf_depths(clf)
    forest = clf.forest_
    rows = np.zeros(len(ax.patches))
    for tree in range(forest.n_trees):
        start, stop = forest.tree_offsets[tree : tree + 2]
        for node in range(start, stop):
            if not forest.first_child[node]:
                rows[level_of(forest, tree, node - start)] += forest.node_rows[node]
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, 100 * rows / rows.sum())
    mean = np.average(np.arange(len(rows)), weights=rows)
    assert [line.get_xdata()[0] for line in ax.get_lines()] == pytest.approx([np.log2(24), mean])


# -- figures of held-out rows ---------------------------------------------------------------------


def test_metrics_of_growing_forests(train, test, clf):
    curve = Evaluation(clf, test).tree_curve()
    assert curve.sizes.tolist() == [1, 2, 4, 5] and curve.whole is None
    drawn = lines(plotting.plot_metrics(curve))
    for i, n in enumerate([1, 2, 4, 5]):
        few = LdSMClassifier(n, n_epochs=4, random_state=0).fit(train)
        report = metrics.ranking_report(test.Y, few.predict_topk(test.X, 5))
        for k in (1, 3, 5):
            np.testing.assert_allclose(drawn[f"P@{k}"][i], [n, 100 * report[f"precision@{k}"]])


def test_second_stage_curve(test, staged):
    curve = Evaluation(staged, test).tree_curve("ndcg")
    best = staged.predict_topk(test.X, 5)
    drawn = lines(plotting.plot_metrics(curve))
    assert curve.whole == pytest.approx(
        {f"nDCG@{k}": metrics.ndcg_at_k(test.Y, best, k) for k in (1, 3, 5)}
    )
    assert "with second stage" in drawn
    heights = [line.get_ydata()[0] for line in plotting.plot_metrics(curve).get_lines()[1:6:2]]
    assert heights == pytest.approx([100 * value for value in curve.whole.values()])


def test_measured_points_with_depths():
    sizes, depths = np.array([63, 125, 251]), [5, 8, 11]
    ax = plotting.plot_metrics(
        MetricCurve(sizes, {"P@1": np.array([0.5, 0.6, 0.7])}, "max_nodes", depths)
    )
    np.testing.assert_allclose(lines(ax)["P@1"], np.c_[sizes, [50, 60, 70]])
    top = next(other for other in ax.figure.axes if other is not ax)
    assert [text.get_text() for text in top.get_xticklabels()] == ["5", "8", "11"]
    assert ax.get_xlabel() == "max_nodes"
    with pytest.raises(ValueError, match=r"'P@1' must have a number for each of the 3 sizes"):
        MetricCurve(sizes, {"P@1": np.array([0.5])}, "max_nodes")


def test_single_trees_against_all(test, staged):
    ax = plotting.plot_single_trees(Evaluation(staged, test).single_trees())
    bars = {box.get_label(): [bar.get_height() for bar in box] for box in ax.containers
            if box.get_label() and hasattr(box, "patches")}  # fmt: skip
    trees = [staged.forest_.trees(i, i + 1) for i in range(6)]
    single = [_precision(staged, forest, test) for forest in trees]
    assert bars["single trees, worst to best"] == pytest.approx(np.mean(single, axis=0).tolist())
    assert bars["6 trees"] == pytest.approx(_precision(staged, staged.forest_, test))
    whole = [100 * metrics.precision_at_k(test.Y, staged.predict_topk(test.X, 5), k)
             for k in (1, 3, 5)]  # fmt: skip
    assert bars["with second stage"] == pytest.approx(whole)
    spread = ax.containers[0].lines[2][0].get_segments()
    ends = np.array([[low[1], high[1]] for low, high in spread])
    np.testing.assert_allclose(ends, np.c_[np.min(single, axis=0), np.max(single, axis=0)])


def _precision(clf, forest, test):
    """P@k of the mean of the trees' leaf shares, straight from the scores."""
    x = Evaluation(clf, test).x.main
    indptr, labels, values = forest.scores(x)
    scores = np.zeros(test.Y.shape)
    for row in range(len(scores)):
        part = slice(*indptr[row : row + 2])
        scores[row, labels[part]] = values[part]
    # The most frequent labels fill up what has no score.
    scores -= np.argsort(np.argsort(-clf.label_counts_, kind="stable")) * 1e-9 * (scores == 0)
    return [100 * metrics.precision_at_k(test.Y, scores, k) for k in (1, 3, 5)]


def test_reliability_of_scores(test, staged):
    labels, scores = staged.predict_topk(test.X, 5)
    found = Evaluation(staged, test).reliability(n_bins=4)
    truth = test.Y.toarray()
    bins = [[] for _ in range(4)]
    for row in range(len(labels)):
        for label, score in zip(labels[row], scores[row].tolist(), strict=True):
            bins[min(int(score * 4), 3)].append((score, truth[row, label]))
    expected = np.array([[*np.mean(b, axis=0), len(b)] for b in bins if b])
    np.testing.assert_allclose(np.c_[found.scores, found.frequencies, found.counts], expected)
    gaps = np.abs(expected[:, 0] - expected[:, 1])
    assert found.error == pytest.approx(np.average(gaps, weights=expected[:, 2]))
    ax = plotting.plot_reliability(found)
    drawn = lines(ax)[f"ECE {100 * found.error:.1f} points"]
    np.testing.assert_allclose(drawn, expected[:, :2])
    assert sum(bar.get_height() for bar in ax.patches) == pytest.approx(1)
    several = plotting.plot_reliability({"a": found, "b": found})
    assert [name[:2] for name in lines(several)] == ["pe", "a,", "b,"]


def test_reliability_takes_what_metrics_take():
    found = reliability([[0], []], [[0, -1], [1, 0]], [[1.0, np.inf], [0.3, 0.0]])
    np.testing.assert_allclose(found.scores, [0, 0.3, 1])
    np.testing.assert_allclose(found.frequencies, [0, 0, 1])
    with pytest.raises(ValueError, match=r"'scores' argument must be in \[0, 1\]. Got 1.5"):
        reliability([[0]], [[0]], [[1.5]])
    with pytest.raises(ValueError, match="'n_bins' argument must be an integer >= 1. Got 0"):
        reliability([[0]], [[0]], [[0.5]], n_bins=0)
    with pytest.raises(ValueError, match="same number of rows"):
        reliability([[0], [1]], [[0]], [[0.5]])
    with pytest.raises(ValueError, match="'reliability' must hold at least one"):
        plotting.plot_reliability({})


# -- what figures are drawn into, and from --------------------------------------------------------


def test_own_axes_and_texts():
    texts, tags = ["cod and quota", "beef import"] * 10, [["fish"], ["meat"]] * 10
    tagger = TextTagger(LdSMClassifier(3, random_state=0)).fit(texts, tags)
    held_out = Evaluation(tagger, ["a quota for cod", "import", ""], [["fish"], ["meat"], []])
    assert held_out.n_labelled == 2
    draw = [
        lambda ax: plotting.plot_objective(tagger, ax=ax),
        lambda ax: plotting.plot_splits(tagger, ax=ax),
        lambda ax: plotting.plot_leaf_depths(tagger, ax=ax),
        lambda ax: plotting.plot_depth({"tagger": tagger}, ax=ax),
        lambda ax: plotting.plot_metrics(held_out.tree_curve(), ax=ax),
        lambda ax: plotting.plot_single_trees(held_out.single_trees(), ax=ax),
        lambda ax: plotting.plot_reliability(held_out.reliability(), ax=ax),
    ]
    axes = Figure(figsize=(9, 9), layout="constrained").subplots(3, 3).ravel()
    for function, ax in zip(draw, axes, strict=False):
        assert function(ax) is ax
    axes[0].figure.draw_without_rendering()


@pytest.mark.parametrize(
    ("plot", "makes"),
    [
        (plotting.plot_metrics, "a MetricCurve, .*tree_curve()"),
        (plotting.plot_single_trees, "a SingleTrees, .*single_trees()"),
        (plotting.plot_reliability, "a Reliability, .*reliability()"),
    ],
)
def test_invalid_models_to_plot(plot, makes, clf):
    with pytest.raises(ValueError, match=rf"must be {makes}.*Got LdSMClassifier"):
        plot(clf)


def test_unfitted_model():
    with pytest.raises(ValueError, match="not fitted"):
        plotting.plot_splits(LdSMClassifier())


@pytest.mark.skipif(not BENCHMARKS.exists(), reason="the benchmarks are not here")
def test_overview_figure(train, test, tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    figures = importlib.import_module("figures")
    monkeypatch.setattr(figures, "SIZES", (7, 15))
    monkeypatch.setattr(figures.benchmark_data, "load", lambda name: (train, test))
    monkeypatch.setattr(sys, "argv", ["", "--trees=2", f"--output={tmp_path / 'a.png'}"])
    figures.main()
    small = LdSMClassifier(2, max_nodes=7, rerank=None, random_state=0).fit(train)
    precision = metrics.precision_at_k(test.Y, small.predict_topk(test.X, 1), k=1)
    depth = small.forest_.node_depth().max()
    assert f"| 7 | {depth} | {100 * precision:.2f} |" in capsys.readouterr().out
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_matplotlib_is_optional(clf, monkeypatch):
    """Importing ldsm does not load matplotlib; another test checks that."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'matplotlib.*: pip install "ldsm\[plot\]"'):
        plotting.plot_splits(clf)


def test_pyplot_is_left_alone():
    for path in Path(plotting.__file__).parent.rglob("*.py"):
        assert not re.search(r"import.*pyplot", path.read_text()), path


# -- thresholds -----------------------------------------------------------------------------------


def test_plot_thresholds(clf, test):
    """F1 of what is predicted at a threshold; marks at the model's and at the best one."""
    held_out = Evaluation(clf, test)
    curve = held_out.threshold_curve()
    drawn = lines(plotting.plot_thresholds(curve))
    for name, values in curve.metrics.items():
        assert np.array_equal(drawn[name], np.c_[curve.thresholds, 100 * values], equal_nan=True)
    truth = test.Y.toarray() > 0
    for i in (0, 12, 30):
        said = clf.predict_proba(test.X).toarray() >= np.float32(curve.thresholds[i])
        f1 = metrics.f1_score(test.Y, said.astype(int), "samples")
        assert curve.metrics["F1"][i] == pytest.approx(f1, abs=1e-12)
        assert curve.metrics["recall"][i] == (truth & said).sum() / truth.sum()
    assert drawn["model: 0.50"][0, 0] == 0.5
    assert drawn[f"best: {curve.best:.2f}"][0, 0] == curve.best == held_out.best_threshold()


def test_threshold_curve_needs_sets():
    clf = LdSMClassifier(2, random_state=0).fit(np.eye(3), ["a", "b", "c"])
    with pytest.raises(ValueError, match="has no sets of labels"):
        Evaluation(clf, np.eye(3), ["a", "b", "c"]).threshold_curve()
    with pytest.raises(ValueError, match="'curve' must be a ThresholdCurve, as returned by"):
        plotting.plot_thresholds([0.1, 0.2])
