"""Labels that look like several in one: "grain|wheat", "a; b"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from .._wording import argument, warn

SEPARATORS = ("|", ";", ",", "/", "\t", "\n")
_NOT_IN_NAMES = ("|", ";", "\t", "\n")
_LEAST = 3  # joined labels; one or two may well be called so
_SHARE = 0.5  # of the joined labels must be made of parts that occur elsewhere


@dataclass(frozen=True)
class Joined:
    """The number of labels that a separator seems to join, and two examples."""

    separator: str
    count: int
    total: int
    examples: tuple[str, ...]
    parts_recur: bool = True

    def __str__(self) -> str:
        shown = " and ".join(map(repr, self.examples))
        why = ", and their parts occur in other labels too" if self.parts_recur else ""
        return (
            f"{self.count:,} of {self.total:,} labels contain {self.separator!r}, such as {shown}"
            f"{why}: they look like several labels in one."
        )


def find_joined(labels: Iterable[object]) -> Joined | None:
    """The separator that most labels seem to be joined by; None if they do not.

    A label counts if all its parts are labels themselves, or parts of other joined labels: "Paris,
    France" beside "Lyon, France" does not, because Paris and Lyon occur once.

    Examples
    --------
    >>> found = find_joined(["grain|wheat", "grain|corn", "corn|wheat", "trade"])
    >>> found.separator, found.count
    ('|', 3)
    """
    names = {label for label in labels if isinstance(label, str)}
    found = None
    for separator in SEPARATORS:
        joined = {name: _parts(name, separator) for name in names if separator in name}
        if len(joined) < _LEAST:
            continue
        times = Counter(part for parts in joined.values() for part in parts)
        sure = sorted(
            name
            for name, parts in joined.items()
            if len(parts) > 1 and all(times[part] > 1 or part in names for part in parts)
        )
        if len(sure) >= max(_LEAST, _SHARE * len(joined)) and (
            found is None or len(sure) > found.count
        ):
            found = Joined(separator, len(sure), len(names), tuple(sure[:2]))
    return found


def warn_if_joined(classes: NDArray[Any]) -> None:
    """Warn if the labels of a fit look joined."""
    if classes.dtype.kind not in "OU":
        return
    found = find_joined(classes.tolist()) or _often_separated(classes.tolist())
    if found is not None:
        warn(
            f"{found} If so, split them before training; for a table, "
            f"{argument('separator', found.separator)} does.",
        )


def _often_separated(labels: Sequence[object]) -> Joined | None:
    """The separator that half of the labels have, if it is rare in names."""
    names = sorted(label for label in labels if isinstance(label, str))
    for separator in _NOT_IN_NAMES:
        joined = [name for name in names if len(_parts(name, separator)) > 1]
        if len(joined) >= max(2, _SHARE * len(labels)):
            examples = tuple(joined[:2])
            return Joined(separator, len(joined), len(labels), examples, parts_recur=False)
    return None


def _parts(name: str, separator: str) -> set[str]:
    return {part.strip() for part in name.split(separator)} - {""}
