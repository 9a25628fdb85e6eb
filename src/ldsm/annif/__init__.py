"""A backend for Annif, the subject indexing tool: see ``docs/annif.md``.

Annif looks backends up in a dictionary of its own. Importing this package adds ``ldsm`` to it, and
naming the configuration below makes Annif import it::

    export ANNIF_CONFIG=ldsm.annif.Config

A configuration class of your own, or the file of ``ANNIF_SETTINGS``, only needs the line
``import ldsm.annif``.
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

# Annif's own choice: servers load their projects at the start, commands the one that they need.
_by_command = os.environ.get("FLASK_RUN_FROM_CLI") == "true"
_Usual: Any = default_config.Config if _by_command else default_config.ProductionConfig


class Config(_Usual):  # type: ignore[misc]
    """The configuration that Annif would have chosen by itself."""


def register() -> None:
    """Add the backend ``ldsm`` to those that Annif knows; importing this package does it.

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
            "ldsm.annif cannot add its backend to this version of Annif: annif.backend has no "
            "dictionary _backend_fns. Annif 1.4 has it."
        )
    known["ldsm"] = _backend


def _backend() -> Any:
    """The class of the backend, imported when a project asks for it, as Annif's own are."""
    from .backend import LdSMBackend

    return LdSMBackend


register()
