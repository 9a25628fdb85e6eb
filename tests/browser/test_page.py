"""The page in a real browser: how it works and looks."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import ldsm
from services import SCRIPT, TOPICS

pytestmark = pytest.mark.browser
TEXT = "The cod and herring quota, says a judge in court."


def corrections(model_file):
    file = model_file.with_name("tags.corrections.jsonl")
    return list(ldsm.datasets.iter_jsonl(file)) if file.exists() else []


def test_initial_page(page):
    page.until(lambda: len(page.texts("#empty .chips button")) == len(TOPICS))
    assert "knows 6 tags from 600 texts" in page.one("#empty").text
    assert not page.one("#results").is_displayed()
    assert page.driver.switch_to.active_element == page.one("#text")


def test_tags_appear_while_typing(page, model_file):
    assert set(page.type(TEXT)) == {"fish", "law"}
    expected = dict(ldsm.load(model_file).predict([TEXT], 6)[0])
    shown = zip(page.texts("#tags .name"), page.texts("#tags .score"), strict=True)
    for name, score in shown:
        assert score == f"{round(100 * expected[name])}%"
    widths = page.script(
        "return [...document.querySelectorAll('#tags .bar i')].map(b => b.style.width)"
    )
    assert float(widths[0].rstrip("%")) == pytest.approx(100 * max(expected.values()), abs=0.01)
    assert page.one("#count").text == "10 words"
    assert page.one("#spoken").get_attribute("textContent").startswith("2 tags: ")
    page.one("#text").send_keys(" Beef, pork and veal from the butcher.")
    page.until(lambda: "meat" in page.texts("#tags .name"))
    page.one("#clear").click()
    page.until(lambda: page.texts("#empty"))
    assert page.texts("#tags .name") == []


def test_click_marks_words(page):
    page.type(TEXT)
    page.explain("fish")
    assert page.all(".why .stages li") and page.texts(".why .stages li") == []  # folded away
    page.one(".why summary").click()
    marks = page.texts("#marks mark.for")
    assert {"cod", "herring", "quota"} <= set(marks)
    assert page.one("#marks").get_attribute("textContent").rstrip("\n") == TEXT
    assert "decision trees" in " ".join(page.texts(".stages li"))
    assert any(chip.startswith("cod") for chip in page.texts(".why .chips li.for"))
    assert set(page.texts(".why .chips li.here span")) & {"cod", "herring", "quota"}
    # The marks lie exactly behind the words.
    place = page.script("""
        const style = (id) => { const s = getComputedStyle(document.getElementById(id));
          return [s.fontFamily, s.fontSize, s.lineHeight, s.padding, s.width, s.letterSpacing,
                  s.whiteSpace, s.borderTopWidth]; };
        return [style("marks"), style("text")];""")
    assert place[0] == place[1]
    # Another tag has other words; the same again takes the marks away.
    page.explain("law")
    page.until(lambda: page.texts(".why .stages li"))  # what is unfolded stays so
    page.until(lambda: "judge" in page.texts("#marks mark.for"))
    assert len([why for why in page.all(".why") if why.is_displayed()]) == 1
    page.tag("law").find_element(By.CSS_SELECTOR, "button.tag").click()
    assert page.texts("#marks mark") == []


def test_sliders(page):
    page.type(TEXT)
    n_sure = len(page.texts("#tags .name"))
    page.choose("sure", "0")
    assert len(page.texts("#tags .name")) == len(TOPICS) > n_sure
    assert page.one("#sure-value").text == "0%"
    before = page.texts("#tags .name")
    page.choose("rare", "100")
    assert page.one("#rare-value").text == "100%"
    page.until(lambda: sorted(page.texts("#tags .name")) == sorted(before))


def test_correction(page, model_file):
    before = len(corrections(model_file))
    page.type(TEXT)
    page.tag("law").find_element(By.CSS_SELECTOR, ".icon").click()
    assert "removed" in page.tag("law").get_attribute("class")
    assert page.one("#changes").text == "Your correction: 1 removed."
    page.one("#add").send_keys("wea")
    page.until(lambda: page.texts("#found li span") == ["weather", "wea"])
    page.one("#add").send_keys(Keys.ENTER)
    assert "added" in page.tag("weather").get_attribute("class")
    page.until(lambda: page.texts(".why .verdict"))  # why it was not suggested
    page.one("#add").send_keys("sea law")
    page.until(lambda: page.texts("#found li small") == ["a new tag"])
    page.one("#add").send_keys(Keys.ENTER)
    assert page.one("#changes").text == "Your correction: 1 removed, 2 added."
    page.one("#send").click()
    page.until(lambda: "It is saved until the model is next updated" in page.one("#thanks").text)
    kept = corrections(model_file)
    assert len(kept) == before + 1
    assert kept[-1] == (TEXT, ["fish", "weather", "sea law"])
    assert not page.one("#correction").is_displayed()


def test_correction_uses_shown_text(page, model_file):
    """Not of the text before, whose tags are still there for a moment."""
    before = len(corrections(model_file))
    page.type(TEXT)
    page.tag("law").find_element(By.CSS_SELECTOR, ".icon").click()
    page.script("""
        const text = document.getElementById("text");
        text.value = text.value.replace("judge in court", "butcher of beef");
        text.dispatchEvent(new Event("input"));
        document.getElementById("send").click();""")
    page.until(lambda: "The text has changed" in page.one("#banner").text)
    page.until(lambda: "meat" in page.texts("#tags .name"))
    # Another text altogether has nothing to do with what was changed.
    assert page.one("#correction").is_displayed()
    page.script("""
        const text = document.getElementById("text");
        text.value = "storm and rain and thunder";
        text.dispatchEvent(new Event("input"));""")
    page.until(lambda: "weather" in page.texts("#tags .name"))
    assert not page.one("#correction").is_displayed()
    assert len(corrections(model_file)) == before


def test_undo_and_empty_correction(page, model_file):
    before = len(corrections(model_file))
    page.type(TEXT)
    for name in page.texts("#tags .name"):
        page.tag(name).find_element(By.CSS_SELECTOR, ".icon").click()
    page.one("#send").click()
    page.until(lambda: "needs at least one tag" in page.one("#banner").text)
    page.one("#undo").click()
    assert not page.one("#correction").is_displayed()
    assert len(corrections(model_file)) == before


def test_script_tag_is_escaped(page):
    page.script("window.alerts = 0; window.alert = () => { window.alerts += 1 }")
    page.type("browser cookie pixel cursor widget " + SCRIPT)
    assert page.texts("#tags .name")[0] == SCRIPT
    page.explain(SCRIPT)
    page.one("#add").send_keys("script")
    page.until(lambda: SCRIPT in page.texts("#found li span"))
    page.one("#tab-labels").click()
    page.one("#label-search").send_keys("script")
    page.until(lambda: page.texts("#labels th") == [SCRIPT])
    assert page.script("return [window.alerts, document.scripts.length]") == [0, 1]


def test_tag_list(page):
    page.one("#tab-labels").click()
    page.until(lambda: len(page.texts("#labels th")) == len(TOPICS))
    assert page.one("#label-count").text == "6 tags"
    counts = [int(text) for text in page.texts("#labels td.number")]
    assert counts == sorted(counts, reverse=True)
    page.choose("label-order", "name")
    page.until(lambda: page.texts("#labels th") == sorted(TOPICS))
    page.one("#label-search").send_keys("fis")
    page.until(lambda: page.texts("#labels th") == ["fish"])
    page.one("#labels button").click()
    words = page.until(lambda: page.texts("#labels .details .chips li"))
    assert set(words) & set(TOPICS["fish"])
    assert "had it in the top 5" in page.one("#labels .details").text


def test_narrow_and_wide(page):
    page.type(TEXT)
    page.explain("fish")
    for width in (360, 768, 1280, 2200):
        page.size(width, 800)
        for tab in ("text", "labels", "file"):
            page.one(f"#tab-{tab}").click()
            inner, needed = page.script(
                "return [window.innerWidth, document.documentElement.scrollWidth]"
            )
            assert needed <= inner, (tab, width)
    page.one("#tab-text").click()
    text, side = (page.one(part).rect for part in (".paper", ".side"))
    assert side["x"] > text["x"] + text["width"] - 1  # side by side
    page.size(360, 800)
    text, side = (page.one(part).rect for part in (".paper", ".side"))
    assert side["y"] > text["y"] + text["height"] - 1  # one below the other


def test_dark(page):
    def lightness(selector):
        colour = page.one(selector).value_of_css_property("background-color")
        return sum(map(int, colour[colour.index("(") + 1 :].split(",")[:3])) / 3

    assert lightness("body") > 200
    page.colours("dark")
    assert lightness("body") < 60 and lightness(".paper") < 60


def test_accessibility(page):
    """No serious finding of axe-core, in any state of the page."""
    page.type(TEXT)
    page.explain("fish")
    page.one("#add").send_keys("wea")
    page.until(lambda: page.texts("#found li"))
    for scheme in ("light", "dark"):
        page.colours(scheme)
        for width in (1280, 360):
            page.size(width, 800)
            for tab in ("text", "file", "labels"):
                page.one(f"#tab-{tab}").click()
                assert page.violations() == [], (scheme, width, tab)
    page.open("docs")
    assert page.violations() == []


def test_by_keyboard_alone(page, model_file):
    """From the top of the page to a correction, without a mouse."""
    before = len(corrections(model_file))

    def press(*keys):
        page.driver.switch_to.active_element.send_keys(*keys)

    def active():
        return page.script(
            "const e = document.activeElement;"
            "return e.id || e.getAttribute('aria-label') || e.textContent.trim()"
        )

    def go_to(name, step=Keys.TAB):
        for _ in range(60):
            if active().startswith(name):
                return
            press(step)
        raise AssertionError(f"{name} is not reached")

    press(TEXT)
    page.until(lambda: page.texts("#tags .name"))
    go_to("sure")
    press(Keys.ARROW_LEFT)
    assert page.one("#sure-value").text == "45%"
    go_to("fish")
    press(Keys.ENTER)
    page.until(lambda: page.texts("#marks mark"))
    go_to("Remove law")
    press(Keys.SPACE)
    assert active() == "Add law"  # the focus stays
    go_to("add")
    press("t")
    page.until(lambda: len(page.texts("#found li")) > 2)
    press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    chosen = page.one("#found li[aria-selected='true']")
    assert page.one("#add").get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    press(Keys.ESCAPE)
    assert not page.one("#found").is_displayed()
    press(Keys.CONTROL, "a")
    press("trade")
    page.until(lambda: page.texts("#found li"))
    press(Keys.ENTER)
    go_to("Remove trade", Keys.SHIFT + Keys.TAB)
    press(Keys.SPACE)  # put in by mistake
    assert active() == "Add trade"  # below, among those that are less sure
    press(Keys.SPACE)
    go_to("send")
    press(Keys.ENTER)
    page.until(lambda: page.one("#thanks").text)
    assert active() == "text"
    assert corrections(model_file)[before:] == [(TEXT, ["fish", "trade"])]
    page.one("#tab-text").send_keys(Keys.ARROW_RIGHT)
    assert active() == "tab-file" and page.one("#drop").is_displayed()
    press(Keys.ARROW_RIGHT)
    assert active() == "tab-labels"
    press(Keys.ARROW_RIGHT)
    assert active() == "tab-text"
