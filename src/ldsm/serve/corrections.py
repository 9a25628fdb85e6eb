"""Corrections: texts with their correct tags, saved in a JSON Lines file that `ldsm learn` reads.

A correction is acknowledged only after it is on disk, so a crash cannot lose it. Several processes
may append to one file.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any

from .._storage.atomic import sync_folder
from .._storage.locks import is_at
from ..datasets.documents.corrections import FIELDS

log = logging.getLogger("ldsm.serve")
_COMPARED = 1000  # bytes before a reader's position, to recognise the file
_MAX_NOTES = 100  # in a model; older ones are dropped
Document = tuple[str, list[str]]  # a text and its tags
Note = dict[str, Any]  # the length of a beginning of a file, and its hash


class NotRegularFile(OSError):
    """The path of a correction file is not a regular file with a single name."""


class CorrectionFile:
    """A correction file, to append to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, model: Path, folder: Path | None) -> CorrectionFile:
        """The correction file of a model, in the folder or next to the model."""
        name = model.name.removesuffix(".ldsm")
        return cls((folder or model.parent) / f"{name}.corrections.jsonl")

    def check(self) -> None:
        """Raise NotRegularFile if the path is something else, such as a link or a pipe."""
        with suppress(FileNotFoundError):
            _check_kind(self.path, os.lstat(self.path))

    def append(self, documents: Sequence[Document]) -> int:
        """Write documents, wait until they are on disk, and return the end of the file."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        # The ids make files differ even if they get the same corrections.
        records = [
            dict(zip(FIELDS, (text, tags, now, secrets.token_hex(8)), strict=True))
            for text, tags in documents
        ]
        data = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
        with self._open() as descriptor:
            end = os.fstat(descriptor).st_size
            start = _end_of_lines(descriptor, end)
            rest = os.pread(descriptor, end - start, start)
            if rest and _document(rest) is not None:
                start, data = end, b"\n" + data  # edited by hand, without a final newline
            elif rest:
                self._keep_aside(rest)
            try:
                os.ftruncate(descriptor, start)
                _write_at(descriptor, start, data)
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, start)  # the disk is full: remove the partial line
                raise
        if start == 0:
            sync_folder(str(self.path.parent))
        return start + len(data)

    def _keep_aside(self, line: bytes) -> None:
        """Move an incomplete line, which would corrupt the file, to a file next to it."""
        broken = CorrectionFile(self.path.with_suffix(".broken"))
        with broken._open() as descriptor:
            _write_at(descriptor, os.fstat(descriptor).st_size, line + b"\n")
            os.fsync(descriptor)
        sync_folder(str(self.path.parent))
        log.warning(
            "%s: the last line (%d bytes) is incomplete or invalid; moved to %s",
            self.path,
            len(line),
            broken.path.name,
        )

    @contextmanager
    def _open(self) -> Iterator[int]:
        """The file, locked for writing."""
        while True:
            descriptor = _opened(self.path, os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if is_at(descriptor, self.path):
                    yield descriptor
                    return
            finally:
                os.close(descriptor)


class CorrectionReader:
    """Reads new corrections from a file.

    Notes record how far each file was read, by content. A model that learns from several services
    has one note per file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._others: list[Note] = []  # of other files
        self._restart()

    @property
    def notes(self) -> list[Note]:
        """How far this and other files have been read, for another reader; this file is last."""
        return (self._others + ([self._note] if self.end else []))[-_MAX_NOTES:]

    @property
    def _note(self) -> Note:
        return {"bytes": self.end, "sha256": self._digest.hexdigest()}

    def go_to(self, notes: Any) -> None:
        """Resume after the longest beginning of the file that has a note, or at its start.

        `notes` may come from any model file. Earlier versions had a single one.
        """
        notes = [note for note in (notes if type(notes) is list else [notes]) if _is_note(note)]
        self._restart()
        self._others = notes
        with self._open() as descriptor:
            if descriptor is None:
                return
            size = os.fstat(descriptor).st_size
            reader = CorrectionReader(self.path)
            for note in sorted(notes, key=lambda one: one["bytes"]):
                if note["bytes"] > size:
                    break
                reader._pass(os.pread(descriptor, note["bytes"] - reader.end, reader.end))
                if reader._note == note:
                    self._others = [one for one in notes if one != note]
                    self._take_place(reader)

    def read(self) -> list[Document]:
        """The new documents; invalid lines are logged."""
        with self._open() as descriptor:
            if descriptor is None:
                return []
            if os.pread(descriptor, len(self._last), self.end - len(self._last)) != self._last:
                self.go_to(self.notes)  # the file was replaced
            end = _end_of_lines(descriptor, os.fstat(descriptor).st_size)
            data = os.pread(descriptor, end - self.end, self.end) if end > self.end else b""
        documents = []
        for number, line in enumerate(data.splitlines(), self._line + 1):
            if (document := _document(line)) is not None:
                documents.append(document)
            else:
                log.error("%s, line %d is not a correction; skipped", self.path, number)
        self._pass(data)
        return documents

    def _restart(self) -> None:
        self.end, self._line, self._digest, self._last = 0, 0, sha256(), b""

    def _take_place(self, other: CorrectionReader) -> None:
        self.end, self._line, self._last = other.end, other._line, other._last
        self._digest = other._digest.copy()

    def _pass(self, data: bytes) -> None:
        self._last = (self._last + data)[-_COMPARED:]
        self.end += len(data)
        self._line += data.count(b"\n")
        self._digest.update(data)

    @contextmanager
    def _open(self) -> Iterator[int | None]:
        """The file, if it exists, locked against writers."""
        try:
            descriptor = _opened(self.path, os.O_RDONLY)
        except FileNotFoundError:
            yield None
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            yield descriptor
        finally:
            os.close(descriptor)


def _is_note(value: Any) -> bool:
    n_bytes = value.get("bytes") if type(value) is dict else None
    return type(n_bytes) is int and n_bytes > 0 and type(value.get("sha256")) is str


def _opened(path: Path, flags: int) -> int:
    """A descriptor of a regular file: a link could lead to any file, and a pipe never ends."""
    try:
        # Without O_NONBLOCK, opening a pipe would block.
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError:
        with suppress(FileNotFoundError):
            _check_kind(path, os.lstat(path))
        raise
    try:
        _check_kind(path, os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _check_kind(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        problem = "is a symbolic link" if stat.S_ISLNK(status.st_mode) else "is not a regular file"
    elif status.st_nlink > 1:
        problem = "has more than one hard link"
    else:
        return
    text = f"Corrections need a regular file, but this {problem}"
    raise NotRegularFile(errno.EINVAL, text, str(path))


def _write_at(descriptor: int, start: int, data: bytes) -> None:
    done = 0
    while done < len(data):
        done += os.pwrite(descriptor, data[done:], start + done)


def _document(line: bytes) -> Document | None:
    """The correction on a line, if it is valid."""
    try:
        record = json.loads(line)
        text, tags = record["text"], record["labels"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    if type(text) is not str or type(tags) is not list or not all(type(t) is str for t in tags):
        return None
    return text, tags


def _end_of_lines(descriptor: int, end: int) -> int:
    """The offset after the last complete line before `end`."""
    step = 4096
    while end > 0:
        start = max(0, end - step)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
