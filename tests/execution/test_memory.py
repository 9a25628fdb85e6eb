"""Training with little memory: the same model, whatever the limit."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

import process_memory
from ldsm import LdSMClassifier, datasets
from ldsm._execution import memory
from ldsm._execution.memory import (
    available_bytes,
    concatenated,
    random_access,
    return_free_memory,
    tree_memory,
)

SMALL = 1 << 20  # the least that is allowed; the data below is several times larger


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> datasets.Dataset:
    folder = tmp_path_factory.mktemp("memory") / "store"
    data = datasets.make_xmc(3000, 4000, 60, nonzeros_per_row=100, seed=2)
    assert data.X.nnz * 8 > 2 * SMALL
    data.save(folder)
    return datasets.open_store(folder)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("settings", [{}, {"arity": 4, "optimizer": "nag", "n_epochs": 2}])
def test_memory_limit_same_model(store, seed, settings, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    clf = LdSMClassifier(2, max_nodes=101, rerank=None, random_state=seed, **settings)
    expected = clf.fit(np.asarray(store.X.todense()), store.Y).fingerprint_
    assert clf.fit(store).fingerprint_ == expected
    clf.set_params(memory_limit=SMALL)
    assert clf.fit(store).fingerprint_ == expected
    assert clf.set_params(n_jobs=2).fit(store).fingerprint_ == expected
    assert not os.listdir(tmp_path)  # what was put there had no name
    clf.fit(store, checkpoint_dir=tmp_path / "checkpoint")
    assert clf.fingerprint_ == expected
    clf.save(tmp_path / "m.ldsm")


def test_forest_joined_on_disk(store: datasets.Dataset, tmp_path) -> None:
    there = LdSMClassifier(3, max_nodes=101, random_state=0, memory_limit=SMALL).fit(store)
    here = LdSMClassifier(3, max_nodes=101, random_state=0).fit(store)
    np.testing.assert_array_equal(there.predict_topk(store.X)[1], here.predict_topk(store.X)[1])
    more = there.set_params(warm_start=True, n_estimators=4).fit(store)
    again = here.set_params(warm_start=True, n_estimators=4).fit(store)
    assert more.fingerprint_ == again.fingerprint_


@pytest.mark.parametrize("rows", [3, 2_000_000])  # arrays that NumPy would put into huge pages, too
@pytest.mark.parametrize("on_disk", [False, True])
def test_joined(tmp_path: Path, rows: int, on_disk: bool) -> None:
    folder = str(tmp_path) if on_disk else None
    parts = [np.arange(2 * rows, dtype=np.float32).reshape(rows, 2), np.ones((1, 2), np.float32)]
    found = concatenated(parts, folder)
    np.testing.assert_array_equal(found, np.concatenate(parts))
    assert found.dtype == np.float32
    assert concatenated([np.zeros(0, np.int32)] * 2, folder).shape == (0,)
    mixed = concatenated([np.array([255], np.uint8), np.array([256, 7], np.uint16)], folder)
    assert mixed.dtype == np.uint16 and mixed.tolist() == [255, 256, 7]
    assert not os.listdir(tmp_path)


def read_at_random(path: Path) -> bool:
    """Whether the system expects random reads of a mapped file."""
    maps = Path("/proc/self/smaps").read_text().split("VmFlags:")
    before = next(i for i, part in enumerate(maps) if str(path) in part)
    return "rr" in maps[before + 1].split("\n", 1)[0].split()


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux")
def test_mapped_read_ahead(store: datasets.Dataset) -> None:
    assert store.store is not None
    file = next(Path(store.store.folder).glob("x_values*.npy"))
    arrays = (store.X.data, np.zeros(3))
    assert not read_at_random(file)
    with random_access(arrays):
        with random_access(arrays):  # another tree, in another thread
            assert read_at_random(file)
        assert read_at_random(file)
    assert not read_at_random(file)


def test_share_of_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < available_bytes() < 1 << 50
    monkeypatch.setattr(memory, "available_bytes", lambda: 8 << 30)
    assert tree_memory(None, 1) == 2 << 30
    assert tree_memory(None, 4) == 512 << 20
    assert tree_memory(None, 10_000) == 64 << 20  # a tree needs some
    assert tree_memory(256 << 20, 2) == 128 << 20


@pytest.mark.parametrize("value", [0, 256, 1.5e9, "256MB", None, True])
def test_invalid_limits(store: datasets.Dataset, value: object) -> None:
    with pytest.raises(ValueError, match="memory_limit.*'auto' or an int >= 1048576"):
        LdSMClassifier(memory_limit=value).fit(store)  # type: ignore[arg-type]


@pytest.mark.linux
@pytest.mark.not_under("address", "thread", reason="they have an allocator of their own")
def test_free_memory_is_returned():
    blocks, kept = [], []
    for _ in range(1000):
        blocks.append(b"x" * 60_000)
        kept.append(bytearray(2000))
    del blocks
    before = process_memory.now_bytes()
    return_free_memory()
    assert process_memory.now_bytes() < before - 30_000_000 and len(kept) == 1000
