"""Manifests: small JSON files that describe the files in a folder, protected by a hash."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Collection, Mapping
from typing import Any

from .atomic import atomic_file

_MOST_BYTES = 1 << 16  # a manifest has a few thousand; more is not read
_SEAL = "identity"


class ManifestError(ValueError):
    """A damaged manifest; the message is the reason, which can follow the name of the file."""


class ManifestVersionError(ValueError):
    """A manifest of another version."""

    def __init__(self, version: int) -> None:
        super().__init__(f"it has version {version}")
        self.version = version


def identity(entries: Mapping[str, Any]) -> str:
    """Hash of a manifest's entries."""
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def write_manifest(path: str, entries: Mapping[str, Any], *, replace: bool) -> None:
    """Write the entries, which begin with ``format`` and ``version``; see `atomic_file`."""
    with atomic_file(path, replace=replace) as file:
        file.write(json.dumps({**entries, _SEAL: identity(entries)}, indent=1).encode())


def read_manifest(path: str, format: str, version: int) -> dict[str, Any]:
    """The entries of a manifest; raises one of the errors above unless it fits the arguments."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ManifestError("it is not a regular file")
    with open(path, "rb") as file:
        data = file.read(_MOST_BYTES)
    try:
        entries = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"it is not JSON ({error})") from None
    if not isinstance(entries, dict) or entries.get("format") != format:
        raise ManifestError(f"it does not say that it is an {format}")
    stored_version = entries.get("version")
    if type(stored_version) is int and stored_version != version:
        raise ManifestVersionError(stored_version)
    if entries.pop(_SEAL, None) != identity(entries):
        raise ManifestError("its checksum does not match: it was altered")
    return entries


def differences(
    here: Mapping[str, Any],
    stored: Mapping[str, Any],
    names: Mapping[str, str],
    implied_by: Mapping[str, Collection[str]],
) -> list[str]:
    """What differs between the entries now and the stored ones, in words.

    Some entries have clearer `names`. Hashes are left out if an entry that they are `implied_by`
    differs.
    """
    differ = [name for name, value in here.items() if value != stored.get(name)]
    return [
        f"{names.get(name, name)} is {_short(here[name])} now but was {_short(stored.get(name))}"
        for name in differ
        if not set(implied_by.get(name, ())) & set(differ)
    ]


def _short(value: Any) -> str:
    if isinstance(value, str) and len(value) == 64:  # a hash: the beginning is enough
        return value[:12]
    return repr(value)[:80]
