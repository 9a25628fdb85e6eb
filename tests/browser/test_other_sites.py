"""Pages of other sites in a real browser: they read nothing, and nothing is learned from them."""

import http.server
import json
import threading
from contextlib import contextmanager

import pytest

import ldsm
from conftest import chromium
from services import service, small_tagger

pytestmark = pytest.mark.browser
FOREIGN = ("evil.example", "localhost", "127.0.0.1")
# What a page may try; it answers with all that it could read.
READ = """
    const [base, done] = arguments, found = [], wait = [];
    const note = (what) => (text) => found.push([what, String(text)]);
    const body = JSON.stringify([{text: "cod", subjects: [{label: "meat"}]}]);
    const form = new URLSearchParams({text: "cod"});
    const ask = (what, path, options) => wait.push(
        fetch(base + path, options)
            .then((answer) => answer.text().then((text) => note(what)(answer.status + text)))
            .catch((error) => note(what)("0 " + error.name)));
    for (const mode of ["cors", "no-cors"]) {
        for (const path of ["v1/projects", "metrics", "docs", "openapi.json", ""])
            ask(`GET ${path} ${mode}`, path, {mode});
        ask(`learn as text ${mode}`, "v1/projects/tags/learn", {mode, method: "POST", body});
        ask(`suggest ${mode}`, "v1/projects/tags/suggest", {mode, method: "POST", body: form});
    }
    ask("learn", "v1/projects/tags/learn",
        {method: "POST", body, headers: {"Content-Type": "application/json"}});
    for (const [tag, key] of [["script", "src"], ["img", "src"]]) {
        const element = document.createElement(tag);
        wait.push(new Promise((go) => {
            element.onload = () => go(note(tag)("loaded"));
            element.onerror = () => go(note(tag)("0 error"));
        }));
        element[key] = base + "v1/projects";
        document.head.append(element);
    }
    Promise.all(wait).then(() => done(found));"""


@pytest.fixture(scope="module")
def browser():
    """One that resolves evil.example to this machine."""
    browser = chromium("--host-resolver-rules=MAP evil.example 127.0.0.1")
    yield browser
    browser.quit()


@pytest.fixture
def own_model(tmp_path):
    path = tmp_path / "tags.ldsm"
    small_tagger().save(path)
    return path


@contextmanager
def site(page: str):
    """The port of a foreign web server."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def assert_nothing_learned(served, model):
    assert served.get("/v1/projects/tags").json["n_training_rows"] == 600
    file = model.with_name("tags.corrections.jsonl")
    assert not file.exists() or not list(ldsm.datasets.iter_jsonl(file))


def test_dns_rebinding(browser, own_model):
    """DNS rebinding: to the browser, page and service have the same origin."""
    with service(own_model, "--learn", "--port", 0) as served:
        browser.get(f"http://evil.example:{served.port}/")
        assert browser.execute_script("return location.hostname") == "evil.example"
        assert "does not accept this host name" in browser.page_source
        found = browser.execute_async_script(READ, "/")
        assert len(found) == 17
        for what, text in found:
            assert text.startswith(("0 ", "421")) and "tags" not in text, (what, text)
        assert_nothing_learned(served, own_model)


def test_allowed_name(browser, own_model):
    """The same page and the same requests, with the name among those that are answered."""
    options = ["--learn", "--port", 0, "--allowed-host", "evil.example"]
    with service(own_model, *options) as served:
        browser.get(f"http://evil.example:{served.port}/")
        found = dict(browser.execute_async_script(READ, "/"))
        assert found["GET v1/projects cors"].startswith("200") and found["learn"] == "204"
        assert served.get("/v1/projects/tags").json["n_training_rows"] == 601


@pytest.mark.parametrize("host", FOREIGN)
def test_other_port(browser, own_model, host):
    with service(own_model, "--learn", "--port", 0) as served, site("<p>hello") as port:
        for base in (served.address, served.address.replace("127.0.0.1", "localhost")):
            browser.get(f"http://{host}:{port}/")
            found = browser.execute_async_script(READ, base)
            assert len(found) == 17
            for what, text in found:  # no-cors: an answer that cannot be read
                assert text.startswith("0") and "tags" not in text, (what, text)
        assert_nothing_learned(served, own_model)
        refused = 'path="/v1/projects/{project}/suggest",status="200"'
        assert refused not in served.get("/metrics").text


@pytest.mark.parametrize("host", FOREIGN)
def test_forms_of_other_pages(browser, own_model, host):
    body = json.dumps([{"text": "cod", "subjects": [{"label": "meat"}], "more": "="}])
    name, value = body.split("=")
    with service(own_model, "--learn", "--port", 0) as served:
        learn, suggest = (f"{served.address}v1/projects/tags/{x}" for x in ("learn", "suggest"))
        page = f"""
            <form id="text" method="post" action="{learn}" enctype="text/plain"></form>
            <form id="plain" method="post" action="{suggest}"><input name="text" value="cod"></form>
            <form id="multi" method="post" action="{suggest}" enctype="multipart/form-data">
            <input name="text" value="cod"></form>"""
        with site(page) as port:
            for form in ("text", "plain", "multi"):
                browser.get(f"http://{host}:{port}/")
                browser.execute_script(
                    """const [id, name, value] = arguments, form = document.getElementById(id);
                    if (id === "text") {
                        const input = document.createElement("input");
                        [input.name, input.value] = [name, value];
                        form.append(input);
                    }
                    form.submit();""",
                    form,
                    name,
                    value,
                )
                shown = browser.find_element("tag name", "body").text
                while "status" not in shown:
                    shown = browser.find_element("tag name", "body").text
                assert "403" in shown and "fish" not in shown, shown
        assert_nothing_learned(served, own_model)


@pytest.mark.parametrize("host", FOREIGN)
def test_frames_in_other_pages(browser, own_model, host):
    with service(own_model, "--learn", "--port", 0) as served:
        page = f'<iframe src="{served.address}" onload="window.loaded = true"></iframe>'
        with site(page) as port:
            browser.get(f"http://{host}:{port}/")
            read = """
                const done = arguments[0], frame = document.querySelector("iframe");
                const inner = () => frame.contentDocument && frame.contentDocument.body.innerHTML;
                const look = () => {
                    try { done(String(inner())); }
                    catch (error) { done(error.name); }
                };
                window.loaded ? look() : frame.addEventListener("load", look);"""
            assert browser.execute_async_script(read) in ("null", "SecurityError")
            browser.switch_to.frame(0)
            assert not browser.find_elements("css selector", "#text")  # it is not shown either
            browser.switch_to.default_content()
        assert_nothing_learned(served, own_model)
