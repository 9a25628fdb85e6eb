"""A service whose model needs an encoder."""

import re

import pytest

from ldsm import LdSMClassifier, TextTagger
from ldsm.serve import create_app
from ldsm.serve.models import Models
from ldsm.serve.settings import Settings
from services import running
from tiny_encoders import texts_and_tags, write_meanings

NEW, NEW_TAGS = texts_and_tags(40, seed=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    write_meanings(folder / "tiny")
    tagger = TextTagger(LdSMClassifier(4), encoder=folder / "tiny")
    tagger.fit(*texts_and_tags(900)).save(folder / "tags.ldsm")
    TextTagger(LdSMClassifier(2)).fit(NEW, NEW_TAGS).save(folder / "plain.ldsm")
    return folder


def seconds(client):
    metrics = client.get("/metrics").body.decode()
    return float(re.search(r"^ldsm_encoder_seconds_total (\S+)$", metrics, re.M)[1])


def test_answers_and_learns_with_the_encoder(folder, tmp_path):
    model = tmp_path / "tags.ldsm"
    model.write_bytes((folder / "tags.ldsm").read_bytes())
    settings = Settings(encoder=folder / "tiny", learn=True)
    assert Settings.from_json(settings.to_json()) == settings
    expected = TextTagger(LdSMClassifier(4), encoder=folder / "tiny").fit(*texts_and_tags(900))
    with running(create_app([model, folder / "plain.ldsm"], settings)) as client:
        before = seconds(client)
        documents = {"documents": [{"text": text} for text in NEW]}
        found = client.post("/v1/projects/tags/suggest-batch?limit=3", documents)
        assert found.status == 200, found.body
        best = [[one["label"] for one in row["results"]] for row in found.json]
        assert best == [[tag for tag, _ in row] for row in expected.predict(NEW, 3)]
        assert seconds(client) > before
        body = [{"text": f"w{i} x{i}", "subjects": [{"label": "new"}]} for i in range(20)]
        assert client.post("/v1/projects/tags/learn", body).status == 204
        listed = client.get("/v1/projects/tags/labels", search="new").json["labels"]
        assert "new" in [one["uri"] for one in listed]


def test_missing_or_needless_encoder(folder):
    with pytest.raises(ValueError, match="needs its encoder, 'tiny'"):
        Models([folder / "tags.ldsm"])
    with pytest.raises(ValueError, match="No model of the service was trained with an encoder"):
        create_app([folder / "plain.ldsm"], Settings(encoder=folder / "tiny"))
