"""The models of a service: opened by name, and opened again when their file changes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path

from .._loading import load
from .._storage.container import ModelFileError
from .._storage.locks import Signature, signature_of
from ..text import TextTagger
from ..text.fitted import fitted_text
from .labels import LabelDirectory

log = logging.getLogger("ldsm.serve")


class NoSuchModel(KeyError):
    """There is no model of that name."""


class Opened:
    """A model as it is at one time."""

    def __init__(self, name: str, tagger: TextTagger, signature: Signature) -> None:
        self.name, self.tagger, self.signature = name, tagger, signature
        self.fitted = fitted_text(tagger)  # what it held then, even if it learns on

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

    The file is read into memory. When it changes, the next request gets the new model. A file that
    is damaged or cannot be loaded is logged once, and the last good model stays.
    """

    def __init__(self, name: str, path: Path, reloaded: Callable[[str], None]) -> None:
        self.name, self.path, self._reloaded = name, path, reloaded
        self.problem: str | None = None  # why the file as it is now was not taken
        self._lock = threading.Lock()
        self._refused: Signature | None = None
        signature = signature_of(path)
        self._opened = Opened(name, opened(path), signature)

    @property
    def last(self) -> Opened:
        """The model, without a look at the file."""
        return self._opened

    def is_current(self) -> bool:
        """Whether the file is the one that was opened, or last refused; takes no time."""
        try:
            return signature_of(self.path) in (self._opened.signature, self._refused)
        except OSError as error:
            self._refuse(f"{self.path} is gone: {error.strerror}", None)
            return True

    def current(self) -> Opened:
        """The model of the file as it is, reloaded if it has changed."""
        with self._lock:
            self._open_anew()
            return self._opened

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
                tagger = opened(self.path)
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


class Models:
    """All models of a service, by the names of their files."""

    def __init__(
        self,
        paths: Sequence[Path],
        reloaded: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._models: dict[str, ServedModel] = {}
        for path in paths:
            name = name_of(path)
            if name in self._models:
                raise ValueError(
                    f"The models of a service must have different names. Got {name!r} twice."
                )
            self._models[name] = ServedModel(name, path, reloaded)

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


def opened(path: Path) -> TextTagger:
    """The tagger of a file, ready to answer.

    It is read into memory: a program that writes into a mapped file can end the process.
    """
    model = load(path)
    if not isinstance(model, TextTagger):
        raise ValueError(f"A service needs models that read texts. {path} reads features.")
    model.predict(["ready"])  # makes what is made once
    return model
