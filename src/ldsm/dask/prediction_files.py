"""The folder of predictions: a file for each chunk of rows, and a manifest that identifies them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from zipfile import BadZipFile

import numpy as np

from .._storage.manifest import (
    ManifestError,
    ManifestVersionError,
    differences,
    read_manifest,
    write_manifest,
)
from .._storage.paths import PathLike, folder_path
from .._wording import warn

_FORMAT, _VERSION = "ldsm-predictions", 1
_MANIFEST = "predictions.json"


def predictions_folder(output_dir: PathLike) -> str:
    """The absolute path of the folder, which is made if it is missing."""
    folder = folder_path("The 'output_dir' argument", output_dir)
    os.makedirs(folder, exist_ok=True)
    return folder


def begin(folder: str, predictions: Mapping[str, Any]) -> None:
    """Start a folder for these predictions; an error if it holds anything else."""
    manifest = {"format": _FORMAT, "version": _VERSION, **predictions}
    path = os.path.join(folder, _MANIFEST)
    if not os.path.exists(path):
        if os.listdir(folder):
            raise ValueError(
                "The 'output_dir' argument must be a new or empty folder, or one with the same "
                f"predictions. {folder!r} holds {min(os.listdir(folder))!r}."
            )
        write_manifest(path, manifest, replace=False)
    try:
        stored = read_manifest(path, _FORMAT, _VERSION)
    except (ManifestError, ManifestVersionError) as error:
        raise ValueError(
            f"The file {path!r} cannot be used: {error}. Delete the folder, or choose another."
        ) from error
    differ = differences(manifest, stored, {}, {})
    if differ:
        raise ValueError(
            f"The folder {folder!r} holds other predictions: {'; '.join(differ)}. Choose another "
            "one, or delete it."
        )


def part_path(folder: str, chunk: int) -> str:
    """The file of a chunk of rows, by its number."""
    return os.path.join(folder, f"part-{chunk:05}.npz")


def is_whole(path: str, shape: tuple[int, int]) -> bool:
    """Whether a part exists and can be read; a damaged part is rewritten."""
    try:
        with open(path, "rb") as file, np.load(file) as part:
            shapes = {part[name].shape for name in ("columns", "scores")}
    except FileNotFoundError:
        return False
    except (OSError, EOFError, ValueError, TypeError, KeyError, BadZipFile) as error:
        warn(f"The part {path!r} is damaged ({error}); rewriting it.")
        return False
    return shapes == {shape}
