"""Weights of rows, which no fit accepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_REASON = (
    "the second stage and the threshold learn from rows that were held out from the trees, and "
    "there a row of weight 2 cannot equal the row twice: one copy would be held out, the other "
    "learned. To give rows less weight, leave some of them out. For rare labels, predict with "
    "tail=1 or use tune_threshold(average='macro'); see the page 'Imbalance, weights, rare labels' "
    "of the documentation"
)


def refuse_weights(method: str, others: Mapping[str, Any]) -> None:
    """Raise an error for `sample_weight`, or another argument unknown to the method.

    A parameter of this name would tell scikit-learn that weights are supported: its ensembles
    would then pass weights instead of rows.

    Examples
    --------
    >>> refuse_weights("fit", {"sample_weight": None})
    """
    for name, value in others.items():
        if name != "sample_weight":
            raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")
        if value is not None:
            raise ValueError(f"{method} does not support sample_weight: {_REASON}.")
