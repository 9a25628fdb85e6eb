"""A web service that tags texts, with a page to try it on: see ``docs/serving.md``.

``ldsm serve tags.ldsm`` starts it. `create_app` gives the application itself, to be run by any
server of ASGI applications or mounted in another one.
"""

try:
    import fastapi as _fastapi  # noqa: F401
    import httptools as _httptools  # noqa: F401
    import prometheus_client as _prometheus_client  # noqa: F401
    import uvicorn as _uvicorn  # noqa: F401
except ImportError as error:
    raise ImportError(
        f'ldsm.serve needs {error.name}, which is not installed: pip install "ldsm[serve]".'
    ) from error

from .app import create_app
from .settings import Settings

__all__ = ["Settings", "create_app"]
