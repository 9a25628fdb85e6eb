"""Annif's interface: the same shapes, and the answers of the model itself."""

import pytest

from ldsm import LdSMClassifier, TextTagger
from ldsm.serve import create_app
from services import SCRIPT, documents, running
from text_corpus import titles

TEXTS = ["cod and herring quota", "beef import tariff", "a judge in the storm", ""]
TAGS = "/v1/projects/tags"


def pairs(answer):
    return [(one["uri"], one["score"]) for one in answer["results"]]


def test_projects(client, tagger):
    listed = client.get("/v1/projects").json["projects"]
    assert [one["project_id"] for one in listed] == ["tags"]
    facts = client.get(TAGS).json
    assert facts == listed[0]
    assert facts["is_trained"] is True and facts["backend"] == {"backend_id": "ldsm"}
    assert facts["modification_time"].endswith("+00:00")
    assert facts["n_labels"] == len(tagger.classes_) and facts["problem"] is None


@pytest.mark.parametrize("text", TEXTS)
def test_suggest_matches_model(client, tagger, text):
    answer = client.form(f"{TAGS}/suggest", text=text, limit=4)
    assert answer.status == 200
    assert pairs(answer.json) == tagger.predict([text], 4)[0]
    for one in answer.json["results"]:
        assert one.keys() == {"uri", "label", "score", "notation"}
        assert one["label"] == one["uri"] and one["notation"] is None


def test_limit_threshold_and_tail(client, tagger):
    text = TEXTS[1]
    every = tagger.predict([text], 10)[0]
    found = client.form(f"{TAGS}/suggest", text=text, threshold=0.5).json
    assert pairs(found) == [pair for pair in every if pair[1] >= 0.5]
    assert 0 < len(found["results"]) < len(every)
    assert len(client.form(f"{TAGS}/suggest", text=text, limit=2).json["results"]) == 2
    found = client.form(f"{TAGS}/suggest", text=text, tail=1.5, limit=10).json
    assert pairs(found) == tagger.predict([text], 10, tail=1.5)[0]


def test_several_texts_at_once(client, tagger):
    texts = documents(50, seed=3)[0]
    body = {"documents": [{"text": text, "document_id": f"n{i}"} for i, text in enumerate(texts)]}
    answer = client.post(f"{TAGS}/suggest-batch?limit=3", body)
    assert answer.status == 200
    assert [one["document_id"] for one in answer.json] == [f"n{i}" for i in range(50)]
    assert [pairs(one) for one in answer.json] == tagger.predict(texts, 3)
    assert client.post(f"{TAGS}/suggest-batch", {"documents": []}).json == []
    # Ids are given back as they came, whatever they are.
    body = b'{"documents": [{"text": "cod \\ud800", "document_id": "<\\ud800>"}]}'
    answer = client.ask("POST", f"{TAGS}/suggest-batch", body, content_type="application/json")
    assert answer.json[0]["document_id"] == "<\ud800>"


def test_markup_in_labels(client):
    answer = client.form(f"{TAGS}/suggest", text="browser cookie pixel", limit=1)
    assert answer.json["results"][0]["uri"] == SCRIPT
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"text": "cod", "limit": 0}, "limit: Input should be greater than or equal"),
        ({"text": "cod", "limit": "many"}, "limit: Input should be a valid integer"),
        ({"text": "cod", "threshold": "nan"}, "threshold: Input should be"),
        ({"text": "cod", "tail": -1}, "tail: Input should be greater than or equal"),
    ],
)
def test_wrong_fields(client, fields, message):
    answer = client.form(f"{TAGS}/suggest", **fields)
    assert answer.status == 422 and answer.json["title"].startswith(message)
    assert answer.headers["content-type"] == "application/problem+json"


def test_other_wrong_requests(client):
    answer = client.form(f"{TAGS}/suggest", limit=5)
    assert answer.status == 400 and answer.json["title"] == "The field 'text' is missing."
    assert client.get("/v1/projects/others").json == {
        "status": 404,
        "title": "There is no model 'others'.",
    }
    assert client.form("/v1/projects/others/suggest", text="cod").status == 404
    assert client.get("/nowhere").json == {"status": 404, "title": "Not Found."}
    assert client.get(f"{TAGS}/suggest").status == 405
    head = client.ask("HEAD", "/v1/projects")
    assert head.status == 200 and head.body == b"" and int(head.headers["content-length"]) > 100
    answer = client.form(f"{TAGS}/suggest", text="cod", limit=1001)
    assert answer.status == 400
    assert answer.json["title"] == "A text can have 1 to 1,000 tags. Got 1,001."
    answer = client.post(f"{TAGS}/suggest-batch", {"documents": [{"text": "cod"}] * 257})
    assert answer.status == 400
    assert answer.json["title"] == "A request may have at most 256 texts. Got 257."
    answer = client.ask("POST", f"{TAGS}/suggest-batch", "{bad", content_type="application/json")
    assert (
        answer.status == 422
        and answer.json["title"] == "The body is not valid JSON (at character 1)."
    )
    answer = client.post(f"{TAGS}/suggest-batch", {"documents": [{"text": "a"}, {}]})
    assert answer.json["title"] == "documents[1].text: Field required."
    answer = client.ask("POST", f"{TAGS}/suggest", "text=cod", content_type="text/plain")
    assert answer.status == 415 and "must be JSON or a form. Got text/plain." in answer.text
    answer = client.post(f"{TAGS}/suggest", {"text": "cod"})
    assert answer.status == 415
    expected = "/v1/projects/{project}/suggest takes a form. Got application/json."
    assert answer.json["title"] == expected
    answer = client.form(f"{TAGS}/suggest-batch", documents="cod")
    assert answer.status == 415 and "suggest-batch takes JSON. Got app" in answer.json["title"]
    for depth, statuses in ((20_000, (400, 422)), (100_000, (413,))):
        answer = client.ask(
            "POST", f"{TAGS}/suggest-batch", "[" * depth, content_type="application/json"
        )
        assert answer.status in statuses
    answer = client.form(f"{TAGS}/suggest", text="cod", limit="9" * 4000)
    assert answer.status == 422 and len(answer.text) < 300
    secret = "a text that nobody should read"
    answer = client.post(f"{TAGS}/suggest-batch", {"documents": [{"text": [secret]}]})
    assert answer.status == 422 and secret not in answer.text


# -- chosen tags -------------------------------------------------------------------------------


def test_chosen_tags(client, tagger):
    """In a form and in JSON; the next tags move up."""
    text, left_out = TEXTS[1], [tag for tag, _ in tagger.predict(TEXTS[1:2], 2)[0]]
    rest = tagger.predict([text], 3, without=left_out)[0]
    assert len(rest) == 3
    found = client.form(f"{TAGS}/suggest", text=text, without=left_out[0], limit=1).json
    assert pairs(found) == tagger.predict([text], 1, without=left_out[:1])[0]
    body = {"documents": [{"text": text}], "without": left_out}
    assert pairs(client.post(f"{TAGS}/suggest-batch?limit=3", body).json[0]) == rest
    body = {"documents": [{"text": text}], "only": left_out}
    assert [t for t, _ in pairs(client.post(f"{TAGS}/suggest-batch", body).json[0])] == left_out


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"only": ["nonsense"]}, "'only' parameter must name labels of the model. Got 'nonsense'"),
        ({"only": []}, "must leave at least one"),
        ({"without": ["x"] * 10_001}, "at most 10,000 labels"),
    ],
)
def test_wrong_choice_of_tags(client, chosen, message):
    answer = client.post(f"{TAGS}/suggest-batch", {"documents": [{"text": "cod"}], **chosen})
    assert answer.status == 400 and message in answer.json["title"]


def test_groups_of_a_model(tmp_path):
    model = TextTagger(LdSMClassifier(2))
    texts, tags = titles(600)
    names = sorted({tag for its in tags for tag in its})
    lines = [f"{tag},{tag},{'early' if i < 3 else 'late'}" for i, tag in enumerate(names)]
    (tmp_path / "v.csv").write_text("\n".join(["label,name,group", *lines]))
    model.fit(texts, tags, vocabulary=tmp_path / "v.csv").save(tmp_path / "tags.ldsm")
    with running(create_app([tmp_path / "tags.ldsm"])) as client:
        listed = client.get(f"{TAGS}/groups").json["groups"]
        assert listed == [
            {"group": "early", "labels": 3},
            {"group": "late", "labels": len(names) - 3},
        ]
        body = {"documents": [{"text": texts[0]}], "only": ["early"]}
        found = pairs(client.post(f"{TAGS}/suggest-batch", body).json[0])
        assert found == model.predict(texts[:1], 10, only=names[:3])[0]
