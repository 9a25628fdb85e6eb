"""Read request bodies: UTF-8 only, and long ones outside the event loop."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from json import loads
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import HTTPException, Request, Response
from fastapi.params import Form
from fastapi.routing import APIRoute
from pydantic import Field
from starlette.datastructures import FormData, UploadFile
from starlette.types import Message

JSON_BODY = "application/json"
MAX_FIELDS = 1000
# Maximum number of values in a JSON body. Each takes only two bytes, but microseconds of CPU time.
MAX_VALUES, _VALUES_OF_A_TEXT = 25_000, 100
Item = TypeVar("Item")
# A list that is checked up to its first error: describing all errors of a long list takes seconds.
Items = Annotated[list[Item], Field(fail_fast=True)]
SHORT = 16_384  # bytes; shorter bodies are parsed faster than handed to a thread
_UTF8 = re.compile(r';\s*charset\s*=\s*("?)utf-?8\1\s*(?=;|$)', re.IGNORECASE)


def names_another_charset(content_type: str) -> bool:
    """Whether a body claims any charset but UTF-8; true if unclear."""
    return "charset" in _UTF8.sub("", content_type).lower()


def route_that_reads_in(pool: Executor, max_batch: int) -> type[APIRoute]:
    """A route class whose requests parse long bodies, of `max_batch` texts, in the pool."""
    max_values = max(MAX_VALUES, _VALUES_OF_A_TEXT * max_batch)

    class Route(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handler = super().get_route_handler()
            fields = [param.field_info for param in self.dependant.body_params]
            takes_form = any(isinstance(field, Form) for field in fields)

            async def handle(request: Request) -> Response:
                kind = _kind(request)
                if fields and kind and takes_form == (kind == JSON_BODY):
                    wanted = "a form" if takes_form else "JSON"
                    raise HTTPException(415, f"{self.path} takes {wanted}. Got {kind[:40]}.")
                return await handler(_BodyRequest(request, pool, max_values))

            return handle

    return Route


class _BodyRequest(Request):
    def __init__(self, request: Request, pool: Executor, max_values: int) -> None:
        super().__init__(request.scope, request.receive)
        self._pool, self._max_values = pool, max_values

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = await self._read(self._parse_json, await self.body())
        return self._json

    async def form(self) -> FormData:  # type: ignore[override]
        if self._form is None:
            self._form = await self._read(self._parse_form, await self.body())
        return self._form

    async def _read(self, parse: Callable[[bytes], Any], body: bytes) -> Any:
        if len(body) <= SHORT:
            return parse(body)
        return await asyncio.get_running_loop().run_in_executor(self._pool, parse, body)

    def _parse_json(self, body: bytes) -> Any:
        text = _decoded(body)
        if _max_values_of(text) > self._max_values:
            raise HTTPException(413, f"A JSON body may have at most {self._max_values:,} values")
        return loads(text)

    def _parse_form(self, body: bytes) -> FormData:
        text = _decoded(body)
        if _kind(self) == "application/x-www-form-urlencoded":
            return FormData(_fields(text))
        return _without_waiting(self._multipart(body))

    async def _multipart(self, body: bytes) -> FormData:
        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        # No endpoint takes files; without them, nothing is written to disk.
        return await Request(self.scope, receive).form(max_files=0, max_fields=MAX_FIELDS)


def _kind(request: Request) -> str:
    """The media type of a request's body."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise HTTPException(400, f"The body is not valid UTF-8: {error.reason}") from None


def _max_values_of(text: str) -> int:
    """An upper bound on the values of a JSON document, from the brackets and commas in it."""
    without_quotes = text.replace("\\\\", "").replace('\\"', "")
    marks = "".join(without_quotes.split('"')[::2])
    return 1 + sum(map(marks.count, "[{,"))


def _fields(text: str) -> list[tuple[str, str | UploadFile]]:
    if text.count("&") >= MAX_FIELDS:
        raise HTTPException(400, f"A form may have at most {MAX_FIELDS:,} fields")
    try:
        return [*parse_qsl(text, keep_blank_values=True, errors="strict")]
    except UnicodeDecodeError as error:
        raise HTTPException(400, f"The form is not valid UTF-8: {error.reason}") from None


def _without_waiting(coroutine: Coroutine[Any, Any, FormData]) -> FormData:
    """The result of a coroutine that never waits for the event loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: FormData = done.value
        return result
    coroutine.close()
    raise RuntimeError("A form in memory must be parsed without waiting.")
