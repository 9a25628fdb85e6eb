"""Bodies of requests: which charsets are read, and where."""

import encodings
import http.client
import json
import pkgutil
import threading
from encodings.aliases import aliases
from urllib.parse import quote

import pytest
from fastapi import Response
from fastapi.exceptions import RequestValidationError

from ldsm.serve import Settings, create_app
from ldsm.serve.http import bodies
from services import running

TAGS = "/v1/projects/tags"
FORM = "application/x-www-form-urlencoded"
CODECS = sorted(
    {*aliases, *aliases.values(), *(m.name for m in pkgutil.iter_modules(encodings.__path__))}
)


def multipart(text: bytes) -> bytes:
    return b'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\n' + text + b"\r\n--x--\r\n"


def test_only_utf8_is_accepted(client):
    expected = client.form(f"{TAGS}/suggest", text="cod café").json
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=30)

    def ask(kind, body):
        connection.request("POST", f"{TAGS}/suggest", body, {"Content-Type": kind})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    try:
        bodies_of = {
            "multipart/form-data; boundary=x": multipart,
            FORM: lambda text: b"text=" + text,
        }
        for kind, body in bodies_of.items():
            for charset in ("utf-8", "UTF-8", "utf8", '"utf-8"', "utf-8 ;a=b"):
                found = ask(f"{kind}; charset={charset}", body("cod café".encode()))
                assert found == (200, expected), charset
            for name in CODECS:
                if name not in ("utf8", "utf-8"):
                    status, problem = ask(f"{kind}; charset={name}", body(b"cod"))
                    assert status == 415 and "must be utf-8" in problem["title"], name
            for charset in ("punycode;charset=utf-8", "utf-8;charset=punycode", "'utf-8'", "", '"'):
                assert ask(f"{kind}; charset={charset}", body(b"cod"))[0] == 415, charset
            assert ask(f"{kind};charset*=utf-8''punycode", body(b"cod"))[0] == 415
        status, _ = ask("application/json; charset=utf-16", b"{}")
        assert status == 415
    finally:
        connection.close()


@pytest.mark.parametrize("text", ["text=cod+café", f"text={quote('cod café')}"])
def test_raw_and_escaped_utf8(client, text):
    answer = client.ask("POST", f"{TAGS}/explain", f"label=fish&{text}".encode(), content_type=FORM)
    assert "".join(part["text"] for part in answer.json["parts"]) == "cod café"


@pytest.mark.parametrize("path", ["suggest", "explain"])
def test_invalid_utf8_forms(client, path):
    bad = "multipart/form-data; boundary=x"
    for kind, body in (
        (FORM, b"label=fish&text=caf%e9"),
        (FORM, b"label=fish&text=caf\xe9"),
        (FORM, b"label=fish&text=%ed%a0%80"),  # a surrogate
        (bad, multipart(b"caf\xe9")),
        (bad, multipart(b"\xed\xa0\x80")),
    ):
        answer = client.ask("POST", f"{TAGS}/{path}", body, content_type=kind)
        assert answer.status == 400 and "not valid UTF-8" in answer.json["title"], body


def test_surrogates(client):
    """JSON can spell a surrogate, and a charset could."""
    text = r"cod \ud800"
    kind = "multipart/form-data; boundary=x; charset=unicode_escape"
    answer = client.ask("POST", f"{TAGS}/explain", multipart(text.encode()), content_type=kind)
    assert answer.status == 415
    bodies_by_path = {
        f"{TAGS}/suggest-batch": '{"documents": [{"text": "TEXT", "document_id": "TEXT"}]}',
        f"{TAGS}/learn": '[{"text": "TEXT", "subjects": [{"label": "fish"}]}]',
        "/v2/models/tags/infer": '{"id": "TEXT", "inputs": [{"name": "text", "datatype": "BYTES", '
        '"shape": [1], "data": ["TEXT"]}]}',
    }
    for path, body in bodies_by_path.items():
        for value in (body.replace("TEXT", text), body.replace("text", text)):
            answer = client.ask("POST", path, value, content_type="application/json")
            assert answer.status in (200, 400, 422), (path, answer.text)


def test_files_and_many_fields_refused(client):
    disposition = b'Content-Disposition: form-data; name="text"; filename="a.txt"'
    body = b"--x\r\n" + disposition + b"\r\n\r\ncod\r\n--x--\r\n"
    kind = "multipart/form-data; boundary=x"
    assert client.ask("POST", f"{TAGS}/suggest", body, content_type=kind).status == 400
    answer = client.ask("POST", f"{TAGS}/suggest", "a=&" * 5000, content_type=FORM)
    assert answer.status == 400 and "at most 1,000 fields" in answer.json["title"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{TAGS}/suggest-batch", {"documents": [1] * 1000}),
        (f"{TAGS}/learn", [1] * 1000),
        (f"{TAGS}/learn", [{"text": "cod", "subjects": [1] * 1000}] * 10),
        ("/v2/models/tags/infer", {"inputs": [1] * 1000}),
        ("/v2/models/tags/infer", {"inputs": [], "outputs": [1] * 1000}),
        (
            "/v2/models/tags/infer",
            {"inputs": [{"name": "text", "datatype": "BYTES", "shape": ["a"] * 1000, "data": []}]},
        ),
    ],
)
def test_checking_stops_at_the_first_mistake(model_file, path, body):
    """Describing each of a million mistakes would keep the event loop busy for seconds."""
    app, found = create_app([model_file]), []

    @app.exception_handler(RequestValidationError)
    async def count(request, error):
        found.append(len(error.errors()))
        return Response(status_code=422)

    with running(app) as client:
        assert client.post(path, body).status == 422
    assert found == [1]


@pytest.mark.parametrize(
    ("path", "value", "status"),
    [
        (f"{TAGS}/learn", [{"text": "cod", "subjects": [{}] * 1000}] * 30, 413),
        (f"{TAGS}/learn", [{"text": "", "subjects": []}] * 9000, 413),
        (f"{TAGS}/suggest-batch", {"documents": [{"text": ""}] * 13_000}, 413),
        (f"{TAGS}/suggest-batch", {"documents": [{"text": "cod"}] * 256, "a": [0] * 20_000}, 200),
        (f"{TAGS}/suggest-batch", [[[]] * 100] * 260, 413),
        (f"{TAGS}/suggest-batch", {"documents": [{"text": "[,{" * 90_000}]}, 200),
        (f"{TAGS}/suggest-batch", {"documents": [{"text": '",\\\\' * 90_000}]}, 200),
        (f"{TAGS}/suggest-batch", {"documents": [{"text": '"'}, *[0] * 26_000]}, 413),
        (f"{TAGS}/suggest-batch", {"documents": [{"text": "\\\\"}, *[0] * 26_000]}, 413),
        (f"{TAGS}/suggest-batch", {"documents": [], **{f"k{i}": 0 for i in range(26_000)}}, 413),
    ],
)
def test_json_has_a_limit_of_values(client, path, value, status):
    """A megabyte can hold 500,000 values, each of which costs the event loop some time."""
    answer = client.post(path, value)
    assert answer.status == status
    if status == 413:
        assert answer.json["title"] == "A JSON body may have at most 25,600 values."


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "latin-1"])
def test_json_that_is_not_utf8_is_refused(client, encoding):
    body = json.dumps({"documents": [{"text": "café"}]}, ensure_ascii=False)
    kind, path = "application/json", f"{TAGS}/suggest-batch"
    answer = client.ask("POST", path, body.encode(encoding), content_type=kind)
    assert answer.status in (400, 422)
    assert client.ask("POST", path, body.encode("utf-8-sig"), content_type=kind).status == 200


def test_more_texts_may_have_more_values(model_file):
    documents = {"documents": [{"text": "cod"}] * 20_000}
    with running(create_app([model_file], Settings(max_batch=20_000))) as client:
        assert client.post(f"{TAGS}/suggest-batch", documents).status == 200


@pytest.mark.parametrize("kind", ["form", "json"])
def test_long_bodies_do_not_block(model_file, monkeypatch, kind):
    reading, may_end = threading.Event(), threading.Event()

    def slow(parse):
        def parse_slowly(*arguments, **options):
            reading.set()
            assert may_end.wait(60)
            return parse(*arguments, **options)

        return parse_slowly

    text = "cod " * bodies.SHORT
    with running(create_app([model_file])) as client:
        if kind == "form":
            monkeypatch.setattr(bodies, "parse_qsl", slow(bodies.parse_qsl))
            body, path, content_type = f"text={text}", f"{TAGS}/suggest", FORM
        else:
            monkeypatch.setattr(bodies, "loads", slow(bodies.loads))
            body = json.dumps({"documents": [{"text": text}]})
            path, content_type = f"{TAGS}/suggest-batch", "application/json"
        answers = []
        asking = threading.Thread(
            target=lambda: answers.append(client.ask("POST", path, body, content_type=content_type))
        )
        asking.start()
        try:
            assert reading.wait(60)
            assert client.get("/v2/health/live").status == 200
        finally:
            may_end.set()
            asking.join()
        assert answers[0].status == 200
