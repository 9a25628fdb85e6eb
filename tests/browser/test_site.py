"""The documentation as files in a real browser; `make docs` builds it."""

from pathlib import Path
from urllib.parse import quote

import pytest
from selenium.webdriver.common.keys import Keys

from browser_page import Page

SITE = Path(__file__).parents[2] / "build" / "docs" / "html"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not SITE.exists(), reason="make docs has not been run"),
]
PAGES = (
    "index.html",
    "first_steps.html",
    "generated/api/ldsm.LdSMClassifier.html",
    "generated/api/ldsm.TextTagger.html",
    "generated/benchmarks.html",
    "generated/command_line.html",
    "generated/gallery/index.html",
)


# Texts that reach beyond the window, unless they are in a part of the article that scrolls.
CUT_OFF = """
    const scrolls = e => !e.matches("article")
        && (/auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
    return [...document.querySelectorAll("article :is(p, li, dt, dd, code)")]
        .filter(e => e.getBoundingClientRect().right > arguments[0] + 1 && !scrolls(e))
        .map(e => e.textContent.slice(0, 60));
"""


@pytest.fixture
def site(driver):
    page = Page(driver, SITE.as_uri() + "/")
    page.size(1400, 900)
    page.colours("light")
    return page


def test_search_works_from_files(site):
    site.open("index.html").one("body").send_keys(Keys.CONTROL, "k")
    site.until(lambda: site.driver.switch_to.active_element.get_attribute("name") == "q")
    site.driver.switch_to.active_element.send_keys("propensities", Keys.ENTER)
    results = site.until(lambda: site.texts("#search-results li a"))
    assert any("propensities" in result for result in results)
    site.open(f"search.html?q={quote('a word that no page has: qwxz')}")
    site.until(lambda: "did not match" in site.one("#search-results").text)


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("path", PAGES)
def test_no_page_overflows(site, path, width):
    site.size(width, 900)
    site.open(path)
    assert site.script("return document.documentElement.scrollWidth") <= width
    assert site.script(CUT_OFF, width) == []


@pytest.mark.parametrize("path", PAGES)
def test_pages_follow_light_and_dark(site, path):
    shades = {}
    for scheme in ("light", "dark"):
        site.colours(scheme)
        site.open(path)
        colour = site.script("return getComputedStyle(document.body).backgroundColor")
        shades[scheme] = sum(map(int, colour[4:-1].split(",")[:3]))
    assert shades["dark"] < 200 < 600 < shades["light"]


@pytest.mark.parametrize("path", PAGES)
def test_no_browser_errors(site, path):
    site.errors()  # of the pages before
    site.open(path)
    assert [message for message in site.errors() if "[PST]" not in message] == []  # the theme's


# What users of other tools type, and the page that answers it.
QUESTIONS = {
    "no header": "first_steps",
    "label numbers": "first_steps",
    "parquet": "first_steps",
    "feather": "first_steps",
    "polars": "first_steps",
    "excel": "first_steps",
    "threshold": "metrics",
    "macro F1": "metrics",
    "GridSearchCV scorer": "scikit_learn",
    "min_df": "generated/api/ldsm.TextTagger",
    "ngrams": "generated/command_line",
    "sample_weight": "imbalance",
    "class_weight": "imbalance",
    "imbalance": "imbalance",
    "rare labels": "imbalance",
    "poor results": "poor_results",
    "exclude labels": "vocabulary",
    "groups of labels": "vocabulary",
    "rename labels": "incremental_learning",
    "drop labels": "incremental_learning",
    "corrections": "serving",
    "review": "serving",
    "report": "figures",
    "encoder": "encoder",
    "sentence-transformers": "encoder",
    "no known word": "first_steps",
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_search_answers_questions(site, question):
    """The page is among the first five results."""
    site.open(f"search.html?q={quote(question)}")
    site.until(lambda: site.one("#search-results p.search-summary").text)
    found = site.until(lambda: site.script(
        "return [...document.querySelectorAll('#search-results li a')].map((a) => a.pathname)"
    ))  # fmt: skip
    first = [path.rpartition("/html/")[2].removesuffix(".html") for path in found[:5]]
    assert QUESTIONS[question] in first
