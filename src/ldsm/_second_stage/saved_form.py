"""Convert the second stage to a header entry and arrays, and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._storage.container import Arrays, take, take_weights
from .._storage.gaps import unordered
from .blend import KINDS, Blend
from .feature_index import FeatureIndex
from .stage import SHORTLIST, SecondStage
from .vectors import LabelVectors

LONGEST = 1_000_000  # shortlist
LARGEST = 1e30  # for a coefficient: products with any float32, and their sums, stay finite


def stage_to_state(stage: SecondStage) -> tuple[dict[str, Any], Arrays]:
    """The blend as plain numbers, its parts as arrays ``second_stage.<name>.<array>``."""
    header = asdict(stage.blend)
    header["coefficients"] = list(stage.blend.coefficients)
    header["length"] = stage.length
    arrays = {
        f"second_stage.{name}.{array}": values
        for name, part in stage.parts()
        for array, values in part.arrays().items()
    }
    return header, arrays


def stage_from_state(
    header: Any,
    arrays: Arrays,
    n_features: int,
    n_matched: int,
    label_counts: NDArray[np.int64],
    *,
    verify: bool,
) -> SecondStage | None:
    """Take the second stage out of the arrays; with `verify`, all its numbers are checked.

    The index uses the first `n_matched` features, the other parts all of them.
    """
    if header is None:
        return None
    if type(header) is not dict:
        raise ValueError("its header has no proper entry 'second_stage'")
    header = dict(header)
    length = header.pop("length", SHORTLIST)  # files of format version 1 do not say
    if type(length) is not int or not 1 <= length <= LONGEST:
        raise ValueError(f"its shortlists must have 1 to {LONGEST} labels, not {length!r:.40}")
    blend = _blend(header)
    n_labels = len(label_counts)
    parts: dict[str, Any] = {
        name: _index(arrays, n_matched, n_labels, verify)
        if name == "index"
        else _vectors(name, arrays, n_features, n_labels, verify)
        for name in blend.needs
    }
    return SecondStage(blend, label_counts, length, **parts)


def _blend(header: dict[str, Any]) -> Blend:
    if header.keys() != Blend.__dataclass_fields__.keys():
        raise ValueError("its header has no proper entry 'second_stage'")
    kind, coefficients = header["kind"], header["coefficients"]
    if type(kind) is not str or kind not in KINDS:
        raise ValueError(f"its second stage is of an unknown kind, {str(kind)[:40]!r}")
    if type(coefficients) is not list or len(coefficients) != len(KINDS[kind].terms):
        raise ValueError("its second stage has a wrong number of coefficients")
    numbers = [*coefficients, header["tree_share"], header["gamma"]]
    if not all(type(n) in (int, float) and abs(n) <= LARGEST for n in numbers):
        raise ValueError(f"a coefficient of its second stage is not a number up to {LARGEST:g}")
    return Blend(kind, tuple(map(float, coefficients)), float(numbers[-2]), float(numbers[-1]))


def _index(arrays: Arrays, n_features: int, n_labels: int, verify: bool) -> FeatureIndex:
    place = "second_stage.index"
    index = FeatureIndex(
        *(take(arrays, f"{place}.{name}") for name in ("offsets", "labels", "codes", "units"))
    )
    types = ((np.int64,), (np.int32, np.uint16, np.uint8), (np.uint8,), (np.float32,))
    _check_types("index", index.arrays().values(), types)
    if (
        len(index.offsets) != n_features + 1
        or len(index.units) != n_features
        or len(index.labels) != len(index.codes)
    ):
        raise ValueError("the arrays of its index do not fit each other in size")
    if verify:
        _check_order("index", index.offsets, index.labels, n_labels, "label", "feature")
        _check_units("index", index.units)
    return index


def _vectors(
    name: str, arrays: Arrays, n_features: int, n_labels: int, verify: bool
) -> LabelVectors:
    place = f"second_stage.{name}"
    units = arrays.pop(f"{place}.units", np.zeros(0, np.float32))  # new in format version 2
    vectors = LabelVectors(
        take(arrays, f"{place}.offsets"),
        take(arrays, f"{place}.features"),
        take_weights(arrays, f"{place}.weights"),
        units,
    )
    compressed = vectors.weights.dtype == np.int8
    features = (np.uint8, np.uint16) if compressed else (np.int32,)
    weights = (np.int8,) if compressed else (np.float32,)
    _check_types(name, vectors.arrays().values(), ((np.int64,), features, weights, (np.float32,)))
    if (
        len(vectors.offsets) != n_labels + 1
        or len(vectors.features) != len(vectors.weights)
        or len(units) != (n_labels if compressed else 0)
    ):
        raise ValueError(f"the arrays of its {name} do not fit each other in size")
    if verify:
        limit = n_features + 1
        _check_order(
            name, vectors.offsets, vectors.features, limit, "feature", "label", gaps=compressed
        )
        _check_units(name, units)
        if not compressed and not np.isfinite(vectors.weights).all():
            raise ValueError(f"its {name} has a weight that is not finite")
    return vectors


def _check_types(
    name: str, arrays: Iterable[NDArray[Any]], types: Iterable[tuple[type, ...]]
) -> None:
    for array, allowed in zip(arrays, types, strict=True):
        if array.dtype not in allowed or array.ndim != 1:
            raise ValueError(f"the arrays of its {name} have a wrong type or shape")


def _check_order(
    name: str,
    offsets: NDArray[np.int64],
    numbers: NDArray[Any],
    limit: int,
    kind: str,
    owner: str,
    *,
    gaps: bool = False,
) -> None:
    if offsets[0] != 0 or offsets[-1] != len(numbers) or np.any(offsets[1:] < offsets[:-1]):
        raise ValueError(f"the offsets of its {name} do not rise from 0 to {len(numbers)}")
    outside, falling = unordered(numbers, offsets, limit, gaps=gaps)
    if outside.any():
        raise ValueError(f"its {name} has a {kind} out of range")
    if falling.any():
        raise ValueError(f"the {kind}s of its {name} do not rise within a {owner}")


def _check_units(name: str, units: NDArray[np.float32]) -> None:
    if not ((units >= 0) & (units <= LARGEST)).all():  # false for NaN
        raise ValueError(f"its {name} has a unit that is not a number from 0 to {LARGEST:g}")
