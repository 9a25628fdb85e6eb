"""The public names of ldsm: what the reference must describe."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from types import ModuleType
from typing import Any
from unittest.mock import patch

import ldsm


def _import_annif_backend() -> None:
    """Import ``ldsm.annif`` without Annif, which needs older packages than the site."""
    annif: Any = ModuleType("annif")
    annif.backend, annif.default_config = ModuleType("annif.backend"), ModuleType("annif.config")
    annif.backend._backend_fns = {}  # noqa: SLF001
    annif.default_config.Config = annif.default_config.ProductionConfig = object
    with patch.dict(sys.modules, {"annif": annif, "annif.backend": annif.backend}):
        backend = importlib.import_module("ldsm.annif")
    sys.modules["ldsm.annif"] = backend  # which the patch has taken away with the others


try:
    importlib.import_module("ldsm.annif")
except ImportError:
    _import_annif_backend()


def public_modules() -> list[str]:
    """``ldsm`` and its modules that declare their names in ``__all__``, private ones left out."""
    found = [module.name for module in pkgutil.walk_packages(ldsm.__path__, "ldsm.")]
    public = (name for name in found if not re.search(r"\._|^ldsm\.annif\.", name))
    return ["ldsm", *(name for name in public if hasattr(importlib.import_module(name), "__all__"))]


def public_objects() -> Iterator[tuple[str, Any]]:
    """Each public class, function and constant under its full name; once, if it has two homes."""
    seen: set[int] = set()
    for module in map(importlib.import_module, public_modules()):
        for name in module.__all__:
            value = getattr(module, name)
            if not inspect.ismodule(value) and id(value) not in seen:
                seen.add(id(value))
                yield f"{module.__name__}.{name}", value


def is_record(value: Any) -> bool:
    """Whether it is a class whose arguments are its fields: a dataclass or a named tuple."""
    return isinstance(value, type) and (is_dataclass(value) or issubclass(value, tuple))


def public_members(name: str, kind: type) -> Iterator[tuple[str, Any]]:
    """The methods and properties that a class defines itself, without private ones."""
    for member, value in vars(kind).items():
        is_code = callable(value) or isinstance(value, (property, classmethod, staticmethod))
        if not member.startswith("_") and (is_code or hasattr(value, "func")):
            yield f"{name}.{member}", value
