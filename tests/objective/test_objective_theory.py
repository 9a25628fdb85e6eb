"""Streams, entropies and errors: what the paper proves of whole trees, as checks."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ldsm.objective import leaf_entropy, log_nodes_for_error, r_level_error, split_objective

# Sums of at most 6 * 6 * 8 numbers below 10: double precision errs by some 1e-13.
TOLERANCE = 1e-9

deterministic = settings(derandomize=True, deadline=None, max_examples=100)


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


def test_pure_leaf_entropy():
    value = leaf_entropy([[1, 0], [0, 1], [0, 1]], [[1, 0], [0, 1], [0, 1]])
    assert str(value) == "0.0"


def test_leaf_entropy_upper_bound():
    Y = [[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]]
    assert leaf_entropy(np.ones((3, 1)), Y) == pytest.approx(2 * math.log(3))
    assert 2 * math.log(3) > math.log(6)


def test_leaf_entropy_sparse_forms():
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
