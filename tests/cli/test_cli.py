"""`ldsm` from outside: a process, its exit code, its streams, a terminal, a pipe, Ctrl-C."""

import fcntl
import json
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios

import pytest

import ldsm
from cli_runs import leftovers, process, within, write_data
from ldsm import datasets
from ldsm.cli.command import program
from ldsm.cli.demo import next_commands
from patience import PATIENCE, started, wait_until

COMMANDS = ["demo", "train", "predict", "evaluate", "inspect", "explain", "convert", "tune"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small data, and a model that the command line trained."""
    path = tmp_path_factory.mktemp("cli")
    write_data(path)
    options = ["-o", path / "notes.ldsm", "--n-estimators", 3, "--seed", 0]
    done = process("train", path / "notes.jsonl", *options, "--validation", 0.2)
    assert done.code == 0, done.err
    # In a pipe: plain lines, remarks on stderr, the report on stdout.
    assert "\x1b" not in done.out + done.err and "━" not in done.err
    assert "training on notes.jsonl: done in" in done.err
    assert done.lines[0] == "%\t@1\t@3\t@5" and done.lines[1].startswith("P\t")
    return path


@pytest.fixture
def large(tmp_path):
    """Data that takes minutes to train on, as the test asks for it."""
    datasets.save_xmlrepo(datasets.make_xmc(3000, 500, 100, seed=0), tmp_path / "large.txt")
    work = ["--n-estimators", "300", "--n-epochs", "200", "--n-jobs", "2"]
    work += ["-o", str(tmp_path / "m.ldsm")]
    return tmp_path, [str(tmp_path / "large.txt"), *work]


def in_terminal(*arguments, columns=90, until=None, then=None):
    """Run in a pseudo-terminal; when `until` has been shown, call `then` with the process."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    with started(
        [sys.executable, "-m", "ldsm", *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "TERM": "xterm-256color"},
    ) as child:
        os.close(theirs)
        shown = b""
        while select.select([ours], [], [], PATIENCE)[0]:
            try:
                chunk = os.read(ours, 1 << 16)
            except OSError:  # Linux reports a closed terminal so
                break
            if not chunk:
                break
            shown += chunk
            if until is not None and re.search(until, shown.decode(errors="replace")):
                until = None
                then(child)
        os.close(ours)
        return child.wait(PATIENCE), shown.decode()


def test_version_and_help(capsys):
    done = process("--version")
    assert (done.code, done.out.strip()) == (0, f"ldsm {ldsm.__version__}")
    run = within(capsys)
    shown = run("--help")
    assert shown.code == 0 and all(name in shown.out for name in COMMANDS)
    alone = run()
    assert (alone.code, alone.out) == (2, shown.out)
    for name in COMMANDS:
        assert run(name, "--help").code == 0


def test_text_through_pipes(folder):
    model = folder / "notes.ldsm"
    done = process("predict", model, "-k", 2, stdin="cod and herring\n\nbeef of the court\n")
    assert done.code == 0 and done.err == ""
    assert len(done.lines) == 3 and done.lines[0].startswith("fish ")


def test_quoted_text_sets(folder, capsys):
    text = "cod herring trawler"
    done = within(capsys)("predict", folder / "notes.ldsm", text, "--json", "--sets")
    assert json.loads(done.out)["labels"] == ["fish"]


def test_debug_traceback(folder):
    done = process("evaluate", folder / "notes.ldsm", folder / "notes.csv", "--debug")
    assert (done.code, done.out) == (1, "")
    assert "Traceback (most recent call last)" in done.err
    assert "notes.csv:1: has no column 'text', only " in done.err


def test_closed_pipe(folder):
    """`ldsm predict ... | head -1` ends without a message."""
    with (folder / "many.txt").open("w") as file:
        file.write("cod and herring\n" * 20_000)
    command = [sys.executable, "-m", "ldsm", "predict", folder / "notes.ldsm", folder / "many.txt"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout.readline().startswith(b"fish ")
        child.stdout.close()
        assert (child.stderr.read(), child.wait(PATIENCE)) == (b"", 1)


@pytest.mark.not_under("thread", reason="trains against the clock")
def test_progress_bar(folder, tmp_path):
    options = ["--n-estimators", 200, "--n-epochs", 15, "--seed", 0, "--validation", 0.2]
    code, shown = in_terminal("train", folder / "train.txt", "-o", tmp_path / "m", *options)
    assert code == 0 and (tmp_path / "m").exists()
    assert "━━━━" in shown and "100%" in shown
    assert re.search(r"\b[1-9]\d?%", shown), "no step between 0 and 100 %"
    assert re.search(r"\d:\d\d:\d\d", shown)
    assert "\x1b[" in shown and "nDCG" in shown and "60 held-out rows" in shown


@pytest.mark.not_under("thread", reason="ThreadSanitizer delivers signals late")
def test_ctrl_c_leaves_nothing_behind(large):
    folder, arguments = large

    def press(child):
        os.killpg(child.pid, signal.SIGINT)

    code, shown = in_terminal("train", *arguments, until=r"\b[1-9]\d?%", then=press)
    assert code == 130
    assert "interrupted; no incomplete files" in shown and "Traceback" not in shown
    assert {path.name for path in folder.iterdir()} == {"large.txt"}


def test_sigterm_cleans_up(tmp_path, folder):
    """SIGTERM while an output file is half written: stdin stays open, so the file does."""
    out = tmp_path / "out.txt"
    command = [sys.executable, "-m", "ldsm", "predict", folder / "notes.ldsm", "-", "-o", out]
    command += ["--batch-size", "1"]
    with started(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdin.write(b"cod\n")
        child.stdin.flush()
        wait_until(lambda: leftovers(tmp_path), "the file was never begun")
        child.send_signal(signal.SIGTERM)
        assert child.wait(PATIENCE) == 143
    assert not list(tmp_path.iterdir())


@pytest.mark.not_under("address", "thread", reason="trains for minutes there")
def test_demo(tmp_path, capsys):
    """Its numbers are as promised, and the commands it shows work unchanged."""
    file = tmp_path / "docs.ldsm"
    run = within(capsys)
    done = run("demo", "--json", "--save", file, "--trees", 10)
    assert done.code == 0, done.err
    popular, linear, trees = done.json["methods"]
    for k in (1, 3, 5):
        assert 0.1 < popular[f"precision@{k}"] < trees[f"precision@{k}"] < 1
        assert popular[f"precision@{k}"] < linear[f"precision@{k}"] < 1
    assert linear["train_seconds"] > 0 < trees["train_seconds"]
    assert done.json["documents"] + done.json["held_out"] > 3000
    date = done.json["questions"]["parse a date and time"]
    assert date["labels"][0] == "module:datetime"
    # What a model that was kept is good for: the commands that the demo shows.
    tried = 0
    for command in next_commands(file):
        *_, called = command.split("| ")  # what is piped comes as a text of its own
        words = shlex.split(called)[1:]
        if words[0] != "serve":
            assert run(*words, *(["sort a list"] if "|" in command else [])).code == 0, command
            tried += 1
    assert tried == 4


@pytest.mark.not_under("address", "thread", reason="trains for minutes there")
def test_demo_keeps_headings_in_a_pipe(capsys):
    done = within(capsys)("demo", "--trees", 1)
    assert done.code == 0
    heads = [line for line in done.lines if "\t" not in line]
    assert heads == ["", "Questions in plain English: which module?"]
    assert done.lines[0].startswith("on held-out docstrings, %\tP@1")


def test_hints_name_the_command_as_called(tmp_path, monkeypatch):
    folder = tmp_path / "a folder"
    folder.mkdir()
    for name in ("ldsm", "__main__.py"):
        (folder / name).write_text("")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    for called, shown in (
        (folder / "ldsm", f"'{folder}/ldsm'"),
        (folder / "__main__.py", f"{shlex.quote(sys.executable)} -m ldsm"),
        ("pytest", "ldsm"),
    ):
        monkeypatch.setattr(sys, "argv", [str(called)])
        assert program() == shown
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(sys, "argv", [str(folder / "ldsm")])
    assert program() == "ldsm"
