"""Texts as the core reads them: bytes and offsets, and which characters words are made of."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .. import _core

Packed = tuple[NDArray[np.uint8], NDArray[np.int64]]
# Phrases are among the sub-words, marked by a character that no word has; as in the core.
PHRASE = b"="
PHRASE_WEIGHT = 0.25  # of a name's squared length without it
_STEM_CHARACTERS, _MOST_PHRASE_WORDS = 6, 8  # as in the core
_BMP = 0x10000  # beyond are characters that hardly any text has
_LAST = 0x110000


def encoded(text: str, *, lowercase: bool) -> bytes:
    """The text as bytes. Lone surrogates, which no word contains, are let through."""
    return (text.lower() if lowercase else text).encode("utf-8", "surrogatepass")


def packed(strings: list[bytes]) -> Packed:
    """Bytes and offsets."""
    offsets = np.zeros(len(strings) + 1, dtype=np.int64)
    np.cumsum([len(string) for string in strings], out=offsets[1:])
    return np.frombuffer(b"".join(strings), dtype=np.uint8), offsets


def unpacked(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> list[bytes]:
    """The strings that bytes and offsets hold."""
    raw = data.tobytes()
    return [raw[a:b] for a, b in pairwise(offsets.tolist())]


def packed_texts(texts: Iterable[str]) -> Packed:
    """Texts as arrays, which are quick to send."""
    return packed([encoded(text, lowercase=False) for text in texts])


def unpacked_texts(texts: Packed) -> list[str]:
    """The texts of `packed_texts`."""
    return [text.decode("utf-8", "surrogatepass") for text in unpacked(*texts)]


def word_characters(text: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """1 for each character that can be part of a word, by its number, up to those of the text."""
    beyond = len(text) > 0 and int(text.max()) >= 0xF0  # four bytes each
    return _word_characters(_LAST if beyond else _BMP)


@cache
def _word_characters(n: int) -> NDArray[np.uint8]:
    table = np.fromiter((chr(i).isalnum() for i in range(n)), dtype=np.uint8, count=n)
    table[ord("_")] = 1
    return table


def words_of(
    strings: list[bytes],
) -> tuple[list[bytes], NDArray[np.int64], NDArray[np.int32]]:
    """All words of some short texts, and of each text its distinct ones, as numbers."""
    text = packed(strings)
    indptr, numbers, _, words, offsets, *_ = _core.count_words(*text, word_characters(text[0]))
    return unpacked(words, offsets), indptr, numbers


def phrases_of(names: list[bytes]) -> list[bytes]:
    """Each name as a phrase, which texts have if they have its words side by side.

    A word is known by its first characters, because the forms of a word end differently. It is
    empty for names without words, and for very long ones.
    """
    text = packed(names)
    *_, words, ends, offsets, sequence = _core.count_words(*text, word_characters(text[0]))
    stems = [_stem(word) for word in unpacked(words, ends)]
    numbers = sequence.tolist()
    return [
        PHRASE + b" ".join([stems[i] for i in numbers[a:b]])
        if 0 < b - a <= _MOST_PHRASE_WORDS
        else b""
        for a, b in pairwise(offsets.tolist())
    ]


def _stem(word: bytes) -> bytes:
    known = word.decode("utf-8", "surrogatepass")[:_STEM_CHARACTERS]
    return known.encode("utf-8", "surrogatepass")


def are_phrases(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of some sub-words are phrases."""
    filled = np.append(np.asarray(data), np.uint8(0))  # an empty string begins with the next one
    return np.asarray((filled[offsets[:-1]] == PHRASE[0]) & (np.diff(offsets) > 0))
