"""Convert a fitted model to a header and arrays for ``save``, and back for ``load``.

A model that contains another adds these to its own header and arrays. Invalid content raises a
ValueError; ``load`` adds the name of the file.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .._features.blocks import BIGRAMS, MAIN, Layout
from .._ranking.saved_form import stage_from_state, stage_to_state
from .._storage.container import Arrays
from .._storage.fields import FLAG, MAPPING, TEXT, Entry, Table, real, whole
from .._trees.checks import check_forest
from .._trees.forest import FOREST, Forest
from .._trees.params import TreeParams, check_params
from .fitted import MODEL, MOST_ROWS, FittedModel
from .names import labels_from_arrays, labels_to_arrays, plain
from .sets.expected_f1 import ExpectedF1
from .sets.thresholds import Threshold

HEADER = Table(
    "header", Entry("parameters", MAPPING), Entry("model", MAPPING), Entry("training", MAPPING)
)
ABOUT_FILE = ("format_version", "library_version", "kind")
_KINDS = {"int": whole(-(2**63), 2**63), "float": real(), "bool": FLAG, "str": TEXT}
TREE_PARAMS = Table(
    "tree_params",
    *(
        # Files of format version 1 lack those that have defaults.
        Entry(field.name, _KINDS[str(field.type)])
        if field.default is dataclasses.MISSING
        else Entry(field.name, _KINDS[str(field.type)], field.default, written=True, since=2)
        for field in dataclasses.fields(TreeParams)
    ),
)
# The entries that the library itself reads.
TRAINING = Table(
    "training",
    Entry("rows", whole(0, MOST_ROWS)),
    Entry("seconds", real(0)),
    Entry("finished", TEXT, default=""),
    is_open=True,
)


def model_to_state(model: FittedModel, params: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays]:
    """A fitted model and the parameters of its estimator as header entries and arrays.

    Damaged trees and labels other than str, int and bool raise a ValueError.
    """
    params = {name: plain(value) for name, value in params.items()}
    params["leaf_scores"] = model.forest.leaf_scores  # of the fit, even if it was changed later
    if type(params["random_state"]) is not int:
        params["random_state"] = None  # a generator's state is not part of the model
    check_params(params, "LdSMClassifier")
    forest, layout, stage = model.forest, model.layout, model.second_stage
    check_forest(forest)  # do not save what would not load
    arrays = FOREST.saved(vars(forest), "forest.")
    stage_header = None
    if stage is not None:
        stage_header, stage_arrays = stage_to_state(stage, model.label_counts)
        arrays |= stage_arrays
    label_dtype, label_arrays = labels_to_arrays(model.classes)
    values = {
        "arity": forest.arity,
        "n_features": model.n_features,
        "n_matched": forest.n_features,
        "n_indexed": layout[MAIN],
        "n_ranked": layout[MAIN] + layout[BIGRAMS],
        "n_dense": layout.dense,
        "dense_from_main": layout.from_main,
        "n_labels": forest.n_labels,
        "label_form": model.label_form,
        "label_dtype": label_dtype,
        "seed": model.seed,
        "tree_params": model.tree_params.as_dict(),
        "second_stage": stage_header,
        "label_counts": model.label_counts.astype(np.int64),
        "feature_names": model.feature_names,
        **model.threshold_state,
        **_order_of_labels(forest),
    }
    training = dict(model.training)
    header = {"parameters": params, "model": MODEL.written(values), "training": training}
    return header, {**arrays, **label_arrays, **MODEL.saved(values)}


def _order_of_labels(forest: Forest) -> dict[str, Any]:
    order = np.argsort(np.argsort(forest.places[: forest.n_labels])).astype(np.int32)
    same = np.array_equal(order, np.arange(len(order)))
    return {
        "forest.label_order": None if same else order,
        "forest.dropped_places": forest.places[forest.n_labels :] if forest.n_dropped else None,
    }


# -- reading ----------------------------------------------------------------------------------


def model_from_state(
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    known_params: Mapping[str, Any],
    *,
    verify: bool = True,
) -> tuple[dict[str, Any], FittedModel]:
    """The estimator's parameters and the fitted model that `model_to_state` described.

    `known_params` are all parameters of an estimator, with their defaults. With `verify`, every
    number of the trees is checked, otherwise only what can be checked without reading them.
    """
    arrays = dict(arrays)
    stored = HEADER.read({name: header[name] for name in header if name not in ABOUT_FILE})
    params = _params(stored["parameters"], known_params)
    described, training = MODEL.read(stored["model"]), TRAINING.read(stored["training"])
    n_features, n_labels = described["n_features"], described["n_labels"]
    n_matched, n_indexed = described["n_matched"], described["n_indexed"]
    n_ranked = described["n_ranked"]
    if not n_matched <= n_indexed <= n_ranked <= n_features:
        raise ValueError(
            f"its number of features is out of range, {n_features}, {n_ranked}, {n_indexed} or "
            f"{n_matched}"
        )
    layout = Layout.of(
        main=n_indexed,
        bigrams=n_ranked - n_indexed,
        sub_words=n_features - n_ranked,
        dense=described["n_dense"],
        from_main=described["dense_from_main"],
    )
    if layout.from_main and not n_features == n_indexed == layout.dense:
        raise ValueError("its embeddings are its features, but differ from them in number")
    described |= MODEL.taken(arrays, verify=verify, sizes={"labels": n_labels})
    counts, names = described["label_counts"], described["feature_names"]
    if counts.min() < 0 or counts.max() > training["rows"]:
        raise ValueError("one of its labels has more rows than there were in training")
    labels = labels_from_arrays(described["label_dtype"], n_labels, arrays, verify)
    if names is not None and len(names) != n_features:
        raise ValueError(f"it has {len(names)} feature names for {n_features} features")
    tree_params = TreeParams(**TREE_PARAMS.read(described["tree_params"]))
    forest = Forest(
        arity=described["arity"],
        n_features=n_matched,
        n_labels=n_labels,
        places=_places(described, n_labels),
        leaf_scores=params["leaf_scores"],
        **FOREST.taken(arrays, "forest.", verify=verify, sizes={"arity": described["arity"]}),
    )
    check_forest(forest, everything=verify)
    stage = stage_from_state(
        described["second_stage"],
        arrays,
        layout,
        counts,
        forest.n_dropped,
        verify=verify,
    )
    if stage is not None and stage.n_copies > training["rows"] - counts.max():
        raise ValueError(f"its training rows cannot have {stage.n_copies:,} copies of others")
    if arrays:
        unknown = min(arrays)
        raise ValueError(f"it holds an array that this version does not know, {unknown[:80]!r}")
    return params, FittedModel(
        forest,
        stage,
        labels,
        described["label_form"],
        counts,
        tree_params,
        described["seed"],
        stored["training"],
        names,
        _threshold(described),
        layout=layout,
        verified=verify,
    )


def _threshold(described: Mapping[str, Any]) -> Threshold:
    by_f1 = described["expected_f1"]
    given = [described[name] for name in ("threshold", "thresholds") if described[name] is not None]
    if by_f1 is not None and len(by_f1) == len(ExpectedF1._fields):
        given.append(ExpectedF1(*by_f1))
    if len(given) != 1:
        raise ValueError(
            "its model has no proper entry 'threshold': it must be one, one per label, or by F1"
        )
    return cast(Threshold, given[0])


def _places(described: Mapping[str, Any], n_labels: int) -> NDArray[np.int32]:
    """The places of all labels, dropped ones last; empty if they are the order of the labels."""
    order, dropped = described["forest.label_order"], described["forest.dropped_places"]
    if order is None and dropped is None:
        return np.zeros(0, np.int32)
    numbers = np.arange(n_labels, dtype=np.int32)
    order = numbers if order is None else order
    dropped = numbers[:0] if dropped is None else dropped
    left = np.setdiff1d(np.arange(n_labels + len(dropped), dtype=np.int32), dropped)
    if len(left) != n_labels or not np.array_equal(np.sort(order), numbers):
        raise ValueError("the places of its labels are not numbers from 0, each once")
    return np.concatenate([left[order], dropped])


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
