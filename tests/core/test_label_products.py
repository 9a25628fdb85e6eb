"""Products of rows with the vectors of labels: in batches, for single rows, from damaged files."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from label_vectors import (
    N_FEATURES,
    N_LABELS,
    N_ROWS,
    SETTINGS,
    WIDTHS,
    all_pairs,
    checked,
    decoded,
    dense,
    far_apart,
    make_lists,
    make_rows,
    named,
    products_of,
    train_ranker,
    unit,
)
from ldsm import _core


def check_batches(
    vectors: Any, x: sp.csr_array, indptr: Any, labels: Any, whole: Any, batch: int
) -> None:
    """The same bits whichever rows are asked for together."""
    for start in range(0, N_ROWS, batch):
        stop = min(start + batch, N_ROWS)
        part = slice(indptr[start], indptr[stop])
        lists = indptr[start : stop + 1] - indptr[start]
        again = products_of(vectors, sp.csr_array(x[start:stop]), lists, labels[part])
        assert np.array_equal(again, whole[part])


@pytest.mark.parametrize("batch", [1, 7, N_ROWS])
def test_products_independent_of_batch(batch: int) -> None:
    x, pairs = make_rows(), all_pairs()
    vectors, _ = train_ranker(checked(x), *pairs, **SETTINGS)
    weights = dense(vectors)
    new = make_rows(9)
    indptr, labels = make_lists(4, 6)
    labels = labels[::-1].copy()  # a list is in any order
    whole = products_of(vectors, new, indptr, labels)
    row = np.repeat(np.arange(N_ROWS), np.diff(indptr))
    expected = (unit(new)[row] * weights[labels, :-1]).sum(axis=1) + weights[labels, -1]
    np.testing.assert_allclose(whole, expected, atol=1e-5)
    check_batches(vectors, new, indptr, labels, whole, batch)


@pytest.mark.parametrize("n_features", WIDTHS)
@pytest.mark.parametrize("batch", [1, 7, N_ROWS])
def test_compressed_products(n_features: int, batch: int) -> None:
    x, pairs = far_apart(make_rows(), n_features), all_pairs()
    settings = SETTINGS | {"compress": True, "prune": 0.05}
    vectors, _ = train_ranker(checked(x), *pairs, **settings)
    new = far_apart(make_rows(9), n_features)
    indptr, labels = make_lists(4, 6)
    whole = products_of(vectors, new, indptr, labels)
    assert np.array_equal(whole, products_of(decoded(vectors), new, indptr, labels))
    row = np.repeat(np.arange(N_ROWS), np.diff(indptr))
    half = N_FEATURES // 2
    weights = dense(vectors, n_features)
    weights = np.delete(weights, slice(half, n_features - half), axis=1)[labels]
    expected = (unit(make_rows(9))[row] * weights[:, :-1]).sum(axis=1) + weights[:, -1]
    np.testing.assert_allclose(whole, expected, atol=1e-5)
    check_batches(vectors, new, indptr, labels, whole, batch)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("prune", [0.0, 0.6])
def test_single_rows_same_bits(compress: bool, prune: float) -> None:
    x = make_rows()
    settings = SETTINGS | {"compress": compress, "prune": prune}
    vectors, _ = train_ranker(checked(x), *all_pairs(), **settings)
    by_feature = _core.VectorsByFeature(named(vectors), N_FEATURES)
    # Features with a weight for many labels and for few are found in different ways.
    per_feature = (dense(vectors) != 0).sum(axis=0)
    assert (per_feature >= 4).any()
    assert prune == 0 or ((per_feature > 0) & (per_feature < 4)).any()
    new = sp.vstack([make_rows(9, 3), sp.csr_array((1, N_FEATURES), dtype=np.float32)]).tocsr()
    # Whichever reads less: a short list is answered label by label, a full one feature by feature.
    for labels in ([4], [0, 3, 7], [11, 2, 2, 5, 11], [*range(N_LABELS)], []):
        indptr = np.arange(5, dtype=np.int64) * len(labels)
        lists = np.array(labels * 4, dtype=np.int32)
        expected = products_of(vectors, new, indptr, lists)
        got = _core.label_products(
            named(vectors), checked(new), indptr, lists, by_feature=by_feature
        )
        assert np.array_equal(got, expected)


@pytest.mark.parametrize("compress", [False, True])
def test_squared_norms(compress: bool) -> None:
    vectors, _ = train_ranker(
        checked(make_rows()), *all_pairs(), **SETTINGS | {"compress": compress}
    )
    labels = np.array([7, 0, 7], np.int32)
    expected = (dense(vectors).astype(np.float64)[labels] ** 2).sum(axis=1)
    np.testing.assert_allclose(_core.squared_norms(named(vectors), labels), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="The label numbers must lie in"):
        _core.squared_norms(named(vectors), np.array([N_LABELS], np.int32))
    offsets = vectors[0].copy()
    offsets[1] = 10**12
    with pytest.raises(ValueError, match="damaged at label 0: offsets out of range"):
        _core.squared_norms(named((offsets, *vectors[1:])), labels)


def test_vectors_by_feature_must_fit() -> None:
    x = make_rows()
    vectors, _ = train_ranker(checked(x), *all_pairs(), **SETTINGS)
    indptr, lists = make_lists(4, 6)
    other = _core.VectorsByFeature(named(vectors), N_FEATURES + 1)
    with pytest.raises(ValueError, match="by_feature must be made from the same vectors"):
        _core.label_products(named(vectors), checked(x), indptr, lists, by_feature=other)


def test_damaged_vectors() -> None:
    x, pairs = make_rows(), all_pairs()
    vectors, _ = train_ranker(checked(x), *pairs, **SETTINGS)
    lists, labels = make_lists(4, 6)

    def products(offsets: Any, features: Any, weights: Any) -> None:
        units = np.zeros(0, np.float32)
        products_of((offsets, features, weights, units), x, lists, labels)

    offsets, features, weights, _ = vectors
    for place, value in ((3, -5), (3, 10**12), (0, 2**62), (N_LABELS, 2**40)):
        bad = offsets.copy()
        bad[place] = value
        with pytest.raises(ValueError, match="damaged at label"):
            products(bad, features, weights)
    for value in (-1, N_FEATURES + 1, 2**31 - 1):
        bad = features.copy()
        bad[len(bad) // 2] = value
        with pytest.raises(ValueError, match="a feature out of range"):
            products(offsets, bad, weights)
    for value, message in ((np.nan, "not finite"), (np.inf, "not finite"), (3e38, "too large")):
        bad = np.where(features == N_FEATURES, weights, np.float32(value))
        with pytest.raises(ValueError, match=message):
            products(offsets, features, bad)
    with pytest.raises(ValueError, match="do not fit each other"):
        products(offsets, features[:-1], weights)
    with pytest.raises(ValueError, match=r"label numbers of the lists must lie in \[0, 11\)"):
        products(offsets[:-1], features, weights)
    with pytest.raises(ValueError, match="weights must be a contiguous, aligned array"):
        products(offsets, features, weights.astype(np.float64))


@pytest.mark.parametrize("n_features", [N_FEATURES, 200_000])
def test_damaged_compressed_vectors(n_features: int) -> None:
    x, pairs = far_apart(make_rows(), n_features), all_pairs()
    settings = SETTINGS | {"compress": True}
    vectors, _ = train_ranker(checked(x), *pairs, **settings)
    lists, labels = make_lists(4, 6)
    for name, place, value, message in (
        ("offsets", 3, -5, "offsets out of range"),
        ("offsets", 3, 10**12, "offsets out of range"),
        ("features", 2, np.iinfo(vectors[1].dtype).max, "a feature out of range"),
        ("units", 3, np.nan, "a weight that is not finite"),
        ("units", 3, np.inf, "a weight that is not finite"),
        ("units", 3, 1e38, "a weight that is not finite"),
    ):
        bad = named([array.copy() for array in vectors])
        getattr(bad, name)[place] = value
        with pytest.raises(ValueError, match=f"damaged at label .*{message}"):
            _core.label_products(bad, checked(x), lists, labels)
    for name in ("offsets", "features", "weights", "units"):
        bad = named(vectors)
        setattr(bad, name, getattr(bad, name)[:-1])
        with pytest.raises(ValueError, match="do not fit each other"):
            _core.label_products(bad, checked(x), lists, labels)
    exact = vectors[2].astype(np.float32)  # floats have no units
    with pytest.raises(ValueError, match="do not fit each other"):
        products_of((*vectors[:2], exact, vectors[3]), x, lists, labels)
