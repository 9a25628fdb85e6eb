"""The forms of predictions: tables, JSON Lines and lines, with ids, and as many labels as asked."""

import csv
import json

import pytest

import ldsm
from cli_runs import make_documents
from ldsm import datasets

pytestmark = pytest.mark.filterwarnings("default")
N_ROWS = 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    texts, tags = make_documents(120, seed=0)
    ldsm.TextTagger(ldsm.LdSMClassifier(3)).fit(texts, tags).save(folder / "tags.ldsm")
    pairs = zip(texts, tags, strict=True)
    rows = [[f"doc {i}", text, ";".join(names)] for i, (text, names) in enumerate(pairs)]
    with open(folder / "new.csv", "w", newline="") as file:
        csv.writer(file).writerows([["key", "text", "labels"], *rows[:N_ROWS]])
    with open(folder / "new.jsonl", "w") as file:
        for i, row in enumerate(rows[:N_ROWS]):
            file.write(json.dumps({"key": i, "text": row[1]}) + "\n")
    return folder


def test_csv_output(run, folder, tmp_path):
    output = tmp_path / "out.csv"
    data, model = folder / "new.csv", folder / "tags.ldsm"
    for _ in range(2):  # predictions may be written over
        done = run("predict", model, data, "-o", output, "--id-field", "key", "-k", 2)
        assert done.code == 0, done
    with open(output, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["row"] for row in rows] == [str(i) for i in range(N_ROWS)]
    assert [row["key"] for row in rows] == [f"doc {i}" for i in range(N_ROWS)]
    expected = ldsm.load(model).predict(datasets.load_table(data).texts, k=2)
    for row, pairs in zip(rows, expected, strict=True):
        best = [label for label, score in pairs if score > 0]
        assert row["labels"].split(",")[: len(best)] == best
        scores = [float(score) for score in row["scores"].split(",")]
        assert scores[: len(best)] == pytest.approx([score for _, score in pairs], abs=1e-5)
        assert len(scores) == 2
    # What was written can be read as data again.
    assert len(datasets.load_table(output, text="key")) == N_ROWS


def test_tsv_and_jsonl_output(run, folder, tmp_path):
    model, data = folder / "tags.ldsm", folder / "new.jsonl"
    assert run("predict", model, data, "-o", tmp_path / "out.tsv").code == 0
    assert (tmp_path / "out.tsv").read_text().splitlines()[0] == "row\tlabels\tscores"
    done = run("predict", model, data, "-o", tmp_path / "out.jsonl", "--id-field", "key")
    assert done.code == 0
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(r["row"], r["key"]) for r in records] == [(i, str(i)) for i in range(N_ROWS)]
    assert all(len(r["labels"]) == len(r["scores"]) for r in records)
    conflict = run("predict", model, data, "-o", tmp_path / "out.tsv", "--json")
    assert conflict.code == 2 and "is a table" in conflict.err


def test_table_separator_avoids_labels(run, tmp_path):
    texts = ["cod quota", "beef import"] * 10
    names = [["a,b", "c|d"], ["e;f"]] * 10
    ldsm.TextTagger(ldsm.LdSMClassifier(1)).fit(texts, names).save(tmp_path / "m.ldsm")
    output = tmp_path / "out.csv"
    assert run("predict", tmp_path / "m.ldsm", "a cod quota", "-o", output).code == 0
    assert output.read_text() == 'row,labels,scores\n0,"a,b/c|d",1.000000/1.000000\n'
    every = [["a,b", "c|d;", "e/f\tg"], ["x"]] * 10
    ldsm.TextTagger(ldsm.LdSMClassifier(1)).fit(texts, every).save(tmp_path / "m.ldsm")
    done = run("predict", tmp_path / "m.ldsm", "a cod quota", "-o", tmp_path / "none.csv")
    assert done.code == 2 and ".jsonl" in done.err and not (tmp_path / "none.csv").exists()


def test_exactly_k_labels(run, tmp_path):
    texts, tags = make_documents(120, seed=0)
    single = [[names[0]] for names in tags]
    model, n_labels = tmp_path / "m.ldsm", len({names[0] for names in tags})
    ldsm.TextTagger(ldsm.LdSMClassifier(1)).fit(texts, single).save(model)
    few = run("predict", model, "cod herring trawler", "--json").json
    full = run("predict", model, "cod herring trawler", "-k", n_labels, "--json").json
    assert len(few["labels"]) < len(full["labels"]) == len(set(full["labels"])) == n_labels
    assert full["labels"][: len(few["labels"])] == few["labels"]
    assert full["scores"][len(few["labels"]) :] == [0.0] * (n_labels - len(few["labels"]))
    more = run("predict", model, "cod herring trawler", "-k", 50, "--json").json
    assert more["labels"] == full["labels"]  # there are no more


def test_plain_lines_begin_with_the_id(run, folder):
    done = run("predict", folder / "tags.ldsm", folder / "new.csv", "--id-field", "key")
    assert [line.split("\t")[0] for line in done.lines] == [f"doc {i}" for i in range(N_ROWS)]


def test_missing_ids(run, folder, tmp_path):
    model = folder / "tags.ldsm"
    done = run("predict", model, folder / "new.csv", "--id-field", "nr")
    assert (
        done.code == 1
        and "no column 'nr', only 'key', 'text', 'labels'; use --id-field" in done.err
    )
    done = run("predict", model, folder / "new.jsonl", "--id-field", "nr")
    assert done.code == 1 and "no field 'nr', only 'key', 'text'; use --id-field" in done.err
    done = run("predict", model, "some text", "--id-field", "nr")
    assert done.code == 2 and "can only be used with files of texts" in done.err
    (tmp_path / "lines.txt").write_text("cod\n")
    done = run("predict", model, tmp_path / "lines.txt", "--id-field", "nr")
    assert done.code == 2 and "not used with format lines" in done.err


def test_several_text_columns(run, tmp_path):
    texts, tags = make_documents(80, seed=1)
    rows = [[*text.split(" ", 1), ";".join(names)] for text, names in zip(texts, tags, strict=True)]
    with open(tmp_path / "d.csv", "w", newline="") as file:
        csv.writer(file).writerows([["title", "body", "labels"], *rows])
    fields = ["--text-field", "title", "--text-field", "body"]
    done = run("train", tmp_path / "d.csv", "-o", tmp_path / "m.ldsm", "--n-estimators", 2, *fields)
    assert done.code == 0, done
    data = datasets.load_table(tmp_path / "d.csv", text=["title", "body"], separator=";")
    assert data.texts == [f"{title}\n{body}" for title, body, _ in rows]
    expected = ldsm.TextTagger(ldsm.LdSMClassifier(2)).fit(data)
    assert ldsm.load(tmp_path / "m.ldsm").fingerprint_ == expected.fingerprint_
    # The model remembers its fields.
    assert run("evaluate", tmp_path / "m.ldsm", tmp_path / "d.csv").code == 0
    records = [{"title": t, "body": b, "labels": n.split(";")} for t, b, n in rows]
    (tmp_path / "d.json").write_text(json.dumps(records, indent=2))
    as_json = datasets.load_jsonl(tmp_path / "d.json", text=["title", "body"])
    assert as_json.texts == data.texts and as_json.labels == data.labels


@pytest.mark.parametrize("text", [[], [1], 3])
def test_fields_must_be_names(tmp_path, text):
    (tmp_path / "d.csv").write_text("text,labels\na,b\n")
    (tmp_path / "d.jsonl").write_text('{"text": "a", "labels": ["b"]}\n')
    for load, name in ((datasets.load_table, "d.csv"), (datasets.load_jsonl, "d.jsonl")):
        with pytest.raises((ValueError, TypeError), match="text must name|not iterable"):
            load(tmp_path / name, text=text)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('[{"text": "a", "labels": []}', r":1: is not a JSON array: Expecting ',' or '\]'"),
        ('[\n{"text": "a", "labels": []},\n]', ":3: is not a JSON array"),
        ('[\n{"text": "a", "labels": []},\n{"text": 1}]', ":3: field 'text' must be a string"),
        ("[1]", ":1: expected a JSON object"),
        ("[]\nmore", ":2: expected nothing after the array"),
        ('{\n"data": []}', ":1: is not JSON, one object per line or an array of objects"),
    ],
)
def test_broken_arrays_name_the_line(tmp_path, content, problem):
    (tmp_path / "d.json").write_text(content)
    with pytest.raises(ValueError, match=problem):
        datasets.load_dataset(tmp_path / "d.json")


def test_json_array_is_read(tmp_path):
    content = '\ufeff [ {"text": "a\\nb", "labels": ["x"]},\n\n {"text": "", "labels": 1}\n]\n\n'
    content = content.replace(": 1}", ': "y"}')
    (tmp_path / "d.json").write_text(content)
    assert datasets.load_jsonl(tmp_path / "d.json").labels == [["x"], ["y"]]
    (tmp_path / "d.json").write_text(" [ ] ")
    assert len(datasets.load_jsonl(tmp_path / "d.json")) == 0
