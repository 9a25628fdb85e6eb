"""Model files that are wrong in every conceivable way."""

import json
import re
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from damage import become, both, put, refuse, swap
from ldsm import LdSMClassifier, load
from ldsm._model.saved_form import model_to_state
from ldsm._storage import container as model_file
from ldsm._storage.container_header import FORMAT_VERSION
from model_bytes import put_together, seal, take_apart, with_entry
from problems import make_problem

X, Y = make_problem(0, "weights", n_rows=200, n_features=20, n_labels=8)
NAMES = ["économie", "b", "c", "d", "e", "f", "g", "h"]
CLF = LdSMClassifier(n_estimators=3, random_state=3, standardize=True).fit(
    X, [[NAMES[k] for k in np.flatnonzero(row)] for row in Y]
)
CLF.model_ = replace(
    CLF.model_,
    threshold=np.full(8, 0.25, dtype=np.float32),
    feature_names=np.array([f"f{i}" for i in range(20)], dtype=object),
)
HEADER, ARRAYS = model_to_state(CLF.model_, CLF.get_params())
FOREST = CLF.forest_
START = FOREST.tree_offsets[1]  # the second tree's root
SPLITS = np.flatnonzero(FOREST.first_child)
LEAVES = np.flatnonzero(np.diff(FOREST.histogram_offsets) > 1)  # those with several labels


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A good file's bytes."""
    path = tmp_path_factory.mktemp("good") / "m.ldsm"
    CLF.save(path)
    return path.read_bytes()


def written(tmp_path, header, arrays):
    """The path of a file with these arrays."""
    path = tmp_path / "m.ldsm"
    model_file.write(path, {"kind": "LdSMClassifier", **header}, arrays)
    return path


def changed(tmp_path, data):
    """The path of a file with these bytes."""
    path = tmp_path / "bad.ldsm"
    path.write_bytes(data)
    return path


# -- structure: a good checksum over arrays that are no trees ----------------------------------


WEIGHT = FOREST.weight_offsets[SPLITS[1]]  # the second split's first entry
BIN = FOREST.histogram_offsets[LEAVES[2]]
SPLIT = rf"node {SPLITS[1]} of tree 0"
LEAF = rf"node {LEAVES[2]} of tree 0"
ROOT_CHILD = FOREST.first_child[0]

BROKEN = {
    "trees do not begin at 0": (put("forest.tree_offsets", 0, 1), "tree_offsets must go from 0"),
    "trees end early": (put("forest.tree_offsets", -1, 5), "tree_offsets must go from 0"),
    "trees end late": (put("forest.tree_offsets", -1, 2**40), "tree_offsets must go from 0"),
    "a tree without nodes": (put("forest.tree_offsets", 2, START), "tree 1 has no nodes"),
    "trees overlap": (put("forest.tree_offsets", 1, 2**62), "tree 1 has no nodes"),
    "no trees": (
        become("forest.tree_offsets", lambda a: a[:1] * 0),
        "tree_offsets must go from 0|trees",
    ),
    "child beyond the tree": (put("forest.first_child", SPLITS[1], START), SPLIT + ".*outside"),
    "child at the edge": (put("forest.first_child", SPLITS[1], START - 1), SPLIT + ".*outside"),
    "child far away": (put("forest.first_child", 0, 2**31 - 1), "node 0 of tree 0.*outside"),
    "child negative": (put("forest.first_child", SPLITS[1], -2), SPLIT + ".*outside"),
    "its own child": (put("forest.first_child", SPLITS[1], SPLITS[1]), SPLIT + ".*before"),
    "a cycle": (put("forest.first_child", SPLITS[2], 1), "node .* of tree 0.*before"),
    "a cycle in the second tree": (
        put("forest.first_child", SPLITS[SPLITS > START][1], 1),
        "of tree 1.*before",
    ),
    "two parents": (
        put("forest.first_child", SPLITS[1], FOREST.first_child[SPLITS[2]]),
        "of tree 0 has [02] parents",
    ),
    "children that overlap": (
        put("forest.first_child", SPLITS[1], FOREST.first_child[SPLITS[1]] + 1),
        "of tree 0 has [02] parents",
    ),
    "nodes without a parent": (
        both(
            put("forest.first_child", SPLITS[1], 0),
            become("forest.epoch_objective", lambda e: e[1:]),
        ),
        "of tree 0 has 0 parents",
    ),
    "a node too many": (put("forest.tree_offsets", 1, START + 1), "of tree 0"),
    "weights do not begin at 0": (
        put("forest.weight_offsets", 0, 1),
        "weight_offsets must go from 0",
    ),
    "weights end late": (put("forest.weight_offsets", -1, 2**62), "weight_offsets must go from 0"),
    "weight offsets fall": (put("forest.weight_offsets", 3, 2**50), "weight_offsets decrease"),
    "weight offsets negative": (put("forest.weight_offsets", 3, -7), "weight_offsets decrease"),
    "feature negative": (put("forest.weight_features", WEIGHT, -1), SPLIT + r".*in \[0, 21\)"),
    "feature too large": (put("forest.weight_features", WEIGHT, 21), SPLIT + ".*weight_features"),
    "features out of order": (swap("forest.weight_features", WEIGHT), SPLIT + ".*do not rise"),
    "a feature twice": (
        put("forest.weight_features", WEIGHT + 1, FOREST.weight_features[WEIGHT]),
        SPLIT + ".*do not rise",
    ),
    "NaN weight": (put("forest.weights", (WEIGHT, 1), np.nan), SPLIT + ": weights are not finite"),
    "infinite weight": (put("forest.weights", (WEIGHT, 0), -np.inf), SPLIT + ".*not finite"),
    "NaN mean": (put("forest.weight_means", WEIGHT, np.nan), SPLIT + ".*weight_means"),
    "infinite scale": (put("forest.weight_scales", WEIGHT, np.inf), SPLIT + ".*weight_scales"),
    "histograms do not begin": (put("forest.histogram_offsets", 0, -1), "histogram_offsets must"),
    "histograms end early": (
        put("forest.histogram_offsets", -1, 0),
        "histogram_offsets must go from 0",
    ),
    "histogram offsets fall": (
        put("forest.histogram_offsets", LEAVES[2], 2**40),
        "histogram_offsets decrease",
    ),
    "label negative": (put("forest.histogram_labels", BIN, -1), LEAF + ".*histogram_labels"),
    "label too large": (put("forest.histogram_labels", BIN, 8), LEAF + r".*in \[0, 8\)"),
    "labels out of order": (swap("forest.histogram_labels", BIN), LEAF + ".*do not rise"),
    "count zero": (put("forest.histogram_counts", BIN, 0), LEAF + ".*not positive"),
    "count negative": (put("forest.histogram_counts", BIN, -5), LEAF + ".*not positive"),
    "more labels than rows": (
        put("forest.histogram_counts", BIN, 10**6),
        LEAF + ".*than there are",
    ),
    "rows negative": (put("forest.node_rows", 3, -1), "node 3 of tree 0.*rows is negative"),
    "labels of a node negative": (put("forest.node_labels", 4, -1), "node 4 of tree 0"),
    "too many labels of a node": (put("forest.node_labels", 4, 2**63 - 1), "node 4 of tree 0"),
    "too many rows of a node": (put("forest.node_rows", 4, 2**63 - 1), "node 4 of tree 0"),
    "weights of another arity": (
        become("forest.weights", lambda a: np.concatenate([a, a], axis=1)),
        "weights must have the shape",
    ),
    "an array too many": (lambda a: a.update(more=np.ones(3)), "does not know, 'more'"),
    "label counts negative": (put("label_counts", 0, -1), "label_counts has an entry"),
    "the same label twice": (put("labels.text", 0, ord("c")), "entry 1, 'c', occurs twice"),
    "labels not UTF-8": (put("labels.text", -8, 0xFF), "entry 7, .* is not UTF-8"),
    "label offsets fall": (put("labels.offsets", 2, 9), "'labels.offsets' decreases"),
    "label offsets too long": (put("labels.offsets", -1, 99), "'labels.offsets' does not go"),
    "labels of no kind": (put("labels.kinds", 3, 3), "do not fit their number or kinds"),
    "a label that is no int": (put("labels.kinds", 3, 1), "not all of the type str"),
    "a label that is no bool": (put("labels.kinds", 3, 2), "not all of the type str"),
    "feature names missing": (become("feature_names.offsets", lambda a: a[[0, -1]]), "1 feature n"),
    "thresholds NaN": (
        put("thresholds", 0, np.nan),
        "thresholds has an entry that is not a number",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_damaged_forest_arrays(tmp_path, case):
    change, message = BROKEN[case]
    arrays = dict(ARRAYS)
    change(arrays)
    path = written(tmp_path, HEADER, arrays)
    refuse(path, message)
    # Unverified, it is refused as well, or answers, or says at predict what is wrong.
    with suppress(ValueError):
        clf = load(path, verify=False)
        rows = sp.csr_array(X)
        clf.model_ = replace(clf.model_, feature_names=None)
        clf.predict_topk(rows, k=3), clf.predict_proba(rows), clf.predict(rows)
        clf.decision_path(rows), clf.explain(rows[:1])


@pytest.mark.parametrize("case", [case for case in BROKEN if "child" in case or "parent" in case])
def test_cycles_refused_without_verifying(tmp_path, case):
    """With two parents to a node, a row's ways could double at every level."""
    arrays = dict(ARRAYS)
    BROKEN[case][0](arrays)
    refuse(written(tmp_path, HEADER, arrays), BROKEN[case][1], verify=False)


def test_explain_reports_damage(tmp_path):
    """What the router need not read, in a file that was opened unverified."""
    clf = LdSMClassifier(n_estimators=1, random_state=3, standardize=False).fit(X, Y)
    header, arrays = model_to_state(clf.model_, clf.get_params())
    row = sp.csr_array(X[:1] * (np.arange(20) == 7))  # so short that features are searched for
    leaf = clf.forest_.tree_offsets[0] + clf.explain(row)[0].leaves[0].node
    first, last = clf.forest_.histogram_offsets[leaf : leaf + 2]
    assert first < last
    for change, message in [
        (put("forest.weight_features", 0, 21), "a feature number is out of range"),
        (put("forest.weight_features", 0, -1), "a feature number is out of range"),
        (put("forest.histogram_labels", first, 8), "a label number is out of range"),
        (put("forest.histogram_labels", first, -1), "a label number is out of range"),
        (put("forest.histogram_offsets", leaf, 2**40), "its histogram lies outside"),
        (put("forest.histogram_offsets", leaf, -9), "its histogram lies outside"),
        (put("forest.node_rows", leaf, 0), "it has labels but no rows"),
    ]:
        other = dict(arrays)
        change(other)
        path = written(tmp_path, header, other)
        with pytest.raises(ValueError, match=f"The forest is damaged at node .*{message}"):
            load(path, verify=False).explain(row)
    # Weights that are no numbers are answered with, as by the router.
    other = {**arrays, "forest.weights": arrays["forest.weights"] * np.float32(np.nan)}
    assert load(written(tmp_path, header, other), verify=False).explain(row)[0].leaves


def test_all_trees_are_checked(tmp_path):
    """The same faults in the last tree of a forest that is checked in several blocks."""
    clf = LdSMClassifier(n_estimators=3, random_state=3).fit(X, Y)
    while len(clf.forest_.weight_features) < 600_000:
        clf.model_ = replace(clf.model_, forest=clf.forest_.extended(clf.forest_))
    header, arrays = model_to_state(clf.model_, clf.get_params())
    forest, tree = clf.forest_, clf.forest_.n_trees - 1
    last = int(np.flatnonzero(forest.first_child)[-1])
    entry, leaf = forest.weight_offsets[last], forest.n_nodes - 1
    where = rf"node {last - forest.tree_offsets[-2]} of tree {tree}"
    for change, message in [
        (put("forest.first_child", last, 1), where),
        (put("forest.first_child", last, 2**31 - 1), where),
        (put("forest.weights", (entry, 0), np.nan), where),
        (put("forest.weight_features", entry, 21), where),
        (swap("forest.weight_features", entry), where),
        (put("forest.histogram_counts", -1, 0), f"of tree {tree}"),
        (put("forest.node_rows", leaf, -1), f"of tree {tree}"),
    ]:
        other = dict(arrays)
        change(other)
        refuse(written(tmp_path, header, other), message)


# -- headers ------------------------------------------------------------------------------------


def entry(name, **changes):
    return lambda data: with_entry(data, name, lambda value: value.update(changes))


def without(name, key):
    return lambda data: with_entry(data, name, lambda value: value.pop(key) and None)


def tensor(name, **changes):
    def change(data):
        header, body = take_apart(data)
        header[name].update(changes)
        return put_together(header, body)

    return change


def facts(**changes):
    return tensor("__metadata__", **changes)


def raw(change):
    """Edit the text of the header."""

    def changed(data):
        header, body = take_apart(data)
        return put_together(change(json.dumps(header).encode()), body)

    return changed


def tree_param(**changes):
    return lambda data: with_entry(data, "model", lambda m: m["tree_params"].update(changes))


HEADERS = {
    "empty": (lambda data: b"", "it has 0 bytes"),
    "short": (lambda data: data[:12], "it has 12 bytes"),
    "not safetensors": (lambda data: b"PK\3\4" + data, "does not begin like a safetensors"),
    "a pickle": (lambda data: b"\x80\x04\x95" + data, "does not begin like a safetensors"),
    "an enormous header": (lambda data: b"\xff" * 7 + b"\x7f" + data[8:], "does not begin like"),
    "a header of 2 MB": (lambda data: (2 << 20).to_bytes(8, "little") + data[8:], "does not begin"),
    "cut off in the header": (lambda data: data[:500], "cut off within its header"),
    "cut off in an array": (lambda data: data[:-1000], "it was cut off: "),
    "cut off before the checksum": (lambda data: data[:-32], "it was cut off: "),
    "longer": (lambda data: data + b"\0", "1 bytes more than its header says"),
    "altered": (lambda data: data[:-100] + b"!" + data[-99:], "checksum does not match"),
    "another checksum": (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "checksum does not match"),
    "no JSON": (raw(lambda text: b"{" + text), "not valid JSON"),
    "JSON of brackets": (raw(lambda text: b"{" + b'"a":[' * 50_000), "not valid JSON"),
    "JSON of a list": (raw(lambda text: b"{}"), "does not say so"),
    "JSON with a long number": (
        raw(lambda text: b'{"a":' + b"9" * 10**6 + b"}"),
        "number is too lo",
    ),
    "JSON with a name twice": (raw(lambda text: text[:-1] + b',"checksum":1}'), "occurs twice"),
    "JSON with NaN": (raw(lambda text: text[:-1] + b',"x":NaN}'), "NaN is not a number"),
    "not UTF-8": (raw(lambda text: text.replace(b"ldsm", b"\xff\xfe")), "not valid JSON"),
    "another format": (facts(format="pt"), "not a model file of ldsm"),
    "newer": (
        facts(format_version=str(FORMAT_VERSION + 1), library_version="9.1"),
        "newer version of ldsm .'9.1'.*upg",
    ),
    "much newer": (facts(format_version="123456789"), "newer version of ldsm"),
    "no version": (facts(format_version="one"), "no format version, but 'one'"),
    "version 0": (facts(format_version="0"), "format version 0 does not exist"),
    "not text": (facts(training=3), "something other than text"),
    "unknown kind": (facts(kind="os.system"), "kind of model .* does not know, 'os.system'"),
    "model is no JSON": (facts(model="{"), "not valid JSON"),
    "model is a list": (facts(model="[]"), "no proper entry 'model'"),
    "deep parameters": (facts(parameters="[" * 900 + "]" * 900), "no proper entry 'parameters'"),
    "unknown type": (tensor("label_counts", dtype="C64"), "'label_counts' has an unknown type"),
    "type of another width": (tensor("label_counts", dtype="I32"), "takes 64 bytes, but its shape"),
    "size is text": (tensor("label_counts", shape="8"), "a size that is not a number"),
    "size negative": (tensor("label_counts", shape=[-8]), "a size that is not a number"),
    "size true": (tensor("label_counts", shape=[True]), "a size that is not a number"),
    "size enormous": (tensor("label_counts", shape=[2**61]), "its shape needs"),
    "three dimensions": (tensor("label_counts", shape=[2, 2, 2]), "wrong number of dimensions"),
    "overlap": (tensor("label_counts", data_offsets=[0, 64]), "overlaps another"),
    "out of range": (tensor("label_counts", data_offsets=[2**40, 2**40 + 64]), "gap before it"),
    "backwards": (tensor("label_counts", data_offsets=[64, 0]), "its shape needs"),
    "one offset": (tensor("label_counts", data_offsets=[0]), "wrong number of dimensions"),
    "more facts of an array": (tensor("label_counts", more=1), "not described as in a safetensors"),
    "no checksum": (tensor("checksum", dtype="I8"), "does not end with a checksum"),
    "arity 9": (entry("model", arity=9), "no proper entry 'arity'"),
    "arity 3": (entry("model", arity=3), "must have the shape"),
    "arity as text": (entry("model", arity="2"), "no proper entry 'arity'"),
    "fewer features": (entry("model", n_features=19), "20 feature names for 19"),
    "more labels": (entry("model", n_labels=9), "label_counts must have the shape"),
    "labels as numbers": (entry("model", label_dtype="int64"), "not all of the type int64"),
    "labels of no type": (entry("model", label_dtype="float32"), "unknown type of labels"),
    "labels as columns": (entry("model", label_dtype="columns"), "not know, 'labels.kinds'"),
    "form of labels": (
        entry("model", label_form="tuple"),
        "no proper entry 'label_form'.*not 'tuple'",
    ),
    "seed as text": (entry("model", seed="1"), "no proper entry 'seed'"),
    "optimizer as a number": (tree_param(optimizer=1), "no proper entry 'optimizer'"),
    "infinite learning rate": (tree_param(learning_rate=1e999), "Infinity is not a number"),
    "no tree parameters": (without("model", "tree_params"), "no proper entry 'tree_params'"),
    "unknown entry": (entry("model", more=1), "model has an entry .* does not know, 'more'"),
    "unknown tree parameter": (tree_param(more=1), "tree_params has an entry .* know, 'more'"),
    "unknown part of the header": (facts(more="1"), "header has an entry .* know, 'more'"),
    "unknown parameter": (entry("parameters", depth=3), "parameter .* does not know, 'depth'"),
    "nested parameter": (entry("parameters", arity__x=3), "does not know, 'arity__x'"),
    "wrong parameter": (entry("parameters", arity=99), "'arity' parameter .* Got 99"),
    "long parameter": (entry("parameters", arity="x" * 10_000), "'arity' parameter"),
    "random_state as text": (entry("parameters", random_state="x"), "'random_state' is not an int"),
    "training as text": (facts(training='"x"'), "no proper entry 'training'"),
    "training of no rows": (without("training", "rows"), "no proper entry 'rows'"),
    "training for infinity": (entry("training", seconds=1e999), "Infinity is not a number"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_damaged_headers(tmp_path, data, case):
    change, message = HEADERS[case]
    refuse(changed(tmp_path, change(data)), message)


def test_headers_checked_without_verifying(tmp_path, data):
    for case, (change, message) in HEADERS.items():
        if "checksum does not match" not in message:
            refuse(changed(tmp_path, change(data)), message, verify=False)
            assert case


def test_missing_threshold(tmp_path):
    clf = LdSMClassifier(n_estimators=1, random_state=0).fit(X, Y)
    clf.save(tmp_path / "m.ldsm")
    data = (tmp_path / "m.ldsm").read_bytes()
    for value in (None, "0.5", True):
        change = entry("model", threshold=value)
        refuse(changed(tmp_path, change(data)), "no proper entry 'threshold'")
    text = data.replace(b'\\"threshold\\": 0.5', b'\\"threshold\\": 1e9', 1)
    assert len(text) == len(data)
    path = tmp_path / "m.ldsm"
    path.write_bytes(seal(text))
    assert load(path).threshold_ == 1e9  # odd, but a number


def test_malformed_integer_labels(tmp_path):
    clf = LdSMClassifier(n_estimators=1, random_state=0).fit(X, np.argmax(Y, axis=1) + 100)
    header, arrays = model_to_state(clf.model_, clf.get_params())
    for text in (b"1_0", b" 10", b"+10", b"007", b"1.0", b"-00"):
        other = arrays["labels.text"].copy()
        other[:3] = np.frombuffer(text, dtype=np.uint8)
        path = written(tmp_path, header, {**arrays, "labels.text": other})
        refuse(path, re.escape(f"{text.decode()!r}, is not a whole number"))
    small = with_entry(path.read_bytes(), "model", lambda m: m.update(label_dtype="int8"))
    refuse(changed(tmp_path, small), "is not a whole number|is out of range")


def test_long_label_memory(tmp_path):
    names = ["x" * 10**5, *map(str, range(100))]
    Y = sp.csr_array((np.ones(200), (np.arange(200), np.arange(200) % 101)), shape=(200, 101))
    rows = [[names[k]] for k in Y.indices]
    clf = LdSMClassifier(n_estimators=1, random_state=0).fit(X, rows)
    clf.save(tmp_path / "m.ldsm")
    again = load(tmp_path / "m.ldsm")
    assert again.classes_.dtype == object  # 40 MB as an array of text
    assert again.fingerprint_ == clf.fingerprint_
