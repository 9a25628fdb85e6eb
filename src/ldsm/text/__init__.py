"""Texts in, tags out: the tagger, its features, and why a text gets its tags."""

from .explanations import TagLeaf, TagScore, TextExplanation, TextPath, WordStep
from .features import default_vectorizer
from .tagger import TextTagger

__all__ = [
    "TagLeaf",
    "TagScore",
    "TextExplanation",
    "TextPath",
    "TextTagger",
    "WordStep",
    "default_vectorizer",
]
