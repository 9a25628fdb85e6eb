"""Named arrays that do not change: what the parts of a second stage are."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class FrozenArrays:
    """A dataclass whose fields are arrays, made read-only."""

    def __post_init__(self) -> None:
        for array in self.arrays().values():
            array.flags.writeable = False

    @classmethod
    def array_names(cls) -> list[str]:
        return [field.name for field in fields(cls)]

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in self.array_names()}

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    def __reduce__(self) -> tuple[Any, ...]:
        # Only the arrays. What was derived from them is recomputed, read-only as before.
        return type(self), tuple(self.arrays().values())
