"""Dense rows: unit length in whole numbers, and what is refused."""

import numpy as np
import pytest

import naive
from ldsm._arrays.dense_rows import UNIT, DenseRows, dense_rows, label_vectors
from ldsm._arrays.features import feature_arrays
from ldsm._features.blocks import DENSE, READS, Blocks, Layout, stacked

RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(30, 7)) * 10.0 ** RNG.integers(-9, 9, size=(30, 1))
VALUES[4] = 0


def test_rows_equal_the_twin() -> None:
    rows = dense_rows(VALUES, 30).values
    assert rows.tolist() == [naive.dense_row(row) for row in VALUES.tolist()]
    lengths = np.sqrt((rows.astype(np.int64) ** 2).sum(axis=1))
    assert lengths[4] == 0
    np.testing.assert_allclose(np.delete(lengths, 4), UNIT, atol=2)


def test_only_the_direction_counts() -> None:
    rows = dense_rows(VALUES, 30).values
    powers = 2.0 ** RNG.integers(-20, 20, size=(30, 1))
    assert np.array_equal(dense_rows(VALUES * powers, 30).values, rows)
    half = VALUES.astype(np.float32)
    assert np.array_equal(dense_rows(half, 30).values, dense_rows(half.astype(float), 30).values)
    whole = RNG.integers(-50, 50, size=(30, 7))
    for kind in (np.int8, np.int64, np.float16, np.float32):
        assert np.array_equal(
            dense_rows(whole.astype(kind), 30).values, dense_rows(whole.astype(float), 30).values
        )


def test_extreme_values() -> None:
    extreme = np.array([[1e308, -1e308], [5e-324, 0.0], [1e308, 1e-308]])
    half = round(UNIT / 2**0.5)
    assert dense_rows(extreme, 3).values.tolist() == [[half, -half], [UNIT, 0], [UNIT, 0]]


def test_moments_are_exact() -> None:
    rows = dense_rows(VALUES, 30)
    exact, found = rows.values.astype(np.int64), rows.moments()
    assert found.n == 29
    assert np.array_equal(found.total, exact.sum(axis=0))
    assert np.array_equal(found.products, exact.T @ exact)


def test_blocks_keep_dense_rows_beside_the_others() -> None:
    x = Blocks.of(feature_arrays(np.eye(30, 5))).with_dense(dense_rows(VALUES, 30))
    assert x.layout == Layout.of(main=5, dense=7) and x.n_features == 5
    assert READS["meaning"] == (DENSE,) and x.has("meaning") and x.read_by("meaning") is x.dense
    joined = stacked(list(x.chunks(8)))
    order = np.array([3, 1, 29])
    for part, expected in (
        (joined, x.dense.values),
        (x.rows(4, 9), x.dense.values[4:9]),
        (x.take(order), x.dense.values[order]),
        (x.without_features(), np.zeros((30, 7))),
    ):
        assert part.dense is not None and np.array_equal(part.dense.values, expected)
    assert not Blocks.of(x.main).has("meaning")


NAN = VALUES.copy()
NAN[12, 3] = np.nan
WRONG = {
    "one dimension": (VALUES[0], "must be a matrix of numbers, a row for each of X. Got 1 dim"),
    "texts": (np.array([["a"]] * 30), "must be a matrix of numbers.*type <U1"),
    "complex": (VALUES * 1j, "must be a matrix of numbers.*complex128"),
    "rows": (VALUES[:7], "must have as many rows as X, 30. Got 7 rows"),
    "no columns": (VALUES[:, :0], "must have 1 to 4,096 columns. Got 0"),
    "many columns": (np.zeros((30, 4097), np.int8), "must have 1 to 4,096 columns. Got 4,097"),
    "NaN": (NAN, "must be finite. Got NaN or infinity in row 12"),
    "infinity": (np.where(NAN > 0, NAN, -np.inf), "must be finite. Got NaN or infinity in row 0"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_embeddings(wrong: str) -> None:
    given, message = WRONG[wrong]
    with pytest.raises(ValueError, match=f"^embeddings {message}"):
        dense_rows(given, 30)


def test_other_width() -> None:
    with pytest.raises(ValueError, match="must have the 5 columns .* trained with. Got 7"):
        dense_rows(VALUES, 30, width=5)


def test_label_vectors_by_column() -> None:
    classes = np.array(["b", "c", "a"], dtype=object)
    found = label_vectors({"a": [3, 4], "b": [0.0, 1.0]}, classes, width=2)
    assert found.labels.tolist() == [0, 2]
    assert np.array_equal(found.rows.values, dense_rows(np.array([[0, 1], [3, 4]]), 2).values)
    assert label_vectors({}, classes, width=2).rows.values.shape == (0, 2)


WRONG_LABELS = {
    "no mapping": ([[1, 2]], "must be a mapping from labels to vectors. Got list"),
    "unknown": ({"d": [1, 2]}, "has a vector for 'd', which is not a label"),
    "width": ({"a": [1, 2, 3]}, r"must hold vectors of 2 numbers.*shape \(3,\).*'a'"),
    "text": ({"a": ["x", "y"]}, r"must hold vectors of 2 numbers.*<U1 for 'a'"),
    "NaN": ({"a": [1, np.nan]}, "must be finite. Got NaN or infinity for 'a'"),
}


@pytest.mark.parametrize("wrong", WRONG_LABELS)
def test_wrong_label_vectors(wrong: str) -> None:
    given, message = WRONG_LABELS[wrong]
    with pytest.raises(ValueError, match=f"^label_embeddings {message}"):
        label_vectors(given, np.array(["a", "b"], dtype=object), width=2)


def test_dense_rows_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        DenseRows(np.zeros((2, 2), np.int16)).values[0] = 1
