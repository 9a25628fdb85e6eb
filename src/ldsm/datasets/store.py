"""A data set as a folder of plain ``.npy`` arrays and a JSON file, opened memory-mapped.

``meta.json``, a sealed manifest, names the arrays with their lengths and checksums. It is written
last, in one rename: before that, there is no store or the old one. Opening compares sizes, headers,
offsets, and the checksums of small arrays and of the ends of large ones, which takes milliseconds
for any size; ``verify=True`` reads everything.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.dense_rows import MOST_DIMENSIONS, DenseRows, LabelVectors
from .._arrays.matrices import MAX_COLUMNS, csr, label_csr
from .._storage.array_file import ArrayFile, map_array
from .._storage.atomic import is_temporary
from .._storage.manifest import (
    ManifestError,
    ManifestVersionError,
    identity,
    read_manifest,
    write_manifest,
)
from .._storage.paths import PathLike, printable
from .._storage.strings import Strings
from .._wording import argument
from .dataset import BigramForm, Dataset, EncoderForm, StoreLocation, SubWordForm, TextForm

_FORMAT = "ldsm-store"
_VERSION = 2  # 1 was never released
_META = "meta.json"
_DTYPES = {
    "x_indptr": "<i8",
    "x_indices": "<i4",
    "x_values": "<f4",
    "y_indptr": "<i8",
    "y_indices": "<i4",
    "texts": "|u1",
    "text_offsets": "<i8",
    "feature_names": "|u1",
    "feature_name_offsets": "<i8",
    "label_names": "|u1",
    "label_name_offsets": "<i8",
    "idf": "<f4",
    "pair_first": "<i4",
    "pair_second": "<i4",
    "pair_idf": "<f4",
    "sub_words": "|u1",
    "sub_word_offsets": "<i8",
    "sub_word_idf": "<f4",
    "embeddings": "<i2",
    "label_embeddings": "<i2",
    "embedded_labels": "<i8",
    "encoder_probes": "<i2",
}
# File names have a random part, because new arrays are written next to the old ones.
_ARRAY_FILE = re.compile(rf"({'|'.join(_DTYPES)})(\.[0-9a-f]{{8}})?\.npy")


def save_store(
    data: Dataset | Iterable[Dataset], folder: PathLike, *, overwrite: bool = False
) -> None:
    """Write a data set, or its rows in chunks, to a folder.

    Parameters
    ----------
    data : Dataset or iterable of Dataset
        Chunks, as from :func:`iter_xmlrepo`, are written one by one, so the whole need not fit in
        memory. Their names must agree; the widest chunk sets the number of columns.
    folder : path
        The folder to write; it is left unchanged on failure.
    overwrite : bool, default=False
        Replace an existing store once the new one is complete. A folder that holds anything else is
        never modified.

    Examples
    --------
    >>> save_store(Dataset([[0, 2], [1, 0]], [[1], [0]]), "tiny")
    >>> open_store("tiny").X.toarray()
    array([[0., 2.],
           [1., 0.]], dtype=float32)
    """
    path = os.path.realpath(folder)
    created = not os.path.isdir(path)
    if created:
        os.mkdir(path)
    try:
        with _locked(path):
            old_files = _replaceable_files(path, overwrite)
            mark = f".{secrets.token_hex(4)}" if old_files else ""
            writer = _Writer(path, mark, _mode(path) if _META in old_files else None)
            try:
                for chunk in [data] if isinstance(data, Dataset) else data:
                    writer.add(chunk)
                writer.commit()
            except BaseException:
                writer.discard()
                raise
            for name in old_files - {_META}:
                os.unlink(os.path.join(path, name))
    except BaseException:
        if created:
            with suppress(OSError):
                os.rmdir(path)
        raise


def open_store(folder: PathLike, *, verify: bool = False) -> Dataset:
    """Open a store without reading it into memory.

    Parameters
    ----------
    folder : path
        A folder written by :func:`save_store` or ``ldsm convert``.
    verify : bool, default=False
        Whether to read everything once and compare all checksums and index ranges.

    Returns
    -------
    Dataset
        `X` is memory-mapped; names and texts are decoded on access. Do not modify the store's files
        in place while it is open: truncating one crashes the process. `save_store` is safe.

    Raises
    ------
    ValueError
        If the store is damaged, incomplete or of another version.
    """
    if os.path.isfile(folder):
        raise NotADirectoryError(
            f"{printable(folder)} is a file, but a store is a folder; `ldsm convert` makes one."
        )
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"There is no store {printable(folder)}.")
    return _Reader(folder, verify).dataset()


def locate_store(folder: PathLike) -> StoreLocation:
    """The path and identity of a store; reads only its ``meta.json``."""
    return _Reader(folder, verify=False).location


def open_located(store: StoreLocation) -> Dataset:
    """Open a store located earlier, possibly by another process; raises if it has changed."""
    check_same_store(store)
    return open_store(store.folder)


def check_same_store(store: StoreLocation) -> None:
    """Raise an error unless the path holds the same store for this process."""
    if not os.path.isdir(store.folder):
        raise FileNotFoundError(f"There is no store {printable(store.folder)}.")
    if locate_store(store.folder) != store:
        raise ValueError(
            f"The store {printable(store.folder)} is different on this machine: its {_META} "
            "differs."
        )


class _Writer:
    """Appends chunks of rows to arrays on disk; `commit` turns them into the store."""

    def __init__(self, folder: str, mark: str, mode: int | None) -> None:
        self.folder = folder
        self.mark = mark
        self.mode = mode  # file mode of the replaced store
        self.arrays: dict[str, ArrayFile] = {}
        self.first: Dataset | None = None
        self.n_rows = self.n_features = self.n_labels = 0
        self.meta: dict[str, Any] | None = None  # once all arrays are written

    def add(self, chunk: Dataset) -> None:
        first = self.first = self.first or chunk
        if (
            (chunk.X is None) != (first.X is None)
            or chunk.feature_names != first.feature_names
            or chunk.label_names != first.label_names
            or chunk.text_form is not first.text_form
            or _width(chunk) != _width(first)
        ):
            raise ValueError("All chunks of a store must have the same names and kind of rows.")
        if chunk.texts is not None:
            self._put_strings("texts", "text_offsets", chunk.texts)
        else:
            if not np.isfinite(chunk.X.data).all():
                raise ValueError("X must hold finite numbers to be stored. Got NaN or inf.")
            self._put_offsets("x_indptr", chunk.X.indptr, self._array("x_indices").length)
            self._array("x_indices").append(chunk.X.indices)
            self._array("x_values").append(chunk.X.data)
            if chunk.embeddings is not None:
                self._array("embeddings").append(chunk.embeddings.values.reshape(-1))
        self._put_offsets("y_indptr", chunk.Y.indptr, self._array("y_indices").length)
        self._array("y_indices").append(chunk.Y.indices)
        self.n_rows += len(chunk)
        self.n_features = max(self.n_features, chunk.n_features)
        self.n_labels = max(self.n_labels, chunk.n_labels)

    def commit(self) -> None:
        if self.first is None:
            raise ValueError("A store needs at least one chunk of rows. Got none.")
        for kind in ("feature", "label"):
            names = getattr(self.first, f"{kind}_names")
            if names is not None:
                self._put_strings(f"{kind}_names", f"{kind}_name_offsets", names)
        form = self.first.text_form
        if form is not None and form.idf is not None:
            self._array("idf").append(form.idf)
        if form is not None and form.bigrams is not None:
            for name, values in form.bigrams._asdict().items():
                self._array(f"pair_{name}").append(values)
        if form is not None and form.sub_words is not None:
            self._put_strings("sub_words", "sub_word_offsets", form.sub_words.words)
            self._array("sub_word_idf").append(form.sub_words.idf)
        if (vectors := self.first.label_embeddings) is not None:
            self._array("label_embeddings").append(vectors.rows.values.reshape(-1))
            self._array("embedded_labels").append(vectors.labels)
        encoder = None if form is None else form.encoder
        if encoder is not None:
            self._array("encoder_probes").append(encoder.probes.reshape(-1))
        meta: dict[str, Any] = {
            "format": _FORMAT,
            "version": _VERSION,
            "rows": self.n_rows,
            "features": self.n_features,
            "labels": self.n_labels,
            "source": printable(self.first.source),
            **({"reading": dict(self.first.reading)} if self.first.reading else {}),
            **({} if form is None else {"text": dict(form.settings)}),
            **({"indexed_sub_words": form.sub_words.indexed} if form and form.sub_words else {}),
            **({"head_words": form.head_words} if form and form.head_words else {}),
            **({"dimensions": _width(self.first)} if _width(self.first) else {}),
            **({} if encoder is None else {"encoder": encoder.name}),
            "arrays": {name: array.finish() for name, array in self.arrays.items()},
        }
        self.meta = meta
        write_manifest(os.path.join(self.folder, _META), meta, replace=True)

    def discard(self) -> None:
        with suppress(OSError, ValueError):
            if read_manifest(os.path.join(self.folder, _META), _FORMAT, _VERSION) == self.meta:
                return  # interrupted right after the rename: the new store is complete
        for array in self.arrays.values():
            array.discard()

    def _array(self, name: str) -> ArrayFile:
        if name not in self.arrays:
            path = os.path.join(self.folder, f"{name}{self.mark}.npy")
            self.arrays[name] = ArrayFile(path, np.dtype(_DTYPES[name]), self.mode)
        return self.arrays[name]

    def _put_offsets(self, name: str, offsets: NDArray[Any], shift: int) -> None:
        array = self._array(name)
        array.append(offsets[min(array.length, 1) :].astype(np.int64) + shift)

    def _put_strings(self, name: str, offset_name: str, strings: Sequence[str]) -> None:
        packed = Strings.pack(strings)
        self._put_offsets(offset_name, packed.offsets, self._array(name).length)
        self._array(name).append(packed.data)


class _Reader:
    """Opens the arrays of a folder and checks that they are consistent."""

    def __init__(self, folder: PathLike, verify: bool) -> None:
        self.folder = os.fspath(folder)
        self.verify = verify
        self.meta = self._read_meta()

    @property
    def location(self) -> StoreLocation:
        # The manifest holds the checksums of all arrays: equal manifests mean equal data.
        return StoreLocation(os.path.abspath(self.folder), identity(self.meta))

    def dataset(self) -> Dataset:
        rows, features, labels = (self.meta[key] for key in ("rows", "features", "labels"))
        X = texts = None
        if "texts" in self.meta["arrays"]:
            texts = self._strings("texts", "text_offsets", rows)
        else:
            indices, values = self._array("x_indices"), self._array("x_values")
            if len(values) != len(indices):
                raise self._damaged("x_values and x_indices differ in length")
            offsets = self._offsets("x_indptr", rows, len(indices))
            self._check_range("x_indices", indices, features)
            X = csr(offsets, indices, values, features)
        y_indices = self._array("y_indices")
        y_offsets = self._offsets("y_indptr", rows, len(y_indices))
        self._check_range("y_indices", y_indices, labels)
        data = Dataset(
            X,
            label_csr(y_offsets, y_indices, labels),
            texts=texts,
            feature_names=self._strings("feature_names", "feature_name_offsets", features),
            label_names=self._strings("label_names", "label_name_offsets", labels),
            source=self.meta["source"],
            text_form=self._text_form(),
            reading=self.meta.get("reading"),
            embeddings=self._embeddings("embeddings", rows),
            label_embeddings=self._label_embeddings(labels),
        )
        object.__setattr__(data, "store", self.location)
        return data

    def _text_form(self) -> TextForm | None:
        settings = self.meta.get("text")
        if settings is None:
            return None
        if "feature_names" not in self.meta["arrays"]:
            raise self._damaged("its features were made from texts, but have no names")
        idf = self._array("idf") if "idf" in self.meta["arrays"] else None
        bigrams = None
        if "pair_first" in self.meta["arrays"]:
            bigrams = BigramForm(*(self._array(f"pair_{name}") for name in BigramForm._fields))
            if len(set(map(len, bigrams))) > 1 or len(bigrams.first) > self.meta["features"]:
                raise self._damaged("the arrays of its bigrams differ in size")
        head_words = self.meta.get("head_words", 0)
        return TextForm(settings, idf, bigrams, self._sub_words(), head_words, self._encoder())

    def _sub_words(self) -> SubWordForm | None:
        if "sub_word_idf" not in self.meta["arrays"]:
            return None
        idf = self._array("sub_word_idf")
        indexed = self.meta.get("indexed_sub_words")
        if len(idf) > self.meta["features"] or type(indexed) is not bool:
            raise self._damaged("its sub-words do not match its features")
        words = self._strings("sub_words", "sub_word_offsets", len(idf))
        if words is None:
            raise self._damaged("its sub-words are missing")
        return SubWordForm(words, idf, indexed)

    def _embeddings(self, name: str, rows: int | None = None) -> DenseRows | None:
        """Dense rows, however many if their number is not given; None if there are none."""
        if name not in self.meta["arrays"]:
            return None
        values, width = self._array(name), self.meta.get("dimensions", 0)
        if not 1 <= width <= MOST_DIMENSIONS or len(values) != width * (
            len(values) // width if rows is None else rows
        ):
            raise self._damaged(f"{name} does not have the size of its rows")
        found = DenseRows(values.reshape(-1, width))
        if self.verify and not found.are_short:
            raise self._damaged(f"{name} has rows that are too long")
        return found

    def _label_embeddings(self, n_labels: int) -> LabelVectors | None:
        if (found := self._embeddings("label_embeddings")) is None:
            return None
        labels = self._array("embedded_labels")
        ascend = (labels[1:] > labels[:-1]).all()
        if len(labels) != found.n_rows or not ascend or not _within(labels, n_labels):
            raise self._damaged("embedded_labels does not match its labels")
        return LabelVectors(labels, found)

    def _encoder(self) -> EncoderForm | None:
        if (probes := self._embeddings("encoder_probes")) is None:
            return None
        name = self.meta.get("encoder")
        if type(name) is not str:
            raise self._damaged("its encoder has no name")
        return EncoderForm(name, probes.values)

    def _damaged(self, reason: str) -> ValueError:
        return ValueError(f"The store {printable(self.folder)} is damaged: {reason}.")

    def _read_meta(self) -> dict[str, Any]:
        try:
            meta = read_manifest(os.path.join(self.folder, _META), _FORMAT, _VERSION)
        except FileNotFoundError:
            raise ValueError(
                f"The folder {printable(self.folder)} has no {_META}: it is not a store, or is "
                "incomplete."
            ) from None
        except ManifestVersionError as error:
            remedy = "upgrade ldsm" if error.version > _VERSION else "convert the data again"
            raise ValueError(
                f"The store {printable(self.folder)} has version {error.version}, but this ldsm "
                f"reads version {_VERSION}: {remedy}."
            ) from None
        except ManifestError as error:
            raise self._damaged(f"{_META} cannot be used: {error}") from None
        if not _well_formed(meta):
            raise self._damaged(f"{_META} has a missing or invalid entry")
        return meta

    def _array(self, name: str) -> NDArray[Any]:
        described = self.meta["arrays"].get(name)
        if described is None:
            raise self._damaged(f"{_META} does not name the array {name}")
        try:
            return map_array(self.folder, np.dtype(_DTYPES[name]), described, whole=self.verify)
        except ValueError as error:
            raise self._damaged(str(error)) from None

    def _offsets(self, name: str, rows: int, entries: int) -> NDArray[np.int64]:
        offsets = self._array(name)
        if len(offsets) != rows + 1 or offsets[0] != 0 or offsets[-1] != entries:
            raise self._damaged(f"{name} must go from 0 to {entries} in {rows} steps")
        if (offsets[1:] < offsets[:-1]).any():
            raise self._damaged(f"{name} decreases")
        return offsets

    def _strings(self, name: str, offset_name: str, length: int) -> Strings | None:
        if name not in self.meta["arrays"]:
            return None
        data = self._array(name)
        return Strings(data, self._offsets(offset_name, length, len(data)))

    def _check_range(self, name: str, indices: NDArray[Any], limit: int) -> None:
        if self.verify and not _within(indices, limit):
            raise self._damaged(f"{name} holds numbers outside [0, {limit})")


def _within(numbers: NDArray[Any], limit: int) -> bool:
    return len(numbers) == 0 or bool(0 <= numbers.min() <= numbers.max() < limit)


def _width(data: Dataset) -> int:
    return 0 if data.embeddings is None else int(data.embeddings.width)


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Allow one writer at a time; the system releases the lock if the process is killed."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileExistsError(
                f"{printable(folder)} is being written by another process."
            ) from None
        yield
    finally:
        os.close(descriptor)


def _mode(folder: str) -> int:
    return stat.S_IMODE(os.stat(os.path.join(folder, _META)).st_mode)


def _replaceable_files(folder: str, overwrite: bool) -> set[str]:
    """The files of a store, complete or not, in a folder; an error if it holds anything else."""
    present = set(os.listdir(folder))
    unfinished = set(filter(is_temporary, present))
    foreign = {name for name in present if not _ARRAY_FILE.fullmatch(name)} - {_META} - unfinished
    if foreign:
        raise FileExistsError(
            f"{printable(folder)} cannot become a store: it holds {min(foreign)!r}, which is not "
            "part of a store."
        )
    if _META in present and not overwrite:
        remedy = argument("overwrite", True)
        raise FileExistsError(f"{printable(folder)} is a store; use {remedy} to replace it.")
    return present


def _well_formed(meta: dict[str, Any]) -> bool:
    arrays = meta.get("arrays")
    if not isinstance(arrays, dict) or not isinstance(meta.get("source"), str):
        return False
    if not all(isinstance(meta.get(key, {}), dict) for key in ("text", "reading")):
        return False
    for name, array in arrays.items():
        match = isinstance(array, dict) and _ARRAY_FILE.fullmatch(str(array.get("file")))
        if not match or match[1] != name:
            return False
    numbers = [meta.get(key) for key in ("rows", "features", "labels")]
    numbers.append(meta.get("dimensions", 0))
    for array in arrays.values():
        numbers += [array.get(key) for key in ("length", "crc32", "crc32_ends")]
    if not all(type(number) is int and 0 <= number < 2**60 for number in numbers):
        return False
    return bool(max(meta["features"], meta["labels"]) <= MAX_COLUMNS)
