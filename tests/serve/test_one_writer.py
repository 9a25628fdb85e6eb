"""Two processes that change one model: every acknowledged row is learned exactly once.

Each row has a tag of its own, so the model's counts show how often it was learned.
"""

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

import ldsm
from cli_runs import within
from ldsm.serve import Settings, create_app
from services import running, service

TAGS = "/v1/projects/tags"


def send(client, tag):
    """Correct a text; the tag, once that is acknowledged."""
    body = [{"text": f"cod and herring {tag}", "subjects": [{"label": tag}, {"label": "fish"}]}]
    answer = client.post(f"{TAGS}/learn", body)
    assert answer.status == 204, answer.text
    return tag


def write_rows(path, tags):
    records = [{"text": f"beef and veal {tag}", "labels": [tag, "meat"]} for tag in tags]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return tags


def times_learned(path, tags):
    counts = ldsm.load(path).classifier_
    column = {label: i for i, label in enumerate(counts.classes_)}
    return {tag: int(counts.label_counts_[column[tag]]) if tag in column else 0 for tag in tags}


def test_separate_corrections(own_model, tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    sent = []
    for round_ in range(2):  # and again after a restart
        with ExitStack() as stack:
            clients = []
            for folder in folders:
                folder.mkdir(exist_ok=True)
                settings = Settings(learn=True, corrections=folder, save_every=0.05)
                clients.append(stack.enter_context(running(create_app([own_model], settings))))
            for i in range(4):
                sent += [send(client, f"{round_} {i} {n}") for n, client in enumerate(clients)]
        assert times_learned(own_model, sent) == dict.fromkeys(sent, 1)


def test_command_and_service(own_model, tmp_path, capsys):
    """The command replaces the model while corrections are learned that are not saved yet."""
    sent = []
    with running(create_app([own_model], Settings(learn=True))) as client:
        for i in range(3):
            sent.append(send(client, f"sent {i}"))
            sent += write_rows(tmp_path / "rows.jsonl", [f"row {i} {j}" for j in range(3)])
            done = within(capsys)("learn", own_model, tmp_path / "rows.jsonl", "--in-place")
            assert done.code == 0, done.err
    assert times_learned(own_model, sent) == dict.fromkeys(sent, 1)


class Learn:
    """`ldsm learn --in-place` with rows of its own."""

    def __init__(self, model, folder, name, stack):
        self.tags = write_rows(folder / f"{name}.jsonl", [f"{name} {i}" for i in range(5)])
        command = [sys.executable, "-m", "ldsm", "learn", model, folder / f"{name}.jsonl"]
        self.run = subprocess.Popen(
            [*command, "--in-place"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        stack.callback(self.run.stderr.close)
        stack.callback(self.run.wait)
        stack.callback(self.run.kill)

    def done(self):
        assert self.run.wait() == 0, self.run.stderr.read()
        return self.tags


class Serve:
    """`ldsm serve --learn` with corrections of its own, some of them before it is killed."""

    def __init__(self, model, folder, name, stack):
        self.arguments = (model, "--learn", "--corrections", folder, "--port", 0)
        self.name, self.stack = name, stack
        self.process = stack.enter_context(service(*self.arguments))

    def done(self):
        sent = [send(self.process, f"{self.name} {i}") for i in range(5)]
        if self.name.endswith(("3", "7")):
            self.process.stop(kill=True)
            self.process = self.stack.enter_context(service(*self.arguments))
            sent.append(send(self.process, f"{self.name} after"))
        _, errors = self.process.stop()
        assert errors == ""
        return sent


@pytest.mark.linux
@pytest.mark.long
@pytest.mark.parametrize("pair", [(Learn, Learn), (Serve, Learn), (Serve, Serve)])
def test_twenty_rounds(own_model, tmp_path, pair):
    folders = [tmp_path / "0", tmp_path / "1"]
    for folder in folders:
        folder.mkdir()
    sent: list[str] = []
    for round_ in range(20):
        with ExitStack() as stack:
            pending = [
                kind(Path(own_model), folder, f"{n} round {round_}", stack)
                for n, (kind, folder) in enumerate(zip(pair, folders, strict=True))
            ]
            sent += [tag for one in pending for tag in one.done()]
        assert times_learned(own_model, sent) == dict.fromkeys(sent, 1), round_
