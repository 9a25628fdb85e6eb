"""Rows of CSV as Python's csv module reads them, but for its limit."""

import csv
import io
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldsm._storage.syntax.csv_rows import BrokenRow, csv_rows


def lines_of(text: str) -> list[tuple[int, str]]:
    # As a file does, a line ends at "\n" alone.
    lines = text.split("\n")
    kept = [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    return list(enumerate(kept, 1))


def ours(text: str, delimiter: str = ",") -> list[list[str]] | None:
    try:
        return [row for _, row in csv_rows(lines_of(text), delimiter)]
    except BrokenRow:
        return None


def theirs(text: str, delimiter: str = ",") -> list[list[str]] | None:
    try:
        lines = (line for _, line in lines_of(text))
        return list(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error:
        return None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "a,b\n",
        "a,b",
        'a,"b\nc",d\r\n"x""y",\n',
        '"a"b,c\n',
        'a"b,c\n',
        '"open\n',
        ",,\n\n,\n",
        'a\rb,"c"\n',
        '"a"\r\n""\n',
        '"a" ,b\n',
    ],
)
def test_rows_match_csv_module(text: str) -> None:
    assert ours(text) == theirs(text)


@settings(max_examples=500)
@given(st.text(alphabet='ab,;"\r\n ', max_size=25), st.sampled_from(",;\t"))
def test_random_text_matches_csv_module(text: str, delimiter: str) -> None:
    assert ours(text, delimiter) == theirs(text, delimiter)


# Before Python 3.11, the csv module cannot write a NUL.
UNWRITABLE = "\0" if sys.version_info < (3, 11) else ""
CELLS = st.text(st.characters(codec="utf-8", exclude_characters=UNWRITABLE), max_size=9)


@given(st.lists(st.lists(CELLS, min_size=1, max_size=4), max_size=4))
def test_csv_round_trip(rows: list[list[str]]) -> None:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    assert ours(out.getvalue()) == rows


def test_long_cells() -> None:
    cell = 'long "cell"\n' * 50_000
    out = io.StringIO()
    csv.writer(out).writerow(["a", cell, "b"])
    before = csv.field_size_limit()
    assert list(csv_rows(lines_of(out.getvalue()), ",")) == [(1, ["a", cell, "b"])]
    assert csv.field_size_limit() == before


def test_broken_rows_are_named() -> None:
    with pytest.raises(BrokenRow, match="expected after") as error:
        list(csv_rows(lines_of('a,b\n"c\nd"e,f\n'), ","))
    assert error.value.number == 2


def test_delimiter_hint(tmp_path: Path) -> None:
    from ldsm.datasets import load_table

    for delimiter in ";|\t":
        path = tmp_path / "d.csv"
        path.write_text(f"text{delimiter}labels\na{delimiter}b\n")
        with pytest.raises(ValueError, match=r"seem to be separated by .*try delimiter="):
            load_table(path)
        assert load_table(path, delimiter=delimiter).labels == [["b"]]
