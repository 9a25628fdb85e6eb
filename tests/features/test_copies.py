"""Which rows of a batch are copies, and which are not."""

import numpy as np
import pytest
import scipy.sparse as sp

from ldsm._arrays.features import feature_arrays
from ldsm._arrays.labels import label_arrays
from ldsm._features.blocks import BIGRAMS, MAIN, Blocks
from ldsm._features.copies import NO_ROWS, fresh_rows, row_keys


def keys(X, labels, bigrams=None):
    arrays = {MAIN: feature_arrays(sp.csr_array(np.array(X, np.float32)))}
    if bigrams is not None:
        arrays[BIGRAMS] = feature_arrays(sp.csr_array(np.array(bigrams, np.float32)))
    return row_keys(Blocks(arrays), label_arrays(labels))


def test_keys_depend_on_features_values_and_labels():
    X = [[1, 0, 2], [1, 2, 0], [2, 0, 1], [1, 0, 2], [1, 0, 2], [1, 0, 2], [0, 0, 0]]
    labels = [["a"], ["a"], ["a"], ["b"], ["a", "b"], ["a"], ["a"]]
    found = keys(X, labels)
    assert len(np.unique(found[:, 0])) == 4 and len(np.unique(found[:, 1])) == 6
    assert fresh_rows(found, NO_ROWS).rows.tolist() == [0, 1, 2, 3, 4, 6]


def test_keys_depend_on_the_block():
    one, other = keys([[1, 0]], [["a"]], [[0, 0]]), keys([[0, 0]], [["a"]], [[1, 0]])
    assert one[0, 0] != other[0, 0]


@pytest.mark.parametrize("labels", [["x", "y"], [7, 8]])
def test_keys_depend_neither_on_width_nor_on_columns(labels):
    first, second = labels
    few = keys([[1, 2]], [[second, first]])
    many = keys([[3, 0, 0], [1, 2, 0]], [[first], [first, second]])
    assert few[0].tolist() == many[1].tolist()


def test_types_of_labels_differ():
    assert keys([[1]], [["1"]])[0, 1] != keys([[1]], [[1]])[0, 1]


def test_changed_labels_are_no_copies():
    X = [[1, 0], [0, 1]]
    learned = fresh_rows(keys(X, [["a"], ["b"]]), NO_ROWS).learned
    rows, after = fresh_rows(keys(X, [["c"], ["b"]]), learned)
    assert rows.tolist() == [0] and len(after) == 2
    rows, after = fresh_rows(keys(X, [["a"], ["b"]]), after)
    assert rows.tolist() == [0] and len(after) == 2
