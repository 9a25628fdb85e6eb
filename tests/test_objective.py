"""The calculators of ldsm.objective against hand-computed values and the paper's (true) claims."""

import doctest
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ldsm import objective
from ldsm.objective import (
    balancedness_bound,
    balancedness_factor,
    binary_split_objective,
    leaf_entropy,
    log_nodes_for_error,
    marginal_share,
    objective_range,
    objective_terms,
    purity_bound,
    purity_factor,
    purity_gap_bound,
    r_level_error,
    split_objective,
    split_shares,
    weak_hypothesis_gamma,
)

# Sums of at most 6 * 6 * 8 numbers below 10: double precision errs by some 1e-13.
TOLERANCE = 1e-9

deterministic = settings(derandomize=True, deadline=None, max_examples=200)
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


def test_multiway_penalty_is_added_in_eq_2():
    both_ways = [1.0], [[1.0], [1.0]]
    assert binary_split_objective(*both_ways, 2.0, 3.0) == 3.0


def test_soft_shares_below_one_are_penalised_too():
    """Clamped margins may sum to less than 1; Eq. 1 takes the absolute value."""
    assert objective_terms([1.0], [[0.25], [0.25]], 1.0, 2.0) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(("n_children", "beta", "alpha"), [(1, 0.75, 0.0), (2, 0.5, 0.5)])
def test_factors_when_all_rows_go_the_same_way(n_children, beta, alpha):
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
def test_eq_2_is_eq_1_with_two_children(split, integrity_weight, multiway_penalty):
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
def test_both_ends_of_the_range_are_reached(arity):
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


# --- C * J with accumulators against the paper's Algorithm 3


def candidates(arity):
    """Every non-empty set of directions, as 0/1 tuples."""
    return [bits for bits in itertools.product([0, 1], repeat=arity) if any(bits)]


def paper_objective(C, P, count, P_k, row, directions, lambda_1, lambda_2):
    """J of Algorithm 3. C and count (the paper's l) include the row, P and P_k not yet."""
    n, pairs = len(row), list(itertools.combinations(range(len(directions)), 2))
    P = [((C - n) * P[m] + n * y) / C for m, y in enumerate(directions)]
    P_k = {
        k: [((count[k] - 1) * P_k[k][m] + y) / count[k] for m, y in enumerate(directions)]
        for k in row
    }
    B = sum(abs(P[a] - P[b]) for a, b in pairs)
    CI = sum(Fraction(count[k], C) * abs(P_k[k][a] - P_k[k][b]) for k in row for a, b in pairs)
    MWP = abs(sum(P) - 1)
    return B - lambda_1 * CI + lambda_2 * MWP


def accumulator_objective(C, B, A, row, directions, lambda_1, lambda_2):
    """C * J from B_m, the sums of |y| pred_m, and A_m[k], the sums of pred_m over rows with k."""
    n, pairs = len(row), list(itertools.combinations(range(len(directions)), 2))
    B = [B[m] + n * y for m, y in enumerate(directions)]
    balancing = sum(abs(B[a] - B[b]) for a, b in pairs)
    T = {
        (a, b, delta): sum(abs(A[a][k] - A[b][k] + delta) for k in row)
        for a, b in pairs
        for delta in (-1, 0, 1)
    }
    integrity = sum(T[a, b, directions[a] - directions[b]] for a, b in pairs)
    return balancing - lambda_1 * integrity + lambda_2 * abs(sum(B) - C)


@st.composite
def streams(draw):
    """Rows seen by a node, each with its labels and margins, and a last row to decide on."""
    arity, n_labels = draw(st.integers(2, 4)), draw(st.integers(1, 5))
    row = st.sets(st.integers(0, n_labels - 1), min_size=1).map(sorted)
    eighth = st.integers(0, 8).map(lambda i: Fraction(i, 8))
    margins = st.lists(eighth, min_size=arity, max_size=arity)
    seen = draw(st.lists(st.tuples(row, margins), max_size=12))
    return arity, n_labels, seen, draw(row)


@deterministic
@given(streams(), st.integers(0, 24), st.integers(0, 24))
def test_accumulators_decide_as_algorithm_3(stream, eighths_1, eighths_2):
    """In exact arithmetic, C times the J of Algorithm 3 is the accumulators' value.

    So their minimisers are the same sets, ties included, although no label count l is kept. Both
    leave out the labels that the row does not have; with them, as in Eq. 1, J differs by a
    constant.
    """
    arity, n_labels, seen, row = stream
    lambdas = Fraction(eighths_1, 8), Fraction(eighths_2, 8)
    # The paper's state, updated as in Algorithm 4, and the accumulators beside it.
    C, count = 0, [0] * n_labels
    P, P_k = [Fraction(0)] * arity, [[Fraction(0)] * arity for _ in range(n_labels)]
    B, A = [Fraction(0)] * arity, [[Fraction(0)] * n_labels for _ in range(arity)]
    for labels, margins in seen:
        n = len(labels)
        C += n
        for k in labels:
            count[k] += 1
        for m, margin in enumerate(margins):
            P[m] = ((C - n) * P[m] + n * margin) / C
            B[m] += n * margin
            for k in labels:
                P_k[k][m] = ((count[k] - 1) * P_k[k][m] + margin) / count[k]
                A[m][k] += margin
    C += len(row)
    for k in row:
        count[k] += 1

    paper = [paper_objective(C, P, count, P_k, row, y, *lambdas) for y in candidates(arity)]
    ours = [accumulator_objective(C, B, A, row, y, *lambdas) for y in candidates(arity)]
    assert ours == [C * value for value in paper]
    assert [v == min(ours) for v in ours] == [v == min(paper) for v in paper]

    # Eq. 1 over all labels of the node, from the calculator.
    known = [k for k in range(n_labels) if count[k]]
    constants = []
    for y, value in zip(candidates(arity), paper, strict=True):
        child_share = [
            [float((A[m][k] + y[m] * (k in row)) / count[k]) for k in known] for m in range(arity)
        ]
        label_share = [count[k] / C for k in known]
        whole = split_objective(label_share, child_share, float(lambdas[0]), float(lambdas[1]))
        constants.append(whole - float(value))
    assert constants == pytest.approx([constants[0]] * len(constants), abs=TOLERANCE)
    others = sum(
        abs(A[a][k] - A[b][k])
        for k in set(known) - set(row)
        for a, b in itertools.combinations(range(arity), 2)
    )
    assert constants[0] == pytest.approx(float(-lambdas[0] * others / C), abs=TOLERANCE)


# --- entropy, error and Theorem 2


def test_leaf_entropy_by_hand():
    # Rows 0, 1 reach leaf 0; row 2 leaf 1; rows 3, 4, 5 both leaves: three sets.
    leaves = [[1, 0], [1, 0], [0, 1], [1, 1], [1, 1], [1, 1]]
    Y = [[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]]
    # {0}: rho = (1, 1/2, 1/2), {1}: (0, 1, 1), {0, 1}: (2/3, 2/3, 2/3).
    expected = 2 / 6 * math.log(2) + 3 / 6 * 2 * math.log(1.5)
    assert leaf_entropy(leaves, Y) == pytest.approx(expected)


def test_leaf_entropy_of_pure_leaves_is_zero():
    value = leaf_entropy([[1, 0], [0, 1], [0, 1]], [[1, 0], [0, 1], [0, 1]])
    assert str(value) == "0.0"


def test_leaf_entropy_may_exceed_log_of_the_number_of_labels():
    Y = [[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]]
    assert leaf_entropy(np.ones((3, 1)), Y) == pytest.approx(2 * math.log(3))
    assert 2 * math.log(3) > math.log(6)


def test_leaf_entropy_reads_any_sparse_form_and_changes_none():
    # Leaf ids out of order, a stored zero, a label stored twice: the same sets as [[1, 1], [1, 1]].
    leaves = sparse.csr_matrix(([1.0, 1.0, 1.0, 1.0], [1, 0, 0, 1], [0, 2, 4]), shape=(2, 3))
    Y = sparse.csr_matrix(([1, 0, 1, 1], [0, 1, 1, 1], [0, 2, 4]), shape=(2, 2))
    assert leaf_entropy(leaves, Y) == pytest.approx(math.log(2))
    assert leaves.indices.tolist() == [1, 0, 0, 1]
    assert Y.data.tolist() == [1, 0, 1, 1]
    assert leaf_entropy(sparse.coo_array(leaves), Y.toarray()) == pytest.approx(math.log(2))


@st.composite
def trees_with_equal_label_counts(draw):
    n_rows, n_labels = draw(st.integers(1, 12)), draw(st.integers(2, 6))
    r = draw(st.integers(1, n_labels - 1))
    leaves = np.array([draw(st.sampled_from([[1, 0], [0, 1], [1, 1]])) for _ in range(n_rows)])
    Y = np.zeros((n_rows, n_labels), dtype=int)
    for row in Y:
        row[draw(st.permutations(range(n_labels)))[:r]] = 1
    return leaves, Y, r


@deterministic
@given(trees_with_equal_label_counts())
def test_entropy_bounds_the_error(tree):
    """r e_r <= G, by x ln(1/x) >= x (1 - x); the proof of Theorem 2 uses the weaker ln(2) r e_r."""
    leaves, Y, r = tree
    predicted = []
    for reached in leaves:
        together = Y[(leaves == reached).all(axis=1)]
        predicted.append(np.argsort(-together.sum(axis=0), kind="stable")[:r])
    assert r * r_level_error(predicted, Y) <= leaf_entropy(leaves, Y) + TOLERANCE


def test_r_level_error_by_hand():
    Y = sparse.csr_matrix([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]])
    assert r_level_error([[0, 1], [2, 3], [0, 3]], Y) == pytest.approx(1 / 6)
    assert r_level_error([[0], [1], [2]], Y) == pytest.approx(2 / 3)
    assert r_level_error([[0, 1], [2, 3], [3, 0]], 5 * Y.toarray()) == pytest.approx(1 / 6)


def test_theorem_2_by_hand():
    # 16 ln 8 / (0.5 * 9 * 0.25 * 0.75 * log2 e) * ln 10
    expected = 16 * math.log(8) / (0.5 * 9 * 0.25 * 0.75 * math.log2(math.e)) * math.log(10)
    arguments = {"n_labels": 8, "labels_per_row": 3, "gamma": 0.5}
    value = log_nodes_for_error(0.1, **arguments, leaf_weight=0.5, overlap=0.25)
    assert value == pytest.approx(expected)
    assert log_nodes_for_error(1, **arguments) == 0.0
    assert log_nodes_for_error(0, **arguments) == math.inf


def test_theorem_2_does_not_overflow():
    value = log_nodes_for_error(0.01, n_labels=670_091, labels_per_row=5, gamma=0.01)
    assert 1e4 < value < math.inf  # t has thousands of digits
    assert log_nodes_for_error(0.5, n_labels=2, labels_per_row=1, gamma=1e-200) == math.inf


# --- messages and examples

SPLIT = ([0.5, 0.5], [[1, 0], [0, 1]])
THREE = ([1.0], [[1], [0], [0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: split_objective(*SPLIT, -1, 1),
            "The 'integrity_weight' parameter must be a number >= 0. Got -1 instead.",
        ),
        (
            lambda: binary_split_objective(*SPLIT, 1, "auto"),
            "The 'multiway_penalty' parameter must be a number >= 0. Got 'auto' instead.",
        ),
        (
            lambda: objective_range(3, math.nan, 1),
            "The 'integrity_weight' parameter must be a number >= 0. Got nan instead.",
        ),
        (
            lambda: objective_range(1, 1.0, 1.0),
            "The 'arity' parameter must be an int >= 2. Got 1 instead.",
        ),
        (
            lambda: purity_bound(0.0, 2.5, 1.0, 1.0),
            "The 'arity' parameter must be an int >= 2. Got 2.5 instead.",
        ),
        (
            lambda: marginal_share([0.5, 0.6], SPLIT[1]),
            "The 'label_share' parameter must be numbers that sum to 1. Got a sum of 1.1 instead.",
        ),
        (
            lambda: purity_factor([1.5, -0.5], SPLIT[1]),
            "The 'label_share' parameter must be a 1-D array of numbers in [0, 1]. "
            "Got the value 1.5 instead.",
        ),
        (
            lambda: purity_factor("half", SPLIT[1]),
            "The 'label_share' parameter must be a 1-D array of numbers in [0, 1]. "
            "Got 'half' instead.",
        ),
        (
            lambda: balancedness_factor(SPLIT[0], [[1, math.nan], [0, 1]]),
            "The 'child_share' parameter must be a 2-D array of numbers in [0, 1]. "
            "Got the value nan instead.",
        ),
        (
            lambda: balancedness_factor(SPLIT[0], [1, 0]),
            "The 'child_share' parameter must be a 2-D array of numbers in [0, 1]. "
            "Got 1 dimensions instead.",
        ),
        (
            lambda: objective_terms(SPLIT[0], [[1, 1]], 1, 1),
            "The 'child_share' parameter must be of shape (M >= 2, 2). Got shape (1, 2) instead.",
        ),
        (
            lambda: objective_terms([1.0], SPLIT[1], 1, 1),
            "The 'child_share' parameter must be of shape (M >= 2, 1). Got shape (2, 2) instead.",
        ),
        (
            lambda: binary_split_objective(*THREE, 1, 1),
            "The 'child_share' parameter must be of shape (2, 1). Got shape (3, 1) instead.",
        ),
        (
            lambda: weak_hypothesis_gamma(*THREE),
            "The 'child_share' parameter must be of shape (2, 1). Got shape (3, 1) instead.",
        ),
        (
            lambda: split_shares([2, -1], [[1, 0], [1, 0]]),
            "The 'node' parameter must be a 1-D array of counts >= 0. Got the value -1 instead.",
        ),
        (
            lambda: split_shares([0, 0], [[0, 0], [0, 0]]),
            "The 'node' parameter must be non-zero for at least one label. Got [0.0, 0.0] instead.",
        ),
        (
            lambda: split_shares([2, 3], [[2, 0, 0], [0, 3, 0]]),
            "The 'children' parameter must be of shape (M >= 2, 2). Got shape (2, 3) instead.",
        ),
        (
            lambda: split_shares([2, 3], [[2, 4], [0, 0]]),
            "The 'children' parameter must be at most 3 each and at least 3 in sum for label 1. "
            "Got [4.0, 0.0] instead.",
        ),
        (
            lambda: split_shares([2, 3], [[1, 3], [0, 0]]),
            "The 'children' parameter must be at most 2 each and at least 2 in sum for label 0. "
            "Got [1.0, 0.0] instead.",
        ),
        (
            lambda: balancedness_bound(math.inf, 0.0),
            "The 'objective' parameter must be a finite number. Got inf instead.",
        ),
        (
            lambda: purity_bound(0.0, 3, 2.0, 4.0),
            "The 'multiway_penalty' parameter must be a number > 2 * integrity_weight = 4. "
            "Got 4.0 instead.",
        ),
        (
            lambda: purity_gap_bound(0.0, 5, 2.0, 3.0),
            "The 'multiway_penalty' parameter must be a number > 2 * integrity_weight = 4. "
            "Got 3.0 instead.",
        ),
        (
            lambda: purity_gap_bound(0.0, 2, 0.0, 3.0),
            "The 'integrity_weight' parameter must be a number > 0. Got 0.0 instead.",
        ),
        (
            lambda: leaf_entropy([[1], [1]], [[1]]),
            "The 'Y' parameter must be of 2 rows, as 'leaf_membership' is. Got 1 rows instead.",
        ),
        (
            lambda: leaf_entropy([[1, 0], [0, 0]], [[1], [1]]),
            "The 'leaf_membership' parameter must be non-zero at least once per row. "
            "Got no leaf for row 1 instead.",
        ),
        (
            lambda: leaf_entropy([1, 0], [[1], [1]]),
            "The 'leaf_membership' parameter must be a 2-D matrix with at least one row. "
            "Got shape (2,) instead.",
        ),
        (
            lambda: r_level_error([[0.0], [1.0]], SPLIT[1]),
            "The 'predicted_labels' parameter must be integers of shape (2, r >= 1). "
            "Got shape (2, 1) of float64 instead.",
        ),
        (
            lambda: r_level_error(np.array([[0, 1]], dtype=np.int64), SPLIT[1]),
            "The 'predicted_labels' parameter must be integers of shape (2, r >= 1). "
            "Got shape (1, 2) of int64 instead.",
        ),
        (
            lambda: r_level_error([[0], [2]], SPLIT[1]),
            "The 'predicted_labels' parameter must be distinct labels in [0, 2) per row. "
            "Got [2] for row 1 instead.",
        ),
        (
            lambda: r_level_error([[0, 1], [1, 1]], SPLIT[1]),
            "The 'predicted_labels' parameter must be distinct labels in [0, 2) per row. "
            "Got [1, 1] for row 1 instead.",
        ),
        (
            lambda: r_level_error([[-1], [1]], SPLIT[1]),
            "The 'predicted_labels' parameter must be distinct labels in [0, 2) per row. "
            "Got [-1] for row 0 instead.",
        ),
        (
            lambda: log_nodes_for_error(1.5, 4, 2, 0.5),
            "The 'error' parameter must be a number in [0, 1]. Got 1.5 instead.",
        ),
        (
            lambda: log_nodes_for_error(0.5, 1, 2, 0.5),
            "The 'n_labels' parameter must be a number >= 2. Got 1 instead.",
        ),
        (
            lambda: log_nodes_for_error(0.5, 4, 0, 0.5),
            "The 'labels_per_row' parameter must be a number >= 1. Got 0 instead.",
        ),
        (
            lambda: log_nodes_for_error(0.5, 4, 2, 0.0),
            "The 'gamma' parameter must be a number in (0, 1]. Got 0.0 instead.",
        ),
        (
            lambda: log_nodes_for_error(0.5, 4, 2, 0.5, leaf_weight=0),
            "The 'leaf_weight' parameter must be a number in (0, 1]. Got 0 instead.",
        ),
        (
            lambda: log_nodes_for_error(0.5, 4, 2, 0.5, overlap=1.0),
            "The 'overlap' parameter must be a number in [0, 1). Got 1.0 instead.",
        ),
    ],
)
def test_invalid_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=r"^The '\w+' parameter must be") as error:
        call()
    assert str(error.value) == message


def test_examples_in_docstrings_run():
    result = doctest.testmod(objective)
    assert result.attempted >= 5
    assert result.failed == 0
