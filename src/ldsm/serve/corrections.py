"""Corrections: texts with their right tags, kept in a JSON Lines file that `ldsm learn` reads.

A correction is acknowledged only after it is on the disk: whatever happens to the process then, it
is not lost. Several processes may append to one file.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any

from .._storage.atomic import sync_folder

log = logging.getLogger("ldsm.serve")
_COMPARED = 1000  # bytes before the place of a reader, by which it knows the file again
Document = tuple[str, list[str]]  # a text and its tags


class CorrectionFile:
    """A file of corrections, to append to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, documents: Sequence[Document]) -> int:
        """Write documents and wait until they are on the disk; the place behind them."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        records = [{"text": text, "labels": tags, "when": now} for text, tags in documents]
        lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
        with self._open() as descriptor:
            end = os.fstat(descriptor).st_size
            start = _end_of_lines(descriptor, end)
            data = "".join(lines).encode()
            if _document(os.pread(descriptor, end - start, start)) is not None:
                start, data = end, b"\n" + data  # somebody has written a line without its end
            try:
                # A line that was cut off has not been acknowledged: its writer is dead, because
                # writers wait for each other.
                os.ftruncate(descriptor, start)
                done = 0
                while done < len(data):
                    done += os.pwrite(descriptor, data[done:], start + done)
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, start)  # the disk is full: nothing half-written stays
                raise
        if start == 0:
            sync_folder(str(self.path.parent))
        return start + len(data)

    @contextmanager
    def _open(self) -> Iterator[int]:
        """The file, which nobody else writes to meanwhile."""
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if _is_at(descriptor, self.path):
                    yield descriptor
                    return
            finally:
                os.close(descriptor)


class CorrectionReader:
    """Reads on in a file of corrections, from where it was."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.end, self._line, self._digest, self._last = 0, 0, sha256(), b""

    @property
    def note(self) -> dict[str, Any]:
        """How far it has read, for another reader."""
        return {"bytes": self.end, "sha256": self._digest.hexdigest()}

    def go_to(self, note: Any) -> None:
        """Go on behind what a note tells of; at the beginning, if the file has another one."""
        self.end, self._line, self._digest, self._last = 0, 0, sha256(), b""
        n_bytes = note.get("bytes") if type(note) is dict else None
        if type(n_bytes) is not int or n_bytes <= 0:
            return
        with self._open() as descriptor:
            if descriptor is None or os.fstat(descriptor).st_size < n_bytes:
                return
            data = os.pread(descriptor, n_bytes, 0)
            if sha256(data).hexdigest() == note.get("sha256"):
                self._pass(data)

    def read(self) -> list[Document]:
        """The documents that have come since; lines that hold none are told of."""
        with self._open() as descriptor:
            if descriptor is None:
                return []
            if os.pread(descriptor, len(self._last), self.end - len(self._last)) != self._last:
                self.go_to(None)  # it was begun anew
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

    def _pass(self, data: bytes) -> None:
        self._last = (self._last + data)[-_COMPARED:]
        self.end += len(data)
        self._line += data.count(b"\n")
        self._digest.update(data)

    @contextmanager
    def _open(self) -> Iterator[int | None]:
        """The file, if there is one, while nobody writes to it."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            yield None
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            yield descriptor
        finally:
            os.close(descriptor)


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


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the file is still there by that name: it may have been moved away meanwhile."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


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
