"""The models of a service: opened by name, and opened again when their file changes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path

from .._loading import load
from .._storage.container import ModelFileError, check
from .._storage.locks import Signature, signature_of
from ..text import TextTagger
from .labels import LabelDirectory

log = logging.getLogger("ldsm.serve")
# Larger models are mapped. A process must not rely on a mapped file: a program that writes into it
# can end the process.
READ_BYTES = 256_000_000


class NoSuchModel(KeyError):
    """There is no model of that name."""


class Overwritten(Exception):
    """A program has written into the file of a mapped model, and so changed the model."""


class Opened:
    """A model as it is at one time."""

    def __init__(self, name: str, tagger: TextTagger, signature: Signature) -> None:
        self.name, self.tagger, self.signature = name, tagger, signature
        self.fitted = tagger.held  # what it held then, even if it learns on

    def is_lost(self, now: Signature) -> bool:
        """Whether it is mapped, and its file, which is `now` so, was written to."""
        mapped = not self.fitted.classifier.model_.verified
        return mapped and now != self.signature and now[2] == self.signature[2]

    @property
    def modified(self) -> datetime:
        """When the file was written."""
        return datetime.fromtimestamp(self.signature[0] / 1e9, timezone.utc)

    @property
    def version(self) -> str:
        """When it was written, in seconds: versions are numbers."""
        return str(self.signature[0] // 10**9)

    @cached_property
    def labels(self) -> LabelDirectory:
        """The tags with their names, to search in."""
        return LabelDirectory.of(self.fitted)


class ServedModel:
    """A model file by name. A request takes `current` once, and keeps to it.

    A small file is read into memory. A large one is mapped, so that it is ready at once and several
    processes share it; `learns` says that it must not be. When the file changes, the next request
    gets the new model. A file that is damaged or cannot be loaded is logged once, and the last good
    model stays, unless it was mapped from this very file: then requests are refused.
    """

    def __init__(
        self, name: str, path: Path, reloaded: Callable[[str], None], *, learns: bool = False
    ) -> None:
        self.name, self.path, self._reloaded, self._learns = name, path, reloaded, learns
        self.problem: str | None = None  # why the file as it is now was not taken
        self._lock = threading.Lock()
        self._refused: Signature | None = None
        signature = signature_of(path)
        self._opened = Opened(name, self._open(signature), signature)

    def _open(self, signature: Signature) -> TextTagger:
        return opened(self.path, in_memory=self._in_memory(signature))

    def _in_memory(self, signature: Signature) -> bool:
        _, size, _ = signature
        return self._learns or size <= READ_BYTES

    def check_soon(self) -> None:
        """Check the sum of a mapped file, but not now: that of a large one takes a while."""
        if self._in_memory(self._opened.signature):
            return
        threading.Thread(target=self._check, args=(self._opened.signature,), daemon=True).start()

    @property
    def last(self) -> Opened:
        """The model, without a look at the file."""
        return self._opened

    def is_current(self) -> bool:
        """Whether the file is the one that was opened, or last refused; takes no time."""
        try:
            now = signature_of(self.path)
            return now == self._opened.signature or (
                now == self._refused and not self._opened.is_lost(now)
            )
        except OSError as error:
            self._refuse(f"{self.path} is gone: {error.strerror}", None)
            return True

    def current(self) -> Opened:
        """The model of the file as it is, reloaded if it has changed."""
        with self._lock:
            self._open_anew()
            last = self._opened
        with suppress(FileNotFoundError):
            if last.is_lost(signature_of(self.path)):
                raise Overwritten
        return last

    def put(self, tagger: TextTagger, signature: Signature) -> None:
        """Answer by another model from now on, which belongs to the file of this signature."""
        with self._lock:
            self._opened = Opened(self.name, tagger, signature)
            self.problem = self._refused = None

    def _open_anew(self) -> None:
        signature: Signature | None = None
        try:
            # Until the file has not changed while it was read: another may replace it any time.
            while signature != signature_of(self.path):
                signature = signature_of(self.path)
                if signature in (self._opened.signature, self._refused):
                    return
                if not self._in_memory(signature):
                    check(self.path)
                tagger = self._open(signature)
        except (ModelFileError, OSError, ValueError, MemoryError) as error:
            self._refuse(str(error), signature)
            return
        assert signature is not None
        self._opened = Opened(self.name, tagger, signature)
        self.problem = self._refused = None
        self._reloaded(self.name)
        log.info("%s: reloaded, because its file has changed", self.name)

    def _refuse(self, problem: str, signature: Signature | None) -> None:
        if problem != self.problem:
            log.error("%s: the last good model stays. %s", self.name, problem)
        self.problem, self._refused = problem, signature

    def _check(self, signature: Signature) -> None:
        try:
            check(self.path)
        except (ModelFileError, OSError) as error:
            if signature_of(self.path) == signature:
                self.problem = str(error)
                log.error("%s: its answers may be wrong. %s", self.name, error)


class Models:
    """All models of a service, by the names of their files."""

    def __init__(
        self,
        paths: Sequence[Path],
        reloaded: Callable[[str], None] = lambda name: None,
        *,
        learn: bool = False,
    ) -> None:
        self._models: dict[str, ServedModel] = {}
        for path in paths:
            name = name_of(path)
            if name in self._models:
                raise ValueError(
                    f"The models of a service must have different names. Got {name!r} twice."
                )
            self._models[name] = ServedModel(name, path, reloaded, learns=learn)

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    def __getitem__(self, name: str) -> ServedModel:
        try:
            return self._models[name]
        except KeyError:
            raise NoSuchModel(name) from None


def name_of(path: Path) -> str:
    """What a model is called."""
    return path.name.removesuffix(".ldsm")


def opened(path: Path, *, in_memory: bool = False) -> TextTagger:
    """The tagger of a file, ready to answer; `in_memory` or mapped."""
    model = load(path, verify=in_memory)
    if not isinstance(model, TextTagger):
        raise ValueError(f"A service needs models that read texts. {path} reads features.")
    model.predict(["ready"])  # makes what is made once
    return model
