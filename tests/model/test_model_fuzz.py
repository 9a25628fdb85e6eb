"""Model files that are wrong in thousands of ways; what loading takes."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import patience
from ldsm import LdSMClassifier, TextTagger
from problems import make_problem

HELPERS = Path(__file__).parents[1] / "helpers"
GOLDEN = Path(__file__).parents[1] / "golden"
X, Y = make_problem(0, "weights", n_rows=200, n_features=20, n_labels=8)
TAGS = [[f"é{k}" for k in np.flatnonzero(row)] for row in Y]


def fuzz(tmp_path, data, count, seed=0):
    """Run the fuzzer in a process of its own; it must end well."""
    path = tmp_path / "good.ldsm"
    path.write_bytes(data)
    program = HELPERS / "fuzz_model.py"
    command = [sys.executable, "-W", "error", str(program), str(path), str(count), str(seed)]
    run = patience.run(command, seconds=3600)
    assert run.returncode == 0, (run.returncode, run.stderr[-2000:])
    report = json.loads(run.stdout)
    assert report["events"] == []
    assert report["slowest"] < 5
    if os.environ.get("LDSM_SANITIZER") != "address":  # which keeps what is freed, to watch it
        assert report["memory"] <= 1.2 * len(data) + (50 << 20)
    assert report["flips"] == {"refused": count}
    for part in ("verified mutants", "mapped mutants"):
        assert report[part]["refused"] > 0.3 * count and report[part]["answered"] > 0.01 * count
    return report


# A tail stage is not compressed unless asked, a linear one is unless asked not to.
KINDS = [
    pytest.param("trees", marks=pytest.mark.long),
    *("trees, linear", "standardised, linear", "text, tail", "text, tail, compressed"),
    "all parts",
    "embeddings",
]


@pytest.fixture(scope="module", params=KINDS)
def plain(request, tmp_path_factory):
    """Files of a few dozen kB, without feature names, that the fuzzer can predict with."""
    if golden := {"all parts": "tagger", "embeddings": "model"}.get(request.param):
        return (GOLDEN / f"{golden}_v3_parts.ldsm").read_bytes()
    path = tmp_path_factory.mktemp("plain") / "m.ldsm"
    form, rerank, compressed = (*request.param.split(", "), None, None)[:3]
    clf = LdSMClassifier(n_estimators=3, random_state=3, max_nodes=31, rerank=rerank)
    clf.set_params(standardize=form == "standardised", min_split_labels=1)
    clf.set_params(compress=True if compressed else "auto")
    if form == "text":
        words = np.array(["cod", "herring", "beef", "pork", "pêche", "import", "court", "law"])
        texts = [" ".join(words[row > 0]) for row in X[:, :8]]
        TextTagger(clf, min_tag_count=2).fit(texts, TAGS).save(path)
    else:
        clf.fit(X, TAGS).save(path)
    return path.read_bytes()


@pytest.mark.linux
def test_flipped_bytes_and_mutants(tmp_path, plain):
    fuzz(tmp_path, plain, 100)


@pytest.mark.linux
@pytest.mark.long
def test_ten_thousand_of_each(tmp_path, plain):
    fuzz(tmp_path, plain, 10_000, seed=1)


LOAD = """
import sys
sys.path.append(sys.argv[2])
from ldsm import load
from process_memory import now_bytes, peak_bytes
before = now_bytes()
clf = load(sys.argv[1])
print(peak_bytes() - before)
"""


@pytest.mark.linux
@pytest.mark.parametrize("compress", [pytest.param(False, marks=pytest.mark.long), True])
def test_loading_memory_is_bounded(tmp_path, compress):
    clf = LdSMClassifier(n_estimators=3, random_state=3, compress=compress).fit(X, Y)
    assert clf.forest_.is_compressed == compress
    while clf.forest_.nbytes < 60 << 20:
        clf.model_ = replace(clf.model_, forest=clf.forest_.extended(clf.forest_))
    path = tmp_path / "m.ldsm"
    clf.save(path)
    command = [sys.executable, "-c", LOAD, str(path), str(HELPERS)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    limit = 1.2 * os.path.getsize(path) + (50 << 20)
    assert clf.forest_.nbytes < int(run.stdout) <= limit
