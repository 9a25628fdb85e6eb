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


# By the argument and what it must be: calls by what they got instead.
REFUSED = {
    ("integrity_weight", "a number >= 0"): [
        ("-1", lambda: split_objective(*SPLIT, -1, 1)),
        ("nan", lambda: objective_range(3, math.nan, 1)),
    ],
    ("multiway_penalty", "a number >= 0"): [
        ("'auto'", lambda: binary_split_objective(*SPLIT, 1, "auto"))
    ],
    ("arity", "an int >= 2"): [
        ("1", lambda: objective_range(1, 1.0, 1.0)),
        ("2.5", lambda: purity_bound(0.0, 2.5, 1.0, 1.0)),
    ],
    ("label_share", "numbers that sum to 1"): [
        ("a sum of 1.1", lambda: marginal_share([0.5, 0.6], SPLIT[1]))
    ],
    ("label_share", "a 1-D array of numbers in [0, 1]"): [
        ("the value 1.5", lambda: purity_factor([1.5, -0.5], SPLIT[1])),
        ("'half'", lambda: purity_factor("half", SPLIT[1])),
    ],
    ("child_share", "a 2-D array of numbers in [0, 1]"): [
        ("the value nan", lambda: balancedness_factor(SPLIT[0], [[1, math.nan], [0, 1]])),
        ("1 dimensions", lambda: balancedness_factor(SPLIT[0], [1, 0])),
    ],
    ("child_share", "of shape (M >= 2, 2)"): [
        ("shape (1, 2)", lambda: objective_terms(SPLIT[0], [[1, 1]], 1, 1))
    ],
    ("child_share", "of shape (M >= 2, 1)"): [
        ("shape (2, 2)", lambda: objective_terms([1.0], SPLIT[1], 1, 1))
    ],
    ("child_share", "of shape (2, 1)"): [
        ("shape (3, 1)", lambda: binary_split_objective(*THREE, 1, 1)),
        ("shape (3, 1)", lambda: weak_hypothesis_gamma(*THREE)),
    ],
    ("node", "a 1-D array of counts >= 0"): [
        ("the value -1", lambda: split_shares([2, -1], [[1, 0], [1, 0]]))
    ],
    ("node", "non-zero for at least one label"): [
        ("[0.0, 0.0]", lambda: split_shares([0, 0], [[0, 0], [0, 0]]))
    ],
    ("children", "of shape (M >= 2, 2)"): [
        ("shape (2, 3)", lambda: split_shares([2, 3], [[2, 0, 0], [0, 3, 0]]))
    ],
    ("children", "at most 3 each and at least 3 in sum for label 1"): [
        ("[4.0, 0.0]", lambda: split_shares([2, 3], [[2, 4], [0, 0]]))
    ],
    ("children", "at most 2 each and at least 2 in sum for label 0"): [
        ("[1.0, 0.0]", lambda: split_shares([2, 3], [[1, 3], [0, 0]]))
    ],
    ("objective", "a finite number"): [("inf", lambda: balancedness_bound(math.inf, 0.0))],
    ("multiway_penalty", "a number > 2 * integrity_weight = 4"): [
        ("4.0", lambda: purity_bound(0.0, 3, 2.0, 4.0)),
        ("3.0", lambda: purity_gap_bound(0.0, 5, 2.0, 3.0)),
    ],
    ("integrity_weight", "a number > 0"): [("0.0", lambda: purity_gap_bound(0.0, 2, 0.0, 3.0))],
    ("Y", "of 2 rows, as 'leaf_membership' is"): [
        ("1 rows", lambda: leaf_entropy([[1], [1]], [[1]]))
    ],
    ("leaf_membership", "non-zero at least once per row"): [
        ("no leaf for row 1", lambda: leaf_entropy([[1, 0], [0, 0]], [[1], [1]]))
    ],
    ("leaf_membership", "a 2-D matrix with at least one row"): [
        ("shape (2,)", lambda: leaf_entropy([1, 0], [[1], [1]]))
    ],
    ("predicted_labels", "integers of shape (2, r >= 1)"): [
        ("shape (2, 1) of float64", lambda: r_level_error([[0.0], [1.0]], SPLIT[1])),
        (
            "shape (1, 2) of int64",
            lambda: r_level_error(np.array([[0, 1]], dtype=np.int64), SPLIT[1]),
        ),
    ],
    ("predicted_labels", "distinct labels in [0, 2) per row"): [
        ("[2] for row 1", lambda: r_level_error([[0], [2]], SPLIT[1])),
        ("[1, 1] for row 1", lambda: r_level_error([[0, 1], [1, 1]], SPLIT[1])),
        ("[-1] for row 0", lambda: r_level_error([[-1], [1]], SPLIT[1])),
    ],
    ("error", "a number in [0, 1]"): [("1.5", lambda: log_nodes_for_error(1.5, 4, 2, 0.5))],
    ("n_labels", "a number >= 2"): [("1", lambda: log_nodes_for_error(0.5, 1, 2, 0.5))],
    ("labels_per_row", "a number >= 1"): [("0", lambda: log_nodes_for_error(0.5, 4, 0, 0.5))],
    ("gamma", "a number in (0, 1]"): [("0.0", lambda: log_nodes_for_error(0.5, 4, 2, 0.0))],
    ("leaf_weight", "a number in (0, 1]"): [
        ("0", lambda: log_nodes_for_error(0.5, 4, 2, 0.5, leaf_weight=0))
    ],
    ("overlap", "a number in [0, 1)"): [
        ("1.0", lambda: log_nodes_for_error(0.5, 4, 2, 0.5, overlap=1.0))
    ],
}
CASES = [(*rule, *case) for rule, cases in REFUSED.items() for case in cases]


@pytest.mark.parametrize(("name", "allowed", "got", "call"), CASES)
def test_invalid_arguments_are_named(name, allowed, got, call):
    with pytest.raises(ValueError) as error:
        call()
    message = f"The '{name}' parameter must be {allowed}. Got {got} instead."
    assert str(error.value) == message
