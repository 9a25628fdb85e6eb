"""The history of a model: what has been changed since the training, entry by entry.

A file can hold anything under that name, so whatever is not a count is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from .fitted import MOST_ROWS

MOST_ENTRIES = 100  # the first of them sums up all that came before
_LEARNED = ("learned", "times", "new_labels")
_COUNTS = (*_LEARNED, "skewed", "dropped", "renamed")


def with_entry(training: Mapping[str, Any], what: Mapping[str, int]) -> list[Any]:
    """The history of a model's `training` with an entry for now.

    Rows learned on one day are added up, and so are the oldest of many entries.
    """
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    entry: dict[str, Any] = {"when": now, **what}
    stored = training.get("history")
    history = list(stored) if type(stored) is list else []
    last: Any = history[-1] if history else None
    today = type(last) is dict and str(last.get("when"))[:10] == now[:10]
    if "learned" in what and today and all(_is_count(last.get(name)) for name in _LEARNED):
        entry |= {name: last[name] + entry[name] for name in _LEARNED}
        if _is_count(last.get("skewed")):  # files of earlier versions lack it
            entry["skewed"] += last["skewed"]
        history.pop()
    return [*_summed_up(history), entry]


def total(training: Mapping[str, Any], name: str) -> int:
    """The total of one kind of change, such as "learned"."""
    history = training.get("history")
    entries = history if type(history) is list else []
    return sum(
        entry[name] for entry in entries if type(entry) is dict and _is_count(entry.get(name))
    )


def _summed_up(history: list[Any]) -> list[Any]:
    n_old = len(history) - MOST_ENTRIES + 2  # with the sum and a new entry
    if n_old < 2:
        return history
    old = {"history": history[:n_old]}
    dates = [entry["when"] for entry in old["history"] if _is_dated(entry)]
    sums = {name: min(total(old, name), MOST_ROWS) for name in _COUNTS}
    counts = {name: n for name, n in sums.items() if n}
    return [{"when": max(dates, default=""), **counts}, *history[n_old:]]


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MOST_ROWS


def _is_dated(entry: Any) -> bool:
    return type(entry) is dict and type(entry.get("when")) is str and len(entry["when"]) < 40
