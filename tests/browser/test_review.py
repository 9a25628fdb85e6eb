"""Review of a file: the most doubtful rows first, by keyboard, into the file of corrections."""

import csv
import math

import pytest
from selenium.webdriver.common.keys import Keys

import ldsm
from services import documents

pytestmark = pytest.mark.browser


@pytest.fixture
def rows(tmp_path):
    """Some clear texts, and some that the model cannot know."""
    clear = documents(12, seed=3)[0]
    odd = ["xyzzy plugh", "cod judge storm import", "report of the new year"]
    texts = [text for pair in zip(clear, odd * 4, strict=True) for text in pair]
    with open(tmp_path / "rows.csv", "w", newline="") as file:
        csv.writer(file).writerows([["id", "text"], *[[f"n{i}", t] for i, t in enumerate(texts)]])
    return texts


def doubt(scores, threshold):
    """1 minus the expected F1 of the row's tags; without any, of none or of the best one."""
    chosen = [score for score in scores if score >= threshold][:5]
    if chosen:
        return 1 - 2 * sum(chosen) / (len(chosen) + sum(scores))
    none = math.prod(1 - score for score in scores)
    return 1 - max(none, 2 * scores[0] / (1 + sum(scores)))


@pytest.fixture
def reviewed(page, rows, tmp_path):
    page.until(lambda: page.texts("#empty"))
    page.one("#tab-file").click()
    page.one("#file").send_keys(str(tmp_path / "rows.csv"))
    page.until(lambda: page.one("#job").is_displayed())
    page.one("#go").click()
    page.until(lambda: page.one("#review").is_displayed())
    return page


def press(page, *keys):
    page.driver.switch_to.active_element.send_keys(*keys)


def shown_text(page):
    return page.one("#text").get_attribute("value")


def corrections(model_file):
    file = model_file.with_name("tags.corrections.jsonl")
    return list(ldsm.datasets.iter_jsonl(file)) if file.exists() else []


def expected_order(model_file, rows):
    model = ldsm.load(model_file)
    scores = [[score for _, score in row] for row in model.predict(rows, 10)]
    doubts = [doubt(row, model.classifier_.threshold_) for row in scores]
    return sorted(range(len(rows)), key=lambda i: (-doubts[i], i)), doubts


def test_most_doubtful_rows_come_first(reviewed, rows, model_file):
    page = reviewed
    order, doubts = expected_order(model_file, rows)
    assert page.texts("#rows th")[:3] == ["n0", "n1", "n2"]
    page.choose("row-order", "doubt")
    assert page.texts("#rows th") == [f"n{i}" for i in order]
    notes = page.texts("#rows td > small")
    shown = [f"{round(100 * doubts[i])}%" if doubts[i] >= 0.01 else "<1%" for i in order]
    assert notes == [f"doubt {one}" for one in shown]
    page.choose("row-order", "file")
    assert page.texts("#rows th")[0] == "n0" and page.texts("#rows td > small") == []
    page.one("#review").click()
    assert shown_text(page) == rows[order[0]]
    assert page.one("#review-place").text == "1 of 24"


def test_accept_and_correct_by_keyboard(reviewed, rows, model_file):
    page = reviewed
    before = len(corrections(model_file))
    order, _ = expected_order(model_file, rows)
    press(page, "")
    page.one("#review").send_keys(Keys.ENTER)
    # The first row has no tag that is likely: one is found by its name.
    page.until(lambda: page.texts("#results .name"))
    assert shown_text(page) == rows[order[0]]
    press(page, "/")
    assert page.driver.switch_to.active_element == page.one("#add")
    press(page, "weather")
    page.until(lambda: "weather" in page.texts("#found li span"))
    press(page, Keys.ENTER)
    page.until(lambda: page.one("#accept").text == "Save correction")
    press(page, Keys.ENTER)
    page.until(lambda: page.one("#review-place").text == "2 of 24")
    page.until(lambda: len(corrections(model_file)) == before + 1)
    text, tags = corrections(model_file)[-1]
    assert text == rows[order[0]] and "weather" in tags
    # Skip; go back; skip again: nothing is saved.
    press(page, "s")
    page.until(lambda: shown_text(page) == rows[order[2]])
    press(page, "b")
    page.until(lambda: shown_text(page) == rows[order[1]])
    for _ in range(len(rows) - 2):
        press(page, "s")
    # The last row is the clearest. A digit removes a tag, and puts it back.
    page.until(lambda: shown_text(page) == rows[order[-1]])
    names = page.until(lambda: page.texts("#tags .name"))
    press(page, "1")
    page.until(lambda: "removed" in page.tag(names[0]).get_attribute("class"))
    press(page, "1")
    page.until(lambda: page.one("#accept").text == "Accept")
    press(page, Keys.ENTER)
    page.until(lambda: page.one("#view-file").is_displayed())
    assert page.one("#review-note").text == "Reviewed: 2 rows."
    assert corrections(model_file)[before + 1 :] == [(rows[order[-1]], names)]
    assert [note for note in page.texts("#rows td > small") if "reviewed" in note] != []
    # A second round asks only about the others.
    page.one("#review").click()
    assert page.one("#review-place").text == "1 of 22"
    page.until(lambda: page.texts("#results .name"))
    press(page, Keys.ESCAPE)
    page.until(lambda: page.one("#view-file").is_displayed())
    page.one("#tab-text").click()
    assert shown_text(page) == "" and not page.one("#review-bar").is_displayed()


def test_keys_are_letters_in_text_fields(reviewed, rows):
    page = reviewed
    page.one("#review").click()
    page.until(lambda: page.texts("#results .name"))
    place, text = page.one("#review-place").text, shown_text(page)
    page.one("#text").send_keys("s1b")
    assert page.one("#review-place").text == place and shown_text(page) == text + "s1b"


def test_review_is_accessible(reviewed):
    page = reviewed
    page.one("#review").click()
    page.until(lambda: page.texts("#results .name"))
    for scheme in ("light", "dark"):
        page.colours(scheme)
        for width in (1400, 800, 390):
            page.size(width, 844)
            assert page.violations() == []
            assert page.script("return document.documentElement.scrollWidth") <= width
