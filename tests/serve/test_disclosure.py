"""What answers do not say: places on the disk, and names of models to those without the key."""

import logging
import os

import pytest

from full_disk import no_file_beyond
from ldsm.serve import Settings, create_app
from services import running

TAGS = "/v1/projects/tags"


@pytest.mark.parametrize("folder", ["plain", "Büro 'a' \\ b\n"])
@pytest.mark.parametrize("path", ["absolute", "relative", "linked"])
def test_file_problems_hide_paths(tagger, tmp_path, monkeypatch, folder, path):
    home = tmp_path / folder
    home.mkdir()
    model = home / "tags.ldsm"
    tagger.save(model)
    link = tmp_path / "link"
    link.symlink_to(home)
    monkeypatch.chdir(tmp_path)
    given = {
        "absolute": model,
        "relative": model.relative_to(tmp_path),
        "linked": link / model.name,
    }
    with running(create_app([given[path]])) as client:
        (tmp_path / "broken").write_bytes(b"nothing")
        for damage in (lambda: os.replace(tmp_path / "broken", model), model.unlink):
            damage()
            assert client.form(f"{TAGS}/suggest", text="cod").status == 200
            for answer in (client.get("/v1/projects"), client.get(TAGS)):
                found = answer.json.get("projects", [answer.json])[0]["problem"]
                assert "tags.ldsm" in found
                assert folder[:4] not in found and "link" not in found and "/" not in found


def test_reference_hides_models_without_key(model_file, tmp_path):
    (tmp_path / "key").write_text("s3cret")
    secret = tmp_path / "merger-with-acme.ldsm"
    secret.write_bytes(model_file.read_bytes())
    with running(create_app([secret], Settings(api_key_file=tmp_path / "key"))) as client:
        for path in ("/", "/docs", "/openapi.json", "/v2/health/ready", "/v2", "/nowhere"):
            assert "acme" not in client.get(path).text
        assert "/v1/projects/MODEL/suggest" in client.get("/docs").text
        assert client.ask("GET", "/v1/projects/merger-with-acme", x_api_key="s3cret").status == 200


def test_full_disk_path_only_in_log(own_model, caplog):
    file = own_model.with_name("tags.corrections.jsonl")
    body = [{"text": "cod " * 1000, "subjects": [{"label": "fish"}]}]
    with running(create_app([own_model])) as client:
        assert client.post(f"{TAGS}/learn", body).status == 204
        with no_file_beyond(file.stat().st_size + 100), caplog.at_level(logging.ERROR):
            answer = client.post(f"{TAGS}/learn", body)
        assert answer.status == 507 and str(own_model.parent) not in answer.text
    assert f"cannot save a correction in {file}: File too large" in caplog.text
