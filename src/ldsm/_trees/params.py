"""The parameters of LdSMClassifier: their constraints, and the values of "auto"."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from operator import index
from typing import Any

import numpy as np

from .._arrays.features import FeatureArrays
from .._wording import argument, parameter
from .effort import EFFORTS, Effort

AUTO = "auto"
# A degenerate split is retried with half the integrity weight, at most this many times.
RELAXATIONS = 3
# From this share of non-zeros, data counts as dense.
DENSE_SHARE = 0.5
_CENTRE_ROWS = 4096  # that show where the columns lie
# Beyond this the objective, kept as float32, would be infinite.
LARGEST_WEIGHT = 1e30
# A memory_limit is in bytes; 256, say, is surely a mistake.
LEAST_MEMORY = 1 << 20
# With fewer rows, a blend cannot be fitted: "auto" then means the trees alone.
RERANK_ROWS = 500
# Step sizes of "auto", chosen on held-out training rows (docs/experiments.md).
RATES = {"nag": 0.1, "sgd": 0.1, "asgd": 0.5}


@dataclass(frozen=True)
class Role:
    """What trees are for decides what "auto" stands for (docs/experiments.md)."""

    epochs: Mapping[str, int]
    # A leaf is a label histogram: it should have counted enough labels to be one.
    min_split_labels: int
    # A feature that can add less than this share of what the strongest one can is dropped; the
    # second share is for many features, which take most of the space and of the time.
    prune_shares: tuple[float, float]
    compress: bool


# Up to here, nodes have maps of their features, and weights that are kept cost little.
FEW_FEATURES = 4096
# A small set of rows is cut into some parts in any case.
FEWEST_SPLITS = 32
# Trees whose scores are the answer, and trees that only make the shortlists of a second stage.
ANSWER = Role({"nag": 10, "sgd": 5, "asgd": 3}, 1, (0.03, 0.03), False)
MATCH = Role({"nag": 10, "sgd": 5, "asgd": 2}, 512, (0.1, 0.2), True)


@dataclass(frozen=True)
class Number:
    """A number within bounds; `open_low` excludes the lower bound."""

    low: float
    high: float = np.inf
    integer: bool = False
    open_low: bool = False

    def allows(self, value: Any) -> bool:
        kind: Any = numbers.Integral if self.integer else numbers.Real
        if not isinstance(value, kind) or isinstance(value, (bool, np.bool_)):
            return False
        number = index(value) if self.integer else _float(value)
        above = number > self.low if self.open_low else number >= self.low
        return above and number <= self.high and number != np.inf

    def __str__(self) -> str:
        kind = "an int" if self.integer else "a float"
        if np.isinf(self.high):
            return f"{kind} {'>' if self.open_low else '>='} {self.low:.12g}"
        return f"{kind} in {'(' if self.open_low else '['}{self.low}, {self.high}]"

    def check(self, name: str, value: Any) -> None:
        if not self.allows(value):
            raise ValueError(f"{parameter(name)} must be {self}. Got {value!r} instead.")


@dataclass(frozen=True)
class NonZero:
    """Any int except 0."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool) and value != 0

    def __str__(self) -> str:
        return "an int other than 0"


@dataclass(frozen=True)
class Choice:
    """One of a few values."""

    values: tuple[Any, ...]

    def allows(self, value: Any) -> bool:
        return any(
            value is v or (isinstance(v, str) and isinstance(value, str) and value == v)
            for v in self.values
        )

    def __str__(self) -> str:
        return " or ".join(repr(v) for v in self.values)


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, (bool, np.bool_))

    def __str__(self) -> str:
        return "a bool"


Rule = Number | NonZero | Choice | Flag
_AUTO = Choice((AUTO,))
CONSTRAINTS: Mapping[str, tuple[Rule, ...]] = {
    "effort": (Choice(tuple(EFFORTS)),),
    "n_estimators": (_AUTO, Number(1, 1_000_000, integer=True)),
    "arity": (Number(2, 8, integer=True),),
    "max_nodes": (_AUTO, Number(1, 2**31 - 16, integer=True)),
    "min_split_labels": (_AUTO, Number(1, 2**62, integer=True)),
    "n_epochs": (_AUTO, Number(1, 1_000_000, integer=True)),
    "learning_rate": (_AUTO, Number(0, open_low=True)),
    "integrity_weight": (Number(0, LARGEST_WEIGHT),),
    "multiway_penalty": (_AUTO, Number(0, LARGEST_WEIGHT)),
    "relax_integrity": (Flag(),),
    "optimizer": (_AUTO, Choice(("nag", "sgd", "asgd"))),
    "leaf_scores": (Choice(("probability", "histogram")),),
    "standardize": (_AUTO, Flag()),
    "subsample": (_AUTO, Number(0, 1, open_low=True)),
    "rerank": (_AUTO, Choice((None, "tail", "linear"))),
    "tail_blend": (Number(0, 1),),
    "tail_gamma": (_AUTO, Number(0, open_low=True)),
    "tail_min_rows": (Number(1, integer=True),),
    "compress": (_AUTO, Flag()),
    "threshold": (_AUTO, Choice(("f1",)), Number(0, 1)),
    "warm_start": (Flag(),),
    "memory_limit": (_AUTO, Number(LEAST_MEMORY, integer=True)),
    "n_jobs": (Choice((None,)), NonZero()),
    "verbose": (Flag(), Number(0, integer=True)),
}


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf


def check_params(
    params: Mapping[str, Any],
    owner: str,
    constraints: Mapping[str, tuple[Rule, ...]] = CONSTRAINTS,
) -> None:
    """Raise a ValueError that names the parameter, its value and what is allowed."""
    for name, allowed in constraints.items():
        value = params[name]
        if any(rule.allows(value) for rule in allowed):
            continue
        choices = " or ".join(str(rule) for rule in allowed)
        raise ValueError(f"{parameter(name, owner)} must be {choices}. Got {value!r} instead.")


@dataclass(frozen=True)
class TreeParams:
    """Parameters of a tree as the core takes them, without "auto"."""

    arity: int
    max_nodes: int
    n_epochs: int
    learning_rate: float
    integrity_weight: float
    multiway_penalty: float
    relaxations: int
    optimizer: str
    standardize: bool
    subsample: float
    # The defaults are what trees of files of format version 1 were grown with.
    min_split_labels: int = ANSWER.min_split_labels
    prune_share: float = ANSWER.prune_shares[0]
    compress: bool = ANSWER.compress

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def check_warm_start(
    n_estimators: int | str, grown: int, now: TreeParams, before: TreeParams
) -> None:
    """Raise an error unless trees can be added to the `grown` ones."""
    if isinstance(n_estimators, numbers.Integral) and n_estimators < grown:
        raise ValueError(
            f"{parameter('n_estimators', 'LdSMClassifier')} must be an int >= {grown}, the number "
            f"of trees already grown, with {argument('warm_start', True)}. "
            f"Got {n_estimators} instead."
        )
    if now != before:
        old = before.as_dict()
        changed = [f"{k} {v} after {old[k]}" for k, v in now.as_dict().items() if v != old[k]]
        raise ValueError(
            f"With {argument('warm_start', True)} the data and parameters of the trees must stay "
            f"the same. Got {', '.join(changed)}."
        )


def rerank_kind(params: Mapping[str, Any], n_rows: int) -> str | None:
    """The second stage to train, None for none.

    "auto" means the trees alone if no rows are out of bag, or if there are few rows.
    """
    rerank: str | None = params["rerank"]
    if params["subsample"] == AUTO or params["subsample"] < 1:
        return None if rerank == AUTO and n_rows < RERANK_ROWS else rerank
    if rerank in (None, AUTO):
        return None
    raise ValueError(
        f"{parameter('subsample', 'LdSMClassifier')} must be 'auto' or below 1 with "
        f"{argument('rerank', rerank)}, which learns from rows that a tree has not seen. "
        f"Got {params['subsample']!r} instead."
    )


def is_ranked(params: Mapping[str, Any], n_rows: int) -> bool:
    """Whether a linear classifier of each label follows the trees."""
    return rerank_kind(params, n_rows) in (AUTO, "linear")


def is_dense(x: FeatureArrays) -> bool:
    """Whether rows have most of the features."""
    return len(x.values) >= DENSE_SHARE * x.n_rows * max(1, x.n_features)


def is_centred(x: FeatureArrays) -> bool:
    """Whether most columns have a mean that is smaller than their standard deviation."""
    some = x.take(np.arange(0, x.n_rows, -(-x.n_rows // _CENTRE_ROWS) or 1))
    values = some.values.astype(np.float64)
    means, squares = (
        np.bincount(some.indices, weights, x.n_features) / max(1, some.n_rows)
        for weights in (values, values**2)
    )
    return bool(np.median(squares - 2 * means**2) > 0)


def given_limit(params: Mapping[str, Any]) -> int | None:
    """The `memory_limit` in bytes; None if it is "auto"."""
    return None if params["memory_limit"] == AUTO else int(params["memory_limit"])


def effort_of(params: Mapping[str, Any]) -> Effort:
    """What the parameter `effort` stands for."""
    return EFFORTS[params["effort"]]


def role(params: Mapping[str, Any], n_rows: int) -> Role:
    """Trees only match if a ranker follows; the paper's re-ranking relies on their scores."""
    return MATCH if is_ranked(params, n_rows) else ANSWER


def resolve(params: Mapping[str, Any], x: FeatureArrays, n_pairs: int) -> TreeParams:
    """Resolve "auto" from the data alone, so that the same data gives the same trees.

    `n_pairs` is the number of (row, label) pairs.

    The docstring of LdSMClassifier has the rules. Above the `multiway_penalty` of "auto", rows do
    not multiply (Lemma 2).
    """
    n_rows = x.n_rows
    arity = int(params["arity"])
    integrity_weight = float(params["integrity_weight"])
    standardize = params["standardize"]
    if standardize == AUTO:
        # Columns of embeddings are centred already.
        standardize = is_dense(x) and not (is_ranked(params, n_rows) and is_centred(x))
    optimizer = params["optimizer"]
    if optimizer == AUTO:
        optimizer = "nag" if x.is_binary and not standardize else "asgd"
    subsample = params["subsample"]
    if subsample == AUTO:
        subsample = 1.0 if rerank_kind(params, n_rows) is None else effort_of(params).subsample
    its = role(params, n_rows)
    n_epochs, learning_rate = params["n_epochs"], params["learning_rate"]
    min_split_labels, compress = params["min_split_labels"], params["compress"]
    max_nodes, multiway_penalty = params["max_nodes"], params["multiway_penalty"]
    return TreeParams(
        arity=arity,
        max_nodes=min(max(63, n_rows // 2), 65535) if max_nodes == AUTO else int(max_nodes),
        n_epochs=its.epochs[optimizer] if n_epochs == AUTO else int(n_epochs),
        learning_rate=RATES[optimizer] if learning_rate == AUTO else float(learning_rate),
        integrity_weight=integrity_weight,
        multiway_penalty=(
            integrity_weight * max(0.5, arity - 2.0)
            if multiway_penalty == AUTO
            else float(multiway_penalty)
        ),
        relaxations=RELAXATIONS if params["relax_integrity"] else 0,
        optimizer=str(optimizer),
        standardize=bool(standardize),
        subsample=float(subsample),
        min_split_labels=(
            max(1, min(its.min_split_labels, n_pairs // FEWEST_SPLITS))
            if min_split_labels == AUTO
            else int(min_split_labels)
        ),
        prune_share=its.prune_shares[x.n_features > FEW_FEATURES],
        compress=its.compress if compress == AUTO else bool(compress),
    )
