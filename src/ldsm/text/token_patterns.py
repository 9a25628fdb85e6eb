"""Which regular expressions of a file are safe to run.

A regular expression can take exponential time on a short text, and minutes to compile. A file that
nobody vouches for may only name one whose time is linear in the text by its form: a fixed number of
characters, each of a given class, and then a run of one class. Such a run is never given back, and
where it ends is never in doubt.
"""

from __future__ import annotations

import re

LONGEST = 200  # characters
_MOST_REPEATS = 64

# A class of characters: \w and the like, a set of them, any, or one given character.
_ONE = r"\\[wWdDsS]|\\[^\w\s]"
_ATOM = rf"(?:{_ONE}|\[\^?(?:[^\[\]\\\n]|{_ONE})+\]|[^\\\[\]{{}}()*+?|^$\n])"
_FORM = re.compile(
    rf"(?:\(\?u\))?"
    rf"(?:\\b)?"
    rf"(?:(?:{_ATOM}(?:\{{\d{{1,2}}\}})?)*?)"
    rf"(?:(?P<run>{_ATOM})(?:[+*]|\{{\d{{1,2}},(?:\d{{1,2}})?\}}))?"
    rf"(?P<end>\\b)?"
)


def is_linear(pattern: str) -> bool:
    """Whether a pattern is certain to take time in proportion to the text.

    Examples
    --------
    >>> is_linear(r"(?u)\\b\\w\\w+\\b"), is_linear(r"(?:a+)+$")
    (True, False)
    """
    form = _FORM.fullmatch(pattern) if len(pattern) <= LONGEST else None
    if form is None:
        return False
    counts = re.findall(r"\{(\d+)(?:,(\d*))?\}", pattern)
    if any(int(count or 0) > _MOST_REPEATS for pair in counts for count in pair):
        return False
    # Behind a run of word characters a word ends; behind another run the search would go back.
    return form["end"] is None or form["run"] in (None, r"\w")
