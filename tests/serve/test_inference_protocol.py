"""The Open Inference Protocol, as KServe's clients speak it."""

import pytest

MODEL = "/v2/models/tags"


def request(texts, **more):
    tensor = {"name": "text", "datatype": "BYTES", "shape": [len(texts)], "data": texts}
    return {"inputs": [tensor], **more}


def test_health_and_metadata(client):
    assert client.get("/v2").json["name"] == "ldsm"
    assert client.get("/v2/health/live").json == {"live": True}
    assert client.get("/v2/health/ready").json == {"ready": True}
    assert client.get(f"{MODEL}/ready").json == {"name": "tags", "ready": True}
    facts = client.get(MODEL).json
    assert facts["inputs"] == [{"name": "text", "datatype": "BYTES", "shape": [-1]}]
    assert [one["name"] for one in facts["outputs"]] == ["labels", "scores"]
    assert facts["versions"][0].isdigit()


def test_infer(client, tagger):
    texts = ["cod quota", "beef import tariff"]
    body = request(texts, id="seven", parameters={"k": 3, "other": "ignored"})
    answer = client.post(f"{MODEL}/infer", body)
    assert answer.status == 200
    assert answer.json["id"] == "seven" and answer.json["model_name"] == "tags"
    labels, scores = answer.json["outputs"]
    expected = tagger.predict(texts, 3)
    assert labels["shape"] == scores["shape"] == [2, 3]
    assert labels["datatype"] == "BYTES" and scores["datatype"] == "FP32"
    assert labels["data"] == [tag for row in expected for tag, _ in row]
    assert scores["data"] == [score for row in expected for _, score in row]


def test_short_rows_are_padded(client, tagger):
    texts = ["cod catch", "beef import tariff court"]
    answer = client.post(f"{MODEL}/infer", request(texts, parameters={"min_score": 0.5})).json
    rows = [[pair for pair in row if pair[1] >= 0.5] for row in tagger.predict(texts)]
    lengths = [len(row) for row in rows]
    assert lengths[0] != lengths[1]
    labels = answer["outputs"][0]
    assert labels["shape"] == [2, max(lengths)]
    assert labels["data"].count("") == abs(lengths[0] - lengths[1])


def test_chosen_outputs_and_columns_of_texts(client):
    body = request([["cod"], ["beef"]], outputs=[{"name": "scores"}])
    body["inputs"][0]["shape"] = [2, 1]
    answer = client.post(f"{MODEL}/infer", body)
    assert [one["name"] for one in answer.json["outputs"]] == ["scores"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"inputs": []}, "There must be one input, 'text'. Got none."),
        (
            request(["cod"]) | {"outputs": [{"name": "odds"}]},
            "The outputs must be labels and scores, each at most once.",
        ),
        (
            request(["cod"]) | {"outputs": [{"name": "labels"}] * 2},
            "The outputs must be labels and scores",
        ),
        (
            {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [3], "data": ["cod"]}]},
            "The shape of 'text' must be [1]",
        ),
    ],
)
def test_wrong_requests(client, body, message):
    answer = client.post(f"{MODEL}/infer", body)
    assert answer.status == 400 and answer.json["error"].startswith(message)
    assert client.post("/v2/models/others/infer", request(["cod"])).json == {
        "error": "There is no model 'others'."
    }
