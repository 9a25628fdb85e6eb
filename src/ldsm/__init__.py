"""ldsm: logarithm-depth streaming multi-label decision trees."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import datasets, metrics, objective
from ._trees import Forest
from ._version import __version__ as __version__
from .classifier import LdSMClassifier

if TYPE_CHECKING:
    from ._loading import load
    from .text import TextTagger

__all__ = ["Forest", "LdSMClassifier", "TextTagger", "datasets", "load", "metrics", "objective"]

# Imported on first use, because they need scikit-learn's text tools.
_LATE = {"TextTagger": "text", "load": "_loading"}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LATE[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
