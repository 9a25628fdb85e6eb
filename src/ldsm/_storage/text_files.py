"""Read and write text files, compressed or not."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import IO, Any, cast

from .._runtime.wording import argument
from .atomic import atomic_file
from .paths import PathLike, printable

UTF8 = "utf-8"
_BOM = b"\xef\xbb\xbf"
BLOCK_BYTES = 8 << 20


def format_suffix(path: PathLike) -> str:
    """The suffix that tells the format, in lower case: ``.csv`` for ``a.CSV.gz``."""
    root, suffix = os.path.splitext(os.fspath(path).lower())
    return os.path.splitext(root)[1] if suffix in (".gz", ".bz2") else suffix


@contextmanager
def reading(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a plain, ``.gz`` or ``.bz2`` file; damaged compression becomes a ValueError."""
    suffix = os.path.splitext(os.fspath(path).lower())[1]
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(suffix, open)
    try:
        with opener(path, "rb") as file:
            yield file
    except (EOFError, zlib.error, OSError) as error:
        # Decompressors raise an OSError without a number; errors of the system have one.
        if isinstance(error, OSError) and (error.errno is not None or opener is open):
            raise
        raise ValueError(f"{printable(path)}: the compressed data is damaged: {error}") from error


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


def read_blocks(file: IO[bytes], size: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The file in blocks of whole lines, about `size` bytes each; at least one block."""
    pieces: list[bytes] = []
    data = file.read(size).removeprefix(_BOM)
    empty = True
    while data:
        cut = data.rfind(b"\n") + 1
        if cut:
            yield b"".join([*pieces, data[:cut]])
            pieces, empty = [], False
        pieces.append(data[cut:])
        data = file.read(size)
    rest = b"".join(pieces)
    if rest or empty:
        yield rest


def read_lines(
    path: PathLike, *, keep_ends: bool = False, encoding: str = UTF8
) -> Iterator[tuple[int, str]]:
    """Numbered lines of text, without their line ends unless asked for."""
    check_encoding(encoding)
    with reading(path) as file:
        lines = _utf8_lines(path, file) if encoding == UTF8 else _lines(path, file, encoding)
        with closing(lines):  # before the file, also if not all of it is read
            for number, text in enumerate(lines, start=1):
                yield number, text if keep_ends else text.removesuffix("\n").removesuffix("\r")


def _utf8_lines(path: PathLike, file: IO[bytes]) -> Generator[str]:
    for number, line in enumerate(file, start=1):
        if number == 1:
            line = line.removeprefix(_BOM)
        try:
            yield line.decode(UTF8)
        except UnicodeDecodeError as error:
            wide = number == 1 and line.startswith((b"\xff\xfe", b"\xfe\xff"))
            other = "utf-16" if wide else "latin-1"
            remedy = f"try {argument('encoding', other)}"
            raise malformed(path, number, f"is not UTF-8: {error.reason}; {remedy}", line) from None


def _lines(path: PathLike, file: IO[bytes], encoding: str) -> Generator[str]:
    number = 0
    text = io.TextIOWrapper(file, encoding=encoding, newline="\n")
    try:
        for line in text:
            number += 1
            yield line
    except UnicodeError as error:
        raise malformed(path, number + 1, f"is not {encoding}: {error}") from None
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
