"""Read and write text files, compressed or not."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import IO, Any, cast

from .._wording import argument
from .atomic import atomic_file
from .paths import PathLike, printable

UTF8 = "utf-8"
_BOM = b"\xef\xbb\xbf"
# More than a long book has. Parsed JSON may take 25 times the size of its text.
MAX_LINE_LENGTH = 4 << 20
_PIECE_BYTES = 1 << 16
# Texts are packed 3 to 50 times; gzip cannot do more than 1,032 times, but bzip2 a million.
MOST_TIMES = 200
_UNCHECKED_BYTES = 1 << 20
_UNPACKERS: dict[str, Any] = {".gz": lambda file: gzip.GzipFile(fileobj=file), ".bz2": bz2.BZ2File}

Piece = tuple[int, str]  # the number of its line; a line with its end, or a part of a line


def format_suffix(path: PathLike) -> str:
    """The suffix that tells the format, in lower case: ``.csv`` for ``a.CSV.gz``."""
    root, suffix = os.path.splitext(os.fspath(path).lower())
    return os.path.splitext(root)[1] if suffix in (".gz", ".bz2") else suffix


@contextmanager
def reading(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a plain, ``.gz`` or ``.bz2`` file; damaged compression becomes a ValueError."""
    suffix = os.path.splitext(os.fspath(path).lower())[1]
    opener = _UNPACKERS.get(suffix)
    try:
        with open(path, "rb") as file:
            if opener is None:
                yield file
            else:
                packed = _Counted(file)
                with opener(packed) as unpacked:
                    yield io.BufferedReader(_Bounded(unpacked, packed), _PIECE_BYTES)
    except (EOFError, zlib.error, OSError) as error:
        # Decompressors raise an OSError without a number; errors of the system have one.
        if isinstance(error, OSError) and (error.errno is not None or opener is None):
            raise
        raise ValueError(f"{printable(path)}: the compressed data is damaged: {error}") from error


class _Swollen(ValueError):
    """Compressed data that unpacks to far more than any data does."""


class _Counted:
    """A file that counts the bytes read from it: a pipe has no position."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.n_bytes = file, 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.n_bytes += len(data)
        return data


class _Bounded(io.RawIOBase):
    """Unpacked data, as long as it is in proportion to what was read of the file."""

    def __init__(self, unpacked: IO[bytes], packed: _Counted) -> None:
        self._unpacked, self._packed, self._n_bytes = unpacked, packed, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._unpacked.read(len(buffer))
        buffer[: len(data)] = data
        self._n_bytes += len(data)
        if self._n_bytes > max(_UNCHECKED_BYTES, MOST_TIMES * self._packed.n_bytes):
            raise _Swollen(
                f"the file unpacks to more than {MOST_TIMES} times its size; if that is right, "
                "unpack it first"
            )
        return len(data)


@contextmanager
def writing(path: PathLike) -> Iterator[IO[bytes]]:
    """Write a plain, ``.gz`` or ``.bz2`` file, completely or not at all."""
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as file:  # a pipe or a terminal: nothing to replace
            yield file
        return
    with atomic_file(path) as raw:
        suffix = os.path.splitext(target.lower())[1]
        if suffix == ".gz":
            # Without name and time, so that the same data gives the same file.
            with gzip.GzipFile("", "wb", 6, raw, mtime=0) as zipped:
                yield cast("IO[bytes]", zipped)
        elif suffix == ".bz2":
            with bz2.BZ2File(raw, "wb") as squeezed:
                yield cast("IO[bytes]", squeezed)
        else:
            yield raw


def read_blocks(
    path: PathLike, file: IO[bytes], size: int, max_line_length: int
) -> Iterator[bytes]:
    """An open file in blocks of whole lines, about `size` bytes each; at least one block."""
    pieces: list[bytes] = []
    number = 1  # of the first line that is not in a block yet
    empty = True
    try:
        data = file.read(size).removeprefix(_BOM)
        while data:
            cut = data.rfind(b"\n") + 1
            if cut:
                block = b"".join([*pieces, data[:cut]])
                _check_lines(path, block, number, max_line_length)
                number += block.count(b"\n")
                yield block
                pieces, empty = [], False
            pieces.append(data[cut:])
            if sum(map(len, pieces)) > max_line_length:
                raise _too_long(path, number, max_line_length, pieces[0])
            data = file.read(size)
    except _Swollen as error:
        raise malformed(path, number, str(error)) from None
    rest = b"".join(pieces)
    if rest or empty:
        yield rest


def _check_lines(path: PathLike, block: bytes, number: int, max_line_length: int) -> None:
    """Raise an error for a line that is too long, in steps of as many bytes as a line may have."""
    start = 0
    while len(block) - start > max_line_length + 1:
        end = block.rfind(b"\n", start, start + max_line_length + 1)
        if end < 0:
            line = number + block.count(b"\n", 0, start)
            raise _too_long(path, line, max_line_length, block[start : start + 100])
        start = end + 1


def read_lines(
    path: PathLike,
    *,
    keep_ends: bool = False,
    encoding: str = UTF8,
    max_line_length: int = MAX_LINE_LENGTH,
) -> Iterator[tuple[int, str]]:
    """Numbered lines of text, without their line ends unless asked for."""
    lines = whole_lines(path, read_pieces(path, encoding), max_line_length)
    if keep_ends:
        return lines
    return ((number, text.removesuffix("\n").removesuffix("\r")) for number, text in lines)


def whole_lines(
    path: PathLike, pieces: Iterable[Piece], max_line_length: int
) -> Iterator[tuple[int, str]]:
    """Lines with their ends, from the pieces of a text."""
    parts: list[str] = []
    length = 0
    for number, piece in pieces:
        ends = piece.endswith("\n")
        length += len(piece) - ends
        if length > max_line_length:
            raise _too_long(path, number, max_line_length, (parts or [piece])[0])
        if ends:
            yield number, "".join([*parts, piece]) if parts else piece
            parts, length = [], 0
        else:
            parts.append(piece)
    if parts:
        yield number, "".join(parts)


def read_pieces(path: PathLike, encoding: str = UTF8) -> Iterator[Piece]:
    """A text as lines, or as parts of long ones, each with the number of its line."""
    check_encoding(encoding)
    number = 1
    with reading(path) as file:
        texts = _utf8_pieces(path, file) if encoding == UTF8 else _pieces(path, file, encoding)
        with closing(texts):  # before the file, also if not all of it is read
            try:
                for text in texts:
                    yield number, text
                    number += text.endswith("\n")
            except _Swollen as error:
                raise malformed(path, number, str(error)) from None


def _utf8_pieces(path: PathLike, file: IO[bytes]) -> Generator[str]:
    number, left = 1, b""
    data = file.readline(_PIECE_BYTES).removeprefix(_BOM)
    while data:
        data, more = left + data, file.readline(_PIECE_BYTES)
        try:
            text, left = data.decode(UTF8), b""
        except UnicodeDecodeError as error:
            # A piece may end within a character.
            if not more or data.endswith(b"\n") or len(data) - error.start > 3:
                wide = number == 1 and data.startswith((b"\xff\xfe", b"\xfe\xff"))
                remedy = f"try {argument('encoding', 'utf-16' if wide else 'latin-1')}"
                problem = f"is not UTF-8: {error.reason}; {remedy}"
                raise malformed(path, number, problem, data) from None
            text, left = data[: error.start].decode(UTF8), data[error.start :]
        yield text
        number += text.endswith("\n")
        data = more


def _pieces(path: PathLike, file: IO[bytes], encoding: str) -> Generator[str]:
    number = 1
    text = io.TextIOWrapper(file, encoding=encoding, newline="\n")
    try:
        while piece := text.readline(_PIECE_BYTES):
            yield piece
            number += piece.endswith("\n")
    except UnicodeError as error:
        raise malformed(path, number, f"is not {encoding}: {error}") from None
    finally:
        text.detach()  # the file is not ours to close


def check_encoding(encoding: str) -> None:
    """Raise a ValueError unless Python knows the encoding as one of text."""
    try:
        known = isinstance(encoding, str) and "".encode(encoding) is not None
    except (LookupError, ValueError):
        known = False
    if not known:
        raise ValueError(
            "encoding must be one that Python knows, such as utf-8, utf-16 or latin-1. "
            f"Got {encoding!r}."
        )


def malformed(path: PathLike, line: int, problem: str, text: str | bytes = "") -> ValueError:
    """The error for a malformed line: file, line number, problem and shortened text."""
    shown = text if isinstance(text, str) else text.decode("utf-8", "backslashreplace")
    if shown:
        problem += f". The line: {shown[:80]!r}" + (" (shortened)" if len(shown) > 80 else "")
    return ValueError(f"{printable(path)}:{line}: {problem}")


def _too_long(path: PathLike, line: int, most: int, text: str | bytes) -> ValueError:
    problem = f"a line of more than {most:,} characters; {argument('max_line_length')} allows more"
    return malformed(path, line, problem, text[:100])
