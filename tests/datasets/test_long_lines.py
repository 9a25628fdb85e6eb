"""Lines, rows and items that are too long, and compressed files that unpack to far too much."""

import bz2
import gzip
import json
import os
import re
import threading
from pathlib import Path

import pytest

from cli_runs import within
from ldsm import datasets
from ldsm._storage.text_files import MAX_LINE_LENGTH, MOST_TIMES

N = MAX_LINE_LENGTH
READERS = {
    "csv": datasets.load_table,
    "jsonl": datasets.load_jsonl,
    "json": datasets.load_jsonl,
    "svm": datasets.load_svmlight,
    "txt": datasets.load_xmlrepo,
}
# A file by its suffix: {} stands for the text that is too long, or fits.
FILES = {
    "csv": ("text,labels\ncod,fish\n{},fish\n", 3, 2, "a line of more than"),
    "quoted.csv": ('text,labels\ncod,fish\n"a\n{}\n",fish\n', 3, 2, "a row of more than"),
    "jsonl": (
        '{{"text": "cod", "labels": []}}\n{{"text": "{}", "labels": []}}\n',
        2,
        2,
        "a line of",
    ),
    "json": (
        '[{{"text": "cod", "labels": []}},\n\n{{"text": "{}", "labels": []}}]',
        3,
        2,
        "an item",
    ),
    "svm": ("1 1:1\n1 2:1\n1 2:1 # {}\n1 3:1\n", 3, 4, "a line of more than"),
}


def write(folder: Path, suffix: str, text: str) -> Path:
    path = folder / f"data.{suffix}"
    path.write_text(text)
    return path


@pytest.mark.parametrize("suffix", FILES)
def test_long_lines_are_refused_unless_allowed(tmp_path: Path, suffix: str) -> None:
    text, line, n_rows, problem = FILES[suffix]
    n = N - (suffix == "quoted.csv")  # where no line is too long, but all of them together are
    path, load = write(tmp_path, suffix, text.format("x" * n)), READERS[suffix.split(".")[-1]]
    with pytest.raises(
        ValueError, match=rf"data\.{re.escape(suffix)}:{line}: .*{problem}"
    ) as error:
        load(path)
    assert "max_line_length= allows more" in str(error.value) and len(str(error.value)) < 400
    assert len(load(path, max_line_length=N + 100)) == n_rows


def test_error_line_within_block(tmp_path: Path) -> None:
    path = write(tmp_path, "txt", "4 9 2\n0 1:1\n0 1:1\n" + "0 1:1" + " " * 90 + "\n0 1:1\n")
    assert len(datasets.load_xmlrepo(path)) == 4
    with pytest.raises(ValueError, match=r"data\.txt:4: a line of more than 50 characters"):
        datasets.load_xmlrepo(path, max_line_length=50)
    with pytest.raises(ValueError, match=r"data\.txt:4: a line of more than 50 characters"):
        list(datasets.iter_xmlrepo(path, max_line_length=50, block_bytes=16))
    assert len(datasets.load_xmlrepo(path, max_line_length=95)) == 4


def test_other_encodings_have_the_same_limit(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(("text,labels\n" + "ä" * 70_000 + ",fish\n").encode("utf-16"))
    assert len(datasets.load_table(path, encoding="utf-16").texts[0]) == 70_000
    with pytest.raises(ValueError, match=r"data\.csv:2: a line of more than 70,000 characters"):
        datasets.load_table(path, encoding="utf-16", max_line_length=70_000)


@pytest.mark.parametrize("extra", [0, 1, 2, 3])
def test_characters_across_chunks(tmp_path: Path, extra: int) -> None:
    text = "x" * extra + "🐟" * 50_000
    path = write(tmp_path, "csv", f"text,labels\n{text},fish\n")
    assert datasets.load_table(path).texts == [text]
    path.write_bytes(path.read_bytes()[:-8])  # in the middle of a character
    with pytest.raises(ValueError, match=r"data\.csv:2: is not UTF-8: unexpected end of data"):
        datasets.load_table(path)


def test_arrays_are_read_item_by_item(tmp_path: Path) -> None:
    records = [
        {"text": 'cod \\" [{ ' + "é" * (37 * i % 5000), "labels": [str(i)]} for i in range(200)
    ]
    for indent in (None, 2):
        path = write(tmp_path, "json", "\n\n " + json.dumps(records, indent=indent) + " \n")
        assert path.stat().st_size > 200_000
        found = list(datasets.iter_jsonl(path, max_line_length=40_000))
        assert found == [(record["text"], record["labels"]) for record in records]
        with pytest.raises(ValueError, match="an item of more than 20,000 characters"):
            list(datasets.iter_jsonl(path, max_line_length=20_000))


def test_error_line_in_long_array(tmp_path: Path) -> None:
    rest = ', {"text": "cod", "labels": []}' * 10_000
    path = write(tmp_path, "json", '[\n{"text": "cod", "labels": []},\n{"text": cod}' + rest + "]")
    with pytest.raises(ValueError, match=r"data\.json:3: is not a JSON array: Expecting value"):
        datasets.load_jsonl(path)


BLANK = (b" " * 999 + b"\n") * 8192
BOMBS = {
    "csv": b"text,labels\n" + BLANK.replace(b" \n", b",\n"),
    "jsonl": b'{"text": "cod", "labels": []}\n' + BLANK,
    "json": b'[{"text": "cod", "labels": []}\n' + BLANK,
    "svm": b"1 1:1\n" + BLANK,
    "txt": b"8193 9 2\n0 1:1\n" + BLANK,
}


@pytest.mark.parametrize("packer", [gzip, bz2], ids=["gz", "bz2"])
@pytest.mark.parametrize("suffix", BOMBS)
def test_decompression_bombs_refused(tmp_path: Path, suffix: str, packer) -> None:
    path = tmp_path / f"data.{suffix}.{'gz' if packer is gzip else 'bz2'}"
    path.write_bytes(packer.compress(BOMBS[suffix]))
    problem = f"unpacks to more than {MOST_TIMES} times its size; if that is right, unpack it first"
    with pytest.raises(ValueError, match=rf"{re.escape(path.name)}:\d+: the file {problem}"):
        READERS[suffix](path)


def test_compressible_text_is_read(tmp_path: Path) -> None:
    path = tmp_path / "data.csv.bz2"
    text = "text,labels\n" + "".join(f"cod herring {i},fish\n" for i in range(100_000))
    path.write_bytes(bz2.compress(text.encode()))
    assert path.stat().st_size < len(text) / 10
    assert sum(1 for _ in datasets.iter_table(path)) == 100_000


def test_compressed_pipes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl.gz"
    os.mkfifo(path)
    packed = gzip.compress(b'{"text": "cod", "labels": []}\n')
    writer = threading.Thread(target=lambda: path.write_bytes(packed), daemon=True)
    writer.start()
    assert datasets.load_jsonl(path).texts == ["cod"]
    writer.join(60)
    assert not writer.is_alive()


def test_command_raises_line_limit(tmp_path: Path, capsys) -> None:
    run = within(capsys)
    path, out = write(tmp_path, "svm", FILES["svm"][0].format("x" * N)), tmp_path / "rows"
    refused = run("convert", path, out, "--to", "store")
    assert refused.code == 1 and "--max-line-length allows more" in refused.err
    assert run("convert", path, out, "--to", "store", "--max-line-length", N + 100).code == 0
    assert len(datasets.open_store(out)) == 4
    assert run("convert", path, out, "--to", "store", "--max-line-length", 0).code == 2
