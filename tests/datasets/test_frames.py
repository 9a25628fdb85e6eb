"""Documents in Parquet, Feather and Arrow files, and in data frames of several libraries."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet

from cli_runs import within
from ldsm import datasets, load

TEXTS = ["so happy", "go away", None, "hm"]
LABELS = [["joy"], ["anger", "fear"], ["fear"], None]
NAMES = ["joy", "anger", "fear"]
COLUMNS = {
    "text": TEXTS,
    "labels": LABELS,
    "numbers": [[0], [1, 2], [2], []],
    "one": ["joy", "anger", None, "fear"],
    "joined": ["joy", "anger; fear", "fear", ""],
    "id": [7, 8, 9, 10],
}
CLASS_NAMES = (
    '{"info": {"features": {"numbers": {"feature": '
    '{"names": ["joy", "anger", "fear"], "_type": "ClassLabel"}, "_type": "List"}}}}'
)
FOUND = [["joy"], ["anger", "fear"], ["fear"], []]


def table():
    return pa.table(COLUMNS)


def write_stream(rows, path):
    with pa.OSFile(str(path), "wb") as file, ipc.new_stream(file, rows.schema) as stream:
        stream.write_table(rows, max_chunksize=2)


WRITERS = {
    "rows.parquet": lambda rows, path: parquet.write_table(rows, path, row_group_size=2),
    "rows.feather": lambda rows, path: feather.write_feather(rows, path, chunksize=2),
    "rows.arrow": write_stream,
}


@pytest.fixture(params=WRITERS)
def file(request, tmp_path):
    path = tmp_path / request.param
    WRITERS[request.param](table(), path)
    return path


def test_files(file):
    data = datasets.load_dataset(file)
    assert list(data.texts) == ["so happy", "go away", "", "hm"] and data.labels == FOUND
    pairs = list(datasets.iter_arrow(file, text=["text", "one"], labels="one"))
    assert pairs[0] == ("so happy\njoy", ["joy"]) and [labels for _, labels in pairs][2] == []
    joined = datasets.load_arrow(file, labels="joined", separator=";")
    assert joined.labels == FOUND
    assert datasets.load_arrow(file, labels="numbers", label_names=NAMES).labels == FOUND
    assert datasets.load_arrow(file, labels="numbers").labels[1] == ["1", "2"]


@pytest.mark.parametrize("name", WRITERS)
def test_names_in_the_file(tmp_path, name):
    rows = table().replace_schema_metadata({b"huggingface": CLASS_NAMES.encode()})
    WRITERS[name](rows, tmp_path / name)
    assert datasets.load_arrow(tmp_path / name, labels="numbers").labels == FOUND
    other = {str(number): f"label {number}" for number in range(3)}
    given = datasets.load_arrow(tmp_path / name, labels="numbers", label_names=other)
    assert given.labels[0] == ["label 0"]
    WRITERS[name](rows.replace_schema_metadata({b"huggingface": b"[]"}), tmp_path / name)
    assert datasets.load_arrow(tmp_path / name, labels="numbers").labels[0] == ["0"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": "body"}, r"rows.\w+ has no column 'body', only 'text', .*; use text="),
        ({"labels": "tags"}, "has no column 'tags'.*use labels="),
        ({"text": "id"}, r"rows.\w+:1: a text must be a string. Got 7 \(int\)"),
        ({"labels": "numbers", "label_names": ["joy"]}, r":2: label_names= names 1 labels, .*'1'"),
        ({"labels": "one", "separator": ""}, "separator must be .* at least one character"),
    ],
)
def test_wrong_use(file, options, message):
    with pytest.raises(ValueError, match=message):
        datasets.load_arrow(file, **options)


def test_damaged_files(file):
    whole = file.read_bytes()
    for damaged in (whole[:-20], whole[:9], b"", b"text,labels\n"):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match="cannot be read as Parquet, Feather or Arrow"):
            datasets.load_arrow(file)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        datasets.load_arrow(file)


def test_without_pyarrow(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r"pip install 'ldsm\[arrow\]'. Got .*rows"):
        datasets.load_arrow(file)


# -- data frames -------------------------------------------------------------------------------


class HuggingFace(dict):
    """Has columns and features as a data set of Hugging Face."""

    def __init__(self):
        super().__init__(COLUMNS)
        self.column_names = list(COLUMNS)
        class_label = SimpleNamespace(names=NAMES)
        self.features = {"text": None, "numbers": SimpleNamespace(feature=class_label)}


FRAMES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "pyarrow": table,
    "dict": lambda: COLUMNS,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames(kind):
    frame = FRAMES[kind]()
    data = datasets.load_frame(frame)
    assert list(data.texts) == ["so happy", "go away", "", "hm"] and data.labels == FOUND
    assert datasets.load_frame(frame, labels="joined", separator=";").labels == FOUND
    assert datasets.load_frame(frame, labels="numbers", label_names=NAMES).labels == FOUND
    assert datasets.load_frame(frame, labels="id").labels[0] == ["7"]
    with pytest.raises(ValueError, match="has no column 'tags', only 'text', 'labels'"):
        datasets.load_frame(frame, labels="tags")


def test_hugging_face_class_names():
    assert datasets.load_frame(HuggingFace(), labels="numbers").labels == FOUND


def test_values_of_pandas():
    frame = pd.DataFrame(
        {
            "text": pd.array(["a", "b", pd.NA, "d"], dtype="string"),
            "labels": [np.array([1, 2]), np.nan, 3.0, np.int64(4)],
        }
    )
    data = datasets.load_frame(frame)
    assert list(data.texts) == ["a", "b", "", "d"]
    assert data.labels == [["1", "2"], [], ["3"], ["4"]]


@pytest.mark.parametrize("label", [True, 1.5, "", b"joy", {"a": 1}, ["joy", None]])
def test_wrong_labels(label):
    frame = {"text": ["a", "b"], "labels": [["joy"], label if isinstance(label, list) else [label]]}
    with pytest.raises(ValueError, match="dict:2: labels must be strings or whole numbers. Got "):
        datasets.load_frame(frame)


def test_not_a_frame():
    with pytest.raises(ValueError, match="'frame' must have named columns.* Got list"):
        datasets.load_frame([["a", "b"]])


# -- commands ----------------------------------------------------------------------------------


def test_commands(tmp_path, capsys):
    run = within(capsys)
    words = ["happy smile", "hate rage", "scary dark"]
    rows = pa.table(
        {
            "comment": [f"{words[i % 3]} {i}" for i in range(60)],
            "emotion": [[i % 3] for i in range(60)],
            "nr": list(range(60)),
        }
    )
    path, model, names = tmp_path / "d.parquet", tmp_path / "m.ldsm", tmp_path / "names.txt"
    parquet.write_table(rows, path, row_group_size=7)
    names.write_text("\n".join(NAMES))
    fields = ["--text-field", "comment", "--label-field", "emotion", "--label-names", names]
    done = run("train", path, "-o", model, *fields, "--n-estimators", 2)
    assert done.code == 0 and "joy 20" in done.err
    assert sorted(load(model).classes_) == sorted(NAMES)
    found = run("evaluate", model, path, "--label-names", names, "--json").json
    assert found["precision@1"] > 0.9
    done = run("predict", model, path, "-k", 1, "--id-field", "nr", "-o", tmp_path / "out.csv")
    assert done.code == 0 and "59,fear" in (tmp_path / "out.csv").read_text()
    refused = run("predict", model, path, "-o", tmp_path / "out.parquet")
    assert refused.code == 2 and "would be a Parquet file" in refused.err
    assert run("convert", path, tmp_path / "store", *fields).code == 0
    held = ["--validation", 0.2, "--held-out", tmp_path / "kept.parquet"]
    assert run("train", path, "-o", tmp_path / "n.ldsm", *fields, *held).code == 2
