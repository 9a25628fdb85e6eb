"""Metrics for Prometheus, the reference of the interface, and the page's own files."""

import html
import json
import re
import shlex

from ldsm.serve import create_app
from ldsm.serve.page import page
from services import Client, running

TAGS = "/v1/projects/tags"


def sample(client: Client, name: str) -> float:
    found = re.findall(rf"^{re.escape(name)} (\S+)$", client.get("/metrics").text, re.M)
    return float(found[0]) if found else 0.0


def test_metrics(client, tagger):
    count = 'ldsm_requests_total{method="POST",path="/v1/projects/{project}/suggest",status="200"}'
    seconds = 'ldsm_request_seconds_count{path="/v1/projects/{project}/suggest"}'
    before = [sample(client, name) for name in (count, seconds, "ldsm_batch_texts_sum")]
    for _ in range(3):
        client.form(f"{TAGS}/suggest", text="cod")
    after = [sample(client, name) for name in (count, seconds, "ldsm_batch_texts_sum")]
    assert [b - a for a, b in zip(before, after, strict=True)] == [3, 3, 3]
    assert sample(client, 'ldsm_model_labels{model="tags"}') == len(tagger.classes_)
    assert sample(client, 'ldsm_model_training_rows{model="tags"}') == 600
    assert sample(client, 'ldsm_processor_seconds_total{model="tags",step="features"}') > 0
    # Paths that do not exist do not make ever more time series.
    client.get("/a/b/c")
    client.get("/a/b/d")
    assert "/a/b" not in client.get("/metrics").text
    assert sample(client, 'ldsm_requests_total{method="any",path="other",status="404"}') >= 2
    assert client.get("/metrics").headers["content-type"].startswith("text/plain; version=0.0.4")


def test_reference_lists_endpoints(client):
    schema = client.get("/openapi.json").json
    paths = set(schema["paths"])
    assert {
        "/v1/projects",
        "/v1/projects/{project}",
        "/v1/projects/{project}/suggest",
        "/v1/projects/{project}/suggest-batch",
        "/v1/projects/{project}/learn",
        "/v1/projects/{project}/explain",
        "/v1/projects/{project}/labels",
        "/v2/health/live",
        "/v2/health/ready",
        "/v2/models/{model}",
        "/v2/models/{model}/infer",
        "/metrics",
    } <= paths
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    for path in paths:
        assert f"<code>{path}</code>" in page.text
    for methods in schema["paths"].values():
        for facts in methods.values():
            assert facts["description"].split("\n")[0] in page.text.replace("&#x27;", "'")
    assert not re.search(r'(src|href)="(?!openapi\.json|\./)', page.text)
    assert "<script" not in page.text


def test_reference_examples(own_model):
    with running(create_app([own_model])) as client:
        page = html.unescape(client.get("/docs").text)
        examples = re.findall(r"<code>(curl .*?)</code>", page, re.S)
        assert len(examples) >= 15
        for line in examples:
            _, url, *rest = shlex.split(line)
            path = url.removeprefix(f"http://127.0.0.1:{client.port}")
            if rest[:1] == ["--json"]:
                answer = client.post(path, json.loads(rest[1]))
            elif rest:
                answer = client.form(path, **dict(pair.split("=", 1) for pair in rest[1::2]))
            else:
                answer = client.get(path)
            assert answer.status in (200, 204), (line, answer.text)


def test_answers_match_schema(client):
    """Answers that are made by hand, without a check, are what they are said to be."""
    from ldsm.serve.api.annif import DocumentSuggestions, Suggestions
    from ldsm.serve.api.inference import InferenceAnswer

    found = client.form(f"{TAGS}/suggest", text="cod").json
    assert Suggestions.model_validate(found, strict=True).model_dump() == found
    found = client.post(f"{TAGS}/suggest-batch", {"documents": [{"text": "cod"}]}).json
    assert DocumentSuggestions.model_validate(found[0], strict=True).model_dump() == found[0]
    tensor = {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["cod"]}
    found = client.post("/v2/models/tags/infer", {"inputs": [tensor], "id": "x"}).json
    assert InferenceAnswer.model_validate(found, strict=True).model_dump() == found


def test_page_loads_nothing(client):
    text = client.get("/").text
    links = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert [link for link in links if not link.startswith(("data:", "#", "docs"))] == []
    outside = re.findall(r"https?://[^\s'\"]+", text)
    assert set(outside) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\bon\w+=\"|style=\"|innerHTML|document\.write|eval\(", text)
    assert page("x").count("<script") == 1
