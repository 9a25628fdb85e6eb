"""Objects for other processes: a small message, and large arrays in files."""

import os
import pickle

import numpy as np
import pytest

from ldsm._storage.tasks import sharing
from ldsm._storage.tasks.sharing import sent

LARGE = sharing.LARGE_BYTES


def test_arrays_go_through_one_file(tmp_path):
    rng = np.random.default_rng(0)
    large, wide = rng.random(LARGE), rng.integers(0, 9, (3, LARGE), dtype=np.int32)
    odd = np.asfortranarray(rng.random((2, LARGE)).astype(np.float32))
    thing = {"large": large, "again": large, "wide": wide, "odd": odd, "small": np.arange(3)}
    with sent(thing, str(tmp_path)) as travelling:
        (file,) = tmp_path.iterdir()
        assert file.stat().st_size < large.nbytes + wide.nbytes + odd.nbytes + 200
        assert len(travelling.message) < 1000
        opened = pickle.loads(pickle.dumps(travelling)).opened()
        assert opened is travelling.opened()  # once per process
    assert not any(tmp_path.iterdir())
    for name, array in thing.items():
        found = opened[name]
        assert type(found) is np.ndarray and found.dtype == array.dtype
        assert np.array_equal(found, array) and found.flags.aligned
        assert found.flags.writeable == (name == "small")


def test_mapped_arrays_stay_where_they_are(tmp_path):
    np.save(tmp_path / "rows.npy", np.arange(4 * LARGE))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    views = [mapped[LARGE:], mapped.view(np.ndarray)[7 : 2 * LARGE].reshape(-1, 1)]
    with sent(views, str(tmp_path)) as travelling:
        assert os.listdir(tmp_path) == ["rows.npy"]
        for view, found in zip(views, travelling.opened(), strict=True):
            assert np.array_equal(view, found)
            assert isinstance(found.base, np.memmap)


def test_other_files_are_refused(tmp_path):
    np.save(tmp_path / "rows.npy", np.arange(LARGE))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    with sent(mapped, str(tmp_path)) as travelling:
        for other in (np.arange(LARGE) + 1, np.arange(5)):
            os.unlink(tmp_path / "rows.npy")
            np.save(tmp_path / "rows.npy", other)
            with pytest.raises(ValueError, match="rows.npy' is different on this machine"):
                travelling.opened()
        os.unlink(tmp_path / "rows.npy")
        with pytest.raises(FileNotFoundError, match="missing on this machine: its folder must be"):
            travelling.opened()


def test_full_disk_names_the_folder(tmp_path, monkeypatch):
    def full(descriptor, data, at):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sharing, "write_all", full)
    with (
        pytest.raises(OSError, match="No space left") as caught,
        sent(np.zeros(LARGE), str(tmp_path)),
    ):
        pass
    assert caught.value.filename == str(tmp_path)
    assert not any(tmp_path.iterdir())
