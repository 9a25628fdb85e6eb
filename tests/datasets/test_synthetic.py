"""Synthetic data: shapes, power laws, the same rows for the same seed, and something to learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import normalize

from ldsm.datasets.synthetic import PRESETS, make_xmc


def same(a, b):
    return all(
        np.array_equal(getattr(p, name), getattr(q, name))
        for p, q in ((a.X, b.X), (a.Y, b.Y))
        for name in ("indptr", "indices", "data")
    )


def precision_at_1(Y, best):
    return np.asarray(Y[np.arange(Y.shape[0]), best]).mean()


def popularity(train, test):
    best = np.bincount(train.Y.indices, minlength=train.Y.shape[1]).argmax()
    return precision_at_1(test.Y, np.full(test.Y.shape[0], best))


def centroids(train, test):
    X = normalize(train.X)
    centre = normalize((train.Y.T @ X).tocsr())
    return precision_at_1(test.Y, (normalize(test.X) @ centre.T).toarray().argmax(axis=1))


@pytest.mark.parametrize("name", PRESETS)
def test_preset_shapes(name):
    preset = PRESETS[name]
    scale = min(1.0, 3000 / preset.n_rows)
    train = make_xmc(name, scale=scale)
    test = make_xmc(name, scale=scale, part="test")
    features, labels = round(scale * preset.n_features), round(scale * preset.n_labels)
    assert train.X.shape == (round(scale * preset.n_rows), features)
    assert train.Y.shape == (round(scale * preset.n_rows), labels)
    assert test.X.shape == (round(scale * preset.n_test_rows), features)
    assert test.Y.shape[1] == labels
    assert train.X.nnz / len(train) == pytest.approx(
        min(preset.nonzeros_per_row, features), rel=0.05
    )
    assert train.Y.nnz / len(train) == pytest.approx(min(preset.labels_per_row, labels), rel=0.05)
    assert train.X.dtype == np.float32
    assert train.X.indices.dtype == train.Y.indices.dtype == np.int32
    assert (train.X.data > 0).all()
    if preset.binary:
        assert (train.X.data == 1).all()
    else:
        np.testing.assert_allclose(train.X.multiply(train.X).sum(axis=1), 1, rtol=1e-5)


def test_preset_sizes():
    assert len(PRESETS) == 8
    amazon = PRESETS["amazon-670k"]
    assert (amazon.n_rows, amazon.n_test_rows) == (490_449, 153_025)
    assert (amazon.n_features, amazon.n_labels) == (135_909, 670_091)
    assert (amazon.labels_per_row, amazon.nonzeros_per_row) == (5.45, 76)
    assert PRESETS["mediamill"].nonzeros_per_row == PRESETS["mediamill"].n_features


@pytest.mark.parametrize("exponent", [0.5, 0.8, 1.2])
def test_label_frequencies_follow_the_power_law(exponent):
    data = make_xmc(
        30_000, 100, 2_000, labels_per_row=2, nonzeros_per_row=2, label_exponent=exponent
    )
    frequency = np.sort(np.bincount(data.Y.indices, minlength=2_000))[::-1]
    # Between the head, flattened since a row has a label once, and the tail, where chance rules.
    rank = np.arange(10, 300)
    slope = np.polyfit(np.log(rank), np.log(frequency[rank - 1]), 1)[0]
    assert slope == pytest.approx(-exponent, abs=0.1)


def test_no_universal_label():
    data = make_xmc(3_000, 50, 500, labels_per_row=40, nonzeros_per_row=5, label_exponent=1.2)
    assert np.bincount(data.Y.indices).max() / len(data) < 0.6


def test_feature_frequencies_are_skewed():
    data = make_xmc(5_000, 2_000, 100, nonzeros_per_row=30)
    frequency = np.sort(np.bincount(data.X.indices, minlength=2_000))[::-1]
    assert frequency[:20].mean() > 20 * np.median(frequency)


def test_seeds():
    first = make_xmc(1500, 300, 80, nonzeros_per_row=20, seed=3)
    assert same(first, make_xmc(1500, 300, 80, nonzeros_per_row=20, seed=3))
    other = make_xmc(1500, 300, 80, nonzeros_per_row=20, seed=4)
    assert not np.array_equal(first.Y.indices[:500], other.Y.indices[:500])
    assert not np.array_equal(first.X.indices[:500], other.X.indices[:500])


def test_prefix_of_rows_is_stable():
    few = make_xmc(700, 300, 80, seed=1)
    many = make_xmc(2500, 300, 80, seed=1)
    assert same(few, many.select(slice(700)))


def test_test_part_shares_labels():
    train = make_xmc(2000, 400, 60)
    test = make_xmc(2000, 400, 60, part="test")
    rows = [{r.tobytes() for r in part.X.toarray()} for part in (train, test)]
    assert not rows[0] & rows[1]
    counts = [np.bincount(part.Y.indices, minlength=60) for part in (train, test)]
    assert np.corrcoef(*counts)[0, 1] > 0.95


@pytest.mark.long
def test_one_versus_rest_beats_popularity():
    train, test = (make_xmc(1500, 400, 40, labels_per_row=2, part=p) for p in ("train", "test"))
    model = OneVsRestClassifier(LogisticRegression(C=10)).fit(train.X, train.Y.toarray())
    learned = precision_at_1(test.Y, model.decision_function(test.X).argmax(axis=1))
    assert learned > 0.3 + popularity(train, test)


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("bibtex", 0.5),
        ("eurlex", 0.2),
        pytest.param("amazon-670k", 0.01, marks=pytest.mark.long),
    ],
)
def test_presets_can_be_learned(name, scale):
    train, test = (make_xmc(name, scale=scale, part=part) for part in ("train", "test"))
    assert centroids(train, test) > 0.3 + popularity(train, test)


def test_nothing_can_be_learned_from_noise():
    train, test = (make_xmc(1500, 400, 40, noise=1.0, part=p) for p in ("train", "test"))
    assert centroids(train, test) < popularity(train, test)


@given(
    n_rows=st.integers(1, 40),
    n_features=st.integers(1, 60),
    n_labels=st.integers(1, 60),
    label_share=st.floats(0, 1),
    feature_share=st.floats(0, 1),
    exponent=st.floats(0, 10),
    noise=st.floats(0, 1),
)
@settings(max_examples=25, deadline=None)
def test_any_shape(n_rows, n_features, n_labels, label_share, feature_share, exponent, noise):
    data = make_xmc(
        n_rows,
        n_features,
        n_labels,
        labels_per_row=label_share * n_labels,
        nonzeros_per_row=1 + feature_share * (n_features - 1),
        label_exponent=exponent,
        noise=noise,
    )
    assert data.X.shape == (n_rows, n_features)
    assert data.Y.shape == (n_rows, n_labels)
    data.X.check_format(full_check=True)
    data.Y.check_format(full_check=True)
    for matrix in (data.X, data.Y):
        columns = np.diff(matrix.indices)[
            np.diff(np.repeat(range(n_rows), np.diff(matrix.indptr))) == 0
        ]
        assert (columns > 0).all()  # sorted, and no id twice
    assert np.diff(data.X.indptr).min() >= 1
    assert np.isfinite(data.X.data).all()
    assert (data.X.data > 0).all()


def test_dense_and_label_less_rows():
    dense = make_xmc(100, 20, 10, nonzeros_per_row=20)
    assert dense.X.nnz == 100 * 20
    sparse = make_xmc(1000, 20, 10, labels_per_row=0.5)
    assert sparse.Y.nnz == pytest.approx(500, rel=0.1)
    assert make_xmc(100, 20, 10, labels_per_row=0).Y.nnz == 0
    assert make_xmc(100, 20, 10, labels_per_row=10).Y.nnz == 1000


def test_source_reproduces_data():
    data = make_xmc(50, 20, 10, labels_per_row=2, binary=True, seed=5)
    again = eval(data.source, {"make_xmc": make_xmc})
    assert same(data, again)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"n_rows": "amazon"}, "n_rows"),
        ({"n_rows": 0}, "n_rows"),
        ({"n_rows": True}, "n_rows"),
        ({"n_features": None}, "n_features"),
        ({"n_features": 2.0}, "n_features"),
        ({"n_labels": 0}, "n_labels"),
        ({"labels_per_row": 6}, "labels_per_row"),
        ({"labels_per_row": -1}, "labels_per_row"),
        ({"nonzeros_per_row": 0.5}, "nonzeros_per_row"),
        ({"label_exponent": float("nan")}, "label_exponent"),
        ({"noise": 1.1}, "noise"),
        ({"scale": 0.5}, "scale"),
        ({"part": "valid"}, "part"),
        ({"seed": -1}, "seed"),
        ({"seed": None}, "seed"),
    ],
)
def test_wrong_arguments_are_named(arguments, name):
    with pytest.raises(ValueError, match=f"The '{name}' argument of make_xmc must be .* Got .*"):
        make_xmc(**{"n_rows": 10, "n_features": 8, "n_labels": 5, **arguments})
