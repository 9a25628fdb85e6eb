"""What the parameter `effort` stands for: from the least time to the best accuracy.

It decides what is left to "auto", and what is compared on held-out rows.
"""

from __future__ import annotations

from dataclasses import dataclass

# Trees, unless the data show that fewer do; more hardly gain anything (docs/experiments.md).
MOST_TREES = 20


@dataclass(frozen=True)
class Effort:
    """One value of the parameter."""

    # Trees that make shortlists; None: as many as these gain from, at most `MOST_TREES`.
    matching_trees: int | None
    answering_trees: int  # trees whose scores are the answer
    # Share of the rows per tree with a second stage: each row needs trees that never saw it. Of few
    # trees, each must leave out more.
    subsample: float
    # How many times as many true labels twice the length of shortlists must find, for each time
    # that it may be doubled.
    worth_doubling: tuple[float, ...]
    compares_blends: bool  # or takes the one that the matchers need


EFFORTS = {
    "fast": Effort(2, 5, 0.5, (), compares_blends=False),
    # Lists beyond 100 labels take more of the ranker's time than they gain precision.
    "balanced": Effort(None, MOST_TREES, 0.7, (1.01, 1.05), compares_blends=True),
    "best": Effort(MOST_TREES, 50, 0.7, (1.01, 1.01), compares_blends=True),
}
