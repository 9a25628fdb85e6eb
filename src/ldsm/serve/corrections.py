"""Corrections: texts with their right tags, kept in a JSON Lines file that `ldsm learn` reads.

A correction is acknowledged only after it is on the disk: whatever happens to the process then, it
is not lost. Several processes may append to one file.
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

log = logging.getLogger("ldsm.serve")
_COMPARED = 1000  # bytes before the place of a reader, by which it knows the file again
_MOST_NOTES = 100  # in a model; older ones are dropped
Document = tuple[str, list[str]]  # a text and its tags
Note = dict[str, Any]  # the bytes of the beginning of a file, and their hash


class OddFile(OSError):
    """Something else than a file of its own has the name of a file of corrections."""


class CorrectionFile:
    """A file of corrections, to append to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, model: Path, folder: Path | None) -> CorrectionFile:
        """The file of a model, in the folder or beside the model."""
        name = model.name.removesuffix(".ldsm")
        return cls((folder or model.parent) / f"{name}.corrections.jsonl")

    def check(self) -> None:
        """Raise an OddFile if something else than a file of its own has the name."""
        with suppress(FileNotFoundError):
            _check_kind(self.path, os.lstat(self.path))

    def append(self, documents: Sequence[Document]) -> int:
        """Write documents and wait until they are on the disk; the place behind them."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        # By the ids, files differ even if the same is sent to two of them.
        records = [
            {"text": text, "labels": tags, "when": now, "id": secrets.token_hex(8)}
            for text, tags in documents
        ]
        data = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
        with self._open() as descriptor:
            end = os.fstat(descriptor).st_size
            start = _end_of_lines(descriptor, end)
            rest = os.pread(descriptor, end - start, start)
            if rest and _document(rest) is not None:
                start, data = end, b"\n" + data  # written by hand, without a line end
            elif rest:
                self._keep_aside(rest)
            try:
                os.ftruncate(descriptor, start)
                _write_at(descriptor, start, data)
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, start)  # the disk is full: nothing half-written stays
                raise
        if start == 0:
            sync_folder(str(self.path.parent))
        return start + len(data)

    def _keep_aside(self, line: bytes) -> None:
        """Append the beginning of a line, which would spoil the file, to a file beside it."""
        beside = CorrectionFile(self.path.with_suffix(".broken"))
        with beside._open() as descriptor:
            _write_at(descriptor, os.fstat(descriptor).st_size, line + b"\n")
            os.fsync(descriptor)
        sync_folder(str(self.path.parent))
        log.warning(
            "%s: its last line, %d bytes, was cut off or is no correction. It was moved to %s.",
            self.path,
            len(line),
            beside.path.name,
        )

    @contextmanager
    def _open(self) -> Iterator[int]:
        """The file, which nobody else writes to meanwhile."""
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
    """Reads a file of corrections from where it stopped.

    Notes say how far files were read, by their contents: a model that learns the files of several
    services has a note of each.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._others: list[Note] = []  # of other files
        self._restart()

    @property
    def notes(self) -> list[Note]:
        """How far this and other files have been read, for another reader; this one is last."""
        return (self._others + ([self._note] if self.end else []))[-_MOST_NOTES:]

    @property
    def _note(self) -> Note:
        return {"bytes": self.end, "sha256": self._digest.hexdigest()}

    def go_to(self, notes: Any) -> None:
        """Resume behind the longest beginning of the file that has a note, or at its start.

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
        """The documents that have come since; lines that hold none are logged."""
        with self._open() as descriptor:
            if descriptor is None:
                return []
            if os.pread(descriptor, len(self._last), self.end - len(self._last)) != self._last:
                self.go_to(self.notes)  # another file has taken its place
            end = _end_of_lines(descriptor, os.fstat(descriptor).st_size)
            data = os.pread(descriptor, end - self.end, self.end) if end > self.end else b""
        documents = []
        for number, line in enumerate(data.splitlines(), self._line + 1):
            if (document := _document(line)) is not None:
                documents.append(document)
            else:
                log.error("%s, line %d is no correction, and is passed over.", self.path, number)
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
        """The file, if there is one, while nobody writes to it."""
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
    """A descriptor of a file of its own: a link could lead to any file, and a pipe never ends."""
    try:
        # Without O_NONBLOCK, a pipe would be waited for.
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
        problem = "has a second name, a hard link"
    else:
        return
    text = f"Corrections need a file of their own, but this {problem}"
    raise OddFile(errno.EINVAL, text, str(path))


def _write_at(descriptor: int, start: int, data: bytes) -> None:
    done = 0
    while done < len(data):
        done += os.pwrite(descriptor, data[done:], start + done)


def _document(line: bytes) -> Document | None:
    """The correction of a line, if it holds one."""
    try:
        record = json.loads(line)
        text, tags = record["text"], record["labels"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    if type(text) is not str or type(tags) is not list or not all(type(t) is str for t in tags):
        return None
    return text, tags


def _end_of_lines(descriptor: int, end: int) -> int:
    """The place behind the last whole line before `end`."""
    step = 4096
    while end > 0:
        start = max(0, end - step)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
