"""Matchers outside the core that are trained fold by fold."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldsm._arrays.features import FeatureArrays, feature_arrays
from ldsm._matching.part import Folded, Matcher
from ldsm._matching.shortlists import Shortlists

FOLDS = np.array([2, 0, 1, 1, 0, 2, 0], dtype=np.uint8)
VALUES = np.arange(1, 15, dtype=np.float32).reshape(7, 2)


@dataclass(frozen=True, eq=False)
class Echo(Matcher):
    """Shows which rows and lists each fold's matcher is asked for."""

    fold: NDArray[np.int64]

    def ranked(self, x: Any, length: int, allowed: Any, places: Any, cancel: Any) -> Any:
        lists = [
            [int(row[0]), int(self.fold[0])][: int(row[0]) % 3] for row in x.matrix().toarray()
        ]
        offsets = np.cumsum([0, *map(len, lists)])
        return offsets, np.array([k for own in lists for k in own], dtype=np.int32)

    def scores(self, x: FeatureArrays, lists: Shortlists, cancel: Any = None) -> NDArray[np.int64]:
        first = np.repeat(x.matrix().toarray()[:, 0], np.diff(lists.indptr))
        return np.asarray(1000 * self.fold[0] + 100 * first + lists.labels, dtype=np.int64)


def test_each_row_is_answered_by_the_matcher_of_its_fold() -> None:
    echoes = tuple(Echo(np.array([fold])) for fold in range(3))
    folded = Folded(Echo(np.array([9])), echoes, FOLDS)
    rows = np.array([5, 1, 0, 6, 2])
    x = feature_arrays(VALUES[rows])
    offsets, labels = folded.ranked(x, rows, 10, None, None)
    first = VALUES[rows, 0].astype(int).tolist()
    expected = [
        [value, int(FOLDS[row])][: value % 3] for row, value in zip(rows, first, strict=True)
    ]
    assert offsets.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert labels.tolist() == [k for own in expected for k in own]
    lists = Shortlists(offsets, labels, np.zeros(len(labels), np.float32))
    scores = folded.scores(x, rows, lists)
    of_pair = [
        1000 * int(FOLDS[row]) + 100 * value + k
        for row, value, own in zip(rows, first, expected, strict=True)
        for k in own
    ]
    assert scores is not None and scores.tolist() == of_pair
