"""Model files: what is saved comes back, bit for bit, and saving leaves the old file or the new."""

from __future__ import annotations

import json
import os
import pickle
import time
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from safetensors import safe_open
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ldsm import LdSMClassifier, load
from ldsm._model.saved_form import model_to_state
from ldsm._storage import container as model_file
from ldsm._storage.container_header import make_prefix
from ldsm.datasets import Dataset
from model_bytes import checksum, take_apart
from problems import make_problem
from process_memory import mapped_bytes

GOLDEN = Path(__file__).parents[1] / "golden"
X, Y = make_problem(0, "weights", n_rows=200, n_features=30, n_labels=8)
XS, YS = sp.csr_array(X), sp.csr_array(Y)
NAMES = ["a", "b c", "économie", "право", "法律", "🐟", "", " x"]


def small(**changes):
    return LdSMClassifier(**{"n_estimators": 3, "random_state": 3, **changes})


def lists_of(names):
    return [[names[k] for k in np.flatnonzero(row)] for row in Y]


def same(one, other, X=XS):
    """The same model: fingerprint, every bit of the answers, and all that fit had learned."""
    assert one.fingerprint_ == other.fingerprint_
    assert one.get_params() == other.get_params()
    (labels, scores), (its_labels, its_scores) = (
        clf.predict_topk(X, k=min(3, len(one.classes_))) for clf in (one, other)
    )
    assert labels.dtype == its_labels.dtype and labels.tolist() == its_labels.tolist()
    assert list(map(type, labels.ravel().tolist())) == list(map(type, its_labels.ravel().tolist()))
    assert scores.tobytes() == its_scores.tobytes()
    for method in ("predict_proba", "predict"):
        a, b = getattr(one, method)(X), getattr(other, method)(X)
        assert type(a) is type(b) and a.dtype == b.dtype
        a, b = (m.toarray() if sp.issparse(m) else m for m in (a, b))
        assert a.tolist() == b.tolist()
    # What fit sets and save forgets would be missing here; the scores of training rows should be.
    assert vars(one).keys() - {"oob_scores_"} == vars(other).keys()


# -- there and back ----------------------------------------------------------------------------


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(
    "y",
    [
        YS,
        Y,
        lists_of(NAMES),
        lists_of([10 * i - 20 for i in range(8)]),
        lists_of([True, 5, "five", False, -3, "5", 10**30, "True"]),  # mixed kinds, an object array
        np.array(NAMES)[np.argmax(Y, axis=1)],
        np.argmax(Y, axis=1).astype(np.uint8) * 30,
        Y[:, 0] == 1,
        Y[:, 0].astype(np.int8) - 1,
    ],
    ids=["sparse", "dense", "str", "int", "mixed", "one str", "one uint8", "one bool", "one int8"],
)
def test_every_form_of_labels_comes_back(tmp_path, y, verify):
    clf = small().fit(XS, y)
    clf.save(tmp_path / "m.ldsm")
    same(clf, load(tmp_path / "m.ldsm", verify))


@pytest.mark.parametrize(
    "changes",
    [
        {"arity": 3, "standardize": True},
        {"arity": 8, "leaf_scores": "histogram"},
        {"subsample": 0.5, "optimizer": "nag", "n_epochs": 2},
        {"max_nodes": 1},
        {
            "random_state": np.int64(3),
            "n_estimators": np.int32(2),
            "learning_rate": np.float32(0.5),
        },
    ],
)
def test_every_kind_of_tree_comes_back(tmp_path, changes):
    clf = small(**changes).fit(XS, lists_of(NAMES))
    clf.save(tmp_path / "m.ldsm")
    for verify in (True, False):
        same(clf, load(tmp_path / "m.ldsm", verify))


def test_names_of_a_dataset_and_of_features_come_back(tmp_path):
    clf = small().fit(Dataset(XS, YS, label_names=NAMES))
    clf.save(tmp_path / "m.ldsm")
    same(clf, load(tmp_path / "m.ldsm"))
    frame = pd.DataFrame(X, columns=[f"größe {i}" for i in range(30)])
    clf = small().fit(frame, YS).tune_threshold(frame, YS, per_label=True)
    clf.save(tmp_path / "m.ldsm")
    again = load(tmp_path / "m.ldsm")
    same(clf, again, frame)
    assert again.feature_names_in_.tolist() == list(frame.columns)
    assert again.threshold_.dtype == np.float32
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(frame[frame.columns[::-1]])
    clf.tune_threshold(frame, YS).save(tmp_path / "m.ldsm")
    assert load(tmp_path / "m.ldsm").threshold_ == clf.threshold_ != 0.5


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([("a", i) for i in range(8)], r"str, int or bool to be saved. Got \('a', "),
        ([frozenset([i]) for i in range(8)], "str, int or bool to be saved. Got frozenset"),
        ([b"x", *"abcdefg"], "Got b'x'"),
        (["\ud800", *"abcdefg"], "lone surrogate"),
    ],
)
def test_other_labels_are_refused_at_save(tmp_path, names, message):
    clf = small().fit(XS, lists_of(names))
    with pytest.raises(ValueError, match=message):
        clf.save(tmp_path / "m.ldsm")
    floats = small().fit(XS, np.argmax(Y, axis=1).astype(float))
    with pytest.raises(ValueError, match="Got 0.0"):
        floats.save(tmp_path / "m.ldsm")
    assert os.listdir(tmp_path) == []


def test_what_would_not_load_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        small().save(tmp_path / "m.ldsm")
    with pytest.raises(ValueError, match="'arity' parameter"):
        small().fit(XS, YS).set_params(arity=99).save(tmp_path / "m.ldsm")
    with pytest.raises(ValueError, match="Labels must be unique"):
        small().fit(Dataset(XS, YS, label_names=["a"] * 8)).save(tmp_path / "m.ldsm")
    clf = small().fit(XS, YS)
    clf.training_["metrics"] = {"P@1": object()}
    with pytest.raises(ValueError, match="'training' cannot be stored"):
        clf.save(tmp_path / "m.ldsm")
    clf = small().fit(XS, YS)
    forest = replace(clf.forest_, node_rows=-clf.forest_.node_rows)
    clf.model_ = replace(clf.model_, forest=forest)
    with pytest.raises(ValueError, match="node 0 of tree 0: "):
        clf.save(tmp_path / "m.ldsm")
    assert os.listdir(tmp_path) == []


def test_a_loaded_model_is_like_a_fitted_one(tmp_path):
    clf = small(subsample=0.7, warm_start=True, random_state=np.random.RandomState(5)).fit(XS, YS)
    clf.save(tmp_path / "m.ldsm")
    cold = small(subsample=0.7, n_estimators=6, random_state=5).fit(XS, YS)
    for verify in (True, False):
        again = load(tmp_path / "m.ldsm", verify)
        assert again.random_state is None and not hasattr(again, "oob_scores_")
        assert clone(again).get_params() == again.get_params()
        assert pickle.loads(pickle.dumps(again)).fingerprint_ == clf.fingerprint_
        joblib.dump(again, tmp_path / "m.joblib")
        assert joblib.load(tmp_path / "m.joblib").fingerprint_ == clf.fingerprint_
        again.set_params(n_estimators=6).fit(XS, YS)
        assert again.fingerprint_ == cold.fingerprint_
        assert np.array_equal(again.oob_scores_.toarray(), cold.oob_scores_.toarray())
        assert again.explain(X[0])[0].tree == 0
    assert again.set_params(warm_start=False, random_state=8).fit(XS, YS).forest_.n_trees == 6


def test_the_training_is_summarised(tmp_path):
    clf = small().fit(XS, YS)
    clf.training_["metrics"] = {"P@1": 0.75}
    clf.save(tmp_path / "m.ldsm")
    summary = load(tmp_path / "m.ldsm").training_
    assert summary == clf.training_
    assert summary["rows"] == 200 and summary["seed"] == clf.model_.seed and summary["seconds"] >= 0
    same_data, other_data = small(random_state=9).fit(X, YS), small().fit(XS * 2, YS)
    assert same_data.training_["data_fingerprint"] == summary["data_fingerprint"]
    assert other_data.training_["data_fingerprint"] != summary["data_fingerprint"]


def test_compressed_weights(tmp_path):
    clf = small().fit(XS, YS)
    clf.save(tmp_path / "full.ldsm")
    clf.save(tmp_path / "half.ldsm", compress=True)
    n_weights = clf.forest_.weights.size
    sizes = [os.path.getsize(tmp_path / name) for name in ("full.ldsm", "half.ldsm")]
    assert abs(sizes[0] - sizes[1] - 2 * n_weights) < 64
    half = load(tmp_path / "half.ldsm")
    assert half.forest_.weights.dtype == np.float32
    expected = clf.forest_.weights.astype(np.float16).astype(np.float32)
    assert np.array_equal(half.forest_.weights, expected)
    # What was rounded once stays: saved again, in either way, it is the same model.
    for compress in (True, False):
        half.save(tmp_path / "again.ldsm", compress=compress)
        for verify in (True, False):
            same(half, load(tmp_path / "again.ldsm", verify))
    # A weight that float16 cannot hold keeps all of them as they are.
    weights = clf.forest_.weights.copy()
    weights[0, 0] = 70000
    clf.model_ = replace(clf.model_, forest=replace(clf.forest_, weights=weights))
    clf.save(tmp_path / "large.ldsm", compress=True)
    same(clf, load(tmp_path / "large.ldsm"))


def test_no_training_row_is_in_the_file(tmp_path):
    """A value that one row has, and no other, leaves no trace; nor do its neighbours' values."""
    for standardize in (False, True):
        canary = np.float32(0.123456789)
        rows = X.copy()
        rows[17, 4] = canary
        for y in (YS, lists_of(NAMES)):
            small(standardize=standardize, subsample=0.9).fit(rows, y).save(tmp_path / "m.ldsm")
            data = (tmp_path / "m.ldsm").read_bytes()
            for form in (canary, np.float64(canary), np.float16(canary), np.float64("0.123456789")):
                assert form.tobytes() not in data
            assert b"0.12345" not in data


# -- the container -----------------------------------------------------------------------------


def test_any_safetensors_program_can_open_it(tmp_path):
    clf = small().fit(XS, lists_of(NAMES))
    clf.save(tmp_path / "m.ldsm")
    _, arrays = model_to_state(clf.model_, clf.get_params())
    with safe_open(tmp_path / "m.ldsm", framework="np") as file:
        assert set(file.keys()) == {*arrays, "checksum"}
        for name, array in arrays.items():
            stored = file.get_tensor(name)
            assert stored.dtype == array.dtype and np.array_equal(stored, array, equal_nan=True)
        facts = file.metadata()
    assert facts["format"] == "ldsm" and facts["format_version"] == "1"
    assert facts["kind"] == "LdSMClassifier"
    assert json.loads(facts["parameters"]) == clf.get_params()
    assert bytes(arrays["labels.text"]) == "".join(sorted(NAMES)).encode()


def test_the_checksum_is_as_documented(tmp_path):
    big = {"a": np.arange(3 << 20), "b": np.ones((5, 2), np.float16), "c": np.empty((0, 3), "f4")}
    model_file.write(tmp_path / "m.ldsm", {"kind": "test", "facts": [1, None, "ü"]}, big)
    data = (tmp_path / "m.ldsm").read_bytes()
    assert len(data) > 5 * model_file.CHUNK_BYTES and data[-32:] == checksum(data[:-32])
    assert take_apart(data)[0]["__metadata__"]["facts"] == '[1, null, "ü"]'
    for verify in (True, False):
        header, arrays = model_file.read(tmp_path / "m.ldsm", verify)
        assert header["facts"] == [1, None, "ü"] and header["format_version"] == 1
        assert arrays.keys() == big.keys()
        for name, array in arrays.items():
            assert array.dtype == big[name].dtype and np.array_equal(array, big[name])
            assert not array.flags.writeable and array.flags.aligned


def test_arrays_of_any_order_are_stored_and_odd_ones_refused(tmp_path):
    path = tmp_path / "m.ldsm"
    turned = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    model_file.write(path, {"kind": "test"}, {"a": turned, "b": np.arange(9, dtype=">i4")[::2]})
    _, arrays = model_file.read(path)
    assert np.array_equal(arrays["a"], turned) and arrays["b"].tolist() == [0, 2, 4, 6, 8]
    before = path.read_bytes()
    for name, array in [("a", np.array(["x"])), ("a", np.array([True])), ("checksum", np.ones(1))]:
        with pytest.raises(ValueError, match="cannot be stored"):
            model_file.write(path, {"kind": "test"}, {name: array})
    with pytest.raises(ValueError, match="The header of a model file may have 1048576 bytes"):
        model_file.write(path, {"kind": "test", "long": "x" * 2**20}, {})
    with pytest.raises(ValueError, match="'bad' cannot be stored"):
        model_file.write(path, {"kind": "test", "bad": float("nan")}, {})
    assert path.read_bytes() == before


def test_opening_without_verifying_reads_next_to_nothing(tmp_path):
    """A model of 1 GB, all of it a hole in the file: opened and asked in milliseconds."""
    clf = small(n_estimators=1, max_nodes=3).fit(XS, YS)
    header, arrays = model_to_state(clf.model_, clf.get_params())
    n_entries = (1 << 30) // 12
    arrays["forest.weight_features"] = np.zeros(n_entries, np.int32)  # zeros are not yet memory
    arrays["forest.weights"] = np.zeros((n_entries, 2), np.float32)
    arrays["forest.weight_offsets"] = np.array([0, n_entries, n_entries, n_entries])
    prefix = make_prefix({"kind": "LdSMClassifier", **header}, arrays)
    path = tmp_path / "large.ldsm"
    with open(path, "wb") as file:
        file.write(prefix)
        described, _ = take_apart(prefix + bytes(32))
        for name, array in arrays.items():
            if array.nbytes < 1 << 20:
                file.seek(len(prefix) + described[name]["data_offsets"][0])
                file.write(array.tobytes())
        file.truncate(len(prefix) + described["checksum"]["data_offsets"][1])
    assert os.path.getsize(path) > 1 << 30
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        opened = load(path, verify=False)
        seconds.append(time.perf_counter() - start)
        opened.predict_topk(XS[:1], k=1)
    assert min(seconds) < 0.05
    assert 0 < mapped_bytes(path) < 30 << 20


# -- old files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("verify", [True, False])
def test_a_file_of_format_1_gives_the_same_bits(verify):
    golden = json.loads((GOLDEN / "model_v1.json").read_text(encoding="utf-8"))
    clf = load(GOLDEN / "model_v1.ldsm", verify)
    assert clf.fingerprint_ == golden["fingerprint"]
    labels, scores = clf.predict_topk(golden["X"], k=4)
    assert labels.tolist() == golden["labels"]
    assert [[float(score).hex() for score in row] for row in scores] == golden["scores"]
    assert clf.predict(golden["X"]).toarray().tolist() == golden["sets"]


@pytest.mark.parametrize("verify", [True, False])
def test_a_tagger_of_format_1_gives_the_same_bits(verify):
    golden = json.loads((GOLDEN / "tagger_v1.json").read_text(encoding="utf-8"))
    tagger = load(GOLDEN / "tagger_v1.ldsm", verify)
    assert tagger.fingerprint_ == golden["fingerprint"]
    assert tagger.vectorizer_.get_feature_names_out().tolist() == golden["words"]
    assert [float(idf).hex() for idf in tagger.vectorizer_.idf_] == golden["idf"]
    assert tagger.rare_tags_ == golden["rare_tags"]

    def in_hex(answers):
        return [[[tag, score.hex()] for tag, score in answer] for answer in answers]

    assert in_hex(tagger.predict(golden["texts"], k=4)) == golden["tags"]
    assert in_hex(tagger.predict_sets(golden["texts"])) == golden["sets"]
