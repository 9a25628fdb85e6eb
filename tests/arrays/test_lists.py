"""Concatenated lists, compared with plain lists."""

from itertools import pairwise

import numpy as np
import pytest

from ldsm._arrays.lists import replaced_lists, taken_lists


def packed(lists):
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    return offsets, np.array([n for one in lists for n in one], dtype=np.int64)


def unpacked(offsets, values):
    return [values[a:b].tolist() for a, b in pairwise(offsets.tolist())]


@pytest.mark.parametrize("seed", range(20))
def test_lists_are_taken_and_replaced(seed):
    rng = np.random.default_rng(seed)
    lists = [rng.integers(0, 9, rng.integers(0, 4)).tolist() for _ in range(rng.integers(1, 12))]
    offsets, values = packed(lists)
    wanted = rng.integers(0, len(lists), rng.integers(0, 8))
    own, entries = taken_lists(offsets, wanted)
    assert unpacked(own, values[entries]) == [lists[i] for i in wanted]
    chosen = np.flatnonzero(rng.random(len(lists)) < rng.random())
    others = [rng.integers(10, 19, rng.integers(0, 4)).tolist() for _ in chosen]
    new_offsets, new_values = packed(others)
    both = replaced_lists(
        offsets, (values, -values), chosen, new_offsets, (new_values, -new_values)
    )
    expected = list(lists)
    for place, other in zip(chosen.tolist(), others, strict=True):
        expected[place] = other
    got_offsets, (got, negative) = both
    assert unpacked(got_offsets, got) == expected
    assert np.array_equal(negative, -got)
