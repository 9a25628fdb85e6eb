"""Corrections are on the disk before they are acknowledged, and `ldsm learn` reads them."""

import fcntl
import json
import os
import re
import threading
import time

import pytest

import ldsm
from cli_runs import within
from full_disk import no_file_beyond
from ldsm.serve import Settings, create_app
from ldsm.serve.corrections import CorrectionFile, CorrectionReader
from services import SCRIPT, running

LEARN = "/v1/projects/tags/learn"


def correction(text="cod is caught", *tags):
    return {"text": text, "subjects": [{"label": tag} for tag in tags or ["fish"]]}


def test_corrections_learned_by_command(own_model, capsys):
    file = own_model.with_name("tags.corrections.jsonl")
    with running(create_app([own_model])) as client:
        answer = client.post(LEARN, [correction("a yacht race", "sport", "fish"), correction()])
        assert answer.status == 204 and answer.body == b""
        assert client.post(LEARN, []).status == 204
        records = [json.loads(line) for line in file.read_text().splitlines()]
        assert [(one["text"], one["labels"]) for one in records] == [
            ("a yacht race", ["sport", "fish"]),
            ("cod is caught", ["fish"]),
        ]
        assert os.stat(file).st_mode & 0o777 == 0o600
        run = within(capsys)("learn", own_model, file, "--in-place")
        assert run.code == 0, run.err
        assert "sport" in ldsm.load(own_model).classes_
        found = client.get("/v1/projects/tags/labels", search="sport").json
        assert found["total"] == 1


@pytest.mark.parametrize("tag", ["<5 years", "a > b", "na\u200cme", "soft\xadhyphen", SCRIPT])
def test_tags_are_kept_as_they_are(own_model, tag):
    with running(create_app([own_model])) as client:
        for subject in ({"uri": tag}, {"label": tag}, {"uri": "<http://a.org/1>"}):
            assert client.post(LEARN, [{"text": "cod", "subjects": [subject]}]).status == 204
    kept = everything(CorrectionFile(own_model.with_name("tags.corrections.jsonl")))
    assert [tags for _, tags in kept] == [[tag], [tag], ["http://a.org/1"]]


def test_corrections_folder(own_model, tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    with running(create_app([own_model], Settings(corrections=folder))) as client:
        assert client.post(LEARN, [correction()]).status == 204
    assert [path.name for path in folder.iterdir()] == ["tags.corrections.jsonl"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([correction("  ")], "The text of a correction must not be empty."),
        ([{"text": "cod", "subjects": []}], "A correction must have at least one tag."),
        ([correction("cod", " ")], "A new tag must have 1 to 1,000 characters"),
        ([correction("cod", "a\nb")], "A new tag must have 1 to 1,000 characters"),
        ([correction("cod", "x" * 1001)], "A new tag must have 1 to 1,000 characters"),
        ([correction("cod \ud800")], "Text and tags must be valid Unicode."),
        (
            [{"text": "cod", "subjects": [{"label": f"t{i}"} for i in range(1001)]}],
            "A correction may have at most 1,000 tags. Got 1,001.",
        ),
    ],
)
def test_invalid_corrections_not_kept(own_model, body, message):
    with running(create_app([own_model])) as client:
        answer = client.post(LEARN, [correction(), *body])
        assert answer.status == 400 and answer.json["title"].startswith(message)
        assert client.post("/v1/projects/others/learn", [correction()]).status == 404
        assert client.post(LEARN, {"text": "cod"}).status == 422
        # A form of another web site cannot send JSON, and nothing else is taken.
        body = json.dumps([correction()])
        assert client.ask("POST", LEARN, body, content_type="text/plain").status == 415
        kind = "application/x-www-form-urlencoded"
        assert client.ask("POST", LEARN, body, content_type=kind).status == 415
        answer = client.post(LEARN, [correction()] * 257)
        assert answer.status == 400 and "at most 256 texts" in answer.json["title"]
    assert not own_model.with_name("tags.corrections.jsonl").exists()


def test_broken_last_line_is_kept_aside(tmp_path, caplog):
    """It was never acknowledged; left behind, it would make the file unreadable."""
    file, aside = CorrectionFile(tmp_path / "c.jsonl"), tmp_path / "c.broken"
    file.append([("one", ["a"])])
    broken = '{"text": "tw' + "x" * 10_000
    with open(file.path, "a") as out:
        out.write(broken)
    reader = CorrectionReader(file.path)
    assert reader.read() == [("one", ["a"])]
    file.append([("three", ["b"])])
    assert reader.read() == [("three", ["b"])]
    assert everything(file) == [("one", ["a"]), ("three", ["b"])]
    assert aside.read_text() == broken + "\n"
    assert "c.jsonl: the last line (10012 bytes) is incomplete or invalid" in caplog.text
    assert "moved to c.broken" in caplog.text
    assert os.stat(aside).st_mode & 0o777 == 0o600
    # Of another form, without a line end, and nothing else in the file.
    other = '{"text": "by hand", "labels": "a;b"}'
    file.path.write_text(other)
    file.append([("four", ["c"])])
    assert everything(file) == [("four", ["c"])]
    assert aside.read_text() == f"{broken}\n{other}\n"


def test_broken_line_stays(tmp_path):
    file = CorrectionFile(tmp_path / "c.jsonl")
    file.path.write_text("nonsense")
    (tmp_path / "c.broken").mkdir()
    with pytest.raises(OSError):
        file.append([("one", ["a"])])
    assert file.path.read_text() == "nonsense"


def planted(path, kind, victim):
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "hard link":
        os.link(victim, path)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()


KINDS = ["link", "hard link", "pipe", "folder"]


@pytest.mark.parametrize("learn", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_foreign_files_are_not_written(own_model, tagger, kind, learn, caplog):
    """A link to the model would spoil the model; a pipe would never end."""
    file = own_model.with_name("tags.corrections.jsonl")
    before = own_model.read_bytes()
    with running(create_app([own_model], Settings(learn=learn))) as client:
        planted(file, kind, own_model)
        answer = client.post(LEARN, [correction()])
        assert answer.status == 507 and "need a regular file" in answer.json["title"]
        assert own_model.parent.name not in answer.text
        assert own_model.read_bytes() == before
        assert client.form("/v1/projects/tags/suggest", text="cod").status == 200
    assert own_model.read_bytes() == before
    # The next start is refused.
    with pytest.raises(OSError, match="Corrections need a regular file") as caught:
        create_app([own_model], Settings(learn=learn))
    assert str(caught.value.filename) == str(file)


def test_foreign_line_stays(tmp_path, caplog):
    file = CorrectionFile(tmp_path / "c.jsonl")
    file.path.write_text('{"text": "by hand", "labels": ["a"]}')  # without a line end
    file.append([("one", ["b"])])
    assert everything(file) == [("by hand", ["a"]), ("one", ["b"])]
    with open(file.path, "a") as out:
        out.write('\n{"text": 7, "labels": []}\nnonsense\n')
    file.append([("two", ["c"])])
    assert [text for text, _ in everything(file)] == ["by hand", "one", "two"]
    logged = [record.getMessage() for record in caplog.records]
    assert [re.search(r"line \d", line)[0] for line in logged] == ["line 3", "line 4", "line 5"]


def everything(file):
    return CorrectionReader(file.path).read()


def test_reading_resumes(tmp_path):
    """By a note of how far it was read, if the file still begins in the same way."""
    file = CorrectionFile(tmp_path / "c.jsonl")
    reader = CorrectionReader(file.path)
    assert reader.read() == [] and reader.notes == []
    file.append([("one", ["a"]), ("two", ["a"])])
    assert len(reader.read()) == 2
    notes = reader.notes
    file.append([("three", ["b"])])
    for _ in range(2):
        again = CorrectionReader(file.path)
        again.go_to(notes)
        assert again.read() == reader.read() or again.end == reader.end
    # Another file in its place, of the same length or another one, is read from its beginning.
    for texts in (["uno", "dos"], ["a much longer one"] * 5, ["x"]):
        file.path.unlink()
        file.append([(text, ["c"]) for text in texts])
        again = CorrectionReader(file.path)
        again.go_to(notes)
        assert [text for text, _ in again.read()] == texts
        assert [text for text, _ in reader.read()] == texts
    for broken in (None, 7, {}, {"bytes": -1}, {"bytes": 10**9, "sha256": ""}, {"bytes": "3"}):
        again.go_to(broken)
        assert len(again.read()) == 1


def test_append_survives_file_rotation(tmp_path):
    file = CorrectionFile(tmp_path / "c.jsonl")
    file.append([("one", ["a"])])
    with open(file.path) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        writer = threading.Thread(target=file.append, args=([("two", ["b"])],))
        writer.start()
        time.sleep(0.1)
        file.path.rename(tmp_path / "moved.jsonl")
    writer.join()
    assert everything(file) == [("two", ["b"])]
    assert everything(CorrectionFile(tmp_path / "moved.jsonl")) == [("one", ["a"])]


def test_several_append_to_one_file(tmp_path):
    """Each reopens it, as a separate process would."""
    path = tmp_path / "c.jsonl"

    def append(number):
        file = CorrectionFile(path)
        for i in range(50):
            file.append([(f"{number} {i}", [f"tag {number}"])])

    threads = [threading.Thread(target=append, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts = [text for text, _ in everything(CorrectionFile(path))]
    for number in range(4):
        own = [text for text in texts if text.startswith(f"{number} ")]
        assert own == [f"{number} {i}" for i in range(50)]
    assert len(texts) == 200


def test_full_disk_keeps_no_correction(own_model):
    file = own_model.with_name("tags.corrections.jsonl")
    with running(create_app([own_model])) as client:
        assert client.post(LEARN, [correction()]).status == 204
        before = file.read_bytes()
        with no_file_beyond(len(before) + 100):
            answer = client.post(LEARN, [correction("cod " * 1000)])
        assert answer.status == 507
        assert answer.json["title"] == "The correction was not saved: File too large."
        assert file.read_bytes() == before
        assert client.post(LEARN, [correction()]).status == 204
    assert len(file.read_text().splitlines()) == 2
