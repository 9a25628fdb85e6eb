"""What people read first about a tag: a sentence."""

import pytest

import ldsm
from browser_page import Page
from services import service
from text_corpus import titles

pytestmark = pytest.mark.browser


def test_sentence_comes_before_numbers(page):
    page.type("The cod and herring quota, says a judge.")
    verdict = page.explain("fish")
    assert verdict.startswith("Suggested because of ") and verdict.endswith(".")
    named = page.texts(".why .verdict em")
    assert 2 <= len(named) <= 3 and set(named) <= {"cod", "herring", "quota"}
    shown = " ".join(page.texts(".why"))
    assert "log-odds" not in shown and "confident, rank" in shown and "Learned from" in shown
    page.one(".why summary").click()
    page.until(lambda: "log-odds" in " ".join(page.texts(".why")))


def test_reasons_against_a_tag(page):
    page.type("cod herring quota net judge")
    page.choose("sure", "95")
    name = next(one for one in page.texts("#perhaps .name") if one != "fish")
    verdict = page.explain(name)
    assert verdict.startswith("Less likely (")
    assert "Against it: " in verdict


def test_name_in_the_text_is_mentioned(driver, tmp_path):
    texts, tags = titles(1000)
    names = sorted({tag for own in tags for tag in own})
    address = {name: f"http://example.org/{i}" for i, name in enumerate(names)}
    tagger = ldsm.TextTagger(ldsm.LdSMClassifier(n_estimators=5, random_state=0))
    uris = [[address[tag] for tag in own] for own in tags]
    tagger.fit(texts, uris, vocabulary={uri: name for name, uri in address.items()})
    tagger.save(tmp_path / "tags.ldsm")
    found = ((text, tagger.explain(text).scores[0]) for text in texts)
    text, best = next((text, one) for text, one in found if one.name and one.name[1] >= 0.5)
    with service(tmp_path / "tags.ldsm", "--port", 0) as served:
        page = Page(driver, served.address).open()
        page.size(1280, 900)
        page.type(text)
        name, share = best.name
        part = "" if share > 0.995 else f"{round(100 * share)}% of "
        shown = names[int(best.tag.split("/")[-1])]
        assert f"; {part}the name {name} is in the text." in page.explain(shown)
    page.errors()


def test_text_without_a_known_word_is_reported(page):
    page.one("#text").send_keys("xyzzy plugh")
    page.until(lambda: page.texts("#unknown"))
    assert page.texts("#unknown") == [
        "The model knows no word of this text. These are only its most frequent tags."
    ]
    page.choose("sure", "0")
    page.until(lambda: page.texts("#tags .name"))
    name = page.texts("#tags .name")[0]
    assert page.explain(name).startswith("No word of the text is known. ")
    page.one("#text").send_keys(" cod and herring quota")
    page.until(lambda: not page.texts("#unknown"))
    page.until(lambda: "fish" in page.texts("#tags .name"))
