"""When a model's file changes, the next request is answered by the new one, if that is sound."""

import logging
import os
import shutil
from dataclasses import replace

import pytest

import ldsm
from ldsm import LdSMClassifier, TextTagger
from ldsm.serve import create_app
from ldsm.text.fitted import fitted_text
from patience import meanwhile, wait_until
from services import documents, running, service, small_tagger

TAGS = "/v1/projects/tags"
TEXT = "cod and herring quota, says a judge"


def scores(client):
    answer = client.form(f"{TAGS}/suggest", text=TEXT)
    assert answer.status == 200
    return [(one["uri"], one["score"]) for one in answer.json["results"]]


@pytest.fixture(scope="module")
def other():
    return small_tagger(seed=1)


def test_next_request_uses_new_model(own_model, tagger, other):
    with running(create_app([own_model])) as client:
        assert scores(client) == tagger.predict([TEXT], 10)[0]
        first = client.get(TAGS).json["modification_time"]
        for model in (other, tagger, other):
            model.save(own_model)
            assert client.get(TAGS).json["modification_time"] > first
            assert scores(client) == model.predict([TEXT], 10)[0]
        assert 'ldsm_reloads_total{model="tags"} 3.0' in client.get("/metrics").text


def damaged(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    return bytes(data)


def features_model(path):
    LdSMClassifier(n_estimators=1).fit([[0.0, 1.0], [1.0, 0.0]] * 5, [0, 1] * 5).save(path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda path: b"", "it is not a model file"),
        (lambda path: path.read_bytes()[:-100], "cut off|does not match|sizes|bytes"),
        (damaged, "its checksum does not match"),
        (features_model, "reads features"),
    ],
)
def test_broken_file_keeps_old_model(
    own_model, tagger, other, caplog, made, message, tmp_path_factory
):
    with running(create_app([own_model])) as client:
        copy = tmp_path_factory.mktemp("copy") / "tags.ldsm"
        copy.write_bytes(own_model.read_bytes())
        broken = own_model.with_suffix(".new")
        broken.write_bytes(made(copy))
        os.replace(broken, own_model)
        with caplog.at_level(logging.ERROR, "ldsm.serve"):
            for _ in range(3):
                assert scores(client) == tagger.predict([TEXT], 10)[0]
        errors = [r for r in caplog.records if r.name == "ldsm.serve"]
        assert len(errors) == 1 and "keeping the last good model" in errors[0].getMessage()
        problem = client.get(TAGS).json["problem"]
        assert any(part in problem for part in message.split("|")), problem
        other.save(own_model)
        assert scores(client) == other.predict([TEXT], 10)[0]
        assert client.get(TAGS).json["problem"] is None


def test_missing_file_keeps_model(own_model, tagger):
    with running(create_app([own_model])) as client:
        data = own_model.read_bytes()
        own_model.unlink()
        assert scores(client) == tagger.predict([TEXT], 10)[0]
        assert "cannot be read" in client.get(TAGS).json["problem"]
        own_model.write_bytes(data)
        assert scores(client) == tagger.predict([TEXT], 10)[0]
        assert client.get(TAGS).json["problem"] is None


def test_answers_stay_consistent_during_reload(own_model, tagger, other):
    """Requests under way finish on the model that they began with."""
    allowed = [model.predict([TEXT], 10)[0] for model in (tagger, other)]
    assert allowed[0] != allowed[1]
    wrong = []
    with running(create_app([own_model])) as client:

        def ask():
            if (found := scores(client)) not in allowed:
                wrong.append(found)

        with meanwhile(ask, 4):
            for i in range(20):
                (tagger, other)[i % 2].save(own_model)
    assert wrong == []


def save_large(tagger, path):
    """A model of 270 MB: the same trees over and over."""
    tagger.save(path)
    large = ldsm.load(path)
    classifier = fitted_text(large).classifier
    forest = classifier.model_.forest
    while forest.nbytes < 270_000_000:
        forest = forest.extended(forest)
    classifier.model_ = replace(classifier.model_, forest=forest)
    large.save(path)


def is_mapped(path):
    with open("/proc/self/maps") as maps:
        return any(line.rstrip().endswith(str(path)) for line in maps)


@pytest.mark.linux
def test_large_models_are_read_into_memory(own_model, tagger):
    """A process must not rely on a mapped file, which any program may cut off."""
    save_large(tagger, own_model)
    with running(create_app([own_model])):
        assert not is_mapped(own_model)
    own_model.unlink()


@pytest.mark.long
def test_large_model_is_overwritten_in_place_under_load(own_model, tagger, other, tmp_path):
    """By `cp`: every request is answered, by one model or the other."""
    paths = [tmp_path / "a", tmp_path / "b"]
    for model, path in zip((tagger, other), paths, strict=True):
        save_large(model, path)
    allowed = [ldsm.load(path).predict([TEXT], 10)[0] for path in paths]
    shutil.copyfile(paths[0], own_model)
    wrong = []
    with service(own_model, "--port", 0) as client:

        def ask():
            if (found := scores(client)) not in allowed:
                wrong.append(found)

        with meanwhile(ask, 4):
            for i in (1, 0, 1):
                shutil.copyfile(paths[i], own_model)
                wait_until(lambda i=i: scores(client) == allowed[i])
        assert client.process.poll() is None
    assert wrong == []


def test_model_file_is_overwritten_in_place(own_model, tagger, other):
    """As `cp` does it: until all is written, the last good model answers."""
    allowed = [model.predict([TEXT], 10)[0] for model in (tagger, other)]
    data = own_model.read_bytes()
    other.save(own_model.with_suffix(".new"))
    new = own_model.with_suffix(".new").read_bytes()
    with running(create_app([own_model])) as client:
        for content, answer in ((new, allowed[1]), (data, allowed[0])):
            last = scores(client)
            with open(own_model, "r+b") as file:
                file.truncate(0)
                assert scores(client) == last
                for start in range(0, len(content), len(content) // 5):
                    assert scores(client) == last
                    file.write(content[start : start + len(content) // 5])
                    file.flush()
            assert scores(client) == answer


def test_names_of_models(own_model, tmp_path):
    folder = tmp_path / "more"
    folder.mkdir()
    twice = folder / "tags.ldsm"
    twice.write_bytes(own_model.read_bytes())
    with pytest.raises(ValueError, match="different names. Got 'tags' twice"):
        create_app([own_model, twice])
    other = twice.rename(folder / "other tags.v2.ldsm")
    with running(create_app([own_model, other])) as client:
        names = [one["project_id"] for one in client.get("/v1/projects").json["projects"]]
        assert names == ["tags", "other tags.v2"]
        assert client.form("/v1/projects/other%20tags.v2/suggest", text="cod").status == 200
    with pytest.raises(FileNotFoundError):
        create_app([folder / "none.ldsm"])
    TextTagger().fit(*documents(20)).save(folder / "small.ldsm")
    features_model(folder / "features.ldsm")
    with pytest.raises(ValueError, match="models that read texts"):
        create_app([folder / "features.ldsm"])
