"""Tagging texts: the tagger, its features and its explanations."""

from .explanations import TagLeaf, TagScore, TextExplanation, TextPath, WordStep
from .tagger import TextTagger
from .vectorizer import default_vectorizer

__all__ = [
    "TagLeaf",
    "TagScore",
    "TextExplanation",
    "TextPath",
    "TextTagger",
    "WordStep",
    "default_vectorizer",
]
