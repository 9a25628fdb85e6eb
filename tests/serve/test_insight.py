"""Explanations and labels: what is behind the tags."""

import json

import numpy as np
import pytest

import ldsm
from ldsm import LdSMClassifier, TextTagger
from ldsm.serve import create_app
from ldsm.text.fitted import fitted_text
from services import SCRIPT, TOPICS, documents, running
from text_corpus import titles

TAGS = "/v1/projects/tags"
TEXT = "The Cod and herring quota, says a judge."


def explained(client, label, text=TEXT):
    return client.form(f"{TAGS}/explain", text=text, label=label).json


def test_why_label(client, tagger):
    facts = explained(client, "fish")
    best = tagger.predict([TEXT], 6)[0]
    place = [tag for tag, _ in best].index("fish")
    assert facts["place"] == place + 1 and facts["score"] == best[place][1]
    log_odds = np.log(facts["score"] / (1 - facts["score"]))
    assert sum(facts["shares"].values()) == pytest.approx(log_odds, abs=1e-3)
    assert facts["bias"] + sum(one["weight"] for one in facts["words"]) == pytest.approx(
        facts["margin"], abs=1e-5
    )
    assert facts["training_rows"] == sum("fish" in tags for tags in documents()[1])
    assert {"cod", "herring"} <= {one["word"] for one in facts["words"] if one["weight"] > 0}
    assert all(one["here"] == (one["word"] in TEXT.lower()) for one in facts["typical"])


def test_unknown_word_has_no_certainty(client):
    assert explained(client, "fish")["certainty"] == 1
    facts = explained(client, "fish", text="xyzzy")
    assert facts["certainty"] == 0
    texts = documents()[1]
    assert facts["score"] == pytest.approx(sum("fish" in tags for tags in texts) / len(texts))


def test_marked_words(client):
    parts = explained(client, "fish")["parts"]
    assert "".join(one["text"] for one in parts) == TEXT
    weight = {one["text"]: one["weight"] for one in parts}
    assert weight["Cod"] > 0 and weight["quota"] > 0
    assert weight[", says a "] == 0
    assert explained(client, "law")["parts"] != parts


def test_why_not_label(client):
    facts = explained(client, "weather", text="cod quota")
    if not facts["listed"]:
        assert facts["place"] is None and facts["score"] == 0 and facts["shares"] == {}
    assert facts["margin"] < 0
    assert set(TOPICS["weather"]) & {one["word"] for one in facts["typical"]}
    assert not any(one["here"] for one in facts["typical"] if one["word"] in TOPICS["weather"])
    answer = client.form(f"{TAGS}/explain", text=TEXT, label="chess")
    assert answer.status == 400 and answer.json["title"] == "The model has no label 'chess'."


def test_label_off_shortlist(tmp_path):
    """With more labels than a shortlist has, some are not scored, but have reasons all the same."""
    random = np.random.default_rng(0)
    words = [[f"word{i}a", f"word{i}b"] for i in range(300)]
    texts = [" ".join(words[i % 300] * 2 + ["and"]) for i in range(1200)]
    tags = [[f"tag {i % 300:03d}"] for i in range(1200)]
    order = random.permutation(1200)
    tagger = TextTagger(LdSMClassifier(n_estimators=3, rerank="linear", random_state=0))
    tagger.fit([texts[i] for i in order], [tags[i] for i in order])
    tagger.save(tmp_path / "tags.ldsm")
    with running(create_app([tmp_path / "tags.ldsm"])) as client:
        found = [explained(client, f"tag {i:03d}", "word7a word7b") for i in range(0, 300, 7)]
        assert found[1]["listed"] and found[1]["place"] == 1
        others = [one for one in found if not one["listed"]]
        assert others
        for one in others:
            assert one["score"] == 0 and one["place"] is None and one["margin"] < 0
            assert one["typical"][0]["word"].startswith("word") and not one["typical"][0]["here"]


def test_labels_are_listed_and_searched(client, tagger):
    labels = client.get(f"{TAGS}/labels").json
    assert labels["total"] == len(TOPICS)
    counts = [one["training_rows"] for one in labels["labels"]]
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[-1]
    by_name = client.get(f"{TAGS}/labels", order="name").json["labels"]
    assert [one["label"] for one in by_name] == sorted(TOPICS)
    assert [one["uri"] for one in client.get(f"{TAGS}/labels", search="EA").json["labels"]] != []
    found = client.get(f"{TAGS}/labels", search="SCRIPT").json
    assert [one["uri"] for one in found["labels"]] == [SCRIPT]
    assert client.get(f"{TAGS}/labels", search="chess").json == {"total": 0, "labels": []}
    page = client.get(f"{TAGS}/labels", order="name", offset=2, limit=2).json
    assert [one["label"] for one in page["labels"]] == sorted(TOPICS)[2:4]
    assert client.get(f"{TAGS}/labels", limit=0).status == 422


def test_exact_name_comes_first(tmp_path):
    """However many others begin with it."""
    names = ["sea fish", *(f"fish {i}" for i in range(9)), "fish"]
    texts = [f"word{i % 11} and more" for i in range(110)]
    tagger = TextTagger().fit(texts, [[names[i % 11]] + names[:10] for i in range(110)])
    tagger.save(tmp_path / "tags.ldsm")
    with running(create_app([tmp_path / "tags.ldsm"])) as client:
        found = client.get(f"{TAGS}/labels", search="Fish", limit=3).json
        assert found["total"] == 11 and found["labels"][0]["uri"] == "fish"
        assert "sea fish" not in [one["uri"] for one in found["labels"]]


def test_held_out_label_counts(client, tagger):
    """The model counts it while it is trained, on rows that are held out."""
    tested = tagger.classifier_.second_stage_.tested
    assert tested.shape == (len(TOPICS), 2) and (tested[:, 1] <= tested[:, 0]).all()
    assert tested[:, 0].sum() > 20
    rows = {one["uri"]: one for one in client.get(f"{TAGS}/labels").json["labels"]}
    for label, (held_out, found) in zip(tagger.classes_.tolist(), tested.tolist(), strict=True):
        assert (rows[label]["tested"], rows[label]["found"]) == (held_out, found)
    by_share = [one["found"] / one["tested"] for one in
                client.get(f"{TAGS}/labels", order="found").json["labels"]]  # fmt: skip
    assert by_share == sorted(by_share, reverse=True)


def test_label_details(client):
    facts = client.get(f"{TAGS}/label", uri="fish").json
    assert facts["uri"] == "fish" and facts["words"][0] in TOPICS["fish"]
    assert client.get(f"{TAGS}/label", uri="chess").status == 400


@pytest.mark.parametrize("noise", [False, True], ids=["names help", "names do not help"])
def test_vocabulary_names_are_shown(tmp_path, noise):
    texts, tags = documents() if noise else titles(1000)
    names = sorted({tag for own in tags for tag in own})
    address = {name: f"http://example.org/{i}" for i, name in enumerate(names)}
    called = {uri: f"the tag {name}" if noise else name for name, uri in address.items()}
    tagger = TextTagger(LdSMClassifier(n_estimators=5, random_state=0))
    tagger.fit(texts, [[address[tag] for tag in own] for own in tags], vocabulary=called)
    assert (tagger.classifier_.second_stage_.names is None) == noise
    tagger.save(tmp_path / "tags.ldsm")
    with running(create_app([tmp_path / "tags.ldsm"])) as client:
        results = client.form(f"{TAGS}/suggest", text=texts[0]).json["results"]
        assert results and all(one["label"] == called[one["uri"]] for one in results)
        name = results[0]["label"]
        uri = results[0]["uri"]
        assert explained(client, name, texts[0])["uri"] == uri
        found = client.get(f"{TAGS}/labels", search=name).json["labels"]
        assert found[0]["uri"] == uri
        corrected = [{"text": "new", "subjects": [{"label": name}, {"uri": f"<{uri}>"}]}]
        assert client.post(f"{TAGS}/learn", corrected).status == 204
        kept = json.loads((tmp_path / "tags.corrections.jsonl").read_text())
        assert kept["labels"] == [uri]
    again = ldsm.load(tmp_path / "tags.ldsm").partial_fit([texts[0]], [[uri]])
    assert fitted_text(again).titles.as_dict() == called


def test_explanation_by_trees_alone(tmp_path):
    TextTagger(LdSMClassifier(n_estimators=3, rerank=None, random_state=0)).fit(*documents()).save(
        tmp_path / "tags.ldsm"
    )
    with running(create_app([tmp_path / "tags.ldsm"])) as client:
        facts = explained(client, "fish", "cod and herring")
        assert facts["bias"] is None and facts["typical"] == []
        assert {one["word"] for one in facts["words"]} <= {"cod", "herring", "and"}
        assert any(part["weight"] for part in facts["parts"])
        assert client.get(f"{TAGS}/labels").json["labels"][0]["tested"] is None
