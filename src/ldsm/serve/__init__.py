"""A web service that tags texts, with a web page and an API; see ``docs/serving.md``.

``ldsm serve tags.ldsm`` starts it. `create_app` returns the application itself, to run with any
ASGI server or to mount in another application.
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
