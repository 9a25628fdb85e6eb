"""Compressed model files, with an index and a ranker, that are wrong in every conceivable way.

What they share with other files is in `test_model_damage`.
"""

from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from damage import become, both, put, refuse
from ldsm import LdSMClassifier, load
from ldsm._model.saved_form import model_to_state
from ldsm._ranking.blend import Blend
from ldsm._storage import container as model_file
from ldsm.classifier import hold_model
from problems import make_problem

FEW, Y = make_problem(0, "weights", n_rows=200, n_features=20, n_labels=8)
# The step from one feature to the next: gaps of a byte, bytes with bridges, and of two bytes.
STEPS = {"bytes": 1, "bridges": 150, "shorts": 400}
SETTINGS = {"n_estimators": 3, "random_state": 3, "min_split_labels": 16, "compress": True}


def spread(step):
    X = np.zeros((200, 20 * step), dtype=np.float32)
    X[:, ::step] = FEW
    return sp.csr_array(X)


@cache
def saved(form):
    """A model with every part that there is, its header, arrays and some rows to ask about."""
    X = spread(STEPS[form])
    clf = LdSMClassifier(rerank="linear", **SETTINGS).fit(X, Y)
    tail = LdSMClassifier(rerank="tail", **SETTINGS).fit(X, Y).second_stage_
    stage = clf.second_stage_
    blend = Blend("linear+index+tail", (*stage.blend.coefficients, -0.7, 0.1))
    stage = replace(stage.with_parts(centroids=tail.centroids), blend=blend)
    hold_model(clf, replace(clf.model_, second_stage=stage))
    header, arrays = model_to_state(clf.model_, clf.get_params())
    return {"kind": "LdSMClassifier", **header}, arrays, clf.forest_, X


def ask(clf, X):
    """Everything that reads a model; one row and many take different ways."""
    for rows in (X[:1], X):
        labels, scores = clf.predict_topk(rows, k=8)
        assert labels.min() >= 0 and labels.max() < 8 and scores.shape == labels.shape
        clf.predict_topk(rows, k=3, tail=1.0), clf.predict_proba(rows), clf.predict(rows)
        clf.decision_path(rows)
    clf.explain(X[:1]), clf.explain_scores(X[:1])
    assert len(clf.fingerprint_) == 64


def gap(at, value):
    """A gap of the second split; its first one is the number of a feature."""

    def change(arrays):
        put("forest.weight_features", second_split(arrays).start + at, value)(arrays)

    return change


def second_split(arrays):
    split = np.flatnonzero(arrays["forest.first_child"])[1]
    return slice(*arrays["forest.weight_offsets"][split : split + 2])


def too_far(name, part_of):
    """Gaps that each are allowed, but not their sum."""

    def change(arrays):
        part, n_features = part_of(arrays), len(arrays["second_stage.index.units"])
        put(name, part, n_features // (part.stop - part.start - 1) + 1)(arrays)

    return change


def of_label_2(name):
    """Where the vector of label 2 lies."""
    return lambda arrays: slice(*arrays[f"second_stage.{name}.offsets"][2:4])


def vector(name, at, value):
    """A gap in the vector of label 2."""

    def change(arrays):
        first = of_label_2(name)(arrays).start
        put(f"second_stage.{name}.features", first + at, value)(arrays)

    return change


def as_type(name, dtype):
    return become(name, lambda a: a.astype(dtype))


def listed(name, which, value):
    """An entry of the feature with the most labels."""

    def change(arrays):
        offsets = arrays["second_stage.index.offsets"]
        first = offsets[np.argmax(np.diff(offsets))]
        put(f"second_stage.index.{name}", first + which, value)(arrays)

    return change


SIZES = "must have the shape|must have a unit for each label"
TYPES = "must be of type|must have the shape|wrong type for its weights"
UNITS, PARENTS = "forest.weight_units", "must both be compressed, or neither"
INDEX = "second_stage.index"
NODE = "node [0-9]+ of tree 0: "
BROKEN = {
    "gaps out of range": (
        too_far("forest.weight_features", second_split),
        NODE + "weight_features must lie in",
    ),
    "one gap out of range": (gap(1, 255), NODE + "weight_features must lie in"),
    "a gap of 0": (gap(1, 0), NODE + "weight_features do not rise"),
    "unit NaN": (put(UNITS, 0, np.nan), NODE + "weight_units are damaged"),
    "unit negative": (put(UNITS, 0, -1), NODE + "weight_units are damaged"),
    "unit infinite": (put(UNITS, 0, np.inf), NODE + "weight_units are damaged"),
    "last unit NaN": (put(UNITS, -1, np.nan), "of tree 2: weight_units are damaged"),
    "codes with features": (as_type("forest.weight_features", np.int32), PARENTS),
    "floats with gaps": (as_type("forest.weights", np.float32), PARENTS),
    "halves with gaps": (as_type("forest.weights", np.float16), PARENTS),
    "floats with gaps, no units": (
        both(as_type("forest.weights", np.float32), become(UNITS, lambda a: a[:0])),
        PARENTS,
    ),
    "floats with features and units": (
        both(as_type("forest.weights", np.float32), as_type("forest.weight_features", np.int32)),
        "weight_units must have the shape",
    ),
    "weight offsets fall": (put("forest.weight_offsets", 3, 2**50), "weight_offsets decrease"),
    "label too large": (
        put("forest.histogram_labels", 0, 8),
        r"histogram_labels must lie in \[0, ",
    ),
    "label 255": (put("forest.histogram_labels", -1, 255), "histogram_labels must lie in"),
    "a label twice": (
        become("forest.histogram_labels", lambda a: a * 0 + a[0]),
        "histogram_labels do not rise",
    ),
    "counts of 0": (put("forest.histogram_counts", 0, 0), "a label count is not positive"),
    "counts of more than the rows": (
        become("forest.histogram_counts", lambda a: a * 0 + 255),
        "more often than there are rows",
    ),
    "index offsets do not begin": (put(f"{INDEX}.offsets", 0, 1), "offsets of its index do not"),
    "index offsets negative": (put(f"{INDEX}.offsets", 1, -9), "offsets of its index do not rise"),
    "index offsets fall": (put(f"{INDEX}.offsets", 1, 2**40), "offsets of its index do not rise"),
    "index offsets end early": (put(f"{INDEX}.offsets", -1, 3), "offsets of its index do not rise"),
    "index offsets end late": (put(f"{INDEX}.offsets", -1, 2**62), "offsets of its index do not"),
    "index label too large": (listed("labels", 0, 8), "index has a label out of range"),
    "index label 255": (listed("labels", 1, 255), "index has a label out of range"),
    "index label twice": (
        both(listed("labels", 0, 3), listed("labels", 1, 3)),
        "labels of its index do not rise",
    ),
    "index labels negative": (
        become(f"{INDEX}.labels", lambda a: a.astype(np.int32) - 1),
        "index has a label out of range",
    ),
    "index unit NaN": (put(f"{INDEX}.units", 0, np.nan), "index.units has an entry that is not"),
    "index unit negative": (put(f"{INDEX}.units", -1, -1), "index.units has an entry that is not"),
    "index unit infinite": (
        put(f"{INDEX}.units", 0, np.inf),
        "index.units has an entry that is not",
    ),
}
for part in ("ranker", "centroids"):
    place = f"second_stage.{part}"
    BROKEN |= {
        f"{part}: gaps out of range": (
            too_far(f"{place}.features", of_label_2(part)),
            f"its {part} has a feature out of",
        ),
        f"{part}: a gap of 0": (vector(part, 1, 0), f"features of its {part} do not rise"),
        f"{part}: unit NaN": (
            put(f"{place}.units", 2, np.nan),
            f"{part}.units has an entry that is not",
        ),
        f"{part}: unit infinite": (
            put(f"{place}.units", 2, np.inf),
            f"{part}.units has an entry that is not",
        ),
        f"{part}: unit negative": (
            put(f"{place}.units", 2, -1),
            f"{part}.units has an entry that is not",
        ),
        f"{part}: codes with features": (as_type(f"{place}.features", np.int32), TYPES),
        f"{part}: floats with gaps": (as_type(f"{place}.weights", np.float32), TYPES),
        f"{part}: halves with gaps": (as_type(f"{place}.weights", np.float16), TYPES),
        f"{part}: floats with features and units": (
            both(as_type(f"{place}.weights", np.float32), as_type(f"{place}.features", np.int32)),
            SIZES,
        ),
        f"{part}: offsets do not begin": (put(f"{place}.offsets", 0, 1), f"offsets of its {part}"),
        f"{part}: offsets fall": (put(f"{place}.offsets", 2, 2**40), f"offsets of its {part} do"),
        f"{part}: offsets negative": (put(f"{place}.offsets", 2, -5), f"offsets of its {part} do"),
        f"{part}: offsets end late": (put(f"{place}.offsets", -1, 2**62), f"offsets of its {part}"),
    }


def written(tmp_path, header, arrays, **stage):
    """The path of a file with these arrays, and these entries of the second stage."""
    own = {**header["model"]["second_stage"], **stage}
    header = {**header, "model": {**header["model"], "second_stage": own}}
    model_file.write(tmp_path / "m.ldsm", header, arrays)
    return tmp_path / "m.ldsm"


@pytest.mark.parametrize("form", STEPS)
def test_undamaged_models_load(tmp_path, form):
    header, arrays, forest, X = saved(form)
    gaps = np.uint16 if form == "shorts" else np.uint8
    assert arrays["forest.weight_features"].dtype == gaps and forest.is_compressed
    for part in ("ranker", "centroids"):
        assert arrays[f"second_stage.{part}.features"].dtype == gaps
    if form == "bridges":
        assert forest.weight_features.max() == 255
    path = written(tmp_path, header, arrays)
    answers = []
    for verify in (True, False):
        clf = load(path, verify)
        ask(clf, X)
        answers.append(clf.predict_topk(X, k=8))
        assert np.all(np.isfinite(answers[-1][1]))
    for one, other in zip(*answers, strict=True):
        assert one.tobytes() == other.tobytes()


# In the other forms a gap of 255 leads to a feature that there is.
ONLY_BYTES = ("one gap out of range",)


@pytest.mark.parametrize(
    ("case", "form"),
    [(c, form) for c in BROKEN for form in STEPS if form == "bytes" or c not in ONLY_BYTES],
)
def test_damaged_compressed_arrays(tmp_path, case, form):
    change, message = BROKEN[case]
    header, arrays, _, X = saved(form)
    arrays = dict(arrays)
    change(arrays)
    path = written(tmp_path, header, arrays)
    refuse(path, message)
    # Unverified, it is refused as well, or answers, or says at predict what is wrong.
    with suppress(ValueError):
        ask(load(path, verify=False), X)


@pytest.mark.parametrize(
    "length", [0, -1, 10**7, 10**9, 2**63, "100", 10.0, True, None, [100]], ids=str
)
def test_invalid_shortlist_lengths(tmp_path, length):
    header, arrays, _, _ = saved("bytes")
    path = written(tmp_path, header, arrays, length=length)
    for verify in (True, False):
        refuse(path, "entry 'length': it must be an int from 1 to 1000000, not ", verify)


@pytest.mark.parametrize("length", [1, 3, 10**6])
def test_valid_shortlist_lengths(tmp_path, length):
    header, arrays, _, X = saved("bytes")
    path = written(tmp_path, header, arrays, length=length)
    for verify in (True, False):
        clf = load(path, verify)
        ask(clf, X)
        assert 1 <= np.max(np.count_nonzero(clf.predict_topk(X, k=8)[1], axis=1)) <= length


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "index"}, "no proper entry 'kind'.*not 'index'"),
        ({"kind": "magic"}, "no proper entry 'kind'.*not 'magic'"),
        ({"coefficients": [1.0]}, "wrong number of coefficients"),
        ({"kind": "linear+index"}, "wrong number of coefficients"),
        ({"kind": "tail", "coefficients": [0.0, 1.0]}, "does not know, 'second_stage.index.codes'"),
        (
            {"coefficients": [1e31] * 19},
            "entry 'coefficients': it must be a list of numbers from -1e",
        ),
        ({"more": 1}, "second_stage has an entry .* does not know, 'more'"),
    ],
    ids=str,
)
def test_mismatched_blends(tmp_path, changes, message):
    header, arrays, _, _ = saved("bytes")
    path = written(tmp_path, header, arrays, **changes)
    for verify in (True, False):
        refuse(path, message, verify)


@pytest.mark.parametrize("form", STEPS)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        (UNITS, 3e38),
        (UNITS, 0),
        (f"{INDEX}.units", 1e30),
        (f"{INDEX}.units", 0),
        (f"{INDEX}.codes", 0),
        (f"{INDEX}.codes", 255),
        ("second_stage.ranker.units", 1e30),
        ("second_stage.ranker.weights", -128),
        ("second_stage.centroids.units", 1e30),
        ("forest.weights", -128),
    ],
)
def test_extreme_allowed_values(tmp_path, form, name, value):
    """They give scores that are numbers from 0 to 1, however wrong, or an error that says so."""
    header, arrays, _, X = saved(form)
    path = written(tmp_path, header, {**arrays, name: arrays[name] * 0 + value})
    for verify in (True, False):
        clf = load(path, verify)
        try:
            scores = clf.predict_topk(X, k=8)[1]
        except ValueError as error:
            assert value in (3e38, 1e30) and "is damaged" in str(error)
            continue
        assert np.all((scores >= 0) & (scores <= 1))
        ask(clf, X)
