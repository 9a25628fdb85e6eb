"""Minimal HTML output: everything that is not markup is escaped."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .style import SCRIPT, STYLE

GENERATOR = "ldsm report"  # identifies its pages
VOID = ("meta", "br")  # elements without an end tag
SEARCHABLE = "searchable"  # class of a container with a searchable, sortable table


class Markup(str):
    """Text that is already HTML."""


def element(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """One element; `class_` sets the class, `a_b` the attribute a-b. Everything is escaped."""
    names = {key: key.rstrip("_").replace("_", "-") for key in attributes}
    shown = "".join(f' {names[key]}="{html.escape(str(v))}"' for key, v in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{shown}>")
    return Markup(f"<{name}{shown}>{joined(children)}</{name}>")


def joined(parts: Iterable[Any], between: str = "") -> Markup:
    """Concatenated parts, each escaped unless it is markup."""
    return Markup(between.join(_escaped(part) for part in parts))


class Share(NamedTuple):
    """A cell with a part and a whole: "189 of 351 (54 %)"."""

    part: int
    whole: int

    def __str__(self) -> str:
        if not self.whole:
            return "–"
        return f"{self.part:,} of {self.whole:,} ({100 * self.part / self.whole:.0f} %)"


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[Any]],
    text: Sequence[str] = (),
    *,
    cards: bool = False,
) -> Markup:
    """A table; the first column and those of `text` are left-aligned, the others hold numbers.

    In narrow windows, `cards` stacks the cells of each row.
    """
    kinds: list[dict[str, str]] = [
        {} if i == 0 or head in text else {"class_": "number"} for i, head in enumerate(heads)
    ]
    head = [
        element("th", name, scope="col", **kind) for name, kind in zip(heads, kinds, strict=True)
    ]
    if cards:
        kinds = [{**kind, "data_head": name} for name, kind in zip(heads, kinds, strict=True)]
    body = [
        element("tr", *(_cell(cell, kind) for cell, kind in zip(row, kinds, strict=True)))
        for row in rows
    ]
    parts = element("thead", element("tr", *head)), element("tbody", joined(body, "\n"))
    return element("table", *parts, **({"class_": "cards"} if cards else {}))


def _cell(content: Any, kind: dict[str, str]) -> Markup:
    if isinstance(content, Share):
        order = content.part / content.whole if content.whole else -1
        kind = {**kind, "class_": "share", "data_order": f"{order:.6g}"}
    return element("td", content, **kind)


def note(text: str) -> Markup:
    """A paragraph in small print."""
    return element("p", text, class_="note")


def facts(values: dict[str, Any]) -> Markup:
    """A list of names and values."""
    items = [element("div", element("dt", k), element("dd", v)) for k, v in values.items()]
    return element("dl", joined(items, "\n"), class_="facts")


def folded(title: str, *parts: Markup) -> Markup:
    """Small print behind a line that opens it."""
    return element("details", element("summary", title), *parts, class_="more")


def page(title: str, *body: Markup) -> str:
    """The whole self-contained document; its only script is the one above."""
    known = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{known}'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="generator", content=GENERATOR),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    content = joined([*body, element("script", Markup(SCRIPT))], "\n")
    document = element("html", head, "\n", element("body", content), lang="en")
    return f"<!DOCTYPE html>\n{document}\n"


def _escaped(part: Any) -> str:
    return part if isinstance(part, Markup) else html.escape(str(part))
