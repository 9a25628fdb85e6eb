"""Only some tags, or all without some: for a text, and for the rows of a file."""

import csv

import pytest
from selenium.webdriver.common.keys import Keys

import ldsm
from browser_page import Page
from services import TOPICS, documents, service

pytestmark = pytest.mark.browser
TEXT = "The cod and herring quota, says a judge in court."
GROUPS = {"food": ["fish", "meat"], "outside": ["weather"]}


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    """A service whose tags have groups."""
    folder = tmp_path_factory.mktemp("grouped")
    lines = [[tag, tag, group] for group, tags in GROUPS.items() for tag in tags]
    with open(folder / "names.csv", "w", newline="") as file:
        csv.writer(file).writerows([["label", "name", "group"], *lines])
    classifier = ldsm.LdSMClassifier(n_estimators=5, random_state=0)
    tagger = ldsm.TextTagger(classifier).fit(*documents(), vocabulary=folder / "names.csv")
    tagger.save(folder / "tags.ldsm")
    with service(folder / "tags.ldsm", "--port", 0) as process:
        yield process, tagger


@pytest.fixture
def page(driver, grouped):
    page = Page(driver, grouped[0].address)
    page.size(1280, 900)
    page.colours("light")
    yield page.open()
    assert page.errors() == []


def add_to_filter(page, kind, name):
    if not page.one(f"#{kind}").is_displayed():
        page.one("#filter summary").click()
    page.one(f"#{kind}").send_keys(name)
    page.until(lambda: name in page.texts(f"#{kind}-found li span"))
    page.one(f"#{kind}").send_keys(Keys.ENTER)


def shown(page):
    rows = page.script(
        "return [...document.querySelectorAll('.tags > li')].map((row) =>"
        " ['.name', '.score'].map((part) => row.querySelector(part).textContent))"
    )
    return dict(rows)


def expected(tagger, **choice):
    return {tag: f"{round(100 * score)}%" for tag, score in tagger.predict([TEXT], 6, **choice)[0]}


def test_only_a_group_and_without_a_tag(page, grouped):
    _, tagger = grouped
    page.type(TEXT)
    page.choose("sure", "0")
    page.until(lambda: len(shown(page)) == len(TOPICS))
    add_to_filter(page, "only", "food")
    page.until(lambda: set(shown(page)) == {"fish", "meat"})
    found = expected(tagger, only=["food"])
    assert all(found[tag] == score for tag, score in shown(page).items() if "<" not in score)
    add_to_filter(page, "without", "meat")
    page.until(lambda: set(shown(page)) == {"fish"})
    assert page.one("#filter-note").text == "only 1, without 1"
    page.one("#only-chosen button").click()
    page.until(lambda: set(shown(page)) == set(TOPICS) - {"meat"})
    page.one("#filter-clear").click()
    page.until(lambda: len(shown(page)) == len(TOPICS))
    assert page.one("#filter-note").text == ""


def test_filtered_tags_cannot_be_corrected(page):
    """A correction lists all tags of a text."""
    page.type(TEXT)
    assert page.texts("#tags .icon") and page.one("#add").is_displayed()
    add_to_filter(page, "only", "fish")
    page.until(lambda: set(shown(page)) == {"fish"})
    assert page.texts("#tags .icon") == [] and not page.one("#add").is_displayed()
    assert "a correction lists all tags" in page.one("#filter-active").text


def test_a_choice_replaces_its_opposite(page):
    page.type(TEXT)
    add_to_filter(page, "only", "fish")
    add_to_filter(page, "without", "fish")
    assert page.one("#filter-note").text == "without 1"
    page.until(lambda: "fish" not in shown(page))


def test_rows_of_a_file(page, grouped, tmp_path):
    texts = documents(40, seed=5)[0]
    (tmp_path / "rows.txt").write_text("\n".join(texts))
    page.until(lambda: page.texts("#empty"))
    add_to_filter(page, "without", "food")
    page.one("#tab-file").click()
    page.one("#file").send_keys(str(tmp_path / "rows.txt"))
    page.until(lambda: page.one("#job").is_displayed())
    assert page.one("#filter-note").text == "without 1"
    page.choose("least", "0")
    page.choose("most", "1")
    page.one("#go").click()
    page.until(lambda: page.one("#as-csv").is_displayed())
    best = [tags[0][0] for tags in grouped[1].predict(texts, 1, without=["food"])]
    assert page.texts("#rows .chips span") == best
    assert not page.one("#review").is_displayed()
    page.one("#filter-clear").click()  # forgets the tags
    page.until(lambda: page.texts("#rows .chips span") == [])


@pytest.mark.parametrize("width", [390, 800, 1400])
def test_filter_is_accessible(page, width):
    page.size(width, 900)
    page.type(TEXT)
    add_to_filter(page, "only", "food")
    page.one("#without").send_keys("e")
    page.until(lambda: page.texts("#without-found li"))
    for scheme in ("light", "dark"):
        page.colours(scheme)
        assert page.violations() == []
        assert page.script("return document.documentElement.scrollWidth") <= width
