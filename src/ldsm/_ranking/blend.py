"""The blend: turns the signals about a (row, label) pair into one probability.

It is a logistic model of a few terms: the scores of the matchers, the ranker's margin and its
likelihood, and the distance to the label's centroid, each alone and times the label's frequency,
because all of them are less reliable for labels with few rows. It is fitted on held-out pairs, so
that its scores are calibrated.

Only this module knows the kinds of blend: `SIGNALS`, `OPTIONS` and `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._matching.shortlists import Shortlists
from .logistic import Floats, logistic, logistic_regression


@dataclass(frozen=True)
class Listed:
    """What is known about the labels on shortlists, of new rows or of held-out ones."""

    lists: Shortlists
    label_counts: NDArray[Any]  # by label
    scores: Mapping[str, NDArray[Any]]  # by the parts of a model that compute them, by name
    most_cosine: float = 0.0

    @property
    def cosines(self) -> Floats | None:
        return self._limited(self.lists.cosines)

    @property
    def below_best(self) -> Floats | None:
        cosines, best = self.cosines, self._limited(self.lists.best_cosine)
        return None if cosines is None or best is None else cosines - best

    def _limited(self, cosines: NDArray[np.float32] | None) -> Floats | None:
        if cosines is None:
            return None
        limited = np.minimum(cosines, np.float32(self.most_cosine))
        return np.asarray(limited, dtype=np.float64)


class Signal(NamedTuple):
    """One number that describes a pair.

    `values` computes it for listed labels, None if it is not known. Signals without it are those
    that the core transforms.
    """

    name: str  # for users
    source: str  # the stage it comes from, in explanations
    values: Callable[[Listed], NDArray[Any] | None] | None = None


class Kind(NamedTuple):
    """One kind of blend."""

    # Products of signals, one letter each, that get a coefficient; the first is the constant.
    terms: tuple[str, ...]
    needs: tuple[str, ...]  # names of the parts of a second stage that the signals come from
    calibrates: bool = False  # only turns its one signal into a probability; keeps the order


class Option(NamedTuple):
    """What may be added to a linear blend."""

    name: str
    terms: tuple[str, ...]
    part: str  # that the signals come from, by its name in `PARTS`


BASE, TREES, NAME, FREQUENCY = "base", "trees", "name", "frequency"
SIGNALS: Mapping[str, Signal] = {
    "t": Signal("tree log-odds", TREES),
    "m": Signal("margin", "linear"),
    "z": Signal("likelihood", "linear"),  # the logarithm of the margin's likelihood
    "w": Signal("index log score", "features"),
    "n": Signal("in no leaf", TREES),  # 1 if only the index names the label
    "q": Signal("distance", "tail"),  # squared, to the label's centroid
    "c": Signal("log rows", FREQUENCY),  # of the label's training rows
    "s": Signal("sub-word log score", "sub-words"),
    # The share of the name that the text has.
    "o": Signal("coverage of the name", NAME, lambda listed: listed.lists.coverages),
    "k": Signal("cosine with the name", NAME, lambda listed: listed.cosines),
    "d": Signal("cosine below the row's best", NAME, lambda listed: listed.below_best),
    # How often the name's match was right.
    "r": Signal("log-odds of the name", NAME, lambda listed: listed.scores.get("names")),
    # The product of the row's dense vector with the label's.
    "h": Signal("meaning", "meaning", lambda listed: listed.scores.get("meaning")),
}
_COMPUTED = {letter: signal.values for letter, signal in SIGNALS.items() if signal.values}
# The stages that an explanation shows, in this order.
SOURCES = tuple(dict.fromkeys(signal.source for signal in SIGNALS.values()))
_LINEAR = ("", "t", "m", "z", "c", "tm", "tz", "tc", "mc", "zc")
_NAMES = ("k", "kk", "o", "ooo", "ok", "kc", "km", "d", "r", "ro", "rooo", "rk")
# What may be added to a linear blend, in the order in which it is tried.
OPTIONS = (
    Option("index", ("w", "wc", "wm", "wz", "tw", "n", "nm"), "index"),
    Option("subwords", ("s", "ss", "sc", "sm", "ts"), "sub_index"),
    Option("names", _NAMES, "names"),
    Option("meaning", ("h", "hh", "hc", "hm", "th"), "meaning"),
    Option("tail", ("q", "qc"), "centroids"),
)


def with_option(kind: str, option: Option) -> str:
    """The name of a linear kind with one more option."""
    return f"{kind}+{option.name}"


def _linear_kinds() -> Iterator[tuple[str, Kind]]:
    """Linear blends with all choices of options."""
    for chosen in product((False, True), repeat=len(OPTIONS)):
        used = [option for option, wanted in zip(OPTIONS, chosen, strict=True) if wanted]
        terms = sum((option.terms for option in used), _LINEAR)
        if {"subwords", "names"} <= {option.name for option in used}:
            terms = (*terms, "ks", "os")
        needs = ("ranker", *(option.part for option in used))
        yield reduce(with_option, used, "linear"), Kind(terms, needs)


KINDS: Mapping[str, Kind] = {
    "trees": Kind(("", "t"), (), calibrates=True),
    # Here the signal t is the paper's formula instead of the trees' score.
    "tail": Kind(("", "t"), ("centroids",), calibrates=True),
    **dict(_linear_kinds()),
}
# Labels without a training row are known by their names alone.
UNSEEN_TERMS = ("", "k", "o", "ooo", "ok", "d")
# The same where the names also have vectors.
UNSEEN_MEANING_TERMS = (*UNSEEN_TERMS, "h", "hh", "hk")
LEAST_SCORE = 1e-4  # keeps the log-odds of a tree's score finite; as in the core


@dataclass(frozen=True)
class Pairs:
    """Signals about some (row, label) pairs, one entry each."""

    tree_scores: NDArray[Any]
    label_counts: NDArray[Any]  # training rows of the label
    margins: NDArray[Any] | None = None  # by the ranker
    distances: NDArray[Any] | None = None  # squared, to the label's centroid
    index_scores: NDArray[Any] | None = None
    sub_scores: NDArray[Any] | None = None  # by the index of sub-words
    more_letters: str = ""  # of the signals that are used as they are
    more: NDArray[np.float64] | None = None  # a row of values for each of these
    # How far all this can be relied on, from 0 to 1; the label's base rate counts for the rest.
    certainty: NDArray[np.float32] | None = None
    base_rates: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, listed: Listed) -> Pairs:
        """The signals of listed labels."""
        lists = listed.lists
        found = {
            letter: values for letter, of in _COMPUTED.items() if (values := of(listed)) is not None
        }
        return cls(
            np.minimum(lists.tree_scores, 1),  # may be infinite in a damaged file
            listed.label_counts[lists.labels],
            listed.scores.get("ranker"),
            listed.scores.get("centroids"),
            lists.index_scores,
            lists.sub_scores,
            "".join(found),
            np.stack([*found.values()]).astype(np.float64) if found else None,
        )

    def signal(self, letter: str) -> Floats:
        """One of the signals that are used as they are."""
        assert self.more is not None
        return np.asarray(self.more[self.more_letters.index(letter)])

    def with_signal(self, letter: str, values: NDArray[Any]) -> Pairs:
        """With other values of one of these signals."""
        assert self.more is not None
        more = self.more.copy()
        more[self.more_letters.index(letter)] = values
        return replace(self, more=more)

    def value(self, letter: str, pair: int) -> float | None:
        """Such a signal of one pair, if it is known."""
        return float(self.signal(letter)[pair]) if letter in self.more_letters else None

    def __getitem__(self, chosen: NDArray[Any]) -> Pairs:
        arrays: dict[str, Any] = {**vars(self)}
        del arrays["more_letters"]
        taken: dict[str, Any] = {
            name: None if array is None else np.ascontiguousarray(array[..., chosen])
            for name, array in arrays.items()
        }
        return replace(self, **taken)


@dataclass(frozen=True)
class Blend:
    """A fitted blend."""

    kind: str  # one of KINDS
    coefficients: tuple[float, ...]  # one for each of the terms
    tree_share: float = 1.0  # only for "tail": beta of the paper's formula
    gamma: float = 0.0  # likewise
    # For labels without a training row, one for each of `unseen_terms`; none: such have no score.
    unseen: tuple[float, ...] = ()
    # Cosines with names are limited to this, because the blend was fitted to hardly any larger
    # ones.
    most_cosine: float = 0.0
    # The number of rows when it was fitted, as a share of their number now. It was fitted to label
    # counts of that size, which growing counts would exceed.
    count_share: float = 1.0

    @property
    def formula(self) -> dict[str, float]:
        """The constants of the paper's formula, if the blend uses it."""
        return {"tree_share": self.tree_share, "gamma": self.gamma} if self.kind == "tail" else {}

    @property
    def terms(self) -> tuple[str, ...]:
        return KINDS[self.kind].terms

    @property
    def needs(self) -> tuple[str, ...]:
        needs = KINDS[self.kind].needs
        return (*needs, "names") if self.unseen and "names" not in needs else needs

    @property
    def unseen_terms(self) -> tuple[str, ...]:
        """The terms of labels without a training row; older models with meaning lack its terms."""
        return next(
            terms
            for terms in (UNSEEN_TERMS, UNSEEN_MEANING_TERMS)
            if len(self.unseen) in (0, len(terms))
        )

    def counts(self, label_counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Label counts as they were, relative to each other, when the blend was fitted."""
        if self.count_share == 1:
            return label_counts
        scaled = np.rint(label_counts * self.count_share).astype(np.int64)
        return np.where(label_counts > 0, np.maximum(scaled, 1), 0)

    def probabilities(self, pairs: Pairs) -> NDArray[np.float32]:
        """The probability that the row has the label."""
        out = _core.blend_probabilities(pairs, self.terms, *self._tail, self.coefficients)
        if self.unseen:
            unseen = np.flatnonzero(pairs.label_counts == 0)
            terms = self.unseen_terms
            its = _core.blend_probabilities(pairs[unseen], terms, None, 0.0, self.unseen)
            out[unseen] = its
        return out

    def shares(self, pairs: Pairs) -> dict[str, Floats]:
        """What each source adds to the log-odds; a term of two sources is split between them."""
        n = len(pairs.tree_scores)
        out = {BASE: np.zeros(n)}
        seen = 1.0 if not self.unseen else (pairs.label_counts > 0).astype(np.float64)
        values = _terms(self.kind, pairs, self.tree_share, self.gamma).T
        _add_shares(out, self.terms, self.coefficients, values * seen)
        if self.unseen:
            values = _core.blend_terms(pairs, self.unseen_terms).T
            _add_shares(out, self.unseen_terms, self.unseen, values * (1 - seen))
            # The base is the same for all: what unseen labels start from is due to their names.
            out[NAME] += out[BASE] - self.coefficients[0]
            out[BASE][:] = self.coefficients[0]
        if self.kind == "tail":
            # The tail's share is what it adds to the log-odds of the trees alone.
            alone = tree_log_odds(self.tree_share * pairs.tree_scores.astype(np.float64))
            trees = self.coefficients[1] * alone
            out["tail"], out[TREES] = out[TREES] - trees, trees
        if pairs.certainty is not None and pairs.base_rates is not None:
            most = -np.log(LEAST_SCORE)  # as in the core
            with np.errstate(invalid="ignore"):  # shares may be infinite in a damaged file
                odds = np.sum(list(out.values()), axis=0)
                limit = np.where(odds > most, most / np.maximum(odds, most), 1.0)
                for share in out.values():
                    share *= pairs.certainty * limit
            frequency = out.setdefault(FREQUENCY, np.zeros(n))
            frequency += (1 - pairs.certainty) * _log_odds(pairs.base_rates)
        return out

    @property
    def _tail(self) -> tuple[float | None, float]:
        return _tail_formula(self.kind, self.tree_share, self.gamma)


def _add_shares(
    out: dict[str, Floats], terms: tuple[str, ...], coefficients: tuple[float, ...], values: Floats
) -> None:
    for letters, coefficient, term in zip(terms, coefficients, values, strict=True):
        sources = [SIGNALS[letter].source for letter in letters] or [BASE]
        for source in sources:
            share = out.setdefault(source, np.zeros(len(term)))
            share += coefficient * term / len(sources)


def rounded(coefficients: Floats) -> tuple[float, ...]:
    """Six digits: far finer than the data supports, and coarser than how machines differ."""
    return tuple(float(f"{value:.6g}") for value in coefficients)


def fit_blend(
    kind: str,
    pairs: Pairs,
    truth: NDArray[Any],
    weights: NDArray[np.float64] | None = None,
    *,
    tree_share: float = 1.0,
    gamma: float = 0.0,
) -> Blend:
    """Fit a blend of the given kind to pairs, true or false, that have these weights.

    A calibrating blend never reverses the order of its signal.
    """
    design = _terms(kind, pairs, tree_share, gamma)
    if weights is None:
        weights = np.ones(len(design))
    coefficients = logistic_regression(design, np.asarray(truth, dtype=np.uint8), weights)
    if KINDS[kind].calibrates and not coefficients[1] > 0:
        coefficients = np.array([0.0, 1.0])
    return Blend(kind, rounded(coefficients), tree_share, gamma)


def tail_scores(pairs: Pairs, tree_share: float, gamma: float) -> Floats:
    """The paper's tail score: beta * tree + (1 - beta) / (1 + exp(gamma * distance / 2))."""
    assert pairs.distances is not None
    nearness = logistic(-0.5 * gamma * pairs.distances.astype(np.float64))
    return tree_share * pairs.tree_scores + (1 - tree_share) * nearness


def tree_log_odds(scores: Floats) -> Floats:
    """Log-odds, finite for any score: scores outside [0, 1] (from a damaged file) are clipped."""
    scores = np.clip(scores, 0.0, 1.0)
    return np.asarray(np.log(scores + LEAST_SCORE) - np.log(1 + LEAST_SCORE - scores))


def _log_odds(rates: Floats) -> Floats:
    """Of base rates, finite for any: as in the core."""
    rates = np.clip(rates, 1e-9, 1 - 1e-9)
    return np.asarray(np.log(rates) - np.log1p(-rates))


def _terms(kind: str, pairs: Pairs, tree_share: float, gamma: float) -> Floats:
    """Values of the terms, one row per pair."""
    formula = _tail_formula(kind, tree_share, gamma)
    return _core.blend_terms(pairs, KINDS[kind].terms, *formula)


def _tail_formula(kind: str, tree_share: float, gamma: float) -> tuple[float | None, float]:
    """The constants of the paper's formula, if the kind uses it."""
    return (tree_share, gamma) if kind == "tail" else (None, 0.0)
