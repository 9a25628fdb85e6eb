"""What the calculators of the objective refuse, by name."""

import math

import numpy as np
import pytest

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
