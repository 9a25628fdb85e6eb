"""Many strings as two arrays, so that a million names or texts can be opened without reading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

_BLOCK = 4096  # strings that are decoded at a time


class Strings(Sequence[str]):
    """A read-only sequence of strings over UTF-8 bytes and offsets.

    Parameters
    ----------
    data : uint8 array
        The bytes of all strings, one after the other.
    offsets : int64 array
        String ``i`` is ``data[offsets[i]:offsets[i + 1]]``.

    Examples
    --------
    >>> from ldsm.datasets import Strings
    >>> tags = Strings.pack(["économie", "fisheries"])
    >>> tags[0], len(tags), tags.data.size
    ('économie', 2, 18)
    """

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.data = data
        self.offsets = offsets

    @classmethod
    def pack(cls, strings: Iterable[str]) -> Strings:
        """Encode strings; invalid Unicode (lone surrogates) is refused.

        Parameters
        ----------
        strings : iterable of str
            In the order of the sequence; a `Strings` is returned as it is.
        """
        if isinstance(strings, Strings):
            return strings
        encoded = [_encode(string) for string in strings]
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(string) for string in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, item: int) -> str: ...
    @overload
    def __getitem__(self, item: slice) -> list[str]: ...
    def __getitem__(self, item: int | slice) -> str | list[str]:
        if isinstance(item, slice):
            return [self[i] for i in range(*item.indices(len(self)))]
        i = range(len(self))[item]
        return _decode(self.data[self.offsets[i] : self.offsets[i + 1]].tobytes())

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _BLOCK):
            offsets = self.offsets[start : start + _BLOCK + 1]
            block = self.data[offsets[0] : offsets[-1]].tobytes()
            for begin, end in pairwise((offsets - offsets[0]).tolist()):
                yield _decode(block[begin:end])

    def __add__(self, others: Strings) -> Strings:
        """These strings and others behind them."""
        offsets = np.concatenate([self.offsets, others.offsets[1:] + self.offsets[-1]])
        return Strings(np.concatenate([self.data, others.data]), offsets)

    def __eq__(self, other: Any) -> bool:
        if isinstance(other, Strings):
            pairs = ((self.offsets, other.offsets), (self.data, other.data))
            return self is other or all(np.array_equal(mine, its) for mine, its in pairs)
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Strings: {len(self)}, {self.data.size} bytes>"


def is_unicode(string: str) -> bool:
    """Whether a string can be encoded: lone surrogates, as JSON can write them, cannot."""
    try:
        string.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"The bytes {data[:80]!r} are not a string in UTF-8.") from None


def _encode(string: str) -> bytes:
    try:
        return string.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"The string {string[:80]!r} is not valid Unicode: character {error.start} is a lone "
            "surrogate."
        ) from None
