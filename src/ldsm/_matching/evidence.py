"""How much evidence a row has, and how far its scores can therefore be trusted.

A blend is fitted to rows like those of the training data. For a row with hardly any evidence, such
as a text of one stop word, it would extrapolate. The scores of such a row lie between the blend's
and the label's base rate, which is its share of the training rows (see `Evidence.certainty`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._arrays.texts import are_phrases
from .._storage.strings import Strings
from .shortlists import Shortlists

# The forms of a word share runs of this many characters. Shorter runs are found
# in any string.
LONG_RUN = 5
# A row has enough evidence if at most this share of the training rows has less.
LEAST_SHARE = 0.01
# Up to this share of its name, a label does not count as found; as in the core.
LEAST_COVERAGE = 0.25


class Evidence(NamedTuple):
    """Measures of evidence; the evidence of a feature is its largest weight in the index."""

    nothing: float  # of a feature that goes with all labels alike
    telling: float  # of the best feature of a usual row, sub-words aside
    enough: float  # of all features of a row together: nearly every row has as much

    @classmethod
    def of(cls, held: Shortlists, base_rates: NDArray[np.float64], indexed: bool) -> Evidence:
        """From the shortlists of held-out rows; without an index, any feature is enough."""
        assert held.most_telling is not None and held.evidence is not None
        known = held.evidence > 0
        if not indexed or not known.any():
            return cls(0.0, 0.0, 1.0)
        # A weight of the index is a label's share of the rows with a feature, divided by the fourth
        # root of its share of all rows.
        numbers = (
            float(base_rates.max()) ** 0.75,
            float(np.median(held.most_telling[known])),
            float(np.quantile(held.evidence[known], LEAST_SHARE)),
        )
        return cls(*(float(f"{number:.6g}") for number in numbers))

    def suffices(self, lists: Shortlists) -> bool:
        """Whether every row has enough evidence, as usual rows have."""
        return bool(lists.least_evidence >= np.float32(self.enough))

    def certainty(self, lists: Shortlists) -> NDArray[np.float32]:
        """How far the scores of each row can be trusted, from 0 (no evidence) to 1.

        Fully, if the row's best feature has as much evidence as that of a usual row, or if all its
        features together have as much as those of nearly every row.
        """
        assert lists.most_telling is not None and lists.evidence is not None
        certainty = lists.evidence / np.float32(self.enough)
        if self.telling > self.nothing:
            beyond = lists.most_telling - np.float32(self.nothing)
            certainty = np.maximum(certainty, beyond / np.float32(self.telling - self.nothing))
        return np.asarray(np.minimum(certainty, np.float32(1)))


def with_name_matches(
    certainty: NDArray[np.float32], lists: Shortlists, label_counts: NDArray[np.int64]
) -> NDArray[np.float32]:
    """The certainty of each pair: the name of a label in the row is enough.

    A label without training rows is listed only because of its name.
    """
    pairs = np.repeat(certainty, np.diff(lists.indptr))
    if lists.coverages is None:
        return pairs
    least = np.float32(LEAST_COVERAGE)
    pairs = np.maximum(pairs, (lists.coverages - least) / (1 - least))
    return np.asarray(np.where(label_counts[lists.labels] > 0, pairs, np.float32(1)))


def best_of_rows(scores: NDArray[Any], indptr: NDArray[np.int64]) -> NDArray[Any]:
    """The largest score of each row's pairs; 0 for a row without any."""
    best, some = np.zeros(len(indptr) - 1, dtype=scores.dtype), np.diff(indptr) > 0
    if some.any():
        best[some] = np.maximum.reduceat(scores, indptr[:-1][some])
    return best


def long_runs(sub_words: Strings) -> NDArray[np.uint8]:
    """1 for each sub-word that counts as evidence: a long run, and not a whole short word."""
    data, offsets = np.asarray(sub_words.data), np.asarray(sub_words.offsets)
    characters = np.concatenate([[0], np.cumsum((data & 0xC0) != 0x80)])
    long = np.diff(characters[offsets]) == LONG_RUN
    blank = np.append(data == ord(" "), True)  # nothing follows the last one
    whole = blank[offsets[:-1]] & blank[offsets[1:] - 1]
    return np.asarray(long & ~whole & ~are_phrases(data, offsets), dtype=np.uint8)


def most_frequent(
    label_counts: NDArray[np.int64], length: int, allowed: NDArray[np.uint8] | None
) -> NDArray[np.int32]:
    """The labels with the most training rows, ascending."""
    order = np.argsort(-label_counts, kind="stable")
    able = label_counts[order] > 0
    if allowed is not None:
        able &= allowed[order] > 0
    return np.sort(order[able][:length]).astype(np.int32)


def replaced(lists: Shortlists, rows: NDArray[np.bool_], labels: NDArray[np.int32]) -> Shortlists:
    """The shortlists, where some rows get the same labels, without scores."""
    lengths = np.diff(lists.indptr)
    kept = np.repeat(~rows, lengths)
    lengths = np.where(rows, len(labels), lengths)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    new = np.repeat(rows, lengths)
    changes: dict[str, Any] = {"indptr": indptr}
    for name, values in lists.by_pair():
        out = np.zeros(len(new), dtype=values.dtype)
        out[~new] = values[kept]
        changes[name] = out
    changes["labels"][new] = np.tile(labels, int(rows.sum()))
    return replace(lists, **changes)
