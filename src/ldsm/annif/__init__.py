"""A backend for Annif, the subject indexing tool; see ``docs/annif.md``.

Annif looks up backends in a dictionary. Importing this package adds ``ldsm`` to it. Selecting the
configuration below makes Annif import the package::

    export ANNIF_CONFIG=ldsm.annif.Config

Your own configuration class, or the file named by ``ANNIF_SETTINGS``, only needs the line ``import
ldsm.annif``.
"""

import os
from typing import Any

try:
    import annif.backend
    from annif import default_config
except ImportError as error:
    raise ImportError(
        f'ldsm.annif needs {error.name}, which is not installed: pip install "ldsm[annif]".'
    ) from error

__all__ = ["Config", "register"]

# As Annif chooses: servers load all projects at startup, commands only the one they need.
_by_command = os.environ.get("FLASK_RUN_FROM_CLI") == "true"
_Usual: Any = default_config.Config if _by_command else default_config.ProductionConfig


class Config(_Usual):  # type: ignore[misc]
    """The configuration that Annif would choose by default."""


def register() -> None:
    """Register the backend ``ldsm`` with Annif; importing this package calls it.

    Examples
    --------
    >>> import annif.backend
    >>> import ldsm.annif
    >>> annif.backend.get_backend("ldsm").name
    'ldsm'
    """
    known = getattr(annif.backend, "_backend_fns", None)
    if known is None:
        raise ImportError(
            "ldsm.annif does not support this version of Annif: annif.backend has no dictionary "
            "_backend_fns. Use Annif 1.4."
        )
    known["ldsm"] = _backend


def _backend() -> Any:
    """The backend class, imported on first use like Annif's own backends."""
    from .backend import LdSMBackend

    return LdSMBackend


register()
