"""Convert the second stage to a header entry and arrays, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._features.blocks import BIGRAMS, BLOCKS, MAIN, SUB_WORDS, Layout
from .._matching.evidence import Evidence
from .._matching.part import LARGEST
from .._matching.shortlists import SHORTLIST
from .._storage.container import Arrays
from .._storage.fields import (
    FLAG,
    Array,
    Entry,
    Kind,
    Table,
    numbers,
    optional,
    real,
    whole,
)
from .blend import KINDS, UNSEEN_MEANING_TERMS, UNSEEN_TERMS, Blend
from .parts import PARTS
from .stage import SecondStage

PLACE = "second_stage."
LONGEST = 1_000_000  # shortlist
_SHARE = Kind("a number in (0, 1]", lambda value: real(0, 1).allows(value) and value > 0, float)
_NUMBER, _NUMBERS = real(-LARGEST, LARGEST), numbers(-LARGEST, LARGEST)
BLEND = Table(
    "second_stage",
    Entry("kind", Kind("a known blend, such as 'linear+index'", lambda kind: kind in list(KINDS))),
    Entry("coefficients", _NUMBERS),
    Entry("tree_share", _NUMBER),
    Entry("gamma", _NUMBER),
    Entry("unseen", _NUMBERS, default=(), since=2),
    Entry("most_cosine", _NUMBER, default=0.0, since=2),
    Entry("count_share", _SHARE, default=1.0, since=2),
    Entry("length", whole(1, LONGEST), default=SHORTLIST, written=True, since=2),
    Entry("match_names", FLAG, default=False, since=2),
    Entry("n_copies", whole(0, 2**53), default=0, since=2),
    Entry("usual_meaning", real(0, LARGEST), default=0.0, since=3),
    Entry("evidence", optional(numbers(0, LARGEST)), default=None, since=2),
    Array("label_counts", (np.int64,), ("labels",), default=None, since=2),
    Array("telling_sub_words", (np.uint8,), ("sub_words",), default=None, since=2),
    Array("masses", (np.float32,), ("masses",), (0, LARGEST), default=None, since=2, hashed=False),
    Array("tested", (np.uint16,), ("labels", 2), default=None, since=2, hashed=False),
    Array("dropped_seen", (np.uint8,), ("dropped",), default=None, since=2),
    Array("learned_rows", (np.uint64,), ("learned", 2), default=None, since=3, hashed=False),
)


def stage_to_state(
    stage: SecondStage, label_counts: NDArray[np.int64]
) -> tuple[dict[str, Any], Arrays]:
    """The blend as plain numbers, its parts as arrays ``second_stage.<name>.<array>``.

    `label_counts` are those of the model, which the stage usually has, too.
    """
    values = _values(stage, label_counts)
    arrays = BLEND.saved(values, PLACE)
    for name, part in stage.parts.items():
        arrays |= part.TABLE.saved(vars(part), f"{PLACE}{name}.")
    return BLEND.written(values), arrays


def stage_hashed(
    stage: SecondStage, label_counts: NDArray[np.int64], n_training_rows: int
) -> Iterator[str | NDArray[Any]]:
    """What enters the fingerprint of a model."""
    values = _values(stage, label_counts)
    yield repr(BLEND.deciding(values))
    if stage.evidence is not None:  # then scores depend on base rates
        yield str(n_training_rows)
    for name, part in stage.parts.items():
        yield from part.TABLE.hashed(vars(part), f"{PLACE}{name}.")
    yield from BLEND.hashed(values, PLACE)


def _values(stage: SecondStage, label_counts: NDArray[np.int64]) -> dict[str, Any]:
    values = {**vars(stage.blend), **vars(stage)}
    if np.array_equal(stage.label_counts, label_counts):
        values["label_counts"] = None
    if stage.evidence is not None:
        values["evidence"] = tuple(stage.evidence)
    if stage.masses is not None:
        blocks = [name for name in BLOCKS if name in stage.masses]
        values["masses"] = np.concatenate([stage.masses[name] for name in blocks])
    return values


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
    values = BLEND.read(header)
    blend = Blend(**{name: values[name] for name in Blend.__dataclass_fields__})
    _check_blend(blend)
    evidence, match_names = values["evidence"], values["match_names"]
    if evidence is not None and (len(evidence) != len(Evidence._fields) or evidence[-1] <= 0):
        raise ValueError(
            f"its measures of evidence are not {len(Evidence._fields)} positive numbers"
        )
    if values["usual_meaning"] > 0 and "meaning" not in blend.needs:
        raise ValueError("its header has no proper entry 'usual_meaning': it has no embeddings")
    if match_names and "names" not in blend.needs:
        raise ValueError("its header has no proper entry 'match_names': it has no names")
    labels = {"labels": len(label_counts), "known": len(label_counts) + n_dropped}
    parts = {
        name: PARTS[name].from_arrays(
            name, arrays, {"features": layout.width_for(name), **labels}, verify=verify
        )
        for name in blend.needs
    }
    blocks = (MAIN, BIGRAMS, SUB_WORDS) if "sub_index" in parts else (MAIN, BIGRAMS)
    widths = [layout[block] for block in blocks]
    sizes = {"sub_words": layout[SUB_WORDS], "masses": sum(widths), "dropped": n_dropped, **labels}
    needed = {
        "telling_sub_words": evidence is not None and "sub_index" in parts,
        "dropped_seen": n_dropped > 0 and "names" in parts,
    }
    without = [name for name, is_needed in needed.items() if not is_needed]
    found = BLEND.taken(arrays, PLACE, verify=verify, sizes=sizes, without=without)
    for name, is_needed in needed.items():
        if is_needed and found[name] is None:
            raise ValueError(f"it lacks the array '{PLACE}{name}'")
    if (masses := found["masses"]) is not None:
        pieces = np.split(masses, np.cumsum(widths)[:-1])
        found["masses"] = dict(zip(blocks, pieces, strict=True))
    counts = _label_counts(found.pop("label_counts"), label_counts)
    return SecondStage(
        blend,
        counts,
        values["length"],
        parts,
        match_names=match_names,
        n_copies=values["n_copies"],
        evidence=None if evidence is None else Evidence(*evidence),
        usual_meaning=values["usual_meaning"],
        **found,
    )


def _label_counts(own: NDArray[np.int64] | None, of_model: NDArray[np.int64]) -> NDArray[np.int64]:
    """The stage's own label counts, in the file of a model that has learned copies of rows."""
    if own is None:
        return of_model
    if ((own < 0) | (own > of_model) | ((own > 0) != (of_model > 0))).any():
        raise ValueError("the label counts of its second stage do not fit those of its rows")
    return own


def _check_blend(blend: Blend) -> None:
    if len(blend.coefficients) != len(blend.terms):
        raise ValueError("its second stage has a wrong number of coefficients")
    allowed = [0, len(UNSEEN_TERMS)]
    if "meaning" in blend.needs:
        allowed.append(len(UNSEEN_MEANING_TERMS))
    if len(blend.unseen) not in allowed:
        raise ValueError("its second stage has a wrong number of coefficients for unseen labels")
    if blend.unseen and "ranker" not in KINDS[blend.kind].needs:
        raise ValueError("its second stage cannot know unseen labels")
