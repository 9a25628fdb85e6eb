"""Convert a fitted model to a header and arrays for ``save``, and back for ``load``.

A model that contains another adds these to its own header and arrays. Invalid content raises a
ValueError; ``load`` adds the name of the file.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays.labels import LABEL_FORMS
from .._features.blocks import BIGRAMS, MAIN, Layout
from .._ranking.saved_form import stage_from_state, stage_to_state
from .._storage.container import Arrays, take, take_weights
from .._trees.checks import check_forest
from .._trees.forest import ARRAYS, Forest
from .._trees.params import TreeParams, check_params
from .fitted import MOST_FEATURES, MOST_ROWS, FittedModel
from .names import (
    labels_from_arrays,
    labels_to_arrays,
    names_from_arrays,
    names_to_arrays,
    plain,
    take_array,
)

ORDER, DROPPED = "forest.label_order", "forest.dropped_places"
_JSON_TYPES = {"int": int, "float": float, "bool": bool, "str": str}


def model_to_state(model: FittedModel, params: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays]:
    """A fitted model and the parameters of its estimator as header entries and arrays.

    Damaged trees and labels other than str, int and bool raise a ValueError.
    """
    params = {name: plain(value) for name, value in params.items()}
    params["leaf_scores"] = model.leaf_scores  # of the fit, even if it was changed later
    if type(params["random_state"]) is not int:
        params["random_state"] = None  # a generator's state is not part of the model
    check_params(params, "LdSMClassifier")
    forest = model.forest
    check_forest(forest)  # do not save what would not load
    arrays: Arrays = {f"forest.{name}": getattr(forest, name) for name in ARRAYS}
    arrays |= _places_to_arrays(forest)
    stage_header = None
    if model.second_stage is not None:
        stage_header, stage_arrays = stage_to_state(model.second_stage, model.label_counts)
        arrays |= stage_arrays
    arrays["label_counts"] = model.label_counts.astype(np.int64)
    label_dtype, label_arrays = labels_to_arrays(model.classes)
    arrays |= label_arrays
    if model.feature_names is not None:
        arrays |= names_to_arrays("feature_names", model.feature_names)
    layout = model.layout
    n_indexed, n_ranked = layout[MAIN], layout[MAIN] + layout[BIGRAMS]
    threshold: Any = model.threshold
    if isinstance(threshold, np.ndarray):
        arrays["thresholds"] = threshold.astype(np.float32)
        threshold = None
    described = {
        "arity": forest.arity,
        "n_features": model.n_features,
        **({"n_matched": forest.n_features} if forest.n_features < model.n_features else {}),
        **({"n_indexed": n_indexed} if n_indexed != forest.n_features else {}),
        **({"n_ranked": n_ranked} if n_ranked < model.n_features else {}),
        "n_labels": forest.n_labels,
        "label_form": model.label_form,
        "label_dtype": label_dtype,
        "threshold": plain(threshold),
        "seed": model.seed,
        "tree_params": model.tree_params.as_dict(),
        "second_stage": stage_header,
    }
    return {"parameters": params, "model": described, "training": dict(model.training)}, arrays


def _places_to_arrays(forest: Forest) -> Arrays:
    """The places of dropped labels, and the order of the others if it is not that of now."""
    arrays: Arrays = {}
    order = np.argsort(np.argsort(forest.places[: forest.n_labels])).astype(np.int32)
    if not np.array_equal(order, np.arange(len(order))):
        arrays[ORDER] = order
    if forest.n_dropped:
        arrays[DROPPED] = forest.places[forest.n_labels :]
    return arrays


# -- reading ----------------------------------------------------------------------------------


def model_from_state(
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    known_params: Mapping[str, Any],
    *,
    verify: bool = True,
) -> tuple[dict[str, Any], FittedModel]:
    """The estimator's parameters and the fitted model that `model_to_state` described.

    The header may have more entries than those, but not the arrays. `known_params` are all
    parameters of an estimator, with their defaults. With `verify`, every number of the trees is
    checked, otherwise only what can be checked without reading them.
    """
    arrays = dict(arrays)
    params = _params(_entry(header, "parameters", dict), known_params)
    described = _entry(header, "model", dict)
    n_features = _entry(described, "n_features", int)
    n_matched = _entry({"n_matched": n_features, **described}, "n_matched", int)
    n_labels = _entry(described, "n_labels", int)
    # Blocks side by side: the words that trees know, later words, bigrams, sub-words.
    n_ranked = _entry({"n_ranked": n_features, **described}, "n_ranked", int)
    n_indexed = _entry({"n_indexed": n_matched, **described}, "n_indexed", int)
    if not 0 <= n_matched <= n_indexed <= n_ranked <= n_features <= MOST_FEATURES:
        raise ValueError(
            f"its number of features is out of range, {n_features}, {n_ranked}, {n_indexed} or "
            f"{n_matched}"
        )
    layout = Layout.of(
        main=n_indexed, bigrams=n_ranked - n_indexed, sub_words=n_features - n_ranked
    )
    counts = take_array(arrays, "label_counts", np.int64, n_labels)
    if n_labels < 1 or counts.min() < 0 or counts.max() > MOST_ROWS:
        raise ValueError("its label counts are missing or out of range")
    labels = labels_from_arrays(_entry(described, "label_dtype", str), n_labels, arrays, verify)
    feature_names = None
    if "feature_names.text" in arrays:
        feature_names = names_from_arrays("feature_names", arrays, verify=verify, unique=False)
        if len(feature_names) != n_features:
            raise ValueError(f"it has {len(feature_names)} feature names for {n_features} features")
    if "thresholds" in arrays:
        threshold: Any = take_array(arrays, "thresholds", np.float32, n_labels)
        if not np.isfinite(threshold).all():
            raise ValueError("its thresholds are not finite")
    else:
        threshold = _entry(described, "threshold", float)
        if abs(threshold) > float(np.finfo(np.float32).max):
            raise ValueError("its threshold is out of range")
    form = _entry(described, "label_form", str)
    if form not in LABEL_FORMS:
        raise ValueError(f"its header names an unknown form of labels, {form[:40]!r}")
    seed = _entry(described, "seed", int)
    if not 0 <= seed < 2**63:
        raise ValueError(f"its seed is out of range, {seed}")
    tree_params = _tree_params(_entry(described, "tree_params", dict))
    weights = take_weights(arrays, "forest.weights")
    arrays.setdefault("forest.weight_units", np.zeros(0, np.float32))  # new in format version 2
    forest = Forest(
        arity=_entry(described, "arity", int),
        n_features=n_matched,
        n_labels=n_labels,
        weights=weights,
        places=_places_from_arrays(arrays, n_labels),
        **{name: take(arrays, f"forest.{name}") for name in ARRAYS if name != "weights"},
    )
    check_forest(forest, everything=verify)
    stage = stage_from_state(
        described.get("second_stage"),
        arrays,
        layout,
        counts,
        forest.n_dropped,
        verify=verify,
    )
    if arrays:
        unknown = min(arrays)
        raise ValueError(f"it holds an array that this version does not know, {unknown[:80]!r}")
    training = _entry(header, "training", dict)
    # The entries that the library itself reads.
    for name, kind in (("rows", int), ("seconds", float)):
        _entry(training, name, kind)
    if not isinstance(training.get("finished", ""), str):
        raise ValueError("its header has no proper entry 'finished'")
    if not 0 <= training["rows"] <= MOST_ROWS or not training["seconds"] >= 0:
        raise ValueError("its header has no proper entry 'training'")
    if counts.max() > training["rows"]:
        raise ValueError("a label of it has more rows than there were in training")
    return params, FittedModel(
        forest,
        stage,
        labels,
        form,
        counts,
        params["leaf_scores"],
        tree_params,
        seed,
        training,
        feature_names,
        threshold,
        layout=layout,
        verified=verify,
    )


def _places_from_arrays(arrays: Arrays, n_labels: int) -> NDArray[np.int32]:
    """The places of all labels, dropped ones last; none if they are the order of the labels."""
    if ORDER not in arrays and DROPPED not in arrays:
        return np.zeros(0, np.int32)
    numbers = np.arange(n_labels, dtype=np.int32)
    order = take_array({ORDER: numbers, **arrays}, ORDER, np.int32, n_labels)
    dropped = take_array({DROPPED: numbers[:0], **arrays}, DROPPED, np.int32)
    left = np.setdiff1d(np.arange(n_labels + len(dropped), dtype=np.int32), dropped)
    if len(left) != n_labels or not np.array_equal(np.sort(order), numbers):
        raise ValueError("the places of its labels are not numbers from 0, each once")
    for name in (ORDER, DROPPED):
        arrays.pop(name, None)
    return np.concatenate([left[order], dropped])


def _entry(header: Mapping[str, Any], name: str, kind: type) -> Any:
    value: Any = header.get(name)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"its header has no proper entry {name!r}")
    return value


def _params(stored: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    unknown = stored.keys() - known.keys()
    if unknown:
        raise ValueError(
            f"it has a parameter that this version does not know, {min(unknown)[:80]!r}"
        )
    if type(stored.get("random_state")) not in (int, type(None)):
        raise ValueError("its parameter 'random_state' is not an int")
    params = {**known, **stored}
    check_params(params, "LdSMClassifier")
    return params


def _tree_params(values: dict[str, Any]) -> TreeParams:
    """Those that a file of format version 1 lacks have defaults."""
    fields = dataclasses.fields(TreeParams)
    return TreeParams(
        **{
            field.name: _entry(values, field.name, _JSON_TYPES[str(field.type)])
            for field in fields
            if field.name in values or field.default is dataclasses.MISSING
        }
    )
