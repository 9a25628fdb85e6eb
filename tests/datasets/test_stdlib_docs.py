"""The standard library's docstrings as a corpus: what is in it, what not, and what it teaches."""

import hashlib
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from ldsm.datasets.stdlib_docs import _prose, load_stdlib_docs


@pytest.fixture(scope="module")
def corpus():
    return load_stdlib_docs(return_names=True)


def test_size(corpus):
    data, names = corpus
    assert 4_000 < len(data) < 12_000
    assert len(data.texts) == len(names) == len(data)
    assert 1_500 < data.n_labels < 6_000
    assert 4 < data.Y.nnz / len(data) < 6
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}." in data.source


def test_no_duplicate_texts(corpus):
    data, names = corpus
    assert names == sorted(set(names))
    words = [tuple(re.findall(r"\w+", text.lower())) for text in data.texts]
    assert len(set(words)) == len(words)
    assert min(map(len, words)) >= 3


@pytest.mark.parametrize(
    ("name", "tags"),
    [
        ("json", {"kind:module", "module:json", "package:json"}),
        ("json.dumps", {"kind:function", "module:json", "package:json", "name:dumps"}),
        ("zlib.compress", {"kind:function", "module:zlib", "name:compress"}),
        ("os.stat", {"kind:function", "module:os", "name:stat"}),
        ("builtins.str.split", {"kind:method", "module:builtins", "name:str", "name:split"}),
        (
            "decimal.Decimal.from_float",
            {"kind:classmethod", "module:decimal", "name:decimal", "name:from", "name:float"},
        ),
        (
            "builtins.FileNotFoundError",
            {"kind:exception", "module:builtins", "base:OSError"}
            | {"name:file", "name:not", "name:found", "name:error"},
        ),
        (
            "collections.abc.Mapping",
            {"kind:class", "module:collections.abc", "package:collections", "base:Collection"}
            | {"name:mapping"},
        ),
        (
            "xml.dom.minidom.parse",
            {"kind:function", "module:xml.dom.minidom", "package:xml", "package:xml.dom"}
            | {"name:parse"},
        ),
    ],
)
def test_known_objects(corpus, name, tags):
    data, names = corpus
    assert set(data.labels[names.index(name)]) == tags


def test_module_and_kind_tags(corpus):
    for labels in corpus[0].labels:
        prefixes = Counter(label.partition(":")[0] for label in labels)
        assert prefixes["module"] == 1
        assert prefixes["kind"] in (1, 2)
        assert set(prefixes) <= {"module", "package", "kind", "name", "base"}


def test_excluded_objects(corpus):
    data, names = corpus
    for module in ("test", "idlelib", "tkinter", "turtle", "site-packages", "encodings"):
        assert not any(name == module or name.startswith(f"{module}.") for name in names)
    for name in names:
        private = [p for p in name.split(".") if p.startswith("_") and not p.endswith("__")]
        assert private in ([], ["_thread"])
    assert not any(">>>" in text for text in data.texts)


def test_signatures_and_examples_are_taken_out():
    doc = "pack(f, v=(1, 2)) -> bytes\n\nPack values.\n\n>>> pack('i', 1)\nb'1'\n\nSee unpack()."
    assert _prose(doc, "pack") == "bytes\n\nPack values.\n\nSee unpack()."
    assert _prose("S.find(sub[, start]) -> int\nFind it.", "find") == "int\nFind it."
    assert _prose("The pack(x) function packs.", "pack") == "The pack(x) function packs."


def test_min_count_drops_rare_tags_only(corpus):
    data, _ = corpus
    frequent = load_stdlib_docs(min_count=5)
    assert list(frequent.texts) == list(data.texts)
    counts = Counter(label for labels in data.labels for label in labels)
    assert set(frequent.label_names) == {tag for tag, n in counts.items() if n >= 5}
    assert np.bincount(frequent.Y.indices).min() >= 5
    with pytest.raises(ValueError, match=r"'min_count'.*at least 1\. Got 0 instead"):
        load_stdlib_docs(min_count=0)


def test_deterministic_and_safe_imports(corpus):
    data, names = corpus
    program = """
import hashlib, sys
from ldsm.datasets.stdlib_docs import load_stdlib_docs
before = set(sys.modules)
data, names = load_stdlib_docs(return_names=True)
new = {name.partition(".")[0] for name in set(sys.modules) - before}
assert not new & {"this", "antigravity", "tkinter", "idlelib", "turtle", "test", "readline"}, new
print(hashlib.sha256(repr((names, list(data.texts), data.labels)).encode()).hexdigest())
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    here = hashlib.sha256(repr((names, list(data.texts), data.labels)).encode()).hexdigest()
    assert done.stdout.strip() == here


@pytest.mark.long
def test_simple_learner_beats_popularity():
    train, test = load_stdlib_docs(min_count=5).split(0.2, seed=0)
    assert not set(train.texts) & set(test.texts)
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2)
    train, test = train.vectorize(vectorizer), test.vectorize(vectorizer, fit=False)
    truth = test.Y.toarray()
    modules = [i for i, name in enumerate(train.label_names) if name.startswith("module:")]
    frequency = np.bincount(train.Y.indices, minlength=train.n_labels)

    centre = normalize((train.Y.T @ train.X).tocsr())
    scores = (test.X @ centre.T).toarray()
    # Which module a text is from, by the nearest centre: chance and popularity are a few percent.
    tagged = truth[:, modules].any(axis=1)
    found = truth[np.arange(len(test)), np.take(modules, scores[:, modules].argmax(axis=1))]
    popular = truth[:, modules[int(np.argmax(frequency[modules]))]]
    assert popular[tagged].mean() < 0.15
    assert found[tagged].mean() > 0.45

    # All tags, by the 20 nearest texts, against the most frequent ones.
    similar = (test.X @ train.X.T).toarray()
    nearest = np.argpartition(-similar, 20, axis=1)[:, :20]
    weight = np.zeros_like(similar)
    np.put_along_axis(weight, nearest, np.take_along_axis(similar, nearest, axis=1), axis=1)
    votes = np.argsort(-(weight @ train.Y.toarray()), axis=1)[:, :3]
    learned = np.take_along_axis(truth, votes, axis=1).mean()
    baseline = truth[:, np.argsort(-frequency)[:3]].mean()
    assert learned > 1.5 * baseline
