"""Answers as JSON: made directly, because what is in them was made here and needs no check."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Response

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class JSON(Response):
    """A JSON document."""

    media_type = "application/json"


def json_of(value: Any) -> bytes:
    """The document of a value."""
    return _encode(value).encode("utf-8", "backslashreplace")
