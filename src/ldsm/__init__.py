"""ldsm: logarithm-depth streaming multi-label decision trees."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from . import datasets, metrics, objective
from .classifier import LdSMClassifier
from .forest import Forest

if TYPE_CHECKING:
    from .loading import load
    from .text import TextTagger

try:
    __version__ = version("ldsm")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["Forest", "LdSMClassifier", "TextTagger", "datasets", "load", "metrics", "objective"]

# Loaded when first asked for: they bring scikit-learn's text tools along.
_LATE = {"TextTagger": "text", "load": "loading"}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LATE[name]}", __name__), name)
