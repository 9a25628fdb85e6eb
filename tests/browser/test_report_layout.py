"""The report in a browser: nothing is cut off or broken, and tables sort by their shares."""

import pytest

from browser_page import Page
from ldsm.report import make_report
from services import TOPICS, small_tagger

pytestmark = pytest.mark.browser
# Elements that reach beyond the window, unless they are in something that scrolls.
CUT_OFF = """
    const scrolls = (e) => e && (/auto|scroll/.test(getComputedStyle(e).overflowX)
        || scrolls(e.parentElement));
    return [...document.querySelectorAll("body *")]
        .filter((e) => !e.closest("svg") && e.getBoundingClientRect().right > innerWidth + 1)
        .filter((e) => !scrolls(e)).map((e) => e.tagName + e.textContent.slice(0, 40));
"""
# Words on more than one line.
BROKEN = """
    const broken = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const node = walk.currentNode;
        if (!node.parentElement.checkVisibility() || node.parentElement.closest("svg")) continue;
        for (const word of node.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
            const range = document.createRange();
            range.setStart(node, word.index);
            range.setEnd(node, word.index + word[0].length);
            const tops = [...range.getClientRects()].map((r) => Math.round(r.top));
            if (new Set(tops).size > 1) broken.push(word[0]);
        }
    }
    return broken;
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    texts = [f"{word} {other}" for words in TOPICS.values() for word in words for other in words]
    tags = [[topic] for topic, words in TOPICS.items() for _ in words for _ in words]
    make_report(small_tagger(), texts, tags, model_name="tags.ldsm").save(path)
    return path


@pytest.fixture
def report(driver, file):
    page = Page(driver, file.as_uri())
    page.errors()
    yield page
    assert page.errors() == []


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 800, 1400])
def test_every_width(report, width, colours):
    report.size(width, 900)
    report.colours(colours)
    report.open()
    for element in report.all("details"):
        report.script("arguments[0].open = true", element)
    assert report.script("return document.documentElement.scrollWidth") <= width
    assert report.script(CUT_OFF) == [] and report.script(BROKEN) == []
    assert report.violations() == []


def test_results_are_above_the_fold(report):
    report.size(1400, 900)
    report.open()
    assert report.texts(".tiles dt") == ["P@1", "Recall@5", "F1 over all pairs", "F1 per row"]
    bottom = report.script(
        "return document.querySelector('section table').getBoundingClientRect().bottom"
    )
    assert bottom < 900
    assert not report.texts("details .facts dt")  # internals are folded


def test_tiles_fill_their_rows(report):
    for width, rows in ((390, 2), (800, 2), (1400, 1)):
        report.size(width, 900)
        report.open()
        tops = report.script(
            "return [...document.querySelectorAll('.tiles > div')]"
            ".map((tile) => tile.getBoundingClientRect().top)"
        )
        assert len(tops) == 4 and len(set(tops)) == rows


def test_figures_have_their_caption_beside_them(report):
    """In a wide window, which is otherwise half empty."""
    report.size(1400, 900)
    report.open()
    figure, caption = report.script(
        "return ['svg', 'figcaption'].map((name) =>"
        " document.querySelector(`section > figure > ${name}`).getBoundingClientRect().right)"
    )
    assert figure < 700 < caption


def test_tables_sort_by_share(report):
    report.size(1400, 900)
    report.open()
    heads = report.all(".searchable th button")
    column = [head.text for head in heads].index("right")
    heads[column].click()
    shares = report.script(
        "return [...document.querySelectorAll('.searchable tbody tr')]"
        ".map((row) => parseFloat(row.cells[arguments[0]].dataset.order))",
        column,
    )
    assert shares == sorted(shares, reverse=True)
