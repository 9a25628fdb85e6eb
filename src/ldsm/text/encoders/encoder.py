"""Encoders, which turn texts into dense vectors: what users give, and what a model file keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..._arrays.dense_rows import MOST_DIMENSIONS, UNIT, DenseRows, dense_rows
from ..._execution.executor import ProgressCallback
from ..._execution.scratch import GrowingArray, Scratch
from ..._wording import argument
from ...datasets.dataset import Dataset, EncoderForm
from .onnx import OnnxEncoder

BATCH = 256  # texts encoded together
LONGEST_NAME = 200
# Short texts of several kinds. How an encoder turns them into vectors tells it from others.
PROBES = (
    "The committee adopted the annual budget.",
    "Herring and cod in the Baltic Sea",
    "a library to read compressed files",
    "Wie spät ist es?",
)
# The least cosine of a probe with the same one by the same encoder on another machine, or with
# another precision.
_SAME = 0.98
_PROBE = "the test text"  # in messages


@dataclass(frozen=True, eq=False)
class Encoder:
    """A function from texts to vectors, which need not be of any length; `name` is for people."""

    encode: Callable[[list[str]], Any]
    name: str

    @classmethod
    def of(cls, given: Any, n_jobs: int | None = None) -> Encoder:
        """From what users give: a function, an object with a method `encode`, or a path."""
        if isinstance(given, str | Path):
            opened = OnnxEncoder(Path(given), n_jobs)
            return cls(opened, opened.name[:LONGEST_NAME])
        encode = getattr(given, "encode", given)
        if not callable(encode):
            raise ValueError(
                "The 'encoder' parameter of TextTagger must be a function from a list of str to a "
                "matrix, an object with a method `encode`, a folder or an .onnx file. "
                f"Got {given!r:.80} instead."
            )
        own = getattr(given, "name", None) or getattr(given, "__qualname__", None)
        name = own if isinstance(own, str) else type(given).__qualname__
        return cls(encode, name[:LONGEST_NAME])

    def fitted(self) -> FittedEncoder:
        """The encoder with its vectors of the probes, which show its number of dimensions."""
        return FittedEncoder(
            self.name, self._batch(PROBES, range(len(PROBES)), _PROBE).values, self
        )

    def rows(
        self, texts: Sequence[str], width: int, *, first: int = 0, what: str = "text"
    ) -> DenseRows:
        """The vectors of texts, of which `first` is the number of the first one.

        Blank texts have a row of zeros, which is no evidence for any label.
        """
        out = np.zeros((len(texts), width), dtype=np.int16)
        telling = [i for i, text in enumerate(texts) if text and not text.isspace()]
        for start in range(0, len(telling), BATCH):
            places = telling[start : start + BATCH]
            numbers = [first + place for place in places]
            out[places] = self._batch([texts[i] for i in places], numbers, what, width).values
        return DenseRows(out)

    def _batch(
        self, texts: Sequence[str], numbers: Sequence[int], what: str, width: int | None = None
    ) -> DenseRows:
        """The vectors of a batch; an error names the encoder and the first text, by its number."""
        where = f"{what} {numbers[0]:,}"
        try:
            vectors = np.asarray(self.encode(list(texts)))
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted in the encoder {self.name!r}, in the batch from {where} on"
            ) from None
        except Exception as error:
            raise ValueError(
                f"The encoder {self.name!r} raised an error in the batch from {where} on: "
                f"{type(error).__name__}: {error}"
            ) from error
        gave = f"The encoder {self.name!r} must return a matrix of floats, a row for each text."
        if vectors.ndim != 2 or vectors.dtype.kind != "f":
            found = f"an array of type {vectors.dtype} and shape {vectors.shape}"
            raise ValueError(f"{gave} Got {found} in the batch from {where} on.")
        if len(vectors) != len(texts):
            raise ValueError(
                f"{gave} Got {len(vectors):,} rows for the {len(texts):,} texts from {where} on."
            )
        if width not in (None, vectors.shape[1]) or not 1 <= vectors.shape[1] <= MOST_DIMENSIONS:
            allowed = f"{width:,}" if width else f"1 to {MOST_DIMENSIONS:,}"
            raise ValueError(
                f"The encoder {self.name!r} must return vectors of {allowed} numbers. "
                f"Got {vectors.shape[1]:,} in the batch from {where} on."
            )
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            raise ValueError(
                f"The encoder {self.name!r} must return finite numbers. Got NaN or infinity for "
                f"{what} {numbers[int(np.argmin(finite))]:,}."
            )
        return dense_rows(vectors, len(texts))


@dataclass(frozen=True, eq=False)
class FittedEncoder:
    """What a model knows of its encoder: a name, vectors of fixed texts, and perhaps itself.

    A file holds neither code nor a path, so the encoder must be given again.
    """

    name: str
    probes: NDArray[np.int16]  # its vectors of `PROBES`
    encoder: Encoder | None = None

    @property
    def width(self) -> int:
        """The number of dimensions."""
        return int(self.probes.shape[1])

    @classmethod
    def of(cls, form: EncoderForm) -> FittedEncoder:
        """The encoder of a store, without itself."""
        return cls(form.name, form.probes)

    @property
    def form(self) -> EncoderForm:
        """What a store keeps."""
        return EncoderForm(self.name, self.probes)

    def given(self, encoder: Any, n_jobs: int | None = None) -> FittedEncoder:
        """With the encoder itself; a ValueError for another one than in training."""
        found = Encoder.of(encoder, n_jobs).fitted()
        self.check_same(found)
        return replace(self, encoder=found.encoder)

    def check_same(self, found: FittedEncoder) -> None:
        """Raise a ValueError for another encoder."""
        if found.width != self.width:
            raise ValueError(
                f"The model was trained with the encoder {self.name!r}, whose vectors have "
                f"{self.width:,} numbers. Those of {found.name!r} have {found.width:,}."
            )
        ours, theirs = self.probes.astype(np.float64), found.probes.astype(np.float64)
        cosines = (ours * theirs).sum(axis=1) / UNIT**2
        # Some encoders know no word of a probe, and give zeros.
        cosines[~ours.any(axis=1) & ~theirs.any(axis=1)] = 1.0
        if cosines.min() < _SAME:
            raise ValueError(
                f"The model was trained with another encoder, {self.name!r}: {found.name!r} gives "
                f"other vectors for the same texts (cosine {cosines.min():.2f})."
            )

    def rows(self, texts: Sequence[str], first: int = 0) -> DenseRows:
        """The vectors of texts; a ValueError if the encoder itself is missing."""
        return self._encoder.rows(texts, self.width, first=first)

    def label_vectors(self, names: Sequence[Sequence[str]]) -> DenseRows:
        """For each label, the mean of the vectors of its names."""
        every = [name for its in names for name in its]
        rows = self._encoder.rows(every, self.width, what="the label name")
        lengths = np.array([len(its) for its in names], dtype=np.int64)
        if (lengths == 1).all():
            return rows
        ends = np.concatenate([[0], np.cumsum(lengths)])
        groups = sp.csr_array((np.ones(len(every)), np.arange(len(every)), ends))
        sums = groups @ rows.values.astype(np.float64)
        return dense_rows(sums, len(names))

    def made_earlier(self, data: Dataset) -> DenseRows:
        """The vectors of texts that were encoded earlier; a ValueError if they are not there."""
        encoder = None if data.text_form is None else data.text_form.encoder
        if data.embeddings is None or encoder is None:
            raise ValueError(
                f"The model needs texts for its encoder, {self.name!r}, or their embeddings by it. "
                f"Got {data!r}, which holds features alone."
            )
        self.check_same(FittedEncoder.of(encoder))
        rows: DenseRows = data.embeddings
        return rows

    def missing(self, remedy: str) -> ValueError:
        """The error for a model without its encoder; `remedy` says how to give it."""
        return ValueError(
            f"The model needs its encoder, {self.name!r} with {self.width:,} dimensions, which "
            f"a model file does not hold. {remedy}"
        )

    @property
    def _encoder(self) -> Encoder:
        if self.encoder is None:
            raise self.missing(f"Load it with {argument('encoder')}.")
        return self.encoder


class EncodedTexts:
    """Passes texts on and keeps their vectors, in a file if there is a place for it.

    The callback gets the number of texts so far, and 0, because the number of all may be unknown.
    """

    def __init__(
        self,
        encoder: FittedEncoder,
        callback: ProgressCallback | None = None,
        scratch: Scratch | None = None,
    ) -> None:
        self._encoder, self._callback = encoder, callback
        self._values = GrowingArray(np.int16, scratch)
        self._n_done = 0

    def passing(self, texts: Iterable[str]) -> Iterator[str]:
        """The same texts; those of a batch are encoded after the last of them."""
        batch: list[str] = []
        for text in texts:
            batch.append(text)
            yield text
            if len(batch) == BATCH:
                self._encode(batch)
                batch = []
        self._encode(batch)

    def rows(self) -> DenseRows:
        """The vectors of all texts."""
        return DenseRows(self._values.whole().reshape(-1, self._encoder.width))

    def _encode(self, batch: list[str]) -> None:
        self._values.append(self._encoder.rows(batch, self._n_done).values.reshape(-1))
        self._n_done += len(batch)
        if self._callback is not None:
            self._callback(self._n_done, 0)
