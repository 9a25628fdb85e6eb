"""Synthetic extreme multi-label data of any shape, from a small generating model.

Labels have power-law popularity and belong to topics. A row takes most of its labels from one
topic; its features ("words") come from the labels themselves, from their topics, and from a
background in which feature number r by popularity has frequency proportional to 1 / r. Which
features belong to a label or a topic is a hash of (seed, label, slot), never a table: a shape with
670,091 labels needs no more memory for its model than a few arrays of that length.

Rows are made in chunks of fixed size, each from its own random stream. So the first rows of a
larger data set are the rows of a smaller one of the same shape, and memory beyond the result stays
small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.matrices import MAX_COLUMNS, csr, label_csr, stack
from .dataset import Dataset

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Rows per chunk. Part of the definition of the data: another value gives other rows.
_CHUNK = 1024
# Share of a row's labels that come from its one topic; the others come from anywhere.
_TOPICAL = 0.8
# Of the words that are not background, the share that comes from a label rather than its topic.
_FROM_LABEL = 0.5
# Most draws per row of the most frequent label; draws repeat within a topic, so it ends up in about
# half as many rows. With many labels per row a pure power law would put it into all of them.
_HEAD = 0.8
# Draws per distinct id needed: repeats make term frequencies, and a second round costs more than a
# few spare draws.
_SPARE = 1.4
# Count of a feature that was added only to reach the row's number of non-zeros.
_FILLER = 0.25


@dataclass(frozen=True)
class Preset:
    """The shape of one of the paper's data sets, from its table of data set statistics.

    The non-zeros per row, which the table does not have, and `binary` are from the originals.
    """

    n_rows: int
    n_test_rows: int
    n_features: int
    n_labels: int
    labels_per_row: float
    nonzeros_per_row: float
    label_exponent: float = 1.0
    binary: bool = False


# Exponents of the first three: near straight-line fits to the originals (Mediamill: to a sample).
# Amazon-670K has four rows per label: under an exponent of 1 one label would be in about a third of
# all rows, and half the labels in none.
PRESETS: dict[str, Preset] = {
    "mediamill": Preset(30_993, 12_914, 120, 101, 4.38, 120, label_exponent=1.5),
    "bibtex": Preset(4_880, 2_515, 1_836, 159, 2.40, 68, label_exponent=0.6, binary=True),
    "delicious": Preset(12_920, 3_185, 500, 983, 19.03, 18, label_exponent=1.1, binary=True),
    "eurlex": Preset(15_539, 3_809, 5_000, 3_993, 5.31, 237),
    "amazoncat-13k": Preset(1_186_239, 306_782, 203_882, 13_330, 5.04, 71),
    "wiki10-31k": Preset(14_146, 6_616, 101_938, 30_938, 18.64, 673),
    "delicious-200k": Preset(196_606, 100_095, 782_585, 205_443, 75.54, 302),
    "amazon-670k": Preset(490_449, 153_025, 135_909, 670_091, 5.45, 76, label_exponent=0.6),
}


def make_xmc(
    n_rows: int | str,
    n_features: int | None = None,
    n_labels: int | None = None,
    *,
    labels_per_row: float | None = None,
    nonzeros_per_row: float | None = None,
    label_exponent: float | None = None,
    binary: bool | None = None,
    noise: float = 0.6,
    scale: float = 1.0,
    part: str = "train",
    seed: int = 0,
) -> Dataset:
    """Make synthetic extreme multi-label data with power-law labels and topical features.

    Parameters
    ----------
    n_rows : int or str
        Number of rows, or the name of a preset (a key of `PRESETS`), which supplies every argument
        below that is left None.
    n_features, n_labels : int, optional
        Numbers of columns of X and Y; needed unless `n_rows` names a preset.
    labels_per_row : float, optional
        Average number of labels of a row, from 0 to `n_labels`. Below 1, some rows have no label;
        from 1 on, every row has one. Default 3, or `n_labels` if that is less.
    nonzeros_per_row : float, optional
        Average number of non-zero features of a row, from 1 to `n_features`; equal to
        `n_features`, every value is non-zero. Default 50, or `n_features` if that is less.
    label_exponent : float, optional
        Exponent a, from 0 to 10, of the power law: the label of rank r is drawn in proportion to
        (r + c) ** -a, where c is 0 unless the first label would be in about half of the rows or
        more. Default 1.
    binary : bool, optional
        True: every non-zero value is 1. False (the default): TF-IDF-like positive values in rows
        of unit length.
    noise : float, default=0.6
        Share, from 0 to 1, of background words, which say nothing about the labels.
    scale : float, default=1.0
        Multiplies the preset's rows, features and labels, for a small data set of a similar
        nature; only with a preset.
    part : {"train", "test"}, default="train"
        Two parts of one seed and shape come from the same labels and topics but share no row.
    seed : int, default=0
        The same seed gives the same data; a larger `n_rows` begins with the rows of a smaller one.

    Returns
    -------
    Dataset
        X and Y in CSR form.

    Examples
    --------
    >>> from ldsm.datasets import make_xmc
    >>> data = make_xmc(1000, 500, 200, labels_per_row=4, nonzeros_per_row=30, seed=7)
    >>> data.X.shape, data.Y.shape
    ((1000, 500), (1000, 200))
    >>> 3.5 < data.Y.nnz / len(data) < 4.5, 25 < data.X.nnz / len(data) < 35
    (True, True)

    The shape of one of the paper's data sets, a twentieth of it, and fresh rows to test on:

    >>> train = make_xmc("eurlex", scale=0.05)
    >>> test = make_xmc("eurlex", scale=0.05, part="test")
    >>> train.X.shape, test.X.shape, train.Y.shape[1]
    ((777, 250), (190, 250), 200)
    """
    options: dict[str, Any] = {
        "labels_per_row": labels_per_row,
        "nonzeros_per_row": nonzeros_per_row,
        "label_exponent": label_exponent,
        "binary": binary,
    }
    options = {name: value for name, value in options.items() if value is not None}
    shape = replace(_preset(n_rows, n_features, n_labels, scale), **options)
    _check("labels_per_row", shape.labels_per_row, Real, 0, shape.n_labels)
    _check("nonzeros_per_row", shape.nonzeros_per_row, Real, 1, shape.n_features)
    _check("label_exponent", shape.label_exponent, Real, 0, 10)
    _check("noise", noise, Real, 0, 1)
    _check("seed", seed, Integral, 0)
    parts = {"train": shape.n_rows, "test": shape.n_test_rows}
    if not isinstance(part, str) or part not in parts:
        raise _error("part", part, "'train' or 'test'")

    model = _Model(shape, noise, seed)
    total, stream = parts[part], list(parts).index(part)
    chunks = [
        model.chunk(np.random.default_rng([seed, stream, number]), total - number * _CHUNK)
        for number in range(-(-total // _CHUNK))
    ]
    X = stack([x for x, _ in chunks], shape.n_features)
    Y = stack([y for _, y in chunks], shape.n_labels)
    shown = f"{n_rows!r}, {n_features}, {n_labels}" if n_features or n_labels else repr(n_rows)
    options.update(noise=noise, scale=scale, part=part, seed=seed)
    arguments = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return Dataset(X=X, Y=Y, source=f"make_xmc({shown}, {arguments})")


def _preset(n_rows: Any, n_features: Any, n_labels: Any, scale: float) -> Preset:
    """The named preset, scaled; or the defaults of a shape given in numbers."""
    if not isinstance(n_rows, str):
        _check("n_rows", n_rows, Integral, 1)
        if scale != 1:
            raise _error("scale", scale, "1 unless n_rows names a preset")
        preset = Preset(n_rows, n_rows, 0, 0, 3, 50)
    elif n_rows in PRESETS:
        _check("scale", scale, Real, 0, 100)
        preset = PRESETS[n_rows]
    else:
        raise _error("n_rows", n_rows, f"an int, or one of {', '.join(map(repr, PRESETS))}")
    for name, value in ("n_features", n_features), ("n_labels", n_labels):
        if value is not None or not isinstance(n_rows, str):
            _check(name, value, Integral, 1, MAX_COLUMNS)

    def scaled(size: int) -> int:
        return max(1, round(scale * size))

    features = scaled(preset.n_features) if n_features is None else n_features
    labels = scaled(preset.n_labels) if n_labels is None else n_labels
    return replace(
        preset,
        n_rows=scaled(preset.n_rows),
        n_test_rows=scaled(preset.n_test_rows),
        n_features=features,
        n_labels=labels,
        # A small shape can have fewer columns than a usual row has entries.
        labels_per_row=min(preset.labels_per_row, labels),
        nonzeros_per_row=min(preset.nonzeros_per_row, features),
    )


def _error(name: str, value: object, allowed: str) -> ValueError:
    got = f"Got {value!r} instead."
    return ValueError(f"The {name!r} argument of make_xmc must be {allowed}. {got}")


def _check(name: str, value: Any, kind: Any, low: int, high: float = math.inf) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
        noun = "an int" if kind is Integral else "a number"
        raise _error(name, value, f"{noun} in [{low}, {high}]")


class _Model:
    """What all rows of a data set share: popularity, topics, and the words of both."""

    def __init__(self, shape: Preset, noise: float, seed: int) -> None:
        self.shape = shape
        self.noise = noise
        rng = np.random.default_rng([seed, 2])
        labels, features = shape.n_labels, shape.n_features
        # A topic must have room for several times the labels of a row, or its rows would all
        # carry the same ones.
        topic_size = max(8 * shape.labels_per_row, math.sqrt(labels))
        self.n_topics = max(1, round(labels / topic_size))
        popularity = rng.permutation(_popularity(shape))
        self.topic_of = rng.permutation(labels) % self.n_topics
        # Labels sorted by topic, and their popularity accumulated in that order: a uniform number
        # within a topic's stretch of the line draws a label of that topic, one anywhere a label.
        self.by_topic = np.argsort(self.topic_of, kind="stable")
        self.line = np.concatenate([[0.0], np.cumsum(popularity[self.by_topic])])
        ends = np.cumsum(np.bincount(self.topic_of, minlength=self.n_topics))
        self.topic_end = self.line[ends]
        self.topic_start = np.concatenate([[0.0], self.topic_end[:-1]])
        # Feature ids in order of popularity: the ids themselves carry no information.
        self.feature_of_rank = rng.permutation(features)
        self.idf = np.empty(features)
        self.idf[self.feature_of_rank] = 1 + np.log(np.arange(1, features + 1))
        self.salt = rng.integers(2**63, size=2, dtype=np.uint64)
        # Enough words in a label that its share of a row is a sample of them, not all.
        share = shape.nonzeros_per_row / max(1.0, shape.labels_per_row)
        words = max(4.0, min(2 * share, features / (4 * max(1.0, shape.labels_per_row))))
        self.label_words, self.topic_words = round(words), round(3 * words)

    def chunk(self, rng: np.random.Generator, wanted: int) -> tuple[Any, Any]:
        """A chunk of rows of X and Y; all are drawn, even if fewer are needed."""
        shape = self.shape
        sizes = _sizes(shape.labels_per_row, shape.n_labels, rng)
        topic = self.topic_of[self._labels_at(rng.random(_CHUNK) * self.line[-1])]
        labels, _ = _distinct(
            sizes, shape.n_labels, lambda rows: self._draw_labels(topic[rows], rng), rng
        )
        words = _sizes(shape.nonzeros_per_row, shape.n_features, rng)
        features, counts = _distinct(
            words, shape.n_features, lambda rows: self._draw_words(rows, labels, sizes, rng), rng
        )
        if shape.binary:
            values = np.ones(len(features))
        else:
            # Term frequencies are whole numbers; the factor spares the learner thousands of exact
            # ties that data with real document lengths does not have.
            values = np.log1p(counts) * self.idf[features] * rng.uniform(0.8, 1.2, len(counts))
            square = np.add.reduceat(values * values, np.cumsum(words) - words)
            values /= np.repeat(np.sqrt(square), words)
        ends = np.concatenate([[0], np.cumsum(words)])[: wanted + 1]
        ids, values = features[: ends[-1]].astype(np.int32), values[: ends[-1]].astype(np.float32)
        X = csr(ends, ids, values, shape.n_features)
        ends = np.concatenate([[0], np.cumsum(sizes)])[: wanted + 1]
        return X, label_csr(ends, labels[: ends[-1]].astype(np.int32), shape.n_labels)

    def _labels_at(self, position: Floats) -> Ints:
        found = np.searchsorted(self.line, position, side="right") - 1
        # Rounding can put a position on the very end of the line.
        return self.by_topic[np.minimum(found, self.shape.n_labels - 1)]

    def _draw_labels(self, topic: Ints, rng: np.random.Generator) -> Ints:
        anywhere = rng.random(len(topic)) >= _TOPICAL
        low = np.where(anywhere, 0.0, self.topic_start[topic])
        high = np.where(anywhere, self.line[-1], self.topic_end[topic])
        return self._labels_at(low + rng.random(len(topic)) * (high - low))

    def _draw_words(self, rows: Ints, labels: Ints, sizes: Ints, rng: np.random.Generator) -> Ints:
        """A word for each entry of `rows`: of one of the row's labels, its topic, or neither."""
        features = self.shape.n_features
        kind = rng.random(len(rows))
        background = (kind < self.noise) | (sizes[rows] == 0)
        # A log-uniform rank is Zipf's law: frequency proportional to 1 / rank.
        rank = np.exp(rng.random(len(rows)) * math.log(features + 1)) - 1
        of = rows[~background]
        start = np.cumsum(sizes) - sizes
        label = labels[start[of] + (rng.random(len(of)) * sizes[of]).astype(np.int64)]
        own = kind[~background] < self.noise + (1 - self.noise) * _FROM_LABEL
        entity = np.where(own, label, self.topic_of[label])
        vocabulary = np.where(own, self.label_words, self.topic_words)
        # Squared, so that a few words of a label are frequent and many rare.
        slot = (rng.random(len(of)) ** 2 * vocabulary).astype(np.int64)
        u = _hash(np.where(own, self.salt[0], self.salt[1]), entity, slot)
        # Popular features serve more labels than rare ones, though not as steeply as Zipf.
        rank[~background] = u**1.5 * features
        return self.feature_of_rank[np.minimum(rank.astype(np.int64), features - 1)]


def _popularity(shape: Preset) -> Floats:
    """Chance of each label, by rank: (rank + shift) ** -exponent, Zipf's law as Mandelbrot has it.

    The shift is 0 unless the first label would be in too large a share of the rows.
    """
    below = np.arange(float(shape.n_labels))
    shift = 0.0
    while True:
        # Relative to the first label's, or a large shift and exponent would underflow.
        weight = (1 + below / (1 + shift)) ** -shape.label_exponent
        chance: Floats = weight / weight.sum()
        if shape.labels_per_row * chance[0] <= _HEAD or shift >= shape.n_labels:
            return chance
        # Coarse steps: the head should be plausible, not exact.
        shift = 1.25 * shift + 0.25


def _hash(salt: NDArray[np.uint64], entity: Ints, slot: Ints) -> Floats:
    """A fixed number in [0, 1) for each (salt, entity, slot), by SplitMix64's finaliser."""
    x = salt + entity.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for extra in (slot.astype(np.uint64), np.uint64(0)):
        x = x + extra
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    unit: Floats = (x >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return unit


def _sizes(mean: float, limit: int, rng: np.random.Generator) -> Ints:
    """Numbers of ids for the rows of a chunk: varied like documents, with this mean, up to `limit`.

    A beta-binomial: unlike a clipped Poisson or gamma its mean is exact however close to the limit.
    """
    if mean < 1:
        return (rng.random(_CHUNK) < mean).astype(np.int64)
    share = (mean - 1) / max(1, limit - 1)
    if share in (0.0, 1.0):
        return np.full(_CHUNK, round(mean), dtype=np.int64)
    return 1 + rng.binomial(limit - 1, rng.beta(4.0, 4.0 * (1 - share) / share, _CHUNK))


def _distinct(
    sizes: Ints, width: int, draw: Callable[[Ints], Ints], rng: np.random.Generator
) -> tuple[Ints, Floats]:
    """Draw `sizes[i]` distinct ids below `width` for each row i.

    `draw` gives an id for each row number of an array; rows that repeats leave short are filled
    with ids of any kind. Returns the ids, sorted in each row, and how often each was drawn.
    """
    keys = np.empty(0, dtype=np.int64)  # row * width + id, sorted
    counts = np.empty(0)
    missing = sizes
    for attempt in range(5):
        rows = np.repeat(np.arange(len(sizes)), np.ceil(missing * _SPARE).astype(np.int64))
        ids = draw(rows) if attempt < 3 else rng.integers(width, size=len(rows))
        new, first, often = np.unique(rows * width + ids, return_index=True, return_counts=True)
        # In order of drawing, or the cut below would favour small ids. A row's draws are
        # consecutive, so its keys stay together.
        order = np.argsort(first)
        order = order[~np.isin(new[order], keys, assume_unique=True)]
        new, often = new[order], often[order]
        of: Ints = new // width
        have = np.bincount(of, minlength=len(sizes))
        kept = np.arange(len(new)) - np.repeat(np.cumsum(have) - have, have) < missing[of]
        weight = often[kept] if attempt < 3 else np.full(np.count_nonzero(kept), _FILLER)
        keys, counts = _merge(keys, new[kept], counts, weight)
        missing = sizes - np.bincount(keys // width, minlength=len(sizes))
        if not missing.any():
            break
    # The remaining rows need most of all ids: choose among those still free.
    ends = np.searchsorted(keys, np.arange(len(sizes) + 1) * width)
    more = [np.empty(0, dtype=np.int64)]
    for row in np.flatnonzero(missing):
        free = np.ones(width, dtype=bool)
        free[keys[ends[row] : ends[row + 1]] - row * width] = False
        more.append(row * width + rng.permutation(np.flatnonzero(free))[: missing[row]])
    extra = np.concatenate(more)
    keys, counts = _merge(keys, extra, counts, np.full(len(extra), _FILLER))
    return keys % width, counts


def _merge(keys: Ints, new: Ints, counts: Floats, weight: Any) -> tuple[Ints, Floats]:
    keys = np.concatenate([keys, new])
    order = np.argsort(keys)
    return keys[order], np.concatenate([counts, weight])[order]
