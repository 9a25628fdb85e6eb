"""What a service does, apart from HTTP: answer texts in batches, and keep corrections."""

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
from .models import Models, Opened
from .settings import Settings
from .telemetry import Telemetry

log = logging.getLogger("ldsm.serve")
# Longer texts, and texts of large requests, are answered in a thread of their own, a few at a time,
# so that nobody with a short text waits for them.
LONG_TEXT = 50_000  # characters
FEW_TEXTS = 4
BULK_BATCH = 32
MOST_THOUGHTS = 64  # requests for explanations and labels under way
MOST_CORRECTED_TAGS = 1000
LONGEST_TAG = 1000  # characters
# Longest time that a correction waits to be learned before it is acknowledged, in seconds.
LEARN_WAIT = 5.0

Result = TypeVar("Result")


class Refused(ValueError):
    """A request that is wrong by itself; the message says why."""


class NotKept(Exception):
    """A correction that could not be written; the message says why."""


class Kind(NamedTuple):
    """What texts that are answered together have in common."""

    opened: Opened
    k: int
    tail: float


class Service:
    """The models and what is asked of them."""

    def __init__(self, paths: Sequence[Path], settings: Settings, telemetry: Telemetry) -> None:
        self.settings, self.telemetry = settings, telemetry
        self.models = Models(paths, lambda name: telemetry.reloads.labels(name).inc())
        if settings.learn:
            for model in self.models:
                check_keeps_masses(model.last.tagger.classifier_.model_)

        def batcher(most: int) -> Batcher[str, LabelScores]:
            # A single large request must find room.
            longest = max(settings.max_waiting, 4 * settings.max_batch)
            return Batcher(self._answers, most=most, longest=longest, told=telemetry.batch.observe)

        self._quick, self._bulk = batcher(settings.max_batch), batcher(BULK_BATCH)
        self._thinkers = ThreadPoolExecutor(2, thread_name_prefix="ldsm-thinks")
        self._writers = ThreadPoolExecutor(2, thread_name_prefix="ldsm-writes")
        # One thread: the bodies of many requests must not keep the event loop from running.
        self.readers = ThreadPoolExecutor(1, thread_name_prefix="ldsm-reads")
        self._n_thoughts = 0
        self._files = {
            model.name: CorrectionFile.of(model.path, settings.corrections) for model in self.models
        }
        for file in self._files.values():
            file.check()
        self._learners: dict[str, Learner] = {}
        self._started = False

    def start(self) -> None:
        """Check the models, and begin to learn corrections if that is wanted."""
        if self._started:
            return
        self._started = True
        for model in self.models:
            if self.settings.learn:
                file = self._files[model.name]
                self._learners[model.name] = Learner(model, file, self.settings.save_every)

    def learns(self, model: str) -> bool:
        """Whether corrections of a model are learned at once."""
        learner = self._learners.get(model)
        return self.settings.learn and (learner is None or learner.can_learn)

    async def model(self, name: str) -> Opened:
        """The model of a file as it is now."""
        served = self.models[name]
        if served.is_current():
            return served.last
        return await self.think(served.current)

    async def think(self, work: Callable[[], Result]) -> Result:
        """The result of something that takes a while; `Busy` if too much of it waits."""
        if self._n_thoughts >= MOST_THOUGHTS:
            raise Busy
        self._n_thoughts += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thinkers, work)
        finally:
            self._n_thoughts -= 1

    async def answer(
        self, kind: Kind, texts: Sequence[str], threshold: float = 0.0
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
        lowest = float(np.float32(threshold))  # as scores are, and as `label_sets` compares them
        return [[pair for pair in row if pair[1] >= lowest] for row in found]

    async def correct(self, model: str, documents: Sequence[Document]) -> None:
        """Keep corrections; they are on the disk when this returns."""
        self._check_number(documents)
        opened = await self.model(model)
        for text, tags in documents:
            _check_correction(text, tags, opened)
        if not documents:
            return
        self.start()  # nobody does so for an application within another one
        loop = asyncio.get_running_loop()
        try:
            end = await loop.run_in_executor(self._writers, self._files[model].append, documents)
        except OSError as error:
            path = self._files[model].path
            log.error("%s: a correction was not kept in %s: %s", model, path, error.strerror)
            raise NotKept(f"The correction was not kept: {error.strerror}.") from None
        self.telemetry.corrections.labels(model).inc(len(documents))
        if (learner := self._learners.get(model)) is not None:
            stop = time.monotonic() + min(LEARN_WAIT, self.settings.timeout / 2)
            while not learner.has_learned(end) and time.monotonic() < stop:
                await asyncio.sleep(0.01)

    def _check_number(self, items: Sequence[object]) -> None:
        most = self.settings.max_batch
        if len(items) > most:
            raise Refused(f"A request may have {most:,} texts at most. Got {len(items):,}.")

    def _answers(self, kind: Hashable, texts: Sequence[str]) -> list[LabelScores]:
        assert isinstance(kind, Kind)
        fitted, name = kind.opened.fitted, kind.opened.name
        started, at_first = time.perf_counter(), time.thread_time()
        rows = list(fitted.chunks(list(texts)))
        between = time.thread_time()
        model = fitted.classifier.model_
        k = min(kind.k, model.n_labels)
        found = [pairs for x in rows for pairs in model.best_labels(x, k, tail=kind.tail)]
        told = self.telemetry
        told.answer_seconds.labels(name).observe(time.perf_counter() - started)
        told.processor_seconds.labels(name, "features").inc(between - at_first)
        told.processor_seconds.labels(name, "model").inc(time.thread_time() - between)
        return found

    def close(self) -> None:
        """Finish what is under way."""
        for learner in self._learners.values():
            learner.close()
        for lane in (self._quick, self._bulk):
            lane.close()
        for pool in (self._thinkers, self._writers, self.readers):
            pool.shutdown(wait=True, cancel_futures=True)


def _check_correction(text: str, tags: Sequence[str], opened: Opened) -> None:
    if not text.strip():
        raise Refused("The text of a correction must not be empty.")
    if not tags:
        raise Refused("A correction must have at least one tag.")
    if len(tags) > MOST_CORRECTED_TAGS:
        raise Refused(
            f"A correction may have {MOST_CORRECTED_TAGS:,} tags at most. Got {len(tags):,}."
        )
    if not all(map(is_unicode, [text, *tags])):
        raise Refused("Text and tags must be valid Unicode. Got a lone surrogate.")
    for tag in tags:
        if tag not in opened.labels.column and not _may_be_new(tag):
            raise Refused(
                f"A new tag must have 1 to {LONGEST_TAG:,} characters, and no control characters. "
                f"Got {tag[:40]!r}."
            )


def _may_be_new(tag: str) -> bool:
    controls = any(unicodedata.category(character) == "Cc" for character in tag)
    return bool(tag.strip()) and len(tag) <= LONGEST_TAG and not controls
