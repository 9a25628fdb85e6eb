"""Shortlists of training rows."""

import numpy as np
import pytest

from ldsm._arrays.labels import label_arrays
from ldsm._matching.shortlists import Shortlists
from ldsm._matching.training_lists import shared


@pytest.mark.parametrize(
    ("listed", "own"),
    [
        ([[1, 3], [], [0, 2, 4]], [[0, 3], [1], [4]]),
        ([[0], [1]], [[4], [4]]),  # all beyond the last listed pair
        ([[], []], [[0], [1]]),
        ([[2, 3], [4]], [[], [0]]),
    ],
)
def test_shared_pairs(listed, own):
    indptr = np.cumsum([0, *map(len, listed)])
    labels = np.array([label for row in listed for label in row], dtype=np.int32)
    scores = np.zeros(len(labels), np.float32)
    y = label_arrays(np.array([[label in row for label in range(5)] for row in own], dtype=int))
    expected = [label in row for of, row in zip(listed, own, strict=True) for label in of]
    assert shared(Shortlists(indptr, labels, scores), y).tolist() == expected
