"""No command writes over what it reads, nor over a file of another kind."""

import hashlib
import os
from pathlib import Path

import pytest

from cli_runs import within, write_data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outputs")
    write_data(folder)
    return folder


@pytest.fixture
def run(capsys, folder, monkeypatch):
    monkeypatch.chdir(folder)
    return within(capsys)


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


TREES = ["--n-estimators", "1", "--rerank", "none"]
# A command without its output, its inputs, and what it writes.
COMMANDS = {
    "train texts": (["train", "notes.jsonl", *TREES, "-o"], ["notes.jsonl"], "a model"),
    "train rows": (
        ["train", "train.txt", "--label-names", "names.txt", *TREES, "-o"],
        ["train.txt", "names.txt"],
        "a model",
    ),
    "train with parameters": (
        ["train", "train.svm", "--params", "params.json", "-o"],
        ["train.svm", "params.json"],
        "a model",
    ),
    "predict": (
        ["predict", "m.ldsm", "notes.jsonl", "--only", "@list.txt", "-o"],
        ["m.ldsm", "notes.jsonl", "list.txt"],
        "predictions",
    ),
    "report": (
        ["report", "m.ldsm", "notes.jsonl", "-o"],
        ["m.ldsm", "notes.jsonl"],
        "a report",
    ),
    "tune": (
        ["tune", "train.txt", "--trials", "1", *TREES, "--storage", "trials.db", "-o"],
        ["train.txt", "trials.db"],
        "parameters",
    ),
    "storage": (["tune", "train.txt", "--trials", "1", "--storage"], ["train.txt"], "trials"),
    "convert": (["convert", "train.txt"], ["train.txt"], "data"),
    "demo": (["demo", "--save"], [], "a model"),
}


@pytest.fixture(scope="module", autouse=True)
def files(folder):
    (folder / "names.txt").write_text("".join(f"label {i}\n" for i in range(25)))
    (folder / "params.json").write_text('{"n_estimators": 1}')
    (folder / "list.txt").write_text("fish\nlaw\n")
    (folder / "trials.db").write_bytes(b"SQLite format 3\0" + b"not really")
    (folder / "thesis.doc").write_text("years of work")


@pytest.fixture(scope="module", autouse=True)
def model(folder, files):
    from ldsm.cli.main import _run

    made = [str(folder / "notes.jsonl"), "-o", str(folder / "m.ldsm"), *TREES, "-q"]
    assert _run(["train", *made]) == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_inputs_are_never_overwritten(run, folder, name):
    command, inputs, _ = COMMANDS[name]
    before = hashes(folder)
    for given in inputs:
        os.link(folder / given, folder / "other-name")  # the same file by another name
        for path in (given, f"./{given}", folder / given, "other-name"):
            for more in ([], ["--overwrite"]):
                done = run(*command, path, *more)
                assert done.code == 2 and "is an input of this command" in done.err, done
        os.unlink(folder / "other-name")
    assert hashes(folder) == before


@pytest.mark.parametrize("name", COMMANDS)
def test_foreign_files_are_not_overwritten(run, folder, name):
    command, _, kind = COMMANDS[name]
    before = hashes(folder)
    done = run(*command, "thesis.doc", *(["--to", "jsonl"] if name == "convert" else []))
    assert done.code == 2 and "thesis.doc exists" in done.err, done
    assert "use --overwrite to replace it" in done.err or kind == "trials"
    assert hashes(folder) == before


@pytest.mark.parametrize(
    "name", [name for name in COMMANDS if name not in ("tune", "storage", "demo")]
)
def test_own_kind_is_replaced(run, folder, tmp_path, name):
    pytest.importorskip("matplotlib")
    command, _, kind = COMMANDS[name]
    output = tmp_path / "out.svm"
    assert run(*command, output).code == 0
    again = run(*command, output)
    assert again.code == (2 if kind == "data" else 0), again
    output.write_text("years of work")
    assert run(*command, output).code == 2
    assert output.read_text() == "years of work"
    done = run(*command, output, "--overwrite")
    assert done.code == 0, done
    assert output.read_bytes() != b"years of work"
    output.write_text("")  # as `mktemp` makes them
    assert run(*command, output).code == 0


def test_store_is_not_converted_onto_itself(run, folder, tmp_path):
    assert run("convert", "train.txt", tmp_path / "store").code == 0
    before = hashes(tmp_path)
    done = run("convert", tmp_path / "store", tmp_path / "store", "--overwrite")
    assert done.code == 2 and "is an input of this command" in done.err
    assert hashes(tmp_path) == before
