"""The rows of CSV text.

Python's csv module stops at cells of 131,072 characters, fewer than many documents have, and its
limit is a setting of the whole process, which other threads rely on. The rules here are those of
its strict mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..._wording import argument
from ..text_files import MAX_LINE_LENGTH

Line = tuple[int, str]  # its number, and its text with the line end


class BrokenRow(ValueError):
    """A row that is not CSV; the message says why."""

    def __init__(self, number: int, text: str, problem: str) -> None:
        super().__init__(problem)
        self.number = number  # of its first line
        self.text = text


def csv_rows(
    lines: Iterable[Line],
    delimiter: str,
    max_length: int = MAX_LINE_LENGTH,
    *,
    quotes: bool = True,
) -> Iterator[tuple[int, list[str]]]:
    """Each row with the number of its first line; an empty line is a row of no cells.

    A row of several lines may have `max_length` characters. Without `quotes`, these are characters
    like others.
    """
    rest = iter(lines)
    for number, line in rest:
        if quotes and '"' in line:
            yield number, _quoted_row(number, line, rest, delimiter, max_length)
        else:
            text = _without_end(number, line, line)
            yield number, text.split(delimiter) if text else []


def _quoted_row(
    number: int, line: str, rest: Iterator[Line], delimiter: str, max_length: int
) -> list[str]:
    first, cells, at, length = line, list[str](), 0, len(line)
    while True:
        if line.startswith('"', at):
            parts: list[str] = []
            at += 1
            while True:
                end = line.find('"', at)
                if end < 0:  # the cell continues on the next line
                    parts.append(line[at:])
                    _, line = next(rest, (0, ""))
                    if not line:
                        raise BrokenRow(number, first, "a cell in quotes never ends")
                    length += len(line)
                    if length > max_length:
                        remedy = f"{argument('max_line_length')} allows more"
                        problem = f"a row of more than {max_length:,} characters; {remedy}"
                        raise BrokenRow(number, first, problem)
                    at = 0
                    continue
                parts.append(line[at:end])
                at = end + 1
                if not line.startswith('"', at):
                    break
                parts.append('"')  # two quotes stand for one
                at += 1
            cells.append("".join(parts))
        else:
            end = line.find(delimiter, at)
            if end < 0:
                cells.append(_without_end(number, first, line[at:]))
                return cells
            cells.append(_without_breaks(number, first, line[at:end]))
            at = end
        if line.startswith(delimiter, at):
            at += 1
        elif not line[at:].rstrip("\r\n"):
            return cells
        else:
            raise BrokenRow(number, first, f"'{delimiter}' expected after '\"'")


def _without_end(number: int, line: str, text: str) -> str:
    return _without_breaks(number, line, text.rstrip("\r\n"))


def _without_breaks(number: int, line: str, text: str) -> str:
    if "\r" in text:
        raise BrokenRow(number, line, "new-line character seen in unquoted field")
    return text
