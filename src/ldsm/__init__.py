"""ldsm: logarithm-depth streaming multi-label decision trees."""

from importlib.metadata import PackageNotFoundError, version

from . import datasets, metrics, objective
from .classifier import LdSMClassifier
from .forest import Forest
from .loading import load
from .text import TextTagger

try:
    __version__ = version("ldsm")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["Forest", "LdSMClassifier", "TextTagger", "datasets", "load", "metrics", "objective"]
