"""The splitting objective J and the theory around it, in plain NumPy.

These functions are for study and for tests; the compiled core grows the trees. They follow Majzoubi
& Choromanska, AISTATS 2020, and say where a printed result needed a correction.

A *split* sends each row of a node to at least one of its M children, possibly to several. Two
arrays describe it:

- ``label_share``, shape (K,): pi_k, the share of label k among the node's (row, label) pairs;
- ``child_share``, shape (M, K): P_j^k, the share of the rows with label k that go to child j.

``integrity_weight`` is lambda_1, ``multiway_penalty`` is lambda_2 and ``arity`` is M.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ._arrays.matrices import canonical_csr, label_matrix
from ._arrays.structure import check_structure

__all__ = [
    "ObjectiveRange",
    "ObjectiveTerms",
    "balancedness_bound",
    "balancedness_factor",
    "binary_split_objective",
    "leaf_entropy",
    "log_nodes_for_error",
    "marginal_share",
    "objective_range",
    "objective_terms",
    "purity_bound",
    "purity_factor",
    "purity_gap_bound",
    "r_level_error",
    "split_objective",
    "split_shares",
    "weak_hypothesis_gamma",
]

FloatArray = NDArray[np.float64]


class ObjectiveTerms(NamedTuple):
    """The terms of J as they enter Eq. 1, signed and weighted: J is their plain sum.

    Attributes
    ----------
    balancing, class_integrity, multiway : float
    """

    balancing: float
    class_integrity: float
    multiway: float

    @property
    def purity(self) -> float:
        """The purity term, class integrity plus multi-way penalty."""
        return self.class_integrity + self.multiway

    @property
    def objective(self) -> float:
        """J."""
        return self.balancing + self.purity


class ObjectiveRange(NamedTuple):
    """The range of J claimed by Lemmas 1 and 2, and which parts of the claim hold.

    Attributes
    ----------
    lower, upper : float
        The ends of the range.
    lower_holds, upper_holds : bool
        Whether J never leaves it there.
    unique_minimum : bool
        Whether only perfectly balanced and pure splits reach the lower end.
    """

    lower: float
    upper: float
    lower_holds: bool
    upper_holds: bool
    unique_minimum: bool


def split_shares(node: ArrayLike, children: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """``label_share`` and ``child_share`` from the label histograms of a node and its children.

    ``pi_k = node[k] / sum(node)`` and ``P_j^k = children[j, k] / node[k]``. Labels absent from the
    node are left out of both results.

    Parameters
    ----------
    node : array of shape (K,)
        Rows of the node with each label.
    children : array of shape (M, K)
        The same for each child.

    Examples
    --------
    >>> split_shares([3, 0, 1], [[3, 0, 0], [0, 0, 1]])
    (array([0.75, 0.25]), array([[1., 0.],
           [0., 1.]]))
    """
    node = _array("node", node, 1, "counts >= 0", math.inf)
    children = _array("children", children, 2, "counts >= 0", math.inf)
    present = node > 0
    if not present.any():
        raise _invalid("node", "non-zero for at least one label", node.tolist())
    _check_shape("children", children, node.size)
    # A child sees a subset of the node's rows, and every row goes to some child.
    wrong = (children > node).any(axis=0) | (children.sum(axis=0) < node)
    if wrong.any():
        k = int(np.argmax(wrong))
        allowed = f"at most {node[k]:g} each and at least {node[k]:g} in sum for label {k}"
        raise _invalid("children", allowed, children[:, k].tolist())
    return node[present] / node.sum(), children[:, present] / node[present]


def marginal_share(label_share: ArrayLike, child_share: ArrayLike) -> FloatArray:
    """Probability of reaching each child, ``P_j = sum_k pi_k P_j^k``, shape (M,).

    Parameters
    ----------
    label_share : array of shape (K,)
        pi_k, the share of each label.
    child_share : array of shape (M, K)
        P_j^k, the share of a label's rows that go to each child.
    """
    labels, children = _split(label_share, child_share)
    return np.asarray(children @ labels)


def objective_terms(
    label_share: ArrayLike, child_share: ArrayLike, integrity_weight: float, multiway_penalty: float
) -> ObjectiveTerms:
    """Terms of J (Eq. 1), for any arity from 2.

    ``balancing`` is ``sum_{j<l} |P_j - P_l|``, ``class_integrity`` is
    ``-lambda_1 sum_k pi_k sum_{j<l} |P_j^k - P_l^k|``, ``multiway`` is
    ``lambda_2 |sum_j P_j - 1|``.

    Parameters
    ----------
    label_share : array of shape (K,)
        pi_k, the share of each label.
    child_share : array of shape (M, K)
        P_j^k, the share of a label's rows that go to each child.
    integrity_weight : float
        lambda_1.
    multiway_penalty : float
        lambda_2.

    Examples
    --------
    Two equally frequent labels, each sent completely to a child of its own:

    >>> objective_terms([0.5, 0.5], [[1, 0], [0, 1]], 2.0, 1.0)
    ObjectiveTerms(balancing=0.0, class_integrity=-2.0, multiway=0.0)
    """
    labels, children = _split(label_share, child_share)
    _check_weights(integrity_weight, multiway_penalty)
    marginals = children @ labels
    first, second = np.triu_indices(len(children), k=1)
    integrity = (np.abs(children[first] - children[second]) @ labels).sum()
    return ObjectiveTerms(
        balancing=float(np.abs(marginals[first] - marginals[second]).sum()),
        class_integrity=-integrity_weight * float(integrity),
        multiway=multiway_penalty * abs(float(marginals.sum()) - 1.0),
    )


def split_objective(
    label_share: ArrayLike, child_share: ArrayLike, integrity_weight: float, multiway_penalty: float
) -> float:
    """J of Eq. 1 for any arity from 2; the smaller, the better the split.

    Parameters
    ----------
    label_share : array of shape (K,)
        pi_k, the share of each label.
    child_share : array of shape (M, K)
        P_j^k, the share of a label's rows that go to each child.
    integrity_weight : float
        lambda_1.
    multiway_penalty : float
        lambda_2.

    Examples
    --------
    >>> split_objective([0.5, 0.5], [[1, 0], [0, 1]], 2.0, 1.0)
    -2.0
    """
    return objective_terms(label_share, child_share, integrity_weight, multiway_penalty).objective


def binary_split_objective(
    label_share: ArrayLike, child_share: ArrayLike, integrity_weight: float, multiway_penalty: float
) -> float:
    """J of Eq. 2, for the two children R and L.

    ``|P_R - P_L| - lambda_1 sum_k pi_k |P_R^k - P_L^k| + lambda_2 |P_R + P_L - 1|``: Eq. 1 with
    M = 2. In print a brace makes the minus sign look as if it covered the multi-way penalty as
    well; rows sent in both directions are penalised, so that term is added.

    Parameters
    ----------
    label_share : array of shape (K,)
        pi_k, the share of each label.
    child_share : array of shape (M, K)
        P_j^k, the share of a label's rows that go to each child.
    integrity_weight : float
        lambda_1.
    multiway_penalty : float
        lambda_2.
    """
    labels, (right, left) = _split(label_share, child_share, arity=2)
    _check_weights(integrity_weight, multiway_penalty)
    balancing = abs(labels @ right - labels @ left)
    integrity = labels @ np.abs(right - left)
    multiway = abs(labels @ right + labels @ left - 1.0)
    return float(balancing - integrity_weight * integrity + multiway_penalty * multiway)


def balancedness_factor(label_share: ArrayLike, child_share: ArrayLike) -> float:
    """``beta = max_j |P_j - mean(P)|``, in [0, 1 - 1/M]; 0 is a perfectly balanced split.

    Parameters
    ----------
    label_share : array of shape (K,)
        pi_k, the share of each label.
    child_share : array of shape (M, K)
        P_j^k, the share of a label's rows that go to each child.
    """
    marginals = marginal_share(label_share, child_share)
    return float(np.abs(marginals - marginals.mean()).max())


def purity_factor(label_share: ArrayLike, child_share: ArrayLike) -> float:
    """``alpha = mean_j sum_k pi_k min(P_j^k, sum_{l != j} P_l^k)``, in [0, 1]; 0 is perfectly pure.

    Parameters
    ----------
    label_share : array of shape (K,)
        pi_k, the share of each label.
    child_share : array of shape (M, K)
        P_j^k, the share of a label's rows that go to each child.
    """
    labels, children = _split(label_share, child_share)
    others = children.sum(axis=0) - children
    return float((np.minimum(children, others) @ labels).mean())


def objective_range(arity: int, integrity_weight: float, multiway_penalty: float) -> ObjectiveRange:
    """[-lambda_1 (M - 1), lambda_2 (M - 1)], the range of J in Lemmas 1 and 2, and when it is true.

    The lower end holds if and only if lambda_2 >= lambda_1 (M - 3). It is reached by perfectly
    balanced and pure splits, and by these alone (``unique_minimum``) if moreover the inequality is
    strict and lambda_1 > 0. The upper end, printed without a condition of its own, holds if and
    only if (M - 1)(1 - lambda_1) <= lambda_2, for M = 2: lambda_1 + lambda_2 >= 1. Otherwise
    sending all rows to the same M - 1 children exceeds it.

    Parameters
    ----------
    arity : int
        M.
    integrity_weight : float
        lambda_1.
    multiway_penalty : float
        lambda_2.
    """
    _check_weights(integrity_weight, multiway_penalty, arity)
    return ObjectiveRange(
        lower=-integrity_weight * (arity - 1),
        upper=multiway_penalty * (arity - 1),
        lower_holds=multiway_penalty >= integrity_weight * (arity - 3),
        upper_holds=multiway_penalty >= (1 - integrity_weight) * (arity - 1),
        unique_minimum=multiway_penalty > integrity_weight * (arity - 3) and integrity_weight > 0,
    )


def balancedness_bound(objective: float, purity_term: float) -> float:
    """Lemma 3: beta <= J - J_purity, that is, the balancing term.

    As the deviations from the mean sum to 0, the pairs with the child that deviates most already
    add up to M beta: the bound may be divided by M, and is then an equality for M = 2.

    Parameters
    ----------
    objective : float
        J.
    purity_term : float
        Class integrity plus multi-way penalty: `ObjectiveTerms.purity`.
    """
    objective = _number("objective", objective, "a finite number")
    return objective - _number("purity_term", purity_term, "a finite number")


def purity_bound(
    purity_term: float, arity: int, integrity_weight: float, multiway_penalty: float
) -> float:
    """Lemma 4, corrected: alpha <= (J - J_balance + lambda_2) / (M (lambda_2 - lambda_1 (M - 1))).

    J - J_balance is the purity term. Needs lambda_2 > lambda_1 (M - 1). The lemma is false as
    printed, with (M - 1) / 2 in place of M - 1: for M = 2, lambda_1 = 2, lambda_2 = 1.5 a pure
    and balanced split has alpha = 0 and a printed bound of -0.5. The proof bounds
    ``sum_{j<l} |P_j - P_l|`` by ``(M - 1) / 2 sum_j P_j``, but P = (1, 0, ..., 0) gives
    ``(M - 1) sum_j P_j``. As every row goes to some child, this bound is at least 1/M;
    `purity_gap_bound` goes to 0.

    Parameters
    ----------
    purity_term : float
        J - J_balance: `ObjectiveTerms.purity`.
    arity : int
        M.
    integrity_weight : float
        lambda_1.
    multiway_penalty : float
        lambda_2.

    Examples
    --------
    >>> purity_bound(-2.0, arity=2, integrity_weight=2.0, multiway_penalty=3.0)
    0.5
    """
    _check_weights(integrity_weight, multiway_penalty, arity)
    excess = _excess(multiway_penalty, integrity_weight, arity - 1)
    purity_term = _number("purity_term", purity_term, "a finite number")
    return (purity_term + multiway_penalty) / (arity * excess)


def purity_gap_bound(
    purity_term: float, arity: int, integrity_weight: float, multiway_penalty: float
) -> float:
    """Bound on alpha that is 0 where the purity term J - J_balance is least; not in the paper.

    ``alpha <= 2 (J - J_balance + lambda_1 (M - 1)) / (M m)``, where m is
    ``min(2 lambda_1, lambda_2 - lambda_1 (M - 3))``, for lambda_1 > 0 and
    lambda_2 > lambda_1 (M - 3), the condition of Lemma 2. Why: for one label let p be its largest
    P_j^k, d the sum of the others, u = 1 - p, so that 0 <= u <= d. Then
    ``sum_{j<l} |P_j^k - P_l^k| <= (M - 1) p + (M - 3) d``, and its purity term exceeds the minimum
    by at least ``u (lambda_1 (M - 1) - lambda_2) + d (lambda_2 - lambda_1 (M - 3))``. Linear in u,
    this is least at u = 0 or u = d: m d. The label's part of M alpha is at most 2 d.

    Parameters
    ----------
    purity_term : float
        J - J_balance: `ObjectiveTerms.purity`.
    arity : int
        M.
    integrity_weight : float
        lambda_1.
    multiway_penalty : float
        lambda_2.
    """
    _check_weights(integrity_weight, multiway_penalty, arity)
    _number("integrity_weight", integrity_weight, "a number > 0", lambda v: v > 0)
    slope = min(2 * integrity_weight, _excess(multiway_penalty, integrity_weight, arity - 3))
    purity_term = _number("purity_term", purity_term, "a finite number")
    gap = purity_term + integrity_weight * (arity - 1)
    return 2 * gap / (arity * slope)


def leaf_entropy(leaf_membership: Any, Y: Any) -> float:
    """Entropy of the leaves of one tree in nats, G of the Supplement.

    ``G = sum_S w_S sum_k rho_k^S ln(1 / rho_k^S)`` over the sets S of leaves that rows do reach:
    w_S is the share of rows that reach exactly the leaves of S, rho_k^S the share of *those rows*
    that carry label k (as in the proof of Theorem 2). The rho_k sum to the number of labels per
    row, so G may exceed the ln K of the proofs. If every row has r labels and is given the r most
    frequent ones of its set, the r-level error satisfies r e_r <= G.

    Parameters
    ----------
    leaf_membership : matrix of shape (n_rows, n_leaves), dense or sparse
        Non-zero where the row reaches the leaf, at least once per row.
    Y : matrix of shape (n_rows, n_labels), dense or sparse
        Non-zero where the row has the label.

    Examples
    --------
    >>> round(leaf_entropy([[1, 0], [1, 0], [0, 1]], [[1, 0], [0, 1], [0, 1]]), 6)  # 2/3 ln 2
    0.462098
    """
    leaves, labels = _indicator("leaf_membership", leaf_membership), _indicator("Y", Y)
    n_rows = leaves.shape[0]
    if labels.shape[0] != n_rows:
        raise _invalid("Y", f"of {n_rows} rows, as 'leaf_membership' is", f"{labels.shape[0]} rows")
    leaves_per_row = np.diff(leaves.indptr)
    if not leaves_per_row.all():
        got = f"no leaf for row {np.argmin(leaves_per_row)}"
        raise _invalid("leaf_membership", "non-zero at least once per row", got)
    sets: dict[bytes, int] = {}
    reached = np.split(leaves.indices, leaves.indptr[1:-1])
    set_of_row = [sets.setdefault(ids.tobytes(), len(sets)) for ids in reached]
    rows_in_set = np.bincount(set_of_row)
    counts = (sparse.csr_matrix((np.ones(n_rows), (set_of_row, range(n_rows)))) @ labels).tocoo()
    rho = counts.data / rows_in_set[counts.row]
    return float(rows_in_set[counts.row] / n_rows @ (rho * np.log(1.0 / rho)))


def r_level_error(predicted_labels: ArrayLike, Y: Any) -> float:
    """The r-level error, e_r = 1 - Precision@r.

    Parameters
    ----------
    predicted_labels : int array of shape (n_rows, r)
        Distinct columns of Y for each row.
    Y : matrix of shape (n_rows, n_labels), dense or sparse
        Non-zero where the row has the label.

    Examples
    --------
    >>> r_level_error([[0, 1], [2, 0]], [[1, 1, 0], [0, 1, 1]])
    0.25
    """
    labels = _indicator("Y", Y)
    predicted, (n_rows, n_labels) = np.asarray(predicted_labels), labels.shape
    integers = predicted.size > 0 and predicted.dtype.kind in "iu"
    if not integers or predicted.shape != (n_rows, predicted.size // n_rows):
        got = f"shape {predicted.shape} of {predicted.dtype}"
        raise _invalid("predicted_labels", f"integers of shape ({n_rows}, r >= 1)", got)
    ordered = np.sort(predicted, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    wrong = repeated | (ordered[:, 0] < 0) | (ordered[:, -1] >= n_labels)
    if wrong.any():
        got = f"{predicted[np.argmax(wrong)].tolist()} for row {np.argmax(wrong)}"
        raise _invalid("predicted_labels", f"distinct labels in [0, {n_labels}) per row", got)
    return float(1.0 - labels[np.arange(n_rows)[:, None], predicted].sum() / predicted.size)


def weak_hypothesis_gamma(label_share: ArrayLike, child_share: ArrayLike) -> float:
    """The gamma of a binary split, ``sum_k pi_k |P_R^k - P_L^k|``, in [0, 1] (Assumption 1).

    Parameters
    ----------
    label_share : array of shape (K,)
        pi_k, the share of each label.
    child_share : array of shape (2, K)
        P_j^k, the share of a label's rows that go to each child.
    """
    labels, (right, left) = _split(label_share, child_share, arity=2)
    return float(labels @ np.abs(right - left))


def log_nodes_for_error(
    error: float,
    n_labels: int,
    labels_per_row: float,
    gamma: float,
    leaf_weight: float = 1.0,
    overlap: float = 0.0,
) -> float:
    """The ln(t + 1) of the t internal nodes that Theorem 2 needs for an r-level error <= alpha.

    ``t + 1 >= (1 / alpha) ** (16 ln K / (c r^2 gamma^2 (1 - b) log2(e)))``, for a balanced binary
    tree. A logarithm, because t would overflow; ``math.expm1`` of it is t. Not a guarantee: the
    proof uses G <= ln K, which can fail if rows have several labels.

    Parameters
    ----------
    error : float in [0, 1]
        alpha, the error to reach; for 0 the result is infinite.
    n_labels, labels_per_row : numbers >= 2 and >= 1
        K and r.
    gamma : float in (0, 1]
        Least `weak_hypothesis_gamma` over the internal nodes.
    leaf_weight : float in (0, 1]
        c: after t splits some leaf has at least c / (t + 1) of the rows; 1 if each row goes in one
        direction only.
    overlap : float in [0, 1)
        ``b = |P_R + P_L - 1|``, the share of rows sent in both directions.

    Examples
    --------
    >>> round(log_nodes_for_error(0.5, n_labels=4, labels_per_row=2, gamma=1.0), 6)  # 8 ln(2)^3
    2.664197
    """
    _number("error", error, "a number in [0, 1]", lambda v: 0 <= v <= 1)
    _number("n_labels", n_labels, "a number >= 2", lambda v: v >= 2)
    _number("labels_per_row", labels_per_row, "a number >= 1", lambda v: v >= 1)
    _number("gamma", gamma, "a number in (0, 1]", lambda v: 0 < v <= 1)
    _number("leaf_weight", leaf_weight, "a number in (0, 1]", lambda v: 0 < v <= 1)
    _number("overlap", overlap, "a number in [0, 1)", lambda v: 0 <= v < 1)
    if error in (0, 1):  # no log of 0, no 0 * inf
        return math.inf if error == 0 else 0.0
    # 1 / log2(e) is ln 2. One division at a time, as the square of a tiny gamma would round to 0.
    exponent = 16 * math.log(n_labels) * math.log(2) / leaf_weight / (1 - overlap)
    return -math.log(error) * exponent / labels_per_row**2 / gamma / gamma


def _invalid(name: str, allowed: str, got: object) -> ValueError:
    return ValueError(f"The '{name}' parameter must be {allowed}. Got {got} instead.")


def _number(
    name: str, value: object, allowed: str, fits: Callable[[float], bool] = math.isfinite
) -> float:
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        if math.isfinite(number) and fits(number):
            return number
    raise _invalid(name, allowed, repr(value))


def _check_weights(integrity_weight: float, multiway_penalty: float, arity: int = 2) -> None:
    _number("integrity_weight", integrity_weight, "a number >= 0", lambda v: v >= 0)
    _number("multiway_penalty", multiway_penalty, "a number >= 0", lambda v: v >= 0)
    if not isinstance(arity, Integral) or isinstance(arity, bool) or arity < 2:
        raise _invalid("arity", "an int >= 2", repr(arity))


def _excess(multiway_penalty: float, integrity_weight: float, factor: int) -> float:
    """lambda_2 - factor * lambda_1, by which a bound divides."""
    least = integrity_weight * factor
    allowed = f"a number > {factor} * integrity_weight = {least:g}"
    return _number("multiway_penalty", multiway_penalty, allowed, lambda v: v > least) - least


def _array(name: str, values: ArrayLike, ndim: int, what: str, high: float) -> FloatArray:
    allowed = f"a {ndim}-D array of {what}"
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise _invalid(name, allowed, repr(values)) from None
    if array.ndim != ndim:
        raise _invalid(name, allowed, f"{array.ndim} dimensions")
    wrong = ~(np.isfinite(array) & (array >= 0) & (array <= high))
    if wrong.any():
        raise _invalid(name, allowed, f"the value {array[wrong][0]:g}")
    return array


def _check_shape(name: str, array: FloatArray, n_labels: int, arity: int | None = None) -> None:
    if array.shape[1] != n_labels or array.shape[0] < 2 or arity not in (None, array.shape[0]):
        raise _invalid(name, f"of shape ({arity or 'M >= 2'}, {n_labels})", f"shape {array.shape}")


def _split(
    label_share: ArrayLike, child_share: ArrayLike, arity: int | None = None
) -> tuple[FloatArray, FloatArray]:
    labels = _array("label_share", label_share, 1, "numbers in [0, 1]", 1.0)
    # Loose enough for the rounding of float32 shares.
    if abs(labels.sum() - 1.0) > 1e-5:
        raise _invalid("label_share", "numbers that sum to 1", f"a sum of {labels.sum():g}")
    children = _array("child_share", child_share, 2, "numbers in [0, 1]", 1.0)
    _check_shape("child_share", children, labels.size, arity)
    return labels, children


def _indicator(name: str, values: Any) -> Any:
    """A (rows, columns) matrix as canonical CSR of ones: 1 where a value is not 0."""
    matrix = values if sparse.issparse(values) else np.asarray(values)
    if matrix.ndim != 2 or matrix.shape[0] == 0:
        raise _invalid(name, "a 2-D matrix with at least one row", f"shape {matrix.shape}")
    check_structure(matrix, name)
    rows = canonical_csr(matrix)
    parts = (rows.data != 0, rows.indices, rows.indptr)
    return label_matrix(sparse.csr_array(parts, shape=rows.shape), name)
