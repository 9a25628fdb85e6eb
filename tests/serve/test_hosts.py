"""Pages of other origins, and host names that were made to point here."""

import socket

import pytest

from ldsm.serve import Settings, create_app
from ldsm.serve.http.hosts import LOCAL_NAMES, hosts_of, is_allowed, is_host
from services import running

TAGS = "/v1/projects/tags"
FORM = {"content_type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost", True),
        ("LocalHost:8000", True),
        ("127.0.0.1:8000", True),
        ("[::1]:8000", True),
        ("[::1]", True),
        ("tags.example.org", True),
        ("tags.example.org:443", True),
        ("evil.example", False),
        ("evil.example:8000", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("evil.localhost", False),
        ("localhost@evil.example", False),
        ("evil.example#localhost", False),
        ("localhost:8000:evil", False),
        ("[::1", False),
        ("::1", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_accepted_host_names(host, allowed):
    hosts = (*LOCAL_NAMES, "tags.example.org")
    assert is_allowed([host], ("127.0.0.1", 8000), hosts) == allowed


def test_exactly_one_host_header():
    assert not is_allowed([], ("127.0.0.1", 8000), LOCAL_NAMES)
    assert not is_allowed(["localhost", "evil.example"], None, LOCAL_NAMES)
    # The address that a request came to is that of the service.
    assert is_allowed(["10.0.0.7:80"], ("10.0.0.7", 8000), LOCAL_NAMES)
    assert is_allowed(["[fe80::7]:80"], ("fe80::7", 8000), LOCAL_NAMES)
    assert not is_allowed(["10.0.0.7"], None, LOCAL_NAMES)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "::1"])
def test_loopback_host_names(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as listener:
        assert hosts_of(listener, ()) == LOCAL_NAMES
        assert hosts_of(listener, ("Tags.Example",)) == (*LOCAL_NAMES, "tags.example")


def test_public_host_names():
    with socket.create_server(("0.0.0.0", 0)) as listener:
        assert hosts_of(listener, ()) == ()
        assert hosts_of(listener, ("tags.example",)) == (*LOCAL_NAMES, "tags.example")


def test_valid_host_options():
    assert all(map(is_host, ["tags.example.org", "tags", "10.0.0.7", "fe80::7"]))
    assert not any(map(is_host, ["", "tags:8000", "http://tags", "tags/", "a b", "[::1]:8"]))


def test_foreign_hosts_get_nothing(own_model):
    hosts = (*LOCAL_NAMES, "tags.example.org")
    learn = '[{"text": "cod", "subjects": [{"label": "fish"}]}]'
    with running(create_app([own_model], Settings(allowed_hosts=hosts))) as client:
        for path in ("/", "/docs", "/openapi.json", "/v1/projects", "/metrics", "/v2/health/live"):
            assert client.get(path).status == 200
            assert client.ask("GET", path, host="tags.example.org").status == 200
            answer = client.ask("GET", path, host=f"evil.example:{client.port}")
            assert answer.status == 421 and "tags" not in answer.text.replace("tags.example", "")
        origin = f"http://evil.example:{client.port}"
        evil = {"host": origin[7:], "origin": origin, "sec_fetch_site": "same-origin"}
        json = {"content_type": "application/json"}
        assert client.ask("POST", f"{TAGS}/learn", learn, **evil, **json).status == 421
        assert client.ask("POST", f"{TAGS}/suggest", "text=cod", **evil, **FORM).status == 421
        assert client.ask("POST", f"{TAGS}/learn", learn, **json).status == 204
    assert len(own_model.with_name("tags.corrections.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("origin", "site", "status"),
    [
        ("http://127.0.0.1:PORT", "same-origin", 200),
        ("http://127.0.0.1:PORT", None, 200),
        ("https://tags.example.org", "same-origin", 200),  # a proxy has changed the host
        (None, None, 200),  # not a browser
        (None, "same-origin", 200),
        (None, "none", 200),
        ("http://127.0.0.1:3000", "same-site", 403),
        ("http://localhost:3000", "same-site", 403),
        ("http://localhost:PORT", "cross-site", 403),
        ("http://127.0.0.1:3000", None, 403),
        ("http://localhost:PORT", None, 403),
        ("null", "cross-site", 403),
        ("null", None, 403),
        (None, "same-site", 403),
        (None, "cross-site", 403),
    ],
)
def test_foreign_origin(client, origin, site, status):
    headers = {"origin": origin, "sec_fetch_site": site}
    given = {
        name: value.replace("PORT", str(client.port)) for name, value in headers.items() if value
    }
    answer = client.ask("POST", f"{TAGS}/suggest", "text=cod", **FORM, **given)
    assert answer.status == status


def test_answers_cannot_be_embedded_elsewhere(client):
    for path in ("/", "/v1/projects", "/nowhere"):
        headers = client.get(path).headers
        assert headers["cross-origin-resource-policy"] == "same-origin"


def test_settings_reach_other_processes():
    settings = Settings(allowed_hosts=("localhost", "tags.example"), timeout=7)
    assert Settings.from_json(settings.to_json()) == settings
