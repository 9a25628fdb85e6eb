"""A fitted classifier as a header and arrays, and back: what ``save`` writes and ``load`` checks.

A model that holds a classifier puts the two into its own header and arrays, under a name and a
prefix of its choice. Whatever does not fit becomes a ValueError that says what; ``load`` puts the
file's name before it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._second_stage.state import stage_from_state, stage_to_state, whole_floats
from .._storage.strings import Strings
from .._trees.checks import check_forest
from .._trees.forest import MODEL_ARRAYS, STATISTICS_ARRAYS, Forest
from .._trees.params import TreeParams, check_params

Arrays = dict[str, NDArray[Any]]

LABEL_FORMS = ("sparse", "dense", "lists", "single")
COLUMNS = "columns"  # labels that are the numbers of their columns need no names
# Kinds of labels, as the file numbers them; the text of a bool is 0 or 1.
KINDS: tuple[type, ...] = (str, int, bool)
LABEL_DTYPES: dict[str, tuple[Any, type]] = {
    "str": (np.str_, str),
    "bool": (np.bool_, bool),
    **{f"{u}int{bits}": (f"{u}int{bits}", int) for u in ("", "u") for bits in (8, 16, 32, 64)},
}
LONGEST_INT = 4000  # digits; Python reads and writes no more than 4300
_JSON_TYPES = {"int": int, "float": float, "bool": bool, "str": str}


def classifier_fingerprint(clf: Any) -> str:
    """Hash of everything that decides a prediction of a fitted LdSMClassifier."""
    digest = hashlib.sha256(clf.forest_.fingerprint().encode())
    threshold = np.asarray(clf.threshold_).tolist()
    digest.update(repr((clf._leaf_scores, clf._label_form, threshold)).encode())
    digest.update(repr(clf.classes_.tolist()).encode())
    digest.update(clf.label_counts_.astype(np.int64).tobytes())
    if clf.second_stage_ is not None:
        stage_header, stage_arrays = stage_to_state(clf.second_stage_)
        digest.update(repr(stage_header).encode())
        for name, array in stage_arrays.items():
            digest.update(f"{name}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


# -- to arrays --------------------------------------------------------------------------------


def classifier_state(clf: Any, *, compress: bool = False) -> tuple[dict[str, Any], Arrays]:
    """A fitted LdSMClassifier as header entries and arrays.

    Parameters
    ----------
    clf : LdSMClassifier
        Fitted.
    compress : bool, default=False
        Store the weights as float16, unless one is too large for it.

    Raises
    ------
    ValueError
        If the model cannot be saved: a label that is no str, int or bool, or damaged trees.
    """
    params = {name: _plain(value) for name, value in clf.get_params(deep=False).items()}
    params["leaf_scores"] = clf._leaf_scores  # the one of the fit, whatever was set since
    if type(params["random_state"]) is not int:
        params["random_state"] = None  # a generator's state is no part of the model
    check_params(params, "LdSMClassifier")
    forest: Forest = clf.forest_
    check_forest(forest)  # what would not load is not saved
    arrays: Arrays = {
        f"forest.{name}": getattr(forest, name) for name in (*MODEL_ARRAYS, *STATISTICS_ARRAYS)
    }
    stage_header = None
    if clf.second_stage_ is not None:
        stage_header, stage_arrays = stage_to_state(clf.second_stage_)
        arrays |= stage_arrays
    if compress:
        arrays |= {name: _halved(arrays[name]) for name in arrays if name.endswith(".weights")}
    arrays["label_counts"] = clf.label_counts_.astype(np.int64)
    label_dtype, label_arrays = _labels_to_arrays(clf.classes_)
    arrays |= label_arrays
    if hasattr(clf, "feature_names_in_"):
        arrays |= names_to_arrays("feature_names", clf.feature_names_in_.tolist())
    threshold = clf.threshold_
    if isinstance(threshold, np.ndarray):
        arrays["thresholds"] = threshold.astype(np.float32)
        threshold = None
    model = {
        "arity": forest.arity,
        "n_features": forest.n_features,
        "n_labels": forest.n_labels,
        "label_form": clf._label_form,
        "label_dtype": label_dtype,
        "threshold": _plain(threshold),
        "seed": clf._seed,
        "tree_params": clf.tree_params_.as_dict(),
        "second_stage": stage_header,
    }
    return {"parameters": params, "model": model, "training": clf.training_}, arrays


def names_to_arrays(name: str, names: Sequence[str]) -> Arrays:
    """Texts as two arrays, ``<name>.text`` of UTF-8 bytes and ``<name>.offsets``."""
    packed = Strings.pack(names)
    return {f"{name}.text": packed.data, f"{name}.offsets": packed.offsets}


def _labels_to_arrays(classes: NDArray[Any]) -> tuple[str, Arrays]:
    """How the labels are stored: the type of their array, and their kinds and texts."""
    if classes.dtype == np.int64 and np.array_equal(classes, np.arange(len(classes))):
        return COLUMNS, {}
    kind = classes.dtype.kind
    dtype = {"O": "object", "U": "str"}.get(kind, classes.dtype.name)
    labels = classes.tolist()
    kinds = np.zeros(len(labels), dtype=np.uint8)
    texts = []
    for i, label in enumerate(labels):
        plain = _plain(label)
        if type(plain) not in KINDS:
            raise ValueError(f"Labels must be str, int or bool to be saved. Got {label!r}.")
        kinds[i] = KINDS.index(type(plain))
        texts.append(plain if isinstance(plain, str) else str(int(plain)))
    if len(set(labels)) != len(labels):
        raise ValueError("Labels must be unique to be saved. Some label occurs twice.")
    return dtype, {"labels.kinds": kinds, **names_to_arrays("labels", texts)}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _halved(weights: NDArray[np.float32]) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        half = weights.astype(np.float16)
    return half if np.isfinite(half).all() else weights


# -- and back ---------------------------------------------------------------------------------


def classifier_from_state(
    cls: type, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, verify: bool = True
) -> Any:
    """The fitted classifier that `classifier_state` described.

    Parameters
    ----------
    cls : type
        LdSMClassifier; what is to be made is the caller's word, never the file's.
    header, arrays
        As `classifier_state` gave them; the header may have more entries, the arrays may not.
    verify : bool, default=True
        Check every number of the trees. False: only what can be told without reading them all.

    Raises
    ------
    ValueError
        If they are not those of a classifier.
    """
    arrays = dict(arrays)
    clf = _from_params(cls, _entry(header, "parameters", dict))
    model = _entry(header, "model", dict)
    n_features = _entry(model, "n_features", int)
    n_labels = _entry(model, "n_labels", int)
    counts = _array(arrays, "label_counts", np.int64, n_labels)
    if n_labels < 1 or counts.min() < 0:
        raise ValueError("its label counts are not those of labels")
    clf.classes_ = _labels_from_arrays(_entry(model, "label_dtype", str), n_labels, arrays, verify)
    if "feature_names.text" in arrays:
        names = names_from_arrays("feature_names", arrays)
        if len(names) != n_features:
            raise ValueError(f"it has {len(names)} feature names for {n_features} features")
        clf.feature_names_in_ = np.array(names, dtype=object)
    if "thresholds" in arrays:
        clf.threshold_ = _array(arrays, "thresholds", np.float32, n_labels)
        if not np.isfinite(clf.threshold_).all():
            raise ValueError("its thresholds are not finite")
    else:
        clf.threshold_ = _entry(model, "threshold", float)
    clf._leaf_scores = clf.leaf_scores
    clf._label_form = _entry(model, "label_form", str)
    if clf._label_form not in LABEL_FORMS:
        raise ValueError(f"its header names an unknown form of labels, {clf._label_form[:40]!r}")
    clf._seed = _entry(model, "seed", int)
    clf.tree_params_ = _tree_params(_entry(model, "tree_params", dict))
    clf.forest_ = _forest(_entry(model, "arity", int), n_features, n_labels, arrays, verify)
    clf.second_stage_ = stage_from_state(
        model.get("second_stage"), arrays, n_features, counts, verify=verify
    )
    if arrays:
        unknown = min(arrays)
        raise ValueError(f"it holds an array that this version does not know, {unknown[:80]!r}")
    clf.training_ = _entry(header, "training", dict)
    for name, kind in (("rows", int), ("seconds", float)):  # what the estimator itself reads of it
        _entry(clf.training_, name, kind)
    clf.n_features_in_ = n_features
    clf.label_counts_ = counts
    clf._fill_order = np.argsort(-counts, kind="stable").astype(np.int32)
    return clf


def _entry(header: Mapping[str, Any], name: str, kind: type) -> Any:
    value: Any = header.get(name)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"its header has no proper entry {name!r}")
    return value


def _from_params(cls: type, params: dict[str, Any]) -> Any:
    clf: Any = cls()
    unknown = params.keys() - clf.get_params(deep=False).keys()
    if unknown:
        raise ValueError(
            f"it has a parameter that this version does not know, {min(unknown)[:80]!r}"
        )
    if type(params.get("random_state")) not in (int, type(None)):
        raise ValueError("its parameter 'random_state' is no int")
    clf.set_params(**params)
    check_params(clf.get_params(deep=False), "LdSMClassifier")
    return clf


def _tree_params(values: dict[str, Any]) -> TreeParams:
    fields = dataclasses.fields(TreeParams)
    return TreeParams(
        **{field.name: _entry(values, field.name, _JSON_TYPES[str(field.type)]) for field in fields}
    )


def _forest(arity: int, n_features: int, n_labels: int, arrays: Arrays, verify: bool) -> Forest:
    """Take the trees out of the arrays."""
    taken: Arrays = {}
    for name in (*MODEL_ARRAYS, *STATISTICS_ARRAYS):
        if f"forest.{name}" not in arrays:
            raise ValueError(f"it lacks the array 'forest.{name}'")
        taken[name] = arrays.pop(f"forest.{name}")
    taken["weights"] = whole_floats(taken["weights"])
    forest = Forest(arity=arity, n_features=n_features, n_labels=n_labels, **taken)
    check_forest(forest, everything=verify)
    return forest


def _array(arrays: Arrays, name: str, dtype: type, length: int | None = None) -> NDArray[Any]:
    """Take a one-dimensional array out of the others."""
    if name not in arrays:
        raise ValueError(f"it lacks the array {name!r}")
    array = arrays.pop(name)
    if array.dtype != dtype or array.ndim != 1 or length not in (None, len(array)):
        raise ValueError(f"its array {name!r} has a wrong type or length")
    return array


def names_from_arrays(name: str, arrays: Arrays) -> list[str]:
    """Take the texts that `names_to_arrays` stored out of the arrays."""
    text = _array(arrays, f"{name}.text", np.uint8)
    offsets = _array(arrays, f"{name}.offsets", np.int64)
    if len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != len(text):
        raise ValueError(f"its array '{name}.offsets' does not lead from 0 to {len(text)}")
    if np.any(offsets[1:] < offsets[:-1]):
        raise ValueError(f"its array '{name}.offsets' decreases")
    data, places = text.tobytes(), pairwise(offsets.tolist())
    if data.isascii():  # then one decoding serves all
        decoded = data.decode("ascii")
        return [decoded[start:stop] for start, stop in places]
    try:
        return [data[start:stop].decode("utf-8") for start, stop in places]
    except UnicodeDecodeError:
        raise ValueError(f"its array '{name}.text' is not UTF-8") from None


def _labels_from_arrays(dtype: str, n_labels: int, arrays: Arrays, verify: bool) -> NDArray[Any]:
    if dtype == COLUMNS:
        return np.arange(n_labels)
    kinds = _array(arrays, "labels.kinds", np.uint8, n_labels)
    texts = names_from_arrays("labels", arrays)
    if len(texts) != n_labels or kinds.max() >= len(KINDS):
        raise ValueError("its labels do not fit their number or kinds")
    labels = [
        text if kind == 0 else _int_or_bool(text, KINDS[kind])
        for text, kind in zip(texts, kinds.tolist(), strict=True)
    ]
    classes = np.empty(n_labels, dtype=object)
    classes[:] = labels
    if dtype != "object":
        if dtype not in LABEL_DTYPES:
            raise ValueError(f"its header names an unknown type of labels, {dtype[:40]!r}")
        numpy_type, kind = LABEL_DTYPES[dtype]
        if not np.all(kinds == KINDS.index(kind)):
            raise ValueError(f"its labels are not all of the type {dtype}")
        classes = _typed(classes, labels, np.dtype(numpy_type))
    if verify and len(set(classes.tolist())) != n_labels:
        raise ValueError("some label occurs twice in it")
    return classes


def _typed(classes: NDArray[Any], labels: Sequence[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind == "U":
        # One long label would widen all of them: what is far larger than its text stays as it is.
        longest = max(map(len, labels))
        if 4 * longest * len(labels) > (16 << 20) + 8 * sum(map(len, labels)):
            return classes
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        if min(labels) < info.min or max(labels) > info.max:
            raise ValueError(f"its labels do not fit the type {dtype}")
    return classes.astype(dtype)


def _int_or_bool(text: str, kind: type) -> Any:
    number = int(text) if len(text) <= LONGEST_INT and text.isascii() and _digits(text) else None
    if number is None or str(number) != text or (kind is bool and number not in (0, 1)):
        raise ValueError(f"its label {text[:40]!r} is no {kind.__name__}")
    return kind(number)


def _digits(text: str) -> bool:
    return text.removeprefix("-").isdigit()
