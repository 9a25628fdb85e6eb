"""The blend: turns the signals about a (row, label) pair into one probability.

It is a logistic model of a few terms: the trees' score, the ranker's margin and its likelihood, and
the distance to the label's centroid, each alone and times the label's frequency, because all of
them are less reliable for labels with few rows. It is fitted on held-out pairs, so that its scores
are calibrated.

Only this module knows the kinds of blend: `SIGNALS` and `KINDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Signal(NamedTuple):
    """One number that describes a pair."""

    name: str  # for users
    source: str  # the stage it comes from, in explanations


class Kind(NamedTuple):
    """One kind of blend."""

    # Products of signals, one letter each, that get a coefficient; the first is the constant.
    terms: tuple[str, ...]
    needs: tuple[str, ...]  # names of the label vectors that the signals come from
    calibrates: bool = False  # only turns its one signal into a probability; keeps the order


BASE, TREES = "base", "trees"
SIGNALS: Mapping[str, Signal] = {
    "t": Signal("tree log-odds", TREES),
    "m": Signal("margin", "linear"),
    "z": Signal("likelihood", "linear"),  # the logarithm of the margin's likelihood
    "q": Signal("distance", "tail"),  # squared, to the label's centroid
    "c": Signal("log rows", "frequency"),  # of the label's training rows
}
# The stages that an explanation shows, in this order.
SOURCES = tuple(dict.fromkeys(signal.source for signal in SIGNALS.values()))
_LINEAR = ("", "t", "m", "z", "c", "tm", "tz", "tc", "mc", "zc")
KINDS: Mapping[str, Kind] = {
    "trees": Kind(("", "t"), (), calibrates=True),
    # Here the signal t is the paper's formula instead of the trees' score.
    "tail": Kind(("", "t"), ("centroids",), calibrates=True),
    "linear": Kind(_LINEAR, ("ranker",)),
    "linear+tail": Kind((*_LINEAR, "q", "qc"), ("ranker", "centroids")),
}
# What rerank="auto" compares with the trees alone, the simplest first.
RICHER_KINDS = ("linear", "linear+tail")
LEAST_SCORE = 1e-4  # keeps the log-odds of a tree's score finite
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

    def __getitem__(self, chosen: NDArray[Any]) -> Pairs:
        margins = None if self.margins is None else self.margins[chosen]
        distances = None if self.distances is None else self.distances[chosen]
        return Pairs(self.tree_scores[chosen], self.label_counts[chosen], margins, distances)


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
        odds = np.zeros(len(pairs.tree_scores))
        # Term by term: the order of the additions is the same for any number of pairs.
        for coefficient, term in zip(self.coefficients, self.term_values(pairs), strict=True):
            odds += coefficient * term
        return _logistic(odds).astype(np.float32)

    def shares(self, pairs: Pairs) -> dict[str, Floats]:
        """What each source adds to the log-odds; a term of two sources is split between them."""
        n = len(pairs.tree_scores)
        out = {BASE: np.zeros(n)}
        terms = zip(self.terms, self.coefficients, self.term_values(pairs), strict=True)
        for letters, coefficient, term in terms:
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

    def term_values(self, pairs: Pairs) -> list[Floats]:
        return _terms(self.kind, pairs, self.tree_share, self.gamma)


def fit_blend(
    kind: str, pairs: Pairs, truth: NDArray[Any], *, tree_share: float = 1.0, gamma: float = 0.0
) -> Blend:
    """Fit a blend of the given kind to the true pairs.

    A calibrating blend never reverses the order of its signal.
    """
    design = np.stack(_terms(kind, pairs, tree_share, gamma), axis=1)
    coefficients = _logistic_regression(design, np.asarray(truth, dtype=np.float64))
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


def _terms(kind: str, pairs: Pairs, tree_share: float, gamma: float) -> list[Floats]:
    scores = pairs.tree_scores.astype(np.float64)
    if kind == "tail":
        scores = tail_scores(pairs, tree_share, gamma)
    signals = {
        "t": tree_log_odds(scores),
        "c": np.log1p(pairs.label_counts.astype(np.float64)),
    }
    if pairs.margins is not None:
        signals["m"] = pairs.margins.astype(np.float64)
        signals["z"] = -np.logaddexp(0.0, -2.0 * signals["m"])
    if pairs.distances is not None:
        signals["q"] = pairs.distances.astype(np.float64)
    one = np.ones(len(scores))
    return [
        reduce(np.multiply, [signals[name] for name in term], one) for term in KINDS[kind].terms
    ]


def _logistic(odds: Floats) -> Floats:
    return np.exp(-np.logaddexp(0.0, -odds))


def _logistic_regression(design: Floats, truth: Floats) -> Floats:
    """Newton's method with a slight ridge on the standardised terms; the first term is constant."""
    mean, scale = design.mean(axis=0), design.std(axis=0)
    mean[0], scale = 0.0, np.where(scale > 1e-12, scale, 1.0)
    x = (design - mean) / scale
    ridge = np.full(x.shape[1], _RIDGE)
    ridge[0] = 1e-9
    w = np.zeros(x.shape[1])

    def loss(w: Floats) -> float:
        odds = _apply(x, w)
        return float(np.sum(np.logaddexp(0.0, odds) - truth * odds) + 0.5 * np.sum(ridge * w * w))

    at = loss(w)
    for _ in range(_STEPS):
        p = _logistic(_apply(x, w))
        slope = _products(x, (p - truth)[:, None])[:, 0] + ridge * w
        curvature = _products(x, x * (p * (1 - p))[:, None]) + np.diag(ridge)
        step = np.linalg.solve(curvature, slope)
        size = 1.0
        while size > 1e-6 and loss(w - size * step) > at:
            size /= 2
        w = w - size * step
        before, at = at, loss(w)
        if before - at <= 1e-10 * abs(before):
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
