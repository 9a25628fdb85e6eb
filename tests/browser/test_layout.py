"""The layout in windows of all sizes: text and tags without scrolling, no broken words."""

import pytest

from services import TOPICS

pytestmark = pytest.mark.browser
TEXT = "The cod and herring quota, says a judge in court."
LONG = " ".join(word for words in TOPICS.values() for word in words) * 40

# Elements that scroll within something that scrolls, a window included.
NESTED = """
    const scrolls = (e) => e.scrollHeight > e.clientHeight + 1
        && (e === document.documentElement || /auto|scroll/.test(getComputedStyle(e).overflowY));
    return [...document.querySelectorAll("*")].filter(scrolls).filter((e) => {
        for (let p = e.parentElement; p; p = p.parentElement) if (scrolls(p)) return true;
        return false;
    }).map((e) => e.id || e.className || e.tagName);
"""


def visible(page, element):
    top, bottom = page.script(
        "const r = arguments[0].getBoundingClientRect(); return [r.top, r.bottom]", element
    )
    return top >= 0 and bottom <= page.script("return window.innerHeight")


@pytest.mark.parametrize(("width", "height"), [(390, 844), (800, 1000), (1400, 900)])
def test_empty_text_box_is_small(page, width, height):
    page.size(width, height)
    assert page.one("#text").rect["height"] < 200
    page.type(TEXT)
    assert visible(page, page.one("#tags li"))


@pytest.mark.parametrize("text", [TEXT, LONG])
def test_no_nested_scrollbars_in_a_wide_window(page, text):
    page.size(1400, 900)
    page.script(
        "const t = document.getElementById('text'); t.value = arguments[0];"
        "t.dispatchEvent(new Event('input'))",
        text,
    )
    page.until(lambda: page.texts("#tags .name"))
    page.choose("sure", "0")
    page.explain("fish")
    page.one(".why summary").click()
    page.one("#add").send_keys("e")
    page.until(lambda: page.texts("#found li"))
    assert page.script(NESTED) == []
    assert page.script("return document.documentElement.scrollHeight") <= 900
    # The marks lie behind the words, also where the text scrolls.
    boxes = page.script(
        "return ['text', 'marks'].map((id) => { const e = document.getElementById(id);"
        "return [e.clientWidth, e.clientHeight, e.scrollHeight]; })"
    )
    assert boxes[0] == boxes[1]


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1400, 500)])
def test_details_of_the_last_tag_open_in_view(page, width, height):
    page.size(width, height)
    page.type(TEXT)
    page.choose("sure", "0")
    last = page.texts("#tags .name")[-1]
    page.explain(last)
    assert visible(page, page.one(".why:not([hidden])"))
    assert visible(page, page.tag(last))
    page.one(".why summary").click()
    page.until(lambda: page.texts(".why .stages li"))
    page.until(lambda: visible(page, page.one(".why summary")))


def test_typing_does_not_scroll_to_the_open_tag(page):
    page.size(390, 844)
    page.type(TEXT)
    page.choose("sure", "0")
    page.explain(page.texts("#tags .name")[-1])
    page.script("window.scrollTo(0, 0)")
    page.one("#text").send_keys(" Beef.")
    page.until(lambda: page.script("return document.getElementById('marks').textContent")
               .startswith(TEXT + " Beef."))  # fmt: skip
    assert page.script("return window.scrollY") == 0


def test_counts_do_not_wrap(page):
    """In a window of a phone."""
    page.size(390, 844)
    page.one("#tab-labels").click()
    page.until(lambda: page.texts("#labels .score"))
    lines = page.script(
        "return [...document.querySelectorAll('#labels .score')].map((e) => {"
        "e.textContent = '817 of 823'; const range = document.createRange();"
        "range.selectNodeContents(e); return range.getClientRects().length })"
    )
    assert set(lines) == {1}


def test_tagged_rows_start_in_view(page, tmp_path):
    """In a window of a phone: the box for a file shrinks once it has one."""
    lines = [f"{i},cod quota" for i in range(40)]
    (tmp_path / "rows.csv").write_text("\n".join(["id,text", *lines]))
    page.size(390, 844)
    page.one("#tab-file").click()
    assert page.texts("#drop .quiet")
    page.one("#file").send_keys(str(tmp_path / "rows.csv"))
    page.until(lambda: page.one("#job").is_displayed())
    assert page.texts("#drop .quiet") == []
    page.one("#go").click()
    page.until(lambda: page.one("#as-csv").is_displayed())
    assert visible(page, page.one("#rows tr"))
