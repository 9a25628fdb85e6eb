"""JSON answers, encoded without validation, because their content is made here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import Response

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class JSON(Response):
    """A JSON document."""

    media_type = "application/json"


def json_of(value: Any) -> bytes:
    """The value as encoded JSON."""
    return _encode(value).encode("utf-8", "backslashreplace")


# Errors of pydantic about numbers.
_OF_NUMBERS = ("greater_than", "less_than", "int_", "float_", "finite_")


def wrong_value(error: Mapping[str, Any]) -> str:
    """The message of a pydantic error. It shows only numbers, because texts may be private."""
    got = f" Got {str(error['input'])[:40]}." if error["type"].startswith(_OF_NUMBERS) else ""
    return f"{error['msg']}.{got}"
