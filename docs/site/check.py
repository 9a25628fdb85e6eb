"""Check a built site: no external resources and no broken links.

Sphinx checks the links that it resolves itself. This reads what a browser will read, so that links
in templates, in raw HTML and to sections of included files are checked, too, and that the reference
has every public name. Prints each fault; the exit code is 1 if there is one.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes whose address a browser fetches without being asked; of <link>, only with these rel.
_LOADED = {
    ("script", "src"), ("img", "src"), ("img", "srcset"), ("source", "src"), ("source", "srcset"),
    ("iframe", "src"), ("video", "src"), ("audio", "src"), ("embed", "src"), ("object", "data"),
    ("image", "href"), ("image", "xlink:href"), ("use", "href"), ("link", "href"),
}  # fmt: skip
_LINKED_ONLY = {"author", "canonical", "help", "index", "license", "next", "prev", "search"}
_CSS_ADDRESS = re.compile(r"@import\s+[\"']([^\"']+)|url\(\s*[\"']?([^\"')]+)")


class Page(HTMLParser):
    """What a page loads, what it links to, and the names that links to it can use."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.names: set[str] = set()
        self._in_style = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self._in_style = tag == "style"
        self.names.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        self.loaded += _css_addresses(values.get("style", ""))
        if tag == "link" and set(values.get("rel", "").split()) <= _LINKED_ONLY:
            return
        self.loaded += [values[name] for of, name in _LOADED if of == tag and name in values]

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.loaded += _css_addresses(data)


def _css_addresses(text: str) -> list[str]:
    return [first or second for first, second in _CSS_ADDRESS.findall(text)]


def is_elsewhere(address: str) -> bool:
    """Whether an address leads out of the site; those of this very page and data do not."""
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def faults(site: Path) -> Iterator[str]:
    """Each fault of the pages and style sheets below a folder."""
    pages = {
        path: Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if path.name != "webpack-macros.html"  # a template that the theme leaves there
    }
    sheets = {
        path: _css_addresses(path.read_text(encoding="utf-8"))
        for kind in ("*.css", "*.svg")
        for path in sorted(site.rglob(kind))
    }
    for path, loaded in [*((path, page.loaded) for path, page in pages.items()), *sheets.items()]:
        where = path.relative_to(site)
        for address in loaded:
            if is_elsewhere(address):
                yield f"{where}: loads {address}"
            elif not urlsplit(address).scheme and not _target(path, address).exists():
                yield f"{where}: loads {address}, which does not exist"
    for path, page in pages.items():
        where = path.relative_to(site)
        for link in page.links:
            if is_elsewhere(link):
                continue
            target, name = _target(path, link), unquote(urlsplit(link).fragment)
            if not target.exists():
                yield f"{where}: links to {link}, which does not exist"
            elif name and target.suffix == ".html" and name not in pages[target].names:
                yield f"{where}: links to {link}, where nothing is named {name!r}"
    n_links = sum(len(page.links) for page in pages.values())
    print(f"{len(pages)} pages, {len(sheets)} style sheets and pictures, {n_links} links checked")


def missing_names(site: Path) -> Iterator[str]:
    """Each public name that the reference does not describe."""
    # What else is checked here needs neither Sphinx nor ldsm.
    from public_names import public_members, public_objects
    from sphinx.util.inventory import InventoryFile

    with open(site / "objects.inv", "rb") as file:
        inventory = InventoryFile.load(file, "", posixpath.join)
    described = {name for kind in inventory.values() for name in kind}
    wanted = []
    for name, value in public_objects():
        members = public_members(name, value) if isinstance(value, type) else ()
        wanted += [name, *(member for member, of in members if not isinstance(of, property))]
    yield from (f"{name}: not in the reference" for name in wanted if name not in described)
    print(f"{len(wanted)} public names looked up in the reference")


def _target(path: Path, address: str) -> Path:
    """The file that an address on the page leads to."""
    inside = unquote(urlsplit(address).path)
    return (path.parent / inside).resolve() if inside else path.resolve()


def main(site: Path) -> int:
    if not (site / "index.html").exists():
        print(f"{site}: no site was built here; `make docs` builds it", file=sys.stderr)
        return 1
    found = [*faults(site.resolve()), *missing_names(site)]
    print("".join(f"{fault}\n" for fault in found), end="", file=sys.stderr)
    print(f"{len(found)} faults")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
