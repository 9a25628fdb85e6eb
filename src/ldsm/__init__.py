"""ldsm: logarithm-depth streaming multi-label decision trees."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from . import datasets, metrics, objective
    from ._loading import load
    from ._parts import parts
    from ._trees import Forest
    from .classifier import LdSMClassifier
    from .text import TextTagger

__all__ = [
    "Forest",
    "LdSMClassifier",
    "TextTagger",
    "datasets",
    "load",
    "metrics",
    "objective",
    "parts",
]

# Imported on first use, so that programs start quickly and Ctrl-C works during imports.
_HOMES = {
    "Forest": "_trees",
    "LdSMClassifier": "classifier",
    "TextTagger": "text",
    "load": "_loading",
    "parts": "_parts",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in _HOMES:
        return import_module(f".{name}", __name__)
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
