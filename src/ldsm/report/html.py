"""Minimal HTML output: everything that is not markup is escaped; there is one script."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Sequence
from typing import Any

GENERATOR = "ldsm report"  # identifies its pages
VOID = ("meta", "br")  # elements without an end tag
SEARCHABLE = "searchable"  # class of a container with a searchable, sortable table

STYLE = """
:root { --ink: #1b1e23; --soft: #5c636e; --line: #d9dce1; --page: #fff; --wash: #f5f6f8;
  --good: #00694d; --bad: #a94400; color-scheme: light; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e4e6ea; --soft: #a0a7b2; --line: #3a3f47; --page: #16181c; --wash: #1f2227;
    --good: #3fc79b; --bad: #f0985a; color-scheme: dark; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.5rem 4rem; max-width: 62rem; background: var(--page);
  color: var(--ink); font: 1rem/1.5 Charter, "Bitstream Charter", Cambria, Georgia, serif; }
h1, h2, h3, table, dl, figure svg { font-family: system-ui, "Segoe UI", Roboto,
  "Helvetica Neue", "Liberation Sans", Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.8rem 0 .6rem; padding-top: .8rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.6rem 0 .4rem; }
p { margin: .5rem 0; max-width: 46rem; }
.lead, .note, figcaption { color: var(--soft); }
.note, figcaption { font-size: .88rem; line-height: 1.45; }
table { border-collapse: collapse; margin: .8rem 0; font-size: .86rem; }
th, td { padding: .28rem .9rem .28rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
td { overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 600; white-space: nowrap; border-bottom-color: var(--soft); }
th button { all: unset; cursor: pointer; }
th button:focus-visible, input:focus-visible { outline: 2px solid currentColor;
  outline-offset: 2px; }
th[aria-sort=ascending] button::after { content: " ▲"; }
th[aria-sort=descending] button::after { content: " ▼"; }
.searchable > div { max-height: 32rem; overflow: auto; }
.searchable thead th { position: sticky; top: 0; background: var(--page); }
.searchable input { font: inherit; font-size: .9rem; color: inherit; background: var(--wash);
  border: 1px solid var(--line); border-radius: 4px; padding: .35rem .6rem;
  width: min(24rem, 100%); }
.searchable output { margin-left: .8rem; color: var(--soft); font-size: .88rem; }
td:first-child { min-width: 8.5rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
dl { columns: 3; column-gap: 2rem; margin: 1rem 0; font-size: .86rem; }
dl > div { padding: .3rem 0; border-bottom: 1px solid var(--line); display: flex;
  justify-content: space-between; gap: .8rem; break-inside: avoid; }
dt { color: var(--soft); }
dd { margin: 0; text-align: right; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.figures, .side { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr));
  gap: 1.6rem 2.4rem; }
figure { margin: 0; }
figure svg { display: block; width: 100%; height: auto; }
figure svg * { stroke-linejoin: round; stroke-linecap: butt; }
figcaption { margin-top: .3rem; }
figcaption b { color: var(--ink); }
.side table { width: 100%; }
.side th { white-space: normal; }
blockquote { margin: .6rem 0; padding: .5rem .9rem; background: var(--wash);
  border-left: 3px solid var(--line); font-size: .92rem; overflow-wrap: anywhere; }
.good { color: var(--good); }
.bad { color: var(--bad); }
@media screen { section { overflow-x: auto; } }
@media screen and (max-width: 48rem) { .figures, .side { grid-template-columns: minmax(0, 1fr); }
  dl { columns: 1; } }
@media screen and (max-width: 34rem) { body { padding: 1.5rem .9rem 3rem; }
  table { font-size: .74rem; } th, th.number { white-space: normal; }
  th, td { padding-right: .45rem; } td:not(.number), td:first-child { min-width: 4.6rem; }
  .searchable th, .searchable td { padding-right: .2rem; font-size: .66rem; }
  .searchable td:first-child { min-width: 3.6rem; }
  .cards, .cards tbody, .cards tr { display: block; } .cards thead { display: none; }
  .cards tr { border-bottom: 1px solid var(--line); padding: .3rem 0; }
  .cards td, .cards td:first-child { display: inline-block; border: 0; padding: .1rem .7rem .1rem 0;
    min-width: 0; }
  .cards td::before { content: attr(data-head) " "; color: var(--soft); }
  .cards td:first-child, .cards td:last-child:not(.number) { display: block; }
  .cards td:first-child { font-weight: 600; } .cards td:first-child::before { content: none; }
  figcaption { font-size: .84rem; } }
@media print { html { font-size: 12px; } body { max-width: none; padding: 0; }
  figure, tr, blockquote { break-inside: avoid; } h2, h3 { break-after: avoid; } }
"""


# Optional: the tables also work without it. Cells are text, never markup.
SCRIPT = """
for (const box of document.querySelectorAll(".searchable")) {
  const table = box.querySelector("table"), body = table.tBodies[0], rows = [...body.rows];
  const search = document.createElement("input"), found = document.createElement("output");
  const pane = document.createElement("div");
  search.type = "search";
  search.placeholder = "Search labels";
  search.setAttribute("aria-label", "Search labels");
  const show = () => {
    const wanted = search.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
      count += !row.hidden;
    }
    found.textContent = count.toLocaleString("en") + (count === 1 ? " label" : " labels");
  };
  const key = (row, column) => {
    const text = row.cells[column].textContent;
    const value = parseFloat(text.replaceAll(",", ""));
    return column === 0 ? text : Number.isNaN(value) ? -1 : value;
  };
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const first = column === 0 ? "ascending" : "descending";
      const other = column === 0 ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const compare = (a, b) => typeof a === "string" ? a.localeCompare(b) : a - b;
      const sorted = rows.slice().sort((a, b) => sign * compare(key(a, column), key(b, column)));
      body.replaceChildren(...sorted);
    });
  });
  search.addEventListener("input", show);
  pane.append(table);
  box.append(search, found, pane);
  show();
}
"""


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


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[Any]],
    text: Sequence[str] = (),
    *,
    cards: bool = False,
) -> Markup:
    """A table; the first column and those of `text` are left-aligned, the others hold numbers.

    In narrow windows, `cards` stacks the cells of each row instead of scrolling sideways.
    """
    kinds = [{} if i == 0 or head in text else {"class_": "number"} for i, head in enumerate(heads)]
    head = [
        element("th", name, scope="col", **kind) for name, kind in zip(heads, kinds, strict=True)
    ]
    if cards:
        kinds = [{**kind, "data_head": name} for name, kind in zip(heads, kinds, strict=True)]
    body = [
        element("tr", *(element("td", cell, **kind) for cell, kind in zip(row, kinds, strict=True)))
        for row in rows
    ]
    parts = element("thead", element("tr", *head)), element("tbody", joined(body, "\n"))
    return element("table", *parts, **({"class_": "cards"} if cards else {}))


def note(text: str) -> Markup:
    """A paragraph in small print."""
    return element("p", text, class_="note")


def facts(values: dict[str, Any]) -> Markup:
    """A list of names and values."""
    items = [element("div", element("dt", k), element("dd", v)) for k, v in values.items()]
    return element("dl", joined(items, "\n"))


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
