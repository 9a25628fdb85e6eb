"""Field tables: what they write, read, refuse and hash."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ldsm._storage.fields import FLAG, Array, Entry, Names, Table, numbers, real, whole

NONE = np.zeros(0, np.float32)
TABLE = Table(
    "thing",
    Entry("size", whole(1, 9)),
    Entry("share", real(0, 1), hashed=False),
    Entry("weights", numbers(-1, 1), default=(), since=2),
    Entry("width", whole(0, 9), default=lambda values: values["size"], since=2),
    Entry("flag", FLAG, default=False, written=True, since=2),
    Array("offsets", (np.int64,), ("rows+1",)),
    Array("values", (np.float32,), ("rows", 2), bounds=(0, 5), halves=True),
    Array("units", (np.float32,), ("units",), default=NONE, since=2),
    Array("seen", (np.uint8,), ("rows",), default=None, since=2, hashed=False),
    Names("names", default=None, since=2),
)
VALUES: dict[str, Any] = {"size": 3, "share": 0.5, "weights": (), "width": 3, "flag": False}
VALUES |= {"offsets": np.arange(4), "values": np.ones((3, 2), np.float32), "units": NONE}
VALUES |= {"seen": np.ones(3, np.uint8), "names": ["a", "b"]}
HEADER = {"size": 3, "share": 0.5, "flag": False}


def test_defaults_are_left_out_and_restored():
    assert TABLE.written(VALUES) == HEADER
    assert TABLE.read(HEADER) == {name: VALUES[name] for name in (*HEADER, "weights", "width")}
    richer = {**VALUES, "weights": (0.5, -1.0), "width": 4}
    stored = TABLE.written(richer)
    assert stored == {**HEADER, "weights": [0.5, -1.0], "width": 4}
    assert TABLE.read(stored)["weights"] == (0.5, -1.0)


def test_arrays_are_taken_out():
    stored = TABLE.saved(VALUES, "it.")
    assert {"it.offsets", "it.values", "it.units", "it.seen"} < stored.keys()
    rest = {**stored, "other": NONE}
    found = TABLE.taken(rest, "it.", verify=True)
    assert list(rest) == ["other"] and list(found["names"]) == ["a", "b"]
    for name in ("offsets", "values", "units", "seen"):
        assert found[name] is stored[f"it.{name}"]
    for name in ("units", "seen", "names.text", "names.offsets"):
        del stored[f"it.{name}"]
    older = TABLE.taken(dict(stored), "it.", verify=True)
    assert older["units"] is NONE and older["seen"] is None and older["names"] is None


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ([], "no proper entry 'thing'"),
        ({"size": 3}, "no proper entry 'share': it must be a number from 0 to 1, but is missing"),
        ({**HEADER, "size": 10}, "'size': it must be an int from 1 to 9, not 10"),
        ({**HEADER, "size": True}, "'size'.* not True"),
        ({**HEADER, "share": float("nan")}, "'share'.* not nan"),
        ({**HEADER, "weights": [2]}, "'weights'"),
        ({**HEADER, "more": 1}, "thing has an entry that this version does not know, 'more'"),
    ],
)
def test_wrong_entries_are_refused(header, message):
    with pytest.raises(ValueError, match=message):
        TABLE.read(header)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": np.arange(4.0)}, "array it.offsets must be of type int64, but is float64"),
        (
            {"values": np.ones((2, 2), np.float32)},
            r"must have the shape \(3, 2\), but has \(2, 2\)",
        ),
        ({"values": np.ones(6, np.float32)}, "must have the shape"),
        ({"values": np.full((3, 2), np.nan, np.float32)}, "not a number from 0 to 5"),
        ({"units": np.ones(1, np.float16)}, "must be of type float32"),
    ],
)
def test_wrong_arrays_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        TABLE.taken(TABLE.saved({**VALUES, **change}, "it."), "it.", verify=True)


def test_missing_arrays_are_named():
    arrays = TABLE.saved(VALUES)
    del arrays["values"]
    with pytest.raises(ValueError, match="lacks the array 'values'"):
        TABLE.taken(arrays, verify=True)


def test_fingerprints_leave_out_defaults_and_what_decides_nothing():
    assert TABLE.deciding(VALUES) == {"size": 3}
    assert TABLE.deciding({**VALUES, "flag": True}) == {"size": 3, "flag": True}
    names = [part for part in TABLE.hashed(VALUES) if isinstance(part, str)]
    assert names == ["offsets(4,)", "values(3, 2)"]


def test_new_fields_need_a_default():
    with pytest.raises(TypeError, match="'late' needs a default"):
        Table("thing", Entry("late", FLAG, since=2))
