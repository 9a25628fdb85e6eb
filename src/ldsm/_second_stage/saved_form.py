"""Convert the second stage to a header entry and arrays, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._storage.container import Arrays, take, take_weights
from .blend import KINDS, Blend
from .stage import SecondStage
from .vectors import LabelVectors

LARGEST = 1e30  # for a coefficient: products with any float32, and their sums, stay finite


def stage_to_state(stage: SecondStage) -> tuple[dict[str, Any], Arrays]:
    """The blend as plain numbers, the vectors as arrays ``second_stage.<name>.<array>``."""
    header = asdict(stage.blend)
    header["coefficients"] = list(stage.blend.coefficients)
    arrays = {
        f"second_stage.{name}.{array}": values
        for name, vectors in stage.vectors()
        for array, values in vars(vectors).items()
    }
    return header, arrays


def stage_from_state(
    header: Any,
    arrays: Arrays,
    n_features: int,
    label_counts: NDArray[np.int64],
    *,
    verify: bool,
) -> SecondStage | None:
    """Take the second stage out of the arrays; with `verify`, all its numbers are checked."""
    if header is None:
        return None
    blend = _blend(header)
    vectors = {
        name: _vectors(name, arrays, n_features, len(label_counts), verify) for name in blend.needs
    }
    return SecondStage(blend, label_counts, **vectors)


def _blend(header: Any) -> Blend:
    if type(header) is not dict or header.keys() != Blend.__dataclass_fields__.keys():
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


def _vectors(
    name: str, arrays: Arrays, n_features: int, n_labels: int, verify: bool
) -> LabelVectors:
    place = f"second_stage.{name}"
    offsets, features = take(arrays, f"{place}.offsets"), take(arrays, f"{place}.features")
    weights = take_weights(arrays, f"{place}.weights")
    types = ((offsets, np.int64), (features, np.int32), (weights, np.float32))
    if any(array.dtype != dtype or array.ndim != 1 for array, dtype in types):
        raise ValueError(f"the arrays of its {name} have a wrong type or shape")
    if len(offsets) != n_labels + 1 or len(features) != len(weights):
        raise ValueError(f"the arrays of its {name} do not fit each other in size")
    vectors = LabelVectors(offsets, features, weights)
    if verify:
        _check_vectors(name, vectors, n_features)
    return vectors


def _check_vectors(name: str, vectors: LabelVectors, n_features: int) -> None:
    offsets, features = vectors.offsets, vectors.features
    if offsets[0] != 0 or offsets[-1] != len(features) or np.any(offsets[1:] < offsets[:-1]):
        raise ValueError(f"the offsets of its {name} do not rise from 0 to {len(features)}")
    if len(features) == 0:
        return
    if features.min() < 0 or features.max() > n_features:
        raise ValueError(f"its {name} has a feature out of range")
    falls = np.flatnonzero(features[1:] <= features[:-1]) + 1
    starts = offsets[np.searchsorted(offsets, falls)]
    if np.any(starts != falls):
        raise ValueError(f"the features of its {name} do not rise within a label")
    if not np.isfinite(vectors.weights).all():
        raise ValueError(f"its {name} has a weight that is not finite")
