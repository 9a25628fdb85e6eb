"""Damaged and swollen Parquet, Feather and Arrow files: one clear error each, and little memory."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet

from ldsm import datasets
from ldsm.datasets.documents.arrow import value_sizes

MB = 1 << 20


def write(rows: Any, path: Any, kind: str) -> bytes:
    if kind == "parquet":
        parquet.write_table(rows, path, compression="zstd")
    elif kind == "stream":
        with pa.OSFile(str(path), "wb") as file, ipc.new_stream(file, rows.schema) as stream:
            stream.write_table(rows)
    else:
        feather.write_feather(rows, path, compression=kind)
    return path.read_bytes()


def repeated(text: str, n_rows: int) -> Any:
    indices = pa.array(np.zeros(n_rows, np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array([text]))


@pytest.mark.parametrize("kind", ["parquet", "stream", "lz4", "uncompressed"])
def test_damaged_bytes(tmp_path, kind) -> None:
    texts = [f"text {i} pêche" for i in range(20)]
    rows = pa.table({"text": texts, "labels": [["a", "bc"][: i % 3] for i in range(20)]})
    path = tmp_path / "rows.feather"
    data, rng, n_refused = write(rows, path, kind), np.random.default_rng(0), 0
    for _ in range(300):
        damaged = bytearray(data)
        for at in rng.integers(len(data) - 4, size=rng.integers(1, 4)) & ~3:
            damaged[at : at + 4] = (rng.bytes(4), b"\xff\xff\xff\x7f", b"\0\0\0\0")[rng.integers(3)]
        path.write_bytes(damaged)
        try:
            datasets.load_arrow(path)
        except ValueError as error:
            n_refused += 1
            assert "rows.feather" in str(error) and "\n" not in str(error)
    assert n_refused > 200


SWOLLEN = {
    "one long text": {"text": ["a" * (70 * MB)], "labels": [["a"]]},
    "many long texts": {"text": repeated("ab " * MB, 5000), "labels": [["a"]] * 5000},
    "many labels": {"text": ["x"], "labels": [["a"] * (5 * MB)]},
    "many rows": {"text": repeated("", 5 * MB), "labels": repeated("a", 5 * MB)},
}


@pytest.mark.parametrize("name", SWOLLEN)
def test_swollen_parquet(tmp_path, name) -> None:
    path = tmp_path / "rows.parquet"
    assert len(write(pa.table(SWOLLEN[name]), path, "parquet")) < MB
    before = pa.total_allocated_bytes()
    with pytest.raises(ValueError, match=r"rows\.parquet: the file unpacks to more than 200 times"):
        datasets.load_arrow(path)
    assert pa.total_allocated_bytes() - before < 10 * MB


def test_swollen_feather(tmp_path) -> None:
    rows = pa.table(SWOLLEN["many long texts"])
    write(rows, tmp_path / "rows.feather", "zstd")
    with pytest.raises(ValueError, match=r"rows\.feather: the file unpacks to more than 200 times"):
        datasets.load_arrow(tmp_path / "rows.feather")


@pytest.mark.parametrize("column", ["text", "labels"])
@pytest.mark.parametrize("kind", ["parquet", "lz4"])
def test_long_values(tmp_path, kind, column) -> None:
    path = tmp_path / "rows.parquet"
    long = {"text": "é" * (2 * MB + 1), "labels": ["é" * MB] * 2 + ["e"]}
    rows = [{"text": "a", "labels": ["a"]}, {"text": "b", "labels": None}]
    rows[1][column] = long[column]
    write(pa.Table.from_pylist(rows), path, kind)
    with pytest.raises(ValueError, match=r"rows\.parquet:2: .* than 4,194,304 bytes; max_line_"):
        datasets.load_arrow(path)
    data = datasets.load_dataset(path, max_line_length=5 * MB)
    assert data.texts[1] == rows[1]["text"] and data.labels[1] == sorted(
        set(rows[1]["labels"] or [])
    )


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["abc", None, "é", ""]),
        pa.array(["abc", None, "é", ""], pa.large_string()),
        pa.array(["abc", None, "é", ""], pa.string_view()),
        pa.array(["abc", None, "é", ""]).dictionary_encode(),
        pa.array([["a"], None, ["b"], []]),
        pa.array([["a"], None, ["b"], []], pa.large_list(pa.string_view())),
        pa.DictionaryArray.from_arrays(
            pa.array([0, None, 1, 2], pa.int8()), ["abc", "é", ""] + ["x"] * 125
        ),
    ],
    ids=lambda array: str(array.type),
)
def test_sizes_of_values(array) -> None:
    expected = [2, 0, 2, 0] if "list" in str(array.type) else [3, 0, 2, 0]
    assert value_sizes(array).tolist() == expected
    assert value_sizes(array[1:3]).tolist() == expected[1:3]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([["a"], ["b"]], pa.list_view(pa.string())),
        pa.array([["a"], ["b"]], pa.list_(pa.string(), 1)),
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array(["a", "b"])),
        pa.array([{"a": 1}, {"a": 2}]),
    ],
)
def test_types_without_a_known_size(tmp_path, array) -> None:
    path = tmp_path / "rows.arrow"
    table = pa.table({"text": ["x", "y"], "labels": array})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write(table)
    with pytest.raises(
        ValueError, match=r"rows\.arrow:1: values of the Arrow type .* cannot be read"
    ):
        datasets.load_arrow(path)


def test_repeated_values_are_read(tmp_path) -> None:
    path = tmp_path / "rows.parquet"
    rows = {"text": repeated("cod quota", 3000), "labels": [["fish"], ["fish", "law"], None] * 1000}
    write(pa.table(rows), path, "parquet")
    data = datasets.load_arrow(path)
    assert set(data.texts) == {"cod quota"} and data.labels[:3] == [["fish"], ["fish", "law"], []]
