"""The service without HTTP: answer texts in batches and save corrections."""

from __future__ import annotations

import asyncio
import logging
import time
import unicodedata
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from .._model.fitted import LabelScores
from .._model.learn import check_keeps_masses
from .._storage.strings import is_unicode
from .batching import Batcher, Busy
from .corrections import CorrectionFile, Document
from .learner import Learner
from .models import Models, Opened, encoder_of
from .settings import Settings
from .telemetry import Telemetry

log = logging.getLogger("ldsm.serve")
# Longer texts, and texts of large requests, are answered in a separate thread, a few at a time, so
# that short texts do not wait for them.
LONG_TEXT = 50_000  # characters
FEW_TEXTS = 4
BULK_BATCH = 32
MAX_PENDING = 64  # concurrent requests for explanations and labels
MAX_CORRECTED_TAGS = 1000
MAX_CHOSEN = 10_000  # labels and groups of only= or without=
MAX_TAG_LENGTH = 1000  # characters
# Maximum time that a correction waits to be learned before it is acknowledged, in seconds.
LEARN_WAIT = 5.0

Result = TypeVar("Result")


class Refused(ValueError):
    """An invalid request; the message gives the reason."""


class NotSaved(Exception):
    """A correction could not be saved; the message gives the reason."""


class Kind(NamedTuple):
    """The settings that texts in one batch share."""

    opened: Opened
    k: int
    tail: float
    allowed: bytes | None = None  # for each label, whether it may be predicted; None: all may

    def restricted(self, only: Sequence[str] | None, without: Sequence[str] | None) -> Kind:
        """With only some of the labels, or without some."""
        chosen = []
        for names in (only, without):
            if names is not None and len(names) > MAX_CHOSEN:
                raise Refused(
                    f"A request may choose at most {MAX_CHOSEN:,} labels. Got {len(names):,}."
                )
            known = None if names is None else [self.opened.labels.known(n) or n for n in names]
            chosen.append(known)
        try:
            allowed = self.opened.fitted.allowed(*chosen)
        except ValueError as error:
            raise Refused(str(error)) from None
        return self if allowed is None else self._replace(allowed=allowed.tobytes())


class Service:
    """The models, and the requests they answer."""

    def __init__(self, paths: Sequence[Path], settings: Settings, telemetry: Telemetry) -> None:
        self.settings, self.telemetry = settings, telemetry
        encoder = encoder_of(settings)
        self.models = Models(
            paths,
            lambda name: telemetry.reloads.labels(name).inc(),
            None if encoder is None else telemetry.timed(encoder),
        )
        if settings.learn:
            for model in self.models:
                check_keeps_masses(model.last.tagger.classifier_.model_)

        def batcher(max_batch: int) -> Batcher[str, LabelScores]:
            return Batcher(
                self._answers,
                max_batch=max_batch,
                # A single large request must fit.
                max_waiting=max(settings.max_waiting, 4 * settings.max_batch),
                on_batch=telemetry.batch.observe,
            )

        self._quick, self._bulk = batcher(settings.max_batch), batcher(BULK_BATCH)
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="ldsm-pool")
        self._writers = ThreadPoolExecutor(2, thread_name_prefix="ldsm-writes")
        # One thread, so that parsing many request bodies does not block the event loop.
        self.readers = ThreadPoolExecutor(1, thread_name_prefix="ldsm-reads")
        self._n_pending = 0
        self._files = {
            model.name: CorrectionFile.of(model.path, settings.corrections) for model in self.models
        }
        for file in self._files.values():
            file.check()
        self._learners: dict[str, Learner] = {}
        self._started = False

    def start(self) -> None:
        """Start to learn corrections if the settings ask for it."""
        if self._started:
            return
        self._started = True
        for model in self.models:
            if self.settings.learn:
                file = self._files[model.name]
                self._learners[model.name] = Learner(model, file, self.settings.save_every)

    def learns(self, model: str) -> bool:
        """Whether corrections of a model are learned as they arrive."""
        learner = self._learners.get(model)
        return self.settings.learn and (learner is None or learner.can_learn)

    async def model(self, name: str) -> Opened:
        """The current model of this name."""
        served = self.models[name]
        if served.is_current():
            return served.last
        return await self.run_in_pool(served.current)

    async def run_in_pool(self, work: Callable[[], Result]) -> Result:
        """Run slow work in a thread; raises `Busy` if too much work is pending."""
        if self._n_pending >= MAX_PENDING:
            raise Busy
        self._n_pending += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._n_pending -= 1

    async def answer(
        self, kind: Kind, texts: Sequence[str], min_score: float = 0.0
    ) -> list[LabelScores]:
        """The best tags of each text, all by the same model."""
        settings = self.settings
        self._check_number(texts)
        if not 1 <= kind.k <= settings.max_tags:
            raise Refused(f"A text can have 1 to {settings.max_tags:,} tags. Got {kind.k:,}.")
        if settings.log_texts:
            for text in texts:
                log.info("text: %r", text)
        small = len(texts) <= FEW_TEXTS and sum(map(len, texts)) <= LONG_TEXT
        lane = self._quick if small else self._bulk
        found = await lane.ask_all(kind, texts)
        lowest = float(np.float32(min_score))  # the type of scores, as in `label_sets`
        return [[scored for scored in row if scored[1] >= lowest] for row in found]

    async def correct(self, model: str, documents: Sequence[Document]) -> None:
        """Save corrections; they are on disk when this returns."""
        self._check_number(documents)
        opened = await self.model(model)
        for text, tags in documents:
            _check_correction(text, tags, opened)
        if not documents:
            return
        self.start()  # a mounted application gets no startup event
        loop = asyncio.get_running_loop()
        try:
            end = await loop.run_in_executor(self._writers, self._files[model].append, documents)
        except OSError as error:
            path = self._files[model].path
            log.error("%s: cannot save a correction in %s: %s", model, path, error.strerror)
            raise NotSaved(f"The correction was not saved: {error.strerror}.") from None
        self.telemetry.corrections.labels(model).inc(len(documents))
        if (learner := self._learners.get(model)) is not None:
            stop = time.monotonic() + min(LEARN_WAIT, self.settings.timeout / 2)
            while not learner.has_learned(end) and time.monotonic() < stop:
                await asyncio.sleep(0.01)

    def _check_number(self, items: Sequence[object]) -> None:
        limit = self.settings.max_batch
        if len(items) > limit:
            raise Refused(f"A request may have at most {limit:,} texts. Got {len(items):,}.")

    def _answers(self, kind: Hashable, texts: Sequence[str]) -> list[LabelScores]:
        assert isinstance(kind, Kind)
        fitted, name = kind.opened.fitted, kind.opened.name
        started, at_first = time.perf_counter(), time.thread_time()
        rows = list(fitted.chunks(list(texts)))
        between = time.thread_time()
        model = fitted.classifier.model_
        allowed = None if kind.allowed is None else np.frombuffer(kind.allowed, np.uint8)
        k = min(kind.k, model.n_labels if allowed is None else int(allowed.sum()))
        found = [
            scored
            for x in rows
            for scored in model.best_labels(x, k, tail=kind.tail, allowed=allowed)
        ]
        telemetry = self.telemetry
        telemetry.answer_seconds.labels(name).observe(time.perf_counter() - started)
        telemetry.processor_seconds.labels(name, "features").inc(between - at_first)
        telemetry.processor_seconds.labels(name, "model").inc(time.thread_time() - between)
        return found

    def close(self) -> None:
        """Finish running work and stop."""
        for learner in self._learners.values():
            learner.close()
        for lane in (self._quick, self._bulk):
            lane.close()
        for pool in (self._pool, self._writers, self.readers):
            pool.shutdown(wait=True, cancel_futures=True)


def _check_correction(text: str, tags: Sequence[str], opened: Opened) -> None:
    if not text.strip():
        raise Refused("The text of a correction must not be empty.")
    if not tags:
        raise Refused("A correction must have at least one tag.")
    if len(tags) > MAX_CORRECTED_TAGS:
        raise Refused(
            f"A correction may have at most {MAX_CORRECTED_TAGS:,} tags. Got {len(tags):,}."
        )
    if not all(map(is_unicode, [text, *tags])):
        raise Refused("Text and tags must be valid Unicode. Got a lone surrogate.")
    for tag in tags:
        if tag not in opened.labels.column and not _may_be_new(tag):
            raise Refused(
                f"A new tag must have 1 to {MAX_TAG_LENGTH:,} characters and no control "
                f"characters. Got {tag[:40]!r}."
            )


def _may_be_new(tag: str) -> bool:
    controls = any(unicodedata.category(character) == "Cc" for character in tag)
    return bool(tag.strip()) and len(tag) <= MAX_TAG_LENGTH and not controls
