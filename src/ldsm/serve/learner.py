"""Corrections that are learned at once, in the order of their file.

Of all processes that keep corrections in one file, one learns them: the one that holds its lock. A
model is saved under its own lock. If another process has replaced it by then, the new one learns
what it lacks, and is saved. How much of which file of corrections a model has learned is noted in
the model itself. So after a crash, or when another model takes its place, the rest is learned
again, and nothing twice.
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
from .models import ServedModel, opened

log = logging.getLogger("ldsm.serve")
_LOOK_EVERY = 0.5  # seconds between two looks at files that other processes write
_PATIENCE = 5.0  # seconds that the end of a service waits for a process that changes the model
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
        self._saved, self._saved_at = self._reader.notes, time.monotonic()
        self._is_ours: bool | None = None  # the file of corrections; None: not tried yet
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
        with ExitStack() as held:
            while not last:
                last = self._stopped
                try:
                    if self._is_ours or self._take_turn(held):
                        self._step()
                    told = None
                except Exception as error:  # what it cannot learn is on the disk: the thread stays
                    if str(error) != told:
                        log.error("%s: corrections are not learned. %s", self._model.name, error)
                    told = str(error)
                if not last:
                    self._wake.wait(_LOOK_EVERY)
                    self._wake.clear()

    def _take_turn(self, held: ExitStack) -> bool:
        """Whether this process learns the file of corrections from now on, and no other."""
        try:
            held.enter_context(locked(self._reader.path, timeout=0))
            self._is_ours = True
        except FileLocked:
            self._is_ours = False
        return self._is_ours

    def _step(self) -> None:
        if not self._catch_up():
            return
        due = self._stopped or time.monotonic() - self._saved_at >= self._save_every
        if self._reader.notes != self._saved and due:
            self._save()

    def _catch_up(self) -> bool:
        """Learn what has come, by the model that the file holds; False if it cannot learn."""
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
        """The model of the file as it is, whoever has written it."""
        try:
            tagger = opened(self._model.path)
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
        """Learn documents; the number of those that were learned."""
        assert self._tagger is not None and self._signature is not None
        try:
            self._tagger.partial_fit(documents)
        except Exception as error:
            if len(documents) == 1:
                log.error("%s: a correction was not learned. %s", self._model.name, error)
                return 0
            return sum(self._learn([document]) for document in documents)
        self._model.put(self._tagger, self._signature)  # its labels may be others
        return len(documents)

    def _save(self) -> None:
        path = self._model.path
        patience = _PATIENCE if self._stopped else 0
        try:
            with locked(path, changes=True, timeout=patience) as lock:
                # Others may have replaced the file before the lock was ours.
                if not self._catch_up():
                    return
                assert self._tagger is not None
                _note(self._tagger, **{NOTE: self._reader.notes})
                self._tagger.save(path)
                self._signature = lock.signature
        except (FileLocked, FileReplaced) as error:
            if self._stopped:
                log.warning("%s: corrections are learned at the next start. %s", path, error)
            return  # the next step tries again
        assert self._signature is not None
        self._model.put(self._tagger, self._signature)
        self._saved, self._saved_at = self._reader.notes, time.monotonic()
        log.info("%s: saved with the corrections learned", self._model.name)


def _note(tagger: TextTagger, **facts: Any) -> None:
    """Add facts to those of the training."""
    fitted = fitted_text(tagger)
    model = fitted.classifier.model_.with_facts(**facts)
    hold_text(tagger, fitted._replace(classifier=hold_model(copy(fitted.classifier), model)))
