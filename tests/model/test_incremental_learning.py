"""Models that learn from new rows: each part beside what all rows together would give."""

import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

import ldsm
import ldsm.classifier
from ldsm import LdSMClassifier, datasets, metrics
from ldsm._arrays.features import feature_arrays
from ldsm._arrays.labels import label_arrays
from ldsm._execution.executor import ThreadExecutor
from ldsm._features.blocks import Blocks
from ldsm._features.new_rows import NewRows
from ldsm._features.training_rows import TrainingRows
from ldsm._matching.feature_index import FeatureIndex, unit_masses, with_rows
from ldsm._matching.part import Training
from ldsm._model import learn
from ldsm._model.inputs import new_rows
from ldsm._ranking import updating as stage_learning
from ldsm._storage.container import read, write
from ldsm.metrics.calibration import reliability
from patience import meanwhile

N_LABELS = 30
TRAIN, TEST = (
    datasets.make_xmc(1600, 150, N_LABELS, seed=0, part=part) for part in ("train", "test")
)
X, Y = sp.csr_matrix(TRAIN.X), sp.csr_matrix(TRAIN.Y)
FIRST, REST = slice(0, 800), slice(800, 1600)
NAMES = [[f"l{i:02}" for i in row] for row in (r.indices.tolist() for r in Y)]
KINDS = ["auto", "linear", "tail", None]


@cache
def fitted(rerank="auto", rows=800, names=False):
    return LdSMClassifier(5, rerank=rerank).fit(X[:rows], NAMES[:rows] if names else Y[:rows])


def learned(rerank="auto", batches=1, **options):
    clf = copy.deepcopy(fitted(rerank)).set_params(**options)
    for rows in np.array_split(np.arange(1600)[REST], batches):
        clf.partial_fit(X[rows], Y[rows])
    return clf


def precision(clf, k=1):
    return metrics.precision_at_k(TEST.Y, clf.predict_topk(TEST.X, k)[0], k)


# -- what moves -------------------------------------------------------------------------------


def test_leaves_count_new_rows():
    before, after = fitted(None).forest_, learned(None).forest_
    offsets, labels = before.histogram_offsets, before.histogram_labels
    counts = np.zeros((before.n_nodes, N_LABELS), dtype=int)
    for node in range(before.n_nodes):
        part = slice(offsets[node], offsets[node + 1])
        counts[node, labels[part]] = before.histogram_counts[part]
    rows, pairs = before.node_rows.copy(), before.node_labels.copy()
    indptr, nodes = before.visited_nodes(feature_arrays(X[REST]))
    leaf = before.first_child == 0
    for row, own in enumerate(Y[REST]):
        for node in nodes[indptr[row] : indptr[row + 1]]:
            rows[node] += 1
            pairs[node] += own.nnz
            if leaf[node]:
                counts[node, own.indices] += 1
    assert after.node_rows.tolist() == rows.tolist()
    assert after.node_labels.tolist() == pairs.tolist()
    for node in range(before.n_nodes):
        part = slice(after.histogram_offsets[node], after.histogram_offsets[node + 1])
        assert after.histogram_labels[part].tolist() == np.flatnonzero(counts[node]).tolist()
        assert after.histogram_counts[part].tolist() == counts[node][counts[node] > 0].tolist()
        share = counts[node][counts[node] > 0] / max(1, counts[node].sum())
        if leaf[node]:
            assert after.node_entropy[node] == pytest.approx(-np.sum(share * np.log(share)))


def trained_index(x, y):
    training = Training(TrainingRows(Blocks.of(x), y), {}, 0, ThreadExecutor(1), compress=False)
    return FeatureIndex.train("index", training).whole


def test_updated_index_matches_full_training():
    """Fewer labels than a feature keeps: then only rounding differs."""
    whole = trained_index(feature_arrays(X), label_arrays(Y))
    first, rest = (feature_arrays(X[part]) for part in (FIRST, REST))
    labels = [label_arrays(Y[part]) for part in (FIRST, REST)]
    masses = unit_masses(first).astype(np.float32)
    new = NewRows(Blocks.of(rest), labels[1], labels[0].counts, 800)
    index = with_rows(trained_index(first, labels[0]), masses, rest, new, 0)

    def dense(index):
        shape = (len(index.units), N_LABELS)
        table = sp.csr_array((index.codes, index.labels, index.offsets), shape=shape).toarray()
        return table * index.units.astype(float)[:, None]

    expected, got = dense(whole), dense(index)
    close = 2 * np.maximum(whole.units, index.units)[:, None]
    assert np.all(np.abs(expected - got) <= close)
    assert np.count_nonzero(expected) > 1000


def test_updated_centroids_are_means():
    after = learned("tail")
    unit = sp.csr_matrix(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))))
    means = (Y.T @ unit).toarray() / np.asarray(Y.sum(axis=0)).reshape(-1, 1)
    centroids = after.second_stage_.centroids
    got = centroids.matrix(X.shape[1]).toarray()[:, :-1]
    assert np.abs(got - means).max() < 0.016  # what is smaller than 0.01 is left out, twice
    assert after.label_counts_.tolist() == Y.sum(axis=0).A1.tolist()


@pytest.mark.parametrize("rerank", KINDS)
def test_updates_improve_precision(rerank):
    small, grown = fitted(rerank, 800), learned(rerank, batches=4)
    assert grown.training_["rows"] == 1600
    # The leaves of trees that are not regrown gain little.
    assert precision(grown) >= precision(small) - 0.02
    if rerank in ("auto", "linear"):
        gain = precision(fitted(rerank, 1600), 3) - precision(small, 3)
        assert gain > 0.01
        assert precision(grown, 3) >= precision(small, 3) + gain / 2


def calibration_error(clf):
    top, scores = clf.predict_topk(TEST.X, 5)
    return reliability(TEST.Y, top, np.clip(scores, 0, 1)).error


@pytest.mark.parametrize("batches", [1, 3, 16])
def test_scores_stay_probabilities(batches):
    """The rows double, at once or in batches that are too small to refit the blend."""
    assert (
        calibration_error(learned("linear", batches)) < calibration_error(fitted("linear")) + 0.03
    )


def test_blend_is_fitted_on_unseen_rows(monkeypatch):
    used = []

    def noted(stage, new, match, seed):
        used.append((stage, match.args[0]))
        return None

    monkeypatch.setattr(stage_learning, "_refitted", noted)
    clf = copy.deepcopy(fitted(names=True))
    before = clf.model_
    clf.partial_fit(X[REST], [[*row, "new"] for row in NAMES[REST]])
    [(stage, forest)] = used
    assert forest.histogram_counts.sum() == before.forest.histogram_counts.sum()
    assert stage.index.units is before.second_stage.index.units
    share = 800 / 1600
    assert clf.second_stage_.blend.count_share == pytest.approx(share)


def test_centroid_minimum_rows():
    names = [[*row, "solo"] if i == 0 else row for i, row in enumerate(NAMES[FIRST])]
    clf = LdSMClassifier(2, rerank="tail", tail_min_rows=2).fit(X[FIRST], names)
    place = clf.classes_.tolist().index("solo")
    clf.partial_fit(X[801], [["solo"]])
    assert len(clf.second_stage_.centroids.vector(place)[0]) == 0
    clf.partial_fit(X[802:804], [["solo"]] * 2)
    assert len(clf.second_stage_.centroids.vector(place)[0]) > 0


# -- new labels -------------------------------------------------------------------------------


@pytest.mark.parametrize("rerank", KINDS)
def test_new_labels_get_sorted_columns(rerank):
    clf = copy.deepcopy(fitted(rerank, names=True))
    rows = [[*row, "a new one", "zz"] if "l24" in row else row for row in NAMES]
    clf.partial_fit(X[REST], rows[REST])
    assert clf.classes_.tolist() == ["a new one", *(f"l{i:02}" for i in range(N_LABELS)), "zz"]
    assert clf.training_["history"][-1] | {"when": ""} == {
        "when": "",
        "learned": 800,
        "times": 1,
        "new_labels": 2,
        "skewed": 0,
    }
    given = sum("l24" in row for row in NAMES[REST])
    assert clf.label_counts_[[0, -1]].tolist() == [given, given]
    rows = np.flatnonzero(TEST.Y.toarray()[:, 24])
    best = clf.predict_topk(TEST.X[rows], 5)[0]
    found = np.mean([("a new one" in row) + ("zz" in row) for row in best.tolist()]) / 2
    known = np.mean(["l24" in row for row in best.tolist()])
    # Leaves that count them, among rows that could not have them, say half of what is right.
    assert found > (0.7 if rerank in ("auto", "linear") else 0.35) * known
    assert known > 0.6


def test_wider_matrix_adds_labels():
    clf = copy.deepcopy(fitted())
    wide = sp.hstack([Y[REST], Y[REST][:, [24]], sp.csr_matrix((800, 1), dtype=int)]).tocsr()
    clf.partial_fit(X[REST], wide)
    assert clf.classes_.tolist() == list(range(N_LABELS + 2))
    assert clf.label_counts_[-1] == 0 and clf.label_counts_[-2] == Y[REST][:, 24].sum()
    assert clf.predict(TEST.X).shape == (len(TEST), N_LABELS + 2)


def test_batch_of_one_new_label():
    """No row lacks the label, so the model must supply the others."""
    clf = copy.deepcopy(fitted("linear", 1600, names=True))
    before = precision_of_names(clf)
    rows = np.flatnonzero(TEST.Y.toarray()[:, 24])
    taught, asked = rows[:100], rows[100:]
    clf.partial_fit(TEST.X[taught], [["new"]] * 100)
    best = clf.predict_topk(TEST.X[asked], 5)[0].tolist()
    assert np.mean(["new" in row for row in best]) > 0.6
    others = np.setdiff1d(np.arange(len(TEST)), rows)
    best = clf.predict_topk(TEST.X[others], 1)[0].tolist()
    assert np.mean(["new" in row for row in best]) < 0.05
    assert precision_of_names(clf) > before - 0.02


def precision_of_names(clf):
    known = [f"l{i:02}" for i in range(N_LABELS)]
    best = clf.predict_topk(TEST.X, 3, only=known)[0].tolist()
    true = [{f"l{i:02}" for i in r.indices.tolist()} for r in sp.csr_matrix(TEST.Y)]
    return np.mean([len(own.intersection(row)) / 3 for own, row in zip(true, best, strict=True)])


# -- scikit-learn's ways ----------------------------------------------------------------------


def test_first_partial_fit_fits():
    clf = LdSMClassifier(5).partial_fit(X[FIRST], Y[FIRST])
    assert clf.fingerprint_ == fitted().fingerprint_
    assert "history" not in clf.training_


def test_classes_argument():
    y = ["b", "c"] * 20
    rows = [[0, 1], [1, 0]] * 20
    clf = LdSMClassifier(2).partial_fit(rows, y, classes=["c", "b", "a"])
    assert clf.classes_.tolist() == ["a", "b", "c"] and clf.label_counts_.tolist() == [0, 20, 20]
    clf.partial_fit([[1, 1]] * 5, ["a"] * 5, classes=["a", "b", "c"])
    assert clf.label_counts_.tolist() == [5, 20, 20]
    with pytest.raises(ValueError, match=r"must be among classes\. Got 'd'"):
        clf.partial_fit([[1, 1]], ["d"], classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="classes must be those of the model, 3 labels"):
        clf.partial_fit([[1, 1]], ["a"], classes=["a", "b", "c", "d"])
    with pytest.raises(ValueError, match="classes must be the 30 columns of y"):
        LdSMClassifier().partial_fit(X, Y, classes=[0, 1])
    assert clf.classes_.tolist() == ["a", "b", "c"] and clf.label_counts_.tolist() == [5, 20, 20]


def test_matrix_columns_after_drop():
    clf = copy.deepcopy(fitted()).drop_labels([2])
    kept = [i for i in range(N_LABELS) if i != 2]
    clf.partial_fit(X[REST], Y[REST][:, kept])
    assert clf.classes_.tolist() == kept
    assert clf.label_counts_.tolist() == np.asarray(Y.sum(axis=0)).ravel()[kept].tolist()
    with pytest.raises(ValueError, match="the 29 columns of the model. Got 30"):
        clf.partial_fit(X[REST], Y[REST])
    lists = [[10 * (i + 1) for i in row] for row in (r.indices.tolist() for r in Y[FIRST])]
    clf = LdSMClassifier(2, rerank=None).fit(X[FIRST], lists)
    clf.partial_fit(X[REST], Y[REST])
    assert clf.classes_.tolist() == [10 * (i + 1) for i in range(N_LABELS)]


@pytest.mark.parametrize(
    ("first", "more"),
    [
        (np.array([0, 1] * 20, dtype=np.int8), [300, 301]),
        ([[1], [2]] * 20, [[2**70], [1]]),
        ([["a"], ["b"]] * 20, [["a\0"], ["b"]]),
        (np.array([0, 1] * 20, dtype=np.uint8), [-1, 1]),
        ([[("a", 1)], [("b", 2)]] * 20, [[("c", 3)], [("b", 2)]]),
    ],
)
def test_new_labels_of_any_size(first, more):
    clf = LdSMClassifier(2).fit(X[:40], first).partial_fit(X[:2], more)
    flat = [label for row in more for label in (row if isinstance(row, list) else [row])]
    classes = clf.classes_.tolist()
    assert set(flat) <= set(classes) and len(set(classes)) == len(classes)
    assert len(classes) == 2 + len({label for label in flat if label not in (1, "b", ("b", 2))})


# -- determinism, files -----------------------------------------------------------------------


@pytest.mark.parametrize("rerank", KINDS)
def test_updates_are_deterministic(rerank, tmp_path):
    model = learned(rerank, batches=3)
    assert learned(rerank, batches=3, n_jobs=2).fingerprint_ == model.fingerprint_
    # Counts are the same in any number of batches, all else is not.
    assert (learned(rerank, batches=2).fingerprint_ == model.fingerprint_) == (rerank is None)
    path = tmp_path / "m.ldsm"
    clf = copy.deepcopy(fitted(rerank))
    for rows in np.array_split(np.arange(1600)[REST], 3):  # by way of a file each time
        clf.partial_fit(X[rows], Y[rows]).save(path)
        clf = ldsm.load(path)
    assert clf.fingerprint_ == model.fingerprint_
    assert clf.training_["history"] == [
        {**clf.training_["history"][0], "learned": 800, "times": 3, "new_labels": 0}
    ]


def test_masses_do_not_affect_predictions(tmp_path):
    path, old = tmp_path / "m.ldsm", tmp_path / "old.ldsm"
    fitted().save(path)
    header, arrays = read(path)
    del arrays["second_stage.masses"]
    write(old, header, arrays)
    clf = ldsm.load(old)  # as of an earlier version
    assert clf.fingerprint_ == fitted().fingerprint_
    with pytest.raises(ValueError, match="saved by an older ldsm"):
        clf.partial_fit(X[REST], Y[REST])
    assert clf.fingerprint_ == fitted().fingerprint_
    for change, what in ((np.float64(1), "type float32"), (np.float32(-1), "masses has an entry")):
        broken = arrays | {"second_stage.masses": np.full(X.shape[1], change)}
        write(old, header, broken)
        with pytest.raises(ValueError, match=what):
            ldsm.load(old)


# -- errors -----------------------------------------------------------------------------------

BAD_ROWS = {
    "features": (X[:5, :100], Y[:5], "X has 100 features, but LdSMClassifier is expecting 150"),
    "names": (X[:2], [["a"], ["b"]], "labels are the columns of a matrix"),
    "one label": (X[:2], ["a", "b"], "labels are the columns of a matrix"),
    "fewer columns": (X[:2], Y[:2, :3], "at least the 30 columns of the model. Got 3"),
    "rows": (X[:3], Y[:2], "same number of rows. Got 3 and 2"),
    "none": (X[:0], Y[:0], "at least one label"),
    "no labels": (X[:2], 0 * Y[:2], "at least one label"),
    "no y": (X[:2], None, "requires y"),
    "not finite": (np.full((2, 150), np.nan), Y[:2], "NaN"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_rows_change_nothing(case):
    rows, labels, message = BAD_ROWS[case]
    clf = copy.deepcopy(fitted())
    with pytest.raises(ValueError, match=message):
        clf.partial_fit(rows, labels)
    assert clf.fingerprint_ == fitted().fingerprint_ and "history" not in clf.training_


def test_label_kind_mismatch():
    clf = copy.deepcopy(fitted(names=True))
    with pytest.raises(ValueError, match="the model's kind, str. Got 7"):
        clf.partial_fit(X[:2], [[7], [8]])
    single = LdSMClassifier(2).fit(X[:100], ["a", "b"] * 50)
    with pytest.raises(ValueError, match="one label for each row"):
        single.partial_fit(X[:2], [["a"], ["b", "a"]])
    with pytest.raises(ValueError, match="any number of labels for each row"):
        clf.partial_fit(X[:2], ["l01", "l02"])


def test_unverified_model_cannot_update(tmp_path):
    fitted().save(tmp_path / "m.ldsm")
    clf = ldsm.load(tmp_path / "m.ldsm", verify=False)
    with pytest.raises(ValueError, match="Load it with verify=True"):
        clf.partial_fit(X[:2], Y[:2])


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ValueError])
def test_interrupted_update_keeps_model(monkeypatch, error):
    def broken(*arguments, **options):
        raise error

    clf = copy.deepcopy(fitted())
    monkeypatch.setattr(learn, "learned_stage", broken)
    with pytest.raises(error):
        clf.partial_fit(X[REST], Y[REST])
    assert clf.fingerprint_ == fitted().fingerprint_


# -- threads ----------------------------------------------------------------------------------


def test_concurrent_readers_see_whole_models():
    clf = copy.deepcopy(fitted(names=True))
    rows = [[*row, "a new one"] for row in NAMES[REST]]
    models = [clf.model_]
    answers = []
    with meanwhile(lambda: answers.append(clf.predict_topk(TEST.X[:20], 5)), 1):
        for _ in range(4):
            clf.partial_fit(X[REST], rows)
            models.append(clf.model_)
    x = new_rows(clf, TEST.X[:20])
    columns = [model.top_columns(x, 5) for model in models]
    expected = {
        (model.classes[labels].tobytes(), scores.tobytes())
        for model, (labels, scores) in zip(models, columns, strict=True)
    }
    got = {(labels.tobytes(), scores.tobytes()) for labels, scores in answers}
    assert len(answers) > 5 and got <= expected


def test_concurrent_updates_are_reported(monkeypatch):
    clf = copy.deepcopy(fitted())

    def meanwhile(*arguments, **options):
        clf.model_ = replace(clf.model_)  # another thread was faster
        return learn.learned(*arguments, **options)

    monkeypatch.setattr(ldsm.classifier, "learned", meanwhile)
    with pytest.raises(RuntimeError, match="changed by another thread"):
        clf.partial_fit(X[REST], Y[REST])


# -- advice -----------------------------------------------------------------------------------


def test_retraining_due():
    clf = copy.deepcopy(fitted(None))
    assert learn.training_due(clf.model_) is None
    clf.partial_fit(X[800:1200], Y[800:1200])
    assert learn.training_due(clf.model_) is None
    clf.partial_fit(X[1200:], Y[1200:])
    assert "800 rows were learned since the training on 800" in learn.training_due(clf.model_)
    clf = copy.deepcopy(fitted(None, names=True))
    clf.partial_fit(X[:20], [[f"new{i}"] for i in range(20)])
    assert "20 of 50 labels are new" in learn.training_due(clf.model_)
    for odd in (3, "x", [1, {"learned": "x"}, {"when": 3}], [{"learned": True}]):
        clf.training_ = {**clf.training_, "history": odd}
        assert learn.training_due(clf.model_) is None
        again = copy.deepcopy(clf).partial_fit(X[:2], [["l01"], ["l02"]])
        assert again.training_["history"][-1]["learned"] == 2
        assert again.drop_labels(["l01"]).training_["history"][-1]["dropped"] == 1
