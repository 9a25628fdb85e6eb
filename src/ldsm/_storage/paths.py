"""Paths from users, and paths in messages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Union

PathLike = Union[str, "os.PathLike[str]"]


def printable(path: PathLike) -> str:
    """The path as text for messages, even if its name is not valid Unicode."""
    return os.fspath(path).encode("utf-8", "backslashreplace").decode("utf-8")


@contextmanager
def named_in_errors(path: PathLike) -> Iterator[None]:
    """Let errors of the system name the file: those of writing, as on a full disk, do not."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def folder_path(what: str, folder: PathLike) -> str:
    """The absolute path of a folder that exists or can be created; `what` names it in errors."""
    if not isinstance(folder, (str, os.PathLike)) or not os.fspath(folder):
        raise ValueError(f"{what} must be a path. Got {folder!r} instead.")
    path = os.path.abspath(folder)
    if os.path.exists(path) and not os.path.isdir(path):
        raise ValueError(f"{what} must name a folder. {path!r} is a file.")
    return path
