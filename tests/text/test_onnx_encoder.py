"""Encoders from files: what counts of a text, and which files are refused."""

import pickle
import sys

import numpy as np
import pytest

from ldsm.text.encoders.onnx import OnnxEncoder
from tiny_encoders import write_onnx

TEXTS = ["herring", "cod in the sea", "the sea the sea the sea the sea"]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_mean_of_tokens(tmp_path, n_jobs):
    vectors = write_onnx(tmp_path / "tiny")
    encoder = OnnxEncoder(tmp_path / "tiny", n_jobs)
    assert encoder.name == "tiny"
    found = encoder(TEXTS)
    expected = [vectors[[1, 2]].mean(axis=0), vectors[[1, 3, 0, 4, 5]].mean(axis=0)]
    np.testing.assert_allclose(found[:2], expected, rtol=1e-6)
    # A text's vector does not depend on other texts.
    assert np.array_equal(found, [encoder([text])[0] for text in TEXTS])


def test_whole_texts_and_first_tokens(tmp_path):
    vectors = write_onnx(tmp_path / "whole", whole_text=True)
    found = OnnxEncoder(tmp_path / "whole" / "model.onnx")(TEXTS)
    np.testing.assert_array_equal(found[0], vectors[[1, 2]].max(axis=0))
    write_onnx(tmp_path / "first", first_token=True)
    np.testing.assert_array_equal(OnnxEncoder(tmp_path / "first")(TEXTS), vectors[[1, 1, 1]])


def test_only_the_first_tokens_of_a_long_text_count(tmp_path):
    write_onnx(tmp_path / "short", most_tokens=3)
    found = OnnxEncoder(tmp_path / "short")(["the sea", "the sea herring cod"])
    assert np.array_equal(found[0], found[1])
    write_onnx(tmp_path / "long")
    found = OnnxEncoder(tmp_path / "long")(["sea " * 511, "sea " * 511 + "cod"])
    assert np.array_equal(found[0], found[1])


def test_graph_in_a_folder_of_its_own(tmp_path):
    write_onnx(tmp_path)
    (tmp_path / "onnx").mkdir()
    (tmp_path / "model.onnx").rename(tmp_path / "onnx" / "model.onnx")
    for path in (tmp_path, tmp_path / "onnx" / "model.onnx"):
        assert OnnxEncoder(path)(TEXTS).shape == (3, 4)


def test_settings_above_the_tokenizer(tmp_path):
    vectors = write_onnx(tmp_path, first_token=True)
    (tmp_path / "onnx").mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).rename(tmp_path / "onnx" / name)
    np.testing.assert_array_equal(OnnxEncoder(tmp_path)(TEXTS), vectors[[1, 1, 1]])


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ('{"pooling_mode_max_tokens": true}', "asks for pooling_mode_max_tokens"),
        ("[]", "config.json must hold an object"),
        ("{", "config.json cannot be read"),
    ],
)
def test_refused_pooling(tmp_path, settings, problem):
    write_onnx(tmp_path, first_token=True)
    (tmp_path / "1_Pooling" / "config.json").write_text(settings)
    with pytest.raises(ValueError, match=problem):
        OnnxEncoder(tmp_path)


def test_pickled_encoder_opens_its_file(tmp_path):
    write_onnx(tmp_path)
    encoder = OnnxEncoder(tmp_path)
    again = pickle.loads(pickle.dumps(encoder))
    assert np.array_equal(again(TEXTS), encoder(TEXTS))


def test_refused_files(tmp_path):
    with pytest.raises(ValueError, match="missing does not exist"):
        OnnxEncoder(tmp_path / "missing")
    with pytest.raises(ValueError, match="must hold model.onnx or onnx/model.onnx. Got neither"):
        OnnxEncoder(tmp_path)
    write_onnx(tmp_path)
    with pytest.raises(ValueError, match="must be a folder or an .onnx file. Got .*tokenizer.json"):
        OnnxEncoder(tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer.json").rename(tmp_path / "other.json")
    with pytest.raises(ValueError, match="must have a tokenizer.json beside it"):
        OnnxEncoder(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match="cannot be opened"):
        OnnxEncoder(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="cannot be opened"):
        OnnxEncoder(tmp_path)
    write_onnx(tmp_path, inputs=["input_ids", "pixels"])
    with pytest.raises(ValueError, match="must read input_ids, .* It also needs 'pixels'"):
        OnnxEncoder(tmp_path)


def test_missing_package(tmp_path, monkeypatch):
    write_onnx(tmp_path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ValueError, match=r"needs the package onnxruntime: pip install 'ldsm\["):
        OnnxEncoder(tmp_path)
