"""Ranges of features, split and joined: in memory, or in files if the rows lie in files."""

import numpy as np
import pytest
import scipy.sparse as sp

from ldsm._arrays import features
from ldsm._arrays.features import FeatureArrays, feature_arrays
from ldsm._execution import memory

WIDTHS = (7, 0, 20, 13)


def mapped(rows, folder):
    """The same rows, in files."""
    arrays = []
    for name in ("indptr", "indices", "values"):
        np.save(folder / f"{name}.npy", getattr(rows, name))
        arrays.append(np.load(folder / f"{name}.npy", mmap_mode="r").view(np.ndarray))
    return FeatureArrays(*arrays, rows.n_features)


@pytest.mark.parametrize("in_files", [False, True])
@pytest.mark.parametrize("n_rows", [0, 1, 64, 65, 200])
def test_split_and_joined(in_files, n_rows, tmp_path, monkeypatch):
    monkeypatch.setattr(features, "_CHUNK_ROWS", 64)
    monkeypatch.setattr(memory, "_LARGE_BYTES", 100)
    X = sp.random(n_rows, sum(WIDTHS), 0.3, format="csr", dtype=np.float32, random_state=0)
    rows = feature_arrays(sp.csr_array(X))
    in_files = in_files and n_rows > 1
    if in_files:
        rows = mapped(rows, tmp_path)
    parts = rows.split(WIDTHS)
    starts = np.cumsum([0, *WIDTHS])
    for part, start, width in zip(parts, starts, WIDTHS, strict=False):
        expected = X[:, start : start + width]
        assert part.n_features == width
        assert np.array_equal(part.matrix().toarray(), expected.toarray())
        assert part.checked is not None  # sorted, in range
        assert memory.is_mapped(part.values) == (in_files and part.values.nbytes > 100)
    whole = FeatureArrays.joined(parts)
    for name in ("indptr", "indices", "values"):
        assert np.array_equal(getattr(whole, name), getattr(rows, name))
        assert getattr(whole, name).dtype == getattr(rows, name).dtype
    assert memory.is_mapped(whole.values) == in_files


def test_full_disk_is_reported(tmp_path, monkeypatch):
    def full(descriptor, start, length):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(memory, "_LARGE_BYTES", 100)
    monkeypatch.setattr("os.posix_fallocate", full)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    rows = mapped(feature_arrays(sp.eye_array(50, format="csr", dtype=np.float32)), tmp_path)
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}'"):
        rows.split((25, 25))
