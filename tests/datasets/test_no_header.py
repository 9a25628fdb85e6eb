"""Tables without a header, and labels as numbers with a file of names."""

import json

import pytest

import ldsm
from cli_runs import within
from ldsm import datasets
from ldsm.datasets import Dataset

NAMES = ["joy", "anger", "fear"]
ROWS = [("so happy today, really", "0"), ("go away", "1,2"), ("help me", "2"), ("hm", "")]
LABELS = [["joy"], ["anger", "fear"], ["fear"], []]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("".join(f"{text}\t{labels}\tid{i}\n" for i, (text, labels) in enumerate(ROWS)))
    return path


def names_file(folder, suffix="txt", lines=NAMES):
    path = folder / f"names.{suffix}"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_columns_by_number(table):
    data = datasets.load_table(table, header=False)
    assert list(data.texts) == [text for text, _ in ROWS]
    assert data.labels == [["0"], ["1", "2"], ["2"], []]
    other = datasets.load_table(table, header=False, text=[3, "1"], labels=2)
    assert other.texts[1] == "id1\ngo away" and other.labels == data.labels
    pairs = datasets.iter_table(table, header=False, text=1, labels=None)
    assert list(pairs) == [(text, []) for text, _ in ROWS]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": 4}, "has columns 1 to 3, as it has no header. Got '4' for text="),
        ({"labels": "tags"}, "columns 1 to 3, .* Got 'tags' for labels="),
        ({"text": []}, "text must name one or more fields"),
    ],
)
def test_wrong_columns(table, columns, message):
    with pytest.raises(ValueError, match=message):
        datasets.load_table(table, header=False, **columns)


QUOTED = '"so" happy\t0\nhm "ok"\t1\n"all"\t2\n'


def test_quotes_may_be_characters_like_others(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text(QUOTED)
    with pytest.raises(ValueError, match=r"rows.tsv:1: .* If quotes are .* use quotes=False"):
        datasets.load_table(path, header=False)
    data = datasets.load_table(path, header=False, quotes=False)
    assert list(data.texts) == ['"so" happy', 'hm "ok"', '"all"']
    copy = tmp_path / "copy.tsv"
    datasets.save_table(data, copy, header=False, quotes=False)
    assert copy.read_text().splitlines() == QUOTED.splitlines()
    lines = Dataset.from_texts(["two\nlines"], [["a"]])
    with pytest.raises(ValueError, match="a delimiter or a line end needs quotes. Got"):
        datasets.save_table(lines, copy, quotes=False)


def test_first_try_of_a_new_user(tmp_path, capsys, monkeypatch):
    """A table without a header, with label numbers and quotes; every error names the next step."""
    monkeypatch.chdir(tmp_path)
    names_file(tmp_path)
    rows = [f"so {text} {i}\t{labels}\tid{i}\n" for i in range(40) for text, labels in ROWS]
    rows.append('"quoted" words\t0\tid\n')
    for name in ("train.tsv", "test.tsv"):
        (tmp_path / name).write_text("".join(rows))
    run, model = within(capsys), ("-o", "m.ldsm")
    first = run("train", "train.tsv", *model)
    assert first.code == 1 and "use --no-header" in first.err
    second = run("train", "train.tsv", *model, "--no-header", "--label-names", "names.txt")
    assert second.code == 1 and "use --no-quotes" in second.err
    form = ("--no-header", "--no-quotes", "--label-names", "names.txt")
    assert run("train", "train.tsv", *model, *form, "--n-estimators", 3).code == 0
    assert ldsm.load("m.ldsm").classes_.tolist() == sorted(NAMES)
    for command in (("evaluate",), ("report", "-o", "r.html"), ("learn", "-o", "n.ldsm")):
        forgotten = run(command[0], "m.ldsm", "test.tsv", *command[1:])
        assert forgotten.code == 1 and "--label-names names.txt: use that option" in forgotten.err
        known = run(command[0], "m.ldsm", "test.tsv", *command[1:], "--label-names", "names.txt")
        assert known.code == 0
    assert (
        run("evaluate", "m.ldsm", "test.tsv", "--label-names", "names.txt", "--json").json[
            "precision@1"
        ]
        > 0.5
    )
    # Names, such as those of a held-out file, are known labels.
    split = ("--validation", 0.2, "--held-out", "held.tsv")
    assert run("train", "train.tsv", *model, *form, "--n-estimators", 3, *split).code == 0
    assert run("evaluate", "m.ldsm", "held.tsv").code == 0


def test_empty_table(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("")
    with pytest.raises(ValueError, match="rows.csv:1: is empty: expected rows"):
        datasets.load_table(path, header=False)


def test_written_rows_are_read_back(tmp_path):
    data = Dataset.from_texts(["cod, quota", "beef"], [["fish", "law"], []])
    for columns in ({}, {"text": [3, 4], "labels": 2}):
        path = tmp_path / "rows.csv"
        datasets.save_table(data, path, header=False, **columns)
        again = datasets.load_table(path, header=False, **columns)
        assert list(again.texts) == data.texts and again.labels == data.labels
    with pytest.raises(ValueError, match="numbers from 1. Got 'tags'"):
        datasets.save_table(data, path, header=False, labels="tags")


# -- names of labels ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        NAMES,
        dict(enumerate(NAMES)),
        {str(number): name for number, name in enumerate(NAMES)},
        ("txt", NAMES),
        ("txt", [f"{number}\t{name}" for number, name in enumerate(NAMES)]),
        ("csv", [f'{number},"{name}"' for number, name in enumerate(NAMES)]),
        ("tsv", ["id\tname", *(f"{number}\t{name}" for number, name in enumerate(NAMES))]),
    ],
)
def test_labels_get_names(table, tmp_path, given):
    if isinstance(given, tuple):
        given = names_file(tmp_path, *given)
    assert datasets.load_table(table, header=False, label_names=given).labels == LABELS
    lines = [
        json.dumps({"text": t, "labels": [int(x) for x in y.split(",") if x]}) for t, y in ROWS
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(lines))
    assert datasets.load_jsonl(path, label_names=given).labels == LABELS
    assert [labels for _, labels in datasets.iter_jsonl(path, label_names=given)] == LABELS


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (NAMES[:2], r"rows.tsv:2: label_names= names 2 labels, 0 to 1. Got '2'"),
        (["joy", "", "fear"], "names.txt:2: expected a name, got an empty line"),
        (["0\tjoy", "1\tanger\tx"], "names.txt:2: expected a name per line, or a code and a name"),
        (["0\tjoy", "0\tanger"], "one name per label. Got two names for 0"),
        (["0\tjoy", "1\t"], "one name per label. Got no name for 1"),
        ([""], "at least one name. Got none"),
    ],
)
def test_wrong_names(table, tmp_path, lines, message):
    with pytest.raises(ValueError, match=message):
        datasets.load_table(table, header=False, label_names=names_file(tmp_path, lines=lines))


# -- commands ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default")
def test_commands(tmp_path, capsys):
    run = within(capsys)
    rows, names = tmp_path / "rows.tsv", names_file(tmp_path)
    words = ["happy smile", "hate rage", "scary dark"]
    rows.write_text("".join(f"{words[i % 3]} {i}\t{i % 3}\tid{i}\n" for i in range(60)))
    model, kept = tmp_path / "m.ldsm", tmp_path / "kept.tsv"
    plain = run("train", rows, "-o", model)
    assert plain.code == 1 and "use --no-header" in plain.err
    options = ["--no-header", "--label-names", names]
    held = ["--validation", 0.2, "--held-out", kept]
    done = run("train", rows, "-o", model, *options, "--n-estimators", 2, *held)
    assert done.code == 0 and "joy 20" in done.err
    assert sorted(ldsm.load(model).classes_) == sorted(NAMES)
    # The model knows that there is no header; the held-out rows have the names already.
    assert run("evaluate", model, kept, "--json").json["rows"] == 12
    found = run("evaluate", model, rows, "--label-names", names, "--json").json
    assert found["rows"] == 60 and found["precision@1"] > 0.9
    done = run("predict", model, rows, "-k", 1, "--id-field", 3, "-o", tmp_path / "out.tsv")
    assert done.code == 0 and "id0\tjoy" in (tmp_path / "out.tsv").read_text()
    assert run("convert", rows, tmp_path / "store", *options).code == 0
    assert datasets.open_store(tmp_path / "store").n_labels == 3
    wrong = run(
        "train",
        rows,
        "-o",
        model,
        "--no-header",
        "--label-names",
        names_file(tmp_path, lines=["x"]),
    )
    assert wrong.code == 1 and "--label-names names 1 labels" in wrong.err
