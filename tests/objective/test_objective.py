"""The calculators of ldsm.objective against hand-computed values and the paper's (true) claims."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldsm.objective import (
    balancedness_bound,
    balancedness_factor,
    binary_split_objective,
    marginal_share,
    objective_range,
    objective_terms,
    purity_bound,
    purity_factor,
    purity_gap_bound,
    split_objective,
    split_shares,
    weak_hypothesis_gamma,
)

# Sums of at most 6 * 6 * 8 numbers below 10: double precision errs by some 1e-13.
TOLERANCE = 1e-9

deterministic = settings(derandomize=True, deadline=None, max_examples=100)
weights = st.floats(0, 6)
arity_2_to_6 = st.integers(2, 6)


@st.composite
def splits(draw, arities=arity_2_to_6):
    """(label_share, child_share) where every label's shares sum to at least 1."""
    arity, n_labels = draw(arities), draw(st.integers(1, 8))
    counts = np.array(draw(st.lists(st.integers(1, 20), min_size=n_labels, max_size=n_labels)))
    # The extremes of J lie at whole shares, so 0 and 1 must be common.
    share = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
    columns = []
    for _ in range(n_labels):
        column = draw(st.lists(share, min_size=arity, max_size=arity))
        lucky = draw(st.integers(0, arity - 1))
        column[lucky] = max(column[lucky], 1.0 - sum(column) + column[lucky])
        columns.append(np.clip(column, 0.0, 1.0))
    return counts / counts.sum(), np.array(columns).T


def same_children(arity, n_children):
    """One label, sent whole to the first ``n_children`` children."""
    return [1.0], [[1.0 if j < n_children else 0.0] for j in range(arity)]


def rotated_children(arity, n_children):
    """``arity`` labels, label k sent whole to children k, k + 1, ...: perfectly balanced."""
    child_share = np.zeros((arity, arity))
    for k, step in itertools.product(range(arity), range(n_children)):
        child_share[(k + step) % arity, k] = 1.0
    return np.full(arity, 1 / arity), child_share


# --- hand-computed values


def test_terms_of_a_ternary_split():
    label_share, child_share = [0.5, 0.25, 0.25], [[1, 0.5, 0], [0, 1, 0.5], [0, 0, 1]]
    # P = (0.625, 0.375, 0.25); pairs of P differ by 0.25, 0.375, 0.125;
    # pairs per label sum to 2, 2, 2.
    np.testing.assert_array_equal(marginal_share(label_share, child_share), [0.625, 0.375, 0.25])
    terms = objective_terms(label_share, child_share, 3.0, 2.0)
    assert terms == (0.75, -6.0, 0.5)
    assert terms.purity == -5.5
    assert terms.objective == -4.75
    assert split_objective(label_share, child_share, 3.0, 2.0) == -4.75
    # mean of P is 1.25 / 3, the first child deviates most; each of the last two labels has
    # min(0.5, 1) + min(1, 0.5) + 0 = 1, times its share 0.25, over 3 children.
    assert balancedness_factor(label_share, child_share) == pytest.approx(0.625 - 1.25 / 3)
    assert purity_factor(label_share, child_share) == pytest.approx(0.5 / 3)


def test_terms_of_a_binary_split():
    label_share, child_share = [0.75, 0.25], [[1, 0.5], [0.5, 1]]
    # P = (0.875, 0.625): balance 0.25, integrity 0.5, sum 1.5.
    assert objective_terms(label_share, child_share, 2.0, 4.0) == (0.25, -1.0, 2.0)
    assert binary_split_objective(label_share, child_share, 2.0, 4.0) == 1.25
    assert balancedness_factor(label_share, child_share) == 0.125
    assert purity_factor(label_share, child_share) == 0.5
    assert weak_hypothesis_gamma(label_share, child_share) == 0.5


def test_multiway_penalty_in_eq_2():
    both_ways = [1.0], [[1.0], [1.0]]
    assert binary_split_objective(*both_ways, 2.0, 3.0) == 3.0


def test_soft_shares_are_penalized():
    """Clamped margins may sum to less than 1; Eq. 1 takes the absolute value."""
    assert objective_terms([1.0], [[0.25], [0.25]], 1.0, 2.0) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(("n_children", "beta", "alpha"), [(1, 0.75, 0.0), (2, 0.5, 0.5)])
def test_factors_of_one_way_splits(n_children, beta, alpha):
    split = same_children(4, n_children)
    assert balancedness_factor(*split) == beta
    assert purity_factor(*split) == alpha
    assert balancedness_factor(*rotated_children(4, n_children)) == 0.0


def test_split_shares_drop_absent_labels():
    label_share, child_share = split_shares([4, 0, 12], [[4, 0, 3], [1, 0, 12]])
    np.testing.assert_array_equal(label_share, [0.25, 0.75])
    np.testing.assert_array_equal(child_share, [[1.0, 0.25], [0.25, 1.0]])


# --- Eq. 1, Eq. 2 and the range of J


@deterministic
@given(splits(arities=st.just(2)), weights, weights)
def test_eq_2_matches_eq_1(split, integrity_weight, multiway_penalty):
    general = split_objective(*split, integrity_weight, multiway_penalty)
    binary = binary_split_objective(*split, integrity_weight, multiway_penalty)
    assert binary == pytest.approx(general, abs=TOLERANCE)


@deterministic
@given(splits(), weights, weights)
def test_objective_stays_in_its_range(split, integrity_weight, multiway_penalty):
    value = split_objective(*split, integrity_weight, multiway_penalty)
    limits = objective_range(len(split[1]), integrity_weight, multiway_penalty)
    if limits.lower_holds:
        assert value >= limits.lower - TOLERANCE
    if limits.upper_holds:
        assert value <= limits.upper + TOLERANCE


@deterministic
@given(arity_2_to_6, weights, weights)
def test_range_conditions_are_exact(arity, integrity_weight, multiway_penalty):
    """Where a condition fails, some split with whole shares leaves the range by as much."""
    pair = integrity_weight, multiway_penalty
    limits = objective_range(arity, *pair)
    least = min(split_objective(*rotated_children(arity, q), *pair) for q in range(1, arity + 1))
    greatest = max(split_objective(*same_children(arity, q), *pair) for q in range(1, arity + 1))
    if limits.lower_holds:
        assert least == pytest.approx(limits.lower, abs=TOLERANCE)
    else:
        lacking = integrity_weight * (arity - 3) - multiway_penalty
        assert lacking > 0
        assert least <= limits.lower - lacking + TOLERANCE
    if limits.upper_holds:
        assert greatest == pytest.approx(limits.upper, abs=TOLERANCE)
    else:
        lacking = (arity - 1) * (1 - integrity_weight) - multiway_penalty
        assert lacking > 0
        assert greatest >= limits.upper + lacking - TOLERANCE


@pytest.mark.parametrize("arity", [2, 3, 4, 5, 6])
def test_range_ends_are_reached(arity):
    integrity_weight, multiway_penalty = 2.0, 7.0
    limits = objective_range(arity, integrity_weight, multiway_penalty)
    assert limits == (-2.0 * (arity - 1), 7.0 * (arity - 1), True, True, True)
    pure = split_objective(*rotated_children(arity, 1), integrity_weight, multiway_penalty)
    everywhere = split_objective(*same_children(arity, arity), integrity_weight, multiway_penalty)
    assert pure == pytest.approx(limits.lower)
    assert everywhere == pytest.approx(limits.upper)


def test_upper_end_fails_without_its_condition():
    """Lemma 1 as printed: J <= lambda_2. All rows to one child give 1 - lambda_1."""
    limits = objective_range(2, 0.25, 0.5)
    assert not limits.upper_holds
    assert split_objective(*same_children(2, 1), 0.25, 0.5) == 0.75 > limits.upper
    # Lemma 2's own condition, M - 3 < lambda_2 / lambda_1, does not help.
    limits = objective_range(4, 0.25, 0.5)
    assert limits.lower_holds
    assert not limits.upper_holds
    assert split_objective(*same_children(4, 3), 0.25, 0.5) == 3.25 > limits.upper


def test_lower_end_fails_without_its_condition():
    limits = objective_range(4, 1.0, 0.5)
    assert not limits.lower_holds
    assert split_objective(*rotated_children(4, 2), 1.0, 0.5) == -3.5 < limits.lower


def test_minimum_is_not_unique_at_equality():
    limits = objective_range(4, 1.0, 1.0)
    assert limits.lower_holds
    assert not limits.unique_minimum
    assert split_objective(*rotated_children(4, 2), 1.0, 1.0) == limits.lower
    assert purity_factor(*rotated_children(4, 2)) > 0
    # Without an integrity weight an impure split is as good as any other.
    assert not objective_range(2, 0.0, 1.0).unique_minimum
    assert split_objective([1.0], [[0.5], [0.5]], 0.0, 1.0) == 0.0


# --- the bounds on balancedness and purity


@deterministic
@given(splits(), weights, weights)
def test_lemma_3(split, integrity_weight, multiway_penalty):
    terms = objective_terms(*split, integrity_weight, multiway_penalty)
    beta = balancedness_factor(*split)
    bound = balancedness_bound(terms.objective, terms.purity)
    assert bound == pytest.approx(terms.balancing, abs=TOLERANCE)
    assert 0 <= beta <= 1 - 1 / len(split[1]) + TOLERANCE
    assert beta <= bound + TOLERANCE
    assert len(split[1]) * beta <= bound + TOLERANCE  # the sharper form of the docstring
    if len(split[1]) == 2:
        assert 2 * beta == pytest.approx(bound, abs=TOLERANCE)


@deterministic
@given(splits(), weights, st.floats(0.01, 6))
def test_corrected_lemma_4(split, integrity_weight, surplus):
    arity = len(split[1])
    pair = integrity_weight, integrity_weight * (arity - 1) + surplus
    terms = objective_terms(*split, *pair)
    bound = purity_bound(terms.objective - terms.balancing, arity, *pair)
    assert 0 <= purity_factor(*split) <= bound + TOLERANCE
    assert bound >= 1 / arity - TOLERANCE


def test_corrected_lemma_4_by_hand():
    # (-2 + 3) / (2 * (3 - 2)), and (J_purity + 11) / (3 * (11 - 2 * 4)) with J_purity = -2.
    assert purity_bound(-2.0, 2, 2.0, 3.0) == 0.5
    assert purity_bound(-2.0, 3, 4.0, 11.0) == 1.0


def test_lemma_4_is_false_as_printed():
    arity, integrity_weight, multiway_penalty = 2, 2.0, 1.5
    split = rotated_children(arity, 1)
    terms = objective_terms(*split, integrity_weight, multiway_penalty)
    assert (
        integrity_weight * (arity - 1) + terms.balancing
        >= multiway_penalty
        >= integrity_weight * (arity - 1) / 2
    )
    printed = (terms.objective - terms.balancing + multiway_penalty) * (
        2 / (arity * (2 * multiway_penalty - integrity_weight * (arity - 1)))
    )
    assert printed == -0.5
    assert purity_factor(*split) == 0.0 > printed


@deterministic
@given(splits(), st.floats(0.1, 6), st.floats(0.01, 6))
def test_purity_gap_bound(split, integrity_weight, surplus):
    arity = len(split[1])
    # From just above the least penalty of Lemma 2, which is negative for M = 2.
    pair = integrity_weight, max(0.0, integrity_weight * (arity - 3)) + surplus
    bound = purity_gap_bound(objective_terms(*split, *pair).purity, arity, *pair)
    assert purity_factor(*split) <= bound + TOLERANCE


@pytest.mark.parametrize(
    ("split", "multiway_penalty"),
    [
        (rotated_children(2, 1), 1.5),  # pure: 0
        (rotated_children(5, 1), 9.0),
        (same_children(2, 2), 1.0),  # whole shares, small penalty: the u = 0 end of the proof
        (same_children(4, 2), 2.5),
        (([1.0], [[0.5], [0.5]]), 3.0),  # one label halved, large penalty: the u = d end
        (([1.0], [[0.75], [0.25], [0.0]]), 9.0),
    ],
)
def test_purity_gap_bound_is_tight(split, multiway_penalty):
    arity = len(split[1])
    terms = objective_terms(*split, 2.0, multiway_penalty)
    bound = purity_gap_bound(terms.purity, arity, 2.0, multiway_penalty)
    assert bound == pytest.approx(purity_factor(*split), abs=TOLERANCE)
