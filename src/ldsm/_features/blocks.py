"""Features in blocks of one kind each, and the one table of which part of a model reads which.

A block has its own matrix, normalisation and statistics. A new kind of features is a new name here
and an entry in `READS` for each part that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.dense_rows import DenseRows, rows_of_features
from .._arrays.features import FeatureArrays
from .._execution.threads import state_of

# In the order of their columns where one matrix holds them all: in a file, and in the `X` of the
# classifier inside a tagger.
MAIN = "main"  # the words of texts, or all features of a matrix
BIGRAMS = "bigrams"  # two adjacent words
SUB_WORDS = "sub_words"  # runs of characters of a word
BLOCKS = (MAIN, BIGRAMS, SUB_WORDS)
DENSE = "dense"  # the vectors of an encoder, whose rows are not sparse

# A part that reads several blocks gets them side by side. Bigrams would swamp the trees.
READS: Mapping[str, tuple[str, ...]] = {
    "trees": (MAIN,),
    "index": (MAIN,),
    "sub_index": (SUB_WORDS,),
    "names": (SUB_WORDS,),
    "meaning": (DENSE,),
    "ranker": (MAIN, BIGRAMS),
    "centroids": (MAIN, BIGRAMS),
}


@dataclass(frozen=True)
class Layout:
    """The number of features of each block; a block that a model lacks has none."""

    widths: tuple[int, ...]  # in the order of BLOCKS
    dense: int = 0  # dimensions of the dense block
    from_main: bool = False  # whether the dense block is the main one in another form

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self, "_present")

    @classmethod
    def of(cls, *, dense: int = 0, from_main: bool = False, **widths: int) -> Layout:
        return cls(tuple(widths.get(name, 0) for name in BLOCKS), dense, from_main)

    def __getitem__(self, block: str) -> int:
        return self.dense if block == DENSE else self.widths[BLOCKS.index(block)]

    @property
    def n_features(self) -> int:
        return sum(self.widths)

    def width_for(self, part: str) -> int:
        """The number of features that a part of a model reads."""
        return sum(self[block] for block in READS[part])

    def widened(self, block: str, more: int) -> Layout:
        """With more features in one block."""
        widths = {name: self[name] + more * (name == block) for name in BLOCKS}
        return Layout.of(**widths, dense=self.dense, from_main=self.from_main)

    def split(self, x: FeatureArrays) -> Blocks:
        """The blocks of rows that hold all of them side by side."""
        widths = self._present
        blocks = Blocks(dict(zip(widths, x.split([*widths.values()]), strict=True)))
        return blocks.with_main_as_dense() if self.from_main else blocks

    @cached_property
    def _present(self) -> dict[str, int]:
        """The widths of the blocks that there are, but for the dense one."""
        return {name: self[name] for name in BLOCKS if self[name] or name == MAIN}

    def with_main(self, x: FeatureArrays) -> Blocks:
        """Rows with features of the main block only, of which `x` may have the first ones."""
        rows = FeatureArrays(x.indptr, x.indices, x.values, self[MAIN])
        if self.from_main:
            return Blocks.of(rows).with_main_as_dense()
        others = {name: _without_features(x, self[name]) for name in BLOCKS[1:] if self[name]}
        dense = np.zeros((x.n_rows, self.dense), dtype=np.int16)
        return Blocks({MAIN: rows, **others}, DenseRows(dense) if self.dense else None)


@dataclass(frozen=True, eq=False)
class Blocks:
    """The same rows in each block; `MAIN` is always there."""

    arrays: Mapping[str, FeatureArrays]
    dense: DenseRows | None = None
    from_main: bool = False  # whether the dense block is the main one in another form

    @classmethod
    def of(cls, main: FeatureArrays) -> Blocks:
        return cls({MAIN: main})

    def __getstate__(self) -> dict[str, Any]:
        return state_of(self, "_side_by_side")

    @property
    def main(self) -> FeatureArrays:
        return self.arrays[MAIN]

    @property
    def n_rows(self) -> int:
        return self.main.n_rows

    @property
    def layout(self) -> Layout:
        widths = {name: block.n_features for name, block in self.arrays.items()}
        dense = 0 if self.dense is None else self.dense.width
        return Layout.of(**widths, dense=dense, from_main=self.from_main)

    @property
    def n_features(self) -> int:
        return self.layout.n_features

    @property
    def n_values(self) -> int:
        """Number of non-zero values."""
        return sum(len(block.values) for block in self.arrays.values())

    def with_dense(self, dense: DenseRows | None) -> Blocks:
        """The same rows with another dense block."""
        return replace(self, dense=dense)

    def with_main_as_dense(self) -> Blocks:
        """The same rows with a dense block that holds the features of the main one."""
        return replace(self, dense=rows_of_features(self.main), from_main=True)

    def read_by(self, part: str) -> Any:
        """What a part of a model reads; rows without features if its blocks are missing.

        These are `FeatureArrays`, or `DenseRows` for a part that reads the dense block.
        """
        wanted, arrays = READS[part], self.arrays
        if len(arrays) == 1 and MAIN in wanted:  # as in most models of matrices
            return arrays[MAIN]
        if wanted == (DENSE,):
            return self.dense
        found = tuple(name for name in wanted if name in arrays)
        if not found:
            return _without_features(self.main, 0)
        return self._joined(found)

    def has(self, part: str) -> bool:
        """Whether there is any block for a part of a model to read."""
        if READS[part] == (DENSE,):
            return self.dense is not None
        return any(name in self.arrays for name in READS[part])

    def joined(self) -> FeatureArrays:
        """All blocks side by side."""
        return self._joined(tuple(name for name in BLOCKS if name in self.arrays))

    def _joined(self, names: tuple[str, ...]) -> FeatureArrays:
        if len(names) == 1:
            return self.arrays[names[0]]
        if names not in self._side_by_side:
            self._side_by_side[names] = FeatureArrays.joined([self.arrays[name] for name in names])
        return self._side_by_side[names]

    @cached_property
    def _side_by_side(self) -> dict[tuple[str, ...], FeatureArrays]:
        """Several blocks as one, made once for all parts that read them."""
        return {}

    def rows(self, start: int, stop: int) -> Blocks:
        """A view of some consecutive rows."""
        part = self._each(lambda block: block.rows(start, stop))
        for names, joined in list(self._side_by_side.items()):
            vars(part).setdefault("_side_by_side", {})[names] = joined.rows(start, stop)
        return part

    def chunks(self, size: int) -> Iterator[Blocks]:
        """Views of consecutive rows, `size` at a time; at least one, even without rows."""
        for start in range(0, max(1, self.n_rows), size):
            yield self.rows(start, min(start + size, self.n_rows))

    def take(self, rows: NDArray[np.int64]) -> Blocks:
        """The given rows in the given order, copied."""
        return self._each(lambda block: block.take(rows))

    def without_features(self) -> Blocks:
        """Rows that have no features."""
        arrays = {
            name: _without_features(block, block.n_features) for name, block in self.arrays.items()
        }
        dense = None if self.dense is None else self.dense.without_features()
        return replace(self, arrays=arrays, dense=dense)

    def apart_from(self, X: Any) -> Blocks:
        """See `FeatureArrays.apart_from`."""
        arrays = {name: block.apart_from(X) for name, block in self.arrays.items()}
        return replace(self, arrays=arrays)

    def _each(self, change: Callable[[Any], Any]) -> Blocks:
        arrays = {name: change(block) for name, block in self.arrays.items()}
        dense = None if self.dense is None else change(self.dense)
        return replace(self, arrays=arrays, dense=dense)


def stacked(chunks: Sequence[Blocks]) -> Blocks:
    """The rows of several chunks, one after the other."""
    if len(chunks) == 1:
        return chunks[0]
    arrays = {
        name: FeatureArrays.stacked([chunk.arrays[name] for chunk in chunks])
        for name in chunks[0].arrays
    }
    dense = [chunk.dense for chunk in chunks if chunk.dense is not None]
    whole = DenseRows.stacked(dense) if dense else None
    return replace(chunks[0], arrays=arrays, dense=whole)


def _without_features(x: FeatureArrays, n_features: int) -> FeatureArrays:
    return FeatureArrays(np.zeros_like(x.indptr), x.indices[:0], x.values[:0], n_features)
