"""Files of texts in the browser, and the page's error messages."""

import csv
import json

import pytest
from selenium.webdriver.common.keys import Keys

import ldsm
from browser_page import Page
from services import SCRIPT, documents, service, small_tagger

pytestmark = pytest.mark.browser


@pytest.fixture
def downloads(page, tmp_path):
    settings = {"behavior": "allow", "downloadPath": str(tmp_path)}
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", settings)
    return tmp_path


def write_csv(path, n_rows, delimiter=","):
    texts, _ = documents(n_rows, seed=5)
    texts[0] = 'cod, "herring"\nand a second line ' + SCRIPT
    with open(path, "w", newline="") as file:
        table = csv.writer(file, delimiter=delimiter)
        table.writerow(["shelf mark", "body"])
        table.writerows([[f"A {i}", text] for i, text in enumerate(texts)])
    return texts


def tag_all(page, path):
    page.one("#tab-file").click()
    page.one("#file").send_keys(str(path))
    page.until(lambda: page.one("#job").is_displayed())
    page.one("#go").click()


def done(page, n_rows):
    page.until(lambda: page.one("#progress-text").text == f"{n_rows} of {n_rows} rows")
    page.until(lambda: page.one("#go").is_displayed())


def downloaded(page, button, path):
    page.one(button).click()
    page.until(lambda: path.exists() and path.stat().st_size)
    return path.read_text("utf-8")


def test_quotes_within_texts(page, tmp_path):
    """In a table of tabs, without cells in quotes, they are ordinary characters."""
    texts = ['"cod" and herring', 'a "quota', '"beef is "imported"']
    page.until(lambda: page.texts("#empty"))
    (tmp_path / "notes.tsv").write_text("text\tid\n" + "".join(f"{t}\t1\n" for t in texts))
    tag_all(page, tmp_path / "notes.tsv")
    done(page, 3)
    assert page.texts("#rows td:nth-child(2)") == texts


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_table(page, downloads, model_file, delimiter):
    path = downloads / f"notes.{'tsv' if delimiter == chr(9) else 'csv'}"
    texts = write_csv(path, 50, delimiter)
    expected = ldsm.load(model_file).predict(texts, 3)
    page.until(lambda: page.texts("#empty"))
    page.choose("most", "3")
    page.choose("least", "0")
    tag_all(page, path)
    done(page, 50)
    assert page.one("#text-column").get_attribute("value") == "body"
    assert page.one("#id-column").get_attribute("value") == "shelf mark"
    assert page.texts("#rows th")[:2] == ["A 0", "A 1"]
    assert len(page.all("#rows tr")) == 50
    # What is downloaded is what `ldsm predict` would write.
    text = downloaded(page, "#as-csv", downloads / "notes-tags.csv")
    rows = list(csv.DictReader(text.splitlines()))
    assert [*rows[0]] == ["row", "shelf mark", "labels", "scores"]
    assert [row["shelf mark"] for row in rows] == [f"A {i}" for i in range(50)]
    assert [row["labels"].split(",") for row in rows] == [
        [tag for tag, _ in best] for best in expected
    ]
    text = downloaded(page, "#as-jsonl", downloads / "notes-tags.jsonl")
    records = [json.loads(line) for line in text.splitlines()]
    for i, (record, best) in enumerate(zip(records, expected, strict=True)):
        assert record["row"] == i and record["shelf mark"] == f"A {i}"
        assert record["labels"] == [tag for tag, _ in best]
        assert record["scores"] == pytest.approx([score for _, score in best], abs=1e-6)


def test_json_lines_and_plain_lines(page, tmp_path):
    records = [{"id": f"n{i}", "text": text} for i, text in enumerate(documents(20, seed=6)[0])]
    lines = tmp_path / "notes.jsonl"
    lines.write_text("\n".join(map(json.dumps, records)) + "\n\n")
    tag_all(page, lines)
    done(page, 20)
    assert page.texts("#rows th")[3] == "n3"
    array = tmp_path / "notes.json"
    array.write_text(json.dumps(records[:3]))
    tag_all(page, array)
    done(page, 3)
    plain = tmp_path / "notes.txt"
    plain.write_text("cod quota\n\nbeef import\n")
    tag_all(page, plain)
    done(page, 3)  # an empty line is a row, too: rows keep their numbers
    assert page.texts("#rows th") == ["0", "1", "2"]


def test_ids_stay_as_they_are_written(page, downloads):
    lines = downloads / "long.jsonl"
    lines.write_text('{"labels": 12345678901234567891, "text": "cod quota"}\n')
    tag_all(page, lines)
    done(page, 1)
    page.choose("id-column", "labels")
    record = json.loads(downloaded(page, "#as-jsonl", downloads / "long-tags.jsonl"))
    assert record["id (labels)"] == "12345678901234567891" and "fish" in record["labels"]


def test_drop_file(page):
    page.one("#tab-file").click()
    page.script("""
        const data = new DataTransfer();
        data.items.add(new File(["id,text\\n7,cod quota\\n"], "dropped.csv"));
        document.getElementById("drop").dispatchEvent(
          new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));""")
    page.until(lambda: page.one("#file-name").text == "dropped.csv: 1 row")
    page.one("#go").click()
    done(page, 1)
    assert "fish" in page.one("#rows").text


def hold_requests(page, answered):
    """Let the service answer the first batches; later ones wait until they are cancelled."""
    page.script(
        "const send = window.fetch; let batches = 0;"
        "window.fetch = (path, options) =>"
        "  path.includes('suggest-batch') && batches++ >= arguments[0]"
        "  ? new Promise((_, refuse) => options.signal.addEventListener("
        "      'abort', () => refuse(options.signal.reason)))"
        "  : send(path, options)",
        answered,
    )


def test_stop_long_file(page, tmp_path):
    path = tmp_path / "long.csv"
    write_csv(path, 3000)
    hold_requests(page, 2)
    tag_all(page, path)
    page.until(lambda: page.one("#progress-text").text.split(" ")[0] not in ("", "0"))
    page.one("#stop").click()
    page.until(lambda: page.one("#go").is_displayed())
    assert page.one("#progress-text").text != "3,000 of 3,000 rows"
    assert page.one("#as-csv").is_displayed()
    assert len(page.all("#rows tr")) == 500
    assert "first 500 rows are shown" in page.one("#more-rows").text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", 'id,text\n1,"cod', "A quoted cell is not closed."),
        ("a.csv", 'id,text\n1,"cod" quota\n', "Row 2 has more text behind a quoted cell."),
        ("a.csv", "id,text\n1,cod,quota\n", "Row 2 has 3 cells, but there are 2 columns."),
        ("a.csv", "id,text\n", "It has no rows."),
        ("a.jsonl", '{"text": "cod"}\n{bad\n', "Line 2 is not JSON."),
        ("a.jsonl", "[1, 2]\n", "Record 1 is not an object."),
        ("a.csv", "id,text\n1,M\xfcller\n", "It is not UTF-8; save it with that encoding."),
    ],
)
def test_unreadable_files(page, tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content, "latin-1")
    page.one("#tab-file").click()
    page.one("#file").send_keys(str(path))
    page.until(lambda: page.one("#banner").text)
    assert page.one("#banner").text == f"{name} cannot be read. {message}"


def test_service_restart(driver, model_file):
    with service(model_file, "--port", 0) as first:
        page = Page(driver, first.address).open()
        page.type("cod quota")
        first.stop()
        page.one("#text").send_keys(" herring")
        page.until(lambda: "not responding" in page.one("#banner").text)
        page.one("#text").send_keys(" and beef from the butcher")
        with service(model_file, "--port", first.port):
            page.until(lambda: not page.one("#banner").is_displayed(), 20)
            page.until(lambda: "meat" in page.texts("#tags .name"))
    page.errors()  # of the requests that failed, which were meant to


def test_asks_for_key(driver, model_file, tmp_path):
    (tmp_path / "key").write_text("s3cret")
    with service(model_file, "--port", 0, "--api-key-file", tmp_path / "key") as served:
        page = Page(driver, served.address).open()
        for key, last_was_wrong in (("wrong", False), ("s3cret ", True)):
            page.until(lambda: page.one("#key-dialog").is_displayed())
            assert page.one("#key-wrong").is_displayed() == last_was_wrong
            page.one("#key").send_keys(key, Keys.ENTER)
        page.until(lambda: not page.one("#key-dialog").is_displayed())
        assert "fish" in page.type("cod quota")
        # Until the tab is closed.
        page.open()
        assert "fish" in page.type("cod quota")
        page.script("sessionStorage.clear()")
    page.errors()


def test_missing_key(driver, model_file, tmp_path):
    (tmp_path / "key").write_text("s3cret")
    with service(model_file, "--port", 0, "--api-key-file", tmp_path / "key") as served:
        page = Page(driver, served.address).open()
        page.until(lambda: page.one("#key-dialog").is_displayed())
        page.one("#key").send_keys(Keys.ESCAPE)
        page.until(lambda: "requires an API key" in page.one("#banner").text)
        page.one("#banner button").click()
        page.until(lambda: page.one("#key-dialog").is_displayed())
        page.one("#key").send_keys("s3cret", Keys.ENTER)
        assert "fish" in page.type("cod quota")
        page.script("sessionStorage.clear()")
    page.errors()


def test_overlong_text_to_explain(page):
    page.script("document.getElementById('text').value = 'cod quota '.repeat(11000)")
    page.one("#text").send_keys("x")
    page.until(lambda: page.texts("#tags .name"))
    page.one("#tags button.tag").click()
    page.until(lambda: page.texts(".why .verdict") == ["This text is too long to explain."])


def test_oversized_text(driver, model_file):
    with service(model_file, "--port", 0, "--max-body", "2kB") as served:
        page = Page(driver, served.address).open()
        page.script("document.getElementById('text').value = 'cod '.repeat(1000)")
        page.one("#text").send_keys("x")
        page.until(lambda: "at most 2,000 bytes" in page.one("#banner").text)
        page.one("#clear").click()
        assert "fish" in page.type("cod quota")
        assert not page.one("#banner").is_displayed()
    page.errors()


def test_two_learning_models(driver, model_file, tmp_path):
    paths = [tmp_path / "first.ldsm", tmp_path / "second.ldsm"]
    for path in paths:
        path.write_bytes(model_file.read_bytes())
    with service(*paths, "--learn", "--port", 0) as served:
        page = Page(driver, served.address).open()
        page.type("cod quota")
        page.choose("model", "second")
        page.until(lambda: page.texts("#tags .name"))
        page.one("#add").send_keys("sea law")
        page.until(lambda: page.texts("#found li"))
        page.one("#add").send_keys(Keys.ENTER)
        page.one("#send").click()
        page.until(lambda: page.one("#thanks").text == "Thank you. The model is learning it now.")
        page.one("#add").send_keys("sea l")
        page.until(lambda: page.texts("#found li small")[:1] == ["1 text"])
    page.errors()
    assert not (tmp_path / "first.corrections.jsonl").exists()


def test_root_path(driver, model_file):
    with service(model_file, "--port", 0, "--root-path", "/tags") as served:
        assert served.address.endswith("/tags/")
        page = Page(driver, served.address).open()
        assert "fish" in page.type("cod quota")
        page.one(".api").click()
        page.until(lambda: "API reference" in page.driver.page_source)
    page.errors()


def sets(scores, threshold):
    return [[tag for tag, score in row if score >= threshold] for row in scores]


def test_sets_are_those_of_predict(driver, tmp_path):
    """The page's threshold is the model's, to the last digit."""
    model = small_tagger()
    texts = [" ".join(text.split()[:n]) for text in documents(40, seed=9)[0] for n in (1, 2, 3)]
    scores = model.predict(texts, 6)
    # Rounding it to a tenth of a percent, or to a step of the slider, gives other sets.
    threshold = next(
        own
        for own in (score for row in scores for _, score in row if score > 0.5)
        if round(own, 3) > own and sets(scores, own) != sets(scores, round(20 * own) / 20)
    )
    model.classifier_.threshold_ = threshold
    model.save(tuned := tmp_path / "tuned.ldsm")
    rows = tmp_path / "rows.csv"
    with open(rows, "w", newline="") as file:
        csv.writer(file).writerows([["body"], *[[text] for text in texts]])
    expected = [[tag for tag, _ in row] for row in model.predict_sets(texts)]
    assert expected == sets(scores, threshold)
    odd = next(i for i, row in enumerate(sets(scores, round(threshold, 3))) if row != expected[i])
    with service(tuned, "--port", 0) as served:
        page = Page(driver, served.address).open()
        page.driver.execute_cdp_cmd(
            "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
        )
        page.until(lambda: page.texts("#empty"))
        assert page.one("#sure-value").text == f"{round(100 * threshold, 1):g}%"
        assert not page.one("#sure-reset").is_displayed()
        tag_all(page, rows)
        done(page, len(texts))
        text = downloaded(page, "#as-jsonl", tmp_path / "rows-tags.jsonl")
        assert [json.loads(line)["labels"] for line in text.splitlines()] == expected
        # Also in the view of one text, until the slider is moved, and after it is moved back.
        page.one("#tab-text").click()
        assert page.type(texts[odd]) == expected[odd]
        page.choose("sure", "0")
        page.until(lambda: len(page.texts("#tags .name")) == 6)
        page.one("#sure-reset").click()
        page.until(lambda: page.texts("#tags .name") == expected[odd])
        assert not page.one("#sure-reset").is_displayed()
    page.errors()


def test_partial_download_is_labelled(page, downloads):
    path = downloads / "long.csv"
    write_csv(path, 3000)
    hold_requests(page, 2)
    tag_all(page, path)
    page.until(lambda: page.one("#progress-text").text.split(" ")[0] not in ("", "0"))
    assert page.one("#stop").is_displayed() and not page.one("#as-csv").is_displayed()
    page.one("#stop").click()
    page.until(lambda: page.one("#as-csv").is_displayed())
    n = int(page.one("#progress-text").text.split(" ")[0].replace(",", ""))
    assert page.one("#as-csv").text == f"Download CSV of {n:,} rows"
    text = downloaded(page, "#as-csv", downloads / f"long-tags-first-{n}-rows.csv")
    assert len(list(csv.reader(text.splitlines()))) == n + 1
    assert not (downloads / "long-tags.csv").exists()
