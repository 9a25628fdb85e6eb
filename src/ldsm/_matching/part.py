"""The protocol of a model's parts: each is one class of named arrays.

A matcher (``_matching``) finds labels for shortlists, a ranker (``_ranking``) scores those listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._arrays.frozen_arrays import FrozenArrays
from .._features.blocks import Layout
from .._features.new_rows import NewRows
from .._storage.container import Arrays
from .._storage.fields import Sizes, Table
from .._trees.columns import Moved

if TYPE_CHECKING:
    from typing_extensions import Self

LARGEST = 1e30  # for a number of a file: products with any float32, and their sums, stay finite


@dataclass(frozen=True, eq=False)
class Update:
    """New rows for a part to learn."""

    new: NewRows
    masses: Mapping[str, NDArray[np.float32]]  # of the features, by block, in the rows before
    seed: int


class Part(FrozenArrays):
    """One part of a model; its `name` is a key of `PARTS` and of `READS`."""

    TABLE: ClassVar[Table]
    OWNER: ClassVar[str] = "feature"  # what each list of weights belongs to
    offsets: NDArray[np.int64]  # of these lists

    @classmethod
    def from_arrays(cls, name: str, arrays: Arrays, sizes: Sizes, *, verify: bool) -> Self:
        """The part of a file, removed from `arrays`; a ValueError if it is wrong.

        `sizes`: the number of "features" that it reads, of "labels", and of labels that matchers
        "know", dropped ones included. With `verify`, all its numbers are checked.
        """
        part = cls(**cls.TABLE.taken(arrays, f"second_stage.{name}.", verify=verify, sizes=sizes))
        part.check(name, sizes, verify=verify)
        return part

    def check(self, name: str, sizes: Sizes, *, verify: bool) -> None:
        """Raise a ValueError for what the table cannot say."""
        raise NotImplementedError

    def relabelled(self, moved: Moved) -> Self:
        """The same with labels in other columns."""
        raise NotImplementedError

    def widened(self, name: str, before: Layout, after: Layout) -> Self:
        """The same with room for new features of the main block, of which nothing is known."""
        return self

    def learned(self, name: str, update: Update) -> Self:
        """With new rows learned. What is fitted to scores of other parts stays as it is."""
        return self
