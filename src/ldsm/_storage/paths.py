"""Paths from users, and paths in messages."""

from __future__ import annotations

import os
from typing import Union

PathLike = Union[str, "os.PathLike[str]"]


def printable(path: PathLike) -> str:
    """The path as text for messages, even if its name is not valid Unicode."""
    return os.fspath(path).encode("utf-8", "backslashreplace").decode("utf-8")


def folder_path(what: str, folder: PathLike) -> str:
    """The absolute path of a folder that exists or can be created; `what` names it in errors."""
    if not isinstance(folder, (str, os.PathLike)) or not os.fspath(folder):
        raise ValueError(f"{what} must be a path. Got {folder!r} instead.")
    path = os.path.abspath(folder)
    if os.path.exists(path) and not os.path.isdir(path):
        raise ValueError(f"{what} must name a folder. {path!r} is a file.")
    return path
