"""Learn corrections as they arrive, in file order.

Of all processes that share a correction file, only the one that holds its lock learns. A model is
saved under its own lock. If another process has replaced it in the meantime, the new model learns
the missing corrections and is saved. The model itself records how far it has learned each
correction file. So after a crash, or when the model is replaced, nothing is lost or learned twice.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from copy import copy
from typing import Any

from .._model.learn import check_can_learn
from .._storage.locks import FileLocked, FileReplaced, Signature, locked, signature_of
from ..classifier import hold_model
from ..text import TextTagger
from ..text.fitted import fitted_text, hold_text
from .corrections import CorrectionFile, CorrectionReader, Document
from .models import ServedModel

log = logging.getLogger("ldsm.serve")
_LOOK_EVERY = 0.5  # seconds between two checks of files that other processes write
_PATIENCE = 5.0  # seconds to wait at shutdown for a process that is changing the model
NOTE = "corrections_learned"  # key in the training facts of a model


class Learner:
    """A thread that learns the corrections of a model and saves it periodically."""

    def __init__(self, model: ServedModel, file: CorrectionFile, save_every: float) -> None:
        self._model, self._save_every = model, save_every
        self._reader = CorrectionReader(file.path)
        self._end = 0  # offset up to which corrections are learned
        self._tagger: TextTagger | None = None
        self._signature: Signature | None = None
        self._refused: Signature | None = None  # of a file that cannot learn
        self._saved, self._saved_at = self._reader.notes, time.monotonic()
        self._has_lock: bool | None = None  # on the correction file; None: not tried yet
        self._wake, self._stopped = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name=f"learn {model.name}", daemon=True)
        self._thread.start()

    @property
    def can_learn(self) -> bool:
        """Whether corrections are learned, here or by another process."""
        return self._refused is None

    def has_learned(self, end: int) -> bool:
        """Whether corrections up to `end` are learned, or will not be by this process."""
        self._wake.set()
        waits = self._has_lock is not False and self._refused is None and not self._stopped
        return not waits or self._end >= end

    def close(self) -> None:
        """Save the model and stop."""
        self._stopped = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        last_error: str | None = None
        last = False
        with ExitStack() as held:
            while not last:
                last = self._stopped
                try:
                    if self._has_lock or self._acquire(held):
                        self._step()
                    last_error = None
                except Exception as error:  # the corrections are on disk, so keep running
                    if str(error) != last_error:
                        log.error("%s: cannot learn corrections. %s", self._model.name, error)
                    last_error = str(error)
                if not last:
                    self._wake.wait(_LOOK_EVERY)
                    self._wake.clear()

    def _acquire(self, held: ExitStack) -> bool:
        """Try to lock the correction file, so that only this process learns from it."""
        try:
            held.enter_context(locked(self._reader.path, timeout=0))
            self._has_lock = True
        except FileLocked:
            self._has_lock = False
        return self._has_lock

    def _step(self) -> None:
        if not self._catch_up():
            return
        due = self._stopped or time.monotonic() - self._saved_at >= self._save_every
        if self._reader.notes != self._saved and due:
            self._save()

    def _catch_up(self) -> bool:
        """Learn new corrections with the model in the file; False if it cannot learn."""
        signature = signature_of(self._model.path)
        if signature == self._refused:
            return False
        if self._tagger is None or self._signature != signature:
            self._open(signature)
        if documents := self._reader.read():
            n_learned = self._learn(documents)
            if n_learned:
                log.info("%s: %d corrections learned", self._model.name, n_learned)
        self._end = self._reader.end
        return True

    def _open(self, signature: Signature) -> None:
        """Load the current model file, also if another process has written it."""
        try:
            tagger = self._model.load()
            model = tagger.classifier_.model_
            check_can_learn(model)
        except ValueError:
            self._refused = signature  # until the file changes
            raise
        self._reader.go_to(model.training.get(NOTE))
        self._saved = self._reader.notes
        self._tagger, self._signature, self._refused = tagger, signature, None
        self._model.put(tagger, signature)

    def _learn(self, documents: Sequence[Document]) -> int:
        """Learn documents and return how many were learned."""
        assert self._tagger is not None and self._signature is not None
        try:
            self._tagger.partial_fit(documents)
        except Exception as error:
            if len(documents) == 1:
                log.error("%s: cannot learn a correction. %s", self._model.name, error)
                return 0
            return sum(self._learn([document]) for document in documents)
        self._model.put(self._tagger, self._signature)  # its labels may have changed
        return len(documents)

    def _save(self) -> None:
        path = self._model.path
        patience = _PATIENCE if self._stopped else 0
        try:
            with locked(path, changes=True, timeout=patience) as lock:
                # Another process may have replaced the file before the lock was acquired.
                if not self._catch_up():
                    return
                assert self._tagger is not None
                _note(self._tagger, **{NOTE: self._reader.notes})
                self._tagger.save(path)
                self._signature = lock.signature
        except (FileLocked, FileReplaced) as error:
            if self._stopped:
                log.warning("%s: corrections will be learned at the next start. %s", path, error)
            return  # the next step tries again
        assert self._signature is not None
        self._model.put(self._tagger, self._signature)
        self._saved, self._saved_at = self._reader.notes, time.monotonic()
        log.info("%s: saved with learned corrections", self._model.name)


def _note(tagger: TextTagger, **facts: Any) -> None:
    """Add facts to the training record."""
    fitted = fitted_text(tagger)
    model = fitted.classifier.model_.with_facts(**facts)
    hold_text(tagger, fitted._replace(classifier=hold_model(copy(fitted.classifier), model)))
