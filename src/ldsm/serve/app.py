"""The web application: endpoints, error handlers and middleware."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.security import APIKeyHeader
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from .._storage.paths import PathLike
from .._version import __version__
from .api import annif, inference, insight
from .api.reference import reference_page
from .batching import Busy
from .http.answers import wrong_value
from .http.guards import Guard, errors_of, path_of, problem
from .models import NoSuchModel
from .page import page
from .service import NotSaved, Refused, Service
from .settings import Settings
from .telemetry import Telemetry

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def create_app(models: Sequence[PathLike], settings: Settings | None = None) -> FastAPI:
    """A web application that tags texts with the given models.

    Parameters
    ----------
    models : list of paths
        Model files of taggers. The name of a model is its file name without ``.ldsm``.
    settings : Settings, optional
        Limits and paths; by default those of `Settings`.

    Examples
    --------
    >>> from ldsm import TextTagger
    >>> from ldsm.serve import create_app
    >>> texts, tags = ["cod quota", "beef import"] * 5, [["fish"], ["meat"]] * 5
    >>> TextTagger().fit(texts, tags).save("tags.ldsm")
    >>> app = create_app(["tags.ldsm"])
    >>> sorted(app.openapi()["paths"])[:2]
    ['/metrics', '/v1/projects']
    """
    settings = settings or Settings()
    _ = settings.api_key  # raises an error now if it cannot be read
    telemetry = Telemetry()
    service = Service([Path(path) for path in models], settings, telemetry)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        service.close()

    app = FastAPI(
        title="ldsm",
        version=__version__,
        description="Tags for texts, and the reasons for them.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    needed = [Security(APIKeyHeader(name="X-API-Key", auto_error=False))]  # checked by the guard
    for interface in (annif, insight, inference):
        app.include_router(
            interface.router(service),
            responses=errors_of(interface is inference),
            dependencies=needed if settings.api_key else [],
        )

    @app.get("/metrics", tags=["Operation"], response_class=Response)
    async def show_metrics() -> Response:
        """Metrics of requests, times, batches and models, in the Prometheus text format."""
        return Response(telemetry.exposition(service.models), media_type=METRICS_TYPE)

    @app.get("/", include_in_schema=False)
    async def show_page(request: Request) -> HTMLResponse:
        return HTMLResponse(page(request.state.nonce))

    @app.get("/docs", include_in_schema=False)
    async def show_reference(request: Request) -> HTMLResponse:
        # This page is public; the names of models are only for clients with the key.
        model = "MODEL" if settings.api_key else next(iter(service.models)).name
        address, nonce = str(request.base_url), request.state.nonce
        return HTMLResponse(reference_page(app.openapi(), address, model, nonce))

    _add_error_handlers(app)
    app.add_middleware(Guard, settings=settings, on_response=telemetry.count_request)
    if settings.allow_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.allow_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["content-type", "x-api-key", "authorization"],
        )
    return app


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(NoSuchModel)
    async def no_such_model(request: Request, error: NoSuchModel) -> JSONResponse:
        return problem(path_of(request.scope), 404, f"There is no model {error.args[0][:80]!r}.")

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> JSONResponse:
        return problem(path_of(request.scope), 400, str(error))

    @app.exception_handler(NotSaved)
    async def not_saved(request: Request, error: NotSaved) -> JSONResponse:
        return problem(path_of(request.scope), 507, str(error))

    @app.exception_handler(Busy)
    async def busy(request: Request, error: Busy) -> JSONResponse:
        text = "Server busy. Retry later."
        return problem(path_of(request.scope), 429, text, **{"Retry-After": "1"})

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return problem(path_of(request.scope), 422, _describe(first))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers or {})
        text = f"{error.detail.rstrip('.')}."
        return problem(path_of(request.scope), error.status_code, text, **headers)


def _describe(error: Any) -> str:
    """The first error of an invalid request, and its location."""
    place = error["loc"][1:]  # without "body" or "query"
    if error["type"] == "json_invalid":
        return f"The body is not valid JSON (at character {place[0]})."
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return f"{name.lstrip('.') or 'The body'}: {wrong_value(error)}"
