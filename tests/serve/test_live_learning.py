"""`--learn`: corrections are learned in the order of their file, none is lost or learned twice."""

import os
import threading

import pytest

import ldsm
from ldsm._storage.container import write
from ldsm._storage.locks import locked
from ldsm.serve import Settings, create_app, learner
from ldsm.serve import service as service_module
from ldsm.serve.corrections import CorrectionFile
from ldsm.serve.learner import NOTE
from patience import PATIENCE, wait_until
from saved_states import tagger_state
from services import running, service, small_tagger

TAGS = "/v1/projects/tags"


def correct(client, text, *tags):
    body = [{"text": text, "subjects": [{"label": tag} for tag in tags]}]
    answer = client.post(f"{TAGS}/learn", body)
    assert answer.status == 204, answer.text


def labels(client):
    return {one["uri"] for one in client.get(f"{TAGS}/labels").json["labels"]}


def learned(path):
    training = ldsm.load(path).classifier_.training_
    return sum(entry.get("learned", 0) for entry in training.get("history", []))


def settled(condition):
    return bool(wait_until(condition))


def test_correction_learned_before_reply(own_model):
    with running(create_app([own_model], Settings(learn=True))) as client:
        assert client.get(TAGS).json["learns"] is True
        for i in range(3):
            correct(client, f"a yacht race in the harbour {i}", "sport", "fish")
            assert client.get(TAGS).json["n_training_rows"] == 601 + i
        assert "sport" in labels(client)
        assert learned(own_model) == 0  # not saved yet
    # The end of the service saves it.
    assert learned(own_model) == 3
    size = own_model.with_name("tags.corrections.jsonl").stat().st_size
    assert ldsm.load(own_model).classifier_.training_[NOTE][0]["bytes"] == size
    # The next one does not learn them again.
    with running(create_app([own_model], Settings(learn=True))) as client:
        correct(client, "another yacht race", "sport")
    assert learned(own_model) == 4


def test_periodic_saves(own_model):
    with running(create_app([own_model], Settings(learn=True, save_every=0.2))) as client:
        correct(client, "a yacht race", "sport")
        assert settled(lambda: learned(own_model) == 1)
        assert "sport" in labels(client)


@pytest.mark.linux
def test_corrections_relearned_after_kill(own_model):
    with service(own_model, "--learn", "--port", 0) as process:
        correct(process, "a yacht race", "sport")
        correct(process, "a chess game", "games")
        process.stop(kill=True)
    assert learned(own_model) == 0
    with running(create_app([own_model], Settings(learn=True))) as client:
        assert settled(lambda: client.get(TAGS).json["n_training_rows"] == 602)
        assert {"sport", "games"} <= labels(client)
    assert learned(own_model) == 2


def test_replaced_model_relearns_corrections(own_model, tagger):
    """After any replacement of the file, the corrections that it does not know are learned."""
    with running(create_app([own_model], Settings(learn=True, save_every=0.1))) as client:
        correct(client, "a yacht race", "sport")
        assert settled(lambda: learned(own_model) == 1)
        tagger.save(own_model)  # trained without the correction
        assert learned(own_model) in (0, 1)
        assert settled(lambda: learned(own_model) == 1)
        assert "sport" in labels(client)


@pytest.mark.long
def test_single_learning_process(own_model):
    with service(own_model, "--learn", "--workers", 2, "--port", 0) as process:
        for i in range(6):
            correct(process, f"a yacht race {i}", "sport")
        _, errors = process.stop()
    assert errors == ""
    assert learned(own_model) == 6


def of_an_earlier_version(tagger, path):
    header, arrays = tagger_state(tagger)
    del arrays["second_stage.masses"]
    write(path, {"kind": "TextTagger", **header}, arrays)


def test_unlearnable_model_refused(own_model, tagger, tmp_path, caplog, monkeypatch):
    # A caller that waited for it to learn would wait for ever.
    monkeypatch.setattr(service_module, "LEARN_WAIT", 10 * PATIENCE)
    old = tmp_path / "old.ldsm"
    of_an_earlier_version(tagger, old)
    with pytest.raises(ValueError, match="saved by an older ldsm"):
        create_app([old], Settings(learn=True))
    # In place of another one, it answers, and corrections are kept.
    patient = Settings(learn=True, timeout=20 * PATIENCE)
    with running(create_app([own_model], patient)) as client:
        old.replace(own_model)
        assert settled(lambda: "older ldsm" in caplog.text)
        correct(client, "a yacht race", "sport")
        assert client.get(TAGS).json["learns"] is False
        assert "fish" in labels(client) and "sport" not in labels(client)
        tagger.save(own_model)
        assert settled(lambda: "sport" in labels(client))
        assert client.get(TAGS).json["learns"] is True


def test_save_keeps_foreign_model(own_model, tmp_path, monkeypatch):
    """It is moved into place between the beginning and the end of a save."""
    other = tmp_path / "other"
    small_tagger(seed=3).save(other)
    plain_save = ldsm.TextTagger.save

    def interrupted_save(self, path):
        if other.exists():
            os.replace(other, own_model)
        plain_save(self, path)

    with running(create_app([own_model], Settings(learn=True, save_every=0.05))) as client:
        monkeypatch.setattr(ldsm.TextTagger, "save", interrupted_save)
        correct(client, "a yacht race", "sport")
        assert settled(lambda: not other.exists() and learned(own_model) == 1)
    # It was the other one that has learned it.
    again = small_tagger(seed=3).partial_fit(["a yacht race"], [["sport"]])
    assert ldsm.load(own_model).fingerprint_ == again.fingerprint_
    assert [path.name for path in own_model.parent.glob(".*")] == []


def test_link_to_model_stays_a_link(own_model, tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    link = folder / "tags.ldsm"
    link.symlink_to(own_model)
    with running(create_app([link], Settings(learn=True))) as client:
        correct(client, "a yacht race", "sport")
    assert link.is_symlink() and learned(own_model) == 1
    assert sorted(os.listdir(folder)) == ["tags.corrections.jsonl", "tags.ldsm"]


def test_failed_corrections_not_counted(own_model, caplog, monkeypatch):
    plain = ldsm.TextTagger.partial_fit

    def picky(self, documents):
        if any(text == "bad" for text, _ in documents):
            raise ValueError("no good")
        return plain(self, documents)

    monkeypatch.setattr(ldsm.TextTagger, "partial_fit", picky)
    file = CorrectionFile(own_model.with_name("tags.corrections.jsonl"))
    file.append([("a yacht race", ["sport"]), ("bad", ["sport"]), ("a chess game", ["games"])])
    with running(create_app([own_model], Settings(learn=True))):
        assert settled(lambda: "corrections learned" in caplog.text)
    logged = [record.getMessage() for record in caplog.records if record.name == "ldsm.serve"]
    assert "tags: cannot learn a correction. no good" in logged
    assert "tags: 2 corrections learned" in logged
    assert learned(own_model) == 2


def test_shutdown_does_not_wait_forever(own_model, monkeypatch, caplog):
    """What was not saved is learned at the next start."""
    monkeypatch.setattr(learner, "_PATIENCE", 0.1)
    with locked(own_model), running(create_app([own_model], Settings(learn=True))) as client:
        correct(client, "a yacht race", "sport")
    assert learned(own_model) == 0
    assert "is being changed by another process" in caplog.text
    with running(create_app([own_model], Settings(learn=True))) as client:
        assert settled(lambda: "sport" in labels(client))
    assert learned(own_model) == 1


def test_invalid_correction_lines_skipped(own_model, caplog):
    file = own_model.with_name("tags.corrections.jsonl")
    file.write_text('nonsense\n\n{"text": "a yacht race", "labels": ["sport"]}\n')
    with running(create_app([own_model], Settings(learn=True))) as client:
        assert settled(lambda: "sport" in labels(client))
        correct(client, "a chess game", "games")
        assert {"sport", "games"} <= labels(client)
    assert (
        "line 1 is not a correction" in caplog.text and "line 2 is not a correction" in caplog.text
    )


def test_slow_learning_still_acknowledges(own_model, monkeypatch):
    """After a timeout, a client would send it again."""
    plain, acknowledged = ldsm.TextTagger.partial_fit, threading.Event()

    def slow(self, *arguments):
        assert acknowledged.wait(PATIENCE)
        return plain(self, *arguments)

    monkeypatch.setattr(ldsm.TextTagger, "partial_fit", slow)
    with running(create_app([own_model], Settings(learn=True, timeout=4))) as client:
        try:
            correct(client, "a yacht race", "sport")
        finally:
            acknowledged.set()
    assert learned(own_model) == 1


@pytest.mark.parametrize("text", ["cod", "?!"])
def test_corrections_without_known_words(own_model, text):
    with running(create_app([own_model], Settings(learn=True))) as client:
        correct(client, text, "fish")
        assert settled(lambda: client.get(TAGS).json["n_training_rows"] == 601)
