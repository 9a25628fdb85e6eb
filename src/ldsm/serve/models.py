"""The models of a service, by name; reloaded when their file changes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from .._loading import load
from .._storage.container import ModelFileError
from .._storage.locks import Signature, signature_of
from ..text import TextTagger
from ..text.encoders.onnx import OnnxEncoder
from ..text.fitted import fitted_text
from ..text.tagger import give_encoder
from .labels import LabelDirectory
from .settings import Settings

log = logging.getLogger("ldsm.serve")
Encode = Callable[[list[str]], Any]


class NoSuchModel(KeyError):
    """There is no model with that name."""


class Opened:
    """A snapshot of a model."""

    def __init__(self, name: str, tagger: TextTagger, signature: Signature) -> None:
        self.name, self.tagger, self.signature = name, tagger, signature
        self.fitted = fitted_text(tagger)  # stays the same if the tagger learns

    @property
    def modified(self) -> datetime:
        """When the file was written."""
        return datetime.fromtimestamp(self.signature[0] / 1e9, timezone.utc)

    @property
    def version(self) -> str:
        """The time of writing in seconds, because versions must be numbers."""
        return str(self.signature[0] // 10**9)

    @cached_property
    def labels(self) -> LabelDirectory:
        """The searchable directory of tags."""
        return LabelDirectory.of(self.fitted)


class ServedModel:
    """A model file by name. A request calls `current` once and uses that snapshot.

    The file is read into memory. When it changes, the next request gets the new model. If the new
    file cannot be loaded, the error is logged once, and the last good model stays in use.
    """

    def __init__(
        self, name: str, path: Path, reloaded: Callable[[str], None], encoder: Encode | None = None
    ) -> None:
        self.name, self.path, self._reloaded, self._encoder = name, path, reloaded, encoder
        self.problem: str | None = None  # why the current file is not in use
        self._lock = threading.Lock()
        self._refused: Signature | None = None
        signature = signature_of(path)
        self._opened = Opened(name, self.load(), signature)

    def load(self) -> TextTagger:
        """The tagger of the file, ready to answer.

        It is read into memory, because a program that writes to a mapped file can crash the
        process.
        """
        model = load(self.path)
        if not isinstance(model, TextTagger):
            raise ValueError(f"A service needs models that read texts. {self.path} reads features.")
        if self._encoder is not None and fitted_text(model).encoder is not None:
            give_encoder(model, self._encoder)
        model.predict(["ready"])  # fills the caches
        return model

    @property
    def last(self) -> Opened:
        """The model, without checking the file."""
        return self._opened

    def is_current(self) -> bool:
        """Whether the file is unchanged since it was loaded or refused; takes no time."""
        try:
            return signature_of(self.path) in (self._opened.signature, self._refused)
        except OSError as error:
            self._refuse(f"{self.path} cannot be read: {error.strerror}", None)
            return True

    def current(self) -> Opened:
        """The model, reloaded if its file has changed."""
        with self._lock:
            self._reload_if_changed()
            return self._opened

    def put(self, tagger: TextTagger, signature: Signature) -> None:
        """Answer with another model from now on; the signature is that of its file."""
        with self._lock:
            self._opened = Opened(self.name, tagger, signature)
            self.problem = self._refused = None

    def _reload_if_changed(self) -> None:
        signature: Signature | None = None
        try:
            # Repeat if the file has changed while it was read.
            while signature != signature_of(self.path):
                signature = signature_of(self.path)
                if signature in (self._opened.signature, self._refused):
                    return
                tagger = self.load()
        except (ModelFileError, OSError, ValueError, MemoryError) as error:
            self._refuse(str(error), signature)
            return
        assert signature is not None
        self._opened = Opened(self.name, tagger, signature)
        self.problem = self._refused = None
        self._reloaded(self.name)
        log.info("%s: reloaded: file changed", self.name)

    def _refuse(self, problem: str, signature: Signature | None) -> None:
        if problem != self.problem:
            log.error("%s: keeping the last good model. %s", self.name, problem)
        self.problem, self._refused = problem, signature


class Models:
    """All models of a service, by name."""

    def __init__(
        self,
        paths: Sequence[Path],
        reloaded: Callable[[str], None] = lambda name: None,
        encoder: Encode | None = None,
    ) -> None:
        self._models: dict[str, ServedModel] = {}
        for path in paths:
            name = name_of(path)
            if name in self._models:
                raise ValueError(
                    f"The models of a service must have different names. Got {name!r} twice."
                )
            self._models[name] = ServedModel(name, path, reloaded, encoder)
        if encoder is not None and not any(model.last.fitted.encoder for model in self):
            raise ValueError("No model of the service was trained with an encoder.")

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    def __getitem__(self, name: str) -> ServedModel:
        try:
            return self._models[name]
        except KeyError:
            raise NoSuchModel(name) from None


def encoder_of(settings: Settings) -> OnnxEncoder | None:
    """The encoder of a service, which uses all processors for the texts of a batch."""
    return None if settings.encoder is None else OnnxEncoder(settings.encoder, n_jobs=-1)


def name_of(path: Path) -> str:
    """The name of a model."""
    return path.name.removesuffix(".ldsm")
