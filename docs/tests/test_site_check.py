"""The check of the built site finds faults."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1]
sys.path.insert(0, str(DOCS / "site"))

from check import faults  # noqa: E402

PAGE = '<html><head>{head}</head><body id="top"><h1 id="a b">A</h1>{body}</body></html>'


def found(folder, head="", body="", css=""):
    (folder / "index.html").write_text(PAGE.format(head=head, body=body))
    (folder / "style.css").write_text(css)
    return [fault.removeprefix("index.html: ") for fault in faults(folder)]


@pytest.mark.parametrize(
    "head",
    [
        '<script src="https://cdn.invalid/a.js"></script>',
        '<script src="//cdn.invalid/a.js"></script>',
        '<link rel="stylesheet" href="https://cdn.invalid/a.css">',
        '<link rel="preload" as="font" href="http://cdn.invalid/a.woff2">',
        "<style>@import 'https://cdn.invalid/a.css';</style>",
        "<style>p { background: url(https://cdn.invalid/a.png) }</style>",
        '<img src="https://cdn.invalid/a.png">',
        '<img src="gone.png">',
    ],
)
def test_external_resources_are_found(head, tmp_path):
    (fault,) = found(tmp_path, head=head)
    assert fault.startswith("loads ")


def test_style_sheets_are_read(tmp_path):
    assert found(tmp_path, css='@font-face { src: url("//fonts.invalid/a.woff2") }') == [
        "style.css: loads //fonts.invalid/a.woff2"
    ]


@pytest.mark.parametrize("link", ["gone.html", "#gone", "index.html#gone", "../gone/"])
def test_broken_links_are_found(link, tmp_path):
    (fault,) = found(tmp_path, body=f'<a href="{link}">x</a>')
    assert fault.startswith(f"links to {link}")


def test_valid_page_has_no_faults(tmp_path):
    links = ("https://elsewhere.invalid/#x", "mailto:a@b.invalid", "#top", "#a%20b", "index.html")
    body = "".join(f'<a href="{link}">x</a>' for link in links)
    head = (
        '<link rel="stylesheet" href="style.css?v=1"><link rel="canonical" href="https://a.invalid">'
        '<img src="data:image/png;base64,AA==">'
    )
    assert found(tmp_path, head=head, body=body, css="p { color: red }") == []
