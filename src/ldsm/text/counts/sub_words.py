"""Which sub-words are features of texts: parts of words, see ``core/text/sub_words.hpp``.

The forms of a word, and words that contain it, have sub-words in common: they make unknown words
useful, and find a label by its name. Texts of a few words have all their sub-words as features.
Longer texts have enough words, so only the sub-words of labels' names are features.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ... import _core
from ..._arrays.matrices import map_columns
from ..._arrays.texts import encoded, packed, unpacked, words_of
from ..._storage.strings import Strings
from .learned_words import LearnedWords

# The fewest texts with a sub-word that is in no name.
LEAST_TEXTS = 3
# Those in more than this share of the texts mean little, and are most of a text's sub-words.
MOST_SHARE = 0.1
# The most sub-words per text on average, and in all. More would take too long and too much memory.
MOST_PER_TEXT = 200
MOST_IN_ALL = 5e7


class ChosenSubWords(NamedTuple):
    """Sub-words, and how often each learned word has them."""

    words: Strings
    of_words: sp.csr_array
    indexed: bool  # whether texts have all of them, or only those of names


def chosen_sub_words(learned: LearnedWords, names: Iterable[str]) -> ChosenSubWords:
    """The sub-words of texts, given the names of their labels."""
    n_texts, n_words = learned.texts.n_texts, len(learned.words)
    named, *_ = words_of([encoded(name, lowercase=True) for name in names])
    indptr, parts, counts, text, offsets = _core.spell_words(*packed([*learned.words, *named]))
    spelled = unpacked(text, offsets)
    split = int(indptr[n_words])  # behind are the words of names
    of_names = np.zeros(len(spelled), dtype=bool)
    of_names[parts[split:]] = True
    # An upper bound: a text may have two words with the sub-word.
    texts = np.bincount(
        parts[:split], np.repeat(learned.texts_with, np.diff(indptr[: n_words + 1])), len(spelled)
    )
    able = texts <= MOST_SHARE * n_texts
    every = able & (of_names | (texts >= LEAST_TEXTS))
    indexed = bool(texts[every].sum() <= min(MOST_PER_TEXT * n_texts, MOST_IN_ALL))
    kept = np.flatnonzero(every if indexed else able & of_names)
    order = sorted(kept.tolist(), key=spelled.__getitem__)
    column = np.full(len(spelled), -1, dtype=np.int64)
    column[order] = np.arange(len(order))
    of_words = sp.csr_array(
        (counts[:split], parts[:split], indptr[: n_words + 1]), shape=(n_words, len(spelled))
    )
    words = Strings(*packed([spelled[i] for i in order]))
    return ChosenSubWords(words, map_columns(of_words, column, len(order)), indexed)


def shown(sub_words: Iterable[str]) -> list[str]:
    """Sub-words as features are named: a hyphen stands for the rest of the word."""
    out = []
    for part in sub_words:
        starts, ends = part.startswith(" "), part.endswith(" ")
        word = part.strip(" ")
        whole = starts and ends
        out.append(f"'{word}'" if whole else f"{'' if starts else '-'}{word}{'' if ends else '-'}")
    return out


def sub_word_idf(texts_with: NDArray[np.int64], n_texts: int) -> NDArray[np.float32]:
    """As for words: 1 for a sub-word of all texts, and more for rarer ones."""
    return np.asarray(np.log((1 + n_texts) / (1 + texts_with)) + 1, dtype=np.float32)
