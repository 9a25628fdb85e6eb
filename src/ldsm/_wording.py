"""Format counts, shares, times, sizes and argument names for people, and warn them."""

from __future__ import annotations

import inspect
import math
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

# Control characters, line and paragraph ends, marks of direction, and surrogates.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

# How messages name arguments: as in Python, or as options of a command.
_as_option: ContextVar[Callable[[str], str] | None] = ContextVar("as_option", default=None)


def argument(name: str, value: Any = None) -> str:
    """An argument to suggest, in the form of the caller's interface.

    Examples
    --------
    >>> argument("delimiter", ";"), argument("text")
    ("delimiter=';'", 'text=')
    >>> with arguments_as(lambda name: f"--{name}"):
    ...     argument("delimiter", ";"), argument("text")
    ("--delimiter ';'", '--text')
    """
    as_option = _as_option.get()
    if as_option is not None and value is False:
        return as_option(f"no_{name}")
    if as_option is None:
        return f"{name}=" if value is None else f"{name}={value!r}"
    if value is None or value is True:
        return as_option(name)
    plain = isinstance(value, str) and value.replace("-", "").isalnum()
    return f"{as_option(name)} {value if plain else repr(value)}"


def parameter(name: str, owner: str | None = None) -> str:
    """A parameter with an invalid value, as the start of a sentence.

    Examples
    --------
    >>> parameter("arity", "LdSMClassifier")
    "The 'arity' parameter of LdSMClassifier"
    """
    as_option = _as_option.get()
    if as_option is not None:
        return as_option(name)
    return f"The {name!r} parameter" + (f" of {owner}" if owner else "")


@contextmanager
def arguments_as(as_option: Callable[[str], str]) -> Iterator[None]:
    """Name arguments in messages with `as_option` within this context."""
    token = _as_option.set(as_option)
    try:
        yield
    finally:
        _as_option.reset(token)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside of this package that called it, from however deep inside."""
    inside = os.path.dirname(__file__) + os.sep
    frame, level = inspect.currentframe(), 1
    while frame and frame.f_back and frame.f_code.co_filename.startswith(inside):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def number(value: Any) -> str:
    """A value for people: counts with thousands separators, fractions with three decimals."""
    if isinstance(value, (float, np.floating)) and not math.isnan(value):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3f}"
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return f"{value:,}"
    return bare(value)


def bare(value: Any) -> str:
    """A value for pipes."""
    if isinstance(value, str):
        return escaped(value)
    if value is None or value is np.nan or value != value:
        return "-"
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


def escaped(text: str) -> str:
    """Text with characters escaped that move the cursor, reorder text or end a line or cell."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def percent(value: float) -> str:
    """A share as papers write it: per cent with two decimals."""
    return "-" if math.isnan(value) else f"{100 * value:.2f}"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, in few digits."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def size(n_bytes: float) -> str:
    """Bytes in units of 1,000."""
    for unit in ("B", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} B" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} GB"


def counted(n: int, thing: str) -> str:
    """A count with its noun: "1 label", "2 labels"."""
    return f"{n:,} {thing}{'s' * (n != 1)}"


def shortened(text: str, width: int) -> str:
    """Text on one line of at most `width` characters."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"
