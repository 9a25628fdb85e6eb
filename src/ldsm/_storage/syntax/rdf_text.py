"""The text of RDF files, checked before rdflib reads it.

What would keep rdflib busy for hours is refused: entities that stand for others, which need a
document type; literals far longer than any name, which it puts together piece by piece; and decimal
numbers with large exponents, of which it writes every digit.
"""

from __future__ import annotations

import re
from xml.parsers import expat

from ..paths import PathLike
from ..text_files import UTF8, malformed, read_lines

LONGEST_LITERAL = 20_000  # characters
_TOO_LONG = f"a literal of more than {LONGEST_LITERAL:,} characters"
_TOO_LARGE = "a number whose exponent has more than 3 digits"
# What an XML file may call UTF-8; of other encodings, it can have ASCII characters only.
_ENCODINGS = ("utf-8", "us-ascii", "iso-8859-1")
_RDF_XML = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_LARGE_NUMBER = re.compile(r"\s*[+-]?[\d_.]+[eE][+-]?[\d_]{4,}\s*")
_ESCAPE = re.compile(r"\\u([\da-fA-F]{4})|\\U000([\da-fA-F]{5})")
# Where Turtle stops being names and marks: at an escape, a comment, an IRI or a literal.
_NOTABLE = re.compile(r"""[\\#<"']""")
_ENDS = {quote: re.compile(rf"\\.|{quote}", re.DOTALL) for quote in ('"', "'")}
# A long literal may end in quotes of its own.
_ENDS |= {quote * 3: re.compile(rf"\\.|{quote}{{3,5}}", re.DOTALL) for quote in ('"', "'")}


def read_rdf(path: PathLike, form: str, max_line_length: int) -> bytes:
    """The text in UTF-8; `form` is "turtle", "nt" or "xml"."""
    lines = []
    for number, line in read_lines(path, keep_ends=True, max_line_length=max_line_length):
        if form == "nt" and len(line) > LONGEST_LITERAL:  # it has one literal at most
            raise malformed(path, number, _TOO_LONG, line)
        lines.append(line)
    text = "".join(lines)
    data = text.encode(UTF8)
    if form == "xml":
        _XmlCheck(path).check(data)
    else:
        _check_turtle(path, text)  # N-Triples is a part of Turtle
    return data


def _check_turtle(path: PathLike, text: str) -> None:
    """Raise an error for a literal too long or large; anything else wrong is for rdflib to find."""
    at = 0
    while (found := _NOTABLE.search(text, at)) is not None:
        start, mark = found.start(), found[0]
        if mark == "\\":
            at = start + 2
        elif mark in "#<":
            at = text.find("\n" if mark == "#" else ">", start) + 1 or len(text)
        else:
            quote = mark * 3 if text.startswith(mark * 3, start) else mark
            at = _end_of_literal(text, start + len(quote), quote)
            problem = None
            if at - start > LONGEST_LITERAL:
                problem = _TOO_LONG
            elif text.startswith("^^", at):
                value = _ESCAPE.sub(_unescaped, text[start + len(quote) : at - len(quote)])
                problem = _TOO_LARGE if _LARGE_NUMBER.fullmatch(value) else None
            if problem is not None:
                line = 1 + text.count("\n", 0, start)
                raise malformed(path, line, problem, text[start : start + 100])


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1] or escape[2], 16))


def _end_of_literal(text: str, at: int, quote: str) -> int:
    for found in _ENDS[quote].finditer(text, at):
        if not found[0].startswith("\\"):
            return found.end()
    return len(text)


class _XmlCheck:
    """Raises an error for a document type and for literals that are too long or too large."""

    def __init__(self, path: PathLike) -> None:
        self._path = path
        self._line, self._n_characters = 1, 0  # of text without an element in between
        self._parts: list[str] | None = None  # of a text that has a type
        self._depth = 0
        # Of a literal of XML: its depth, its line and the byte that it begins at.
        self._literal: tuple[int, int, int] | None = None
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.XmlDeclHandler = self._declaration
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters

    def check(self, data: bytes) -> None:
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            problem = f"is not XML: {expat.ErrorString(error.code)}"
            raise malformed(self._path, error.lineno, problem) from None

    def _declaration(self, _: str, encoding: str | None, __: int) -> None:
        if (encoding or UTF8).lower() not in _ENCODINGS:
            problem = f"the encoding must be UTF-8. Got {encoding!r:.80}"
            raise malformed(self._path, 1, problem)

    def _doctype(self, *_: object) -> None:
        problem = (
            "a document type (DOCTYPE) is not read; other tools can convert the file to Turtle"
        )
        raise malformed(self._path, self._parser.CurrentLineNumber, problem)

    def _start(self, _: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._n_characters = 0
        self._parts = [] if f"{_RDF_XML} datatype" in attributes else None
        line = self._parser.CurrentLineNumber
        for value in attributes.values():
            self._check_length(len(value), line)
        if self._literal is None and attributes.get(f"{_RDF_XML} parseType") == "Literal":
            self._literal = self._depth, line, self._parser.CurrentByteIndex
        self._check_literal()

    def _end(self, _: str) -> None:
        self._check_literal()
        if self._parts is not None and _LARGE_NUMBER.fullmatch("".join(self._parts)):
            raise malformed(self._path, self._line, _TOO_LARGE)
        self._parts = None
        if self._literal is not None and self._literal[0] == self._depth:
            self._literal = None
        self._depth -= 1
        self._n_characters = 0

    def _characters(self, text: str) -> None:
        if self._n_characters == 0:
            self._line = self._parser.CurrentLineNumber
        self._n_characters += len(text)
        self._check_length(self._n_characters, self._line)
        if self._parts is not None:
            self._parts.append(text)

    def _check_literal(self) -> None:
        if self._literal is not None:
            _, line, start = self._literal
            self._check_length(self._parser.CurrentByteIndex - start, line)

    def _check_length(self, n_characters: int, line: int) -> None:
        if n_characters > LONGEST_LITERAL:
            raise malformed(self._path, line, _TOO_LONG)
