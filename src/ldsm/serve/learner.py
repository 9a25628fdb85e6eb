"""Corrections that are learned at once, in the order of their file.

Of all processes of a service, one learns a model: the one that holds its lock. How much of the file
of corrections a model has learned is noted in the model itself. So after a crash, or when another
model takes its place, the rest is learned again, and nothing twice.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from .._model.fitted import FittedModel
from .._model.learn import check_can_learn
from .._storage.atomic import sync_folder
from ..classifier import hold_model
from ..text import TextTagger
from .corrections import CorrectionFile, CorrectionReader, Document
from .models import ServedModel, Signature, opened, signature_of

log = logging.getLogger("ldsm.serve")
_LOOK_EVERY = 0.5  # seconds between two looks at files that other processes write
NOTE = "corrections_learned"  # how far, in the facts of a model's training


class Learner:
    """A thread that learns the corrections of a model and saves it now and then."""

    def __init__(self, model: ServedModel, file: CorrectionFile, save_every: float) -> None:
        self._model, self._save_every = model, save_every
        self._reader = CorrectionReader(file.path)
        self._end = 0  # of what is learned
        self._tagger: TextTagger | None = None
        self._signature: Signature | None = None
        self._refused: Signature | None = None  # of a file that cannot learn
        self._saved, self._saved_at = self._reader.note, time.monotonic()
        self._lock: int | None = None
        self._is_ours: bool | None = None  # the lock; None: not tried yet
        self._wake, self._stopped = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name=f"learn {model.name}", daemon=True)
        self._thread.start()

    @property
    def can_learn(self) -> bool:
        """Whether corrections are learned, here or by another process."""
        return self._refused is None

    def has_learned(self, end: int) -> bool:
        """Whether the file is learned so far, or will not be by this process."""
        self._wake.set()
        waits = self._is_ours is not False and self._refused is None and not self._stopped
        return not waits or self._end >= end

    def close(self) -> None:
        """Save what is learned and end."""
        self._stopped = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        told: str | None = None
        last = False
        while not last:
            last = self._stopped
            try:
                if self._is_ours or self._take_lock():
                    self._step()
                told = None
            except Exception as error:  # the thread must go on; what it cannot learn is on the disk
                if str(error) != told:
                    log.error("%s: corrections are not learned. %s", self._model.name, error)
                told = str(error)
            if not last:
                self._wake.wait(_LOOK_EVERY)
                self._wake.clear()
        if self._lock is not None:
            os.close(self._lock)

    def _take_lock(self) -> bool:
        lock = os.open(self._reader.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._lock, self._is_ours = lock, True
        except OSError:
            os.close(lock)
            self._is_ours = False
        return self._is_ours

    def _step(self) -> None:
        signature = signature_of(self._model.path)
        if signature == self._refused:
            return
        if self._tagger is None or self._signature != signature:
            self._open(signature)
        before = self._reader.note
        if documents := self._reader.read():
            self._learn(documents)
        if self._reader.note != before:
            log.info("%s: %d corrections learned", self._model.name, len(documents))
        self._end = self._reader.end
        due = self._stopped or time.monotonic() - self._saved_at >= self._save_every
        if self._reader.note != self._saved and due:
            self._save()

    def _open(self, signature: Signature) -> None:
        """The model of the file as it is, whoever has written it."""
        try:
            tagger = opened(self._model.path, to_learn=True)
            model = tagger.classifier_.model_
            check_can_learn(model)
        except ValueError:
            self._refused = signature  # until the file changes
            raise
        self._reader.go_to(model.training.get(NOTE))
        self._saved = self._reader.note
        self._tagger, self._signature, self._refused = tagger, signature, None
        self._model.put(tagger, signature)

    def _learn(self, documents: Sequence[Document]) -> None:
        assert self._tagger is not None and self._signature is not None
        try:
            self._tagger.partial_fit(documents)
        except Exception as error:
            if len(documents) == 1:
                log.error("%s: a correction was not learned. %s", self._model.name, error)
                return
            for document in documents:
                self._learn([document])
        else:
            self._model.put(self._tagger, self._signature)  # its labels may be others

    def _save(self) -> None:
        assert self._tagger is not None
        path = self._model.path
        _note(self._tagger, **{NOTE: self._reader.note})
        # Written beside it, because somebody may replace the model meanwhile.
        beside = path.with_name(f".{path.name}.learned")
        self._tagger.save(beside)
        if self._signature != signature_of(path):
            beside.unlink()
            return  # the next step takes the other one
        self._signature = signature_of(beside)
        os.replace(beside, path)
        sync_folder(str(path.parent))
        self._model.put(self._tagger, self._signature)
        self._saved, self._saved_at = self._reader.note, time.monotonic()
        log.info("%s: saved with the corrections learned", self._model.name)


def _note(tagger: TextTagger, **facts: Any) -> None:
    """Add facts to those of the training."""
    fitted = tagger.held
    model: FittedModel = fitted.classifier.model_
    model = replace(model, training={**model.training, **facts})
    tagger.hold(fitted._replace(classifier=hold_model(copy(fitted.classifier), model)))
