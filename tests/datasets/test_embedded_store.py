"""Stores and data sets with embeddings: what is written comes back, what is wrong is refused."""

import json

import numpy as np
import pytest

from ldsm._execution.memory import is_mapped
from ldsm._storage.manifest import write_manifest
from ldsm.datasets import Dataset, open_store, save_store

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(5, 3))
NAMES = {"b": [1.0, 2.0, 3.0], "a": [0.0, 0.0, -2.0]}


def example(rows=slice(None), **changes):
    given = {
        "label_names": ["a", "b", "c"],
        "embeddings": VECTORS[rows],
        "label_embeddings": NAMES,
        **changes,
    }
    return Dataset(np.eye(5, 4)[rows], np.eye(5, 3)[rows], **given)


def assert_same(found, expected):
    assert np.array_equal(found.embeddings.values, expected.embeddings.values)
    assert np.array_equal(found.label_embeddings.labels, expected.label_embeddings.labels)
    own, wanted = (data.label_embeddings.rows.values for data in (found, expected))
    assert np.array_equal(own, wanted)


@pytest.mark.parametrize("verify", [True, False])
def test_round_trip_in_chunks(verify, tmp_path):
    save_store([example(slice(0, 2)), example(slice(2, 5))], tmp_path / "store")
    again = open_store(tmp_path / "store", verify=verify)
    assert_same(again, example())
    assert is_mapped(again.embeddings.values)
    save_store(again, tmp_path / "copy")
    assert_same(open_store(tmp_path / "copy"), example())
    Dataset(np.eye(5), np.eye(5)).save(tmp_path / "copy", overwrite=True)
    assert open_store(tmp_path / "copy").embeddings is None


def test_rows_and_labels_are_taken_together():
    data = example().select([4, 0])
    assert np.array_equal(data.embeddings.values, example().embeddings.values[[4, 0]])
    other = Dataset(np.eye(2, 4), np.eye(2, 3), label_names=["c", "b", "x"])
    aligned, _ = example().align(other)
    assert aligned.label_embeddings.labels.tolist() == [1]
    assert np.array_equal(
        aligned.label_embeddings.rows.values[0], example().label_embeddings.rows.values[1]
    )
    numbered = example(label_names=None, label_embeddings={2: [1.0, 0, 0], 0: [0, 1.0, 0]})
    assert numbered.label_embeddings.labels.tolist() == [0, 2]
    narrow, _ = numbered.align(Dataset(np.eye(2, 4), np.eye(2, 2)))
    assert narrow.label_embeddings.labels.tolist() == [0]


def test_wrong_embeddings():
    for changes, message in (
        ({"embeddings": VECTORS[:4]}, "embeddings must have as many rows as X, 5. Got 4"),
        ({"embeddings": None}, "label_embeddings need embeddings of the rows"),
        ({"label_embeddings": {"d": [1, 2, 3]}}, "has a vector for 'd', which is not a label"),
        ({"label_embeddings": {"a": [1, 2]}}, "must hold vectors of 3 numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            example(**changes)
    with pytest.raises(ValueError, match="embeddings need X beside them"):
        Dataset(None, np.eye(5), texts=list("abcde"), embeddings=VECTORS)


def test_chunks_of_another_width(tmp_path):
    wide = example(embeddings=np.ones((5, 4)), label_embeddings=None)
    for other in (wide, example(embeddings=None, label_embeddings=None)):
        with pytest.raises(ValueError, match="All chunks of a store must have the same"):
            save_store([example(), other], tmp_path / "store")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dimensions": 4}, "embeddings does not have the size of its rows"),
        ({"dimensions": 0}, "embeddings does not have the size of its rows"),
        ({"dimensions": "3"}, "missing or invalid entry"),
        ({"labels": 1, "label_names": None}, "embedded_labels does not match its labels"),
    ],
)
def test_damaged_stores(change, message, tmp_path):
    given = {} if "label_names" not in change else {"label_names": None}
    given |= {"label_embeddings": {0: [1.0, 0, 0], 1: [1.0, 0, 0]}} if given else {}
    example(**given).save(tmp_path / "store")
    path = tmp_path / "store" / "meta.json"
    meta = json.loads(path.read_text())
    del meta["identity"]
    change = {name: value for name, value in change.items() if value is not None}
    path.unlink()
    write_manifest(str(path), {**meta, **change}, replace=True)
    with pytest.raises(ValueError, match=message):
        open_store(tmp_path / "store")


def test_long_rows_are_noticed(tmp_path):
    data = example()
    data.embeddings.values.flags.writeable = True
    data.embeddings.values[1] = 30_000
    data.save(tmp_path / "store")
    with pytest.raises(ValueError, match="embeddings has rows that are too long"):
        open_store(tmp_path / "store", verify=True)
