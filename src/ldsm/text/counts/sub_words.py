"""Which sub-words are features of texts: parts of words, see ``core/text/sub_words.hpp``.

The forms of a word, and words that contain it, have sub-words in common: they make unknown words
useful, and find a label by its name. Texts of a few words have all their sub-words as features.
Longer texts have enough words, so only the sub-words of labels' names are features, and phrases: in
many words, the letters of a name are found anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ... import _core
from ..._arrays.matrices import map_columns
from ..._arrays.texts import PHRASE, PHRASE_WEIGHT, encoded, packed, phrases_of, unpacked, words_of
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

    words: Strings  # phrases, which are names as a whole, come last
    of_words: sp.csr_array  # without phrases
    of_phrases: sp.csr_array  # the sub-words of the name that a phrase is, 1 for each
    indexed: bool  # whether texts have all of them, or only those of names


def chosen_sub_words(learned: LearnedWords, names: Iterable[str]) -> ChosenSubWords:
    """The sub-words of texts, given the names of their labels."""
    n_texts, n_words = learned.texts.n_texts, len(learned.words)
    texts_of_names = [encoded(name, lowercase=True) for name in names]
    named, offsets_of_names, words_of_names = words_of(texts_of_names)
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
    of_named = sp.csr_array(
        (counts[split:], parts[split:], indptr[n_words:] - split), shape=(len(named), len(spelled))
    )
    number: dict[bytes, int] = {}  # a name that is this phrase
    for place, phrase in enumerate([] if indexed else phrases_of(texts_of_names)):
        number.setdefault(phrase, place)
    number.pop(b"", None)
    ones = np.ones(len(words_of_names), dtype=np.float32)
    names_of_words = sp.csr_array(
        (ones, words_of_names, offsets_of_names), shape=(len(texts_of_names), len(named))
    )
    phrases = sorted(number)
    of_phrases = names_of_words[[number[phrase] for phrase in phrases]] @ map_columns(
        of_named, column, len(order)
    )
    of_phrases.data[:] = 1
    able_phrases = np.flatnonzero(np.diff(of_phrases.indptr) > 0)
    words = Strings(
        *packed([*(spelled[i] for i in order), *(phrases[i] for i in able_phrases.tolist())])
    )
    return ChosenSubWords(
        words, map_columns(of_words, column, len(words)), of_phrases[able_phrases], indexed
    )


def shown(sub_words: Iterable[str]) -> list[str]:
    """Sub-words as features are named: a hyphen stands for the rest of the word."""
    out = []
    for part in sub_words:
        if part.startswith(PHRASE.decode()):
            out.append(f"'{part[1:]}'")
            continue
        starts, ends = part.startswith(" "), part.endswith(" ")
        word = part.strip(" ")
        whole = starts and ends
        out.append(f"'{word}'" if whole else f"{'' if starts else '-'}{word}{'' if ends else '-'}")
    return out


def sub_word_idf(
    texts_with: NDArray[np.int64], n_texts: int, of_phrases: sp.csr_array
) -> NDArray[np.float32]:
    """As for words: 1 for a sub-word of all texts, and more for rarer ones.

    A phrase counts a quarter as much as all other sub-words of its name together.
    """
    own = np.log((1 + n_texts) / (1 + texts_with[: of_phrases.shape[1]])) + 1
    return np.asarray(
        np.append(own, np.sqrt(PHRASE_WEIGHT * (of_phrases @ own**2))), dtype=np.float32
    )
