"""Random data sets, and when two are the same, for the tests of readers and of the store."""

import numpy as np
from hypothesis import strategies as st

from ldsm.datasets import Dataset

float32s = st.floats(width=32, allow_nan=False, allow_infinity=False)
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
documents = st.lists(
    st.tuples(
        st.text(characters, max_size=20),
        st.lists(st.text(characters, max_size=6), max_size=4),
    ),
    max_size=8,
)


@st.composite
def matrix_datasets(draw):
    n_rows, n_features, n_labels = (draw(st.integers(0, 6)) for _ in range(3))
    X = np.zeros((n_rows, n_features), dtype=np.float32)
    Y = np.zeros((n_rows, n_labels), dtype=np.int32)
    if X.size:
        for _ in range(draw(st.integers(0, 8))):
            X[draw(st.integers(0, n_rows - 1)), draw(st.integers(0, n_features - 1))] = draw(
                float32s
            )
    if Y.size:
        for _ in range(draw(st.integers(0, 6))):
            Y[draw(st.integers(0, n_rows - 1)), draw(st.integers(0, n_labels - 1))] = 1
    return Dataset(X, Y)


def text_dataset(pairs):
    return Dataset.from_texts([text for text, _ in pairs], [labels for _, labels in pairs])


def assert_same(a, b):
    assert a.X is None or (a.X.shape == b.X.shape and (a.X != b.X).nnz == 0)
    assert a.Y.shape == b.Y.shape
    assert (a.Y != b.Y).nnz == 0
    for field in ("texts", "feature_names", "label_names"):
        left, right = getattr(a, field), getattr(b, field)
        assert (left is None) == (right is None)
        assert left is None or list(left) == list(right)
