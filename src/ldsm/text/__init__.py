"""Tagging texts: the tagger, its features and its explanations."""

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
