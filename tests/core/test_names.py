"""Names in files, checked by the core, against Python's own rules."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldsm import _core

KINDS = (str, int, bool)


def check(names: list[bytes], kinds: list[int] | None = None, **rules: object):
    offsets = np.cumsum([0, *map(len, names)]).astype(np.int64)
    text = np.frombuffer(b"".join(names), np.uint8)
    marks = None if kinds is None else np.array(kinds, np.uint8)
    return _core.check_names(text, offsets, marks, **rules)


def python_says(name: bytes, kind: int) -> bool:
    """Whether a name is what Python would write for a label of the kind."""
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    if kind == 0:
        return True
    try:
        number = int(text) if text.isascii() else None
    except ValueError:
        return False
    return number is not None and str(number) == text and (kind == 1 or number in (0, 1))


UTF8 = st.text(max_size=4).map(lambda text: text.encode("utf-8", "replace"))
DIGITS = st.text(alphabet="-+0129_ ", max_size=4).map(str.encode)


@settings(max_examples=1000)
@given(st.one_of(st.binary(max_size=6), UTF8, DIGITS), st.sampled_from([0, 1, 2]))
def test_names_are_what_python_would_write(name: bytes, kind: int) -> None:
    assert (check([name], [kind]) is None) == python_says(name, kind)


@given(st.lists(st.sampled_from([b"", b"a", b"ab", b"b", b"1", b"0"]), max_size=6))
def test_repeated_names_are_found(names: list[bytes]) -> None:
    found = check(names)
    assert (found is None) == (len(set(names)) == len(names))
    assert check(names, unique=False) is None
    if found is not None:
        assert found[1] == "occurs twice" and names.index(names[found[0]]) < found[0]


def test_equal_numbers_and_bools() -> None:
    assert check([b"1", b"1"], [0, 1]) is None  # "1" is not 1
    assert check([b"1", b"1"], [1, 2]) == (1, "occurs twice")  # but True is


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_numbers_must_fit_their_type(dtype: str) -> None:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    for number in (low - 1, low, low + 1, 0, 1, high - 1, high, high + 1, 10**30, -(10**30)):
        found = check([str(number).encode()], [1], low=str(low), high=str(high))
        assert found == (None if low <= number <= high else (0, "is out of range"))


def test_digits_of_numbers() -> None:
    assert check([b"1" * 4000], [1]) is None
    assert check([b"1" * 4001], [1]) == (0, "is not a whole number")


def test_many_names_are_checked_in_seconds() -> None:
    names = [f"name {i}".encode() for i in range(200_000)]
    assert check(names) is None
    assert check([*names, b"name 77"]) == (200_000, "occurs twice")


def test_mismatched_arguments() -> None:
    text, offsets = np.zeros(3, np.uint8), np.array([0, 2, 3])
    for bad in (np.array([0, 2]), np.array([0, 4, 3]), np.array([1, 2, 3]), np.zeros(0, np.int64)):
        with pytest.raises(ValueError, match="offsets of the names"):
            _core.check_names(text, bad)
    with pytest.raises(ValueError, match="a kind for each name"):
        _core.check_names(text, offsets, np.zeros(3, np.uint8))
    with pytest.raises(ValueError, match="both be given"):
        _core.check_names(text, offsets, low="3")
