"""Tables whose first row is a document: it is never lost silently."""

import warnings

import pytest

from cli_runs import within
from ldsm import datasets

ROWS = {
    "a sentence": "cod and herring quota,fish\nimport of beef,meat\nbeef and veal,meat\n",
    "a repeated label": "cod,fish\nbeef,meat\nveal,meat\nherring,fish\n",
    "a number": "17,cod\n18,beef\n19,veal\n",
    "a long cell": "the quota for cod and herring is lower this year,fish\n",
    "equal cells": "cod,cod\nbeef,meat\n",
}


@pytest.fixture(params=ROWS)
def table(request, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(ROWS[request.param])
    return path


def test_error_asks_for_a_header(table):
    with pytest.raises(ValueError) as error:
        datasets.load_table(table)
    said = str(error.value)
    assert "rows.csv:1: " in said and "looks like data" in said
    assert "If it is a row, use header=False and number the columns from 1" in said
    assert "text=" not in said  # to name a cell of this row would lose the row


def test_error_without_evidence_leaves_the_choice(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("cod,fish\nbeef,meat\n")
    with pytest.raises(
        ValueError,
        match="only 'cod', 'fish'; use text= .*, or, if this line is a row, use header=F",
    ):
        datasets.load_table(path)


def test_row_used_as_names_is_reported(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(ROWS["a sentence"])
    with pytest.warns(UserWarning, match="The first row of .* looks like data: 'cod and herring"):
        data = datasets.load_table(path, text="cod and herring quota", labels="fish")
    assert len(data) == 2
    with pytest.warns(UserWarning, match="looks like data"):
        list(datasets.iter_table(path, text="cod and herring quota", labels=None))


@pytest.mark.parametrize(
    "content",
    [
        "text,labels\ntext,labels\n",
        "Message,Category\nthe quota for cod,fish\nimport of beef,meat\n",
        ",0,1\n0,a quota for cod and herring in the north,fish\n",
        "0,1\ncod,fish\nbeef,meat\n",
        "Description of the problem and of everything that was tried,Tag\ncod,fish\n",
    ],
)
def test_headers_are_read_without_a_warning(tmp_path, content):
    path = tmp_path / "rows.csv"
    path.write_text(content)
    header = content.splitlines()[0].split(",")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = datasets.load_table(path, text=header[-2], labels=header[-1])
    assert len(data) == len(content.splitlines()) - 1


@pytest.mark.filterwarnings("default")
def test_advice_keeps_all_rows(tmp_path, capsys):
    run = within(capsys)
    path = tmp_path / "rows.csv"
    path.write_text(ROWS["a sentence"])
    done = run("train", path, "-o", tmp_path / "m.ldsm")
    assert done.code == 1 and "looks like data" in done.err and "--text-field" not in done.err
    named = ["--text-field", "cod and herring quota", "--label-field", "fish"]
    done = run("train", path, "-o", tmp_path / "m.ldsm", *named, "--n-estimators", 1)
    assert "warning: The first row of" in done.err
    assert "use --no-header and number the columns from 1" in done.err
    done = run(
        "train", path, "-o", tmp_path / "m.ldsm", "--no-header", "--n-estimators", 1, "--json"
    )
    assert done.code == 0 and done.json["rows"] == 3
