"""The first row of a table in the browser: names of columns, or a row like the others."""

import pytest

from ldsm.datasets.documents.tables import looks_like_data

pytestmark = pytest.mark.browser
WITHOUT_NAMES = "cod and herring quota,fish\nimport of beef,meat\nbeef and veal,meat\n"


def choose(page, path, content):
    path.write_text(content)
    page.until(lambda: page.texts("#empty"))
    page.one("#tab-file").click()
    page.one("#file").send_keys(str(path))
    page.until(lambda: page.one("#job").is_displayed())


def tagged(page, n_rows):
    page.one("#go").click()
    page.until(lambda: page.one("#progress-text").text == f"{n_rows} of {n_rows} rows")
    return page.texts("#rows td:nth-child(2)")


def asks(page):
    """Whether the question stands out."""
    assert page.texts("#names-row legend") == ["Is the first row data?"]
    return page.one("#names-row").value_of_css_property("border-top-style") == "solid"


def test_headerless_first_row_is_tagged(page, tmp_path):
    choose(page, tmp_path / "notes.csv", WITHOUT_NAMES)
    assert page.one("#file-name").text == "notes.csv: 3 rows"
    assert asks(page) and page.one("#is-data").is_selected()
    assert page.texts("#names-note") == ["It looks like it: cod and herring quota | fish"]
    assert page.one("#text-column").get_attribute("value") == "column 1"
    assert tagged(page, 3)[0] == "cod and herring quota"


def test_person_decides_about_the_first_row(page, tmp_path):
    choose(page, tmp_path / "notes.csv", "herring,fish\nsteak,meat\n")
    assert page.one("#file-name").text == "notes.csv: 1 row"
    assert not asks(page) and page.one("#is-names").is_selected()
    assert page.texts("#names-note") == ["It looks like column names: herring | fish"]
    page.one("#is-data").click()
    page.until(lambda: page.one("#file-name").text == "notes.csv: 2 rows")
    assert tagged(page, 2) == ["herring", "steak"]
    page.one("#is-names").click()
    page.until(lambda: page.one("#file-name").text == "notes.csv: 1 row")
    assert page.one("#progress-text").text == ""  # no answers of other rows are left
    assert tagged(page, 1) == ["steak"]


def test_other_files_have_no_such_question(page, tmp_path):
    choose(page, tmp_path / "notes.txt", "cod and herring\nbeef\n")
    assert not page.one("#names-row").is_displayed()
    assert page.one("#file-name").text == "notes.txt: 2 rows"


def test_page_and_shell_judge_alike(page, tmp_path):
    page.until(lambda: page.texts("#empty"))
    page.one("#tab-file").click()
    judged = set()
    for number, table in enumerate(
        (
            [["text", "labels"], ["text", "labels"]],
            [["Message", "Category"], ["the quota for cod", "fish"]],
            [["", "0", "1"], ["0", "a quota", "fish"]],
            [["0", "1"], ["cod", "fish"]],
            [["cod and herring quota", "fish"], ["import of beef", "meat"]],
            [["cod", "fish"], ["beef", "meat"], ["veal", "fish"]],
            [["17", "cod"], ["18", "beef"]],
            [["1.5e3", "cod"], ["2", "beef"]],
            [["the quota for cod and herring is lower this year", "fish"], ["beef " * 30, "meat"]],
            [["cod", "cod"], ["beef", "meat"]],
            [["Subject line of it", "Tag"], ["word " * 30, "fish"]],
        )
    ):
        path = tmp_path / f"{number}.csv"
        path.write_text("".join(",".join(row) + "\n" for row in table))
        page.one("#file").send_keys(str(path))
        page.until(lambda name=path.name: page.one("#file-name").text.startswith(name))
        is_data = looks_like_data(table[0], table[1:])
        assert page.one("#is-data").is_selected() == is_data, table
        judged.add(is_data)
    assert judged == {True, False}
