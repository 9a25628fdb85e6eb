"""Scores of labels without training rows."""

import numpy as np
import pytest

from ldsm import _core
from ldsm._ranking.blend import UNSEEN_TERMS, Pairs
from ldsm._ranking.unseen import fit_unseen, with_base_of


def named_pairs(n, seed):
    """Pairs with random signals of names, of which better matches are right more often."""
    rng = np.random.default_rng(seed)
    signals = np.stack([rng.random(n), rng.random(n), -rng.random(n)])  # o, k, d
    counts = rng.integers(1, 50, n)
    pairs = Pairs(np.zeros(n, np.float32), counts, more_letters="okd", more=signals)
    return pairs, rng.random(n) < 0.6 * signals[0] * signals[1]


def known_fit():
    pairs, truth = named_pairs(2000, seed=0)
    return fit_unseen(pairs, truth, np.ones(2000), UNSEEN_TERMS)


def scores(pairs, coefficients):
    return 1 / (1 + np.exp(-_core.blend_terms(pairs, UNSEEN_TERMS) @ coefficients))


@pytest.mark.parametrize("n_right", [0, 7, 300])
def test_scores_add_up_to_right_matches(n_right):
    pairs, _ = named_pairs(300, seed=1)
    before, right = known_fit(), np.arange(300) < n_right
    after = with_base_of(before, pairs, right, UNSEEN_TERMS, prior=1e-9)
    assert np.array_equal(after[1:], before[1:])
    assert scores(pairs, after).sum() == pytest.approx(n_right, abs=0.01)


def test_few_matches_prove_little():
    pairs, _ = named_pairs(300, seed=1)
    before, wrong = known_fit(), np.zeros(300, bool)
    whole = scores(pairs, before).sum()
    after = with_base_of(before, pairs, wrong, UNSEEN_TERMS, prior=20)
    assert scores(pairs, after).sum() == pytest.approx(whole * 20 / (whole + 20))


def test_no_matches_of_unseen_labels():
    pairs, right = named_pairs(300, seed=1)
    none = np.zeros(0, np.int64)
    alone = with_base_of(known_fit(), pairs[none], right[none], UNSEEN_TERMS, prior=20)
    assert np.array_equal(alone, known_fit())
