"""A folder of finished trees, from which an interrupted fit continues.

``checkpoint.json`` says which fit the trees belong to: data, parameters and seed. It is written
once and never changed, and a fit that differs is refused. Every finished tree is a file of its own,
``tree-00007.ldsm``, in the container of model files: it is written completely or not at all, and
checked when read. A tree depends only on (data, parameters, seed, number), so processes that share
a folder write the same bytes, and it does not matter whose file stays.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._storage.atomic import check_writable, is_temporary, remove_stale_files
from .._storage.container import (
    FormatVersionError,
    ModelFileError,
    checksum,
    read,
    refused,
    write,
)
from .._storage.manifest import (
    ManifestError,
    ManifestVersionError,
    differences,
    identity,
    read_manifest,
    write_manifest,
)
from .._storage.paths import PathLike, folder_path
from .._storage.tasks.kept_results import wait_for
from .._version import __version__
from .._wording import parameter, warn
from .checks import check_forest
from .forest import TREE_ARRAYS, Forest
from .params import TreeParams
from .training_data import TrainingData

Tree = dict[str, NDArray[Any]]

FORMAT = "ldsm-checkpoint"
VERSION = 1
MANIFEST = "checkpoint.json"
WORDS = "words"  # the folder for counts of words, which come before the manifest
# Names for errors, where the manifest's own name would be unclear.
_NAMES = {
    "relaxations": "relaxations (by relax_integrity)",
    "seed": "the seed (drawn from random_state)",
    "rows": "the number of rows",
    "n_features": "the number of features",
    "n_labels": "the number of labels",
    "label_fingerprint": "the hash of the labels",
    "data_fingerprint": "the hash of X",
    "library_version": "the version of ldsm",
}
# Hashes that differ whenever one of these entries does, and then need no mention.
_IMPLIED_BY = {
    "label_fingerprint": ("rows", "n_labels"),
    "data_fingerprint": ("rows", "n_labels", "n_features", "label_fingerprint"),
}


class Receipt(NamedTuple):
    """The receipt of a tree in the folder: its number, and the checksum of its file."""

    tree: int
    checksum: str


@dataclass(frozen=True)
class Checkpoint:
    """The trees of one fit in a folder; small, so that it is quick to send to a process."""

    folder: str  # absolute
    identity: str  # hash of what determines the trees; stored in the file of every tree
    params: TreeParams
    n_features: int
    n_labels: int
    seed: int

    def path(self, tree: int) -> str:
        """The file of a tree."""
        return os.path.join(self.folder, f"tree-{tree:05}.ldsm")

    def put(self, tree: int, arrays: Tree) -> Receipt:
        """Write a finished tree, completely or not at all."""
        header = {"kind": "tree", "tree": tree, "identity": self.identity}
        # It is read only once, maybe elsewhere: growing trees need the memory more.
        return Receipt(tree, write(self.path(tree), header, arrays, cached=False))

    def finished(self, trees: Iterable[int]) -> dict[int, Tree]:
        """The given trees that are in the folder, by number; damaged ones count as missing."""
        trees_here = {}
        for tree in trees:
            try:
                trees_here[tree] = self._read(tree)
            except FileNotFoundError:
                continue
            except FormatVersionError:
                raise
            except ModelFileError as error:
                warn(f"{error} Tree {tree} will be grown again.")
        return trees_here

    def receipt(self, tree: int) -> Receipt | None:
        """The receipt of a tree, or None if it is missing or damaged."""
        with suppress(FileNotFoundError, ModelFileError):
            self._read(tree)
            return Receipt(tree, checksum(self.path(tree)))
        return None

    def get(self, receipt: Receipt) -> Tree:
        """The tree of a receipt."""
        wait_for(self.path(receipt.tree))
        arrays = self._read(receipt.tree)
        if checksum(self.path(receipt.tree)) != receipt.checksum:
            raise ValueError(
                f"The checkpoint file {self.path(receipt.tree)!r} is not the one that this fit "
                "wrote: another build of ldsm is using the same folder."
            )
        return arrays

    def _read(self, tree: int) -> Tree:
        path = self.path(tree)
        header, arrays = read(path, cached=False)
        try:
            self._check(tree, header, arrays)
        except ValueError as error:
            raise refused(path, error) from None
        return arrays

    def _check(self, tree: int, header: Mapping[str, Any], arrays: Tree) -> None:
        if header["kind"] != "tree" or header.get("tree") != tree:
            raise ValueError(f"it does not hold tree {tree}")
        if header.get("identity") != self.identity:
            raise ValueError("its tree belongs to another fit")
        if set(arrays) != set(TREE_ARRAYS):
            name = min(set(arrays) ^ set(TREE_ARRAYS))
            raise ValueError(f"an array is missing or one too many, {name[:80]!r}")
        checked: dict[str, Any] = arrays
        forest = Forest(
            arity=self.params.arity,
            n_features=self.n_features,
            n_labels=self.n_labels,
            tree_offsets=np.array([0, len(arrays["first_child"])], dtype=np.int64),
            **checked,
        )
        check_forest(forest)
        # What all trees of a forest must agree on.
        n_means = len(forest.weight_features) if self.params.standardize else 0
        if len(forest.weight_means) != n_means:
            raise ValueError(f"weight_means must have {n_means} entries")
        if forest.is_compressed != self.params.compress:
            raise ValueError("its weights must be compressed if those of the fit are")
        if forest.epoch_objective.shape[1] != self.params.n_epochs:
            raise ValueError(f"epoch_objective must have {self.params.n_epochs} columns")


def open_checkpoint(
    folder: PathLike, data: TrainingData, params: TreeParams, *, seed: int, seed_given: bool
) -> Checkpoint:
    """Open the checkpoint of a fit, or start one in a new or empty folder.

    Data, parameters and seed determine the trees; their number may differ. Unless `seed_given`, the
    seed was just drawn, and a stored one takes precedence. A folder that is something else,
    damaged, or the checkpoint of another fit is a ValueError.
    """
    path = prepare_folder(folder)
    remove_stale_files(path)
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "library_version": __version__,
        "rows": data.n_rows,
        "n_features": data.n_features,
        "n_labels": data.n_labels,
        "label_fingerprint": data.y.fingerprint,
        "data_fingerprint": data.fingerprint,
        "tree_params": params.as_dict(),
        "seed": seed,
    }
    file = os.path.join(path, MANIFEST)
    if not os.path.exists(file):
        write_manifest(file, manifest, replace=False)
    # Always read it back: another process may have written it first.
    stored = _read_manifest(file)
    if not seed_given:
        seed = manifest["seed"] = stored["seed"]
    differ = differences(_flat(manifest), _flat(stored), _NAMES, _IMPLIED_BY)
    if differ:
        raise ValueError(
            f"The checkpoint {path!r} belongs to another fit: {'; '.join(differ)}. "
            "Choose another folder, or delete this one."
        )
    return Checkpoint(path, identity(manifest), params, data.n_features, data.n_labels, seed)


def prepare_folder(folder: PathLike) -> str:
    """The absolute path of a folder that is or can become a checkpoint; created if missing."""
    path = folder_path(parameter("checkpoint_dir"), folder)
    os.makedirs(path, exist_ok=True)
    foreign = [name for name in os.listdir(path) if not is_temporary(name) and name != WORDS]
    if os.path.exists(os.path.join(path, MANIFEST)):
        return path
    if foreign:
        raise ValueError(
            f"{parameter('checkpoint_dir')} must name a new or empty folder, or a checkpoint. "
            f"{path!r} holds {min(foreign)!r} and no {MANIFEST}."
        )
    check_writable(path)
    return path


def words_folder(folder: PathLike) -> str:
    """The folder of a checkpoint for counts of words; created if missing."""
    path = os.path.join(prepare_folder(folder), WORDS)
    os.makedirs(path, exist_ok=True)
    remove_stale_files(path)
    return path


def _read_manifest(path: str) -> dict[str, Any]:
    try:
        stored = read_manifest(path, FORMAT, VERSION)
    except ManifestVersionError as error:
        raise ValueError(
            f"The checkpoint {os.path.dirname(path)!r} has format version {error.version}, but "
            f"this ldsm reads {VERSION}. Continue with the version of ldsm that started it, or "
            "choose another folder."
        ) from None
    except ManifestError as error:
        raise _damaged(path, error) from None
    seed = stored.get("seed")
    proper = type(seed) is int and 0 <= seed < 2**63
    if not proper or not isinstance(stored.get("tree_params"), dict):
        raise _damaged(path, "an entry is missing or of the wrong kind")
    return stored


def _damaged(path: str, reason: object) -> ValueError:
    return ValueError(
        f"The checkpoint file {path!r} is damaged: {reason}. Without it the trees in the folder "
        "cannot be matched to a fit: delete the folder, or choose another."
    )


def _flat(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The entries, with the trees' parameters at the same level."""
    return {**manifest, **manifest["tree_params"], "tree_params": None}
