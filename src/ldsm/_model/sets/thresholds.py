"""Which labels are predicted: those that reach a threshold, tuned for F1, or `ExpectedF1`.

Scores and true labels are CSR matrices of rows x labels; a label without a stored score is never
predicted. As in `ldsm.metrics.f1_score`, a label or row with nothing true counts 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..._arrays.matrices import canonical_csr
from .expected_f1 import ExpectedF1

AVERAGES = ("micro", "macro", "samples")
TUNED_FOR = "samples"  # a row's set is what people see, whatever its size
DEFAULT_THRESHOLD = 0.5
F1 = "f1"  # the value of the parameter that stands for `ExpectedF1`
# One for all labels, one for each, or another rule.
Threshold = float | NDArray[np.float32] | ExpectedF1


def plain_threshold(threshold: Threshold) -> float | str | None:
    """A threshold as a JSON value; None for one per label."""
    if isinstance(threshold, ExpectedF1):
        return F1
    return None if isinstance(threshold, np.ndarray) else threshold


def threshold_words(plain: float | str | None, digits: int = 3) -> str:
    """A plain threshold for people."""
    if isinstance(plain, str):
        return "expected F1"
    return "per label" if plain is None else f"{plain:.{digits}f}"


def common_threshold(threshold: Threshold) -> float | None:
    """A single number for all labels, if there is one that is any use."""
    if isinstance(threshold, ExpectedF1):
        return threshold.common
    return None if isinstance(threshold, np.ndarray) else threshold


def checked_threshold(value: Any, n_labels: int) -> Threshold:
    """A threshold as a model keeps it, and its file can hold it; an error for any other value."""
    if isinstance(value, ExpectedF1):
        return value
    try:
        limits = np.array(value, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        limits = np.full(1, np.nan, dtype=np.float32)
    if not np.isfinite(limits).all() or limits.shape not in ((), (n_labels,)):
        shown = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)
        raise ValueError(
            "The 'threshold_' of LdSMClassifier must be a finite number, or one for each of the "
            f"{n_labels:,} labels. Got {shown:.80} instead."
        )
    return limits if limits.ndim else float(value)


def above_threshold(scores: sp.csr_array, threshold: Threshold) -> sp.csr_array:
    """The scores that reach the threshold; `scores` is changed in place.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> scores = sp.csr_array(np.array([[0.75, 0.25], [0.5, 0.125]], dtype=np.float32))
    >>> above_threshold(scores, np.array([0.6, 0.2], dtype=np.float32)).toarray()
    array([[0.75, 0.25],
           [0.  , 0.  ]], dtype=float32)
    """
    scores.data *= reaches(scores, threshold)
    scores.eliminate_zeros()
    return scores


def reaches(scores: sp.csr_array, threshold: Threshold) -> NDArray[np.bool_]:
    """Which stored scores reach the threshold; those of 0 never do."""
    if isinstance(threshold, ExpectedF1):
        return threshold.chosen(scores)
    limits = threshold[scores.indices] if isinstance(threshold, np.ndarray) else threshold
    return np.asarray((scores.data >= limits) & (scores.data > 0))


def best_threshold(scores: sp.csr_array, truth: sp.csr_array, average: str = "micro") -> float:
    """The common threshold with the highest F1, exact for every `average`.

    Every stored score is tried. The result is halfway to the next lower score, and the highest of
    equally good ones. If no threshold finds a true label, it is `DEFAULT_THRESHOLD`. The averages
    are those of `LdSMClassifier.tune_threshold`.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> scores = sp.csr_array(np.array([[0.75, 0.25], [0.5, 0.125]], dtype=np.float32))
    >>> best_threshold(scores, sp.csr_array([[1, 0], [1, 0]]))
    0.375
    """
    if average not in AVERAGES:
        allowed = ", ".join(map(repr, AVERAGES))
        raise ValueError(f"The 'average' parameter must be one of {allowed}. Got {average!r}.")
    ranked = _rank(scores, truth)
    if not len(ranked.values):
        return DEFAULT_THRESHOLD
    if average == "micro":
        # One group: its F1 is exact, without the rounding of a running sum.
        everything = np.zeros(len(ranked.values), dtype=np.int8)
        f1 = _f1_by_group(ranked, everything, np.array([truth.nnz])).f1
    else:
        by_label = average == "macro"
        groups = ranked.labels if by_label else ranked.rows
        curves = _f1_by_group(ranked, groups, _n_true(truth) if by_label else np.diff(truth.indptr))
        # A falling threshold adds one pair after the other, and each changes only the F1 of its own
        # label or row: the mean is a running sum of these changes.
        changes = np.diff(curves.f1, prepend=0.0)
        changes[curves.starts] = curves.f1[curves.starts]
        f1 = np.empty(len(changes))
        f1[curves.order] = changes
        np.cumsum(f1, out=f1)
    below = np.append(ranked.values[1:], np.float32(0))
    f1 = np.where(below < ranked.values, f1, 0)  # equal scores are added together
    best = int(np.argmax(f1))
    if f1[best] <= 0:
        return DEFAULT_THRESHOLD
    return float(_halfway(ranked.values, below)[best])


def best_label_thresholds(
    scores: sp.csr_array, truth: sp.csr_array, fallback: float
) -> NDArray[np.float32]:
    """The threshold of each label with the highest F1 of that label.

    A label gets the `fallback` if no threshold finds a true row of it.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> scores = sp.csr_array(np.array([[0.75, 0.25], [0.5, 0.125]], dtype=np.float32))
    >>> best_label_thresholds(scores, sp.csr_array([[1, 0], [0, 0]]), fallback=0.5)
    array([0.625, 0.5  ], dtype=float32)
    """
    thresholds = np.full(truth.shape[1], fallback, dtype=np.float32)
    ranked = _rank(scores, truth)
    if not len(ranked.values):
        return thresholds
    curves = _f1_by_group(ranked, ranked.labels, _n_true(truth))
    values, labels = ranked.values[curves.order], ranked.labels[curves.order]
    below = np.append(values[1:], np.float32(0))
    below[curves.starts[1:] - 1] = 0  # the lowest score of a label has none below
    f1 = np.where(below < values, curves.f1, 0)  # equal scores are added together
    best = np.maximum.reduceat(f1, curves.starts)
    lengths = np.diff(np.append(curves.starts, len(f1)))
    at_best = np.flatnonzero((f1 == np.repeat(best, lengths)) & (f1 > 0))
    _, first = np.unique(labels[at_best], return_index=True)  # the highest threshold of a label
    chosen = at_best[first]
    thresholds[labels[chosen]] = _halfway(values[chosen], below[chosen])
    return thresholds


@dataclass(frozen=True)
class _Ranked:
    """All stored scores, highest first: parallel arrays."""

    values: NDArray[np.float32]
    hits: NDArray[np.bool_]
    rows: NDArray[np.int64]
    labels: NDArray[np.int32]


@dataclass(frozen=True)
class _Curves:
    """F1 of each group as its pairs are added by decreasing score; group after group."""

    order: NDArray[np.int64]  # places of the pairs in the arrays of _Ranked
    starts: NDArray[np.int64]  # where each group begins
    f1: NDArray[np.float64]  # of the group if this pair and all before it are predicted


def _rank(scores: sp.csr_array, truth: sp.csr_array) -> _Ranked:
    scores, truth = canonical_csr(scores), canonical_csr(truth)
    order = np.argsort(-scores.data, kind="stable")
    hits, rows = is_true(scores, truth), row_numbers(scores)
    return _Ranked(scores.data[order], hits[order], rows[order], scores.indices[order])


def is_true(scores: sp.csr_array, truth: sp.csr_array) -> NDArray[np.bool_]:
    """Whether the pair of each stored score is true; both matrices are canonical."""
    cells, true_cells = (row_numbers(m) * m.shape[1] + m.indices for m in (scores, truth))
    places = np.searchsorted(cells, true_cells)
    places = places[places < len(cells)]
    hits = np.zeros(len(cells), dtype=bool)
    hits[places[cells[places] == true_cells[: len(places)]]] = True
    return hits


def row_numbers(matrix: sp.csr_array) -> NDArray[np.int64]:
    """The row of each stored entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _n_true(truth: sp.csr_array) -> NDArray[np.int64]:
    """True rows of each label."""
    return np.bincount(truth.indices, minlength=truth.shape[1])


def _f1_by_group(
    ranked: _Ranked, groups: NDArray[np.integer[Any]], n_true: NDArray[np.integer[Any]]
) -> _Curves:
    order = np.argsort(groups, kind="stable")  # within a group highest first, as they are
    group, hits = groups[order], ranked.hits[order]
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    lengths = np.diff(np.append(starts, len(group)))
    n_hits = np.cumsum(hits, dtype=np.int64)
    n_hits -= np.repeat(n_hits[starts] - hits[starts], lengths)
    predicted = np.arange(1, len(group) + 1) - np.repeat(starts, lengths)
    return _Curves(order, starts, 2 * n_hits / (predicted + n_true[group]))


def _halfway(above: NDArray[np.float32], below: NDArray[np.float32]) -> NDArray[np.float32]:
    """Thresholds that include `above` and exclude `below`."""
    middle = ((above.astype(np.float64) + below) / 2).astype(np.float32)
    return np.where(middle > below, middle, above)  # neighbours in float32 have no middle
