"""Vectors of labels that are packed, taken, replaced and given room, beside a dense matrix."""

import numpy as np
import pytest
import scipy.sparse as sp

from ldsm._ranking.label_vectors import LabelVectors


def random_rows(n_features, seed, n_labels=7, most=30):
    """Each row ends with a constant, as rankers have it."""
    rng = np.random.default_rng(seed)
    table = np.zeros((n_labels, n_features + 1), dtype=np.float32)
    for row in table[:-1]:  # the last label has nothing
        row[rng.choice(n_features, rng.integers(0, most), replace=False)] = 1
        row *= rng.normal(size=n_features + 1)
        row[-1] = rng.normal()
    return table


def packed(table, compress):
    return LabelVectors.packed(
        sp.csr_array(table), table.shape[1] - 1, prune=0.0, compress=compress
    )


def dense(vectors, n_features):
    return vectors.matrix(n_features).toarray()


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("n_features", [40, 3000, 200_000])
def test_vectors_are_what_was_packed(n_features, compress):
    table = random_rows(n_features, 0)
    vectors = packed(table, compress)
    close = np.abs(table).max(axis=1, keepdims=True) / 254 * 1.01 if compress else 0
    assert np.all(np.abs(dense(vectors, n_features) - table) <= close)
    kinds = {40: np.uint8, 3000: np.uint8, 200_000: np.uint16}
    assert vectors.features.dtype == (kinds[n_features] if compress else np.int32)
    for label in range(len(table)):
        features, weights = vectors.vector(label)
        row = np.zeros(n_features + 1)
        row[features] = weights
        assert np.allclose(row, dense(vectors, n_features)[label])


@pytest.mark.parametrize("compress", [True, False])
def test_vectors_are_taken_and_replaced(compress):
    vectors, others = (packed(random_rows(3000, seed), compress) for seed in (0, 1))
    before, after = dense(vectors, 3000), dense(others, 3000)
    order = np.array([3, 0, 0, 6])
    assert np.array_equal(dense(vectors.taken(order), 3000), before[order])
    labels = np.array([0, 1, 5])
    changed = vectors.replaced(labels, others.taken(np.array([2, 3, 4])))
    before[labels] = after[[2, 3, 4]]
    assert np.array_equal(dense(changed, 3000), before)


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("n_features", [40, 4090, 70_000])
@pytest.mark.parametrize("more", [1, 300, 70_000])
def test_room_for_more_features(n_features, more, compress):
    """Also where the gaps become too wide for their type, or get another one."""
    vectors = packed(random_rows(n_features, 2), compress)
    at = n_features // 3
    wider = vectors.with_room(at, more, n_features + more)
    before = dense(vectors, n_features)
    expected = np.insert(before, [at] * more, 0, axis=1)
    assert np.array_equal(dense(wider, n_features + more), expected)
    if compress:
        widest = np.uint8 if n_features + more <= 4096 else np.uint16
        assert wider.features.dtype == widest
