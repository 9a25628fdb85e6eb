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
    coefficients = _logistic_regression(design, np.asarray(truth, dtype=np.uint8), weights)
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


def _logistic_regression(x: Floats, truth: NDArray[np.uint8], weights: Floats) -> Floats:
    """Newton's method with a slight ridge on the terms `x`; the first term is constant.

    The terms are standardised in place: they can be the largest array of a fit.
    """
    mean = x.mean(axis=0)
    mean[0] = 0.0
    x -= mean
    scale = np.sqrt(np.einsum("ij,ij->j", x, x) / len(x))
    scale = np.where(scale > 1e-12, scale, 1.0)
    x /= scale
    ridge = np.full(x.shape[1], _RIDGE)
    ridge[0] = 1e-9

    def sums(w: Floats) -> tuple[float, Floats, Floats]:
        loss, slope, lower = _core.logistic_sums(x, truth, weights, w)
        curvature = lower + np.tril(lower, -1).T + np.diag(ridge)
        return loss + 0.5 * float(np.sum(ridge * w * w)), slope + ridge * w, curvature

    w = np.zeros(x.shape[1])
    loss, slope, curvature = sums(w)
    for _ in range(_STEPS):
        step, size = np.linalg.solve(curvature, slope), 1.0
        tried = sums(w - step)
        while size > 1e-6 and tried[0] > loss:
            size /= 2
            tried = sums(w - size * step)
        w, before = w - size * step, loss
        loss, slope, curvature = tried
        if before - loss <= 1e-6 * abs(before):
            break
    w = w / scale
    w[0] -= np.sum(w[1:] * mean[1:])
    return w
