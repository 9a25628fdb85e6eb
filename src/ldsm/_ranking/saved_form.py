"""Convert the second stage to a header entry and arrays, and back."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._features.blocks import BIGRAMS, BLOCKS, MAIN, SUB_WORDS, Layout
from .._matching.evidence import Evidence
from .._matching.feature_index import FeatureIndex
from .._matching.saved_names import names_from_state
from .._storage.array_checks import check_order, check_types
from .._storage.container import Arrays, take, take_weights
from .blend import KINDS, UNSEEN_TERMS, Blend
from .label_vectors import LabelVectors
from .stage import SHORTLIST, SecondStage

LONGEST = 1_000_000  # shortlist
LABEL_COUNTS = "second_stage.label_counts"
MASSES, TESTED = "second_stage.masses", "second_stage.tested"
DROPPED_SEEN = "second_stage.dropped_seen"
TELLING = "second_stage.telling_sub_words"
NOT_FOR_PREDICTIONS = (MASSES, TESTED)
LARGEST = 1e30  # for a coefficient: products with any float32, and their sums, stay finite


def stage_to_state(
    stage: SecondStage, label_counts: NDArray[np.int64] | None = None
) -> tuple[dict[str, Any], Arrays]:
    """The blend as plain numbers, its parts as arrays ``second_stage.<name>.<array>``.

    `label_counts` are those of the model, which the stage usually has, too.
    """
    header = asdict(stage.blend)
    header["coefficients"] = list(stage.blend.coefficients)
    header["length"] = stage.length
    # Files of models without names do without these.
    if stage.blend.unseen:
        header["unseen"] = list(stage.blend.unseen)
    else:
        del header["unseen"]
    if not stage.blend.most_cosine:
        del header["most_cosine"]
    if stage.blend.count_share == 1:  # of a model that has not learned on
        del header["count_share"]
    if stage.match_names:
        header["match_names"] = True
    if stage.n_copies:
        header["n_copies"] = stage.n_copies
    if stage.evidence is not None:
        header["evidence"] = list(stage.evidence)
    arrays = {
        f"second_stage.{name}.{array}": values
        for name, part in stage.parts()
        for array, values in part.arrays().items()
    }
    if label_counts is not None and not np.array_equal(stage.label_counts, label_counts):
        arrays[LABEL_COUNTS] = stage.label_counts.astype(np.int64)
    if stage.telling_sub_words is not None:
        arrays[TELLING] = stage.telling_sub_words
    if stage.masses is not None:
        blocks = [name for name in BLOCKS if name in stage.masses]
        arrays[MASSES] = np.concatenate([stage.masses[name] for name in blocks])
    if stage.tested is not None:
        arrays[TESTED] = stage.tested
    if stage.dropped_seen is not None:
        arrays[DROPPED_SEEN] = stage.dropped_seen
    return header, arrays


def stage_from_state(
    header: Any,
    arrays: Arrays,
    layout: Layout,
    label_counts: NDArray[np.int64],
    n_dropped: int,
    *,
    verify: bool,
) -> SecondStage | None:
    """Take the second stage out of the arrays; with `verify`, all its numbers are checked.

    `n_dropped`: labels that the matchers know besides those that are left.
    """
    if header is None:
        return None
    if type(header) is not dict:
        raise ValueError("its header has no proper entry 'second_stage'")
    header = dict(header)
    length = header.pop("length", SHORTLIST)  # files of format version 1 do not say
    if type(length) is not int or not 1 <= length <= LONGEST:
        raise ValueError(f"its shortlists must have 1 to {LONGEST} labels, not {length!r:.40}")
    match_names = header.pop("match_names", False)
    evidence = _evidence(header.pop("evidence", None))  # files of earlier versions lack it
    n_copies = header.pop("n_copies", 0)
    if type(n_copies) is not int or n_copies < 0:
        raise ValueError(f"its number of copies must be an int >= 0, not {n_copies!r:.40}")
    blend = _blend(header)
    if type(match_names) is not bool or (match_names and "names" not in blend.needs):
        raise ValueError("its header has no proper entry 'match_names'")
    n_labels = len(label_counts)
    parts: dict[str, Any] = {}
    for name in blend.needs:
        width = layout.width_for(name)
        if name in ("index", "sub_index"):
            parts[name] = _index(name, arrays, width, n_labels + n_dropped, verify)
        elif name == "names":
            parts[name] = names_from_state(arrays, width, n_labels, n_dropped, verify=verify)
        else:
            parts[name] = _vectors(name, arrays, width, n_labels, verify)
    counts = _label_counts(arrays, label_counts)
    stage = SecondStage(blend, counts, length, match_names=match_names, **parts)
    return replace(
        stage,
        n_copies=n_copies,
        evidence=evidence,
        telling_sub_words=_telling(arrays, stage, layout[SUB_WORDS], evidence),
        masses=_masses(arrays, layout, stage.sub_index is not None, verify),
        tested=_tested(arrays, n_labels),
        dropped_seen=_dropped_seen(arrays, n_dropped if stage.names else 0),
    )


def _label_counts(arrays: Arrays, of_model: NDArray[np.int64]) -> NDArray[np.int64]:
    """The stage's own label counts, in the file of a model that has learned copies of rows."""
    counts = arrays.pop(LABEL_COUNTS, of_model)
    if counts.dtype != np.int64 or counts.shape != of_model.shape:
        raise ValueError("the label counts of its second stage have a wrong type or length")
    if ((counts < 0) | (counts > of_model) | ((counts > 0) != (of_model > 0))).any():
        raise ValueError("the label counts of its second stage do not fit those of its rows")
    return counts


def _evidence(stored: Any) -> Evidence | None:
    if stored is None:
        return None
    if type(stored) is not list or len(stored) != len(Evidence._fields):
        raise ValueError("its header has no proper entry 'evidence'")
    if not all(type(n) in (int, float) and 0 <= n <= LARGEST for n in stored) or stored[-1] <= 0:
        raise ValueError(f"its measures of evidence are not numbers from 0 to {LARGEST:g}")
    return Evidence(*map(float, stored))


def _telling(
    arrays: Arrays, stage: SecondStage, n_sub_words: int, evidence: Evidence | None
) -> NDArray[np.uint8] | None:
    if evidence is None or stage.sub_index is None:
        return None
    telling = take(arrays, TELLING)
    if telling.dtype != np.uint8 or telling.shape != (n_sub_words,):
        raise ValueError("the list of its telling sub-words has a wrong type or length")
    return telling


def _masses(
    arrays: Arrays, layout: Layout, with_sub_words: bool, verify: bool
) -> dict[str, NDArray[np.float32]] | None:
    masses = arrays.pop(MASSES, None)  # files of earlier versions lack it
    if masses is None:
        return None
    blocks = (MAIN, BIGRAMS, SUB_WORDS) if with_sub_words else (MAIN, BIGRAMS)
    ends = np.cumsum([layout[block] for block in blocks])
    if masses.dtype != np.float32 or masses.shape != (ends[-1],):
        raise ValueError("the masses of its features have a wrong type or length")
    if verify and not ((masses >= 0) & (masses <= LARGEST)).all():
        raise ValueError(f"the mass of a feature is not a number from 0 to {LARGEST:g}")
    return dict(zip(blocks, np.split(masses, ends[:-1]), strict=True))


def _tested(arrays: Arrays, n_labels: int) -> NDArray[np.uint16] | None:
    tested = arrays.pop(TESTED, None)  # files of earlier versions lack it
    if tested is not None and (tested.dtype != np.uint16 or tested.shape != (n_labels, 2)):
        raise ValueError("the tests of its labels have a wrong type or shape")
    return tested


def _dropped_seen(arrays: Arrays, n_dropped: int) -> NDArray[np.uint8] | None:
    if not n_dropped:
        return None
    seen = take(arrays, DROPPED_SEEN)
    if seen.dtype != np.uint8 or seen.shape != (n_dropped,):
        raise ValueError("what it says of dropped labels has a wrong type or length")
    return seen


def _blend(header: dict[str, Any]) -> Blend:
    unseen, most_cosine = header.pop("unseen", []), header.pop("most_cosine", 0.0)
    count_share = header.pop("count_share", 1.0)
    optional = {"unseen", "most_cosine", "count_share"}
    if header.keys() | optional != Blend.__dataclass_fields__.keys():
        raise ValueError("its header has no proper entry 'second_stage'")
    kind, coefficients = header["kind"], header["coefficients"]
    if type(kind) is not str or kind not in KINDS:
        raise ValueError(f"its second stage is of an unknown kind, {str(kind)[:40]!r}")
    if type(coefficients) is not list or len(coefficients) != len(KINDS[kind].terms):
        raise ValueError("its second stage has a wrong number of coefficients")
    if type(unseen) is not list or len(unseen) not in (0, len(UNSEEN_TERMS)):
        raise ValueError("its second stage has a wrong number of coefficients for unseen labels")
    if unseen and "ranker" not in KINDS[kind].needs:
        raise ValueError("its second stage cannot know unseen labels")
    numbers = [*coefficients, *unseen, most_cosine, header["tree_share"], header["gamma"]]
    if not all(type(n) in (int, float) and abs(n) <= LARGEST for n in numbers):
        raise ValueError(f"a coefficient of its second stage is not a number up to {LARGEST:g}")
    if type(count_share) not in (int, float) or not 0 < count_share <= 1:
        raise ValueError(f"the share of its counts must lie in (0, 1], not {count_share!r:.40}")
    return Blend(
        kind,
        tuple(map(float, coefficients)),
        float(numbers[-2]),
        float(numbers[-1]),
        tuple(map(float, unseen)),
        float(most_cosine),
        float(count_share),
    )


def _index(part: str, arrays: Arrays, n_features: int, n_labels: int, verify: bool) -> FeatureIndex:
    place = f"second_stage.{part}"
    index = FeatureIndex(
        *(take(arrays, f"{place}.{name}") for name in ("offsets", "labels", "codes", "units"))
    )
    types = ((np.int64,), (np.int32, np.uint16, np.uint8), (np.uint8,), (np.float32,))
    check_types(part, index.arrays().values(), types)
    if (
        len(index.offsets) != n_features + 1
        or len(index.units) != n_features
        or len(index.labels) != len(index.codes)
    ):
        raise ValueError(f"the arrays of its {part} do not fit each other in size")
    if verify:
        check_order(part, index.offsets, index.labels, n_labels, "label", "feature")
        _check_units(part, index.units)
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
    check_types(name, vectors.arrays().values(), ((np.int64,), features, weights, (np.float32,)))
    if (
        len(vectors.offsets) != n_labels + 1
        or len(vectors.features) != len(vectors.weights)
        or len(units) != (n_labels if compressed else 0)
    ):
        raise ValueError(f"the arrays of its {name} do not fit each other in size")
    if verify:
        limit = n_features + 1
        check_order(
            name, vectors.offsets, vectors.features, limit, "feature", "label", gaps=compressed
        )
        _check_units(name, units)
        if not compressed and not np.isfinite(vectors.weights).all():
            raise ValueError(f"its {name} has a weight that is not finite")
    return vectors


def _check_units(name: str, units: NDArray[np.float32]) -> None:
    if not ((units >= 0) & (units <= LARGEST)).all():  # false for NaN
        raise ValueError(f"its {name} has a unit that is not a number from 0 to {LARGEST:g}")
