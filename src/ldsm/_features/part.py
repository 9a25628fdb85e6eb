"""What the parts of a model have in common: they are named arrays, and know their saved form."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from .._arrays.frozen_arrays import FrozenArrays
from .._storage.container import Arrays
from .._storage.fields import Sizes, Table

if TYPE_CHECKING:
    from typing_extensions import Self

LARGEST = 1e30  # for a number of a file: products with any float32, and their sums, stay finite


class Part(FrozenArrays):
    """One part of a model."""

    TABLE: ClassVar[Table]

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
