"""The items of a JSON array, one at a time: no more than one of them is held in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

from ..._wording import argument
from ..paths import PathLike
from ..text_files import Piece, malformed

_BLANKS = re.compile(r"[ \t\r\n]*")
_SHOWN = 100  # characters of an item, for errors
_READ_ON = 1 << 16  # characters, at least
_LONGEST_WORD = len("-Infinity")
_decoder = json.JSONDecoder()


def array_items(
    path: PathLike, pieces: Iterator[Piece], max_length: int
) -> Iterator[tuple[int, str, Any]]:
    """Each item with the number of its first line and the beginning of its text.

    The pieces begin with that which has the array's bracket.
    """
    text = _Window(path, pieces, max_length)
    text.skip_blanks()
    text.at += 1
    for separator in chain([""], repeat(",")):
        text.skip_blanks()
        if text.starts_with("]"):
            break
        if not text.starts_with(separator):
            raise text.wrong(f"is not a JSON array: Expecting '{separator}' or ']'")
        text.at += len(separator)
        text.skip_blanks()
        number, shown = text.number, text.shown
        yield number, shown, text.take_value()
    text.at += 1
    text.skip_blanks()
    if text.shown:
        raise text.wrong("expected nothing after the array")


class _Window:
    """A part of a text, and the place in it that is read next."""

    def __init__(self, path: PathLike, pieces: Iterator[Piece], max_length: int) -> None:
        self.path, self._pieces, self._max_length = path, pieces, max_length
        self.number, self._text = next(pieces)
        self.at, self._ended = 0, False

    @property
    def shown(self) -> str:
        return self._text[self.at : self.at + _SHOWN]

    def wrong(self, problem: str) -> ValueError:
        return malformed(self.path, self.number, problem, self.shown)

    def starts_with(self, text: str) -> bool:
        return self._text.startswith(text, self.at)

    def skip_blanks(self) -> None:
        while True:
            start, blanks = self.at, _BLANKS.match(self._text, self.at)
            self.at = blanks.end() if blanks else start
            self.number += self._text.count("\n", start, self.at)
            if self.at < len(self._text) or self._ended:
                return
            self._read_on()

    def take_value(self) -> Any:
        while True:
            try:
                value, end = _decoder.raw_decode(self._text, self.at)
                if end < len(self._text) or self._ended:  # else a number may continue
                    break
            except (ValueError, RecursionError) as error:
                if self._ended or not self._may_be_cut(error):
                    problem = f"is not a JSON array: {getattr(error, 'msg', error)}"
                    raise self.wrong(problem) from None
            if len(self._text) - self.at > self._max_length:
                end = self.at + self._max_length + 1
                break
            self._read_on()
        if end - self.at > self._max_length:
            remedy = f"{argument('max_line_length')} allows more"
            raise self.wrong(f"an item of more than {self._max_length:,} characters; {remedy}")
        self.number += self._text.count("\n", self.at, end)
        self.at = end
        return value

    def _may_be_cut(self, error: Exception) -> bool:
        """Whether more text could fix an error: it is at the end, or in an unfinished string."""
        if not isinstance(error, json.JSONDecodeError):
            return False
        at_end = error.pos >= len(self._text) - _LONGEST_WORD
        return at_end or error.msg.startswith("Unterminated string")

    def _read_on(self) -> None:
        """Forget what was read, and double what was not, so that few values are parsed twice."""
        rest = self._text[self.at :]
        parts, length = [rest], len(rest)
        while length <= max(_READ_ON, 2 * len(rest)):
            _, piece = next(self._pieces, (0, ""))
            if not piece:
                self._ended = True
                break
            parts.append(piece)
            length += len(piece)
        self._text, self.at = "".join(parts), 0
