"""Checks of every request: host, size, key and time; and security headers for browsers."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import anyio
from pydantic import BaseModel
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..settings import TIMEOUT_STATE, Settings
from .bodies import JSON_BODY, names_another_charset
from .hosts import is_allowed

log = logging.getLogger("ldsm.serve")
# Answered without a key: the page prompts for it, and the reference is public.
OPEN_PATHS = ("/", "/docs", "/openapi.json", "/v2/health/live", "/v2/health/ready")
# Maximum number of concurrent requests; most of them wait for their batch.
MAX_REQUESTS = 2048
# Maximum bytes of all bodies in progress, or four times the largest body if that is more.
MAX_BODIES = 64_000_000
# Allowed content types; browsers ask before a page of another site may send JSON.
BODIES = (JSON_BODY, "application/x-www-form-urlencoded", "multipart/form-data")
# Bounds on reading the rest of an oversized body, so that its sender gets to read the answer.
_DRAIN = 10  # times the limit
_DRAIN_SECONDS = 2.0

OnResponse = Callable[[Scope, int, float], None]


class Problem(BaseModel):
    """An error in the format of RFC 9457."""

    status: int
    title: str


class InferenceError(BaseModel):
    """An error in the format of the Open Inference Protocol."""

    error: str


def problem(path: str, status: int, title: str, **headers: str) -> JSONResponse:
    """An error as JSON."""
    if path.startswith("/v2"):
        return JSONResponse({"error": title}, status, headers)
    body = {"status": status, "title": title}
    return JSONResponse(body, status, headers, media_type="application/problem+json")


def errors_of(inference: bool) -> dict[int | str, dict[str, Any]]:
    """The errors of an endpoint, for the reference."""
    texts = {
        400: "The request is invalid.",
        401: "The key is missing or wrong.",
        404: "There is no such model.",
        413: "The request is too large.",
        415: "The body is not what the endpoint takes, JSON or a form, or not UTF-8.",
        421: "The service does not accept this host name.",
        422: "A field is missing or invalid.",
        429: "The server is busy: retry after the time in Retry-After.",
        503: "The request took too long, or there are too many requests.",
    }
    model = InferenceError if inference else Problem
    return {status: {"description": text, "model": model} for status, text in texts.items()}


def path_of(scope: Scope) -> str:
    """The path of a request relative to the application."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "")) or "/"


class _TooLarge(Exception):
    pass


class Guard:
    """Refuses requests for other hosts, and those that are too large, too slow or too many.

    `on_response` is called with the scope, the status and the seconds of each request.
    """

    def __init__(self, app: ASGIApp, settings: Settings, on_response: OnResponse) -> None:
        self.app, self.settings, self.on_response = app, settings, on_response
        self._n_requests = 0
        self._bodies = _Bodies(max(MAX_BODIES, 4 * settings.max_body))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if "state" in scope:
                scope["state"][TIMEOUT_STATE] = self.settings.timeout
            await self.app(scope, receive, send)
            return
        started, nonce, status = time.perf_counter(), secrets.token_urlsafe(16), 0
        scope = self._seen(scope, nonce)
        body = _Body(receive, self.settings.max_body, self._bodies)

        async def guarded_send(message: Message) -> None:
            nonlocal status
            if body.is_too_large and answer is None:
                return  # an answer to a partial body is invalid
            if message["type"] == "http.response.start":
                status = message["status"]
                _add_headers(MutableHeaders(scope=message), nonce)
            await send(message)

        answer = self._refusal(scope)
        self._n_requests += 1
        try:
            if answer is None:
                with anyio.fail_after(self.settings.timeout) as limit:
                    body.give_up = limit.cancel
                    await self.app(scope, body.receive, guarded_send)
        except TimeoutError:
            text = f"The request took longer than {self.settings.timeout:g} s."
            retry = {"Retry-After": "5", "Connection": "close"}
            answer = problem(path_of(scope), 503, text, **retry)
        except _TooLarge:
            pass
        except Exception:
            log.exception("%s %s failed", scope["method"], path_of(scope))
            answer = problem(path_of(scope), 500, "Internal error.")
        finally:
            self._n_requests -= 1
            self._bodies.remove(body)
        if body.is_given_up:
            text = "Too many large requests, and this one was slow. Retry later."
            retry = {"Retry-After": "5", "Connection": "close"}
            answer = problem(path_of(scope), 503, text, **retry)
        if body.is_too_large:
            answer = self._too_large(scope)
        if answer is not None and not status:
            if answer.status_code == 413:
                await body.drain()
            await answer(scope, receive, guarded_send)
        self.on_response(scope, status, time.perf_counter() - started)

    def _seen(self, scope: Scope, nonce: str) -> Scope:
        """The request as the application sees it."""
        scope = {**scope, "state": {**scope.get("state", {}), "nonce": nonce}}
        if scope["method"] == "HEAD":
            scope["method"] = "GET"  # the server leaves out the body
        if root := self.settings.root_path:
            # A proxy may or may not have stripped the prefix.
            kept = scope["path"] == root or scope["path"].startswith(f"{root}/")
            scope["root_path"], scope["path"] = root, f"{'' if kept else root}{scope['path']}"
        return scope

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        """The answer to a request that is refused before its body is read."""
        headers, path = Headers(scope=scope), path_of(scope)
        if self._n_requests >= MAX_REQUESTS:
            return problem(path, 503, "Server busy. Retry later.", **{"Retry-After": "1"})
        hosts = self.settings.allowed_hosts
        if hosts and not is_allowed(headers.getlist("host"), scope.get("server"), hosts):
            text = "The service does not accept this host name; --allowed-host adds it."
            return problem(path, 421, text)
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length[:20]) > self.settings.max_body:
            return self._too_large(scope)
        if path not in OPEN_PATHS and not self.settings.allows(_key(headers)):
            text = "The key is missing or wrong; send it as X-API-Key."
            return problem(path, 401, text, **{"WWW-Authenticate": "Bearer"})
        if scope["method"] == "POST":
            if self._is_foreign(headers):
                return problem(path, 403, "Pages of other web sites may not call this service.")
            content_type = headers.get("content-type", "")
            kind = content_type.partition(";")[0].strip().lower()
            if kind not in BODIES:
                text = f"The body must be JSON or a form. Got {kind[:40] or 'no content type'}."
                return problem(path, 415, text)
            if names_another_charset(content_type):
                text = f"The charset of a body must be utf-8. Got {content_type[:100]!r}."
                return problem(path, 415, text)
        return None

    def _is_foreign(self, headers: Headers) -> bool:
        """Whether the request comes from a page of a forbidden origin; ports count."""
        origin, allowed = headers.get("origin"), self.settings.allow_origins
        if "*" in allowed or (origin is not None and origin in allowed):
            return False
        if site := headers.get("sec-fetch-site"):
            return site not in ("same-origin", "none")  # none: a user, not a page
        # Browsers send Sec-Fetch-Site only on secure connections.
        return origin is not None and urlsplit(origin).netloc != headers.get("host")

    def _too_large(self, scope: Scope) -> JSONResponse:
        text = f"A request may have at most {self.settings.max_body:,} bytes."
        return problem(path_of(scope), 413, text, Connection="close")


def _key(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return headers.get("x-api-key") or (token.strip() if scheme.lower() == "bearer" else "")


class _Body:
    """The body of a request, with a limit on its size."""

    def __init__(self, receive: Receive, limit: int, others: _Bodies) -> None:
        self._receive, self._limit, self._others = receive, limit, others
        self.is_too_large = self.is_given_up = self.has_ended = False
        self.size = 0
        self.give_up: Callable[[], None] = lambda: None

    async def receive(self) -> Message:
        message = await self._receive()
        n_bytes = self._count(message)
        if self.size > self._limit:
            self.is_too_large = True
            raise _TooLarge
        self._others.grow(self, n_bytes)
        return message

    def _count(self, message: Message) -> int:
        n_bytes = len(message.get("body", b""))
        self.size += n_bytes
        self.has_ended = not message.get("more_body", False)
        return n_bytes

    async def drain(self) -> None:
        """Read the rest of the body, within bounds."""
        with anyio.move_on_after(_DRAIN_SECONDS):
            while not self.has_ended and self.size <= _DRAIN * self._limit:
                self._count(await self._receive())


class _Bodies:
    """All bodies in progress. If they exceed the limit, the oldest unfinished ones are dropped."""

    def __init__(self, limit: int) -> None:
        self._limit, self._size = limit, 0
        self._sizes: dict[_Body, int] = {}

    def grow(self, body: _Body, n_bytes: int) -> None:
        """Add received bytes of a body."""
        self._sizes[body] = self._sizes.get(body, 0) + n_bytes
        self._size += n_bytes
        while self._size > self._limit:
            oldest = next((one for one in self._sizes if not one.has_ended), body)
            self.remove(oldest)
            oldest.is_given_up = True
            oldest.give_up()
            if oldest is body:
                return

    def remove(self, body: _Body) -> None:
        """Remove a body whose request has ended."""
        self._size -= self._sizes.pop(body, 0)


def _add_headers(headers: MutableHeaders, nonce: str) -> None:
    headers.setdefault(
        "Content-Security-Policy",
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'",
    )
    headers.setdefault("X-Content-Type-Options", "nosniff")
    headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
    headers.setdefault("Referrer-Policy", "no-referrer")
    headers.setdefault("Cache-Control", "no-store")
