"""Read the bodies of requests: UTF-8 only, and long ones outside the event loop."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from json import loads
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute
from pydantic import Field
from starlette.datastructures import FormData, UploadFile
from starlette.types import Message

MOST_FIELDS = 1000
# Values of a JSON body. Each takes only two bytes, but some microseconds of the event loop.
MOST_VALUES, _VALUES_OF_A_TEXT = 25_000, 100
Item = TypeVar("Item")
# A list that is checked up to its first mistake: describing all those of a long one takes seconds.
Items = Annotated[list[Item], Field(fail_fast=True)]
SHORT = 16_384  # bytes that are read faster than a thread could take over
_UTF8 = re.compile(r';\s*charset\s*=\s*("?)utf-?8\1\s*(?=;|$)', re.IGNORECASE)


def names_another_charset(content_type: str) -> bool:
    """Whether a body claims to be anything but UTF-8; in doubt, it does."""
    return "charset" in _UTF8.sub("", content_type).lower()


def route_that_reads_in(pool: Executor, max_batch: int) -> type[APIRoute]:
    """A class of routes whose requests read long bodies, of `max_batch` texts, in the pool."""
    most_values = max(MOST_VALUES, _VALUES_OF_A_TEXT * max_batch)

    class Route(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handler = super().get_route_handler()

            async def handle(request: Request) -> Response:
                return await handler(_BodyRequest(request, pool, most_values))

            return handle

    return Route


class _BodyRequest(Request):
    def __init__(self, request: Request, pool: Executor, most_values: int) -> None:
        super().__init__(request.scope, request.receive)
        self._pool, self._most_values = pool, most_values

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
        if _most_values_of(text) > self._most_values:
            raise HTTPException(413, f"A JSON body may have {self._most_values:,} values at most")
        return loads(text)

    def _parse_form(self, body: bytes) -> FormData:
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        text = _decoded(body)
        if kind == "application/x-www-form-urlencoded":
            return FormData(_fields(text))
        return _without_waiting(self._multipart(body))

    async def _multipart(self, body: bytes) -> FormData:
        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        # No endpoint takes files; without them, nothing is written to the disk.
        return await Request(self.scope, receive).form(max_files=0, max_fields=MOST_FIELDS)


def _decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise HTTPException(400, f"The body is not valid UTF-8: {error.reason}") from None


def _most_values_of(text: str) -> int:
    """How many values a JSON document has at most, by the marks outside its strings."""
    without_quotes = text.replace("\\\\", "").replace('\\"', "")
    marks = "".join(without_quotes.split('"')[::2])
    return 1 + sum(map(marks.count, "[{,"))


def _fields(text: str) -> list[tuple[str, str | UploadFile]]:
    if text.count("&") >= MOST_FIELDS:
        raise HTTPException(400, f"A form may have {MOST_FIELDS:,} fields at most")
    try:
        return [*parse_qsl(text, keep_blank_values=True, errors="strict")]
    except UnicodeDecodeError as error:
        raise HTTPException(400, f"The form is not valid UTF-8: {error.reason}") from None


def _without_waiting(coroutine: Coroutine[Any, Any, FormData]) -> FormData:
    """The result of a coroutine that has all it needs, so that it never waits for the loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: FormData = done.value
        return result
    coroutine.close()
    raise RuntimeError("A form that is in memory must be read without waiting.")
