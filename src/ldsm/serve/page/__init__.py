"""The page: one self-contained document, assembled from the files in this folder."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

# The order matters: later scripts use earlier ones.
SCRIPTS = (
    "basics.js",
    "tags.js",
    "reasons.js",
    "explain.js",
    "finder.js",
    "correct.js",
    "filter.js",
    "files.js",
    "table.js",
    "review.js",
    "labels.js",
    "start.js",
)
_NONCE = "NONCE"


def page(nonce: str) -> str:
    """The page; browsers run its style and script only with this nonce."""
    return _parts().replace(_NONCE, nonce)


@cache
def _parts() -> str:
    folder = files(__package__)
    scripts = "\n".join(folder.joinpath(name).read_text("utf-8") for name in SCRIPTS)
    style = folder.joinpath("style.css").read_text("utf-8")
    document = folder.joinpath("page.html").read_text("utf-8")
    for place, text in (("/* style.css */", style), ("/* scripts */", scripts)):
        assert document.count(place) == 1
        document = document.replace(place, text)
    return document
