"""A real sentence encoder, all-MiniLM-L6-v2: `make test-encoder` downloads its weights."""

import os
from pathlib import Path

import numpy as np
import pytest

import ldsm
from ldsm import LdSMClassifier, TextTagger, datasets
from ldsm.text.encoders.onnx import OnnxEncoder

pytestmark = pytest.mark.encoder


@pytest.fixture(scope="module")
def folder():
    return Path(os.environ["LDSM_ENCODER"])


def test_published_similarities(folder):
    texts = ["That is a happy person", "That is a very happy person", "Today is a sunny day"]
    vectors = OnnxEncoder(folder)(texts)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    # As sentence-transformers gives them for this model.
    np.testing.assert_allclose(vectors[0] @ vectors[1:].T, [0.943, 0.257], atol=5e-4)


def test_demo_texts(folder, tmp_path):
    train, test = datasets.load_stdlib_docs().split(0.3, seed=0)
    tagger = TextTagger(LdSMClassifier(4, n_jobs=2), encoder=folder).fit(train)
    plain = TextTagger(LdSMClassifier(4, n_jobs=2)).fit(train)
    assert tagger.score(test) > plain.score(test) - 0.01
    path, texts = tmp_path / "tags.ldsm", list(test.texts)[:50]
    tagger.save(path)
    assert ldsm.load(path, encoder=folder).predict(texts) == tagger.predict(texts)
