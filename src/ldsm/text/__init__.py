"""Texts in, tags out: the tagger, its features, and why a text gets its tags."""

from .explanations import TagLeaf, TagScore, TextExplanation, TextPath, WordStep
from .tagger import TextTagger, default_vectorizer

__all__ = [
    "TagLeaf",
    "TagScore",
    "TextExplanation",
    "TextPath",
    "TextTagger",
    "WordStep",
    "default_vectorizer",
]
