"""The places of words in a text, to show which of them speak for a tag."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from .features import TextFeatures
from .vectorizer import unfitted_vectorizer


class Part(NamedTuple):
    """A piece of a text; a weight of 0 means that it has no effect."""

    text: str
    weight: float


def marked(features: TextFeatures, text: str, weights: Mapping[str, float]) -> list[Part]:
    """The text in pieces, with the weights of the words in them.

    The weight of a sequence of words is divided among them. Nothing is marked for a vectorizer with
    custom functions.

    Examples
    --------
    >>> from ldsm import TextTagger
    >>> texts, tags = ["cod quota", "beef import"] * 5, [["fish"], ["meat"]] * 5
    >>> features = TextTagger().fit(texts, tags).features_
    >>> [tuple(part) for part in marked(features, "A quota, for Cod!", {"cod": 0.5, "quota": 0.2})]
    [('A ', 0.0), ('quota', 0.2), (', for ', 0.0), ('Cod', 0.5), ('!', 0.0)]
    """
    if features.settings:
        vectorizer = unfitted_vectorizer(features.settings, None)
    else:
        vectorizer = features.vectorizer
    weight = np.zeros(len(text))
    for spans, name in _occurrences(vectorizer, text):
        if value := weights.get(name, 0.0):
            for start, end in spans:
                weight[start:end] += value / len(spans)
    parts, at = [], 0
    for value, run in groupby(weight.tolist()):
        end = at + len(list(run))
        parts.append(Part(text[at:end], value))
        at = end
    return parts


def _occurrences(
    vectorizer: TfidfVectorizer, text: str
) -> Iterator[tuple[list[tuple[int, int]], str]]:
    """What the vectorizer would count in the text, with the places of its words."""
    if callable(vectorizer.analyzer) or vectorizer.tokenizer or vectorizer.preprocessor:
        return
    clean = vectorizer.build_preprocessor()
    # Two adjacent words count as a bigram even if the vectorizer has only single words: the tagger
    # has its own bigrams.
    shortest, longest = vectorizer.ngram_range[0], max(2, vectorizer.ngram_range[1])
    if vectorizer.analyzer == "word":
        stop_words = vectorizer.get_stop_words() or ()
        found = [
            (m.span(m.re.groups and 1), clean(m[m.re.groups and 1]))
            for m in re.finditer(vectorizer.token_pattern, text)
        ]
        words = [(span, word) for span, word in found if word not in stop_words]
        for length in range(shortest, longest + 1):
            for i in range(len(words) - length + 1):
                sequence = words[i : i + length]
                yield [span for span, _ in sequence], " ".join(word for _, word in sequence)
        return
    for length in range(shortest, vectorizer.ngram_range[1] + 1):
        for i in range(len(text) - length + 1):
            # At the edge of a word, "char_wb" has a blank instead of the character there.
            piece = (
                re.sub(r"\W", " ", text[i : i + length])
                if "_" in vectorizer.analyzer
                else (text[i : i + length])
            )
            yield [(i, i + length)], clean(piece)
