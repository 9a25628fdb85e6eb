"""The blend: turns the signals about a (row, label) pair into one probability.

It is a logistic model of a few terms: the scores of the matchers, the ranker's margin and its
likelihood, and the distance to the label's centroid, each alone and times the label's frequency,
because all of them are less reliable for labels with few rows. It is fitted on held-out pairs, so
that its scores are calibrated.

Only this module knows the kinds of blend: `SIGNALS` and `KINDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core

Floats = NDArray[np.float64]


class Signal(NamedTuple):
    """One number that describes a pair."""

    name: str  # for users
    source: str  # the stage it comes from, in explanations


class Kind(NamedTuple):
    """One kind of blend."""

    # Products of signals, one letter each, that get a coefficient; the first is the constant.
    terms: tuple[str, ...]
    needs: tuple[str, ...]  # names of the parts of a second stage that the signals come from
    calibrates: bool = False  # only turns its one signal into a probability; keeps the order


BASE, TREES = "base", "trees"
SIGNALS: Mapping[str, Signal] = {
    "t": Signal("tree log-odds", TREES),
    "m": Signal("margin", "linear"),
    "z": Signal("likelihood", "linear"),  # the logarithm of the margin's likelihood
    "w": Signal("index log score", "features"),
    "n": Signal("in no leaf", TREES),  # 1 if only the index names the label
    "q": Signal("distance", "tail"),  # squared, to the label's centroid
    "c": Signal("log rows", "frequency"),  # of the label's training rows
}
# The stages that an explanation shows, in this order.
SOURCES = tuple(dict.fromkeys(signal.source for signal in SIGNALS.values()))
_LINEAR = ("", "t", "m", "z", "c", "tm", "tz", "tc", "mc", "zc")
_INDEXED = (*_LINEAR, "w", "wc", "wm", "wz", "tw", "n", "nm")
_TAIL = ("q", "qc")
KINDS: Mapping[str, Kind] = {
    "trees": Kind(("", "t"), (), calibrates=True),
    # Here the signal t is the paper's formula instead of the trees' score.
    "tail": Kind(("", "t"), ("centroids",), calibrates=True),
    "linear": Kind(_LINEAR, ("ranker",)),
    "linear+tail": Kind((*_LINEAR, *_TAIL), ("ranker", "centroids")),
    "linear+index": Kind(_INDEXED, ("ranker", "index")),
    "linear+index+tail": Kind((*_INDEXED, *_TAIL), ("ranker", "index", "centroids")),
}
LEAST_SCORE = 1e-4  # keeps the log-odds of a tree's score finite; as in the core
_RIDGE = 1.0
_STEPS = 100
_BLOCK = 512


@dataclass(frozen=True)
class Pairs:
    """Signals about some (row, label) pairs, one entry each."""

    tree_scores: NDArray[Any]
    label_counts: NDArray[Any]  # training rows of the label
    margins: NDArray[Any] | None = None  # by the ranker
    distances: NDArray[Any] | None = None  # squared, to the label's centroid
    index_scores: NDArray[Any] | None = None

    def arrays(self) -> tuple[Any, Any, Any, Any, Any]:
        """The signals in the order and the types that the core takes."""
        distances = None if self.distances is None else self.distances.astype(np.float64)
        return (self.tree_scores, self.label_counts, self.margins, distances, self.index_scores)

    def __getitem__(self, chosen: NDArray[Any]) -> Pairs:
        parts: dict[str, Any] = vars(self)
        taken: dict[str, Any] = {
            name: None if part is None else part[chosen] for name, part in parts.items()
        }
        return Pairs(**taken)


@dataclass(frozen=True)
class Blend:
    """A fitted blend."""

    kind: str  # one of KINDS
    coefficients: tuple[float, ...]  # one for each of the terms
    tree_share: float = 1.0  # only for "tail": beta of the paper's formula
    gamma: float = 0.0  # likewise

    @property
    def formula(self) -> dict[str, float]:
        """The constants of the paper's formula, if the blend uses it."""
        return {"tree_share": self.tree_share, "gamma": self.gamma} if self.kind == "tail" else {}

    @property
    def terms(self) -> tuple[str, ...]:
        return KINDS[self.kind].terms

    @property
    def needs(self) -> tuple[str, ...]:
        return KINDS[self.kind].needs

    def probabilities(self, pairs: Pairs) -> NDArray[np.float32]:
        """The probability that the row has the label."""
        return _core.blend_probabilities(
            *pairs.arrays(), self.terms, *self._tail, self.coefficients
        )

    def shares(self, pairs: Pairs) -> dict[str, Floats]:
        """What each source adds to the log-odds; a term of two sources is split between them."""
        n = len(pairs.tree_scores)
        out = {BASE: np.zeros(n)}
        values = _terms(self.kind, pairs, self.tree_share, self.gamma).T
        for letters, coefficient, term in zip(self.terms, self.coefficients, values, strict=True):
            sources = [SIGNALS[letter].source for letter in letters] or [BASE]
            for source in sources:
                share = out.setdefault(source, np.zeros(n))
                share += coefficient * term / len(sources)
        if self.kind == "tail":
            # The tail's share is what it adds to the log-odds of the trees alone.
            alone = tree_log_odds(self.tree_share * pairs.tree_scores.astype(np.float64))
            trees = self.coefficients[1] * alone
            out["tail"], out[TREES] = out[TREES] - trees, trees
        return out

    @property
    def _tail(self) -> tuple[float | None, float]:
        return _tail_formula(self.kind, self.tree_share, self.gamma)


def fit_blend(
    kind: str,
    pairs: Pairs,
    truth: NDArray[Any],
    weights: NDArray[np.float64] | None = None,
    *,
    tree_share: float = 1.0,
    gamma: float = 0.0,
) -> Blend:
    """Fit a blend of the given kind to pairs, true or false, that count as much as `weights` say.

    A calibrating blend never reverses the order of its signal.
    """
    design = _terms(kind, pairs, tree_share, gamma)
    if weights is None:
        weights = np.ones(len(design))
    coefficients = _logistic_regression(design, np.asarray(truth, dtype=np.float64), weights)
    if KINDS[kind].calibrates and not coefficients[1] > 0:
        coefficients = np.array([0.0, 1.0])
    # Six digits: far finer than the data supports, and coarser than the rounding differences
    # between machines.
    rounded = tuple(float(f"{value:.6g}") for value in coefficients)
    return Blend(kind, rounded, tree_share, gamma)


def tail_scores(pairs: Pairs, tree_share: float, gamma: float) -> Floats:
    """The paper's tail score: beta * tree + (1 - beta) / (1 + exp(gamma * distance / 2))."""
    assert pairs.distances is not None
    nearness = _logistic(-0.5 * gamma * pairs.distances.astype(np.float64))
    return tree_share * pairs.tree_scores + (1 - tree_share) * nearness


def tree_log_odds(scores: Floats) -> Floats:
    """Log-odds, finite for any score: scores outside [0, 1] (from a damaged file) are clipped."""
    scores = np.clip(scores, 0.0, 1.0)
    return np.asarray(np.log(scores + LEAST_SCORE) - np.log(1 + LEAST_SCORE - scores))


def _terms(kind: str, pairs: Pairs, tree_share: float, gamma: float) -> Floats:
    """Values of the terms, one row per pair."""
    formula = _tail_formula(kind, tree_share, gamma)
    return _core.blend_terms(*pairs.arrays(), KINDS[kind].terms, *formula)


def _tail_formula(kind: str, tree_share: float, gamma: float) -> tuple[float | None, float]:
    """The constants of the paper's formula, if the kind uses it."""
    return (tree_share, gamma) if kind == "tail" else (None, 0.0)


def _logistic(odds: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, -odds))


def _logistic_regression(design: Floats, truth: Floats, weights: Floats) -> Floats:
    """Newton's method with a slight ridge on the standardised terms; the first term is constant."""
    mean, scale = design.mean(axis=0), design.std(axis=0)
    mean[0], scale = 0.0, np.where(scale > 1e-12, scale, 1.0)
    x = (design - mean) / scale
    ridge = np.full(x.shape[1], _RIDGE)
    ridge[0] = 1e-9
    w = np.zeros(x.shape[1])

    def loss(w: Floats) -> float:
        odds = _apply(x, w)
        losses = weights * (np.logaddexp(0.0, odds) - truth * odds)
        return float(np.sum(losses) + 0.5 * np.sum(ridge * w * w))

    at = loss(w)
    for _ in range(_STEPS):
        p = _logistic(_apply(x, w))
        slope = _products(x, (weights * (p - truth))[:, None])[:, 0] + ridge * w
        curvature = _products(x, x * (weights * p * (1 - p))[:, None]) + np.diag(ridge)
        step = np.linalg.solve(curvature, slope)
        size = 1.0
        while size > 1e-6 and loss(w - size * step) > at:
            size /= 2
        w = w - size * step
        before, at = at, loss(w)
        if before - at <= 1e-6 * abs(before):
            break
    w = w / scale
    w[0] -= np.sum(w[1:] * mean[1:])
    return w


def _products(left: Floats, right: Floats) -> Floats:
    """left.T @ right in small blocks of rows, added up in order.

    The bits of one large matrix product may depend on the number of threads.
    """
    out = np.zeros((left.shape[1], right.shape[1]))
    for start in range(0, len(left), _BLOCK):
        out += left[start : start + _BLOCK].T @ right[start : start + _BLOCK]
    return out


def _apply(matrix: Floats, vector: Floats) -> Floats:
    return np.asarray(np.einsum("ij,j->i", matrix, vector, optimize=False))
