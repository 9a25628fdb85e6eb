"""Model files: what is saved comes back, bit for bit, and saving leaves the old file or the new."""

import json
import os
import pickle
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import scipy.sparse as sp
from safetensors import safe_open
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ldsm import LdSMClassifier, load
from ldsm._model.saved_form import model_to_state
from ldsm._storage import container as model_file
from ldsm._storage.container_header import FORMAT_VERSION, make_prefix
from ldsm.datasets import Dataset
from model_bytes import checksum, put_together, take_apart
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
        assert type(a) is type(b)
        if isinstance(a, list):
            assert a == b
            continue
        assert a.dtype == b.dtype
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
def test_label_forms_round_trip(tmp_path, y, verify):
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
def test_tree_kinds_round_trip(tmp_path, changes):
    clf = small(**changes).fit(XS, lists_of(NAMES))
    clf.save(tmp_path / "m.ldsm")
    for verify in (True, False):
        same(clf, load(tmp_path / "m.ldsm", verify))


def test_names_round_trip(tmp_path):
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
    ],
)
def test_unsupported_labels_refused_at_save(tmp_path, names, message):
    clf = small().fit(XS, lists_of(names))
    with pytest.raises(ValueError, match=message):
        clf.save(tmp_path / "m.ldsm")
    floats = small().fit(XS, np.argmax(Y, axis=1).astype(float))
    with pytest.raises(ValueError, match="Got 0.0"):
        floats.save(tmp_path / "m.ldsm")
    assert os.listdir(tmp_path) == []


def test_unloadable_models_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        small().save(tmp_path / "m.ldsm")
    with pytest.raises(ValueError, match="'arity' parameter"):
        small().fit(XS, YS).set_params(arity=99).save(tmp_path / "m.ldsm")
    with pytest.raises(ValueError, match="Labels must be unique"):
        small().fit(Dataset(XS, YS, label_names=["a"] * 8)).save(tmp_path / "m.ldsm")
    clf = small().fit(XS, YS)
    clf.training_ = {**clf.training_, "metrics": {"P@1": object()}}
    with pytest.raises(ValueError, match="'training' cannot be stored"):
        clf.save(tmp_path / "m.ldsm")
    clf = small().fit(XS, YS)
    forest = replace(clf.forest_, node_rows=-clf.forest_.node_rows)
    clf.model_ = replace(clf.model_, forest=forest)
    with pytest.raises(ValueError, match="node 0 of tree 0: "):
        clf.save(tmp_path / "m.ldsm")
    assert os.listdir(tmp_path) == []


def test_loaded_model_can_be_refitted(tmp_path):
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


def test_training_summary(tmp_path):
    clf = small().fit(XS, YS)
    clf.training_ = {**clf.training_, "metrics": {"P@1": 0.75}}
    clf.save(tmp_path / "m.ldsm")
    summary = load(tmp_path / "m.ldsm").training_
    assert summary == clf.training_
    assert summary["rows"] == 200 and summary["seed"] == clf.model_.seed and summary["seconds"] >= 0
    same_data, other_data = small(random_state=9).fit(X, YS), small().fit(XS * 2, YS)
    assert same_data.training_["data_fingerprint"] == summary["data_fingerprint"]
    assert other_data.training_["data_fingerprint"] != summary["data_fingerprint"]


@pytest.mark.parametrize(
    "changes",
    [{}, {"standardize": True}, {"rerank": "linear", "arity": 3, "min_split_labels": 1}],
)
def test_compressed_models(tmp_path, changes):
    exact, rounded = (small(compress=c, **changes).fit(XS, YS) for c in (False, True))
    for clf, name in ((exact, "exact.ldsm"), (rounded, "rounded.ldsm")):
        clf.save(tmp_path / name)
        for verify in (True, False):
            same(clf, load(tmp_path / name, verify))
    # A weight takes a byte instead of four, and so does the number of its feature.
    saved = 3 / 4 * (exact.forest_.weights.nbytes + exact.forest_.weight_features.nbytes)
    sizes = [os.path.getsize(tmp_path / name) for name in ("exact.ldsm", "rounded.ldsm")]
    assert sizes[0] - sizes[1] > 0.9 * saved
    forest = load(tmp_path / "rounded.ldsm").forest_
    assert (forest.weights.dtype, forest.weight_features.dtype) == (np.int8, np.uint8)
    assert exact.forest_.weights.dtype == np.float32 and not len(exact.forest_.weight_units)
    # Both learn the same root, but for the rounding; below it, their rows part.
    (features, weights), (its_features, its_weights) = (
        clf.forest_.node_weights(0) for clf in (exact, rounded)
    )
    assert np.array_equal(features, its_features)
    assert 0 < np.abs(weights - its_weights).max() <= 0.501 * forest.weight_units[0]
    # What was rounded once stays: saved again, it is the same file.
    load(tmp_path / "rounded.ldsm").save(tmp_path / "again.ldsm")
    assert (tmp_path / "again.ldsm").read_bytes() == (tmp_path / "rounded.ldsm").read_bytes()


def test_file_holds_no_training_row(tmp_path):
    """A value that one row has, and no other, leaves no trace; nor do its neighbours' values."""
    for standardize in (False, True):
        canary = np.float32(0.123456789)
        rows = X.copy()
        rows[17, 4] = canary
        for y in (YS, lists_of(NAMES)):
            small(standardize=standardize, subsample=0.9).fit(rows, y).save(tmp_path / "m.ldsm")
            data = (tmp_path / "m.ldsm").read_bytes()
            for form in (canary, np.float64(canary), np.float64("0.123456789")):
                assert form.tobytes() not in data
            assert b"0.12345" not in data
            # Any two bytes may occur by chance, for example in the time of training.
            for array in safetensors.numpy.load(data).values():
                assert array.dtype != np.float16 or np.float16(canary) not in array


# -- the container -----------------------------------------------------------------------------


def test_safetensors_compatibility(tmp_path):
    clf = small().fit(XS, lists_of(NAMES))
    clf.save(tmp_path / "m.ldsm")
    _, arrays = model_to_state(clf.model_, clf.get_params())
    with safe_open(tmp_path / "m.ldsm", framework="np") as file:
        assert set(file.keys()) == {*arrays, "checksum"}
        for name, array in arrays.items():
            stored = file.get_tensor(name)
            assert stored.dtype == array.dtype and np.array_equal(stored, array, equal_nan=True)
        facts = file.metadata()
    assert facts["format"] == "ldsm" and facts["format_version"] == str(FORMAT_VERSION)
    assert facts["kind"] == "LdSMClassifier"
    assert json.loads(facts["parameters"]) == clf.get_params()
    assert bytes(arrays["labels.text"]) == "".join(sorted(NAMES)).encode()


def test_documented_checksum(tmp_path):
    big = {"a": np.arange(3 << 20), "b": np.ones((5, 2), np.float16), "c": np.empty((0, 3), "f4")}
    model_file.write(tmp_path / "m.ldsm", {"kind": "test", "facts": [1, None, "ü"]}, big)
    data = (tmp_path / "m.ldsm").read_bytes()
    assert len(data) > 5 * model_file.CHUNK_BYTES and data[-32:] == checksum(data[:-32])
    assert take_apart(data)[0]["__metadata__"]["facts"] == '[1, null, "ü"]'
    for verify in (True, False):
        header, arrays = model_file.read(tmp_path / "m.ldsm", verify)
        assert header["facts"] == [1, None, "ü"] and header["format_version"] == FORMAT_VERSION
        assert arrays.keys() == big.keys()
        for name, array in arrays.items():
            assert array.dtype == big[name].dtype and np.array_equal(array, big[name])
            assert not array.flags.writeable and array.flags.aligned


def test_array_orders_and_types(tmp_path):
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


@pytest.mark.linux
def test_unverified_load_reads_little(tmp_path):
    """A model of 1 GB, nearly all of it a hole in the file: opened and asked in milliseconds.

    The hole is the weights of a node that no row asks for.
    """
    clf = small(n_estimators=1, max_nodes=3).fit(XS, YS)
    header, arrays = model_to_state(clf.model_, clf.get_params())
    n_entries, holes = (1 << 30) // 12, {}
    own = len(arrays["forest.weights"])
    for name, shape in (("weight_features", n_entries), ("weights", (n_entries, 2))):
        root = arrays[f"forest.{name}"]
        holes[name] = np.zeros(shape, root.dtype)  # zeros are not yet memory
        holes[name][:own] = root
        arrays[f"forest.{name}"] = holes[name]
    arrays["forest.weight_offsets"] = np.array([0, own, n_entries, n_entries])
    prefix = make_prefix({"kind": "LdSMClassifier", **header}, arrays)
    path = tmp_path / "large.ldsm"
    with open(path, "wb") as file:
        file.write(prefix)
        described, _ = take_apart(prefix + bytes(32))
        for name, array in arrays.items():
            file.seek(len(prefix) + described[name]["data_offsets"][0])
            file.write(array[: 1 << 10].tobytes())
        file.truncate(len(prefix) + described["checksum"]["data_offsets"][1])
    assert os.path.getsize(path) > 1 << 30
    opened = load(path, verify=False)
    opened.predict_topk(XS[:1], k=1)
    # Of a thousand megabytes, only those are read that the prediction needs.
    assert 0 < mapped_bytes(path) < 30 << 20


# -- old files ---------------------------------------------------------------------------------

# Made once, by the code of that time. Those named "parts" have every part that the format knows
# and have learned rows after their training. In format 3 the classifier has embeddings and hashes
# of learned rows, and the tagger has dropped tags.
GOLDEN_FILES = ("model_v1", "tagger_v1", "model_v2", "tagger_v2", "tagger_v2_parts")
GOLDEN_FILES += ("model_v3_parts", "tagger_v3_parts")


def in_hex(answers):
    return [[[tag, score.hex()] for tag, score in answer] for answer in answers]


def golden(name):
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


def check_classifier(name, verify):
    known, clf = golden(name), load(GOLDEN / f"{name}.ldsm", verify)
    dense = {"embeddings": known["embeddings"]} if "embeddings" in known else {}
    labels, scores = clf.predict_topk(known["X"], k=4, **dense)
    assert labels.tolist() == known["labels"]
    assert [[float(score).hex() for score in row] for row in scores] == known["scores"]
    sets = clf.predict(known["X"], **dense)
    sets = [np.isin(clf.classes_, row).astype(int).tolist() for row in sets]
    assert sets == known["sets"]


def check_tagger(name, verify):
    known, tagger = golden(name), load(GOLDEN / f"{name}.ldsm", verify)
    assert tagger.vectorizer_.get_feature_names_out().tolist() == known["words"]
    assert [float(idf).hex() for idf in tagger.vectorizer_.idf_] == known["idf"]
    assert tagger.rare_tags_ == known["rare_tags"]
    assert in_hex(tagger.predict(known["texts"], k=4)) == known["tags"]
    assert in_hex(tagger.predict_sets(known["texts"])) == known["sets"]


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("name", GOLDEN_FILES)
def test_golden_files_same_bits(name, verify):
    (check_classifier if name.startswith("model") else check_tagger)(name, verify)


@pytest.mark.parametrize("name", GOLDEN_FILES)
def test_golden_fingerprints(name):
    assert load(GOLDEN / f"{name}.ldsm").fingerprint_ == golden(name)["fingerprint"]


def test_format_2_files():
    """Compressed, with an index, and small."""
    for name in ("model_v2", "tagger_v2"):
        path = GOLDEN / f"{name}.ldsm"
        clf = load(path)
        clf = getattr(clf, "classifier_", clf)
        assert clf.forest_.is_compressed and clf.second_stage_.blend.kind == "linear+index"
        assert clf.second_stage_.ranker.weights.dtype == np.int8
        assert os.path.getsize(path) < 60_000
        header, _ = take_apart(path.read_bytes())
        assert header["__metadata__"]["format_version"] == "2"


def test_file_with_all_parts():
    path = GOLDEN / "tagger_v2_parts.ldsm"
    tagger = load(path)
    stage = tagger.classifier_.second_stage_
    parts = set(stage.parts)
    assert parts == {"ranker", "index", "sub_index", "names", "centroids"}
    assert stage.masses is not None and stage.tested is not None and stage.blend.count_share < 1
    assert stage.blend.unseen and (tagger.classifier_.label_counts_ == 0).any()
    assert len(stage.names.text_offsets) > len(tagger.classes_) + 1  # names of their own
    header, _ = take_apart(path.read_bytes())
    assert header["pairs.first"]["shape"][0] > 0
    assert {"sub_words.idf", "titled_tags.text", "thresholds"} <= header.keys()
    assert tagger.rare_tags_ and tagger.classifier_.training_["history"][0]["learned"] == 30
    assert os.path.getsize(path) < 160_000


@pytest.mark.parametrize("rerank", [None, "linear", "tail"])
@pytest.mark.parametrize("verify", [True, False])
def test_format_1_half_floats(tmp_path, rerank, verify):
    """Format 1 could round weights so, and lacked the arrays and entries of later formats."""
    clf = small(rerank=rerank, compress=False).fit(XS, YS)
    if rerank == "linear":  # format 1 had no index
        stage = clf.second_stage_
        blend = replace(stage.blend, kind="linear", coefficients=stage.blend.coefficients[:10])
        stage = replace(stage, blend=blend, length=100, parts={"ranker": stage.ranker})
        clf.model_ = replace(clf.model_, second_stage=stage)
    header, arrays = model_to_state(clf.model_, clf.get_params())
    header["kind"] = "LdSMClassifier"
    old = {name: array for name, array in arrays.items() if not name.endswith("units")}
    for name in [name for name in arrays if name.endswith(".weights")]:
        old[name] = arrays[name].astype(np.float16)
        arrays[name] = old[name].astype(np.float32)
    if rerank is not None:
        header["model"]["second_stage"]["length"] = 100
    model_file.write(tmp_path / "new.ldsm", header, arrays)
    for entries, name in [
        (header["parameters"], "compress"),
        (header["parameters"], "min_split_labels"),
        (header["model"]["tree_params"], "compress"),
        (header["model"]["tree_params"], "min_split_labels"),
        (header["model"]["tree_params"], "prune_share"),
        (header["model"]["second_stage"] or {}, "length"),
    ]:
        entries.pop(name, None)
    model_file.write(tmp_path / "old.ldsm", header, old)
    described, body = take_apart((tmp_path / "old.ldsm").read_bytes())
    described["__metadata__"]["format_version"] = "1"
    (tmp_path / "old.ldsm").write_bytes(put_together(described, body))
    again = load(tmp_path / "old.ldsm", verify)
    assert again.forest_.weights.dtype == np.float32
    same(load(tmp_path / "new.ldsm", verify), again.set_params(compress=False))
    again.save(tmp_path / "again.ldsm")
    same(again, load(tmp_path / "again.ldsm", verify))
