"""Terminals that lack characters, labels that move the cursor, pipes that are closed."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

import patience
from cli_runs import within
from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm.cli.command import sentence
from ldsm.cli.screen import Screen

# Labels, and what people may see of them.
NASTY = ["red\x1b[31m", "bell\x07", "line\nfeed", "tab\tbed", "\u202edesrever", "été"]
SHOWN = ["red\\x1b[31m", "bell\\x07", "line\\nfeed", "tab\\tbed", "\\u202edesrever", "été"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Labels that fake colours, sounds, lines and columns."""
    folder = tmp_path_factory.mktemp("nasty")
    with open(folder / "d.jsonl", "w", encoding="utf-8") as file:
        for i in range(24):
            labels = [NASTY[i % 6], NASTY[(i + 1) % 6]]
            file.write(json.dumps({"text": f"word{i % 6} more{i % 3}", "labels": labels}) + "\n")
    data = datasets.load_jsonl(folder / "d.jsonl")
    TextTagger(LdSMClassifier(n_estimators=3, random_state=0)).fit(data).save(folder / "m.ldsm")
    return folder / "m.ldsm"


def odd_characters(text: str) -> set[str]:
    return {c for c in text if (ord(c) < 32 and c not in "\n\t") or 0x202A <= ord(c) <= 0x202E}


def test_labels_are_shown_escaped(model, capsys, tmp_path):
    (tmp_path / "texts.txt").write_text("word0 more0\nword3\n")
    run = within(capsys)
    lines = run("predict", model, tmp_path / "texts.txt", "-k", "6")
    assert lines.code == 0 and len(lines.lines) == 2
    for cell in (cell for line in lines.lines for cell in line.split("\t")):
        label, score = cell.rsplit(" ", 1)
        assert label in SHOWN and 0 <= float(score) <= 1
    for command in (["explain", model, "word0 more0"], ["inspect", model]):
        shown = run(*command)
        assert shown.code == 0 and not odd_characters(shown.out + shown.err)
    assert not odd_characters(lines.out)


def test_json_labels_are_raw(model, capsys):
    answer = within(capsys)("predict", model, "word0 more0", "-k", "6", "--json")
    assert set(json.loads(answer.out)["labels"]) <= set(NASTY)


@pytest.mark.parametrize(
    ("command", "environment"),
    [
        ("inspect", {"PYTHONIOENCODING": "latin-1"}),
        pytest.param("explain", {"PYTHONIOENCODING": "ascii:strict"}, marks=pytest.mark.long),
        ("explain", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
        pytest.param("inspect", {"LC_ALL": "C", "HOME": ""}, marks=pytest.mark.long),
    ],
)
def test_limited_encodings(model, command, environment):
    if "LC_ALL" in environment and not sys.prefix.isascii():
        pytest.skip("without UTF-8, Python itself cannot start in a folder of such a name")
    settings = {**os.environ, **environment}
    arguments = [command, str(model), *(["word5"] if command == "explain" else [])]
    run = patience.run([sys.executable, "-m", "ldsm", *arguments], env=settings, text=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("command", ["predict", pytest.param("explain", marks=pytest.mark.long)])
def test_closed_stdin(model, command):
    shell = f'"{sys.executable}" -m ldsm {command} "{model}" - <&-'
    run = patience.run(shell, shell=True)
    assert run.returncode in (1, 2)
    assert run.stderr.startswith("error: ") and run.stderr.count("\n") == 1


def test_pipe_as_manifest(tmp_path, capsys):
    os.mkfifo(tmp_path / "meta.json")
    run = within(capsys)("train", tmp_path, "-o", tmp_path.parent / "m.ldsm")
    assert run.code != 0 and "not a regular file" in run.err


def test_surrogate_in_data(tmp_path, capsys):
    path = tmp_path / "d.jsonl"
    path.write_text('{"text": "a", "labels": ["b"]}\n{"text": "a", "labels": ["x\\ud800"]}\n')
    run = within(capsys)("train", path, "-o", tmp_path / "m.ldsm")
    assert run.code == 1 and "d.jsonl:2: field 'labels' holds a lone surrogate" in run.err


def test_ctrl_c_during_imports(model):
    """At any moment after Python itself has started."""
    program = """if True:
        import builtins, ldsm.__main__
        found = builtins.__import__
        def noted(*arguments):  # the first import within main
            builtins.__import__ = found
            print("up", flush=True)
            return found(*arguments)
        builtins.__import__ = noted
        ldsm.__main__.main()
    """
    for wait in (0.0, 0.02, 0.1, 0.3):
        command = [sys.executable, "-c", program, "inspect", str(model)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with patience.started(command, text=True, **pipes) as run:
            assert run.stdout.readline() == "up\n"
            time.sleep(wait)
            run.send_signal(signal.SIGINT)
            _, said = run.communicate(timeout=patience.PATIENCE)
        assert run.returncode in (0, 130, -signal.SIGINT)
        assert "Traceback" not in said, said


@pytest.mark.linux
def test_full_disk_behind_stdout():
    with open("/dev/full", "w") as full:
        screen = Screen(out=Console(file=full))
        screen.line("fish")
        with pytest.raises(OSError) as caught:
            screen.flush()
        assert sentence(caught.value) == "'standard output': No space left on device."
        with pytest.raises(OSError):
            full.close()
