"""Regular expressions of files: those that might never finish are not run."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldsm.text.vectorizer import LONGEST_PATTERN, default_vectorizer, is_linear
from patience import little_work

SAFE = [
    default_vectorizer().token_pattern,
    r"(?u)\b\w+\b",
    r"\w+",
    r"\S+",
    r"[A-Za-z]+",
    r"[\w'-]+",
    r"\b[a-z]{2,}",
    r"\w{3}\d+",
    r"\w{2,5}\b",
    r".",
]
UNSAFE = [
    r"(?:a+)+$",
    r"(a|aa)+b",
    r"a+a+b",
    r"\w*x",
    r"[a-z]+\b",
    r"\w+?\b",
    r"(\w+)",
    r"(?i)\w+",
    r"\w{65,}",
    r"(?=a)\w+",
    r"\1",
    "a|b",
    "x" * (LONGEST_PATTERN + 1),
    "(?i)" + "[\x00-\U0010ffff]" * 2000,
]


@pytest.mark.parametrize("pattern", SAFE)
def test_common_patterns_are_linear(pattern: str) -> None:
    assert is_linear(pattern)
    compiled = re.compile(pattern)
    for text in ("a" * 200_000 + "!", "a " * 100_000, "ab-" * 60_000, "é" * 100_000 + "-"):
        with little_work(2):
            compiled.findall(text)


@pytest.mark.parametrize("pattern", UNSAFE)
def test_other_patterns_are_not_linear(pattern: str) -> None:
    assert not is_linear(pattern)


@given(st.text(alphabet=r"ab\wdsb[]^-{}()*+?|$.,123 '", max_size=30))
def test_safe_patterns_compile(pattern: str) -> None:
    if not is_linear(pattern):
        return
    try:
        compiled = re.compile(pattern)
    except re.error:
        return  # such as a range from high to low: refused when the file is loaded
    with little_work(2):
        compiled.findall("ab" * 10_000 + "c")
